//! The periods of budgets: a day and a month of the calendar, in a zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// How long a budget lasts until it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A day of the calendar.
    Day,
    /// A month of the calendar.
    Month,
}

impl Period {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Its first day, of the one that `today` is in.
    #[must_use]
    pub fn first(self, today: Date) -> Date {
        match self {
            Self::Day => today,
            Self::Month => today.first_of_month(),
        }
    }

    /// When the next one begins: at the first instant of that day in the zone, which is not midnight everywhere.
    #[must_use]
    pub fn renewal(self, today: Date, zone: &TimeZone) -> Timestamp {
        let next = match self {
            Self::Day => today.checked_add(1.day()),
            Self::Month => today.first_of_month().checked_add(1.month()),
        };
        let start = next.ok().and_then(|day| day.to_zoned(zone.clone()).ok());
        start.map_or(Timestamp::MAX, |start| start.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn zone(name: &str) -> TimeZone {
        jiff::tz::TimeZoneDatabase::bundled().get(name).unwrap()
    }

    #[test]
    fn a_day_ends_at_midnight_of_its_zone() {
        let renewal = |name| Period::Day.renewal(date(2026, 11, 18), &zone(name)).to_string();
        assert_eq!(renewal("Asia/Tokyo"), "2026-11-18T15:00:00Z");
        assert_eq!(renewal("UTC"), "2026-11-19T00:00:00Z");
        // The clocks go forward at midnight there: the day begins at one.
        let beirut = Period::Day.renewal(date(2024, 3, 30), &zone("Asia/Beirut"));
        assert_eq!(beirut.to_string(), "2024-03-30T22:00:00Z");
    }

    #[test]
    fn a_month_ends_with_its_last_day() {
        let renewal = |day| Period::Month.renewal(day, &TimeZone::UTC).to_string();
        assert_eq!(renewal(date(2026, 12, 31)), "2027-01-01T00:00:00Z");
        assert_eq!(renewal(date(2028, 2, 1)), "2028-03-01T00:00:00Z");
        assert_eq!(Period::Month.first(date(2026, 11, 18)), date(2026, 11, 1));
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        assert_eq!(Period::Day.renewal(Date::MAX, &TimeZone::UTC), Timestamp::MAX);
        assert_eq!(Period::Month.renewal(Date::MAX, &TimeZone::UTC), Timestamp::MAX);
    }
}
