//! A failure of any kind, in one form.
//!
//! Provider answers, broken connections, agent logs and tool outputs all end here: one [`Fault`] that says
//! what failed ([`Kind`], [`Sub`]), whose fault it was ([`Origin`]), what else is affected ([`Scope`]),
//! what may be done ([`Advice`]), until when to wait, how sure we are and what showed it. Gateway,
//! supervisor, library and people all read the same value.
//!
//! A fault is plain data. It decides nothing: what to do about it is for the remedy, and how to say
//! it is for the report.

mod advice;
mod into;
mod kind;
mod sub;

use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;

pub use advice::{Advice, Health, Later, Other, Same};
pub use into::IntoFault;
pub use kind::{DEFAULT_PREFIX, Kind, Row, TABLE};
pub use sub::Sub;

use crate::wait::Wait;

/// Who caused a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The model provider.
    Provider,
    /// The way to the provider.
    Transport,
    /// A tool the agent called.
    Tool,
    /// The agent process.
    Process,
    /// The caller.
    Client,
    /// Koboshi itself.
    Koboshi,
}

/// What else a fault affects, from narrow to wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// Nothing but this request or run.
    Request,
    /// Everything that uses this credential.
    Key,
    /// Everything that uses this account.
    Account,
    /// Everything that asks this model.
    Model,
    /// Everything that asks this provider.
    Provider,
    /// Everything that leaves this machine; never shared with other machines.
    Network,
}

/// How sure a classifier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Confidence {
    /// Nothing recognised; only a status or an exit code was left.
    Low,
    /// Recognised by wording.
    Medium,
    /// Stated by structure: a code, a header, an event.
    High,
}

macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+) => {
        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Stable name, as used in JSON and rule files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

names!(Origin: Provider = "provider", Transport = "transport", Tool = "tool", Process = "process",
    Client = "client", Koboshi = "koboshi");
names!(Scope: Request = "request", Key = "key", Account = "account", Model = "model",
    Provider = "provider", Network = "network");
names!(Confidence: Low = "low", Medium = "medium", High = "high");

/// What showed a fault: the rule, and where in the input it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Id of the rule that decided.
    pub rule: Arc<str>,
    /// Bytes of the input that the rule was applied to.
    pub span: Range<usize>,
}

/// A classified failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What failed.
    pub kind: Kind,
    /// The finer reason, where it changes the advice.
    pub sub: Option<Sub>,
    /// Who caused it.
    pub origin: Origin,
    /// What else it affects.
    pub scope: Scope,
    /// The HTTP status that came, if one did.
    pub status: Option<u16>,
    /// The wait that was stated, if one was.
    pub wait: Option<Wait>,
    /// What it permits.
    pub advice: Advice,
    /// How sure the classifier is.
    pub confidence: Confidence,
    /// What showed it.
    pub evidence: Evidence,
    /// What the other side wrote, redacted and shortened. For operators; users see a phrase instead.
    pub detail: String,
    /// What a tool reported, for [`Kind::ToolFailed`]: one of the built-in categories or a user's own.
    pub category: Option<Arc<str>>,
}

impl Fault {
    /// A fault of this kind with the usual values of its row.
    #[must_use]
    pub fn of(kind: Kind, rule: &str) -> Self {
        let row = kind.row();
        Self {
            kind,
            sub: None,
            origin: row.origin,
            scope: row.scope,
            status: None,
            wait: None,
            advice: Advice {
                same: row.same.usually(),
                other: row.other.usually(),
                later: row.later.usually(),
                health: row.health.usually(),
            },
            confidence: Confidence::Medium,
            evidence: Evidence { rule: Arc::from(rule), span: 0..0 },
            detail: String::new(),
            category: None,
        }
    }

    /// The instant until which to wait, if one was stated.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.wait.map(|wait| wait.until)
    }

    /// The same fault as it is at a later instant: with what is left of its wait.
    #[must_use]
    pub fn left_at(mut self, now: Timestamp) -> Self {
        self.wait = self.wait.map(|wait| wait.left_at(now));
        self
    }

    /// The reason word that a supervisor files the fault under.
    #[must_use]
    pub fn log_reason(&self) -> &'static str {
        match self.kind {
            Kind::QuotaExceeded if self.sub == Some(Sub::Billing) => "billing",
            Kind::QuotaExceeded => "quota",
            Kind::RateLimited => "rate_limit",
            Kind::Overloaded | Kind::Unavailable => "overloaded",
            // The credential was not checked: something on the way blocked the request.
            Kind::PermissionDenied if self.sub == Some(Sub::Blocked) => "network",
            Kind::Unauthorized | Kind::TokenExpired | Kind::PermissionDenied => "auth",
            Kind::ContextTooLarge => "context",
            Kind::ConnectionFailed | Kind::ConnectionRefused | Kind::ConnectionClosed | Kind::Timeout => {
                "network"
            }
            _ => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_starts_with_the_flags_of_its_row() {
        let fault = Fault::of(Kind::RateLimited, "test");
        assert_eq!(fault.advice, Advice { same: true, other: true, later: true, health: false });
        assert_eq!(fault.scope, Scope::Account);
        assert_eq!(fault.log_reason(), "rate_limit");
    }

    #[test]
    fn billing_is_a_quota_of_its_own() {
        let mut fault = Fault::of(Kind::QuotaExceeded, "test");
        assert_eq!(fault.log_reason(), "quota");
        fault.sub = Some(Sub::Billing);
        assert_eq!(fault.log_reason(), "billing");
    }

    #[test]
    fn scopes_widen_in_order() {
        assert!(Scope::Request < Scope::Key && Scope::Model < Scope::Provider);
    }
}
