//! Times as people read them: in their own zone, in their own form, and as part of a sentence.
//!
//! A reader of an error should not have to convert UTC. The caller passes the reader's zone; where it is unknown, UTC is named
//! as such. Times to wait for are rounded up to the minute: a retry one minute too early would fail. Those that have passed are rounded down.

use std::time::Duration;

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use crate::phrase::{Lang, Phrases};

/// A wait of up to this is written as a length, a longer one as a time of day.
const MAX_LENGTH: Duration = Duration::from_secs(90);

/// A time of day with its date and zone: `2026-11-17 12:36 JST`, `2026-11-17 12:36（日本時間）`.
#[must_use]
pub fn local_time(lang: Lang, time: &Zoned) -> String {
    with_zone(lang, &rounded_up(time), "%Y-%m-%d %H:%M")
}

/// The same of a time that has passed, which is rounded down: nothing began in the future.
#[must_use]
pub fn past_time(lang: Lang, time: &Zoned) -> String {
    let minute = time.with().second(0).subsec_nanosecond(0).build();
    with_zone(lang, minute.as_ref().unwrap_or(time), "%Y-%m-%d %H:%M")
}

/// The same to the second, for records of what happened.
#[must_use]
pub fn exact_time(lang: Lang, time: &Zoned) -> String {
    with_zone(lang, time, "%Y-%m-%d %H:%M:%S")
}

/// A time of day with its zone, without the date.
#[must_use]
pub fn local_hour(lang: Lang, time: &Zoned) -> String {
    with_zone(lang, &rounded_up(time), "%H:%M")
}

/// The name of the zone: `JST`, `UTC`, `CET`, `日本時間`; where it has no letters, its offset: `UTC+04`.
#[must_use]
pub fn zone_name(lang: Lang, time: &Zoned) -> String {
    let place = time.time_zone().iana_name();
    // Texts from Japan often have only an offset; Japan is meant by it.
    let is_japan = place == Some("Asia/Tokyo") || (place.is_none() && time.offset() == JAPAN);
    if lang == Lang::Ja && is_japan {
        return "日本時間".to_owned();
    }
    let name = time.strftime("%Z").to_string();
    if name.starts_with(['+', '-']) { format!("UTC{name}") } else { name }
}

const JAPAN: Offset = jiff::tz::offset(9);

fn with_zone(lang: Lang, time: &Zoned, form: &str) -> String {
    let (said, zone) = (time.strftime(form), zone_name(lang, time));
    match lang {
        Lang::En => format!("{said} {zone}"),
        Lang::Ja => format!("{said}（{zone}）"),
    }
}

/// When another try is worth it, as a sentence: `Please try again in 30s.`, `Please try again after 2026-11-17 12:36 JST.`
#[must_use]
pub fn try_again(phrases: &Phrases, lang: Lang, until: Timestamp, now: Timestamp, zone: TimeZone) -> String {
    said(phrases, lang, "try-again", until, now, zone)
}

/// When the gateway asks its provider again, as a sentence, where it is not known whether that helps.
#[must_use]
pub fn asks_again(phrases: &Phrases, lang: Lang, until: Timestamp, now: Timestamp, zone: TimeZone) -> String {
    said(phrases, lang, "asks-again", until, now, zone)
}

fn said(phrases: &Phrases, lang: Lang, id: &str, until: Timestamp, now: Timestamp, zone: TimeZone) -> String {
    let wait = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    let said = if wait <= MAX_LENGTH {
        let seconds = Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(ONE);
        phrases.text(lang, &format!("{id}-in"), &[("length", &phrases.countdown(lang, seconds))])
    } else {
        phrases.text(lang, &format!("{id}-after"), &[("time", &local_time(lang, &until.to_zoned(zone)))])
    };
    said.unwrap_or_default()
}

const ONE: Duration = Duration::from_secs(1);

