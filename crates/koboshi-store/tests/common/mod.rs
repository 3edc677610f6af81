//! What the tests of stores share: instants, records, and waiting for something real with a deadline.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use koboshi::breaker::{BreakerSnapshot, Mode};
use koboshi::cooldown::{Class, Cooldown, Rest};
use koboshi::gate::{Holds, Limit};
use koboshi::key::ScopeKey;
use koboshi_store::{Entry, Node, Slot, What};

pub(crate) const NOON: i64 = 1_794_744_000;

/// So many seconds after a noon in November 2026.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(NOON + second).unwrap()
}

pub(crate) fn key(text: &str) -> ScopeKey {
    text.parse().unwrap()
}

pub(crate) fn slot(text: &str) -> Slot {
    text.parse().unwrap()
}

pub(crate) fn node(name: &str) -> Node {
    name.parse().unwrap()
}

pub(crate) fn rest(set: i64, until: i64, streak: u32) -> Rest {
    Rest {
        parked: false,
        until: at(until),
        set: at(set),
        since: at(set),
        class: Class::Quota,
        fixed: true,
        streaks: BTreeMap::from([(Class::Quota, streak)]),
        detail: "used up".to_owned(),
    }
}

pub(crate) fn resting(set: i64, until: i64) -> Cooldown {
    Cooldown { rest: Some(rest(set, until, 1)), ..Cooldown::default() }
}

pub(crate) fn held(limit: Limit, until: i64) -> Holds {
    let mut holds = Holds::default();
    holds.hold(limit, at(until));
    holds
}

pub(crate) fn snapshot(second: i64, mode: Mode) -> BreakerSnapshot {
    BreakerSnapshot { at: at(second), mode, since: at(second), until: None, openings: 0 }
}

pub(crate) fn entry(second: i64, what: What, text: &str) -> Entry {
    Entry::new(at(second), &node("n1"), what, text)
}

/// Waits for something that another thread, process or server does; says what it was if it does not come.
#[expect(clippy::disallowed_methods, reason = "real processes have no virtual time: polled with a deadline")]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets others have the processor for a moment.
#[expect(clippy::disallowed_methods, reason = "nothing depends on how long it is")]
pub(crate) fn breathe() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Sends a signal such as `-STOP` to a child.
pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Generous: a busy machine must not fail a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
