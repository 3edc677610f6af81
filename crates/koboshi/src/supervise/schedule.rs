//! A schedule in the form of cron: five fields, and the zone whose clock they mean.
//!
//! The fields are read and searched by a library, on a clock that never changes its offset; what a zone does to that clock is decided here,
//! with a database that the caller hands in. When the clock is set forward or back, a schedule for certain hours (`30 2 * * *`) comes once a
//! day: at the later time where its own does not exist, at the first where it comes twice. One that repeats (`*/10 * * * *`, `0 * * * *`)
//! follows the real time and goes on in its rhythm.
//!
//! *Not here*: whether a time that has passed is made up for. That is [`due`](super::due)'s.

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// No schedule is written with more.
const MAX_LENGTH: usize = 500;
/// The fields: minute, hour, day of the month, month, day of the week.
const FIELDS: usize = 5;
/// As often the clock may change before the next time; what is further away is not looked for.
const MAX_CHANGES: usize = 64;
/// The search adds years to its start, and the calendar ends in the year 9999.
const LAST_YEAR: i16 = 9000;

/// When something is to happen, again and again.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// As it was written.
    text: String,
    fields: Crontab,
    zone: TimeZone,
    /// It repeats within a day: real time counts, not what the clock shows.
    repeats: bool,
}

/// Two that were written alike and mean the same zone.
impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.zone == other.zone
    }
}

impl Eq for Schedule {}

/// Why a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// It does not have five fields.
    #[error(
        "a schedule has five fields (minute, hour, day of the month, month, day of the week), and a time zone behind them if it is not the local one"
    )]
    Fields,
    /// One of the fields cannot be read.
    #[error("{0}")]
    Field(String),
    /// There is no such zone.
    #[error("there is no time zone `{0}`")]
    Zone(String),
    /// No such day comes.
    #[error("no such time comes")]
    Never,
}

impl Schedule {
    /// Reads `0 3 * * 1-5` or `0 3 * * 1-5 Asia/Tokyo`; without a zone the local one is meant.
    ///
    /// # Errors
    /// It is no schedule, its zone is unknown, or its time never comes.
    pub fn parse(text: &str, zones: &TimeZoneDatabase, local: &TimeZone) -> Result<Self, ScheduleError> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (fields, zone) = match words.split_at_checked(FIELDS) {
            Some((fields, [])) if text.len() <= MAX_LENGTH => (fields, local.clone()),
            Some((fields, [name])) if text.len() <= MAX_LENGTH => {
                (fields, zones.get(name).map_err(|_| ScheduleError::Zone((*name).to_owned()))?)
            }
            _ => return Err(ScheduleError::Fields),
        };
        let repeats = fields.iter().take(2).any(|field| field.starts_with('*'));
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let fields = parse_crontab_with(&fields.join(" "), options)
            .map_err(|error| ScheduleError::Field(reason(&error.to_string())))?;
        let schedule = Self { text: words.join(" "), fields, zone, repeats };
        schedule.next_on_clock(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)).ok_or(ScheduleError::Never)?;
        Ok(schedule)
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The next time after this one.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if self.repeats { self.next_in_rhythm(after) } else { self.next_of_day(after) }
    }

    /// For certain hours: what the clock shows counts, and each time that it shows comes once.
    fn next_of_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut shown = self.zone.to_datetime(after);
        // Where the clock was set back, what it shows next may have been already.
        for _ in 0..MAX_CHANGES {
            shown = self.next_on_clock(shown)?;
            let next = self.zone.to_ambiguous_timestamp(shown).compatible().ok()?;
            if next > after {
                return Some(next);
            }
        }
        None
    }

    /// For a rhythm: the offset stays the same up to the next change of the clock, and there the search begins again.
    fn next_in_rhythm(&self, after: Timestamp) -> Option<Timestamp> {
        let mut changes = self.zone.following(after);
        let (mut from, mut offset) = (after, self.zone.to_offset(after));
        for _ in 0..MAX_CHANGES {
            let next = offset.to_timestamp(self.next_on_clock(offset.to_datetime(from))?).ok()?;
            let Some(change) = changes.next().filter(|change| change.timestamp() <= next) else {
                return Some(next);
            };
            // The minute of the change itself counts.
            from = change.timestamp().saturating_sub(SignedDuration::from_nanos(1)).ok()?;
            offset = change.offset();
        }
        None
    }

    /// The next time that a clock shows which is never set.
    fn next_on_clock(&self, after: DateTime) -> Option<DateTime> {
        if after.year() > LAST_YEAR {
            return None;
        }
        let next = self.fields.find_next(Offset::UTC.to_timestamp(after).ok()?).ok()?;
        Some(next.datetime())
    }
}

