//! What the tests of stores share: instants and records.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use koboshi::breaker::{BreakerSnapshot, Mode};
use koboshi::cooldown::{Class, Cooldown, Rest};
use koboshi::gate::{Holds, Limit};
use koboshi::key::ScopeKey;
use koboshi_store::{Clock, Entry, EntryKind, Node, Slot, SystemClock};

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use koboshi_testkit::{DEADLINE, pause, until};

/// Tells a child process when the time of its parent begins.
pub(crate) const BEGINNING: &str = "KOBOSHI_TEST_BEGINNING";

/// The second where the time of the tests begins: some hours ago, because facts that ended long ago are forgotten.
pub(crate) fn beginning() -> i64 {
    static BEGINNING_OF_ALL: LazyLock<i64> = LazyLock::new(|| {
        let of_parent = std::env::var(BEGINNING).ok().and_then(|text| text.parse().ok());
        of_parent.unwrap_or_else(|| SystemClock.wall().as_second() - 20_000)
    });
    *BEGINNING_OF_ALL
}

/// This many seconds after the time of the tests began.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(beginning() + second).unwrap()
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
        stated: true,
        fixed: true,
        streaks: BTreeMap::from([(Class::Quota, streak)]),
        detail: "used up".to_owned(),
        cause: None,
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
    BreakerSnapshot {
        at: at(second),
        mode,
        since: at(second),
        until: None,
        openings: 0,
        why: None,
        is_local: false,
    }
}

pub(crate) fn entry(second: i64, what: EntryKind, text: &str) -> Entry {
    Entry::new(at(second), &node("n1"), what, text)
}
