//! `koboshi resume` and `koboshi cool`: an operator's order beats everything that was learned.
//!
//! What the operator wrote is first brought to the keys that targets have. A key that no target has is refused: an order under it
//! would change nothing and look as if it had.

use std::io::{self, Write};

use anstream::{stderr, stdout};
use jiff::Timestamp;
use koboshi::cooldown::Class;
use koboshi::key::ScopeKey;
use koboshi_gateway::Meaning;
use koboshi_store::Row;
use serde_json::json;

use super::Found;
use super::args::{CoolArgs, ResumeArgs};
use super::say::Say;
use crate::args::Format;
use crate::{Exit, Failure};

pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let Found { source, say } = Found::look(&args.state)?;
    let now = say.now.timestamp();
    let mut rows = source.status(now)?.rows;
    // A breaker that lets requests through, for whatever reason, keeps nothing from being used.
    rows.retain(|row| row.node.is_none() || row.stops);
    let resting = keys_of(&rows, |_| true);
    let (mut resumed, mut idle, mut above) = (Vec::new(), None, Vec::new());
    match &args.key {
        None => {
            resumed.clone_from(&resting);
            source.resume(&resumed, now)?;
        }
        Some(asked) => {
            let known = source.known(now)?;
            let mut meant = match known.meaning(asked) {
                Meaning::Keys(keys) => keys,
                Meaning::Unknown(near) if !resting.contains(asked) => {
                    return refuse(&say, args.state.format, asked, &near, false);
                }
                _ => vec![asked.clone()],
            };
            above = known.above(&meant);
            above.retain(|key| resting.contains(key));
            // All at once: the same order a second time must find nothing that the first one left.
            meant.extend(known.limits_under(&meant));
            let under = known.targets_under(&meant);
            // What an operator said of one target stays when something wider is resumed.
            let is_learned = |row: &Row| row.reason.as_deref() != Some(Class::Operator.name());
            resumed = keys_of(&rows, |row| {
                meant.contains(&row.key) || (under.contains(&row.key) && is_learned(row))
            });
            source.resume(&resumed, now)?;
            // A gateway also holds what it never writes down: a limit without a stated end.
            resumed.extend(source.release(asked, &resumed)?);
            idle = resumed.is_empty().then(|| asked.clone());
        }
    }
    let mut out = stdout().lock();
    if args.state.format == Format::Json {
        writeln!(out, "{}", json!({"resumed": resumed, "not_in_cooldown": idle.iter().collect::<Vec<_>>()}))?;
    } else {
        for key in &resumed {
            writeln!(out, "{}", say.text("resume-done", &[("key", &key.to_string())]))?;
        }
        if let Some(key) = &idle {
            writeln!(out, "{}", say.text("resume-nothing", &[("key", &key.to_string())]))?;
            for key in &above {
                let (name, command) = (key.to_string(), say.resume_command(key));
                let said = say.text("resume-above", &[("key", &name), ("command", &command)]);
                writeln!(out, "{said}")?;
            }
        }
        if args.key.is_none() && resumed.is_empty() {
            writeln!(out, "{}", say.text("resume-all-nothing", &[]))?;
        }
    }
    Ok(if resumed.is_empty() { Exit::Found } else { Exit::Good })
}

/// The keys of such rows, each once.
fn keys_of(rows: &[Row], is_such: impl Fn(&Row) -> bool) -> Vec<ScopeKey> {
    let mut keys: Vec<ScopeKey> = rows.iter().filter(|row| is_such(row)).map(|row| row.key.clone()).collect();
    keys.sort();
    keys.dedup();
    keys
}

pub(crate) fn cool(args: &CoolArgs) -> Result<Exit, Failure> {
    let Found { mut source, say } = Found::look(&args.state)?;
    if !args.key.is_shared() {
        let key = args.key.to_string();
        return Err(Failure::new(say.text("key-of-one-process", &[("key", &key)])));
    }
    let now = say.now.timestamp();
    let until = match (&args.length, &args.until) {
        (Some(length), _) => now.saturating_add(say.length(length)?).unwrap_or(Timestamp::MAX),
        (None, until) => say.instant(until.as_deref().unwrap_or_default())?,
    };
    if until <= now {
        let (time, command) = (say.time(until), say.resume_command(&args.key));
        return Err(Failure::new(say.text("cool-past", &[("time", &time), ("command", &command)])));
    }
    let keys = match source.known(now)?.meaning(&args.key) {
        Meaning::Keys(keys) => keys,
        _ if args.force => vec![args.key.clone()],
        Meaning::Unknown(near) => return refuse(&say, args.state.format, &args.key, &near, true),
        Meaning::Unknowable => return unknowable(&say, args.state.format, &args.key),
    };
    source.cool(&keys, until, args.reason.as_deref().unwrap_or_default(), now)?;
    let mut out = stdout().lock();
    if args.state.format == Format::Json {
        writeln!(out, "{}", json!({"key": args.key, "keys": keys, "until": until}))?;
    } else {
        let until = say.until(until);
        for key in &keys {
            writeln!(out, "{}", say.text("cool-done", &[("key", &key.to_string()), ("until", &until)]))?;
        }
    }
    Ok(Exit::Good)
}

/// No target has this key: says which ones are near.
fn refuse(say: &Say, format: Format, key: &ScopeKey, near: &[String], force: bool) -> Result<Exit, Failure> {
    if format == Format::Json {
        return unknown_json(key, near);
    }
    let mut out = stderr().lock();
    let said = [say.text("key-unknown", &[("key", &key.to_string())]), say.text("key-unchanged", &[])];
    writeln!(out, "koboshi: {}", say.sentences(&said))?;
    write_near(&mut out, say, near)?;
    if force {
        writeln!(out, "{}", say.text("key-force", &[]))?;
    }
    Ok(Exit::Found)
}

/// Nobody can say whether a target has this key.
fn unknowable(say: &Say, format: Format, key: &ScopeKey) -> Result<Exit, Failure> {
    if format == Format::Json {
        return unknown_json(key, &[]);
    }
    let said = [say.text("key-unknowable", &[("key", &key.to_string())]), say.text("key-unchanged", &[])];
    writeln!(stderr().lock(), "koboshi: {}", say.sentences(&said))?;
    Ok(Exit::Found)
}

fn unknown_json(key: &ScopeKey, near: &[String]) -> Result<Exit, Failure> {
    writeln!(stdout().lock(), "{}", json!({"error": "unknown_key", "key": key, "near": near}))?;
    Ok(Exit::Found)
}

/// The keys that may be meant.
pub(super) fn write_near(out: &mut impl Write, say: &Say, near: &[String]) -> io::Result<()> {
    if near.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", say.text("key-near", &[("near", &near.join(", "))]))
}
