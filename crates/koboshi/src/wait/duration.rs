//! Lengths of time: `22m55s`, `2 days 17 hours`, `644ms`, `PT1H5M`, `05:12:30`, `3時間20分`.
//!
//! A length is a row of amounts with units, the units growing shorter: that one rule distinguishes `1h 5m` from two
//! lengths that happen to stand side by side. Sums saturate and are clamped to [`MAX_WAIT`].
//!
//! A bare number is no length here: whether it means seconds depends on what stands around it, and only
//! the callers know that. `12:30` is none either: minutes and seconds or a time of day, which cannot be distinguished.

use std::time::Duration;

use super::MAX_WAIT;
use super::token::{Number, Tokens};
use super::words::{self, Unit};

/// How many groups of digits an amount may have behind its first.
const MAX_GROUPS: usize = 8;

/// Reads a text that is one length of time and nothing else.
///
/// ```
/// use std::time::Duration;
/// use koboshi::wait::parse_duration;
///
/// assert_eq!(parse_duration("22m55s"), Some(Duration::from_secs(1375)));
/// assert_eq!(parse_duration("1 hour and 5 minutes"), Some(Duration::from_secs(3900)));
/// assert_eq!(parse_duration("90"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let tokens = Tokens::of(text);
    let (duration, end) = duration_at(&tokens, 0).or_else(|| hours_minutes_seconds_at(&tokens, 0))?;
    (end == tokens.len()).then_some(duration)
}

/// The short form of a length: `2d 17h`, `22m 55s`, `644ms`, `0s`.
///
/// Up to [`MAX_WAIT`], [`parse_duration`] reads it back to the same length in whole milliseconds; anything
/// shorter than a millisecond is left out.
#[must_use]
pub fn print_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(duration.subsec_millis()), "ms"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// A length in billionths of a second, clamped.
pub(super) fn clamped(nanos: u128) -> Duration {
    u64::try_from(nanos.min(MAX_WAIT.as_nanos())).map_or(MAX_WAIT, Duration::from_nanos)
}

/// This many of a unit; the fraction counts too.
pub(super) fn amount_of(number: Number, unit: Unit) -> u128 {
    let whole = u128::from(number.whole).saturating_mul(unit.nanos());
    let part = u128::from(number.nanos) * unit.nanos() / 1_000_000_000;
    whole.saturating_add(part)
}

/// The length that begins at a token, and the token behind it.
pub(super) fn duration_at(tokens: &Tokens<'_>, at: usize) -> Option<(Duration, usize)> {
    iso_at(tokens, at).or_else(|| row_at(tokens, at))
}

fn row_at(tokens: &Tokens<'_>, at: usize) -> Option<(Duration, usize)> {
    let (mut total, mut unit, mut end) = part_at(tokens, at)?;
    loop {
        let next = skip_joiner(tokens, end);
        match part_at(tokens, next) {
            Some((nanos, shorter, after)) if shorter < unit => {
                total = total.saturating_add(nanos);
                (unit, end) = (shorter, after);
            }
            _ => break,
        }
    }
    if let Some((nanos, after)) = rest_without_unit(tokens, end, unit) {
        total = total.saturating_add(nanos);
        end = after;
    }
    Some((clamped(total), end))
}

/// An amount and its unit.
fn part_at(tokens: &Tokens<'_>, at: usize) -> Option<(u128, Unit, usize)> {
    let (number, at) = amount_at(tokens, at)?;
    // "5 more minutes": what has passed already does not count.
    let at = at + usize::from(matches!(tokens.word(at), "more" | "additional" | "further"));
    let unit = words::unit(tokens.word(at))?;
    let nanos = amount_of(number, unit);
    if tokens.word(at + 1) == "半" {
        return Some((nanos.saturating_add(unit.nanos() / 2), unit, at + 2));
    }
    Some((nanos, unit, at + 1))
}

/// `5`, `1.5`, `86,400`, `1,5`, `an`, `half an`; of `5-10` and `5 to 10` the larger.
fn amount_at(tokens: &Tokens<'_>, at: usize) -> Option<(Number, usize)> {
    let Some(first) = tokens.number(at) else { return worded_amount_at(tokens, at) };
    let (first, after) = with_commas(tokens, first, at + 1);
    let is_range = matches!(tokens.sign(after), Some('-' | '–' | '~')) || tokens.word(after) == "to";
    match tokens.number(after + 1) {
        Some(last) if is_range && last.whole >= first.whole => Some((last, after + 2)),
        _ => Some((first, after)),
    }
}

