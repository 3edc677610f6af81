//! How requests come back to a key when its rest is over: one goes first, the others follow one by one.
//!
//! The one that goes first finds out whether the key works again, so that the others need not. In a fleet it needs a lease that only one
//! node has; the caller says whether its node has it. After a success every node lets its own requests follow at a pace that
//! depends on how many nodes there are: together they keep to one in each stagger, without a word between them.
//!
//! A request that follows is given a time and keeps it, whether it comes or not: no queue has to be kept. The time is monotonic; the ends of
//! rests, which are wall time, are read by the caller.

use std::time::Duration;

use super::CooldownPolicy;
use crate::gate::GatePolicy;
use crate::time::Moment;

/// At least for this long requests follow one by one: those that waited for the end of the rest come now.
const MIN_RELEASE: Duration = Duration::from_secs(1);

/// How requests follow the one that went first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReopeningPolicy {
    /// One request of the whole fleet in each such stretch.
    pub stagger: Duration,
    /// After this long there is no limit.
    pub release: Duration,
    /// If nothing is known of the first request after this long, another one may go.
    pub max_probe_time: Duration,
}

impl Default for ReopeningPolicy {
    fn default() -> Self {
        let CooldownPolicy { release, max_probe_time, .. } = CooldownPolicy::default();
        Self { stagger: GatePolicy::default().stagger, release, max_probe_time }
    }
}

/// The place of a node among those that share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetPlace {
    /// Its number, from zero.
    pub rank: u32,
    /// How many there are, itself included.
    pub nodes: u32,
}

impl FleetPlace {
    /// A node that knows of no other.
    pub const ALONE: Self = Self { rank: 0, nodes: 1 };

    /// The time between two requests of this node, and the time until its first one.
    fn pace(self, stagger: Duration) -> (Duration, Duration) {
        let nodes = self.nodes.max(1);
        (stagger.saturating_mul(nodes), stagger.saturating_mul((self.rank % nodes).saturating_add(1)))
    }
}

/// What is known of a key's rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestPhase {
    /// It is not over.
    Resting,
    /// It is over, and no request has succeeded since.
    Due,
    /// A request has succeeded since, or an operator ended the rest.
    Over,
}

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may go at once.
    Free,
    /// It goes first, alone.
    First,
    /// It may go at this time, which is its own.
    At(Moment),
    /// Another request goes first: ask again soon.
    Wait,
    /// Its time would be after the latest that it wants.
    TooLate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Resting,
    /// When the first request went out, if it did.
    Due(Option<Moment>),
    /// When the next one may follow, until when they follow one by one at least, and when there is no limit in any case.
    Following {
        next: Moment,
        least: Moment,
        most: Moment,
    },
    Open,
}

/// One key that rests, or that is about to be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reopening {
    phase: Phase,
}

impl Reopening {
    /// A key whose rest began.
    #[must_use]
    pub const fn resting() -> Self {
        Self { phase: Phase::Resting }
    }

    /// Takes in what is known of the rest now. To be called before anything is asked.
    pub fn observe(&mut self, known: RestPhase, policy: &ReopeningPolicy, place: FleetPlace, now: Moment) {
        self.phase = match (known, self.phase) {
            (RestPhase::Resting, _) => Phase::Resting,
            (RestPhase::Due, Phase::Due(out)) => {
                Phase::Due(out.filter(|out| now.since(*out) < policy.max_probe_time))
            }
            (RestPhase::Due, _) => Phase::Due(None),
            (RestPhase::Over, Phase::Resting | Phase::Due(_)) => {
                let (_, first) = place.pace(policy.stagger);
                let least = now.after(MIN_RELEASE.min(policy.release));
                Phase::Following { next: now.after(first), least, most: now.after(policy.release) }
            }
            (RestPhase::Over, Phase::Following { next, least, most })
                if now >= most || now >= least.max(next) =>
            {
                Phase::Open
            }
            (RestPhase::Over, known) => known,
        };
    }

    /// Whether a request would go at once, as one of many.
    #[must_use]
    pub fn is_open(&self, now: Moment) -> bool {
        match self.phase {
            Phase::Resting | Phase::Open => true,
            Phase::Due(_) => false,
            Phase::Following { next, .. } => next <= now,
        }
    }

    /// Whether nothing keeps requests back any more: it can be forgotten.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether a request must go first.
    #[must_use]
    pub fn is_due(&self) -> bool {
        matches!(self.phase, Phase::Due(_))
    }

    /// When the request that goes first went out, if one is under way.
    #[must_use]
    pub const fn first_since(&self) -> Option<Moment> {
        match self.phase {
            Phase::Due(out) => out,
            _ => None,
        }
    }

    /// What [`Reopening::take`] would answer. Nothing is changed.
    #[must_use]
    pub fn ask(&self, may_be_first: bool, latest: Moment, now: Moment) -> Turn {
        match self.phase {
            // A cooldown refuses by itself; this is about what comes after it.
            Phase::Resting | Phase::Open => Turn::Free,
            Phase::Due(None) if may_be_first => Turn::First,
            Phase::Due(_) => Turn::Wait,
            Phase::Following { next, .. } if next > latest => Turn::TooLate,
            Phase::Following { next, .. } if next > now => Turn::At(next),
            Phase::Following { .. } => Turn::Free,
        }
    }

