//! Paints a board: a head with the figures, the lists, what is said of the chosen line, the keys. It decides colours and nothing else.

use std::ops::Range;

use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use unicode_width::UnicodeWidthStr;

use super::super::say::{Say, plain};
use super::board::{Board, Pane, dead_routes, first_of, heights, shown};
use super::read::Snapshot;
use super::rows::{self, Tone, short};
use super::widths::{GAP, between, cut, fill, share, wrap};

/// Lines above the lists.
const HEAD: usize = 3;
/// Lines below them: what is said of the chosen line, and the keys.
const MORE: usize = 3;
/// Columns before the cells of a line: the mark of the chosen one, and how bad it is.
const MARKS: usize = 4;
/// Wider first cells are cut, or one long name would take the line.
const WIDEST_NAME: usize = 36;
/// How narrow the columns of each list may get.
const LEAST: [&[usize]; 3] = [&[16, 10, 6, 6, 8], &[8, 12, 10, 10], &[14, 10, 6, 10]];

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const QUIET: Style = Style::new().add_modifier(Modifier::DIM);

/// The lines of every list, and so how many each has.
pub(super) fn lists(board: &Board, say: &Say) -> [Vec<rows::Line>; 3] {
    let now = say.now.timestamp();
    let Some(snapshot) = &board.snapshot else { return [Vec::new(), Vec::new(), Vec::new()] };
    [rows::targets(say, snapshot, now), rows::faults(say, snapshot, now), rows::agents(say, snapshot, now)]
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    board: &Board,
    lists: &[Vec<rows::Line>; 3],
    say: &Say,
    place: &str,
) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let counts = lists.each_ref().map(Vec::len);
    let titles = shown(counts).count();
    let room = height.saturating_sub(HEAD + titles + MORE + 1);
    let heights = heights(counts, board.pane, room);
    let mut lines = head(board, say, place, width);
    for pane in shown(counts) {
        let (Some(list), Some(height), Some(chosen)) =
            (lists.get(pane.at()), heights.get(pane.at()), board.chosen.get(pane.at()))
        else {
            continue;
        };
        lines.push(title(board, pane, say, width));
        let first = first_of(*chosen, *height);
        let chosen = (pane == board.pane).then_some(*chosen);
        lines.extend(list_lines(list, pane, first..first + height, chosen, width));
        if list.is_empty() {
            lines.push(Line::styled(cut(&empty(pane, board, say), width), QUIET));
        }
    }
    lines.truncate(height.saturating_sub(MORE + 1));
    lines.resize(height.saturating_sub(MORE + 1), Line::default());
    let chosen = lists.get(board.pane.at()).zip(board.chosen.get(board.pane.at()));
    let more = chosen.and_then(|(list, chosen)| list.get(*chosen)).map(|line| line.more.as_slice());
    lines.extend(more_lines(more.unwrap_or_default(), width));
    lines.push(Line::styled(cut(&format!(" {}", say.text("top-keys", &[])), width), QUIET));
    frame.render_widget(Text::from(lines), area);
}

fn head(board: &Board, say: &Say, place: &str, width: usize) -> Vec<Line<'static>> {
    let Some(snapshot) = &board.snapshot else {
        let trouble = board.trouble.as_ref().map(|why| plain(why));
        let said = trouble.unwrap_or_else(|| say.text("top-reading", &[]));
        let mut lines = vec![Line::styled(cut(&format!(" koboshi top · {}", plain(place)), width), STRONG)];
        lines.extend(
            wrap(&said, width.saturating_sub(2), HEAD - 1)
                .into_iter()
                .map(|line| Line::raw(format!(" {line}"))),
        );
        return lines;
    };
    let mut first = vec!["koboshi top".to_owned(), plain(&snapshot.source)];
    let up = snapshot.started.and_then(|started| say.now.timestamp().duration_since(started).try_into().ok());
    first.extend(up.map(|up| say.text("top-up", &[("length", &short(say, up))])));
    let first =
        between(&format!(" {}", first.join(" · ")), &format!("{} ", say.now.strftime("%H:%M:%S %Z")), width);
    let (tone, verdict) = verdict(board, snapshot, say);
    vec![
        Line::styled(first, STRONG),
        Line::raw(cut(&format!(" {}", figures(board, snapshot, say)), width)),
        Line::styled(cut(&format!(" {} {verdict}", tone.mark()), width), style_of(tone).patch(STRONG)),
    ]
}

fn figures(board: &Board, snapshot: &Snapshot, say: &Say) -> String {
    let mut parts = Vec::new();
    let rates = board.rates();
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"));
    if snapshot.is_gateway {
        parts.push(say.text("top-requests", &[("rate", &rate(rates.and_then(|rates| rates.requests)))]));
    }
    parts.push(say.text("top-faults", &[("rate", &rate(rates.map(|rates| rates.faults)))]));
    if let (Some(counts), Some(open)) = (snapshot.counts, snapshot.open) {
        parts.push(say.text("top-open", &[("count", &open.max(0).to_string())]));
        let seen = (counts.failed + counts.broken).to_string();
        let figures = [("survived", counts.survived.to_string()), ("seen", seen)];
        let figures: Vec<_> = figures.iter().map(|(name, value)| (*name, value.as_str())).collect();
        parts.push(say.text("top-survived", &figures));
    } else {
        parts.push(say.text("top-store-alone", &[]));
    }
    parts.join(" · ")
}

