//! How many runs an account allows at once.
//!
//! A fixed number is the most; below it the number follows what was refused: half of what ran when a limit was hit, one more after each run
//! that ended well. So an account near its limit is approached by few, and opens again after the reset.

/// How many runs an account allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

    /// The account refused one of them: fewer may run from now on.
    pub fn refused(&mut self) {
        let before = self.learned.map_or(self.running, |(places, _)| places.min(self.running)).max(1);
        let all = self.learned.map_or(before, |(_, all)| all.max(before));
        self.learned = Some(((before / 2).max(1), all));
    }

    /// One of them ended well: one more may run.
    pub fn succeeded(&mut self) {
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

    fn full(running: u32) -> Room {
        Room { running, learned: None }
    }

    #[test]
    fn a_refusal_halves_the_places_and_successes_open_them_one_by_one() {
        let mut room = full(8);
        room.refused();
        assert_eq!(room.places(FREE), Some(4));
        room.succeeded();
        assert_eq!(room.places(FREE), Some(5));
        for _ in 0..3 {
            room.succeeded();
        }
        assert_eq!(room.places(FREE), Some(8));
        room.succeeded();
        assert_eq!(room.places(FREE), None, "as many as before the refusal: it is forgotten");
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
            for step in steps {
                match step {
                    0 if room.has_place(policy) => room.enter(),
                    1 => room.leave(),
                    2 => room.refused(),
                    _ => room.succeeded(),
                }
                prop_assert!(room.places(policy).is_none_or(|places| places >= 1));
                prop_assert!(max.is_none_or(|max| room.running() <= max));
            }
            while room.running() > 0 { room.leave(); }
            prop_assert!(room.has_place(policy), "an empty account lets one in");
        }
    }
}
