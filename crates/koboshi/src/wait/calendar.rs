//! Dates and times of day: `July 3, 2026 at 2:45 PM`, `2026-02-04 08:00`, `2月4日 8時`, `tomorrow at 3pm`.
//!
//! This file only reads what is written into a [`DayTime`]; which instant that is depends on the time of
//! reading and is decided by [`super::resolve`]. Day, time and zone are each optional and may come in
//! either order, which covers the spellings of eight languages with one small grammar.
//!
//! A bare hour (`at 5`) is no time: too many other things are numbers. Dates with a two-digit year are not
//! read for the same reason. `02/04/2026` is month first unless that cannot be.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::hour::hour_at;
use super::token::Tokens;
use super::words;
use super::zone::zone_at;

/// Which day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Day {
    /// Not said: the next day on which the time comes.
    Next,
    /// A date.
    Date(Date),
    /// A date without a year: month and day.
    Yearly(i8, i8),
    /// A day of the week.
    Weekday(Weekday),
    /// This many days from today.
    FromToday(i8),
}

/// A day, a time or both, as written.
#[derive(Debug, Clone)]
pub(super) struct DayTime {
    pub day: Day,
    /// The time of day; 24:00 is midnight with `late` set.
    pub time: Option<Time>,
    /// The time belongs to the end of the day: 24:00.
    pub late: bool,
    pub zone: Option<TimeZone>,
    /// Nothing but `05:12:30` was written, which behind "in" is a length.
    pub bare_clock: bool,
}

/// What surrounds the expression, as far as reading it depends on that.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextContext<'a> {
    pub zones: &'a TimeZoneDatabase,
    /// A word such as "à" precedes, so `8h` is a time of day.
    pub hour_sign: bool,
}

/// The date or time that begins at a token, and the token behind it.
pub(super) fn when_at(tokens: &Tokens<'_>, at: usize, around: TextContext<'_>) -> Option<(DayTime, usize)> {
    let (zone, start) = leading_zone_at(tokens, at, around);
    let (mut when, end) =
        day_first_at(tokens, start, around).or_else(|| time_first_at(tokens, start, around))?;
    when.bare_clock &= zone.is_none() && when.zone.is_none();
    when.zone = when.zone.or(zone);
    Some((when, end))
}

/// `UTC 00:00`, `北京时间 8:00`.
fn leading_zone_at(tokens: &Tokens<'_>, at: usize, around: TextContext<'_>) -> (Option<TimeZone>, usize) {
    let word = tokens.word(at);
    let can_lead = matches!(word, "utc" | "gmt") || !word.is_ascii();
    match can_lead.then(|| zone_at(tokens, at, around.zones)).flatten() {
        Some((zone, end)) => (Some(zone), end),
        None => (None, at),
    }
}

fn day_first_at(tokens: &Tokens<'_>, at: usize, around: TextContext<'_>) -> Option<(DayTime, usize)> {
    let (mut day, day_end) = day_at(tokens, at)?;
    let (time_start, hour_sign) = skip_joiners(tokens, day_end);
    let around = TextContext { hour_sign, ..around };
    let Some((hour, mut end)) = hour_at(tokens, time_start, around.hour_sign) else {
        let (zone, end) = trailing_zone_at(tokens, day_end, around);
        return Some((DayTime { day, time: None, late: false, zone, bare_clock: false }, end));
    };
    let (zone, after_zone) = trailing_zone_at(tokens, end, around);
    end = after_zone;
    if let (Day::Yearly(month, date), Some(year)) = (day, year_at(tokens, end)) {
        // The old C form puts the year last: "Sun Nov 15 12:00:10 2026".
        if let Some(with_year) = date_of(year, month, date) {
            (day, end) = (with_year, end + 1);
        }
    }
    Some((DayTime { day, time: Some(hour.time), late: hour.late, zone, bare_clock: false }, end))
}

