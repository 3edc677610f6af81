//! `koboshi resume` and `koboshi cool`: a person's word beats everything that was learned.

use std::io::Write;
use std::time::Duration;

use anstream::stdout;
use jiff::Timestamp;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use koboshi_store::{Entry, Named, Record, Slot, Store, What};
use serde_json::json;

use super::Found;
use super::args::{CoolArgs, ResumeArgs};
use super::row::rows;
use crate::args::Format;
use crate::{Exit, Failure};

/// A store that keeps knowing more than it is told is asked so often, then the person is.
const TRIES: u32 = 10;

pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let found = Found::look(&args.state)?;
    let say = &found.say;
    let now = say.now.timestamp();
    let records = found.load()?.records;
    let resting = resting(&records, now);
    let wanted: Vec<ScopeKey> = match &args.key {
        Some(key) => vec![key.clone()],
        None => resting.clone(),
    };
    let (resumed, idle): (Vec<ScopeKey>, Vec<ScopeKey>) =
        wanted.into_iter().partition(|key| resting.contains(key));
    if let Some(store) = found.store.as_deref().filter(|_| !resumed.is_empty()) {
        let changes =
            records.into_iter().filter(|(slot, _)| slot.node().is_none() && resumed.contains(slot.key()));
        insist(store, changes.collect(), &|record| match record {
            Record::Cooldown(cooldown) => {
                cooldown.resume(now);
            }
            Record::Holds(holds) if *holds != Holds::default() => holds.clear(),
            _ => {}
        })?;
        let words = |key: &ScopeKey| format!("{key} was resumed by a person");
        note(store, &resumed, "resume", words, now);
    }
    let mut out = stdout().lock();
    if args.state.format == Format::Json {
        writeln!(out, "{}", json!({"resumed": resumed, "not_resting": idle}))?;
    } else {
        for key in &resumed {
            writeln!(out, "{}", say.text("resume-done", &[("key", &key.to_string())]))?;
        }
        for key in &idle {
            writeln!(out, "{}", say.text("resume-nothing", &[("key", &key.to_string())]))?;
            if let Some(near) = nearest(key, &resting) {
                writeln!(out, "{}", say.text("resume-near", &[("near", &near.to_string())]))?;
            }
        }
        if resumed.is_empty() && idle.is_empty() {
            writeln!(out, "{}", say.text("status-clear", &[]))?;
        }
    }
    Ok(if idle.is_empty() { Exit::Good } else { Exit::Found })
}

pub(crate) fn cool(args: &CoolArgs) -> Result<Exit, Failure> {
    if !args.key.is_shared() {
        return Err(Failure::new(format!(
            "`{}` is about the network of one machine: it is kept by its process alone and cannot be set from here",
            args.key
        )));
    }
    let (store, say) = super::make(&args.state)?;
    let now = say.now.timestamp();
    let until = match (args.length, &args.until) {
        (Some(length), _) => now.saturating_add(length).unwrap_or(Timestamp::MAX),
        (None, Some(until)) => until.timestamp(),
        (None, None) => {
            return Err(Failure::new("say until when: --for 2h, or --until 2026-11-15T12:00:00Z"));
        }
    };
    if until <= now {
        return Err(Failure::new(format!(
            "{} is not in the future: to end a rest, use `koboshi resume {}`",
            say.time(until),
            args.key
        )));
    }
    let reason = args.reason.as_deref().unwrap_or_default();
    let detail = koboshi::redact::Redactor::new().excerpt(reason, 200);
    let slot = Slot::cooldown(args.key.clone());
    let known = store.load()?.records.into_iter().find(|(known, _)| *known == slot);
    let known = known.unwrap_or_else(|| (slot, Record::Cooldown(Cooldown::default())));
    insist(store.as_ref(), vec![known], &|record| {
        if let Record::Cooldown(cooldown) = record {
            cooldown.cool(until, &detail, now);
        }
    })?;
    let words = |key: &ScopeKey| format!("{key} was told to rest until {until} by a person");
    note(store.as_ref(), std::slice::from_ref(&args.key), "cool", words, now);
    let mut out = stdout().lock();
    if args.state.format == Format::Json {
        writeln!(out, "{}", json!({"key": args.key, "until": until}))?;
    } else {
        let until = say.until(until);
        writeln!(out, "{}", say.text("cool-done", &[("key", &args.key.to_string()), ("until", &until)]))?;
    }
    Ok(Exit::Good)
}

/// Keys with a rest or a hold that a person can end. A breaker is its own process's business.
fn resting(records: &[Named], now: Timestamp) -> Vec<ScopeKey> {
    let mut keys: Vec<_> =
        rows(records, now).into_iter().filter(|row| row.node.is_none()).map(|row| row.key).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Changes records in the store. Somebody else may write at the same time: then it is done anew on top of theirs, so
/// that the person's word is the last.
fn insist(store: &dyn Store, mut known: Vec<Named>, decide: &dyn Fn(&mut Record)) -> Result<(), Failure> {
    for _ in 0..TRIES {
        known.iter_mut().for_each(|(_, record)| decide(record));
        let merged = store.merge(&known)?;
        if let Some(one) = merged.unreadable.first() {
            let slot: String = one.slot.chars().filter(|c| !c.is_control()).collect();
            return Err(Failure::new(format!(
                "{slot} was written by a newer Koboshi and was left as it is: update this one"
            )));
        }
        known = merged.beyond;
        if known.is_empty() {
            return Ok(());
        }
    }
    let keys: Vec<String> = known.iter().map(|(slot, _)| slot.key().to_string()).collect();
    Err(Failure::new(format!(
        "{} changed {TRIES} times while it was being written: try again",
        keys.join(", ")
    )))
}

/// Notes what a person did. It is done already, so a journal that cannot be written is only told.
fn note(
    store: &dyn Store,
    keys: &[ScopeKey],
    kind: &'static str,
    words: impl Fn(&ScopeKey) -> String,
    now: Timestamp,
) {
    let noted = super::node().and_then(|node| {
        let entry = |key: &ScopeKey| Entry {
            kind: Some(kind.into()),
            key: Some(key.clone()),
            ..Entry::new(now, &node, What::Operator, words(key))
        };
        Ok(store.append(&keys.iter().map(entry).collect::<Vec<_>>())?)
    });
    if let Err(Failure(why)) = noted {
        // Standard error is the last resort: if it is gone too, nobody is left to tell.
        let _ = writeln!(anstream::stderr().lock(), "koboshi: done, but not noted in the journal: {why}");
    }
}

/// A resting key that was probably meant.
fn nearest<'a>(wrong: &ScopeKey, keys: &'a [ScopeKey]) -> Option<&'a ScopeKey> {
    let wrong = wrong.to_string();
    let distance = |key: &ScopeKey| strsim::damerau_levenshtein(&key.to_string(), &wrong);
    keys.iter().min_by_key(|key| distance(key)).filter(|key| distance(key) <= wrong.len() / 3)
}

/// `2h`, `90m`, `1h30m`: a length of time that a person types.
pub(crate) fn parse_length(text: &str) -> Result<Duration, String> {
    koboshi::wait::parse_duration(text)
        .filter(|length| !length.is_zero())
        .ok_or_else(|| format!("`{text}` is no length of time: write it like 30s, 45m, 2h or 1d"))
}
