//! What a single protected command does after its end: it is over, or it is started again.
//!
//! A limit is waited out as often as it comes, because it says nothing against the command. What may pass by itself (a provider without
//! capacity, a crash) is tried again a few times. What the command itself did wrong is its caller's to see at once.

use crate::cooldown::{Class, Failure};

use super::Outcome;

/// What to do after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The caller gets the end as it is.
    Over,
    /// Again, once its keys rest no longer.
    Again {
        /// It is one of the tries that are counted.
        counts: bool,
    },
}

/// What to do after the `tries`-th counted end, of at most `most`.
#[must_use]
pub fn after(outcome: &Outcome, tries: u32, max: u32) -> Step {
    let Outcome::Failed(fault) = outcome else { return Step::Over };
    match Failure::of(fault).class {
        Class::Quota | Class::RateLimit => Step::Again { counts: false },
        // A person must act: the wait that follows says so.
        Class::Billing | Class::Auth => Step::Again { counts: false },
        Class::Context | Class::Operator => Step::Over,
        _ if fault.advice.same && tries < max => Step::Again { counts: true },
        _ => Step::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Confidence, Fault, Kind};

    fn failed(kind: Kind) -> Outcome {
        Outcome::Failed(Fault::of(kind, "test"))
    }

    #[test]
    fn limits_are_waited_out_and_never_counted() {
        for kind in [Kind::QuotaExceeded, Kind::RateLimited] {
            assert_eq!(after(&failed(kind), 99, 1), Step::Again { counts: false });
        }
    }

    #[test]
    fn what_may_pass_is_tried_a_few_times_and_the_commands_own_failure_is_not() {
        for kind in [Kind::Overloaded, Kind::Unavailable, Kind::ConnectionFailed, Kind::ProcessFailed] {
            assert_eq!(after(&failed(kind), 1, 3), Step::Again { counts: true }, "{}", kind.name());
            assert_eq!(after(&failed(kind), 3, 3), Step::Over, "{}", kind.name());
        }
        for kind in [Kind::AgentError, Kind::InvalidRequest, Kind::ContextTooLarge, Kind::SpawnFailed] {
            assert_eq!(after(&failed(kind), 1, 3), Step::Over, "{}", kind.name());
        }
        assert_eq!(after(&Outcome::Good, 1, 3), Step::Over);
        assert_eq!(after(&Outcome::Stopped, 1, 3), Step::Over);
    }

    #[test]
    fn weak_evidence_of_a_limit_starts_nothing_again() {
        let mut fault = Fault::of(Kind::QuotaExceeded, "test");
        fault.confidence = Confidence::Low;
        assert_eq!(after(&Outcome::Failed(fault), 1, 3), Step::Over);
    }
}