fn time_first_at(tokens: &Tokens<'_>, at: usize, around: TextContext<'_>) -> Option<(DayTime, usize)> {
    let (hour, hour_end) = hour_at(tokens, at, around.hour_sign)?;
    let (mut zone, zone_end) = trailing_zone_at(tokens, hour_end, around);
    let mut when =
        DayTime { day: Day::Next, time: Some(hour.time), late: hour.late, zone: None, bare_clock: hour.bare };
    let mut end = zone_end;
    if let Some((day, day_end)) = following_day_at(tokens, zone_end) {
        (when.day, when.bare_clock, end) = (day, false, day_end);
        if zone.is_none() {
            (zone, end) = trailing_zone_at(tokens, day_end, around);
        }
    }
    when.zone = zone;
    Some((when, end))
}

/// `5pm tomorrow`, `5pm on July 3`, `17:10 Uhr am 3. Februar`.
fn following_day_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let comma = usize::from(tokens.is_sign(at, ','));
    let has_word = matches!(tokens.word(at + comma), "on" | "am" | "le" | "el" | "de" | "em" | "of");
    let start = at + comma + usize::from(has_word);
    // Without a word between them a date on a new line is likelier the stamp of the next log line.
    if !has_word && tokens.gap(start) == super::token::Gap::Line {
        return None;
    }
    day_at(tokens, start)
}

fn trailing_zone_at(tokens: &Tokens<'_>, at: usize, around: TextContext<'_>) -> (Option<TimeZone>, usize) {
    let start = if matches!(tokens.word(at), "in") && tokens.gap(at) == super::token::Gap::Space {
        at + 1
    } else {
        at
    };
    match zone_at(tokens, start, around.zones) {
        Some((zone, end)) => (Some(zone), end),
        None => (None, at),
    }
}

/// The signs and words between a day and a time; whether one of them makes `8h` a time.
fn skip_joiners(tokens: &Tokens<'_>, mut at: usize) -> (usize, bool) {
    let mut hour_sign = false;
    for _ in 0..4 {
        let word = tokens.word(at);
        let is_sign = matches!(tokens.sign(at), Some(',' | '@' | '-' | '–' | '·'));
        let is_hour_word = matches!(word, "a" | "as" | "las" | "la");
        if !is_sign && !is_hour_word && !matches!(word, "at" | "um" | "t" | "の" | "by" | "around" | "gegen")
        {
            break;
        }
        hour_sign |= is_hour_word;
        at += 1;
    }
    (at, hour_sign)
}

fn day_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    if let Some(weekday) = words::weekday(tokens.word(at)) {
        let dot_or_comma =
            usize::from(matches!(tokens.sign(at + 1), Some(',' | '.')) && date_at(tokens, at + 2).is_some());
        let next = at + 1 + dot_or_comma;
        return Some(date_at(tokens, next).unwrap_or((Day::Weekday(weekday), at + 1)));
    }
    if let Some(days) = words::day_offset(tokens.word(at)) {
        return Some((Day::FromToday(days), at + 1));
    }
    let (day, end) = date_at(tokens, at)?;
    Some((day, skip_weekday_note(tokens, end)))
}

/// `2月4日(水)`.
fn skip_weekday_note(tokens: &Tokens<'_>, at: usize) -> usize {
    let is_note = tokens.is_sign(at, '(') && tokens.is_sign(at + 2, ')');
    let word = tokens.word(at + 1);
    let is_weekday =
        words::weekday(word).is_some() || "月火水木金土日一二三四五六월화수목금토일".contains(word);
    if is_note && is_weekday && !word.is_empty() { at + 3 } else { at }
}

fn date_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    month_first_at(tokens, at)
        .or_else(|| day_month_at(tokens, at))
        .or_else(|| year_first_at(tokens, at))
        .or_else(|| signs_at(tokens, at))
        .or_else(|| cjk_date_at(tokens, at))
}

