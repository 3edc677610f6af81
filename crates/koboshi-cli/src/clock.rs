//! The one place that reads the real clock and the machine's zone.
//!
//! All other code gets the time as an argument, so that it can be tested and replayed.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

/// The bundled zone database: the machine's own may be missing or old.
pub(crate) fn zones() -> TimeZoneDatabase {
    TimeZoneDatabase::bundled()
}

/// Now, in the machine's zone.
#[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
pub(crate) fn now() -> Zoned {
    Timestamp::now().to_zoned(TimeZone::system())
}

/// A moment, to measure how long something takes.
#[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
pub(crate) fn tick() -> std::time::Instant {
    std::time::Instant::now()
}

/// A zone by its name, such as `Asia/Tokyo`.
pub(crate) fn parse_zone(text: &str) -> Result<TimeZone, String> {
    zones()
        .get(text)
        .map_err(|_| format!("`{text}` is no time zone: write it like Asia/Tokyo, Europe/Paris or UTC"))
}

/// The zone of this machine or its user: none where it was never set, as in most containers.
pub(crate) fn chosen_zone() -> Option<TimeZone> {
    let set = std::env::var_os("TZ").is_some_and(|zone| !zone.is_empty());
    let zone = TimeZone::try_system().ok();
    zone.filter(|zone| set || !is_universal(zone))
}

fn is_universal(zone: &TimeZone) -> bool {
    zone.is_unknown()
        || zone.iana_name().is_none_or(|name| {
            matches!(name, "UTC" | "Etc/UTC" | "Etc/UCT" | "Etc/Zulu" | "Zulu" | "UCT" | "Universal")
        })
}

/// The zone of Japan, from the bundled database.
pub(crate) fn japan() -> Option<TimeZone> {
    zones().get("Asia/Tokyo").ok()
}

/// An instant and the zone that was written with it. `Z` alone gives the time, not the place.
#[derive(Debug, Clone)]
pub(crate) struct Instant {
    pub(crate) at: Timestamp,
    pub(crate) zone: Option<TimeZone>,
}

impl Instant {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let at = parse(text)?;
        let bare = text.trim_end().ends_with(['Z', 'z']);
        Ok(Self { at: at.timestamp(), zone: (!bare).then(|| at.time_zone().clone()) })
    }
}

/// An instant given as text: RFC 3339, with a zone name if one is wanted.
pub(crate) fn parse(text: &str) -> Result<Zoned, String> {
    if let Ok(zoned) = zoned_from(text) {
        return Ok(zoned);
    }
    // An offset without a zone name is the machine's local offset at that moment.
    let parser = jiff::fmt::temporal::DateTimeParser::new();
    let pieces = jiff::fmt::temporal::Pieces::parse(text).map_err(|_| hint(text))?;
    let timestamp = parser.parse_timestamp(text).map_err(|_| hint(text))?;
    let zone = match pieces.offset() {
        Some(jiff::fmt::temporal::PiecesOffset::Numeric(offset)) => offset.offset().to_time_zone(),
        _ => TimeZone::UTC,
    };
    Ok(timestamp.to_zoned(zone))
}

fn zoned_from(text: &str) -> Result<Zoned, jiff::Error> {
    let zones = zones();
    jiff::fmt::temporal::DateTimeParser::new().parse_zoned_with(&zones, text)
}

fn hint(text: &str) -> String {
    format!(
        "`{text}` is no instant: write it like 2026-11-15T12:00:00Z, 2026-11-15T12:00:00+09:00 or 2026-11-15T12:00:00[Asia/Tokyo]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_the_local_offset() {
        let now = parse("2026-03-16T17:12:00+09:00").unwrap();
        assert_eq!(now.offset().seconds(), 9 * 3600);
        assert_eq!(parse("2026-03-16T17:12:00Z").unwrap().offset().seconds(), 0);
    }

    #[test]
    fn a_zone_name_is_looked_up_in_the_bundled_database() {
        assert_eq!(parse("2026-07-01T12:00:00[Europe/Paris]").unwrap().offset().seconds(), 2 * 3600);
    }

    #[test]
    fn a_zone_is_only_known_where_one_is_written() {
        assert!(Instant::parse("2026-03-16T17:12:00Z").unwrap().zone.is_none());
        assert!(Instant::parse("2026-03-16T17:12:00+09:00").unwrap().zone.is_some());
        assert!(Instant::parse("2026-07-01T12:00:00[Europe/Paris]").unwrap().zone.is_some());
        assert!(parse_zone("Mars/Olympus").unwrap_err().contains("Asia/Tokyo"));
    }

    #[test]
    fn the_error_of_a_wrong_time_shows_a_right_one() {
        assert!(parse("yesterday").unwrap_err().contains("2026-11-15T12:00:00Z"));
    }
}
