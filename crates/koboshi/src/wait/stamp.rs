//! When a line of a log was written, as the line itself says: `[2026-11-16T10:00:05Z] …`, `22:14:05 ERROR …`, `"timestamp": "…"`.
//!
//! A wait is counted from the line that states it. A log may be read days later, and "try again in 42s" is over by then.
//!
//! A stamp stands at the beginning of a line, behind nothing but brackets, a level or a container's name, or it is the value of a field that
//! is named for it. It names a time of day to the second, or a date with a time: `5pm` and `tomorrow` belong to sentences. A stamp that
//! lies ahead of the time of reading is none: the sentence speaks of the future, or its zone was read wrongly.

use jiff::Timestamp;

use super::calendar::{Day, DayTime, TextContext, when_at};
use super::field::{self, Pairs};
use super::resolve::last_before;
use super::token::Tokens;
use super::{Clock, MAX_WAIT};

/// A stamp is shorter than this.
const STAMP_BYTES: usize = 64;
/// How far into a structured line its stamp is looked for.
const FIELD_BYTES: usize = 4096;
/// Clocks of two machines differ; a stamp may lie ahead by this much.
const SKEW_SECONDS: i64 = 120;

/// When the line says that it was written: at the time of reading at the latest.
#[must_use]
pub fn line_time(line: &str, clock: Clock<'_>) -> Option<Timestamp> {
    let now = clock.now.timestamp();
    let line = without_prefix(line);
    let written = if is_structured(line) { field_time(line, clock) } else { leading_time(line, clock) }?;
    let ahead = written.duration_since(now).as_secs();
    let behind = now.duration_since(written).as_secs();
    let is_likely = ahead <= SKEW_SECONDS && behind <= i64::try_from(MAX_WAIT.as_secs()).unwrap_or(i64::MAX);
    is_likely.then(|| written.min(now))
}

/// Brackets, a level and a container's name before the stamp.
fn without_prefix(line: &str) -> &str {
    let open =
        |text: &str| -> usize { text.len() - text.trim_start_matches(['[', '(', '<', ' ', '\t']).len() };
    let line = line.get(open(line)..).unwrap_or_default();
    let line = match line.split_once('|') {
        Some((name, rest)) if !name.trim_end().contains(' ') && name.ends_with(' ') => rest.trim_start(),
        _ => line,
    };
    let letters = line.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = line.get(..letters).unwrap_or_default();
    if !is_level(word) {
        return line;
    }
    let rest = line.get(letters..).unwrap_or_default();
    rest.trim_start_matches([']', ')', '>', ':', ',', '-', ' ', '\t', '[', '('])
}

