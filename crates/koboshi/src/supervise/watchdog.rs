//! When a run takes too long: in all, without a word, or without the network.
//!
//! An agent that lives and does nothing is as good as dead, and costs a place. Some wait for the network without an end of their own.

use std::time::Duration;

use crate::time::Moment;

use super::StoppedFor;

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// When it began.
    pub started: Moment,
    /// When it last wrote something.
    pub output: Moment,
    /// Since when it says nothing but that it waits for the network.
    pub offline: Option<Moment>,
}

/// A run that takes too long.
pub type Overdue = StoppedFor;

/// The limits of a run, each with the moment at which it is reached.
fn limits(policy: &WatchPolicy, signs: &Signs) -> impl Iterator<Item = (Moment, Overdue)> {
    let limit = |from: Option<Moment>, length: Option<Duration>, why| Some((from?.after(length?), why));
    [
        limit(Some(signs.started), policy.run, StoppedFor::RunTime),
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

/// When to look again; none if no limit can be reached.
#[must_use]
pub fn next_look(policy: &WatchPolicy, signs: &Signs) -> Option<Moment> {
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
        let signs = Signs { started: at(0), output: at(0), offline: None };
        assert_eq!(overdue(&policy, &signs, at(599)), None);
        assert_eq!(overdue(&policy, &signs, at(600)), Some(StoppedFor::Silence));
        let talks = Signs { output: at(3599), ..signs };
        assert_eq!(overdue(&policy, &talks, at(3599)), None);
        assert_eq!(overdue(&policy, &talks, at(3600)), Some(StoppedFor::RunTime));
        let waits = Signs { output: at(399), offline: Some(at(100)), ..signs };
        assert_eq!(overdue(&policy, &waits, at(400)), Some(StoppedFor::Offline));
        assert_eq!(overdue(&WatchPolicy::default(), &signs, at(u64::from(u32::MAX))), None);
    }

    proptest! {
        /// At the moment that is named a limit is reached, and not before it.
        #[test]
        fn the_next_look_is_neither_early_nor_late(run in proptest::option::of(1_u64..90), silent in proptest::option::of(1_u64..90), output in 0_u64..90, offline in proptest::option::of(0_u64..90)) {
            let seconds = |length: Option<u64>| length.map(Duration::from_secs);
            let policy = WatchPolicy { run: seconds(run), silent: seconds(silent), offline: seconds(silent) };
            let signs = Signs { started: at(0), output: at(output), offline: offline.map(at) };
            match next_look(&policy, &signs) {
                None => prop_assert_eq!(overdue(&policy, &signs, Moment::from_nanos(u64::MAX)), None),
                Some(then) => {
                    prop_assert!(overdue(&policy, &signs, then).is_some());
                    prop_assert_eq!(overdue(&policy, &signs, Moment::from_nanos(then.nanos() - 1)), None);
                }
            }
        }
    }
}
