//! `koboshi status`: what is open, cooling or parked, since when, until when, why.

use std::io::{self, Write};

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use koboshi::key::ScopeKey;
use koboshi_store::Unreadable;
use serde_json::{Value, json};

use super::Found;
use super::args::StatusArgs;
use super::row::{Row, State, rows};
use super::say::{Say, plain, resume_command};
use crate::args::Format;
use crate::{Exit, Failure};

const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

pub(crate) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let found = Found::look(&args.state)?;
    let say = &found.say;
    let loaded = found.load()?;
    let mut rows = rows(&loaded.records, say.now.timestamp());
    let mut unreadable = loaded.unreadable;
    if let Some(key) = &args.key {
        rows.retain(|row| row.key == *key);
        let name = key.to_string();
        unreadable.retain(|one| one.slot.ends_with(&name));
    }
    match args.state.format {
        Format::Text => text(&found, args.key.as_ref(), &rows, &unreadable)?,
        Format::Json => {
            let document = json!({
                "store": found.place,
                "exists": found.store.is_some(),
                "now": say.now.timestamp(),
                "rows": rows.iter().map(Row::json).collect::<Vec<Value>>(),
                "unreadable": unreadable.iter().map(|one| json!({"slot": one.slot, "why": one.why})).collect::<Vec<Value>>(),
            });
            let mut out = stdout().lock();
            serde_json::to_writer_pretty(&mut out, &document).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    // What cannot be read may well be a rest.
    let stands = rows.iter().any(|row| row.state.stops()) || !unreadable.is_empty();
    Ok(if stands { Exit::Found } else { Exit::Good })
}

fn text(found: &Found, key: Option<&ScopeKey>, rows: &[Row], unreadable: &[Unreadable]) -> io::Result<()> {
    let mut out = stdout().lock();
    let (say, place) = (&found.say, found.place.as_str());
    if found.store.is_none() {
        writeln!(out, "{GOOD}✓{GOOD:#} {}", say.text("status-nothing-known", &[("place", place)]))?;
        return Ok(());
    }
    if rows.is_empty() && unreadable.is_empty() {
        let words = match key {
            Some(key) => say.text("status-key-clear", &[("key", &key.to_string())]),
            None => say.text("status-clear", &[]),
        };
        writeln!(out, "{GOOD}✓{GOOD:#} {words}")?;
    }
    for row in rows {
        one(&mut out, say, row)?;
    }
    for one in unreadable {
        let words = say.text("status-unreadable", &[("slot", &plain(&one.slot)), ("why", &plain(&one.why))]);
        writeln!(out, "{WARN}!{WARN:#} {words}")?;
    }
    writeln!(out, "\n{QUIET}{}{QUIET:#}", say.text("status-store", &[("place", place)]))
}

fn one(out: &mut impl Write, say: &Say, row: &Row) -> io::Result<()> {
    let (mark, style) = match row.state {
        State::Parked | State::ForcedOpen => ("✗", BAD),
        state if state.stops() => ("●", WARN),
        _ => ("○", GOOD),
    };
    let state = say.text(&format!("state-{}", row.state.name()), &[]);
    let until = match (row.state, row.until) {
        (State::Due, _) | (_, None) => String::new(),
        (_, Some(until)) => format!("  {}", say.until(until)),
    };
    writeln!(out, "{style}{mark} {state}{style:#}  {STRONG}{}{STRONG:#}{until}", row.key)?;
    let mut why = Vec::new();
    if let Some(reason) = row.reason {
        let family = if row.state == State::Held { "limit" } else { "reason" };
        why.push(say.text(&format!("{family}-{reason}"), &[]));
    }
    if row.streak > 0 {
        let id = if row.reason.is_some() { "status-streak" } else { "status-openings" };
        why.push(say.text(id, &[("count", &row.streak.to_string())]));
    }
    if let Some(since) = row.since {
        why.push(say.text("status-since", &[("time", &say.time(since))]));
    }
    if let Some(node) = &row.node {
        why.push(say.text("status-node", &[("node", node.name())]));
    }
    if !why.is_empty() {
        writeln!(out, "    {}", why.join(" · "))?;
    }
    if !row.detail.is_empty() {
        writeln!(out, "    {QUIET}│ {}{QUIET:#}", plain(&row.detail))?;
    }
    if row.state == State::Parked {
        writeln!(out, "    {}", say.text("status-resume", &[("command", &resume_command(&row.key))]))?;
    }
    Ok(())
}
