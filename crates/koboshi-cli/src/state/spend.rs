//! `koboshi spend`: what answers cost, by key, model, route, agent or day.

use std::io::{self, Write};

use anstream::stdout;
use anstyle::Style;
use koboshi_gateway::{BudgetRow, SpendBy, SpendQuery, SpendReport, SpendRow};

use super::CommandContext;
use super::args::{SpendArgs, SpendFormat};
use super::say::{Say, plain};
use crate::say::width;
use crate::{Exit, Failure};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

pub(crate) fn run(args: &SpendArgs) -> Result<Exit, Failure> {
    let CommandContext { source, say } = &CommandContext::open(&args.place)?;
    let query = SpendQuery { by: args.by, from: args.from, to: args.to };
    let report = source.spend(query, say.now.timestamp())?;
    let mut out = stdout().lock();
    match args.format {
        SpendFormat::Json => {
            serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        SpendFormat::Csv => csv(&mut out, &report)?,
        SpendFormat::Text => text(&mut out, say, &report)?,
    }
    Ok(Exit::Good)
}

/// What `--by` is.
pub(crate) fn parse_by(text: &str) -> Result<SpendBy, String> {
    SpendBy::from_name(text).ok_or_else(|| format!("`{text}` is none of {}", SpendBy::NAMES.join(", ")))
}

/// The columns of a table: their names for programs, and a row's values.
fn columns(row: &SpendRow) -> [(&'static str, String); 13] {
    let money = |units: f64| format!("{units:.6}");
    [
        ("attempts", row.attempts.to_string()),
        ("input_tokens", row.input_tokens.to_string()),
        ("output_tokens", row.output_tokens.to_string()),
        ("cached_tokens", row.cached_tokens.to_string()),
        ("stored_tokens", row.stored_tokens.to_string()),
        ("reasoning_tokens", row.reasoning_tokens.to_string()),
        ("cost", money(row.cost)),
        ("unpriced_tokens", row.unpriced_tokens.to_string()),
        ("estimated_tokens", row.estimated_tokens.to_string()),
        ("estimated_attempts", row.estimated_attempts.to_string()),
        ("lost_attempts", row.lost_attempts.to_string()),
        ("lost_cost", money(row.lost_cost)),
        ("lesser_cost", money(row.lesser_cost)),
    ]
}

fn csv(out: &mut impl Write, report: &SpendReport) -> io::Result<()> {
    let names = columns(&report.total).map(|(name, _)| name).join(",");
    writeln!(out, "{},{names},currency", by_name(report.by))?;
    for row in &report.rows {
        let values = columns(row).map(|(_, value)| value).join(",");
        writeln!(out, "{},{values},{}", field(&row.name), report.currency)?;
    }
    Ok(())
}

/// A field of a table as RFC 4180 has it. Names come from clients: one that a spreadsheet would read as a formula gets an apostrophe.
fn field(name: &str) -> String {
    let name = if name.starts_with(['=', '+', '@', '-']) && name.len() > 1 {
        format!("'{name}")
    } else {
        name.to_owned()
    };
    if name.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}

const fn by_name(by: SpendBy) -> &'static str {
    match by {
        SpendBy::Key => "key",
        SpendBy::Model => "model",
        SpendBy::Route => "route",
        SpendBy::Agent => "agent",
        SpendBy::Day => "day",
    }
}

fn text(out: &mut impl Write, say: &Say, report: &SpendReport) -> io::Result<()> {
    let (from, to) = (report.from.to_string(), report.to.to_string());
    let days = [("from", from.as_str()), ("to", &to), ("zone", &report.zone)];
    writeln!(out, "{}", say.text("spend-days", &days))?;
    if report.rows.is_empty() {
        writeln!(out, "{}", say.text("spend-empty", &[]))?;
    } else {
        table(out, say, report)?;
        notes(out, say, &report.total, &report.currency)?;
    }
    for budget in &report.budgets {
        writeln!(out, "{}", of_budget(say, budget, &report.currency))?;
    }
    Ok(())
}

fn table(out: &mut impl Write, say: &Say, report: &SpendReport) -> io::Result<()> {
    let heads = ["attempts", "input", "output", "cost"].map(|name| say.text(&format!("spend-{name}"), &[]));
    let first = say.text(&format!("spend-by-{}", by_name(report.by)), &[]);
    let cells = |row: &SpendRow, name: String| {
        let priced = row.input_tokens + row.output_tokens > row.unpriced_tokens;
        // Nothing of it has a known price: that is not the same as free.
        let cost = if priced || row.unpriced_tokens == 0 {
            format!("{:.4} {}", row.cost, report.currency)
        } else {
            say.text("spend-unknown", &[])
        };
        let numbers = [row.attempts, row.input_tokens, row.output_tokens].map(|number| number.to_string());
        let [attempts, input, output] = numbers;
        [name, attempts, input, output, cost]
    };
    let [attempts, input, output, cost] = heads;
    let mut lines = vec![[first, attempts, input, output, cost]];
    lines.extend(report.rows.iter().map(|row| cells(row, plain(&row.name))));
    lines.push(cells(&report.total, say.text("spend-total", &[])));
    let widest = |column: usize| {
        let widths = lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell));
        widths.max().unwrap_or_default()
    };
    let widths: [usize; 5] = std::array::from_fn(widest);
    let last = lines.len().saturating_sub(1);
    for (at, line) in lines.iter().enumerate() {
        let style = match at {
            0 => QUIET,
            at if at == last => STRONG,
            _ => Style::new(),
        };
        write!(out, "{style}")?;
        for (place, (cell, widest)) in line.iter().zip(widths).enumerate() {
            let gap = widest.saturating_sub(width(cell));
            match place {
                0 => write!(out, "{cell}{:gap$}", "")?,
                _ => write!(out, "  {:gap$}{cell}", "")?,
            }
        }
        writeln!(out, "{style:#}")?;
    }
    Ok(())
}

