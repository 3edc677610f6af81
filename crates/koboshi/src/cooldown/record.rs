//! What is known about the rest of one key, in the form that is stored and shared.
//!
//! Two copies must merge to the same thing in any order, however often (tests check it): a higher epoch beats a lower
//! one; within an epoch the rest that ends later wins, a parked one before all, and streaks take their maximum. Every
//! clear raises the epoch, so a cleared cooldown does not come back from a node that did not know of it. A person's
//! clear raises its upper half: no number of successes elsewhere outruns it.
//!
//! The cooldown that an operator set is kept apart from what was learned, so neither hides the other.
//!
//! What a merge must not lose is a failure that came *after* the clear: see [`Cooldown::reconcile`].

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::Kind;

use super::{Cause, Class};

/// Clocks of one fleet differ by less. A cooldown that seems to have been set further in the future was set before the
/// clock was set back.
const CLOCK_SLACK: Duration = Duration::from_secs(60);
/// A person's clear counts in the upper half of the epoch.
const PERSON: u64 = 1 << 32;

/// How long a fact is of use after its end: a streak goes on with the next failure.
const ENDED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a clear is remembered: a process that was cut off for less has nothing that comes back.
const CLEARED_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Whether this was so long ago; what has no time is never past.
pub(crate) fn is_past(last: Option<Timestamp>, length: Duration, now: Timestamp) -> bool {
    last.is_some_and(|last| last.checked_add(length).is_ok_and(|end| end <= now))
}

/// How the current epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClearMark {
    /// When.
    pub at: Timestamp,
    /// A person did it.
    pub by_person: bool,
}

/// One cooldown: why, since when, until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Parked until a person resumes it; `until` says nothing then.
    #[serde(default)]
    pub parked: bool,
    /// When the rest ends.
    pub until: Timestamp,
    /// When this cooldown was set or last made longer.
    pub set: Timestamp,
    /// When the series of failures began.
    pub since: Timestamp,
    /// Why.
    pub class: Class,
    /// The provider stated how long it lasts; else its length is our own guess.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// The end was stated as an instant, so it stays where it is when the clock is changed.
    #[serde(default)]
    pub fixed: bool,
    /// Failures in a row, per class. Kept apart from the deadline: they outlive it.
    pub streaks: BTreeMap<Class, u32>,
    /// The provider's sentence, redacted and shortened.
    #[serde(default)]
    pub detail: String,
    /// The fault that set it; none for a person's decision, and where an older version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::cause::read")]
    pub cause: Option<Cause>,
}

/// What decides between two cooldowns of one epoch, in this order: parked, until, set, since, class, fixed and stated, detail, cause.
type Rank<'r> = (bool, Timestamp, Timestamp, Timestamp, Class, (bool, bool), &'r str, Option<Cause>);

impl Rest {
    /// Whether the provider said that it has no such model.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        self.cause.is_some_and(|cause| cause.kind == Kind::ModelNotFound)
    }

    /// Failures in a row of the class that set it.
    #[must_use]
    pub fn streak(&self) -> u32 {
        self.streaks.get(&self.class).copied().unwrap_or(0)
    }

    /// When it ends as seen from `now`. After a clock was set back it is not known how long the rest has lasted: it
    /// counts as over, and the probe that goes first finds out. An end that was stated as an instant stays where it is.
    #[must_use]
    pub fn ends(&self, now: Timestamp) -> Timestamp {
        let set_back =
            now < self.set && now.saturating_add(CLOCK_SLACK).is_ok_and(|latest| latest < self.set);
        if set_back && !self.fixed { now } else { self.until }
    }

    /// The same as the first of a new series. One that was parked for its streak has no more reason to be.
    fn first_of_series(self) -> Option<Self> {
        let streaks = BTreeMap::from([(self.class, 1)]);
        (!self.parked).then_some(Self { streaks, since: self.set, ..self })
    }

    /// The order that decides between two cooldowns of one epoch.
    fn rank(&self) -> Rank<'_> {
        let said = (self.fixed, self.stated);
        (self.parked, self.until, self.set, self.since, self.class, said, &self.detail, self.cause)
    }

    fn merge(&self, other: &Self) -> Self {
        let mut merged = if self.rank() >= other.rank() { self.clone() } else { other.clone() };
        for (class, streak) in self.streaks.iter().chain(&other.streaks) {
            let known = merged.streaks.entry(*class).or_insert(0);
            *known = (*known).max(*streak);
        }
        merged
    }
}