/// `July 3, 2026`, `Nov. 19th`.
fn month_first_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let month = words::month(tokens.word(at))?;
    let at = at + 1 + usize::from(tokens.is_sign(at + 1, '.'));
    let day = small(tokens, at)?;
    let is_clock = tokens.is_sign(at + 1, ':') && tokens.glued(at + 1);
    if is_clock {
        return None;
    }
    with_year(tokens, month, day, skip_ordinal(tokens, at + 1))
}

/// `3 July 2026`, `3. Februar`, `3 de febrero de 2026`, `1er mars`, `15-Nov-2026`.
fn day_month_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let day = small(tokens, at)?;
    let mut at = skip_ordinal(tokens, at + 1);
    if matches!(tokens.sign(at), Some('.' | '-')) || matches!(tokens.word(at), "de" | "of") {
        at += 1;
    }
    let month = words::month(tokens.word(at))?;
    // The point of `10 de jul. de 2026` belongs to the month; the one of `3 July.` ends the sentence.
    let goes_on = tokens.number(at + 2).is_some()
        || matches!(tokens.word(at + 2), "de" | "of" | "um" | "a" | "à" | "às");
    let is_abbreviated = tokens.is_sign(at + 1, '.') && goes_on;
    with_year(tokens, month, day, at + 1 + usize::from(is_abbreviated))
}

fn skip_ordinal(tokens: &Tokens<'_>, at: usize) -> usize {
    let is_ordinal = tokens.glued(at) && matches!(tokens.word(at), "st" | "nd" | "rd" | "th" | "er" | "o");
    at + usize::from(is_ordinal)
}

/// The year behind month and day, if there is one.
fn with_year(tokens: &Tokens<'_>, month: i8, day: i8, at: usize) -> Option<(Day, usize)> {
    let has_joiner = matches!(tokens.sign(at), Some(',' | '-')) || matches!(tokens.word(at), "de" | "of");
    for start in [at + usize::from(has_joiner), at] {
        if let Some(year) = year_at(tokens, start) {
            return Some((date_of(year, month, day)?, start + 1));
        }
    }
    // A leap day is a date too, so it is checked against a leap year.
    Date::new(2024, month, day).ok()?;
    Some((Day::Yearly(month, day), at))
}

fn year_at(tokens: &Tokens<'_>, at: usize) -> Option<i16> {
    let year = tokens.whole(at, 4..=4).filter(|year| (1970..=2200).contains(year))?;
    let is_other = tokens.glued(at + 1) && matches!(tokens.sign(at + 1), Some(':' | '-' | '/'));
    if is_other { None } else { i16::try_from(year).ok() }
}

/// `2026-02-04`, `2026/02/04`.
fn year_first_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let year = tokens.whole(at, 4..=4)?;
    let sign = tokens.sign(at + 1).filter(|sign| matches!(sign, '-' | '/' | '.'))?;
    let (month, day) = (small(tokens, at + 2)?, small(tokens, at + 4)?);
    let is_one = (at + 1..at + 5).all(|part| tokens.glued(part)) && tokens.is_sign(at + 3, sign);
    if !is_one {
        return None;
    }
    Some((date_of(i16::try_from(year).ok()?, month, day)?, at + 5))
}

/// `03.02.2026` is day first, `02/04/2026` month first unless that is impossible.
fn signs_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let sign = tokens.sign(at + 1).filter(|sign| matches!(sign, '.' | '/'))?;
    let (first, second) = (small(tokens, at)?, small(tokens, at + 2)?);
    let year = year_at(tokens, at + 4)?;
    let is_one = (at + 1..at + 5).all(|part| tokens.glued(part)) && tokens.is_sign(at + 3, sign);
    if !is_one {
        return None;
    }
    let day_first = date_of(year, second, first);
    let month_first = date_of(year, first, second);
    let day = if sign == '/' { month_first.or(day_first) } else { day_first };
    Some((day?, at + 5))
}

