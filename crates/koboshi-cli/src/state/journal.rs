//! `koboshi journal`: what happened, newest last.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstream::stdout;
use anstyle::Style;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use koboshi::fault::Kind;
use koboshi_store::{Entry, EntryKind, Query};

use super::CommandContext;
use super::args::JournalArgs;
use super::say::{Say, plain};
use super::source::Source;
use crate::args::Format;
use crate::say::width;
use crate::{Exit, Failure, clock};

/// Kinds of entries that are no names of errors.
const KINDS: &[&str] = &[
    "aside", "degrade", "differs", "guard_note", "guard_stop", "idle", "recovered", "reload", "rescued",
    "restart", "start", "started", "stop", "stopped", "succeeded", "supervisor",
];
/// Entries in which a kind is looked for.
const EXAMINED: usize = 10_000;

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

/// A point in time: an instant, or a length of time before now.
fn since(text: &str, say: &Say) -> Result<Timestamp, Failure> {
    if let Some(length) = super::say::parse_length(text) {
        return Ok(say.now.timestamp().saturating_sub(length).unwrap_or(Timestamp::MIN));
    }
    let at = clock::parse(text).map_err(|_| Failure::new(say.text("time-neither", &[("text", text)])))?;
    Ok(at.timestamp())
}

pub(crate) fn run(args: &JournalArgs) -> Result<Exit, Failure> {
    let CommandContext { source, say } = &CommandContext::open(&args.state)?;
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
    if let Some(kind) = args.kind.as_deref().filter(|_| entries.is_empty()) {
        refuse_unknown_kind(source, say, kind)?;
    }
    if args.state.format == Format::Json {
        // One object per line: a long journal is read as it comes.
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

/// A mistyped kind must not look like a quiet journal: one that is no error's name and that no entry has is refused.
fn refuse_unknown_kind(source: &Source, say: &Say, kind: &str) -> Result<(), Failure> {
    if Kind::from_name(kind).is_some() || KINDS.contains(&kind) {
        return Ok(());
    }
    let all = source.entries(&Query { limit: EXAMINED, ..Query::default() })?;
    let seen: BTreeSet<&str> = all.iter().filter_map(|entry| entry.kind.as_deref()).collect();
    if seen.contains(kind) {
        return Ok(());
    }
    let known: BTreeSet<&str> =
        KINDS.iter().copied().chain(Kind::ALL.iter().map(|kind| kind.name())).chain(seen).collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::new(say.text("journal-unknown-kind", &[("kind", &plain(kind)), ("known", &known)])))
}

/// The subject of an entry, in the reader's language.
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
    let (time, what, text) =
        (say.time(entry.at), word_for(entry.what, say), plain(&in_zone(&entry.text, say)));
    let gap = widest.saturating_sub(width(&what));
    let rule = entry.data.as_ref().and_then(|data| data.get("rule")).and_then(|rule| rule.as_str());
    let rule = rule.map(|rule| format!("{}  ", say.text("agent-rule", &[("rule", &plain(rule))])));
    let (rule, node) = (rule.unwrap_or_default(), &entry.node);
    writeln!(
        out,
        "{QUIET}{time}{QUIET:#}  {what}{:gap$}  {STRONG}{words}{STRONG:#}  {text}  {QUIET}{rule}{node}{QUIET:#}",
        ""
    )
}

/// A text of the journal with its times in the reader's zone, as the time of the entry itself: they are written in UTC.
fn in_zone(text: &str, say: &Say) -> String {
    const END: &str = " UTC";
    const DIGITS: usize = "2026-11-15 18:00:00".len();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(END) {
        let (before, behind) = (rest.get(..at).unwrap_or_default(), rest.get(at + END.len()..));
        let start = at.saturating_sub(DIGITS);
        let time = before.get(start..).and_then(|digits| digits.parse::<DateTime>().ok());
        let time = time.and_then(|time| time.to_zoned(TimeZone::UTC).ok());
        match time {
            Some(time) => {
                out.push_str(before.get(..start).unwrap_or_default());
                // The details are English, so their times are too.
                let time = time.with_time_zone(say.now.time_zone().clone());
                out.push_str(&time.strftime("%Y-%m-%d %H:%M:%S %Z").to_string());
            }
            None => out.push_str(rest.get(..at + END.len()).unwrap_or_default()),
        }
        rest = behind.unwrap_or_default();
    }
    out + rest
}

/// The subject of an entry, by name.
pub(crate) fn parse_what(text: &str) -> Result<EntryKind, String> {
    let names = || EntryKind::ALL.iter().map(|what| what.name()).collect::<Vec<_>>().join(", ");
    EntryKind::from_name(text).ok_or_else(|| format!("`{text}` is none of {}", names()))
}
