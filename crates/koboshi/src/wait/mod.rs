//! How long to wait, as other programs say it.
//!
//! Providers, libraries and agents state waits in some forty spellings: `22m55s`, `1h 5m`, `05:12:30`,
//! `retry-after` in seconds or as an HTTP date, `resets 5:10pm (Europe/Paris)`, an epoch behind a bar, a
//! date in Japanese. This module reads them all into one [`Wait`].
//!
//! Two rules hold everywhere. Nothing here can panic or overflow: absurd values are clamped to
//! [`MAX_WAIT`], past instants are a wait of zero. And nothing here reads a clock or a zone file: the time,
//! the local zone and the zone database come in through [`Clock`].
//!
//! Where to look: [`header_wait`] and [`exhausted_bucket_wait`] for the headers of an answer,
//! [`headers_in_text`] for headers that a log quotes, [`field_wait`] for one field of a JSON body,
//! [`stated_wait`] for prose in eight languages, [`parse_duration`] for a length alone, [`line_time`] for when a
//! line of a log was written.
//!
//! How it is made: `token` cuts a text into numbers, words and signs; `duration`, `calendar` and `zone` read
//! expressions from these; `resolve` turns a date into an instant; `cue` and `cjk` judge by the words around
//! an expression whether it is a wait, a client's own pause, a window or something past. Each step looks at
//! a bounded stretch, so that a hostile text costs no more than its length.
//!
//! What a wait is *not*: a margin, a cap or a backoff. Those are decided later, by the code that acts on it.

mod calendar;
mod cjk;
mod cue;
mod cue_words;
mod duration;
mod field;
mod header;
mod hour;
mod resolve;
mod stamp;
mod text;
mod token;
mod words;
mod zone;

use std::time::Duration;

use jiff::tz::{Offset, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

pub use duration::{parse_duration, print_duration};
pub use field::field_wait;
pub use header::{exhausted_bucket_wait, header_wait, headers_in_text};
pub use stamp::line_time;
pub use text::{StatedWait, stated_wait, stated_waits};

/// Longer waits than this are clamped to it: no provider means them, and sums must not overflow.
pub const MAX_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The time that waits are counted from.
#[derive(Debug, Clone, Copy)]
pub struct Clock<'a> {
    /// The instant of reading; its zone is the one that times without a zone are in.
    pub now: &'a Zoned,
    /// Where zone names are looked up.
    pub zones: &'a TimeZoneDatabase,
}

/// How a wait was stated. A countdown deserves a margin in proportion, a clock reset a fixed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A length of time: `22m55s`.
    Countdown,
    /// An instant: `2026-11-15T12:00:37Z`, `resets 5:10pm (Europe/Paris)`, an epoch.
    Instant,
    /// A day without a time.
    Day,
}

impl Form {
    /// Stable name, as used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Countdown => "countdown",
            Self::Instant => "instant",
            Self::Day => "day",
        }
    }
}

/// Which zone a stated time of day or date was read in. A person wants to know where it was assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitZone {
    /// No zone is needed: a length of time, an epoch, a timestamp with its offset.
    Unneeded,
    /// The text names no zone: the zone of [`Clock::now`] was assumed.
    Assumed,
    /// The text names a zone; its offset from UTC at that instant.
    Stated(Offset),
}

/// A stated wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait {
    /// How long, counted from the instant of reading.
    pub after: Duration,
    /// Until when.
    pub until: Timestamp,
    /// How it was stated.
    pub form: Form,
    /// The zone that it was read in.
    pub zone: WaitZone,
}

impl Wait {
    /// A wait stated as a length of time.
    #[must_use]
    pub fn countdown(after: Duration, clock: Clock<'_>) -> Self {
        let after = after.min(MAX_WAIT);
        let until = clock.now.timestamp().saturating_add(after).unwrap_or(Timestamp::MAX);
        Self { after, until, form: Form::Countdown, zone: WaitZone::Unneeded }
    }

    /// A wait stated as an instant; one that has passed is a wait of zero.
    #[must_use]
    pub fn until(until: Timestamp, form: Form, clock: Clock<'_>) -> Self {
        let now = clock.now.timestamp();
        let after = Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO).min(MAX_WAIT);
        let until = now.saturating_add(after).unwrap_or(Timestamp::MAX);
        Self { after, until, form, zone: WaitZone::Unneeded }
    }
    /// What is left of it at a later instant; one that has passed is a wait of zero.
    #[must_use]
    pub fn left_at(self, now: Timestamp) -> Self {
        let after =
            Duration::try_from(self.until.duration_since(now)).unwrap_or(Duration::ZERO).min(MAX_WAIT);
        Self { after, until: self.until.max(now), ..self }
    }
}