/// What an operator ordered for the breakers of a key, on every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderedMode {
    /// Refuse everything.
    Open,
    /// Let everything through, and keep counting.
    Close,
    /// Let everything through and count nothing.
    Disable,
    /// End the order before.
    Release,
    /// Close, and forget everything.
    Reset,
}

impl OrderedMode {
    /// Whether it holds until the next order; else it is done once.
    #[must_use]
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::Open | Self::Close | Self::Disable)
    }
}

/// An operator's order for the breakers of a key. Of two the later one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BreakerOrder {
    /// When it was given.
    pub at: Timestamp,
    /// What was ordered.
    pub mode: OrderedMode,
}

/// What is known about one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cooldown {
    /// Raised by every clear.
    #[serde(default)]
    pub epoch: u64,
    /// How the epoch began; none for the first.
    #[serde(default)]
    pub cleared: Option<ClearMark>,
    /// The cooldown that an operator set.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    pub by_operator: Option<Rest>,
    /// What was learned, if there were failures in this epoch.
    #[serde(default)]
    pub rest: Option<Rest>,
    /// The last order of an operator for the breakers of this key. A clear leaves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerOrder>,
}

impl Cooldown {
    /// An operator orders this for the breakers of the key. It comes after every order that is known here, whatever the clocks say.
    pub fn order_breaker(&mut self, mode: OrderedMode, now: Timestamp) -> BreakerOrder {
        let after =
            |order: BreakerOrder| order.at.saturating_add(Duration::from_millis(1)).unwrap_or(Timestamp::MAX);
        let order = BreakerOrder { at: self.breaker.map_or(now, after).max(now), mode };
        self.breaker = Some(order);
        order
    }

    /// The order for the breakers of the key that holds: a person who resumed the key later has ended it.
    #[must_use]
    pub fn breaker_order(&self) -> Option<BreakerOrder> {
        self.breaker.filter(|order| self.resumed_at().is_none_or(|resumed| resumed < order.at))
    }

    /// Forgets all failures, on every node; a person's clear also ends the rest that an operator set.
    pub fn clear(&mut self, cleared: ClearMark) {
        self.rest = None;
        self.cleared = Some(cleared);
        if cleared.by_person {
            self.by_operator = None;
            self.epoch = (self.epoch / PERSON).saturating_add(1).saturating_mul(PERSON);
        } else {
            self.epoch = self.epoch.saturating_add(1);
        }
    }

    /// Whether this record is needed no more: nothing in it holds, and it is so old that no copy could bring back what it ended. A record
    /// that was never cleared guards nothing, because copies of it ended no later.
    #[must_use]
    pub fn is_spent(&self, now: Timestamp) -> bool {
        let rests = || self.rest.iter().chain(&self.by_operator);
        let is_ordered = self.breaker_order().is_some_and(|order| order.mode.is_lasting());
        if is_ordered || rests().any(|rest| rest.parked) {
            return false;
        }
        let ends = rests().flat_map(|rest| [rest.until, rest.set]);
        let marks = self.cleared.map(|mark| mark.at).into_iter().chain(self.breaker.map(|order| order.at));
        let guards = self.epoch > 0 || self.breaker.is_some();
        is_past(ends.chain(marks).max(), if guards { CLEARED_FOR } else { ENDED_FOR }, now)
    }

    /// Both together.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let breaker = self.breaker.max(other.breaker);
        if self.epoch != other.epoch {
            let newer = if self.epoch > other.epoch { self } else { other };
            return Self { breaker, ..newer.clone() };
        }
        Self {
            breaker,
            epoch: self.epoch,
            cleared: self.cleared.max(other.cleared),
            by_operator: both(self.by_operator.as_ref(), other.by_operator.as_ref()),
            rest: both(self.rest.as_ref(), other.rest.as_ref()),
        }
    }

    /// Merges what another node knows. Returns whether this node knows something that the other does not, and must send
    /// it.
    ///
    /// A merge alone would drop a failure of ours when a node that did not know of it clears. One that came after the
    /// clear is put on top of the new epoch; after a person's clear it is the first of a new series.
    pub fn reconcile(&mut self, other: &Self) -> bool {
        let before = std::mem::take(self);
        *self = before.merge(other);
        if let (true, Some(cleared)) = (other.epoch > before.epoch, other.cleared) {
            let news = before.rest.filter(|rest| rest.set > cleared.at);
            let news = if cleared.by_person { news.and_then(Rest::first_of_series) } else { news };
            self.rest = both(self.rest.as_ref(), news.as_ref());
            let by_operator = before.by_operator.filter(|rest| !cleared.by_person || rest.set > cleared.at);
            self.by_operator = both(self.by_operator.as_ref(), by_operator.as_ref());
        }
        *self != *other
    }
}

