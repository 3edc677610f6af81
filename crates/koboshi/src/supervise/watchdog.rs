//! When a run takes too long: in all, without output, or without the network.
//!
//! An agent that runs and does nothing takes up a place. Some agents wait for the network for ever.

use std::time::Duration;

use crate::time::Moment;

use super::StoppedFor;

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WatchPolicy {
    /// In all; none for ever.
    pub run: Option<Duration>,
    /// Without output; none for ever.
    pub silent: Option<Duration>,
    /// In waiting for the network; none for ever.
    pub offline: Option<Duration>,
}

/// What is seen of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// When it began, or when it was taken over.
    pub started: Moment,
    /// How long it had run before it was taken over.
    pub ran_before: Duration,
    /// When it last wrote something.
    pub output: Moment,
    /// Since when it says nothing but that it waits for the network.
    pub offline: Option<Moment>,
}

impl Signs {
    /// Its output was not read for this long, because the machine slept or the reader was stopped: that is no silence of its own.
    pub fn was_unwatched(&mut self, length: Duration) {
        self.output = self.output.after(length);
        self.offline = self.offline.map(|since| since.after(length));
    }
}

/// A run that takes too long.
pub type Overdue = StoppedFor;

/// The limits of a run, each with the moment at which it is reached.
fn limits(policy: &WatchPolicy, signs: &Signs) -> impl Iterator<Item = (Moment, Overdue)> {
    let limit = |from: Option<Moment>, length: Option<Duration>, why| Some((from?.after(length?), why));
    let run = policy.run.map(|run| run.saturating_sub(signs.ran_before));
    [
        limit(Some(signs.started), run, StoppedFor::RunTime),
        limit(signs.offline, policy.offline, StoppedFor::Offline),
        limit(Some(signs.output), policy.silent, StoppedFor::Silence),
    ]
    .into_iter()
    .flatten()
}

/// Whether a run must be stopped, and why.
#[must_use]
pub fn overdue(policy: &WatchPolicy, signs: &Signs, now: Moment) -> Option<Overdue> {
    limits(policy, signs).find(|(at, _)| *at <= now).map(|(_, why)| why)
}

/// When to check again; none if no limit can be reached.
#[must_use]
pub fn next_check(policy: &WatchPolicy, signs: &Signs) -> Option<Moment> {
    limits(policy, signs).map(|(at, _)| at).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    #[test]
    fn each_limit_ends_a_run_for_its_own_reason() {
        let policy =
            WatchPolicy { run: Some(MINUTE * 60), silent: Some(MINUTE * 10), offline: Some(MINUTE * 5) };
        let signs = Signs { started: at(0), ran_before: Duration::ZERO, output: at(0), offline: None };
        assert_eq!(overdue(&policy, &signs, at(599)), None);
        assert_eq!(overdue(&policy, &signs, at(600)), Some(StoppedFor::Silence));
        let talks = Signs { output: at(3599), ..signs };
        assert_eq!(overdue(&policy, &talks, at(3599)), None);
        assert_eq!(overdue(&policy, &talks, at(3600)), Some(StoppedFor::RunTime));
        let waits = Signs { output: at(399), offline: Some(at(100)), ..signs };
        assert_eq!(overdue(&policy, &waits, at(400)), Some(StoppedFor::Offline));
        assert_eq!(overdue(&WatchPolicy::default(), &signs, at(u64::from(u32::MAX))), None);
    }

    #[test]
    fn time_in_which_nobody_looked_is_no_silence() {
        let policy = WatchPolicy { run: None, silent: Some(MINUTE * 10), offline: Some(MINUTE * 5) };
        let mut signs =
            Signs { started: at(0), ran_before: Duration::ZERO, output: at(60), offline: Some(at(60)) };
        signs.was_unwatched(60 * MINUTE);
        assert_eq!(overdue(&policy, &signs, at(3600 + 60 + 299)), None);
        assert_eq!(overdue(&policy, &signs, at(3600 + 60 + 300)), Some(StoppedFor::Offline));
        signs.offline = None;
        assert_eq!(overdue(&policy, &signs, at(3600 + 60 + 599)), None);
        assert_eq!(overdue(&policy, &signs, at(3600 + 60 + 600)), Some(StoppedFor::Silence));
        let capped = WatchPolicy { run: Some(MINUTE), ..policy };
        assert_eq!(overdue(&capped, &signs, at(60)), Some(StoppedFor::RunTime), "a run has its time in all");
    }

    #[test]
    fn the_time_before_a_run_was_taken_over_counts() {
        let policy = WatchPolicy { run: Some(60 * MINUTE), ..WatchPolicy::default() };
        let signs = Signs { started: at(0), ran_before: 50 * MINUTE, output: at(0), offline: None };
        assert_eq!(next_check(&policy, &signs), Some(at(600)));
        assert_eq!(overdue(&policy, &signs, at(599)), None);
        assert_eq!(overdue(&policy, &signs, at(600)), Some(StoppedFor::RunTime));
        let late = Signs { ran_before: 70 * MINUTE, ..signs };
        assert_eq!(overdue(&policy, &late, at(0)), Some(StoppedFor::RunTime));
    }

    proptest! {
        /// At the moment that is named a limit is reached, and not before it.
        #[test]
        fn the_next_check_is_neither_early_nor_late(run in proptest::option::of(1_u64..90), silent in proptest::option::of(1_u64..90), output in 0_u64..90, offline in proptest::option::of(0_u64..90)) {
            let seconds = |length: Option<u64>| length.map(Duration::from_secs);
            let policy = WatchPolicy { run: seconds(run), silent: seconds(silent), offline: seconds(silent) };
            let signs = Signs { started: at(0), ran_before: Duration::ZERO, output: at(output), offline: offline.map(at) };
            match next_check(&policy, &signs) {
                None => prop_assert_eq!(overdue(&policy, &signs, Moment::from_nanos(u64::MAX)), None),
                Some(then) => {
                    prop_assert!(overdue(&policy, &signs, then).is_some());
                    prop_assert_eq!(overdue(&policy, &signs, Moment::from_nanos(then.nanos() - 1)), None);
                }
            }
        }
    }
}
