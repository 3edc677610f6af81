//! The waits that a free text states.
//!
//! The text is read once, from left to right. Wherever a length, a date, a time of day or an epoch begins, the
//! words around it decide whether it is a wait ([`super::cue`], [`super::cjk`]); fields such as
//! `"retryDelay": "36s"` are found by their names ([`super::field`]). Every step looks at a bounded number of
//! tokens, so the time is linear in the length of the text.
//!
//! What this file does not do: rate-limit headers with their counts ([`super::headers_in_text`] hands those to
//! [`super::exhausted_bucket_wait`]), and judging whether the text speaks of a limit at all. A usage table that
//! says when a quota *would* reset is returned like any other reset.

use std::ops::Range;

use super::calendar::{Day, DayTime, TextContext, when_at};
use super::cue::{self, CueBefore, Preposition, Verdict};
use super::duration::{amount_of, clamped, duration_at, hours_minutes_seconds_at};
use super::field::{self, Pairs};
use super::resolve::resolve;
use super::token::{Gap, Tokens};
use super::words::{self, Unit};
use super::{Clock, Form, Wait, cjk};

/// More waits than this are not read from one text.
const MAX_WAITS: usize = 16;
/// How much text is cut into tokens at a time. An expression across the end of a window is not seen.
const WINDOW: usize = 32 * 1024;

/// A wait, and where the text states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedWait {
    /// How long to wait.
    pub wait: Wait,
    /// The bytes of the expression, without the words that introduce it.
    pub span: Range<usize>,
    /// Said as "resets at …" rather than "try again …", "retry …" or "wait …".
    pub reset: bool,
}

/// All waits that the text states, in order; at most sixteen.
#[must_use]
pub fn stated_waits(text: &str, clock: Clock<'_>) -> Vec<StatedWait> {
    let mut found = in_fields(text, clock);
    let fields: Vec<Range<usize>> = found.iter().map(|stated| stated.span.clone()).collect();
    found.extend(in_prose(text, clock, &fields));
    found.sort_by_key(|stated| stated.span.start);
    found.truncate(MAX_WAITS);
    found
}

/// The wait that counts: the first, or the latest of the resets if there are several.
///
/// Two windows that are used up at once both have to pass.
#[must_use]
pub fn stated_wait(text: &str, clock: Clock<'_>) -> Option<StatedWait> {
    let all = stated_waits(text, clock);
    let resets = all.iter().filter(|stated| stated.reset);
    if resets.clone().count() > 1 {
        return resets.max_by_key(|stated| stated.wait.after).cloned();
    }
    all.into_iter().next()
}

fn in_fields(text: &str, clock: Clock<'_>) -> Vec<StatedWait> {
    // Every name that is_wait_field knows holds one of these; most texts hold none.
    let may_hold =
        ["etry", "eset"].iter().any(|part| memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some());
    if !may_hold {
        return Vec::new();
    }
    Pairs::of(text, is_wait_field)
        .filter_map(|(name, span)| {
            let value = text.get(span.clone())?;
            // A bare number behind this name is a client's own setting; a provider writes "36s".
            if name.eq_ignore_ascii_case("retryDelay") && field::plain_number(value).is_some() {
                return None;
            }
            let wait = field::field_wait(name, value, clock)?;
            Some(StatedWait { wait, span, reset: name.to_ascii_lowercase().contains("reset") })
        })
        .take(MAX_WAITS)
        .collect()
}

/// Names whose value is a wait. `retry_delay_ms` is not among them: clients log their own pauses under it.
fn is_wait_field(name: &str) -> bool {
    // Nearly every name ends here: the known ones are long and begin with one of these letters.
    let can_be =
        name.len() > 6 && name.len() <= 32 && name.starts_with(['r', 'R', 'q', 'Q', 'n', 'N', 'x', 'X']);
    if !can_be {
        return false;
    }
    let plain: String =
        name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    let is_compound = plain.len() < name.len() || name.bytes().skip(1).any(|b| b.is_ascii_uppercase());
    let is_known = matches!(
        plain.as_str(),
        "retryafter"
            | "retryafterms"
            | "retryafterseconds"
            | "retryaftersecs"
            | "retryaftersec"
            | "retryafterinseconds"
            | "retrydelay"
            | "resetsinseconds"
            | "resetinseconds"
            | "resetsin"
            | "resetin"
            | "resetafter"
            | "resetsat"
            | "resetat"
            | "resettime"
            | "resettimestamp"
            | "resetafterseconds"
            | "resetsafterseconds"
            | "quotaresettime"
            | "quotaresettimestamp"
            | "quotaresetdelay"
            | "nextresettime"
            | "retryinseconds"
            | "nextreset"
            | "resetdate"
    );
    is_known && is_compound
}

