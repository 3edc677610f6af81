//! Why a key is in cooldown: the classes, each with its own length, growth and end.

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Kind};

/// Why a key is in cooldown. Each class has a policy of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Class {
    /// It failed for a reason of its own.
    Error,
    /// It cannot be reached.
    Network,
    /// It lacks capacity.
    Overloaded,
    /// Too much in a short window.
    RateLimit,
    /// An allowance for a long window is used up.
    Quota,
    /// The task no longer fits the model's window: the same start would fail the same way.
    Context,
    /// The credential is refused.
    Auth,
    /// Only money helps.
    Billing,
    /// A person said so.
    Operator,
}

impl Class {
    /// Every class.
    pub const ALL: &[Self] = &[
        Self::Error,
        Self::Network,
        Self::Overloaded,
        Self::RateLimit,
        Self::Quota,
        Self::Context,
        Self::Auth,
        Self::Billing,
        Self::Operator,
    ];

    /// Stable name, the `reason` of log lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Network => "network",
            Self::Overloaded => "overloaded",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Context => "context",
            Self::Auth => "auth",
            Self::Billing => "billing",
            Self::Operator => "operator",
        }
    }

    /// The class with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.name() == name)
    }

    /// The class of a fault: its reason word, as a supervisor files it.
    #[must_use]
    pub fn of(fault: &Fault) -> Self {
        Self::from_name(fault.log_reason()).unwrap_or(Self::Error)
    }

    /// Whether trying again cannot help, so that a person must act first.
    #[must_use]
    pub fn needs_a_person(fault: &Fault) -> bool {
        // A program that is missing or may not be run stays so; a machine out of processes recovers.
        fault.kind == Kind::SpawnFailed && !fault.advice.same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_a_fault_is_a_class() {
        for kind in Kind::ALL {
            let fault = Fault::of(*kind, "test");
            assert_eq!(Class::of(&fault).name(), fault.log_reason(), "{}", kind.name());
        }
    }

    #[test]
    fn names_are_what_is_stored() {
        for class in Class::ALL {
            let stored = serde_json::to_string(class).unwrap();
            assert_eq!(stored, format!("\"{}\"", class.name()));
        }
    }
}