/// Groups of three digits behind commas, or a decimal comma. An endless row of groups is no amount.
fn with_commas(tokens: &Tokens<'_>, mut number: Number, mut at: usize) -> (Number, usize) {
    let last = at + 2 * MAX_GROUPS;
    while at < last && !number.point && tokens.is_sign(at, ',') && tokens.glued(at) && tokens.glued(at + 1) {
        let Some(group) = tokens.number(at + 1) else { break };
        match group.digits {
            3 => number.whole = number.whole.saturating_mul(1_000).saturating_add(group.whole),
            1 if !group.point => number.nanos = u32::try_from(group.whole).unwrap_or(0) * 100_000_000,
            2 if !group.point => number.nanos = u32::try_from(group.whole).unwrap_or(0) * 10_000_000,
            _ => break,
        }
        number.point = group.digits != 3 || group.point;
        at += 2;
    }
    (number, at)
}

fn worded_amount_at(tokens: &Tokens<'_>, at: usize) -> Option<(Number, usize)> {
    let halves = words::halves(tokens.word(at))?;
    let is_article = matches!(tokens.word(at + 1), "a" | "an");
    let after = if halves == 1 && is_article { at + 2 } else { at + 1 };
    let nanos = if halves % 2 == 1 { 500_000_000 } else { 0 };
    Some((Number { whole: halves / 2, digits: 1, nanos, point: nanos > 0 }, after))
}

fn skip_joiner(tokens: &Tokens<'_>, at: usize) -> usize {
    let at = if tokens.is_sign(at, ',') { at + 1 } else { at };
    if matches!(tokens.word(at), "and" | "und" | "et" | "y" | "e" | "と") { at + 1 } else { at }
}

/// `3h20`, `5m30`: the last unit is left out.
fn rest_without_unit(tokens: &Tokens<'_>, at: usize, unit: Unit) -> Option<(u128, usize)> {
    let next = match unit {
        Unit::Hour => Unit::Minute,
        Unit::Minute => Unit::Second,
        _ => return None,
    };
    let number = tokens.number(at).filter(|n| tokens.glued(at) && n.digits == 2 && n.whole < 60)?;
    let stands_alone = !tokens.glued(at + 1) || tokens.sign(at + 1).is_some_and(|sign| sign != ':');
    stands_alone.then(|| (amount_of(number, next), at + 1))
}

/// `05:12:30`. Not part of [`duration_at`]: behind "at" the same signs are a time of day.
pub(super) fn hours_minutes_seconds_at(tokens: &Tokens<'_>, at: usize) -> Option<(Duration, usize)> {
    let hours = tokens.number(at).filter(|n| !n.point)?;
    let minutes = tokens.whole(at + 2, 2..=2).filter(|m| *m < 60)?;
    let seconds = tokens.number(at + 4).filter(|n| n.digits == 2 && n.whole < 60)?;
    let colons = [at + 1, at + 3].iter().all(|&colon| tokens.is_sign(colon, ':') && tokens.glued(colon));
    let total = amount_of(hours, Unit::Hour)
        .saturating_add(u128::from(minutes) * Unit::Minute.nanos())
        .saturating_add(amount_of(seconds, Unit::Second));
    (colons && !tokens.is_sign(at + 5, ':')).then(|| (clamped(total), at + 5))
}

/// ISO 8601: `PT1H5M`, `P1DT2H`.
fn iso_at(tokens: &Tokens<'_>, at: usize) -> Option<(Duration, usize)> {
    let mut in_time = match tokens.word(at) {
        "p" => false,
        "pt" => true,
        _ => return None,
    };
    let (mut total, mut end) = (0_u128, at + 1);
    while let Some(number) = tokens.number(end).filter(|_| tokens.glued(end) && tokens.glued(end + 1)) {
        let (letter, time_follows) = match tokens.word(end + 1) {
            "t" => return None,
            word => word.strip_suffix('t').map_or((word, false), |letter| (letter, true)),
        };
        total = total.saturating_add(amount_of(number, iso_unit(letter, in_time)?));
        in_time |= time_follows;
        end += 2;
    }
    (end > at + 1).then(|| (clamped(total), end))
}