/// Is everything on its feet? What is known may be old, and then that comes first.
fn verdict(board: &Board, snapshot: &Snapshot, say: &Say) -> (Tone, String) {
    if let Some(why) = &board.trouble {
        return (Tone::Bad, say.text("top-old", &[("time", &say.time(snapshot.now)), ("why", &plain(why))]));
    }
    if let Some(why) = &snapshot.trouble {
        return (Tone::Warn, say.text("status-trouble", &[("why", &plain(why))]));
    }
    let dead: Vec<String> = dead_routes(snapshot).into_iter().map(plain).collect();
    if !dead.is_empty() {
        return (Tone::Bad, say.text("top-dead", &[("routes", &say.list(&dead))]));
    }
    let down = snapshot.targets.iter().filter(|target| target.is_down()).count();
    if down > 0 {
        return (Tone::Warn, say.text("top-down", &[("count", &down.to_string())]));
    }
    if snapshot.is_gateway {
        (Tone::Good, say.text("status-clear", &[]))
    } else {
        (Tone::Quiet, say.text("top-clear-store", &[]))
    }
}

fn title(board: &Board, pane: Pane, say: &Say, width: usize) -> Line<'static> {
    let snapshot = board.snapshot.as_ref();
    let text = match pane {
        Pane::Targets => {
            let listed = snapshot.map_or(&[][..], |snapshot| &snapshot.targets).iter();
            let (all, down) = listed
                .filter(|target| target.is_target())
                .fold((0, 0), |(all, down), target| (all + 1, down + usize::from(target.is_down())));
            say.text("top-targets", &[("down", &down.to_string()), ("all", &all.to_string())])
        }
        Pane::Faults => say.text("top-last-faults", &[]),
        Pane::Agents => {
            let agents = snapshot.map_or(&[][..], |snapshot| &snapshot.agents);
            let runs =
                |agent: &&serde_json::Value| agent.get("state").is_some_and(|state| state == "running");
            let running = agents.iter().filter(runs).count().to_string();
            say.text("top-agents", &[("running", &running), ("all", &agents.len().to_string())])
        }
    };
    let text = format!("─ {text} ");
    let line = "─".repeat(width.saturating_sub(text.width()));
    let style = if pane == board.pane { STRONG } else { QUIET };
    Line::styled(cut(&format!("{text}{line}"), width), style)
}

/// Why a list has no lines.
fn empty(pane: Pane, board: &Board, say: &Say) -> String {
    let id = match pane {
        _ if board.snapshot.is_none() => return String::new(),
        Pane::Targets => "top-no-targets",
        Pane::Faults | Pane::Agents => "top-no-faults",
    };
    format!("  {}", say.text(id, &[]))
}

fn list_lines(
    list: &[rows::Line],
    pane: Pane,
    shown: Range<usize>,
    chosen: Option<usize>,
    width: usize,
) -> Vec<Line<'static>> {
    let least = LEAST.get(pane.at()).copied().unwrap_or_default();
    // Lines that are not shown count too, so that the columns do not jump while a person moves through a list.
    let natural: Vec<usize> = (0..least.len())
        .map(|column| {
            let widest = list.iter().filter_map(|line| line.cells.get(column)).map(|cell| cell.width()).max();
            widest.unwrap_or_default().min(if column == 0 { WIDEST_NAME } else { usize::MAX })
        })
        .collect();
    let widths = share(&natural, least, width.saturating_sub(MARKS));
    let lines = list.iter().enumerate().skip(shown.start).take(shown.len());
    lines.map(|(at, line)| list_line(line, &widths, chosen == Some(at))).collect()
}

fn list_line(line: &rows::Line, widths: &[usize], is_chosen: bool) -> Line<'static> {
    let tone = style_of(line.tone);
    let mut spans = vec![
        Span::raw(if is_chosen { "> " } else { "  " }),
        Span::styled(format!("{} ", line.tone.mark()), tone),
    ];
    for (at, (cell, width)) in line.cells.iter().zip(widths).enumerate() {
        if *width == 0 {
            continue;
        }
        if at > 0 {
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        // The state is what the eye looks for.
        let style = if at == 1 { tone } else { Style::new() };
        spans.push(Span::styled(fill(cell, *width), style));
    }
    let style = if is_chosen { STRONG } else { Style::new() };
    Line::from(spans).style(style)
}

/// Three lines about the chosen one: each part has one, and what is left over goes to the part that needs it.
fn more_lines(more: &[String], width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (at, part) in more.iter().enumerate() {
        let behind = more.len().saturating_sub(at + 1);
        let most = MORE.saturating_sub(lines.len() + behind).max(1);
        lines.extend(wrap(part, width.saturating_sub(2), most));
    }
    lines.resize(MORE, String::new());
    lines.into_iter().map(|line| Line::raw(format!(" {line}"))).collect()
}

