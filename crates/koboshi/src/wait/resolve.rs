//! From a day and a time as written to the instant that is meant.
//!
//! The rules: a time without a day is the next such time, a day of the week the next such day, a date
//! without a year the next such date; a full date that has passed is a wait of zero. A time that a clock
//! change skips is the first instant after it; one that comes twice is the earlier one that is still ahead.
//!
//! A date without a year whose day is *today* stays today even if its time has passed: a message that is
//! read a minute late must not become a wait of a year.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use super::calendar::{Day, DayTime};
use super::{Clock, Form, Wait, WaitZone};

/// The instant meant by `when`, as a wait.
pub(super) fn resolve(when: &DayTime, clock: Clock<'_>) -> Option<Wait> {
    let zone = when.zone.clone().unwrap_or_else(|| clock.now.time_zone().clone());
    let frame =
        Frame { now: clock.now.timestamp(), today: clock.now.with_time_zone(zone.clone()).date(), zone };
    let time = when.time.unwrap_or(Time::midnight());
    let shift = i8::from(when.late);
    let until = match when.day {
        Day::Next => frame.first_ahead(time, shift, 0, 1),
        Day::FromToday(days) => frame.instant(frame.days_ahead(i64::from(days) + i64::from(shift))?, time),
        Day::Weekday(weekday) => {
            let days = i64::from(frame.today.weekday().until(weekday));
            frame.first_ahead(time, shift, days, 7)
        }
        Day::Date(date) => frame.instant(later(date, i64::from(shift))?, time),
        Day::Yearly(month, day) => {
            frame.instant(later(frame.next_date(month, day)?, i64::from(shift))?, time)
        }
    }?;
    let form = if when.time.is_some() { Form::Instant } else { Form::Day };
    let zone = match when.zone {
        Some(_) => WaitZone::Stated(frame.zone.to_offset(until)),
        None => WaitZone::Assumed,
    };
    Some(Wait { zone, ..Wait::until(until, form, clock) })
}

/// The last such time up to now: when a line that is stamped with it was written. A full date may lie ahead.
pub(super) fn last_before(when: &DayTime, clock: Clock<'_>) -> Option<Timestamp> {
    let zone = when.zone.clone().unwrap_or_else(|| clock.now.time_zone().clone());
    let frame =
        Frame { now: clock.now.timestamp(), today: clock.now.with_time_zone(zone.clone()).date(), zone };
    let time = when.time?;
    let has_come = |instant: &Timestamp| *instant <= frame.now;
    match when.day {
        Day::Date(date) => frame.instant(date, time),
        Day::Next => (0..3).filter_map(|back| frame.instant(frame.days_ahead(-back)?, time)).find(has_come),
        Day::Yearly(month, day) => (0..9)
            .filter_map(|years| {
                let date = Date::new(frame.today.year().checked_sub(years)?, month, day).ok()?;
                frame.instant(date, time)
            })
            .find(has_come),
        Day::Weekday(_) | Day::FromToday(_) => None,
    }
}

/// Where and when the words are read.
struct Frame {
    now: Timestamp,
    today: Date,
    zone: TimeZone,
}

impl Frame {
    fn days_ahead(&self, days: i64) -> Option<Date> {
        later(self.today, days)
    }

    /// The first of the days `first`, `first + step`, … from today on which the time is still ahead.
    fn first_ahead(&self, time: Time, shift: i8, first: i64, step: i64) -> Option<Timestamp> {
        (0..3)
            .filter_map(|turn| self.instant(self.days_ahead(first + i64::from(shift) + turn * step)?, time))
            .find(|instant| *instant > self.now)
    }

    /// This year's date, or next year's if it has passed; a leap day waits for its year.
    fn next_date(&self, month: i8, day: i8) -> Option<Date> {
        (0..9)
            .filter_map(|years| Date::new(self.today.year().checked_add(years)?, month, day).ok())
            .find(|date| *date >= self.today)
    }

    fn instant(&self, date: Date, time: Time) -> Option<Timestamp> {
        let wall = date.to_datetime(time);
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { before, .. } => self.end_of_gap(before.to_timestamp(wall).ok()?),
            AmbiguousOffset::Fold { before, after } => self.of_two(wall, before, after),
        }
    }

    /// The clock change behind a skipped time: the last one up to where the old offset would have put it.
    fn end_of_gap(&self, old_reckoning: Timestamp) -> Option<Timestamp> {
        let just_after = old_reckoning.checked_add(Span::new().nanoseconds(1)).ok()?;
        self.zone.preceding(just_after).next().map(|change| change.timestamp())
    }

    fn of_two(&self, wall: DateTime, before: jiff::tz::Offset, after: jiff::tz::Offset) -> Option<Timestamp> {
        let earlier = before.to_timestamp(wall).ok()?;
        let later = after.to_timestamp(wall).ok()?;
        Some(if earlier > self.now { earlier } else { later })
    }
}

