//! One named value: `"retryDelay": "36s"`, `resets_at: 1760004000`, `retry-after=120`.
//!
//! Two jobs. [`field_wait`] reads a value whose name is known. [`Pairs`] finds names with values in free text:
//! header dumps, JSON, Python dictionaries, Go maps and debug prints write them differently, but all of them
//! put a name, a sign and a value in this order, with quotes and brackets as decoration.
//!
//! It is not a JSON reader: nesting, escapes and types are ignored on purpose, because logs cut such
//! structures in half.

use std::ops::Range;

use jiff::Timestamp;

use super::calendar::{TextContext, when_at};
use super::duration::{amount_of, clamped, parse_duration};
use super::resolve::resolve;
use super::token::{Number, Tokens};
use super::words::Unit;
use super::{Clock, Form, Wait};

/// Values are short; a longer one is cut here and then means nothing.
const MAX_VALUE: usize = 64;

/// Numbers from here on are points in time: ten years, in seconds.
const TEN_YEARS: u64 = 315_360_000;

/// Reads an instant or a length given as the value of a named field.
///
/// A number below ten years is a countdown, in seconds unless the name ends in another unit; a larger one is
/// an epoch in seconds, milliseconds or microseconds, by its size. Texts may be a length (`36s`, `PT36S`) or
/// an instant in any form that this module reads.
#[must_use]
pub fn field_wait(name: &str, value: &str, clock: Clock<'_>) -> Option<Wait> {
    let value = value.trim().trim_matches(['"', '\'']).trim();
    if value.is_empty() || value.len() > MAX_VALUE {
        return None;
    }
    if let Some(number) = plain_number(value) {
        return Some(number_wait(number, unit_of_name(name), clock));
    }
    if let Some(duration) = parse_duration(value) {
        return Some(Wait::countdown(duration, clock));
    }
    instant_in(value, clock)
}

/// A text that is a number without a sign, and nothing else.
pub(super) fn plain_number(value: &str) -> Option<Number> {
    let tokens = Tokens::of(value);
    tokens.number(0).filter(|_| tokens.len() == 1)
}

fn number_wait(number: Number, unit: Unit, clock: Clock<'_>) -> Wait {
    let nanos = amount_of(number, unit);
    if nanos < u128::from(TEN_YEARS) * Unit::Second.nanos() {
        return Wait::countdown(clamped(nanos), clock);
    }
    Wait::until(epoch(number.whole), Form::Instant, clock)
}

/// An epoch whose unit shows in its size: all of them would otherwise be centuries away.
pub(super) fn epoch(number: u64) -> Timestamp {
    let nanos = match number {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1_i128,
    };
    Timestamp::from_nanosecond(i128::from(number).saturating_mul(nanos)).unwrap_or(Timestamp::MAX)
}

fn unit_of_name(name: &str) -> Unit {
    let name = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if ends(&["ms", "millis", "milliseconds", "msec"]) {
        Unit::Milli
    } else if ends(&["minutes", "_mins", "-mins", "_min"]) {
        Unit::Minute
    } else if ends(&["hours", "_hrs"]) {
        Unit::Hour
    } else {
        Unit::Second
    }
}

/// A text that is an instant and nothing else.
pub(super) fn instant_in(value: &str, clock: Clock<'_>) -> Option<Wait> {
    if let Ok(instant) = value.parse::<Timestamp>() {
        return Some(Wait::until(instant, Form::Instant, clock));
    }
    if let Some(instant) = httpdate::parse_http_date(value).ok().and_then(|t| Timestamp::try_from(t).ok()) {
        return Some(Wait::until(instant, Form::Instant, clock));
    }
    let tokens = Tokens::of(value);
    let (when, end) = when_at(&tokens, 0, TextContext { zones: clock.zones, hour_sign: false })?;
    if end == tokens.len() { resolve(&when, clock) } else { None }
}

/// The names with values in a text, in order.
pub(super) struct Pairs<'t, F> {
    text: &'t str,
    at: usize,
    wanted: F,
}

impl<'t, F: Fn(&str) -> bool> Pairs<'t, F> {
    /// Only names that `wanted` accepts are looked at closely.
    pub(super) fn of(text: &'t str, wanted: F) -> Self {
        Self { text, at: 0, wanted }
    }
}