fn in_prose(text: &str, clock: Clock<'_>, fields: &[Range<usize>]) -> Vec<StatedWait> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() && found.len() < MAX_WAITS {
        let window = window_at(text, start);
        let in_window = in_window(window, clock)
            .into_iter()
            .map(|stated| StatedWait { span: stated.span.start + start..stated.span.end + start, ..stated });
        let is_field =
            |span: &Range<usize>| fields.iter().any(|field| field.start < span.end && span.start < field.end);
        found.extend(in_window.filter(|stated| !is_field(&stated.span)));
        start += window.len();
    }
    found
}

/// The next piece of a long text, up to the end of a line where there is one: tokens take memory, and a text of
/// any length must not take more than a window's worth.
fn window_at(text: &str, start: usize) -> &str {
    let rest = text.get(start..).unwrap_or_default();
    if rest.len() <= WINDOW {
        return rest;
    }
    let piece = rest.get(..rest.floor_char_boundary(WINDOW)).unwrap_or(rest);
    let line_end = memchr::memrchr(b'\n', piece.as_bytes()).map_or(piece.len(), |at| at + 1);
    piece.get(..line_end).unwrap_or(piece)
}

fn in_window(text: &str, clock: Clock<'_>) -> Vec<StatedWait> {
    let tokens = Tokens::of(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() && found.len() < MAX_WAITS {
        let Some((expression, end)) = expression_at(&tokens, at, clock) else {
            at += 1;
            continue;
        };
        let end = end.max(at + 1);
        let span = tokens.span(at, end);
        let stated = stated_at(&tokens, at, end, &expression, clock);
        found.extend(stated.map(|(wait, reset)| StatedWait { wait, span, reset }));
        at = end;
    }
    found
}

/// Something that could be a wait, if the words around it say so.
enum Expression {
    Length(std::time::Duration),
    When(DayTime),
    /// `05:12:30`: a length behind "in", else a time of day.
    Clock(std::time::Duration, DayTime),
    Epoch(u64),
    /// A number without a unit, in seconds.
    Bare(std::time::Duration),
}

impl Expression {
    fn is_length(&self) -> bool {
        matches!(self, Self::Length(_) | Self::Bare(_))
    }
}

fn expression_at(tokens: &Tokens<'_>, at: usize, clock: Clock<'_>) -> Option<(Expression, usize)> {
    if !can_begin(tokens, at) || is_inside_word(tokens, at) {
        return None;
    }
    let hour_sign = cue::announces_hour(tokens, at);
    if let Some((when, end)) = when_at(tokens, at, TextContext { zones: clock.zones, hour_sign }) {
        return Some(match hours_minutes_seconds_at(tokens, at) {
            Some((length, _)) if when.bare_clock => (Expression::Clock(length, when), end),
            _ => (Expression::When(when), end),
        });
    }
    if let Some((length, end)) = duration_at(tokens, at) {
        return Some((Expression::Length(length), end));
    }
    if let Some((length, end)) = hours_minutes_seconds_at(tokens, at) {
        // More hours than a day has: it can only be a length.
        return Some((Expression::Length(length), end));
    }
    let number = tokens.number(at)?;
    let is_epoch = matches!(number.digits, 10 | 13 | 16) && number.whole > 1_000_000_000;
    let expression = if is_epoch {
        Expression::Epoch(number.whole)
    } else {
        Expression::Bare(clamped(amount_of(number, Unit::Second)))
    };
    Some((expression, at + 1))
}

/// Signs begin nothing, and words only what has a number close behind, is a number, or names a day or hour.
fn can_begin(tokens: &Tokens<'_>, at: usize) -> bool {
    let word = tokens.word(at);
    if word.is_empty() {
        return tokens.number(at).is_some();
    }
    let number_near = (1..=3).any(|ahead| tokens.number(at + ahead).is_some());
    // Without a number, only behind a word that leads to a time: "in an hour", "at noon", "until tomorrow".
    number_near
        || !word.is_ascii()
        || leads_to_time(tokens.word_before(at))
            && (words::halves(word).is_some() || words::names_day_or_hour(word))
}

fn leads_to_time(word: &str) -> bool {
    matches!(
        word,
        "in" | "at"
            | "after"
            | "until"
            | "till"
            | "on"
            | "for"
            | "by"
            | "within"
            | "wait"
            | "another"
            | "about"
            | "back"
            | "again"
            | "reset"
            | "resets"
            | "um"
            | "am"
            | "bis"
            | "nach"
            | "ab"
            | "dans"
            | "a"
            | "le"
            | "vers"
            | "en"
            | "el"
            | "las"
            | "em"
            | "as"
            | "apres"
            | "despues"
            | "depois"
            | "dentro"
            | "de"
            | "hasta"
            | "ate"
            | "renews"
            | "next"
            | "approximately"
            | "around"
            | "warten"
    )
}

/// `gpt5m`, `v1.5h`: what is glued to a letter or another number is a name.
fn is_inside_word(tokens: &Tokens<'_>, at: usize) -> bool {
    let before = tokens.word_before(at);
    tokens.number(at).is_some() && tokens.glued(at) && !before.is_empty() && before.is_ascii()
}

fn stated_at(
    tokens: &Tokens<'_>,
    at: usize,
    end: usize,
    expression: &Expression,
    clock: Clock<'_>,
) -> Option<(Wait, bool)> {
    if let Expression::Bare(length) = expression {
        return is_bare_wait(tokens, at, end).then(|| (Wait::countdown(*length, clock), false));
    }
    let before = cue::before(tokens, at, expression.is_length());
    let wait = wait_of(expression, before, clock)?;
    if is_log_stamp(tokens, at, expression, before) {
        return None;
    }
    let is_length = wait.form == Form::Countdown;
    let reset = stated_reset(tokens, at, end, before, is_length)?;
    Some((wait, reset))
}

/// Whether the words around make the expression a wait, and if so, whether they call it a reset.
fn stated_reset(
    tokens: &Tokens<'_>,
    at: usize,
    end: usize,
    before: CueBefore,
    is_length: bool,
) -> Option<bool> {
    if is_behind_bar(tokens, at) {
        return Some(true);
    }
    let behind = cue::behind(tokens, at, end, is_length);
    if behind == Verdict::Denied {
        return None;
    }
    let around = cjk::verdict(tokens.text, &tokens.span(at, end), is_length);
    for verdict in [before.verdict, around, behind] {
        match verdict {
            Verdict::Wait { reset } => return Some(reset),
            Verdict::Denied => return None,
            Verdict::Open => {}
        }
    }
    None
}

fn wait_of(expression: &Expression, before: CueBefore, clock: Clock<'_>) -> Option<Wait> {
    let takes_length = !matches!(before.preposition, Preposition::At | Preposition::Until);
    let takes_clock = !matches!(before.preposition, Preposition::In | Preposition::For);
    match expression {
        Expression::Length(length) | Expression::Bare(length) => {
            takes_length.then(|| Wait::countdown(*length, clock))
        }
        Expression::Clock(length, _) if !takes_clock => Some(Wait::countdown(*length, clock)),
        Expression::Clock(_, when) => resolve(when, clock),
        Expression::When(when) if takes_clock || when.day != Day::Next => resolve(when, clock),
        Expression::When(_) => None,
        Expression::Epoch(number) => Some(Wait::until(field::epoch(*number), Form::Instant, clock)),
    }
}

/// "retry after 120": a number alone means seconds if nothing follows that it could count.
fn is_bare_wait(tokens: &Tokens<'_>, at: usize, end: usize) -> bool {
    if is_printed_delay(tokens, at) {
        return true;
    }
    let may_be = matches!(cue::preposition_before(tokens, at), Preposition::In | Preposition::After);
    if !may_be || counts_something(tokens, end) {
        return false;
    }
    let before = cue::before(tokens, at, true);
    before.takes_bare_number && matches!(before.verdict, Verdict::Wait { .. })
}

fn counts_something(tokens: &Tokens<'_>, end: usize) -> bool {
    let is_end = matches!(tokens.sign(end), Some('.' | ',' | ';' | '!' | ')' | '"' | '\'' | '}' | ']' | '`'));
    tokens.gap(end) != Gap::Line && !is_end
}

/// `retry_delay { seconds: 36 }`, as a message of a remote procedure call is printed.
fn is_printed_delay(tokens: &Tokens<'_>, at: usize) -> bool {
    let Some(first) = at.checked_sub(6) else { return false };
    let words = [(first, "retry"), (first + 2, "delay"), (first + 4, "seconds")];
    let signs = [(first + 1, '_'), (first + 3, '{'), (first + 5, ':')];
    words.iter().all(|(at, word)| tokens.word(*at) == *word)
        && signs.iter().all(|(at, sign)| tokens.is_sign(*at, *sign))
}

/// A full date or a time with seconds at the beginning of a line, without a preposition, stamps a log line.
fn is_log_stamp(tokens: &Tokens<'_>, at: usize, expression: &Expression, before: CueBefore) -> bool {
    let opens_line = tokens.gap(at) == Gap::Line
        || at.checked_sub(1).is_some_and(|sign| tokens.is_sign(sign, '[') && tokens.gap(sign) == Gap::Line);
    let is_stamp = match expression {
        Expression::Clock(..) | Expression::Epoch(_) => true,
        Expression::When(when) => {
            matches!(when.day, Day::Date(_)) && matches!(tokens.sign(at + 1), Some('-' | '/'))
        }
        Expression::Length(_) | Expression::Bare(_) => false,
    };
    opens_line && is_stamp && before.preposition == Preposition::None
}

/// "usage limit reached|1760004000".
fn is_behind_bar(tokens: &Tokens<'_>, at: usize) -> bool {
    let Some(bar) = at.checked_sub(1).filter(|bar| tokens.is_sign(*bar, '|') && tokens.glued(at)) else {
        return false;
    };
    matches!(tokens.word_before(bar), "reached" | "limit" | "exceeded" | "exhausted" | "limited" | "hit")
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