/// Rounds up to the next full minute. Less than a second is ignored: a time that was passed from clock to clock is a little later than
/// stated, and would become another minute.
fn rounded_up(time: &Zoned) -> Zoned {
    let whole = time.second() == 0;
    let next = if whole { time.clone() } else { time.saturating_add(jiff::Span::new().minutes(1)) };
    next.with().second(0).subsec_nanosecond(0).build().unwrap_or(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    fn at(text: &str) -> Zoned {
        jiff::fmt::temporal::DateTimeParser::new()
            .parse_zoned_with(&TimeZoneDatabase::bundled(), text)
            .unwrap()
    }

    #[test]
    fn a_time_that_has_passed_is_not_in_the_future() {
        let time = at("2026-11-17T12:35:59+09:00[Asia/Tokyo]");
        assert_eq!(past_time(Lang::En, &time), "2026-11-17 12:35 JST");
        assert_eq!(local_time(Lang::En, &time), "2026-11-17 12:36 JST");
    }

    #[test]
    fn times_are_local_and_name_their_zone() {
        for (time, en, ja) in [
            ("2026-11-17T12:36:00[Asia/Tokyo]", "2026-11-17 12:36 JST", "2026-11-17 12:36（日本時間）"),
            ("2026-11-17T12:35:01[Asia/Tokyo]", "2026-11-17 12:36 JST", "2026-11-17 12:36（日本時間）"),
            ("2026-11-17T12:36:00.004[Asia/Tokyo]", "2026-11-17 12:36 JST", "2026-11-17 12:36（日本時間）"),
            ("2026-12-31T23:59:30[Europe/Paris]", "2027-01-01 00:00 CET", "2027-01-01 00:00（CET）"),
            ("2026-11-17T03:36:00[UTC]", "2026-11-17 03:36 UTC", "2026-11-17 03:36（UTC）"),
            ("2026-11-17T03:36:00[Asia/Dubai]", "2026-11-17 03:36 UTC+04", "2026-11-17 03:36（UTC+04）"),
        ] {
            assert_eq!(local_time(Lang::En, &at(time)), en);
            assert_eq!(local_time(Lang::Ja, &at(time)), ja);
        }
    }

    #[test]
    fn an_offset_of_japan_is_named_to_japanese_readers() {
        let tokyo = at("2026-11-17T15:00:00[Asia/Tokyo]");
        let fixed = |hours| tokyo.with_time_zone(jiff::tz::offset(hours).to_time_zone());
        assert_eq!(local_hour(Lang::Ja, &fixed(9)), "15:00（日本時間）");
        assert_eq!(exact_time(Lang::Ja, &tokyo), "2026-11-17 15:00:00（日本時間）");
        assert_eq!(local_hour(Lang::En, &fixed(9)), "15:00 UTC+09");
        assert_eq!(local_hour(Lang::Ja, &fixed(-5)), "01:00（UTC-05）");
        assert_eq!(
            zone_name(Lang::Ja, &at("2026-11-17T15:00:00[Asia/Seoul]")),
            "KST",
            "the same hour, another place"
        );
    }

    #[test]
    fn a_short_wait_is_a_length_and_a_long_one_a_time() {
        let phrases = Phrases::new().unwrap();
        let now = at("2026-11-17T12:00:00[Asia/Tokyo]");
        let zone = now.time_zone().clone();
        let say = |lang, wait: u64| {
            let until = now.timestamp() + Duration::from_millis(wait);
            try_again(&phrases, lang, until, now.timestamp(), zone.clone())
        };
        assert_eq!(say(Lang::En, 29_500), "Please try again in 30s.");
        assert_eq!(say(Lang::Ja, 29_500), "30 秒後にもう一度お試しください。");
        assert_eq!(say(Lang::En, 3_600_000), "Please try again after 2026-11-17 13:00 JST.");
        assert_eq!(say(Lang::Ja, 3_600_000), "2026-11-17 13:00（日本時間）以降にもう一度お試しください。");
        assert_eq!(say(Lang::En, 0), "Please try again in 1s.");
    }
}
