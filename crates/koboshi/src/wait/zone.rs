//! Zones as texts name them: `(Europe/Paris)`, `UTC`, `GMT+9`, `+09:00`, `PST`, `Pacific Time`, `北京时间`.
//!
//! Names with a slash are looked up in the database that was handed in, so aliases and daylight saving are
//! its job. Abbreviations are fixed offsets, because that is what they say: `PST` in July is eight
//! hours behind UTC. `CST`, `IST` and `BST` have several meanings; the one that is commonest in messages of
//! providers is taken (Chicago, India, London in summer). `PT` and "Pacific" name no offset but a place, so
//! they follow its daylight saving.
//!
//! Abbreviations must be written in capitals: `est`, `ist`, `met` and `et` are ordinary words elsewhere.
//! A zone that is not known is no error: the reader falls back to the local one.

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use super::token::Tokens;

/// Zone names are short; anything longer is not looked up.
const MAX_NAME: usize = 40;

/// The zone that begins at a token, in parentheses or not, and the token behind it.
pub(super) fn zone_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    if tokens.is_sign(at, '(') || tokens.is_sign(at, '[') {
        return bracketed_at(tokens, at + 1, zones);
    }
    let open = open_at(tokens, at, zones);
    // "UTC (+00:00)" and "PST (America/Los_Angeles)" say it twice; the place knows more than the letters.
    let (zone, end) = open?;
    match tokens.sign(end) {
        Some('(') => bracketed_at(tokens, end + 1, zones).or(Some((zone, end))),
        _ => Some((zone, end)),
    }
}

fn bracketed_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    let (zone, end) = open_at(tokens, at, zones).or_else(|| lone_name_at(tokens, at, zones))?;
    matches!(tokens.sign(end), Some(')' | ']')).then_some((zone, end + 1))
}

fn open_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    offset_at(tokens, at)
        .map(|(offset, end)| (TimeZone::fixed(offset), end))
        .or_else(|| universal_at(tokens, at))
        .or_else(|| iana_at(tokens, at, zones))
        .or_else(|| region_at(tokens, at, zones))
        .or_else(|| abbreviation_at(tokens, at))
}

/// `UTC`, `GMT`, `Z`, each with an offset behind it or without.
fn universal_at(tokens: &Tokens<'_>, at: usize) -> Option<(TimeZone, usize)> {
    let is_universal = match tokens.word(at) {
        "utc" | "gmt" => true,
        "z" => tokens.glued(at),
        _ => false,
    };
    if !is_universal {
        return None;
    }
    let shifted = if tokens.glued(at + 1) { loose_offset_at(tokens, at + 1) } else { None };
    Some(match shifted {
        Some((offset, end)) => (TimeZone::fixed(offset), end),
        None => (TimeZone::UTC, at + 1),
    })
}

/// `+09:00`, `-0330`: an offset that stands on its own must be written in full.
fn offset_at(tokens: &Tokens<'_>, at: usize) -> Option<(Offset, usize)> {
    let digits = tokens.number(at + 1)?.digits;
    let in_full = digits == 4 || (digits == 2 && tokens.is_sign(at + 2, ':') && tokens.glued(at + 2));
    if in_full { loose_offset_at(tokens, at) } else { None }
}

/// `+9`, `-3`, `+05:30`, `+0530`.
fn loose_offset_at(tokens: &Tokens<'_>, at: usize) -> Option<(Offset, usize)> {
    let sign = match tokens.sign(at)? {
        '+' => 1,
        '-' | '–' => -1,
        _ => return None,
    };
    let number = tokens.number(at + 1).filter(|n| tokens.glued(at + 1) && !n.point && n.digits <= 4)?;
    let (hours, minutes, end) = if number.digits > 2 {
        (number.whole / 100, number.whole % 100, at + 2)
    } else {
        let minutes =
            tokens.whole(at + 3, 2..=2).filter(|_| tokens.is_sign(at + 2, ':') && tokens.glued(at + 3));
        (number.whole, minutes.unwrap_or(0), if minutes.is_some() { at + 4 } else { at + 2 })
    };
    if hours > 15 || minutes > 59 {
        return None;
    }
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok()?;
    Some((Offset::from_seconds(sign * seconds).ok()?, end))
}

/// A name with a slash, as the database spells it in any case.
fn iana_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    let name = name_from(tokens, at)?;
    if !name.contains('/') {
        return None;
    }
    Some((zones.get(name).ok()?, end_of(tokens, at, name)))
}

/// A name without a slash (`Japan`, `EST5EDT`): only in parentheses, where nothing else can be meant.
fn lone_name_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    let name = name_from(tokens, at)?;
    Some((zones.get(name).ok()?, end_of(tokens, at, name)))
}

/// The longest stretch from a token on that a zone name could be made of.
fn name_from<'t>(tokens: &Tokens<'t>, at: usize) -> Option<&'t str> {
    let start = tokens.get(at).filter(|_| !tokens.word(at).is_empty())?.span.start;
    let rest = tokens.text.get(start..)?;
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+');
    let length = rest.bytes().take(MAX_NAME + 1).take_while(is_name).count();
    (1..=MAX_NAME).contains(&length).then(|| rest.get(..length)).flatten()
}

fn end_of(tokens: &Tokens<'_>, at: usize, name: &str) -> usize {
    let stop = tokens.get(at).map_or(0, |token| token.span.start + name.len());
    let mut end = at;
    while tokens.get(end).is_some_and(|token| token.span.start < stop) {
        end += 1;
    }
    end
}

