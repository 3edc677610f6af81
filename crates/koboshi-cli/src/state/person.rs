//! `koboshi resume` and `koboshi cool`: an operator's order overrides everything that was learned.
//!
//! The operator's key is first resolved to the keys of targets. A key that no target has is refused: an order under it
//! would change nothing and look as if it had.

use std::io::{self, Write};

use anstream::{stderr, stdout};
use jiff::Timestamp;
use koboshi::cooldown::Class;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi_gateway::Meaning;
use koboshi_store::{Row, RowState};
use serde_json::{Value, json};

use super::args::{CoolArgs, PauseArgs, ResumeArgs, StateArgs};
use super::say::Say;
use super::source::Source;
use super::{CommandContext, asked_store};
use crate::args::Format;
use crate::supervise::rows;
use crate::{Exit, Failure, settings};

pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let CommandContext { source, say } = CommandContext::open(&args.state)?;
    let now = say.now.timestamp();
    let mut rows = source.status(now)?.rows;
    // A breaker that an operator keeps closed or disabled holds nothing.
    rows.retain(|row| row.node.is_none() || row.stops || row.state == RowState::Probing);
    let resting = keys_of(&rows, |_| true);
    let (mut resumed, mut idle, mut held) = (Vec::new(), None, Vec::new());
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
            held = known.stopping(&meant);
            held.retain(|key| resting.contains(key));
            // All at once: the same order a second time must find nothing left by the first one.
            meant.extend(known.limits_under(&meant));
            let under = known.targets_under(&meant);
            // An operator's order about one target stays when something wider is resumed.
            let is_learned = |row: &Row| row.reason.as_deref() != Some(Class::Operator.name());
            resumed = keys_of(&rows, |row| {
                meant.contains(&row.key) || (under.contains(&row.key) && is_learned(row))
            });
            source.resume(&resumed, now)?;
            // A gateway also has holds that it never stores: a limit without a stated end.
            resumed.extend(source.release(asked, &resumed)?);
            idle = resumed.is_empty().then(|| asked.clone());
            if asked.level() == ScopeLevel::Agent {
                held.extend(holding(args, &source, asked, &resting));
            }
            // What was resumed is not all that may stop a target: its account or its key can be in cooldown or parked by itself.
            held.retain(|key| !resumed.contains(key));
        }
    }
    let mut out = stdout().lock();
    if args.state.format == Format::Json {
        writeln!(
            out,
            "{}",
            json!({"resumed": resumed, "not_in_cooldown": idle.iter().collect::<Vec<_>>(), "still_held": held})
        )?;
    } else {
        let done = if held.is_empty() { "resume-done" } else { "resume-done-partly" };
        for key in &resumed {
            writeln!(out, "{}", say.text(done, &[("key", &key.to_string())]))?;
        }
        if let Some(key) = &idle {
            writeln!(out, "{}", say.text("resume-nothing", &[("key", &key.to_string())]))?;
        }
        let kept = if idle.is_some() { "resume-above" } else { "resume-still-held" };
        for key in &held {
            let (name, command) = (key.to_string(), say.resume_command(key));
            writeln!(out, "{}", say.text(kept, &[("key", &name), ("command", &command)]))?;
        }
        if args.key.is_none() && resumed.is_empty() {
            writeln!(out, "{}", say.text("resume-all-nothing", &[]))?;
        }
        // Who looked in the wrong place sees it.
        if resumed.is_empty() {
            let is_remote = matches!(source, Source::Remote(_));
            let id = if is_remote { "resume-asked" } else { "resume-looked-in" };
            let place = say.store_place(source.place());
            writeln!(out, "{}", say.text(id, &[("place", &place)]))?;
        }
    }
    Ok(if resumed.is_empty() { Exit::Found } else { Exit::Good })
}