fn is_level(word: &str) -> bool {
    const LEVELS: &[&str] = &[
        "error", "err", "fatal", "critical", "severe", "warn", "warning", "info", "debug", "trace", "notice",
    ];
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

fn is_structured(line: &str) -> bool {
    line.starts_with(['{', '"'])
        || ["time=", "ts=", "timestamp=", "t="].iter().any(|name| line.starts_with(name))
}

/// `"timestamp":"2026-11-15T12:00:00Z"`, `time="2026-11-15T12:00:00Z"`, `"ts":1794900000.25`.
fn field_time(line: &str, clock: Clock<'_>) -> Option<Timestamp> {
    let is_stamp = |name: &str| {
        matches!(name, "timestamp" | "time" | "ts" | "t" | "datetime" | "created_at" | "createdAt")
    };
    let head = line.get(..line.floor_char_boundary(FIELD_BYTES)).unwrap_or(line);
    Pairs::of(head, is_stamp).take(4).find_map(|(_, span)| value_time(head.get(span)?, clock))
}

fn value_time(value: &str, clock: Clock<'_>) -> Option<Timestamp> {
    if let Some(number) = field::plain_number(value) {
        return matches!(number.digits, 10 | 13 | 16).then(|| field::epoch(number.whole));
    }
    value.trim().parse().ok().or_else(|| leading_time(value, clock))
}

fn leading_time(line: &str, clock: Clock<'_>) -> Option<Timestamp> {
    let text = line.get(..line.floor_char_boundary(STAMP_BYTES)).unwrap_or(line);
    let tokens = Tokens::of(text);
    let number = tokens.number(0);
    if let Some(epoch) =
        number.filter(|number| matches!(number.digits, 10 | 13) && number.whole > 1_000_000_000)
    {
        return Some(field::epoch(epoch.whole));
    }
    let (when, end) = when_at(&tokens, 0, TextContext { zones: clock.zones, hour_sign: false })?;
    let written = text.get(tokens.span(0, end)).unwrap_or_default();
    is_stamp(&when, written).then(|| last_before(&when, clock)).flatten()
}

/// Whether this is how a program stamps a line: a full date with a time, or a time to the second.
fn is_stamp(when: &DayTime, written: &str) -> bool {
    let to_the_second = written.matches(':').count() >= 2;
    match when.day {
        Day::Date(_) => when.time.is_some(),
        Day::Next | Day::Yearly(..) => when.time.is_some() && to_the_second,
        Day::Weekday(_) | Day::FromToday(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Zoned;
    use jiff::tz::TimeZoneDatabase;

    fn time(line: &str) -> Option<String> {
        let zones = TimeZoneDatabase::bundled();
        let now: Zoned = "2026-11-18T09:00:00+09:00[Asia/Tokyo]".parse().unwrap();
        line_time(line, Clock { now: &now, zones: &zones }).map(|time| time.to_string())
    }

    #[test]
    fn stamps_of_programs_are_read() {
        for (line, expected) in [
            ("[2026-11-16T10:00:05Z] You've hit your limit", "2026-11-16T10:00:05Z"),
            ("2026-11-15 22:14:05 ERROR try again in 42s", "2026-11-15T13:14:05Z"),
            ("2026-11-15 22:14:05,123 - ERROR - x", "2026-11-15T13:14:05Z"),
            ("2026/11/15 22:14:05 x", "2026-11-15T13:14:05Z"),
            ("2026-11-15T22:14:05.250+01:00 x", "2026-11-15T21:14:05.25Z"),
            ("ERROR 2026-11-15T22:14:05Z x", "2026-11-15T22:14:05Z"),
            ("[ERROR] [2026-11-15T22:14:05Z] x", "2026-11-15T22:14:05Z"),
            ("agent-1  | 2026-11-15T22:14:05Z x", "2026-11-15T22:14:05Z"),
            ("[08:14:05] x", "2026-11-17T23:14:05Z"),
            ("22:14:05 x", "2026-11-17T13:14:05Z"),
            ("Nov 15 22:14:05 host app[1]: x", "2026-11-15T13:14:05Z"),
            ("Dec 31 22:14:05 host app[1]: x", "2025-12-31T13:14:05Z"),
            ("1794900000 ERROR x", "2026-11-17T07:20:00Z"),
            (r#"{"timestamp":"2026-11-15T22:14:05Z","type":"error"}"#, "2026-11-15T22:14:05Z"),
            (r#"{"type":"error","ts":1794900000.25}"#, "2026-11-17T07:20:00Z"),
            (r#"  "timestamp": "2026-11-15T22:14:05Z","#, "2026-11-15T22:14:05Z"),
            (r#"time="2026-11-15T22:14:05Z" level=error msg=x"#, "2026-11-15T22:14:05Z"),
        ] {
            assert_eq!(time(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn times_that_belong_to_sentences_are_no_stamps() {
        for line in [
            "", "Error: try again in 42s", "5pm is when it resets", "tomorrow at 3pm", "Nov 15 is over",
            "2026-11-19 08:00 is when your limit resets", "You've hit your limit · resets 3pm",
            "429 Too Many Requests", "Limit reached at 2026-11-15 08:00:00",
            r#"{"resets_at":"2026-11-15T22:14:05Z"}"#, "2026-11-15",
        ] {
            assert_eq!(time(line), None, "{line}");
        }
    }
}