fn iso_unit(letter: &str, in_time: bool) -> Option<Unit> {
    Some(match (letter, in_time) {
        ("y", false) => Unit::Year,
        ("m", false) => Unit::Month,
        ("w", false) => Unit::Week,
        ("d", false) => Unit::Day,
        ("h", true) => Unit::Hour,
        ("m", true) => Unit::Minute,
        ("s", true) => Unit::Second,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_in_all_spellings() {
        let table: &[(&str, f64)] = &[
            ("22m55s", 1375.0),
            ("1h 5m", 3900.0),
            ("2 days 17 hours", 234_000.0),
            ("644ms", 0.644),
            ("59.70s", 59.7),
            ("1h0m0s", 3600.0),
            ("05:12:30", 18750.0),
            ("PT1H5M", 3900.0),
            ("P1DT2H", 93_600.0),
            ("PT0.5S", 0.5),
            ("P1W", 604_800.0),
            ("1.5 hours", 5400.0),
            ("an hour", 3600.0),
            ("half an hour", 1800.0),
            ("1 hour and 5 minutes", 3900.0),
            ("2 hours, 10 minutes", 7800.0),
            ("2 hours, and 10 minutes", 7800.0),
            ("86,400 seconds", 86_400.0),
            ("1,5 Stunden", 5400.0),
            ("30秒", 30.0),
            ("5分", 300.0),
            ("5分钟", 300.0),
            ("3時間20分", 12_000.0),
            ("2小时", 7200.0),
            ("2小時", 7200.0),
            ("1時10分", 4200.0),
            ("3日", 259_200.0),
            ("3天", 259_200.0),
            ("2日間", 172_800.0),
            ("1週間", 604_800.0),
            ("2周", 1_209_600.0),
            ("1時間半", 5400.0),
            ("半小时", 1800.0),
            ("30초", 30.0),
            ("5분", 300.0),
            ("3시간 20분", 12_000.0),
            ("2일", 172_800.0),
            ("1주", 604_800.0),
            ("20 Sekunden", 20.0),
            ("5 Minuten", 300.0),
            ("2 Stunden", 7200.0),
            ("3 Tagen", 259_200.0),
            ("2 Wochen", 1_209_600.0),
            ("2 Stunden und 5 Minuten", 7500.0),
            ("20 secondes", 20.0),
            ("3 heures", 10_800.0),
            ("2 jours", 172_800.0),
            ("1 semaine", 604_800.0),
            ("une heure", 3600.0),
            ("20 segundos", 20.0),
            ("5 minutos", 300.0),
            ("2 horas", 7200.0),
            ("3 días", 259_200.0),
            ("3 dias", 259_200.0),
            ("2 semanas", 1_209_600.0),
            ("1 hora y 5 minutos", 3900.0),
            ("1 hora e 5 minutos", 3900.0),
            ("5 s", 5.0),
            ("5sec", 5.0),
            ("5 secs", 5.0),
            ("5 mins", 300.0),
            ("5 hrs", 18_000.0),
            ("1 wk", 604_800.0),
            ("3d", 259_200.0),
            ("250us", 0.000_25),
            ("250µs", 0.000_25),
            ("250 ns", 0.000_000_25),
            ("3h20", 12_000.0),
            ("1-2 minutes", 120.0),
            ("5 to 10 s", 10.0),
            ("  6m0s \n", 360.0),
            ("2h\n10m", 7800.0),
            ("５分", 300.0),
            ("0s", 0.0),
            ("120m0s", 7200.0),
        ];
        for (text, seconds) in table {
            assert_eq!(parse_duration(text), Some(Duration::from_secs_f64(*seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length() {
        let table = [
            "", "90", "12:30", "-5s", "5s ago", "a few seconds", "m", "5x", "5m 1h", "P", "PT", "PTH", "P1H",
            "1:2:3", "05:72:30", "5 5 s", "s5", "hours",
        ];
        for text in table {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn absurd_lengths_are_clamped() {
        for text in ["99999999999999999999 seconds", "99999999999999999999 years 99999999999999999999 weeks"]
        {
            assert_eq!(parse_duration(text), Some(MAX_WAIT), "{text}");
        }
        assert_eq!(parse_duration(&format!("{}h", "9".repeat(10_000))), Some(MAX_WAIT));
    }

    #[test]
    fn the_short_form() {
        let table: &[(u64, &str)] = &[
            (234_000_000, "2d 17h"),
            (1_375_000, "22m 55s"),
            (644, "644ms"),
            (0, "0s"),
            (1_500, "1s 500ms"),
        ];
        for (millis, text) in table {
            assert_eq!(print_duration(Duration::from_millis(*millis)), *text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn what_is_printed_is_read_back(millis in 0_u64..=366 * 86_400_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&print_duration(duration)), Some(duration));
        }
    }
}