/// What the sums hide.
fn notes(out: &mut impl Write, say: &Say, total: &SpendRow, currency: &str) -> io::Result<()> {
    let money = |units: f64| format!("{units:.4} {currency}");
    if total.unpriced_tokens > 0 {
        writeln!(out, "{}", say.text("spend-unpriced", &[("tokens", &total.unpriced_tokens.to_string())]))?;
    }
    if total.estimated_attempts > 0 {
        let (tokens, attempts) = (total.estimated_tokens.to_string(), total.estimated_attempts.to_string());
        writeln!(out, "{}", say.text("spend-estimated", &[("tokens", &tokens), ("attempts", &attempts)]))?;
    }
    if total.lost_attempts > 0 {
        let (attempts, cost) = (total.lost_attempts.to_string(), money(total.lost_cost));
        writeln!(out, "{}", say.text("spend-lost", &[("attempts", &attempts), ("cost", &cost)]))?;
    }
    if total.lesser_cost > 0.0 {
        writeln!(out, "{}", say.text("spend-lesser", &[("cost", &money(total.lesser_cost))]))?;
    }
    Ok(())
}

fn of_budget(say: &Say, budget: &BudgetRow, currency: &str) -> String {
    let (spent, limit) = (format!("{:.4}", budget.spent), format!("{:.2} {currency}", budget.limit));
    let share = format!("{:.0}", budget.share * 100.0);
    say.text(
        &format!("spend-budget-{}", budget.period),
        &[
            ("key", &plain(&budget.key)),
            ("spent", &spent),
            ("limit", &limit),
            ("share", &share),
            ("until", &say.time(budget.renews_at)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_break_a_table_or_run_in_a_spreadsheet() {
        assert_eq!(field("plain/name"), "plain/name");
        assert_eq!(field("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(field("=cmd()"), "'=cmd()");
        assert_eq!(field("-"), "-", "the mark for none");
    }
}
