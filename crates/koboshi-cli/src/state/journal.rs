//! `koboshi journal`: what happened, newest last.

use std::io::{self, Write};

use anstream::stdout;
use anstyle::Style;
use jiff::Timestamp;
use koboshi_store::{Entry, EntryKind, Query};

use super::Found;
use super::args::JournalArgs;
use super::say::{Say, plain};
use crate::args::Format;
use crate::say::width;
use crate::{Exit, Failure, clock};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

/// A point in time: an instant, or so long ago.
fn since(text: &str, say: &Say) -> Result<Timestamp, Failure> {
    if let Some(length) = super::say::parse_length(text) {
        return Ok(say.now.timestamp().saturating_sub(length).unwrap_or(Timestamp::MIN));
    }
    let at = clock::parse(text).map_err(|_| Failure::new(say.text("time-neither", &[("text", text)])))?;
    Ok(at.timestamp())
}

pub(crate) fn run(args: &JournalArgs) -> Result<Exit, Failure> {
    let Found { source, say } = &Found::look(&args.state)?;
    let now = say.now.timestamp();
    let query = Query {
        from: args.since.as_deref().map(|text| since(text, say)).transpose()?,
        to: args.until.as_deref().map(|text| since(text, say)).transpose()?,
        what: args.what,
        kind: args.kind.clone(),
        key: args.target.clone(),
        agent: args.agent.clone(),
        limit: args.limit.get(),
    };
    let mut out = stdout().lock();
    if args.prune {
        let gone = source.prune(now)?;
        match args.state.format {
            Format::Json => writeln!(out, "{}", serde_json::json!({"forgotten": gone}))?,
            Format::Text => writeln!(out, "{}", say.text("journal-pruned", &[("count", &gone.to_string())]))?,
        }
        return Ok(Exit::Good);
    }
    let entries = source.entries(&query)?;
    if args.state.format == Format::Json {
        // One object a line: a long journal is read as it comes.
        for entry in &entries {
            serde_json::to_writer(&mut out, entry).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        return Ok(Exit::Good);
    }
    if entries.is_empty() {
        writeln!(out, "{}", say.text("journal-empty", &[]))?;
    }
    let widest = EntryKind::ALL.iter().map(|what| width(&word_for(*what, say))).max().unwrap_or_default();
    for entry in &entries {
        line(&mut out, say, entry, widest)?;
    }
    Ok(Exit::Good)
}

/// What an entry tells of, in the reader's language.
fn word_for(what: EntryKind, say: &Say) -> String {
    say.text(&format!("journal-{}", what.name()), &[])
}

fn line(out: &mut impl Write, say: &Say, entry: &Entry, widest: usize) -> io::Result<()> {
    let words = [
        entry.kind.as_deref().map(plain),
        entry.key.as_ref().map(ToString::to_string),
        entry.agent.as_deref().map(plain),
    ];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join("  ");
    let (time, what, text) = (say.time(entry.at), word_for(entry.what, say), plain(&entry.text));
    let gap = widest.saturating_sub(width(&what));
    writeln!(
        out,
        "{QUIET}{time}{QUIET:#}  {what}{:gap$}  {STRONG}{words}{STRONG:#}  {text}  {QUIET}{}{QUIET:#}",
        "", entry.node
    )
}

/// What an entry tells of, by name.
pub(crate) fn parse_what(text: &str) -> Result<EntryKind, String> {
    let names = || EntryKind::ALL.iter().map(|what| what.name()).collect::<Vec<_>>().join(", ");
    EntryKind::from_name(text).ok_or_else(|| format!("`{text}` is none of {}", names()))
}