const fn style_of(tone: Tone) -> Style {
    match tone {
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Quiet => QUIET,
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::{Counts, Route, Target};
    use super::*;
    use jiff::Timestamp;
    use koboshi_report::phrase::Lang;
    use koboshi_store::{Entry, EntryKind, RowState};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn target(
        name: &str,
        state: Option<RowState>,
        until: Option<&str>,
        reason: Option<&str>,
        routes: &[&str],
    ) -> Target {
        Target {
            name: name.to_owned(),
            key: Some(format!("target:{name}")),
            state,
            until: until.map(|until| until.parse().unwrap()),
            since: state.and("2026-11-19T07:30:00Z".parse().ok()),
            reason: reason.map(str::to_owned),
            said: reason
                .map(|_| "You exceeded your current quota, please check your plan".to_owned())
                .unwrap_or_default(),
            routes: routes.iter().map(ToString::to_string).collect(),
        }
    }

    fn snapshot() -> Snapshot {
        let node = "gateway/host:4141".parse().unwrap();
        let fault = |second: i64, kind: &'static str, text: &str| Entry {
            kind: Some(kind.into()),
            key: "target:openai/gpt-4o#1f2e3d4c".parse().ok(),
            ..Entry::new(
                Timestamp::from_second(1_795_075_200 - second).unwrap(),
                &node,
                EntryKind::Fault,
                text,
            )
        };
        Snapshot {
            source: "http://127.0.0.1:4141".to_owned(),
            is_gateway: true,
            now: "2026-11-19T08:00:00Z".parse().unwrap(),
            started: "2026-11-19T04:58:00Z".parse().ok(),
            counts: Some(Counts {
                faults: 340,
                survived: 312,
                whole: 12_030,
                failed: 4,
                ..Counts::default()
            }),
            open: Some(3),
            routes: vec![Route {
                name: "assistant".to_owned(),
                chain: vec!["openai/gpt-4o".to_owned(), "anthropic/claude-opus-4-6".to_owned()],
            }],
            targets: vec![
                target("anthropic/claude-opus-4-6", None, None, None, &["assistant"]),
                target(
                    "openai/gpt-4o",
                    Some(RowState::Cooling),
                    Some("2026-11-19T10:05:30Z"),
                    Some("quota"),
                    &["assistant", "fast"],
                ),
                target("google/gemini-3-pro", Some(RowState::Parked), None, Some("billing"), &["fast"]),
            ],
            faults: vec![
                fault(4, "quota_exceeded", "openai/gpt-4o: You exceeded your current quota"),
                fault(64, "overloaded", "openai/gpt-4o: \u{202e}Overloaded"),
            ],
            agents: vec![
                json!({"agent": "writer/site", "state": "running", "held_by": null, "started": "2026-11-19T07:55:00Z", "last": null}),
                json!({"agent": "reviewer/website", "state": "held", "held_by": "account:main", "started": null,
                       "last": {"ended": "2026-11-19T07:50:00Z", "outcome": "quota", "exit_code": 1, "rule": "log-usage-limit", "line": "limit reached"}}),
            ],
            ..Snapshot::default()
        }
    }

    fn screen(board: &Board, lang: Lang, width: u16, height: u16) -> String {
        let now = "2026-11-19T08:00:00Z[UTC]".parse().unwrap();
        let say = Say::at(lang, now);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let lists = lists(board, &say);
        terminal.draw(|frame| draw(frame, board, &lists, &say, "http://127.0.0.1:4141")).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |row: u16| {
            let mut out = String::new();
            let mut column = 0;
            while column < width {
                let symbol = buffer[(column, row)].symbol();
                out.push_str(symbol);
                column += u16::try_from(symbol.width().max(1)).unwrap();
            }
            out.trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    fn board() -> Board {
        let mut board = Board::new();
        board.take(Ok(snapshot()));
        board
    }

    #[test]
    fn a_screen_of_80_columns_and_24_lines_has_everything() {
        insta::assert_snapshot!("screen", screen(&board(), Lang::En, 80, 24));
        insta::assert_snapshot!("screen-ja", screen(&board(), Lang::Ja, 80, 24));
        insta::assert_snapshot!("screen-wide", screen(&board(), Lang::En, 132, 30));
    }

    #[test]
    fn a_gateway_that_is_away_leaves_what_was_known_on_the_screen() {
        let mut board = board();
        board.take(Err("cannot reach the gateway".to_owned()));
        let shown = screen(&board, Lang::En, 80, 24);
        assert!(shown.contains("✗ As of 08:00:00 UTC: cannot reach the gateway"), "{shown}");
        assert!(shown.contains("openai/gpt-4o"), "{shown}");
    }

    #[test]
    fn no_size_of_a_window_is_too_small_to_draw() {
        let mut board = board();
        for pane in Pane::ALL {
            board.pane = pane;
            for (width, height) in [(1, 1), (10, 3), (20, 8), (40, 12), (300, 100)] {
                screen(&board, Lang::Ja, width, height);
            }
        }
        screen(&Board::new(), Lang::En, 80, 24);
    }
}
