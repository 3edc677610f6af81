//! Whose time it is: the zone that times without one are read in, and the zone that times are shown in.
//!
//! Both are the reader's: `--zone`, else the zone written in `--now`, else what `TZ` or the machine says. A machine that was never
//! told its zone (a container) says UTC, which is hardly the zone that a text was written in: there a Japanese text is read in the
//! time of Japan. That is said of the text only: times are shown as the reader has them, whatever language they are told in. A
//! zone that was assumed is always named in the answer.

use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::args::ExplainArgs;
use crate::clock;

/// Now, in the zone for reading and in the zone for showing.
pub(super) struct Clocks {
    pub(super) reading: Zoned,
    pub(super) showing: Zoned,
}

pub(super) fn clocks(args: &ExplainArgs, text: &str) -> Clocks {
    let now = args.now.as_ref().map_or_else(|| clock::now().timestamp(), |now| now.at);
    let written = args.now.as_ref().and_then(|now| now.zone.clone());
    let chosen = args.zone.clone().or(written).or_else(clock::chosen_zone);
    let assumed = if is_japanese(text) { clock::japan() } else { None };
    Clocks {
        reading: now.to_zoned(chosen.clone().or(assumed).unwrap_or(TimeZone::UTC)),
        showing: now.to_zoned(chosen.unwrap_or(TimeZone::UTC)),
    }
}

/// Kana are written by nobody else.
fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'))
}
