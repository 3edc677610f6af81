//! Whose time it is: the zone that times without one are read in, and the zone that times are shown in.
//!
//! Both are the reader's: `--zone`, else the zone written in `--now`, else what `TZ` or the machine says. A machine that was never
//! told its zone (a container) says UTC, which is hardly anybody's: there a Japanese text is read, and Japanese is written, in the
//! time of Japan. A zone that was assumed is always named in the answer.

use jiff::Zoned;
use jiff::tz::TimeZone;
use koboshi_report::phrase::Lang;

use crate::args::ExplainArgs;
use crate::clock;

/// Now, in the zone for reading and in the zone for showing.
pub(super) struct Clocks {
    pub(super) reading: Zoned,
    pub(super) showing: Zoned,
}

pub(super) fn clocks(args: &ExplainArgs, text: &str, lang: Lang) -> Clocks {
    let now = args.now.as_ref().map_or_else(|| clock::now().timestamp(), |now| now.at);
    let written = args.now.as_ref().and_then(|now| now.zone.clone());
    let chosen = args.zone.clone().or(written).or_else(clock::chosen_zone);
    let or_japan = |japanese: bool| {
        let fallback = if japanese { clock::japan() } else { None };
        chosen.clone().or(fallback).unwrap_or(TimeZone::UTC)
    };
    Clocks {
        reading: now.to_zoned(or_japan(is_japanese(text))),
        showing: now.to_zoned(or_japan(lang == Lang::Ja)),
    }
}

/// Kana are written by nobody else.
fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'))
}
