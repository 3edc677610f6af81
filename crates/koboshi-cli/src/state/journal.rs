//! `koboshi journal`: what happened, newest last.

use std::io::{self, Write};

use anstream::stdout;
use anstyle::Style;
use jiff::{Timestamp, Zoned};
use koboshi_store::{Entry, Query, What};

use super::Found;
use super::args::JournalArgs;
use super::say::{Say, plain};
use crate::args::Format;
use crate::{Exit, Failure, clock};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

/// A point in time: an instant, or so long ago.
#[derive(Debug, Clone)]
pub(crate) enum Since {
    At(Zoned),
    Ago(std::time::Duration),
}

impl Since {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(length) = super::person::parse_length(text) {
            return Ok(Self::Ago(length));
        }
        clock::parse(text).map(Self::At).map_err(|_| {
            format!(
                "`{text}` is neither a length of time such as 2h nor an instant such as 2026-11-15T12:00:00Z"
            )
        })
    }

    fn instant(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at.timestamp(),
            Self::Ago(length) => now.saturating_sub(*length).unwrap_or(Timestamp::MIN),
        }
    }
}

pub(crate) fn run(args: &JournalArgs) -> Result<Exit, Failure> {
    let Found { source, say } = &Found::look(&args.state)?;
    let now = say.now.timestamp();
    let query = Query {
        from: args.since.as_ref().map(|since| since.instant(now)),
        to: args.until.as_ref().map(|until| until.instant(now)),
        what: args.what,
        kind: args.kind.clone(),
        key: args.target.clone(),
        agent: args.agent.clone(),
        limit: args.limit,
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
    for entry in &entries {
        line(&mut out, say, entry)?;
    }
    Ok(Exit::Good)
}

fn line(out: &mut impl Write, say: &Say, entry: &Entry) -> io::Result<()> {
    let words = [
        entry.kind.as_deref().map(plain),
        entry.key.as_ref().map(ToString::to_string),
        entry.agent.as_deref().map(plain),
    ];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join("  ");
    let (time, what, text) = (say.time(entry.at), entry.what.name(), plain(&entry.text));
    writeln!(
        out,
        "{QUIET}{time}{QUIET:#}  {what:<8}  {STRONG}{words}{STRONG:#}  {text}  {QUIET}{}{QUIET:#}",
        entry.node
    )
}

/// What an entry tells of, by name.
pub(crate) fn parse_what(text: &str) -> Result<What, String> {
    let names = || What::ALL.iter().map(|what| what.name()).collect::<Vec<_>>().join(", ");
    What::from_name(text).ok_or_else(|| format!("`{text}` is none of {}", names()))
}
