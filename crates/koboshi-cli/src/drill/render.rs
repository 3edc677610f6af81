//! A drill as text: a block for each route, then what would make it better, then the score.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::report::{Report, ScenarioReport};
use super::words;
use crate::explain::layout::{Layout, line_width};
use crate::say::Say;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
/// Beside a mark and a space.
const MARK: usize = 2;

pub(super) fn text(out: &mut impl Write, say: &Say, report: &Report) -> io::Result<()> {
    let width = line_width();
    let titles = report.scenarios.iter().map(|one| one.title.as_str());
    let layout = Layout::of(titles, width.map(|width| width.saturating_sub(MARK)));
    for route in &report.routes {
        let (good, total) = (route.good.to_string(), route.total.to_string());
        let head = say.text("drill-route", &[("route", &route.name), ("good", &good), ("total", &total)]);
        writeln!(out, "{STRONG}{head}{STRONG:#}")?;
        let targets = format!("{}: {}", say.text("drill-targets", &[]), route.targets.join(" → "));
        for line in Layout::of([""].into_iter(), width).broken(&targets, 0) {
            writeln!(out, "{QUIET}{line}{QUIET:#}")?;
        }
        writeln!(out)?;
        for one in report.scenarios.iter().filter(|one| one.route == route.name) {
            scenario(out, say, layout, one)?;
        }
        writeln!(out)?;
    }
    advice(out, say, report, width)?;
    let numbers = [report.good, report.total].map(|number| number.to_string());
    let (score, [good, total]) = (format!("{:.1}", report.score), &numbers);
    let line = say.text("drill-score", &[("score", &score), ("good", good), ("total", total)]);
    writeln!(out, "{STRONG}{line}{STRONG:#}")?;
    for line in Layout::of([""].into_iter(), width).broken(&say.text("drill-virtual", &[]), 0) {
        writeln!(out, "{QUIET}{line}{QUIET:#}")?;
    }
    Ok(())
}

fn scenario(out: &mut impl Write, say: &Say, layout: Layout, one: &ScenarioReport) -> io::Result<()> {
    let (mark, style) = if one.good { ("✓", GOOD) } else { ("✗", BAD) };
    let seconds = seconds(one.after_seconds);
    let calls = one.upstream_calls.to_string();
    let parts = [
        seen(say, one),
        say.text("drill-after", &[("seconds", &seconds)]),
        say.text("drill-calls", &[("calls", &calls)]),
    ];
    let mut label = layout.label(&one.title);
    for line in layout.lines(&say.list(&parts)) {
        let shown = if label.trim().is_empty() { " " } else { mark };
        writeln!(out, "{style}{shown}{style:#} {label}{line}")?;
        label = layout.indent();
    }
    Ok(())
}

/// What the client sees, in a few words.
pub(super) fn seen(say: &Say, one: &ScenarioReport) -> String {
    let mut seen = say.text(words::ending(one.ending), &[]);
    if let Some(kind) = &one.kind {
        let status = one.status.to_string();
        seen = say.text("drill-failed", &[("ends", &seen), ("kind", kind), ("status", &status)]);
    }
    seen
}

/// Seconds as people read them.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds >= 10.0 { format!("{seconds:.0}") } else { format!("{seconds:.1}") }
}

fn advice(out: &mut impl Write, say: &Say, report: &Report, width: Option<usize>) -> io::Result<()> {
    let layout = Layout::of([""].into_iter(), width);
    if report.advice.is_empty() {
        if report.good < report.total {
            writeln!(out, "{}\n", say.text("drill-nothing-better", &[]))?;
        }
        return Ok(());
    }
    writeln!(out, "{STRONG}{}{STRONG:#}", say.text("drill-better", &[]))?;
    for advice in &report.advice {
        let text = format!("{}: {}", advice.key, advice.text);
        let mut begin = "→ ";
        for line in layout.broken(&text, MARK) {
            writeln!(out, "{begin}{line}")?;
            begin = "  ";
        }
        for line in layout.broken(&format!("({})", advice.scenarios.join(", ")), MARK) {
            writeln!(out, "  {QUIET}{line}{QUIET:#}")?;
        }
    }
    writeln!(out)
}