fn both(one: Option<&Rest>, two: Option<&Rest>) -> Option<Rest> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.merge(two)),
        (one, two) => one.or(two).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn rest(set: i64, until: i64, streak: u32) -> Rest {
        Rest {
            parked: false,
            until: at(until),
            set: at(set),
            since: at(set),
            class: Class::Quota,
            stated: false,
            fixed: false,
            streaks: BTreeMap::from([(Class::Quota, streak)]),
            detail: String::new(),
            cause: None,
        }
    }

    #[test]
    fn a_cleared_cooldown_does_not_come_back_from_a_stale_copy() {
        let mut here = Cooldown { rest: Some(rest(10, 100, 2)), ..Cooldown::default() };
        let stale = here.clone();
        here.clear(ClearMark { at: at(50), by_person: false });
        assert_eq!(here.merge(&stale).rest, None);
        let mut node = stale;
        assert!(!node.reconcile(&here), "it has nothing to tell");
        assert_eq!(node.rest, None);
    }

    #[test]
    fn a_failure_after_the_success_that_cleared_survives_it() {
        let mut node = Cooldown { rest: Some(rest(60, 500, 1)), ..Cooldown::default() };
        let mut other = Cooldown::default();
        other.clear(ClearMark { at: at(50), by_person: false });
        assert!(node.reconcile(&other), "the other nodes must hear of it");
        assert_eq!((node.epoch, node.rest.as_ref().map(|rest| rest.until)), (1, Some(at(500))));
        let mut by_person = Cooldown::default();
        by_person.clear(ClearMark { at: at(50), by_person: true });
        let mut node = Cooldown { rest: Some(rest(60, 500, 4)), ..Cooldown::default() };
        assert!(node.reconcile(&by_person));
        assert_eq!(
            node.rest.as_ref().map(Rest::streak),
            Some(1),
            "after a person's clear a new series begins"
        );
        let mut parked =
            Cooldown { rest: Some(Rest { parked: true, ..rest(60, 500, 5) }), ..Cooldown::default() };
        parked.reconcile(&by_person);
        assert_eq!(parked.rest, None, "and nothing is parked for what was before");
        let mut old = Cooldown { rest: Some(rest(40, 500, 4)), ..Cooldown::default() };
        assert!(!old.reconcile(&by_person));
        assert_eq!(old.rest, None, "a person's word beats every failure before it");
    }

    #[test]
    fn a_persons_clear_is_not_outrun_by_successes_elsewhere() {
        let mut node = Cooldown { rest: Some(rest(1, 9, 1)), ..Cooldown::default() };
        let mut stored = node.clone();
        for second in 2..10 {
            node.clear(ClearMark { at: at(second), by_person: false });
        }
        node.rest = Some(rest(10, 500, 1));
        stored.clear(ClearMark { at: at(20), by_person: true });
        node.reconcile(&stored);
        assert_eq!(node.rest, None);
        let by_operator = Rest { class: Class::Operator, ..rest(30, 600, 0) };
        stored.by_operator = Some(by_operator.clone());
        stored.clear(ClearMark { at: at(40), by_person: false });
        assert_eq!(stored.by_operator, Some(by_operator), "a success leaves the operator's rest");
    }

    #[test]
    fn a_record_is_spent_when_nothing_holds_and_no_copy_could_bring_anything_back() {
        const DAY: i64 = 24 * 60 * 60;
        let ended = Cooldown { rest: Some(rest(10, 100, 3)), ..Cooldown::default() };
        assert!(!ended.is_spent(at(100 + DAY - 1)) && ended.is_spent(at(100 + DAY)));
        let mut cleared = ended;
        cleared.clear(ClearMark { at: at(50), by_person: false });
        assert!(!cleared.is_spent(at(100 + DAY)), "a copy may still have the rest that it ended");
        assert!(!cleared.is_spent(at(49 + 30 * DAY)) && cleared.is_spent(at(50 + 30 * DAY)));
        let parked = Cooldown { rest: Some(Rest { parked: true, ..rest(1, 2, 1) }), ..Cooldown::default() };
        assert!(!parked.is_spent(at(10_000 * DAY)));
        let mut ordered = Cooldown::default();
        ordered.order_breaker(OrderedMode::Open, at(1));
        assert!(!ordered.is_spent(at(10_000 * DAY)));
        ordered.order_breaker(OrderedMode::Release, at(2));
        assert!(!ordered.is_spent(at(29 * DAY)) && ordered.is_spent(at(31 * DAY)));
        assert!(!Cooldown::default().is_spent(at(10_000 * DAY)), "nothing says how old it is");
        assert!(!Cooldown { rest: Some(rest(1, 9, 1)), ..Cooldown::default() }.is_spent(at(5)));
    }

    #[test]
    fn a_clock_set_back_does_not_stretch_a_guess_but_leaves_a_stated_instant() {
        let guess = rest(1000, 1060, 1);
        assert_eq!(guess.ends(at(1010)), at(1060));
        assert_eq!(guess.ends(at(950)), at(1060), "clocks of a fleet differ a little");
        assert_eq!(guess.ends(at(100)), at(100), "it is over, not stretched by a quarter of an hour");
        let stated = Rest { fixed: true, ..rest(1000, 1060, 1) };
        assert_eq!(stated.ends(at(100)), at(1060));
    }

    #[test]
    fn the_last_order_for_a_breaker_holds_until_a_person_resumes() {
        let mut here = Cooldown::default();
        let open = here.order_breaker(OrderedMode::Open, at(100));
        let mut there = here.clone();
        let release = there.order_breaker(OrderedMode::Release, at(20));
        assert!(release.at > open.at, "its clock is behind");
        assert_eq!(here.merge(&there).breaker_order(), Some(release));
        here.clear(ClearMark { at: at(150), by_person: false });
        assert_eq!(here.breaker_order(), Some(open), "a success ends no order");
        here.clear(ClearMark { at: at(200), by_person: true });
        assert_eq!(here.breaker_order(), None);
    }

    fn any_rest() -> impl Strategy<Value = Rest> {
        let streaks = proptest::collection::btree_map(0..Class::ALL.len(), 0_u32..4, 0..3);
        let cause = proptest::option::of(0..Class::ALL.len());
        let sentence = (0_u8..2, cause);
        let ends = (any::<bool>(), any::<bool>());
        (any::<bool>(), 0_i64..4, 0_i64..4, 0..Class::ALL.len(), ends, streaks, sentence).prop_map(
            |(parked, until, set, class, (fixed, stated), streaks, (detail, cause))| Rest {
                stated,
                parked,
                until: at(until),
                set: at(set),
                since: at(set),
                class: Class::ALL[class],
                fixed,
                streaks: streaks.into_iter().map(|(class, n)| (Class::ALL[class], n)).collect(),
                detail: detail.to_string(),
                cause: cause.and_then(|class| Cause::of_class(Class::ALL[class])),
            },
        )
    }

    pub(crate) fn any_cooldown() -> impl Strategy<Value = Cooldown> {
        let cleared = proptest::option::of((0_i64..4, any::<bool>()));
        let rests = (proptest::option::of(any_rest()), proptest::option::of(any_rest()));
        let breaker = proptest::option::of((0_i64..4, any::<bool>()));
        (0_u64..3, cleared, rests, breaker).prop_map(|(epoch, cleared, (by_operator, rest), breaker)| {
            Cooldown {
                breaker: breaker.map(|(second, open)| BreakerOrder {
                    at: at(second),
                    mode: if open { OrderedMode::Open } else { OrderedMode::Reset },
                }),
                epoch,
                cleared: cleared.map(|(second, by_person)| ClearMark { at: at(second), by_person }),
                by_operator,
                rest,
            }
        })
    }

    proptest! {
        #[test]
        fn merging_is_the_same_in_any_order(a in any_cooldown(), b in any_cooldown(), c in any_cooldown()) {
            prop_assert_eq!(a.merge(&b), b.merge(&a));
            prop_assert_eq!(a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
            prop_assert_eq!(&a.merge(&a), &a);
        }

        #[test]
        fn nodes_that_tell_each_other_agree(a in any_cooldown(), b in any_cooldown()) {
            let (mut one, mut two) = (a, b);
            for _ in 0..3 {
                one.reconcile(&two);
                two.reconcile(&one);
            }
            prop_assert_eq!(&one, &two);
            prop_assert!(!one.reconcile(&two), "and neither node has anything left to send");
        }

        #[test]
        fn what_is_stored_is_read_back(a in any_cooldown()) {
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Cooldown>(&text).unwrap(), a);
        }
    }
}
