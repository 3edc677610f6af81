//! Whose time it is: the zone that times without one are read in, the zone that times are shown in, and the instant that waits are
//! counted from.
//!
//! A text was written before it is read. Where its lines do not say when, a file was last changed when its last line was written; of
//! standard input nothing is known, and waits are counted from now. `--now` is both now and the instant that waits are counted from.
//!
//! Both zones are the reader's: `--zone`, else the zone written in `--now`, else what `TZ` or the machine says. A machine that was never
//! told its zone (a container) says UTC, which is hardly the zone that a text was written in: there a Japanese text is read in the
//! time of Japan. That is said of the text only: the reader's own zone shows them, whatever the language of the output is. A
//! zone that was assumed is always named in the answer.

use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::args::ExplainArgs;
use crate::clock;
use crate::input::Input;

/// The time of writing, in the zone for reading; and now, in the zone for showing.
pub(super) struct Clocks {
    /// When the text was written at the latest.
    pub(super) reading: Zoned,
    pub(super) showing: Zoned,
    /// What `reading` was taken from.
    pub(super) from: CountedFrom,
}

/// What the instant is that waits are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedFrom {
    /// The text says when it was written: a stamp of a log, the date of an answer.
    Text,
    /// The last change of the file.
    File,
    /// `--now`.
    Option,
    /// Nothing says when the text was written.
    Now,
}

impl CountedFrom {
    /// Stable name, as used in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::File => "file",
            Self::Option => "option",
            Self::Now => "now",
        }
    }
}

pub(super) fn clocks(args: &ExplainArgs, input: &Input) -> Clocks {
    let now = args.now.as_ref().map_or_else(|| clock::now().timestamp(), |now| now.at);
    let written = args.now.as_ref().and_then(|now| now.zone.clone());
    let chosen = args.zone.clone().or(written).or_else(clock::chosen_zone);
    let assumed = if is_japanese(input.end()) { clock::japan() } else { None };
    let (written, from) = match input.changed.filter(|changed| *changed <= now) {
        _ if args.now.is_some() => (now, CountedFrom::Option),
        Some(changed) => (changed, CountedFrom::File),
        None => (now, CountedFrom::Now),
    };
    Clocks {
        from,
        reading: written.to_zoned(chosen.clone().or(assumed).unwrap_or(TimeZone::UTC)),
        showing: now.to_zoned(chosen.unwrap_or(TimeZone::UTC)),
    }
}

/// Whether a text contains kana, which only Japanese has.
fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'))
}
