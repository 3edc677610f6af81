//! The lines of the three lists, in the reader's language: what stands in each column, and what is said of the chosen one.

use std::time::Duration;

use jiff::Timestamp;
use koboshi_store::{Entry, RowState};
use serde_json::Value;

use super::super::say::{Say, plain};
use super::read::{Snapshot, Target};
use crate::supervise::lines as lines_of_agents;

const DAY: u64 = 24 * 60 * 60;
const HOUR: u64 = 60 * 60;

/// How bad a line is: its mark says it where a terminal has no colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Quiet,
    Warn,
    Bad,
}

impl Tone {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Quiet => "·",
            Self::Warn => "●",
            Self::Bad => "✗",
        }
    }
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) tone: Tone,
    pub(super) cells: Vec<String>,
    /// What is said of it below the lists.
    pub(super) more: Vec<String>,
}

/// Targets in the order in which someone who was woken wants them: what needs a person, what rests (the first to come back first), the rest.
pub(super) fn sorted(targets: &[Target]) -> Vec<&Target> {
    let mut targets: Vec<&Target> = targets.iter().collect();
    let order = |target: &&Target| {
        let is_unrouted = target.routes.is_empty();
        let rank = match target.state {
            Some(RowState::Parked | RowState::ForcedOpen) => 0,
            Some(state) if state.stops() => 1,
            Some(_) => 2,
            None => 3,
        };
        let end = target.until.map_or(i64::MAX, Timestamp::as_second);
        (rank, is_unrouted, end, target.name.clone())
    };
    targets.sort_by_cached_key(order);
    targets
}

pub(super) fn targets(say: &Say, snapshot: &Snapshot, now: Timestamp) -> Vec<Line> {
    sorted(&snapshot.targets).into_iter().map(|target| of_target(say, target, snapshot, now)).collect()
}

fn of_target(say: &Say, target: &Target, snapshot: &Snapshot, now: Timestamp) -> Line {
    let tone = match target.state {
        None => Tone::Good,
        Some(RowState::Parked | RowState::ForcedOpen) => Tone::Bad,
        Some(state) if state.stops() => Tone::Warn,
        Some(_) => Tone::Quiet,
    };
    let state = match target.state {
        Some(state) => say.text(&format!("state-{}", state.name()), &[]),
        // Of a store no more can be said than that it has no record.
        None if !snapshot.is_gateway => say.text("top-no-record", &[]),
        None => say.text("top-available", &[]),
    };
    let left = target.until.filter(|_| target.is_down()).map(|until| left(say, until, now));
    let routes: Vec<String> = target.routes.iter().map(|route| plain(route)).collect();
    let why = target.reason.as_ref().map(|reason| {
        let family = if target.state == Some(RowState::Held) { "limit" } else { "reason" };
        say.text(&format!("{family}-{reason}"), &[])
    });
    let cells = vec![
        plain(&target.name),
        state,
        left.unwrap_or_default(),
        routes.join(", "),
        why.clone().unwrap_or_default(),
    ];
    Line { tone, cells, more: more_of_target(say, target, why) }
}

fn more_of_target(say: &Say, target: &Target, why: Option<String>) -> Vec<String> {
    let mut first = vec![plain(target.key.as_deref().unwrap_or(&target.name))];
    first.extend(why);
    first.extend(target.since.map(|since| say.text("status-since", &[("time", &say.short_time(since))])));
    let until = target.until.filter(|_| target.is_down());
    first.extend(until.map(|until| say.text("top-until", &[("time", &say.short_time(until))])));
    let mut more = vec![first.join(" · ")];
    if !target.said.is_empty() {
        more.push(format!("│ {}", plain(&target.said)));
    }
    let key = target.key.as_ref().filter(|_| target.is_down()).and_then(|key| key.parse().ok());
    if let Some(key) = key {
        more.push(say.text("top-resume", &[("command", &say.resume_command(&key))]));
    }
    more
}

pub(super) fn faults(say: &Say, snapshot: &Snapshot, now: Timestamp) -> Vec<Line> {
    snapshot.faults.iter().map(|entry| of_fault(say, entry, now)).collect()
}

