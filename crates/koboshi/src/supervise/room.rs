//! How many runs an account allows at once.
//!
//! A fixed number is the most; below it the number follows what was refused: half of what ran when a limit was hit, one more after each run
//! that ended well. All that ran into one limit count as one refusal. After the reset of a quota the first run that ends well opens all places:
//! the allowance is a new one. So an account near its limit is approached by few.

use jiff::Timestamp;

/// How many runs an account allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RoomPolicy {
    /// Never more than this; none for no limit of our own.
    pub max_runs: Option<u32>,
}

/// The places of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    running: u32,
    /// How many may run, after a refusal; and the number at which that is forgotten.
    learned: Option<(u32, u32)>,
    /// When that was learned: what began before it met the same limit.
    refused: Option<Timestamp>,
    /// When the quota that refused is granted again.
    reset: Option<Timestamp>,
}

impl Room {
    /// How many may run; none for any number.
    #[must_use]
    pub fn places(&self, policy: RoomPolicy) -> Option<u32> {
        let learned = self.learned.map(|(places, _)| places);
        match (policy.max_runs, learned) {
            (Some(max), Some(learned)) => Some(max.min(learned)),
            (max, learned) => max.or(learned),
        }
    }

    /// How many run.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// Whether one more may run.
    #[must_use]
    pub fn has_place(&self, policy: RoomPolicy) -> bool {
        self.places(policy).is_none_or(|places| self.running < places)
    }

    /// One more runs.
    pub fn enter(&mut self) {
        self.running = self.running.saturating_add(1);
    }

    /// One of them is gone.
    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// The account refused a run that began then: fewer may run from now on. `reset` is when a quota is granted again.
    pub fn refused(&mut self, started: Timestamp, reset: Option<Timestamp>, now: Timestamp) {
        self.reset = self.reset.max(reset);
        if self.refused.is_some_and(|refused| started <= refused) {
            return;
        }
        let before = self.learned.map_or(self.running, |(places, _)| places.min(self.running)).max(1);
        let all = self.learned.map_or(before, |(_, all)| all.max(before));
        self.learned = Some(((before / 2).max(1), all));
        self.refused = Some(now);
    }

    /// A run that began then ended well: one more may run, or as many as before where the quota was granted again.
    pub fn succeeded(&mut self, started: Timestamp) {
        if self.reset.take_if(|reset| started >= *reset).is_some() {
            self.learned = None;
        }
        self.learned = self
            .learned
            .map(|(places, all)| (places.saturating_add(1), all))
            .filter(|(places, all)| places <= all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FREE: RoomPolicy = RoomPolicy { max_runs: None };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn full(running: u32) -> Room {
        Room { running, ..Room::default() }
    }

    #[test]
    fn a_refusal_halves_the_places_and_successes_open_them_one_by_one() {
        let mut room = full(8);
        room.refused(at(0), None, at(10));
        assert_eq!(room.places(FREE), Some(4));
        room.succeeded(at(20));
        assert_eq!(room.places(FREE), Some(5));
        for _ in 0..3 {
            room.succeeded(at(20));
        }
        assert_eq!(room.places(FREE), Some(8));
        room.succeeded(at(20));
        assert_eq!(room.places(FREE), None, "as many as before the refusal: it is forgotten");
    }

    #[test]
    fn all_that_met_one_limit_halve_the_places_once() {
        let mut room = full(8);
        for end in 0..8 {
            room.refused(at(-end), None, at(10 + end));
            room.leave();
        }
        assert_eq!(room.places(FREE), Some(4));
        for _ in 0..4 {
            room.enter();
        }
        room.refused(at(60), None, at(70));
        room.refused(at(61), None, at(71));
        assert_eq!(room.places(FREE), Some(2), "the next limit halves them again");
    }

    #[test]
    fn after_the_reset_of_a_quota_the_first_success_opens_all_places() {
        let mut room = full(8);
        room.refused(at(0), Some(at(100)), at(10));
        room.refused(at(1), Some(at(90)), at(11));
        room.succeeded(at(99));
        assert_eq!(room.places(FREE), Some(5), "it began before the reset");
        room.succeeded(at(100));
        assert_eq!(room.places(FREE), None);
    }

    #[test]
    fn what_is_configured_is_never_exceeded() {
        let policy = RoomPolicy { max_runs: Some(3) };
        assert!(full(2).has_place(policy) && !full(3).has_place(policy));
    }

    proptest! {
        #[test]
        fn one_may_always_run(steps in proptest::collection::vec(0_u8..4, 0..60), max in proptest::option::of(1_u32..9)) {
            let (mut room, policy) = (Room::default(), RoomPolicy { max_runs: max });
            for (now, step) in (0_i64..).zip(steps) {
                match step {
                    0 if room.has_place(policy) => room.enter(),
                    1 => room.leave(),
                    2 => room.refused(at(now - 1), (now % 3 == 0).then(|| at(now + 2)), at(now)),
                    _ => room.succeeded(at(now - 1)),
                }
                prop_assert!(room.places(policy).is_none_or(|places| places >= 1));
                prop_assert!(max.is_none_or(|max| room.running() <= max));
            }
            while room.running() > 0 { room.leave(); }
            prop_assert!(room.has_place(policy), "an empty account lets one in");
        }
    }
}