/// The last line of what the library says, without the sign that points at a place.
fn reason(said: &str) -> String {
    said.lines().last().unwrap_or_default().trim_start_matches([' ', '^']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(text: &str) -> Schedule {
        Schedule::parse(text, &TimeZoneDatabase::bundled(), &TimeZone::UTC).unwrap()
    }

    /// The next times, as the zone's clock shows them.
    fn times(text: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = schedule(text);
        let next = |at: &Timestamp| schedule.next(*at);
        std::iter::successors(next(&after.parse().unwrap()), next)
            .take(count)
            .map(|at| at.to_zoned(schedule.zone.clone()).strftime("%d %H:%M %z").to_string())
            .collect()
    }

    #[test]
    fn times_come_in_their_zone() {
        assert_eq!(times("0 3 * * *", "2026-01-01T03:00:00Z", 2), ["02 03:00 +0000", "03 03:00 +0000"]);
        assert_eq!(times("0 3 * * * Asia/Tokyo", "2026-01-01T00:00:00Z", 1), ["02 03:00 +0900"]);
        // The first of May 2026 is a Friday.
        assert_eq!(
            times("30 9 * * MON-FRI", "2026-05-01T10:00:00Z", 2),
            ["04 09:30 +0000", "05 09:30 +0000"]
        );
        assert_eq!(times("0 0 29 2 *", "2026-01-01T00:00:00Z", 1), ["29 00:00 +0000"]);
    }

    #[test]
    fn an_hour_that_does_not_exist_comes_once_and_later() {
        let nightly = "30 2 * * * Europe/Berlin";
        // The clock goes from 02:00 to 03:00 on the 29th.
        let expected = ["28 02:30 +0100", "29 03:30 +0200", "30 02:30 +0200"];
        assert_eq!(times(nightly, "2026-03-27T12:00:00Z", 3), expected);
        let quarters = ["29 01:30 +0100", "29 01:45 +0100", "29 03:00 +0200", "29 03:15 +0200"];
        assert_eq!(times("*/15 * * * * Europe/Berlin", "2026-03-29T00:15:00Z", 4), quarters);
    }

    #[test]
    fn an_hour_that_comes_twice_is_one_for_a_nightly_run_and_two_for_a_rhythm() {
        // The clock goes from 03:00 back to 02:00 on the 25th.
        let expected = ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"];
        assert_eq!(times("30 2 * * * Europe/Berlin", "2026-10-23T12:00:00Z", 3), expected);
        // Asked in the second of the two hours.
        assert_eq!(times("30 2 * * * Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["26 02:30 +0100"]);
        let hourly = ["25 01:00 +0200", "25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100"];
        assert_eq!(times("0 * * * * Europe/Berlin", "2026-10-24T22:30:00Z", 4), hourly);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_reason() {
        let error = |text: &str| {
            let zones = TimeZoneDatabase::bundled();
            Schedule::parse(text, &zones, &TimeZone::UTC).unwrap_err()
        };
        for fields in ["", "* * * *", "* * * * * UTC UTC", &"* ".repeat(300)] {
            assert_eq!(error(fields), ScheduleError::Fields, "{fields}");
        }
        assert_eq!(error("0 3 * * * Mars/Olympus"), ScheduleError::Zone("Mars/Olympus".to_owned()));
        assert_eq!(error("0 0 30 2 *"), ScheduleError::Never);
        let said = error("99 * * * *").to_string();
        assert!(said.contains("0..=59") && said.contains("99") && !said.contains('^'), "{said}");
    }

    proptest! {
        /// Whatever the zone does to its clock, the next time is later, and no time between is passed over by asking earlier.
        #[test]
        fn times_only_go_forward(second in 0_i64..4_000_000_000, ahead in 1_i64..100_000, which in 0_usize..6) {
            let text = ["*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 1 * *", "15 1-4 * * *", "0 */6 * * 0"][which];
            for zone in ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"] {
                let schedule = schedule(&format!("{text} {zone}"));
                let at = Timestamp::from_second(second).unwrap();
                let next = schedule.next(at).unwrap();
                prop_assert!(next > at);
                let later = Timestamp::from_second(second + ahead).unwrap();
                if later < next {
                    prop_assert_eq!(schedule.next(later), Some(next), "{} {} {}", text, zone, at);
                }
            }
        }

        /// No text makes it panic.
        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9*/,?LW#HA-Za-z ]{0,40}") {
            let _ = Schedule::parse(&text, &TimeZoneDatabase::bundled(), &TimeZone::UTC);
        }
    }
}
