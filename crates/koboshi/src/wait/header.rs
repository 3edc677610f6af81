//! Waits that response headers state.
//!
//! `retry-after-ms` and `retry-after` say it outright. Rate-limit headers say how much is left in each of
//! several buckets and when each is full again: only a bucket with nothing left is a reason to wait, and of
//! several the one that takes longest. The header with the count has the name of the header with the reset,
//! with one word changed, in all the families known (`x-ratelimit-*`, `anthropic-ratelimit-*`, `ratelimit-*`,
//! `ratelimitby*`, `x-rate-limit-*`), so one rule reads them all.
//!
//! Headers are taken in any order and any case; of a hostile number of them only the first few count.

use super::duration::{amount_of, clamped};
use super::field::{self, Pairs, field_wait};
use super::words::Unit;
use super::{Clock, Form, Wait};

/// More headers of interest than this are not looked at.
const MAX_HEADERS: usize = 64;

/// The wait of `retry-after-ms` or else of `retry-after`: seconds, also fractional, or an HTTP date.
///
/// A date that has passed is a wait of zero; a negative or senseless value states nothing.
#[must_use]
pub fn header_wait<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    clock: Clock<'_>,
) -> Option<Wait> {
    let in_millis = headers.clone().filter(|(name, _)| is_named(name, "retry-after-ms")).take(MAX_HEADERS);
    let in_seconds = headers.filter(|(name, _)| is_named(name, "retry-after")).take(MAX_HEADERS);
    in_millis
        .filter_map(|(_, value)| millis(value, clock))
        .chain(in_seconds.filter_map(|(_, value)| retry_after(value, clock)))
        .next()
}

fn is_named(name: &str, wanted: &str) -> bool {
    name.trim().eq_ignore_ascii_case(wanted)
}

fn millis(value: &str, clock: Clock<'_>) -> Option<Wait> {
    let number = field::plain_number(value)?;
    Some(Wait::countdown(clamped(amount_of(number, Unit::Milli)), clock))
}

fn retry_after(value: &str, clock: Clock<'_>) -> Option<Wait> {
    let Some(number) = field::plain_number(value) else { return field_wait("retry-after", value, clock) };
    // Some servers put an epoch here. Only one that makes sense as such is read so.
    let epoch = Wait::until(field::epoch(number.whole), Form::Instant, clock);
    let makes_sense = number.digits >= 10 && !epoch.after.is_zero() && epoch.after < super::MAX_WAIT;
    if makes_sense {
        Some(epoch)
    } else {
        Some(Wait::countdown(clamped(amount_of(number, Unit::Second)), clock))
    }
}

/// The wait until the last of the used-up buckets is full again.
#[must_use]
pub fn exhausted_bucket_wait<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    clock: Clock<'_>,
) -> Option<Wait> {
    let buckets = Buckets {
        headers: headers
            .filter(|(name, _)| is_rate_limit(name))
            .take(MAX_HEADERS)
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
            .collect(),
    };
    let resets = buckets.headers.iter().filter(|(name, _)| buckets.is_exhausted(name));
    let combined =
        buckets.headers.iter().filter(|(name, _)| matches!(name.as_str(), "ratelimit" | "x-ratelimit"));
    resets
        .filter_map(|(name, value)| field_wait(name, value, clock))
        .chain(combined.filter_map(|(_, value)| combined_wait(value, clock)))
        .max_by_key(|wait| wait.after)
}

/// All in one header: `limit=10, remaining=0, reset=34`, or `"burst";r=0;t=34, "daily";r=5;t=3600`.
fn combined_wait(value: &str, clock: Clock<'_>) -> Option<Wait> {
    let (mut is_empty, mut longest) = (false, None::<Wait>);
    for piece in value.split([',', ';']).map(str::trim) {
        match piece.split_once('=') {
            Some(("r" | "remaining", left)) => is_empty = is_nothing(left),
            Some(("t" | "reset", reset)) if is_empty => {
                let wait = field_wait("reset", reset, clock);
                longest = longest.into_iter().chain(wait).max_by_key(|wait| wait.after);
            }
            None => is_empty = false,
            Some(_) => {}
        }
    }
    longest
}

struct Buckets<'a> {
    headers: Vec<(String, &'a str)>,
}

impl Buckets<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Whether `reset` names the reset of a bucket that has nothing left.
    fn is_exhausted(&self, reset: &str) -> bool {
        if reset.ends_with("-timeremaining") {
            return self.value(&reset.replace("-timeremaining", "-remaining")).is_none_or(is_nothing);
        }
        if !reset.contains("reset") {
            return false;
        }
        let count = reset.replace("-reset-after", "-remaining").replace("reset", "remaining");
        self.value(&count).is_some_and(is_nothing) || self.is_rejected(reset)
    }

    /// The unified limits have a status instead of a count.
    ///
    /// That of the overage says nothing: it is rejected wherever paying for more has not been allowed.
    fn is_rejected(&self, reset: &str) -> bool {
        if reset.contains("-overage-") {
            return false;
        }
        let status = reset.replace("reset", "status");
        match self.value(&status) {
            Some(status) => status.eq_ignore_ascii_case("rejected"),
            None => reset.ends_with("-unified-reset") && self.any_window_is_rejected(),
        }
    }

    fn any_window_is_rejected(&self) -> bool {
        self.headers.iter().any(|(name, value)| {
            let is_window = name.contains("-unified-") && !name.contains("-overage-");
            is_window && name.ends_with("-status") && value.eq_ignore_ascii_case("rejected")
        })
    }
}

/// Nothing left: zero, or less than that.
fn is_nothing(value: &str) -> bool {
    let is_negative = value.strip_prefix('-').is_some_and(|rest| field::plain_number(rest).is_some());
    is_negative || field::plain_number(value).is_some_and(|number| number.whole == 0 && number.nanos == 0)
}

fn is_rate_limit(name: &str) -> bool {
    let name = name.trim();
    name.len() <= 80 && {
        let name = name.to_ascii_lowercase();
        name.contains("ratelimit") || name.contains("rate-limit")
    }
}

/// The headers of interest that a free text quotes, at most 64: `retry-after: 4`, `Retry-After=13262`,
/// `'retry-after': '20'`, `"x-ratelimit-reset":"1741305600000"`, several on one line or in a dump.
#[must_use]
pub fn headers_in_text(text: &str) -> Vec<(&str, &str)> {
    let wanted = |name: &str| {
        let is_retry =
            name.eq_ignore_ascii_case("retry-after") || name.eq_ignore_ascii_case("retry-after-ms");
        is_retry || (name.contains('-') && is_rate_limit(name))
    };
    Pairs::of(text, wanted)
        .filter_map(|(name, value)| Some((name, text.get(value)?)))
        .take(MAX_HEADERS)
        .collect()
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