fn of_fault(say: &Say, entry: &Entry, now: Timestamp) -> Line {
    let subject = entry.agent.clone().or_else(|| entry.key.as_ref().map(ToString::to_string));
    let subject = plain(&subject.unwrap_or_default());
    let kind = plain(entry.kind.as_deref().unwrap_or_default());
    let ago = short(say, Duration::try_from(now.duration_since(entry.at)).unwrap_or_default());
    let (name, text) = (subject.strip_prefix("target:").unwrap_or(&subject), plain(&entry.text));
    let name = name.split_once('#').map_or(name, |(name, _)| name).to_owned();
    // The column before it has the name already.
    let said = text.strip_prefix(&name).and_then(|said| said.strip_prefix(": ")).unwrap_or(&text).to_owned();
    let head = [say.short_time(entry.at), kind.clone(), subject.clone(), entry.node.to_string()];
    let head = head.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let ago = say.text("top-ago", &[("length", &ago)]);
    Line { tone: Tone::Quiet, cells: vec![ago, kind, name, said], more: vec![head, text] }
}

pub(super) fn agents(say: &Say, snapshot: &Snapshot, now: Timestamp) -> Vec<Line> {
    let mut lines: Vec<Line> = snapshot.agents.iter().map(|agent| of_agent(say, agent, now)).collect();
    lines.sort_by_key(|line| match line.tone {
        Tone::Bad => 0,
        Tone::Warn => 1,
        Tone::Quiet => 2,
        Tone::Good => 3,
    });
    lines
}

fn of_agent(say: &Say, agent: &Value, now: Timestamp) -> Line {
    let text = |name: &str| agent.get(name).and_then(Value::as_str).unwrap_or_default();
    let state = text("state");
    let tone = match state {
        "running" => Tone::Good,
        "parked" | "aside" => Tone::Bad,
        "held" => Tone::Warn,
        _ => Tone::Quiet,
    };
    let since: Option<Timestamp> = text("started").parse().ok();
    let length = since.map(|since| Duration::try_from(now.duration_since(since)).unwrap_or_default());
    let length = length.map(|length| short(say, length)).unwrap_or_default();
    let said: Vec<String> =
        lines_of_agents(say, &Value::Array(vec![agent.clone()])).iter().map(|line| plain(line)).collect();
    let last = said.get(1).map(|line| line.trim().to_owned()).unwrap_or_default();
    let words = [say.text(&format!("agent-{state}"), &[]), plain(text("held_by"))];
    let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    Line { tone, cells: vec![plain(text("agent")), words, length, last], more: said }
}

/// How long it takes until then. What is over is tried by the next request.
fn left(say: &Say, until: Timestamp, now: Timestamp) -> String {
    match Duration::try_from(until.duration_since(now)) {
        Ok(left) if !left.is_zero() => short(say, left),
        _ => String::new(),
    }
}

/// A length in its two largest units: a column has no room for more.
pub(super) fn short(say: &Say, length: Duration) -> String {
    say.countdown(shortened(length))
}

fn shortened(length: Duration) -> Duration {
    let seconds = length.as_secs();
    let unit = match seconds {
        DAY.. => HOUR,
        HOUR.. => 60,
        _ => 1,
    };
    Duration::from_secs(seconds - seconds % unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, state: Option<RowState>, until: Option<i64>, routes: &[&str]) -> Target {
        Target {
            name: name.to_owned(),
            state,
            until: until.map(|second| Timestamp::from_second(second).unwrap()),
            routes: routes.iter().map(ToString::to_string).collect(),
            ..Target::default()
        }
    }

    #[test]
    fn what_needs_a_person_comes_first_then_what_is_back_soonest() {
        let targets = [
            target("well", None, None, &["a"]),
            target("late", Some(RowState::Cooling), Some(900), &["a"]),
            target("parked", Some(RowState::Parked), None, &["a"]),
            target("soon", Some(RowState::Open), Some(30), &["a"]),
            target("unrouted", Some(RowState::Cooling), Some(10), &[]),
            target("probing", Some(RowState::Probing), None, &["a"]),
            target("also well", None, None, &["a"]),
        ];
        let names: Vec<&str> = sorted(&targets).iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["parked", "soon", "late", "unrouted", "probing", "also well", "well"]);
    }

    #[test]
    fn a_length_keeps_its_two_largest_units() {
        let of = |seconds| shortened(Duration::from_secs(seconds)).as_secs();
        assert_eq!([of(59), of(125), of(3_725), of(90_125)], [59, 125, 3_720, 90_000]);
    }
}
