//! What a cooldown reports: the lines of the log, and the same as data.

use std::fmt;

use jiff::Timestamp;

use crate::key::{ScopeKey, ScopeLevel};

use super::{Class, Rest};

/// Something happened to the rest of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CooldownEvent {
    /// Which key.
    pub key: ScopeKey,
    /// What happened.
    pub what: CooldownChange,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CooldownChange {
    /// A cooldown was set or made longer.
    Set {
        /// How long it lasts from now, in whole seconds.
        seconds: i64,
        /// Why.
        class: Class,
        /// Failures in a row.
        streak: u32,
    },
    /// A caller wanted to start while it rested.
    Skipped {
        /// Why the key is in cooldown.
        class: Class,
        /// How much is left, in whole seconds.
        seconds: i64,
    },
    /// A caller wanted to start while it was parked.
    SkippedParked {
        /// Why it is parked.
        class: Class,
    },
    /// A caller must let others go first.
    Turn {
        /// For how long, in whole seconds.
        seconds: i64,
    },
    /// The cooldown is over.
    Ended,
    /// The first one after the rest succeeded.
    Recovered,
    /// It was parked: a person must resume it.
    Parked {
        /// Why.
        class: Class,
        /// Failures in a row.
        streak: u32,
    },
    /// A person resumed it.
    Resumed,
}

impl CooldownEvent {
    pub(super) fn set(key: &ScopeKey, rest: &Rest, now: Timestamp) -> Self {
        let what = if rest.parked {
            CooldownChange::Parked { class: rest.class, streak: rest.streak() }
        } else {
            CooldownChange::Set {
                seconds: seconds_until(rest.ends(now), now),
                class: rest.class,
                streak: rest.streak(),
            }
        };
        Self { key: key.clone(), what }
    }

    pub(super) fn skipped(key: &ScopeKey, class: Class, until: Timestamp, now: Timestamp) -> Self {
        Self { key: key.clone(), what: CooldownChange::Skipped { class, seconds: seconds_until(until, now) } }
    }

    /// The level that it is logged with.
    #[must_use]
    pub const fn level(&self) -> &'static str {
        match self.what {
            CooldownChange::Set { .. } => "WARNING",
            CooldownChange::Skipped { .. }
            | CooldownChange::SkippedParked { .. }
            | CooldownChange::Turn { .. } => "DEBUG",
            CooldownChange::Ended | CooldownChange::Recovered | CooldownChange::Resumed => "INFO",
            CooldownChange::Parked { .. } => "ERROR",
        }
    }

    /// The whole line, with level and logger.
    #[must_use]
    pub fn log_line(&self) -> String {
        format!("[{}] coordinator: {self}", self.level())
    }
}

/// The message of the log line.
impl fmt::Display for CooldownEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Agents are shown by their name alone, everything else by its whole key.
        let whole = self.key.to_string();
        let name = if self.key.level() == ScopeLevel::Agent { self.key.name() } else { &whole };
        match self.what {
            CooldownChange::Set { seconds, class, streak } => write!(
                formatter,
                "Cooldown set for {name}: {seconds}s (reason: {}, consecutive: {streak})",
                class.name()
            ),
            CooldownChange::Skipped { class, seconds } => {
                write!(formatter, "Skipping {name}: in cooldown ({}, {seconds}s remaining)", class.name())
            }
            CooldownChange::SkippedParked { class } => write!(
                formatter,
                "Skipping {name}: parked ({}), resume it with: koboshi resume {whole}",
                class.name()
            ),
            CooldownChange::Turn { seconds } => {
                write!(formatter, "Skipping {name}: others go first ({seconds}s remaining)")
            }
            CooldownChange::Ended => write!(formatter, "Cooldown ended for {name}, spawn allowed"),
            CooldownChange::Recovered => write!(formatter, "{name} is healthy again, failures forgotten"),
            CooldownChange::Parked { class, streak } => write!(
                formatter,
                "Parked {name} (reason: {}, consecutive: {streak}), resume it with: koboshi resume {whole}",
                class.name()
            ),
            CooldownChange::Resumed => write!(formatter, "Resumed {name}, spawn allowed"),
        }
    }
}

/// Whole seconds, rounded up: "0s remaining" would be wrong while something remains.
pub(super) fn seconds_until(until: Timestamp, now: Timestamp) -> i64 {
    let left = until.duration_since(now);
    left.as_secs().saturating_add(i64::from(left.subsec_nanos() > 0)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, what: CooldownChange) -> String {
        CooldownEvent { key: key.parse().unwrap(), what }.log_line()
    }

    #[test]
    fn the_three_log_lines_are_as_they_were_designed() {
        let agent = "agent:agt_xxx/prj_yyy";
        assert_eq!(
            line(agent, CooldownChange::Set { seconds: 1380, class: Class::Quota, streak: 1 }),
            "[WARNING] coordinator: Cooldown set for agt_xxx/prj_yyy: 1380s (reason: quota, consecutive: 1)"
        );
        assert_eq!(
            line(agent, CooldownChange::Skipped { class: Class::Quota, seconds: 1378 }),
            "[DEBUG] coordinator: Skipping agt_xxx/prj_yyy: in cooldown (quota, 1378s remaining)"
        );
        assert_eq!(
            line(agent, CooldownChange::Ended),
            "[INFO] coordinator: Cooldown ended for agt_xxx/prj_yyy, spawn allowed"
        );
    }

    #[test]
    fn a_parked_key_is_reported_with_the_command_that_resumes_it() {
        let parked = line("account:main", CooldownChange::Parked { class: Class::Billing, streak: 1 });
        assert!(parked.ends_with("koboshi resume account:main"), "{parked}");
    }
}