/// `2026年2月4日`, `2月4日`, `2026년 2월 4일`.
fn cjk_date_at(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let has_year = matches!(tokens.word(at + 1), "年" | "년");
    let start = if has_year { at + 2 } else { at };
    let (month, day) = (small(tokens, start)?, small(tokens, start + 2)?);
    let is_date = matches!(tokens.word(start + 1), "月" | "월")
        && matches!(tokens.word(start + 3), "日" | "号" | "號" | "일");
    if !is_date {
        return None;
    }
    if has_year {
        let year = i16::try_from(tokens.whole(at, 4..=4)?).ok()?;
        return Some((date_of(year, month, day)?, start + 4));
    }
    Date::new(2024, month, day).ok()?;
    Some((Day::Yearly(month, day), start + 4))
}

fn date_of(year: i16, month: i8, day: i8) -> Option<Day> {
    Date::new(year, month, day).ok().map(Day::Date)
}

/// A number of one or two digits.
pub(super) fn small(tokens: &Tokens<'_>, at: usize) -> Option<i8> {
    tokens.whole(at, 1..=2).and_then(|number| i8::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Day, Option<String>, usize)> {
        let zones = TimeZoneDatabase::bundled();
        let tokens = Tokens::of(text);
        let (when, end) = when_at(&tokens, 0, TextContext { zones: &zones, hour_sign: false })?;
        Some((when.day, when.time.map(|time| time.to_string()), tokens.len() - end))
    }

    fn date(year: i16, month: i8, day: i8) -> Day {
        Day::Date(Date::constant(year, month, day))
    }

    #[test]
    fn dates_in_all_spellings() {
        let table = [
            ("July 3, 2026 at 2:45 PM", date(2026, 7, 3), "14:45:00"),
            ("May 30, 2026, 4:12 PM", date(2026, 5, 30), "16:12:00"),
            ("Nov 19th, 2026 6:44 AM", date(2026, 11, 19), "06:44:00"),
            ("Nov 19, 6:47am (UTC)", Day::Yearly(11, 19), "06:47:00"),
            ("Apr 19, 2026, 12:08 AM", date(2026, 4, 19), "00:08:00"),
            ("3 July 2026 14:45", date(2026, 7, 3), "14:45:00"),
            ("2026-02-04 08:00", date(2026, 2, 4), "08:00:00"),
            ("2026/02/04 08:00", date(2026, 2, 4), "08:00:00"),
            ("2026-02-02T00:00:00+09:00", date(2026, 2, 2), "00:00:00"),
            ("2026-02-02T00:00:00.250Z", date(2026, 2, 2), "00:00:00.25"),
            ("Sun, 15 Nov 2026 12:00:10 GMT", date(2026, 11, 15), "12:00:10"),
            ("Sun Nov 15 12:00:10 2026", date(2026, 11, 15), "12:00:10"),
            ("Sunday, 15-Nov-2026 12:00:10 GMT", date(2026, 11, 15), "12:00:10"),
            ("2026年2月4日 08:00", date(2026, 2, 4), "08:00:00"),
            ("2月4日 8時", Day::Yearly(2, 4), "08:00:00"),
            ("2月4日(水) 午後8時", Day::Yearly(2, 4), "20:00:00"),
            ("2026년 2월 4일 08:00", date(2026, 2, 4), "08:00:00"),
            ("3. Februar 2026 um 17:10", date(2026, 2, 3), "17:10:00"),
            ("03.02.2026 um 17:10 Uhr", date(2026, 2, 3), "17:10:00"),
            ("02/03/2026 5pm", date(2026, 2, 3), "17:00:00"),
            ("23/02/2026 5pm", date(2026, 2, 23), "17:00:00"),
            ("3 février à 17h10", Day::Yearly(2, 3), "17:10:00"),
            ("1er mars à 8h", Day::Yearly(3, 1), "08:00:00"),
            ("3 de febrero de 2026 a las 17:10", date(2026, 2, 3), "17:10:00"),
            ("10 de jul. de 2026, 11:52", date(2026, 7, 10), "11:52:00"),
            ("3 de febrero a las 17:10", Day::Yearly(2, 3), "17:10:00"),
            ("3 de fevereiro às 17:10", Day::Yearly(2, 3), "17:10:00"),
            ("tomorrow at 3pm", Day::FromToday(1), "15:00:00"),
            ("today at 5 p.m.", Day::FromToday(0), "17:00:00"),
            ("Monday at 9am", Day::Weekday(Weekday::Monday), "09:00:00"),
            ("Mon 9:00 AM", Day::Weekday(Weekday::Monday), "09:00:00"),
            ("明日 8:00", Day::FromToday(1), "08:00:00"),
            ("明天 8:00", Day::FromToday(1), "08:00:00"),
            ("내일 오전 8시", Day::FromToday(1), "08:00:00"),
            ("demain à 8h", Day::FromToday(1), "08:00:00"),
            ("5pm tomorrow", Day::FromToday(1), "17:00:00"),
            ("12:00 AM UTC on Jul 3, 2026", date(2026, 7, 3), "00:00:00"),
            ("Feb 29 5pm", Day::Yearly(2, 29), "17:00:00"),
        ];
        for (text, day, time) in table {
            assert_eq!(read(text), Some((day, Some(time.to_owned()), 0)), "{text}");
        }
        assert_eq!(read("2026-02-04"), Some((date(2026, 2, 4), None, 0)));
        assert_eq!(read("내일"), Some((Day::FromToday(1), None, 0)));
    }

    #[test]
    fn times_in_all_spellings() {
        let table = [
            ("5:10pm", "17:10:00"),
            ("5pm", "17:00:00"),
            ("5 pm", "17:00:00"),
            ("5:10 PM", "17:10:00"),
            ("9:23\u{202f}PM", "21:23:00"),
            ("9:23\u{a0}PM", "21:23:00"),
            ("12am", "00:00:00"),
            ("12 pm", "12:00:00"),
            ("noon", "12:00:00"),
            ("12 noon", "12:00:00"),
            ("12 midnight", "00:00:00"),
            ("midnight", "00:00:00"),
            ("17:10", "17:10:00"),
            ("17:10:05", "17:10:05"),
            ("3am", "03:00:00"),
            ("17 Uhr", "17:00:00"),
            ("17:10 Uhr", "17:10:00"),
            ("17 Uhr 10", "17:10:00"),
            ("午後5時10分", "17:10:00"),
            ("17時10分", "17:10:00"),
            ("5時", "05:00:00"),
            ("下午5点10分", "17:10:00"),
            ("下午5点半", "17:30:00"),
            ("오후 5시 10분", "17:10:00"),
            ("上午8:00", "08:00:00"),
            ("午前12時", "00:00:00"),
            ("24:00", "00:00:00"),
            ("1:30 a.m.", "01:30:00"),
        ];
        for (text, time) in table {
            assert_eq!(read(text), Some((Day::Next, Some(time.to_owned()), 0)), "{text}");
        }
    }

    #[test]
    fn the_hour_sign_needs_its_word() {
        let zones = TimeZoneDatabase::bundled();
        for (text, time) in [("17h10", "17:10:00"), ("17 h 10", "17:10:00"), ("8h", "08:00:00")] {
            let tokens = Tokens::of(text);
            let at = |hour_sign| when_at(&tokens, 0, TextContext { zones: &zones, hour_sign });
            assert_eq!(at(true).unwrap().0.time.unwrap().to_string(), time, "{text}");
            assert!(at(false).is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in
            ["5", "2026-13-04", "Feb 30", "25:00", "5:7", "5 x", "May", "2026", "12:60", "", "5 m", "24:01"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