impl<'t, F: Fn(&str) -> bool> Iterator for Pairs<'t, F> {
    type Item = (&'t str, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            let start = self.at;
            let length = count(bytes, start, is_name_byte);
            self.at = start + length.max(1);
            let Some(name) = self.text.get(start..start + length).filter(|name| !name.is_empty()) else {
                continue;
            };
            if !(self.wanted)(name) {
                continue;
            }
            if let Some(value) = value_behind(self.text, start + length, name) {
                self.at = value.end;
                return Some((name, value));
            }
        }
        None
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn count(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or(&[]).iter().take_while(|byte| is(**byte)).count()
}

/// The value behind a name that ends at `at`.
fn value_behind(text: &str, at: usize, name: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let quotes = count_up_to(bytes, at, 3, |b| matches!(b, b'"' | b'\'' | b'\\' | b'`'));
    let at = skip_blanks(bytes, at + quotes);
    let sign = *bytes.get(at)?;
    // Only a quoted name is followed by a comma: that is a pair in a list of pairs.
    let is_pair = matches!(sign, b':' | b'=') || (sign == b',' && quotes > 0);
    if !is_pair {
        return None;
    }
    let at = skip_blanks(bytes, at + 1 + usize::from(bytes.get(at + 1) == Some(&b'>')));
    // Python marks bytes with a letter before the quote.
    let at = at + usize::from(matches!(bytes.get(at..at + 2), Some([b'b', b'"' | b'\''])));
    let opening = count_up_to(bytes, at, 4, |b| matches!(b, b'"' | b'\'' | b'\\' | b'[' | b'`'));
    let quoted =
        bytes.get(at..at + opening).is_some_and(|signs| signs.iter().any(|b| matches!(b, b'"' | b'\'')));
    let start = at + opening;
    let end = start + value_length(text.get(start..)?, name, quoted);
    (end > start).then_some(start..end)
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + count_up_to(bytes, at, 8, |b| matches!(b, b' ' | b'\t'))
}

fn count_up_to(bytes: &[u8], from: usize, max: usize, is: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or(&[]).iter().take(max).take_while(|byte| is(**byte)).count()
}

fn value_length(rest: &str, name: &str, quoted: bool) -> usize {
    let is_date = name.to_ascii_lowercase().contains("after") && begins_like_a_date(rest);
    let is_end = |b: u8| matches!(b, b'"' | b'\'' | b'\\' | b'\n' | b'\r' | b'}' | b'{' | b']' | b'`');
    let is_loose_end =
        |b: u8| is_end(b) || b.is_ascii_whitespace() || matches!(b, b',' | b';' | b')' | b'(' | b'|');
    let head = rest.as_bytes().get(..rest.len().min(MAX_VALUE)).unwrap_or(&[]);
    if is_date && !quoted {
        // An HTTP date holds blanks and a comma; it ends with its zone.
        let line = count(head, 0, |b| !is_end(b));
        return rest.get(..line).and_then(|line| line.find("GMT")).map_or(0, |zone| zone + 3);
    }
    let length = if quoted { count(head, 0, |b| !is_end(b)) } else { count(head, 0, |b| !is_loose_end(b)) };
    let value = rest.get(..length).unwrap_or("");
    if quoted { value.len() } else { value.trim_end_matches('.').len() }
}

/// `Sun, 15 Nov …`, `Sunday, 15-Nov-26 …`, `Sun Nov 15 …`.
fn begins_like_a_date(rest: &str) -> bool {
    let letters = count_up_to(rest.as_bytes(), 0, 10, |b| b.is_ascii_alphabetic());
    rest.get(..letters).is_some_and(|word| super::words::weekday(&word.to_ascii_lowercase()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;
    use proptest::prelude::*;

    fn read(name: &str, value: &str) -> Option<(f64, Form)> {
        let zones = TimeZoneDatabase::bundled();
        let now = "2025-10-09T07:15:00[UTC]".parse().unwrap();
        let wait = field_wait(name, value, Clock { now: &now, zones: &zones })?;
        Some((wait.after.as_secs_f64(), wait.form))
    }

    #[test]
    fn values_in_all_spellings() {
        let table = [
            ("retryDelay", "36s", 36.0, Form::Countdown),
            ("retryDelay", "4.518231s", 4.518_231, Form::Countdown),
            ("retryDelay", "PT36S", 36.0, Form::Countdown),
            ("resets_in_seconds", "1234", 1234.0, Form::Countdown),
            ("retry_after_ms", "1500", 1.5, Form::Countdown),
            ("retryAfterMs", "1500", 1.5, Form::Countdown),
            ("retry_after_minutes", "2", 120.0, Form::Countdown),
            ("resets_at", "1760004000", 9900.0, Form::Instant),
            ("resetsAt", "1760004000000", 9900.0, Form::Instant),
            ("resetsAtMs", "1760004000000", 9900.0, Form::Instant),
            ("resetsAt", "1760004000000000", 9900.0, Form::Instant),
            ("resets_at", "1700000000", 0.0, Form::Instant),
            ("X-RateLimit-Reset", "7m12s", 432.0, Form::Countdown),
            ("reset", "2025-10-09T07:16:00Z", 60.0, Form::Instant),
            ("reset", "\"2025-10-09T09:16:00+02:00\"", 60.0, Form::Instant),
            ("reset", "2025-10-10", 60_300.0, Form::Day),
            ("retry_after", "Thu, 09 Oct 2025 07:16:00 GMT", 60.0, Form::Instant),
            ("resets_at", "99999999999999999999", 366.0 * 86_400.0, Form::Instant),
            ("retry_after", "0", 0.0, Form::Countdown),
        ];
        for (name, value, seconds, form) in table {
            assert_eq!(read(name, value), Some((seconds, form)), "{name} {value}");
        }
        for value in ["", "-5", "null", "None", "soon", "5 5", "{}", "true"] {
            assert_eq!(read("retry_after", value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_panic(name in ".{0,20}", value in ".{0,80}") {
            let _ = read(&name, &value);
        }

        #[test]
        fn any_number_is_read_without_panic(value in "[0-9]{1,40}(\\.[0-9]{0,20})?") {
            prop_assert!(read("resets_at", value.trim_end_matches('.')).is_some());
        }
    }
}
