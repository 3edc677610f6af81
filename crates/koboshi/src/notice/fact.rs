//! What is the matter, and what is said about it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::{Kind, Sub};

/// Stable names of the values of an enum, which are also stored.
macro_rules! named {
    ($(#[doc = $doc:literal])+ $type:ident { $($(#[doc = $of:literal])+ $variant:ident $name:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $type {
            $($(#[doc = $of])+ $variant,)+
        }

        impl $type {
            /// Everything there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

named! {
    /// How bad it is.
    Severity {
        /// It passes by itself and soon.
        Info "info",
        /// Requests go elsewhere or fail, and it is expected to pass.
        Warning "warning",
        /// It stays until a person does something, or for long.
        Critical "critical",
    }
}

named! {
    /// What a notice begins with.
    Trigger {
        /// A breaker opened.
        Breaker "breaker",
        /// A cooldown was set.
        Cooldown "cooldown",
        /// Something is parked.
        Park "park",
        /// Little or nothing is left of a budget.
        Budget "budget",
        /// No target of a route can be used.
        Route "route",
    }
}

named! {
    /// Which part of an episode a notice is about.
    Stage {
        /// It began.
        Start "start",
        /// It got worse.
        Escalation "escalation",
        /// It is over.
        End "end",
    }
}

impl Severity {
    /// How bad a cooldown for this kind of fault is: a dead credential and a used-up quota need a person, a limit for a
    /// short window passes.
    #[must_use]
    pub const fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Unauthorized | Kind::TokenExpired | Kind::QuotaExceeded => Self::Critical,
            Kind::RateLimited | Kind::ModelNotFound => Self::Info,
            _ => Self::Warning,
        }
    }
}

/// What is the matter with one thing now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about: `account:main`, `client:laptop/day`. Of several facts about it the worst counts.
    pub subject: String,
    /// What was seen.
    pub trigger: Trigger,
    /// How bad it is.
    pub severity: Severity,
    /// The fault behind it, where one is known.
    pub kind: Option<Kind>,
    /// The finer reason: an empty balance needs other advice than a quota that comes back.
    pub sub: Option<Sub>,
    /// The HTTP status, where nothing else is known of the fault.
    pub bare_status: Option<u16>,
    /// Since when.
    pub since: Timestamp,
    /// Until when; none where a person must decide.
    pub until: Option<Timestamp>,
    /// What is known besides, redacted.
    pub detail: String,
    /// It is over by its time, and was not tried since: it begins no episode, and ends none.
    pub is_untried: bool,
}

/// What an episode cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Damage {
    /// Failed attempts that the journal has.
    pub faults: u64,
    /// There were more than that: not all of the journal was read.
    #[serde(default)]
    pub is_partial: bool,
    /// Attempts that were paid for, or may have been, and whose answer no client got.
    pub lost_attempts: i64,
    /// What those cost, in parts of the currency.
    pub lost_cost: i64,
    /// What lesser answers cost, in parts of the currency.
    pub lesser_cost: i64,
}

/// What one channel gets about one stage of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Names the stage of the episode: a receiver that got this id before got the same notice.
    pub id: String,
    /// The stage.
    pub stage: Stage,
    /// What it is about.
    pub subject: String,
    /// What it began with, or what it became.
    pub trigger: Trigger,
    /// The worst that it was.
    pub severity: Severity,
    /// The name of the fault's kind, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the finer reason, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// The HTTP status, where nothing else is known of the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_status: Option<u16>,
    /// Since when.
    pub since: Timestamp,
    /// Until when it lasts, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What is known besides, redacted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What it cost; only at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// When it was decided.
    pub at: Timestamp,
}

impl Notice {
    /// The episode that it belongs to.
    #[must_use]
    pub fn episode(&self) -> &str {
        self.id.rsplit_once('/').map_or(self.id.as_str(), |(episode, _)| episode)
    }
}