fn later(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::calendar::{TextContext, when_at};
    use crate::wait::token::Tokens;
    use jiff::tz::TimeZoneDatabase;

    fn seconds(text: &str, now: &str, zone: &str) -> Option<u64> {
        let zones = TimeZoneDatabase::bundled();
        let now = now.parse::<Timestamp>().unwrap().to_zoned(zones.get(zone).unwrap());
        let clock = Clock { now: &now, zones: &zones };
        let (when, _) = when_at(&Tokens::of(text), 0, TextContext { zones: &zones, hour_sign: false })?;
        resolve(&when, clock).map(|wait| wait.after.as_secs())
    }

    #[test]
    fn a_wait_says_whether_its_zone_was_stated_or_assumed() {
        let zones = TimeZoneDatabase::bundled();
        let now = "2026-11-15T12:00:00[Asia/Tokyo]".parse().unwrap();
        let clock = Clock { now: &now, zones: &zones };
        let zone = |text: &str| {
            let (when, _) =
                when_at(&Tokens::of(text), 0, TextContext { zones: &zones, hour_sign: false }).unwrap();
            resolve(&when, clock).unwrap().zone
        };
        assert_eq!(zone("5pm"), WaitZone::Assumed);
        assert_eq!(zone("2026-11-16"), WaitZone::Assumed);
        assert_eq!(zone("5pm (Europe/Paris)"), WaitZone::Stated(jiff::tz::offset(1)));
        assert_eq!(zone("2026-07-03 08:00 (Europe/Paris)"), WaitZone::Stated(jiff::tz::offset(2)));
        assert_eq!(zone("5pm (Mars/Olympus)"), WaitZone::Assumed, "an unknown zone is none");
    }

    #[test]
    fn the_next_such_time() {
        let table = [
            ("5:10pm", "2026-11-15T12:00:00Z", "UTC", 18_600),
            ("5:10am", "2026-11-15T12:00:00Z", "UTC", 61_800),
            ("12pm", "2026-11-15T12:00:00Z", "UTC", 86_400),
            ("5:10pm (Europe/Paris)", "2026-11-15T12:00:00Z", "UTC", 15_000),
            ("5pm", "2026-11-15T12:00:00Z", "Europe/Paris", 14_400),
            ("7am (Etc/GMT-9)", "2026-11-15T12:00:00Z", "UTC", 36_000),
            ("midnight Pacific", "2026-08-20T03:13:00Z", "UTC", 13_620),
            ("24:00", "2026-11-15T12:00:00Z", "UTC", 43_200),
            ("5pm (Mars/Olympus)", "2026-11-15T12:00:00Z", "UTC", 18_000),
        ];
        for (text, now, zone, expected) in table {
            assert_eq!(seconds(text, now, zone), Some(expected), "{text} {zone}");
        }
    }

    #[test]
    fn days_of_the_week_and_dates() {
        // 2026-11-15 is a Sunday.
        let table = [
            ("Monday at 9am", 75_600),
            ("Sunday at 9am", 7 * 86_400 - 10_800),
            ("Sunday at 3pm", 10_800),
            ("Sunday", 7 * 86_400 - 43_200),
            ("today at 5pm", 18_000),
            ("today at 5am", 0),
            ("tomorrow at 3pm", 97_200),
            ("Nov 19, 6:47am (UTC)", 3 * 86_400 + 67_620),
            ("Nov 15, 6:47am", 0),
            ("Nov 14, 12:00", 364 * 86_400),
            ("2026-11-14 12:00", 0),
            ("2026-11-16", 43_200),
            ("November 16", 43_200),
            ("2099-01-01", 366 * 86_400),
        ];
        for (text, expected) in table {
            assert_eq!(seconds(text, "2026-11-15T12:00:00Z", "UTC"), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_leap_day_waits_for_its_year() {
        assert_eq!(seconds("Feb 29 at noon", "2028-02-28T12:00:00Z", "UTC"), Some(86_400));
        assert_eq!(seconds("Feb 29 at noon", "2027-02-28T12:00:00Z", "UTC"), Some(366 * 86_400));
    }

    #[test]
    fn a_skipped_time_is_the_first_instant_after_the_change() {
        // New York springs forward at 07:00 UTC on 2026-03-08: 02:30 does not exist.
        assert_eq!(seconds("2:30am", "2026-03-08T06:00:00Z", "America/New_York"), Some(3_600));
        assert_eq!(seconds("2:00am", "2026-03-08T06:00:00Z", "America/New_York"), Some(3_600));
        assert_eq!(seconds("3:00am", "2026-03-08T06:00:00Z", "America/New_York"), Some(3_600));
    }

    #[test]
    fn a_doubled_time_is_the_earlier_one_that_is_still_ahead() {
        // New York falls back at 06:00 UTC on 2026-11-01: 01:30 is at 05:30 UTC and again at 06:30 UTC.
        assert_eq!(seconds("1:30am", "2026-11-01T05:00:00Z", "America/New_York"), Some(1_800));
        assert_eq!(seconds("1:30am", "2026-11-01T05:45:00Z", "America/New_York"), Some(2_700));
        assert_eq!(seconds("1:30am", "2026-11-01T06:30:01Z", "America/New_York"), Some(86_399));
    }

    #[test]
    fn a_day_that_begins_late_begins_at_its_first_instant() {
        // Beirut skips midnight on the last Sunday of March.
        assert_eq!(seconds("2026-03-29", "2026-03-28T21:00:00Z", "Asia/Beirut"), Some(3_600));
    }
}
