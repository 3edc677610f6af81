//! `koboshi status`: what is in cooldown, parked or open, since when, until when, why.

use std::io::{self, Write};

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use koboshi::breaker::Why;
use koboshi::cooldown::Class;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::notice::ChannelState;
use koboshi_gateway::{Meaning, Presence};
use koboshi_store::{Row, RowState};
use serde_json::{Value, json};

use super::CommandContext;
use super::args::StatusArgs;
use super::asked_store;
use super::person::write_near;
use super::say::{Say, plain};
use super::source::{Source, Status};
use crate::args::Format;
use crate::supervise::{lines, rows};
use crate::{Exit, Failure, settings};

/// How many gateways one line names.
const MAX_NAMED: usize = 20;

const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

pub(crate) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let CommandContext { source, say } = &CommandContext::open(&args.state)?;
    let now = say.now.timestamp();
    let mut status = source.status(now)?;
    if let Some(key) = &args.key {
        let known = source.known(now)?;
        let keys = match known.meaning(key) {
            Meaning::Keys(keys) => known.above(&keys),
            // Without a config, an agent that never failed is as unknown as one that does not exist: nothing is held.
            Meaning::Unknown(near)
                if (key.level() != ScopeLevel::Agent || source.names_agents())
                    && !status.rows.iter().any(|row| row.key == *key) =>
            {
                return unknown(say, args.state.format, key, &near);
            }
            _ => vec![key.clone()],
        };
        status.rows.retain(|row| keys.contains(&row.key));
        let name = key.to_string();
        status.unreadable.retain(|one| one.slot.ends_with(&name));
    }
    let agents = agents(args, source);
    match args.state.format {
        Format::Text => {
            let lines = agents.map(|agents| lines(say, &agents)).unwrap_or_default();
            lines.iter().try_for_each(|line| writeln!(stdout().lock(), "{}", plain(line)))?;
            let is_named = asked_store(args.state.store.as_deref()).is_some();
            text(source, say, (args.key.as_ref(), is_named), &status)?;
        }
        Format::Json => {
            let unreadable = status.unreadable.iter();
            let store = status.kept_in.as_deref().unwrap_or(source.place());
            let mut document = json!({
                "store": store.strip_prefix("the store file ").unwrap_or(store),
                "gateway": matches!(source, Source::Remote(_)).then(|| source.place()),
                "exists": source.exists(),
                "now": now,
                "rows": status.rows,
                "unreadable": unreadable.map(|one| json!({"slot": one.slot, "why": one.why})).collect::<Vec<Value>>(),
                "gateways": status.gateways,
                "supervisors": status.supervisors,
                "channels": status.channels,
                "trouble": status.trouble,
            });
            if let (Some(agents), Value::Object(fields)) = (agents, &mut document) {
                fields.insert("agents".to_owned(), agents);
            }
            let mut out = stdout().lock();
            serde_json::to_writer_pretty(&mut out, &document).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    // An unreadable record may well be a cooldown.
    let stands = status.rows.iter().any(|row| row.stops) || !status.unreadable.is_empty();
    Ok(if stands { Exit::Found } else { Exit::Good })
}

/// The agents of the supervisor that uses this store, or of the gateway's process, if there is one.
fn agents(args: &StatusArgs, source: &Source) -> Option<Value> {
    if args.key.is_some() {
        return None;
    }
    if let Source::Remote(gateway) = source {
        return gateway.agents();
    }
    let config = settings::load_without_keys(args.state.config.file.as_deref(), &args.state.lang).ok()?;
    rows(asked_store(args.state.store.as_deref()).as_deref(), &config)
}

/// No target has this key.
fn unknown(say: &Say, format: Format, key: &ScopeKey, near: &[String]) -> Result<Exit, Failure> {
    if format == Format::Json {
        writeln!(stdout().lock(), "{}", json!({"error": "unknown_key", "key": key, "near": near}))?;
    } else {
        let mut out = stderr().lock();
        writeln!(out, "koboshi: {}", say.unknown_key(key))?;
        write_near(&mut out, say, near)?;
    }
    Ok(Exit::Refused)
}

fn text(
    source: &Source,
    say: &Say,
    (key, is_named): (Option<&ScopeKey>, bool),
    status: &Status,
) -> io::Result<()> {
    let mut out = stdout().lock();
    let Status { rows, unreadable, gateways, channels, kept_in, trouble, .. } = status;
    if !source.exists() {
        // A place that was named may be misspelt: all may be well elsewhere, or not.
        let words = if is_named {
            format!("{WARN}!{WARN:#} {}", say.text("status-not-there", &[("place", source.place())]))
        } else {
            format!("{GOOD}✓{GOOD:#} {}", say.text("status-nothing-known", &[("place", source.place())]))
        };
        writeln!(out, "{words}")?;
        return Ok(());
    }
    if rows.is_empty() && unreadable.is_empty() {
        let words = match key {
            Some(key) => say.text("status-key-clear", &[("key", &key.to_string())]),
            None => clear(say, source, gateways),
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
    if let Some(why) = trouble {
        writeln!(out, "{WARN}!{WARN:#} {}", say.text("status-trouble", &[("why", &plain(why))]))?;
    }
    // A channel that works needs no line.
    for one in channels.iter().filter(|one| key.is_none() && (one.trouble.is_some() || one.dropped > 0)) {
        channel(&mut out, say, one)?;
    }
    if let Some(differing) = configs(gateways, say.now.timestamp()).filter(|_| key.is_none()) {
        let words = say.text("status-configs-differ", &[("gateways", &plain(&differing))]);
        writeln!(out, "{WARN}!{WARN:#} {words}")?;
    }
    let read = match kept_in {
        Some(store) => {
            let store = plain(&say.store_place(store));
            say.text("status-remote", &[("place", source.place()), ("store", &store)])
        }
        None => {
            let mut said = vec![say.text("status-store", &[("place", &say.store_place(source.place()))])];
            said.extend(age(say, gateways));
            say.sentences(&said)
        }
    };
    writeln!(out, "\n{QUIET}{read}{QUIET:#}")
}

/// A channel of notices that does not get them.
fn channel(out: &mut impl Write, say: &Say, state: &ChannelState) -> io::Result<()> {
    let name = plain(&state.channel);
    let waiting = say.text("status-channel", &[("channel", &name), ("count", &state.waiting.to_string())]);
    writeln!(out, "{WARN}! {waiting}{WARN:#}")?;
    let last = match state.last_sent {
        Some(at) => say.text("status-channel-last", &[("time", &say.time(at))]),
        None => say.text("status-channel-never", &[]),
    };
    let lost = (state.dropped > 0)
        .then(|| say.text("status-channel-lost", &[("count", &state.dropped.to_string())]));
    let next = state.next.map(|next| say.text("status-channel-next", &[("time", &say.time(next))]));
    let said: Vec<String> = std::iter::once(last).chain(lost).chain(next).collect();
    writeln!(out, "    {}", said.join(" · "))?;
    match &state.trouble {
        Some(why) => writeln!(out, "    {QUIET}│ {}{QUIET:#}", plain(why)),
        None => Ok(()),
    }
}

/// The gateways that run, each with the digits of its config, where those differ.
fn configs(gateways: &[Presence], now: Timestamp) -> Option<String> {
    let running = gateways.iter().filter(|gateway| gateway.is_running(now));
    let named: Vec<_> = running.filter_map(|one| Some((one.config.as_deref()?, &one.address))).collect();
    let differ = named.iter().any(|(config, _)| named.first().is_some_and(|(first, _)| first != config));
    let shown = named.iter().take(MAX_NAMED).map(|(config, address)| format!("{address} ({config})"));
    differ.then(|| shown.collect::<Vec<_>>().join(", "))
}

/// What is said where nothing is known against any target. That targets are available would promise an answer that no process gives while no
/// gateway runs.
/// Of a store no more can be said than that it has no record: a gateway keeps some things to itself.
fn clear(say: &Say, source: &Source, gateways: &[Presence]) -> String {
    let now = say.now.timestamp();
    let is_asked = matches!(source, Source::Remote(_));
    let running = gateways.iter().rfind(|gateway| gateway.is_running(now));
    match (running, gateways.last()) {
        (Some(running), _) if !is_asked => {
            say.text("status-clear-store", &[("address", &plain(&running.address))])
        }
        (None, Some(last)) if !is_asked => {
            say.text(if last.stopped { "status-clear-stopped" } else { "status-clear-silent" }, &[])
        }
        _ => say.text("status-clear", &[]),
    }
}

/// The age of the data: when the gateways that write it last reported.
fn age(say: &Say, gateways: &[Presence]) -> Vec<String> {
    let now = say.now.timestamp();
    let running: Vec<String> = gateways
        .iter()
        .filter(|gateway| gateway.is_running(now))
        .map(|gateway| {
            let (address, ago) = (plain(&gateway.address), say.ago(gateway.at));
            say.text("status-gateway-running", &[("address", &address), ("ago", &ago)])
        })
        .collect();
    if !running.is_empty() {
        return running;
    }
    vec![match gateways.last() {
        Some(last) => {
            let id = if last.stopped { "status-gateway-stopped" } else { "status-gateway-silent" };
            say.text(id, &[("address", &plain(&last.address)), ("time", &say.time(last.at))])
        }
        None => say.text("status-no-gateway", &[]),
    }]
}

fn one(out: &mut impl Write, say: &Say, row: &Row) -> io::Result<()> {
    let (mark, style) = match row.state {
        RowState::Parked | RowState::ForcedOpen => ("✗", BAD),
        _ if row.stops => ("●", WARN),
        _ => ("○", GOOD),
    };
    let state = say.text(&format!("state-{}", row.state.name()), &[]);
    let until = match (row.state, row.until) {
        (RowState::Due, _) | (_, None) => String::new(),
        (_, Some(until)) => format!("  {}", say.left("status-until", until)),
    };
    writeln!(out, "{style}{mark} {state}{style:#}  {STRONG}{}{STRONG:#}{until}", row.key)?;
    let mut why = Vec::new();
    match row.state {
        RowState::Probing => why.push(say.text("status-probing", &[])),
        // Agents use accounts too, and send no request that could be seen.
        RowState::Due => {
            let is_of_run = matches!(row.key.level(), ScopeLevel::Account | ScopeLevel::Agent);
            why.push(say.text(if is_of_run { "status-due-run" } else { "status-due" }, &[]));
        }
        _ => {}
    }
    // The gateway keeps a provider that is down out of use for a few minutes at most: its own time may be later.
    let is_down =
        row.key.level() == ScopeLevel::Target && row.reason.as_deref() == Some(Class::Overloaded.name());
    if row.state == RowState::Cooling && is_down {
        why.push(say.text("status-asks-again", &[]));
    }
    if let Some(reason) = &row.reason {
        let family = if row.state == RowState::Held { "limit" } else { "reason" };
        let named = row.finer.as_deref().unwrap_or(reason);
        why.push(say.text(&format!("{family}-{named}"), &[]));
    }
    why.extend(row.why.map(|why| of_breaker(say, why)));
    if row.reason.is_some() && row.streak > 0 {
        why.push(say.text("status-streak", &[("count", &row.streak.to_string())]));
    } else if row.streak > 1 {
        why.push(say.text("status-openings", &[("count", &row.streak.to_string())]));
    }
    if let Some(since) = row.since {
        why.push(say.text("status-since", &[("time", &say.time(since))]));
    }
    if let Some(node) = &row.node {
        why.push(say.text("status-node", &[("node", node.name())]));
    }
    if row.state == RowState::Open {
        why.push(say.text("status-open-probes", &[]));
    }
    if !why.is_empty() {
        writeln!(out, "    {}", why.join(" · "))?;
    }
    if !row.detail.is_empty() {
        writeln!(out, "    {QUIET}│ {}{QUIET:#}", plain(&row.detail))?;
    }
    let next = match row.state {
        RowState::Parked => "status-resume",
        RowState::ForcedOpen => "status-release",
        _ => return Ok(()),
    };
    writeln!(out, "    {}", say.text(next, &[("command", &say.resume_command(&row.key))]))
}

/// Why a breaker is in its mode.
fn of_breaker(say: &Say, why: Why) -> String {
    let (failed, calls) = match why {
        Why::Consecutive { failures } => (failures, failures),
        Why::FailureRate { failed, calls } => (failed, calls),
        Why::SlowRate { slow, calls } => (slow, calls),
        _ => (0, 0),
    };
    let (failed, calls) = (failed.to_string(), calls.to_string());
    say.text(&format!("breaker-{}", why.name()), &[("failed", &failed), ("calls", &calls)])
}