/// The keys that a waiting agent is held by, as its supervisor says.
fn holding(args: &ResumeArgs, source: &Source, agent: &ScopeKey, resting: &[ScopeKey]) -> Vec<ScopeKey> {
    let config = settings::load_without_keys(args.state.config.file.as_deref(), &args.state.lang);
    let config = config.ok().filter(|_| matches!(source, Source::Store(_)));
    let agents = config.and_then(|config| rows(asked_store(args.state.store.as_deref()).as_deref(), &config));
    let agents = agents.as_ref().and_then(Value::as_array).into_iter().flatten();
    let its = agents.filter(|row| row.get("agent").and_then(Value::as_str) == Some(agent.name()));
    let held =
        its.filter_map(|row| row.get("held_by").and_then(Value::as_str)).flat_map(|keys| keys.split(", "));
    held.filter_map(|key| key.parse::<ScopeKey>().ok()).filter(|key| resting.contains(key)).collect()
}

/// The keys of such rows, each once.
fn keys_of(rows: &[Row], is_such: impl Fn(&Row) -> bool) -> Vec<ScopeKey> {
    let mut keys: Vec<ScopeKey> = rows.iter().filter(|row| is_such(row)).map(|row| row.key.clone()).collect();
    keys.sort();
    keys.dedup();
    keys
}

pub(crate) fn cool(args: &CoolArgs) -> Result<Exit, Failure> {
    let CoolArgs { key, length, until, reason, force, state } = args;
    rest(&Order { key, length, until, reason, force: *force, state })
}

/// The same for an agent.
pub(crate) fn pause(args: &PauseArgs) -> Result<Exit, Failure> {
    let PauseArgs { agent, length, until, reason, state } = args;
    rest(&Order { key: agent, length, until, reason, force: false, state })
}

/// What is put into cooldown, and for how long.
struct Order<'a> {
    key: &'a ScopeKey,
    length: &'a Option<String>,
    until: &'a Option<String>,
    reason: &'a Option<String>,
    force: bool,
    state: &'a StateArgs,
}

fn rest(args: &Order<'_>) -> Result<Exit, Failure> {
    let CommandContext { mut source, say } = CommandContext::open(args.state)?;
    if !args.key.is_shared() {
        let key = args.key.to_string();
        return Err(Failure::new(say.text("key-of-one-process", &[("key", &key)])));
    }
    let now = say.now.timestamp();
    let until = match (args.length, args.until) {
        (Some(length), _) => now.saturating_add(say.length(length)?).unwrap_or(Timestamp::MAX),
        (None, until) => say.instant(until.as_deref().unwrap_or_default())?,
    };
    if until <= now {
        let (time, command) = (say.time(until), say.resume_command(args.key));
        return Err(Failure::new(say.text("cool-past", &[("time", &time), ("command", &command)])));
    }
    let keys = match source.known(now)?.meaning(args.key) {
        Meaning::Keys(keys) => keys,
        _ if args.force => vec![args.key.clone()],
        Meaning::Unknown(near) => return refuse(&say, args.state.format, args.key, &near, true),
        Meaning::Unknowable => return unknowable(&say, args.state.format, args.key),
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

/// Reports that no target has this key, with similar ones.
fn refuse(say: &Say, format: Format, key: &ScopeKey, near: &[String], force: bool) -> Result<Exit, Failure> {
    if format == Format::Json {
        return unknown_json(key, near);
    }
    let mut out = stderr().lock();
    let said = [say.unknown_key(key), say.text("key-unchanged", &[])];
    writeln!(out, "koboshi: {}", say.sentences(&said))?;
    write_near(&mut out, say, near)?;
    if force {
        let id = if key.level() == ScopeLevel::Agent { "key-force-agent" } else { "key-force" };
        writeln!(out, "{}", say.text(id, &[]))?;
    }
    Ok(Exit::Found)
}

/// Reports that it is unknown whether a target has this key.
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

/// Prints the similar keys.
pub(super) fn write_near(out: &mut impl Write, say: &Say, near: &[String]) -> io::Result<()> {
    if near.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", say.text("key-near", &[("near", &say.list(near))]))
}