/// Places that go by a common name; the words "time", "standard time" may follow.
fn region_at(tokens: &Tokens<'_>, at: usize, zones: &TimeZoneDatabase) -> Option<(TimeZone, usize)> {
    let is_name = tokens.written(at).starts_with(char::is_uppercase) || !tokens.written(at).is_ascii();
    let name = match tokens.word(at) {
        _ if !is_name => return None,
        "pt" if is_capitals(tokens, at) => "America/Los_Angeles",
        "mt" if is_capitals(tokens, at) => "America/Denver",
        "ct" if is_capitals(tokens, at) => "America/Chicago",
        "et" if is_capitals(tokens, at) => "America/New_York",
        "pacific" | "太平洋时间" | "太平洋時間" => "America/Los_Angeles",
        "mountain" => "America/Denver",
        "central" => "America/Chicago",
        "eastern" => "America/New_York",
        "beijing" | "北京时间" | "北京時間" => "Asia/Shanghai",
        "日本時間" => "Asia/Tokyo",
        "한국시간" => "Asia/Seoul",
        _ => return None,
    };
    let mut end = at + 1;
    while matches!(tokens.word(end), "standard" | "daylight" | "time") {
        end += 1;
    }
    Some((zones.get(name).ok()?, end))
}

fn is_capitals(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.written(at).bytes().all(|b| b.is_ascii_uppercase())
}

fn abbreviation_at(tokens: &Tokens<'_>, at: usize) -> Option<(TimeZone, usize)> {
    if !is_capitals(tokens, at) {
        return None;
    }
    let minutes = offset_of(tokens.word(at))?;
    Some((TimeZone::fixed(Offset::from_seconds(minutes * 60).ok()?), at + 1))
}

/// Minutes ahead of UTC.
fn offset_of(abbreviation: &str) -> Option<i32> {
    Some(match abbreviation {
        "hst" => -600,
        "akst" => -540,
        "akdt" | "pst" => -480,
        "pdt" | "mst" => -420,
        "mdt" | "cst" => -360,
        "cdt" | "est" => -300,
        "edt" | "ast" => -240,
        "nst" => -210,
        "adt" | "brt" | "art" => -180,
        "ndt" => -150,
        "wet" => 0,
        "bst" | "cet" | "west" | "met" => 60,
        "cest" | "eet" | "sast" | "cat" | "mest" => 120,
        "eest" | "msk" | "eat" | "trt" => 180,
        "gst" => 240,
        "pkt" => 300,
        "ist" => 330,
        "ict" | "wib" => 420,
        "hkt" | "sgt" | "awst" | "pht" | "myt" => 480,
        "jst" | "kst" => 540,
        "acst" => 570,
        "aest" => 600,
        "acdt" => 630,
        "aedt" => 660,
        "nzst" => 720,
        "nzdt" => 780,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    /// Seconds ahead of UTC in January and in July, and how many tokens the name took.
    fn read(text: &str) -> Option<(i32, i32, bool)> {
        let zones = TimeZoneDatabase::bundled();
        let tokens = Tokens::of(text);
        let (zone, end) = zone_at(&tokens, 0, &zones)?;
        let offset = |at: &str| zone.to_offset(at.parse::<Timestamp>().unwrap()).seconds();
        Some((offset("2026-01-15T12:00:00Z"), offset("2026-07-15T12:00:00Z"), end == tokens.len()))
    }

    #[test]
    fn zones_in_all_spellings() {
        let table = [
            ("(Europe/Paris)", 3_600, 7_200),
            ("(UTC)", 0, 0),
            ("UTC", 0, 0),
            ("gmt", 0, 0),
            ("GMT+9", 32_400, 32_400),
            ("GMT-3", -10_800, -10_800),
            ("GMT\u{2212}3", -10_800, -10_800),
            ("UTC+05:30", 19_800, 19_800),
            ("UTC-0330", -12_600, -12_600),
            ("Etc/GMT-9", 32_400, 32_400),
            ("(Etc/GMT+5)", -18_000, -18_000),
            ("+09:00", 32_400, 32_400),
            ("-0800", -28_800, -28_800),
            ("PST", -28_800, -28_800),
            ("PDT", -25_200, -25_200),
            ("CET", 3_600, 3_600),
            ("JST", 32_400, 32_400),
            ("IST", 19_800, 19_800),
            ("Pacific", -28_800, -25_200),
            ("Pacific Time", -28_800, -25_200),
            ("PT", -28_800, -25_200),
            ("(PT)", -28_800, -25_200),
            ("Eastern Standard Time", -18_000, -14_400),
            ("ET", -18_000, -14_400),
            ("Central", -21_600, -18_000),
            ("Mountain Time", -25_200, -21_600),
            ("us/pacific", -28_800, -25_200),
            ("Asia/Calcutta", 19_800, 19_800),
            ("(asia/calcutta)", 19_800, 19_800),
            ("America/Argentina/Buenos_Aires", -10_800, -10_800),
            ("(Japan)", 32_400, 32_400),
            ("北京时间", 28_800, 28_800),
            ("PST (America/Los_Angeles)", -28_800, -25_200),
            ("UTC (+00:00)", 0, 0),
            ("America/Port-au-Prince", -18_000, -14_400),
        ];
        for (text, winter, summer) in table {
            assert_eq!(read(text), Some((winter, summer, true)), "{text}");
        }
    }

    #[test]
    fn what_is_no_zone() {
        for text in
            ["est", "et", "ist", "(Mars/Olympus)", "and/or", "pt", "pacific", "+9", "-5", "(", "", "+99:00"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
