//! Times of day: `5:10pm`, `17:10:05`, `noon`, `17 Uhr`, `17h10`, `午後5時10分`, `下午5点半`, `오후 5시`.
//!
//! A bare number is no time, and `8h` is one only where the caller knows that a time must stand: elsewhere it
//! is eight hours. The tests are with those of [`super::calendar`], whose grammar this is a part of.

use jiff::civil::Time;

use super::calendar::small;
use super::token::Tokens;
use super::words;

/// A time of day as written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hour {
    pub time: Time,
    /// It was written as 24:00 and belongs to the end of the day.
    pub late: bool,
    /// Nothing but `05:12:30` was written, which behind "in" is a length.
    pub bare: bool,
}

/// Two digits below sixty.
fn sixtieths(tokens: &Tokens<'_>, at: usize) -> Option<i8> {
    small(tokens, at).filter(|number| *number < 60)
}

/// The time of day that begins at a token, and the token behind it.
///
/// `hour_sign` says that a word such as "à" precedes, so `8h` is a time and not a length.
pub(super) fn hour_at(tokens: &Tokens<'_>, at: usize, hour_sign: bool) -> Option<(Hour, usize)> {
    if let Some(hour) = words::named_hour(tokens.word(at)) {
        return Some((hour_of(hour, 0, 0, 0)?, at + 1));
    }
    if let Some(hour) = words::named_hour(tokens.word(at + 1)).filter(|_| tokens.whole(at, 2..=2) == Some(12))
    {
        // "12 noon", "12 midnight": the number adds nothing.
        return Some((hour_of(hour, 0, 0, 0)?, at + 2));
    }
    let half = words::half_day(tokens.word(at));
    let start = at + usize::from(half.is_some());
    let hour = small(tokens, start).filter(|hour| *hour <= 24)?;
    let (minute, second, nanos, end, bare) = colon_rest_at(tokens, start)
        .or_else(|| sign_rest_at(tokens, start, hour_sign))
        .unwrap_or((0, 0, 0, start + 1, false));
    let said_alone = end == start + 1;
    let (half, after) = match half {
        Some(half) => (Some(half), end),
        None => half_behind(tokens, end, hour).map_or((None, end), |(half, after)| (Some(half), after)),
    };
    if said_alone && after == end {
        return None;
    }
    let after = skip_hour_note(tokens, after);
    let mut read = hour_of(in_half(hour, half), minute, second, nanos)?;
    read.bare = bare && after == end;
    Some((read, after))
}

/// Twelve-hour time as twenty-four-hour time; hours that need no half keep their value.
fn in_half(hour: i8, half: Option<bool>) -> i8 {
    match half {
        Some(false) if hour == 12 => 0,
        Some(true) if hour < 12 => hour + 12,
        _ => hour,
    }
}

fn hour_of(hour: i8, minute: i8, second: i8, nanos: i32) -> Option<Hour> {
    if hour == 24 {
        let is_midnight = minute == 0 && second == 0;
        return is_midnight.then_some(Hour { time: Time::midnight(), late: true, bare: false });
    }
    Some(Hour { time: Time::new(hour, minute, second, nanos).ok()?, late: false, bare: false })
}

type TimeTail = (i8, i8, i32, usize, bool);

/// `:10`, `:10:05`, `:10:05.250`.
fn colon_rest_at(tokens: &Tokens<'_>, hour: usize) -> Option<TimeTail> {
    let is_colon = |at: usize| tokens.is_sign(at, ':') && tokens.glued(at) && tokens.glued(at + 1);
    let has_two = |at: usize| tokens.number(at).is_some_and(|n| n.digits == 2);
    if !is_colon(hour + 1) || !has_two(hour + 2) {
        return None;
    }
    let minute = sixtieths(tokens, hour + 2)?;
    if !is_colon(hour + 3) || !has_two(hour + 4) {
        return Some((minute, 0, 0, hour + 3, false));
    }
    let seconds = tokens.number(hour + 4)?;
    // A leap second is written as 60; our clocks have none.
    let second = i8::try_from(seconds.whole.min(59)).ok()?;
    Some((minute, second, i32::try_from(seconds.nanos).ok()?, hour + 5, true))
}

/// `時10分`, `点半`, `시 10분`, `Uhr 10`, and behind "à" also `h10`.
fn sign_rest_at(tokens: &Tokens<'_>, hour: usize, hour_sign: bool) -> Option<TimeTail> {
    match tokens.word(hour + 1) {
        "時" | "时" | "点" | "點" | "点钟" | "點鐘" | "시" => Some(cjk_rest_at(tokens, hour + 2)),
        "uhr" => Some(plain_rest_at(tokens, hour + 2)),
        "h" | "heures" | "heure" | "horas" if hour_sign => Some(plain_rest_at(tokens, hour + 2)),
        _ => None,
    }
}

fn cjk_rest_at(tokens: &Tokens<'_>, at: usize) -> TimeTail {
    if matches!(tokens.word(at), "半" | "반") {
        return (30, 0, 0, at + 1, false);
    }
    let Some(minute) = sixtieths(tokens, at).filter(|_| matches!(tokens.word(at + 1), "分" | "분")) else {
        return (0, 0, 0, at, false);
    };
    match sixtieths(tokens, at + 2).filter(|_| matches!(tokens.word(at + 3), "秒" | "초")) {
        Some(second) => (minute, second, 0, at + 4, false),
        None => (minute, 0, 0, at + 2, false),
    }
}

fn plain_rest_at(tokens: &Tokens<'_>, at: usize) -> TimeTail {
    let is_minute = tokens.number(at).is_some_and(|n| n.digits == 2) && tokens.sign(at + 1) != Some(':');
    match sixtieths(tokens, at).filter(|_| is_minute) {
        Some(minute) => (minute, 0, 0, at + 1, false),
        None => (0, 0, 0, at, false),
    }
}

/// `am`, `PM`, `a.m.`; true is the afternoon.
fn half_behind(tokens: &Tokens<'_>, at: usize, hour: i8) -> Option<(bool, usize)> {
    let (half, end) = match tokens.word(at) {
        "am" => (false, at + 1),
        "pm" => (true, at + 1),
        "a" | "p" if tokens.is_sign(at + 1, '.') && tokens.word(at + 2) == "m" => {
            let dotted = tokens.is_sign(at + 3, '.') && tokens.glued(at + 3);
            (tokens.word(at) == "p", at + 3 + usize::from(dotted))
        }
        _ => return None,
    };
    // "17:10 am 3. Februar": no half of the day has a seventeenth hour, but a German sentence has an "am".
    (half || hour <= 12).then_some((half, end))
}

/// Words that may follow a time and add nothing: `17:10 Uhr`, `17:10 h`.
fn skip_hour_note(tokens: &Tokens<'_>, at: usize) -> usize {
    at + usize::from(matches!(tokens.word(at), "uhr" | "h" | "hrs" | "horas"))
}
