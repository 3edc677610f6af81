//! The fault behind a cooldown, as far as it is stored and shared.
//!
//! A client that comes while a target is in cooldown gets the same error as the client before it: the same kind, the
//! same finer reason. The provider's sentence is kept beside it, in the record's `detail`. Records of an older version
//! have no cause, and one that a newer version wrote may hold a kind that is unknown here: both are read as "not
//! known", and the class is used instead.

use serde::{Deserialize, Deserializer, Serialize};

use crate::fault::{Fault, Kind, Sub};

use super::Class;

/// What put a key into cooldown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "StoredCause")]
pub struct Cause {
    /// What failed.
    pub kind: Kind,
    /// The finer reason.
    pub sub: Option<Sub>,
    /// The HTTP status that came, if one did.
    pub status: Option<u16>,
}

impl Cause {
    /// The part of a fault that is kept.
    #[must_use]
    pub const fn of(fault: &Fault) -> Self {
        Self { kind: fault.kind, sub: fault.sub, status: fault.status }
    }

    /// What a class alone says: for records without a cause. None for what a person decided, which is no fault.
    #[must_use]
    pub fn of_class(class: Class) -> Option<Self> {
        let (kind, sub) = match class {
            Class::Error => (Kind::Unavailable, None),
            Class::Network => (Kind::ConnectionFailed, None),
            Class::Overloaded => (Kind::Overloaded, None),
            Class::RateLimit => (Kind::RateLimited, None),
            Class::Quota => (Kind::QuotaExceeded, None),
            Class::Context => (Kind::ContextTooLarge, None),
            Class::Auth => (Kind::Unauthorized, None),
            Class::Billing => (Kind::QuotaExceeded, Some(Sub::Billing)),
            Class::Operator => return None,
        };
        Some(Self { kind, sub, status: None })
    }

    /// The fault again, with the provider's sentence.
    #[must_use]
    pub fn fault(self, rule: &str, detail: &str) -> Fault {
        let mut fault = Fault::of(self.kind, rule);
        fault.sub = self.sub;
        fault.status = self.status;
        detail.clone_into(&mut fault.detail);
        // Only money ends it: the row of the kind speaks of allowances that come back.
        if (self.kind, self.sub) == (Kind::QuotaExceeded, Some(Sub::Billing)) {
            fault.advice.later = false;
        }
        fault
    }
}

/// The stored form: names, which stay when the code is reordered.
#[derive(Serialize, Deserialize)]
struct StoredCause {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

impl From<Cause> for StoredCause {
    fn from(cause: Cause) -> Self {
        let sub = cause.sub.map(|sub| sub.name().to_owned());
        Self { kind: cause.kind.name().to_owned(), sub, status: cause.status }
    }
}

/// Reads a cause; one of a kind that is not known here is left out.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cause>, D::Error> {
    let stored = Option::<StoredCause>::deserialize(deserializer)?;
    Ok(stored.and_then(|stored| {
        let kind = Kind::from_name(&stored.kind)?;
        let sub = stored.sub.and_then(|name| Sub::ALL.iter().copied().find(|sub| sub.name() == name));
        Some(Cause { kind, sub, status: stored.status })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_comes_back_as_it_was() {
        let mut fault = Fault::of(Kind::QuotaExceeded, "rule");
        fault.sub = Some(Sub::Day);
        fault.status = Some(429);
        let again = Cause::of(&fault).fault("cooldown", "used up");
        assert_eq!((again.kind, again.sub, again.status), (fault.kind, fault.sub, fault.status));
        assert_eq!((again.detail.as_str(), again.advice), ("used up", fault.advice));
    }

    #[test]
    fn every_class_but_an_operators_says_something() {
        for class in Class::ALL {
            assert_eq!(Cause::of_class(*class).is_none(), *class == Class::Operator, "{class:?}");
        }
    }

    #[test]
    fn a_kind_of_a_newer_version_is_left_out() {
        #[derive(Deserialize)]
        struct Record {
            #[serde(default, deserialize_with = "read")]
            cause: Option<Cause>,
        }
        let read = |text: &str| serde_json::from_str::<Record>(text).unwrap().cause;
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"cause": {"kind": "of_tomorrow"}}"#), None);
        let known = read(r#"{"cause": {"kind": "quota_exceeded", "sub": "of_tomorrow"}}"#);
        assert_eq!(known, Some(Cause { kind: Kind::QuotaExceeded, sub: None, status: None }));
    }
}