    /// Takes what it may do: the right to go first, or the next time.
    pub fn take(
        &mut self,
        may_be_first: bool,
        latest: Moment,
        policy: &ReopeningPolicy,
        place: FleetPlace,
        now: Moment,
    ) -> Turn {
        let turn = self.ask(may_be_first, latest, now);
        match (&mut self.phase, turn) {
            (Phase::Due(out), Turn::First) => *out = Some(now),
            (Phase::Following { next, .. }, Turn::Free | Turn::At(_)) => {
                let (pace, _) = place.pace(policy.stagger);
                *next = (*next).max(now).after(pace);
            }
            _ => {}
        }
        turn
    }

    /// The request that went first ended without finding out: the next one may go.
    pub fn give_up_first(&mut self) {
        if let Phase::Due(out) = &mut self.phase {
            *out = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: ReopeningPolicy = ReopeningPolicy {
        stagger: Duration::from_millis(50),
        release: Duration::from_secs(60),
        max_probe_time: Duration::from_secs(10),
    };

    fn at(millis: u64) -> Moment {
        Moment::START.after(Duration::from_millis(millis))
    }

    fn due() -> Reopening {
        let mut key = Reopening::resting();
        key.observe(RestPhase::Due, &POLICY, FleetPlace::ALONE, at(0));
        key
    }

    fn take(key: &mut Reopening, may_be_first: bool, now: u64) -> Turn {
        key.take(may_be_first, at(now + 3000), &POLICY, FleetPlace::ALONE, at(now))
    }

    #[test]
    fn one_goes_first_and_only_where_the_node_may() {
        let mut key = due();
        assert_eq!(take(&mut key, false, 1), Turn::Wait, "another node has the right");
        assert_eq!(take(&mut key, true, 2), Turn::First);
        assert_eq!(take(&mut key, true, 3), Turn::Wait, "one is out");
        key.give_up_first();
        assert_eq!(take(&mut key, true, 4), Turn::First, "that one found out nothing");
    }

    #[test]
    fn a_first_request_that_never_ends_does_not_hold_the_others_for_ever() {
        let mut key = due();
        assert_eq!(take(&mut key, true, 0), Turn::First);
        key.observe(RestPhase::Due, &POLICY, FleetPlace::ALONE, at(9_999));
        assert_eq!(take(&mut key, true, 9_999), Turn::Wait);
        key.observe(RestPhase::Due, &POLICY, FleetPlace::ALONE, at(10_000));
        assert_eq!(take(&mut key, true, 10_000), Turn::First);
    }

    #[test]
    fn after_a_failure_the_key_rests_again_and_another_one_goes_first_later() {
        let mut key = due();
        assert_eq!(take(&mut key, true, 0), Turn::First);
        key.observe(RestPhase::Resting, &POLICY, FleetPlace::ALONE, at(1));
        assert!(!key.is_due() && !key.is_over());
        key.observe(RestPhase::Due, &POLICY, FleetPlace::ALONE, at(500));
        assert_eq!(take(&mut key, true, 500), Turn::First);
    }

    #[test]
    fn the_nodes_of_a_fleet_keep_to_one_stagger_together() {
        let nodes = 8;
        let mut sent = Vec::new();
        for rank in 0..nodes {
            let place = FleetPlace { rank, nodes };
            let mut key = due();
            key.observe(RestPhase::Over, &POLICY, place, at(0));
            for _ in 0..6 {
                match key.take(false, at(60_000), &POLICY, place, at(0)) {
                    Turn::At(time) => sent.push(time),
                    other => panic!("{other:?}"),
                }
            }
        }
        sent.sort_unstable();
        for pair in sent.windows(2) {
            assert_eq!(pair[1].since(pair[0]), POLICY.stagger);
        }
        assert_eq!(sent.first(), Some(&at(50)));
    }

    #[test]
    fn a_time_beyond_what_a_request_may_wait_is_not_taken() {
        let mut key = due();
        key.observe(RestPhase::Over, &POLICY, FleetPlace::ALONE, at(0));
        let mut take = |latest| key.take(false, at(latest), &POLICY, FleetPlace::ALONE, at(0));
        assert_eq!(take(20), Turn::TooLate);
        assert_eq!(take(50), Turn::At(at(50)), "the request before took nothing");
        assert_eq!(take(60), Turn::TooLate);
    }

    #[test]
    fn once_no_request_waits_there_is_no_limit() {
        let mut key = due();
        key.observe(RestPhase::Over, &POLICY, FleetPlace::ALONE, at(0));
        for _ in 0..40 {
            assert!(matches!(take(&mut key, false, 0), Turn::At(_)));
        }
        key.observe(RestPhase::Over, &POLICY, FleetPlace::ALONE, at(1500));
        assert!(!key.is_over(), "some have their time still before them");
        key.observe(RestPhase::Over, &POLICY, FleetPlace::ALONE, at(2051));
        assert!(key.is_over());
        assert_eq!(take(&mut key, false, 2051), Turn::Free);
        assert_eq!(take(&mut key, false, 2051), Turn::Free);
    }

    #[test]
    fn without_a_release_none_follows_one_by_one() {
        let policy = ReopeningPolicy { release: Duration::ZERO, ..POLICY };
        let mut key = due();
        key.observe(RestPhase::Over, &policy, FleetPlace::ALONE, at(0));
        key.observe(RestPhase::Over, &policy, FleetPlace::ALONE, at(0));
        assert!(key.is_over());
    }
}
