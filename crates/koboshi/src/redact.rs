//! The one place where secrets are taken out of text.
//!
//! Everything that shows or stores text (logs, journal, notices, errors, evidence) passes it through
//! [`Redactor::redact`] first and shortens it with [`shorten`] afterwards, never the other way round: a key
//! that was cut in half is no longer recognised.
//!
//! One regex finds, from left to right, either a secret that is known by its shape (`ghp_…`) or a *head*
//! that announces one (`password=`, `Authorization:`); what follows a head is read by plain code
//! (`redact/value.rs`), because quoting and escaping are no job for a regex. Marks that are already there
//! cut the text into pieces that are read on their own. No pattern asks what comes *after* its match and
//! none may wait for a far-away end, which gives the two promises: redacting twice changes nothing, and
//! hostile text costs no more than linear time.
//!
//! What lies between two secrets is then searched for those that nothing announces (`redact/bare.rs`): long random
//! runs, card numbers, keys of our own. Request ids, UUIDs, hashes and model names look much like them and are what an
//! operator needs to see: a run that a word in front of it explains stays, and a short one too.

mod bare;
mod echo;
mod given;
mod rules;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

pub use echo::{without_echoes, without_prompt};
pub use given::GivenValues;
use rules::{RULES, Rule};

/// How every mark begins; the label and `]` follow.
const MARK: &str = "[redacted:";

/// Stands for a text that could not be examined.
const ALL: &str = "[redacted:text]";

/// All rules as one alternation; group `i + 1` belongs to rule `i`. `None` cannot happen with the constant patterns (a
/// test compiles them); if it did, every text would be withheld rather than shown.
static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups: Vec<String> = RULES.iter().map(|rule| format!("({})", rule.pattern)).collect();
    Regex::new(&format!("(?-u){}", groups.join("|"))).ok()
});

/// Takes secrets out of text. It holds no state, and all of them share one compiled form of the rules: make one wherever
/// one is needed.
#[derive(Debug, Clone)]
pub struct Redactor {
    any: Option<&'static Regex>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

/// A part of the text to be replaced.
struct SecretSpan {
    start: usize,
    end: usize,
    label: &'static str,
}

impl Redactor {
    /// The first one compiles the rules.
    #[must_use]
    pub fn new() -> Self {
        Self { any: ANY.as_ref() }
    }

    /// The text with every secret replaced by a mark such as `[redacted:key]`.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(any) = &self.any else {
            return if text.is_empty() { Cow::Borrowed(text) } else { Cow::Borrowed(ALL) };
        };
        let mut out = String::new();
        let mut copied = 0;
        for_each_hit(any, text, |hit| {
            out.push_str(text.get(copied..hit.start).unwrap_or_default());
            push_mark(&mut out, hit.label);
            copied = hit.end;
        });
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }
}

impl Redactor {
    /// A text fit to be shown or kept: redacted first, then shortened to `max_chars`.
    ///
    /// Of a very long text only the beginning is examined, up to the last space before the limit: a secret that the
    /// limit would cut in half is left out whole.
    #[must_use]
    pub fn excerpt(&self, text: &str, max_chars: usize) -> String {
        let text = text.trim();
        let head = if text.len() <= EXAMINED {
            text
        } else {
            let cut = text.get(..text.floor_char_boundary(EXAMINED)).unwrap_or_default();
            cut.rfind(char::is_whitespace).and_then(|at| cut.get(..at)).unwrap_or_default()
        };
        let redacted = self.redact(head);
        let mut kept = shorten(&redacted, max_chars).into_owned();
        if kept.len() == redacted.len() {
            return kept;
        }
        // Shortening puts words next to each other that were not: search again, until nothing changes.
        for _ in 0..4 {
            match self.redact(&kept) {
                Cow::Borrowed(_) => return kept,
                Cow::Owned(again) => kept = shorten(&again, max_chars).into_owned(),
            }
        }
        shorten(ALL, max_chars).into_owned()
    }
}

impl Redactor {
    /// A part of a text fit to be shown. Secrets are looked for in the text around it as well: of a secret that the part
    /// cuts in half, a mark is shown and no letter.
    ///
    /// Only the nearest of a very long text is examined, from one space to another; where there is none, nothing is shown.
    #[must_use]
    pub fn excerpt_of(&self, text: &str, part: Range<usize>) -> String {
        let from = text.floor_char_boundary(part.start.min(text.len()));
        let to = text.ceil_char_boundary(part.end.clamp(from, text.len()));
        let (Some(any), Some(near)) = (&self.any, near(text, from..to)) else { return ALL.to_owned() };
        let examined = text.get(near.clone()).unwrap_or_default();
        let mut out = String::new();
        let mut copied = from;
        for_each_hit(any, examined, |hit| {
            let (start, end) = (near.start + hit.start, near.start + hit.end);
            if end <= copied || start >= to {
                return;
            }
            out.push_str(text.get(copied..start).unwrap_or_default());
            push_mark(&mut out, hit.label);
            copied = end;
        });
        out.push_str(text.get(copied..to).unwrap_or_default());
        out
    }
}

