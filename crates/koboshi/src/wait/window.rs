//! The window of a limit that a text names: "5-hour limit reached ∙ resets 3am".
//!
//! A window resets within its own length. Where the next such time of day is further away than that, the last one is meant, and the limit is
//! over: the text is read after it, as yesterday's log is. A "session limit" is the window of five hours. What is not named is not known:
//! "your limit" says nothing of its length.

use std::time::Duration;

use super::Wait;
use super::token::Tokens;

/// How many tokens behind its name a window's reset may be stated.
const REACH: usize = 24;
/// Times of day are rounded, mostly to the hour.
const ROUNDING: Duration = Duration::from_secs(3600);

/// The window that a vendor of agents calls a session.
const SESSION: Duration = Duration::from_secs(5 * 3600);

/// A window of hours, and where the text names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedWindow {
    length: Duration,
    at: usize,
}

impl NamedWindow {
    /// The window whose name begins at a token.
    pub(super) fn at(tokens: &Tokens<'_>, at: usize) -> Option<Self> {
        if tokens.word(at) == "session" && matches!(tokens.word(at + 1), "limit" | "limits") {
            return Some(Self { length: SESSION, at });
        }
        let hours = tokens.whole(at, 1..=2).filter(|hours| (1..24).contains(hours))?;
        let unit = at + 1 + usize::from(tokens.is_sign(at + 1, '-'));
        let is_limit = |at| matches!(tokens.word(at), "limit" | "limits" | "window" | "quota" | "session");
        let is_window =
            matches!(tokens.word(unit), "hour" | "hours" | "hr" | "h") && (unit + 1..=unit + 2).any(is_limit);
        is_window.then(|| Self { length: Duration::from_secs(hours * 3600), at })
    }

    /// Whether a reset that is stated at a token, with this wait until the next such time of day, has passed.
    pub(super) fn has_ended(self, at: usize, wait: &Wait) -> bool {
        at.saturating_sub(self.at) <= REACH && wait.after > self.length.saturating_add(ROUNDING)
    }
}