/// The surroundings in which secrets are looked for; none if they could begin or end inside one.
fn near(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    let mut start = text.floor_char_boundary(part.start.saturating_sub(EXAMINED));
    if start > 0 {
        start += text.get(start..part.start)?.find(char::is_whitespace)?;
    }
    let mut end = text.ceil_char_boundary(part.end.saturating_add(EXAMINED));
    if end < text.len() {
        end = part.end + text.get(part.end..end)?.rfind(char::is_whitespace)?;
    }
    Some(start..end)
}

/// Finds every secret, from left to right. Marks cut the text into pieces that are read on their own.
fn for_each_hit(any: &Regex, text: &str, mut act: impl FnMut(SecretSpan)) {
    let mut pos = 0;
    while pos < text.len() {
        let (piece_end, next) = next_mark(text, pos);
        let marked = next > piece_end;
        let piece = text.get(..piece_end).unwrap_or_default();
        while let Some(hit) = find(any, piece, pos, marked) {
            for_each_bare(text, pos..hit.start, &mut act);
            pos = hit.end;
            act(hit);
        }
        for_each_bare(text, pos..piece_end, &mut act);
        pos = next;
    }
}

/// Finds the secrets that nothing announces, in a part that is read on its own.
fn for_each_bare(text: &str, part: Range<usize>, act: &mut impl FnMut(SecretSpan)) {
    let alone = text.get(part.clone()).unwrap_or_default();
    let mut at = 0;
    // Each time from the last one on: that is how it is read the next time, when a mark stands there.
    while let Some((found, label)) = alone.get(at..).and_then(bare::find) {
        let start = part.start + at;
        act(SecretSpan { start: start + found.start, end: start + found.end, label });
        at += found.end;
    }
}

fn push_mark(out: &mut String, label: &str) {
    out.push_str(MARK);
    out.push_str(label);
    out.push(']');
}

/// How much of a text an excerpt is taken from.
const EXAMINED: usize = 16 * 1024;

/// The first secret at or after `from`. `marked` says that a mark follows the text.
fn find(any: &Regex, text: &str, from: usize, marked: bool) -> Option<SecretSpan> {
    let mut at = from;
    loop {
        // A slice, not `captures_at`: what stands after a mark is read the same way the next time.
        let rest = text.get(at..)?;
        let found = any.captures(rest)?;
        let whole = found.get(0)?;
        let rule: &Rule =
            found.iter().skip(1).position(|group| group.is_some()).and_then(|i| RULES.get(i))?;
        if let Some(span) = value::locate(rule, rest, whole.range(), marked)
            && span.start < span.end
        {
            return Some(SecretSpan { start: at + span.start, end: at + span.end, label: rule.label });
        }
        at += whole.end().max(1);
    }
}

/// Where the next mark at or after `from` begins and ends; the end of the text twice if there is none.
fn next_mark(text: &str, from: usize) -> (usize, usize) {
    let mut at = from;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find(MARK)).map(|found| at + found) {
        let label = start + MARK.len();
        let rest = text.get(label..).unwrap_or_default();
        let length = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        if rules::is_label(rest.get(..length).unwrap_or_default())
            && rest.get(length..).is_some_and(|rest| rest.starts_with(']'))
        {
            return (start, label + length + 1);
        }
        at = label;
    }
    (text.len(), text.len())
}

/// Stands between the kept head and the kept tail.
const GAP: &str = " … ";

/// The text, or its head and its tail if it has more than `max_chars` characters.
///
/// Errors say what at the beginning and why at the end, so both are kept, the head twice as long.
#[must_use]
pub fn shorten(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars || text.char_indices().nth(max_chars).is_none() {
        return Cow::Borrowed(text);
    }
    let head_end = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let gap = GAP.chars().count();
    if max_chars < 3 * gap {
        // No room for two ends that say anything.
        return Cow::Borrowed(text.get(..head_end(max_chars)).unwrap_or_default());
    }
    let tail = (max_chars - gap) / 3;
    let head = max_chars - gap - tail;
    let tail_start = text.char_indices().rev().nth(tail.saturating_sub(1)).map_or(0, |(at, _)| at);
    let (head, tail) = (text.get(..head_end(head)), text.get(tail_start..));
    Cow::Owned(format!("{}{GAP}{}", head.unwrap_or_default(), tail.unwrap_or_default()))
}
