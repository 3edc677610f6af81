//! Strings that could end in several places: decides which end is meant, or that no single end can be chosen.
//!
//! Each possible end is tried from the state before the string. The first reading that works is kept, and the others
//! are tried as well. A reading that only swallows members which the first one read cleanly does not count; any other
//! makes the text ambiguous. The reading that is left must not have swallowed something like a key that the schema
//! knows, since a lost quotation mark would read the same.

use std::ops::Range;

use super::lexis::{Quote, blank_end};
use super::reader::{Enclosure, Frame, NextPart, ReadObject, Reader, stop};
use super::schema::ToolSchema;
use super::strings::opens_quotation;
use super::tape::Kind;
use super::verdict::{Defect, Stop};

/// The most strings at a time whose end is not decided.
const MAX_OPEN: usize = 64;

/// All tries together may read the text at most this many times.
const MAX_WORK: usize = 8;

/// A string with quotation marks inside.
#[derive(Debug, Clone)]
pub(super) struct UncertainString {
    /// Its body.
    pub(super) span: Range<usize>,
    pub(super) quote: Quote,
    /// It is an element, and has no key.
    pub(super) in_list: bool,
    /// Its place on the tape.
    pub(super) item: usize,
    /// With its quotation marks.
    pub(super) whole: Range<usize>,
}

/// The state before a string whose end is not certain.
pub(super) struct Choice {
    start: usize,
    quote: Quote,
    /// Where the search for another end continues.
    next: usize,
    want: NextPart,
    frames: Vec<Frame>,
    items: usize,
    made: usize,
    changes: usize,
    dirty: usize,
}

impl Choice {
    pub(super) fn before(reader: &Reader<'_>, start: usize, quote: Quote, next: usize) -> Self {
        Self {
            start,
            quote,
            next,
            want: reader.want,
            frames: reader.frames.clone(),
            items: reader.tape.len(),
            made: reader.tape.made.len(),
            changes: reader.changes.len(),
            dirty: reader.dirty.len(),
        }
    }

    fn is_in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| matches!(frame.by, Enclosure::Object | Enclosure::Call))
    }
}

impl Reader<'_> {
    pub(super) fn try_end(&mut self, choice: Choice) -> Result<(), Stop> {
        if self.choices.len() >= MAX_OPEN {
            return Err(too_many(choice.start));
        }
        self.choices.push(choice);
        Ok(())
    }

    /// Reads to the end of the object, in the only way there is.
    pub(super) fn read(mut self) -> Result<ReadObject, Stop> {
        let mut found: Option<ReadObject> = None;
        let mut sound = Ok(());
        let mut first_failure: Option<Stop> = None;
        loop {
            let outcome = self.step();
            if outcome.is_ok() && !self.frames.is_empty() {
                continue;
            }
            let outcome = outcome.and_then(|()| self.no_quotes_follow()).and_then(|()| self.read_dirty());
            match outcome {
                Ok(()) if found.is_some() => {
                    let start = self.dirty.first().map_or(self.at, |dirty| dirty.span.start);
                    let why = "a string with quotation marks inside could end in several places: escape them";
                    return Err(stop(Defect::Ambiguous, start, why));
                }
                Ok(()) => {
                    // Later ends of the last uncertain string only swallow what has just been read cleanly. If its
                    // marks do not come in pairs, they may well be meant to.
                    let paired = self.dirty.last().is_none_or(|dirty| {
                        let body = self.text.get(dirty.span.clone()).unwrap_or_default();
                        dirty.quote.count_in(body).is_multiple_of(2)
                    });
                    self.choices.pop_if(|choice| paired && choice.is_in_object());
                    sound = swallows_nothing(&self.dirty, self.text, self.schema);
                    found = Some(self.take());
                }
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
            self.work += self.at - self.choices.last().map_or(0, |choice| choice.next).min(self.at);
            if self.work > MAX_WORK * self.text.len() && !self.choices.is_empty() {
                return Err(too_many(self.at));
            }
            if let Err(failure) = self.next_choice() {
                first_failure.get_or_insert(failure);
                break;
            }
        }
        match (found, first_failure) {
            (Some(read), _) => sound.map(|()| read),
            (None, Some(failure)) => Err(failure),
            (None, None) => Err(self.unexpected("an object is expected here")),
        }
    }

    /// Goes back to the last uncertain string and looks for its next end; an error when nothing is left to try.
    fn next_choice(&mut self) -> Result<(), Stop> {
        let none = || stop(Defect::Unreadable, 0, "an object is expected here");
        loop {
            let choice = self.choices.pop().ok_or_else(none)?;
            self.at = choice.start;
            self.want = choice.want;
            self.frames = choice.frames;
            self.tape.cut(choice.items, choice.made);
            self.changes.truncate(choice.changes);
            self.dirty.truncate(choice.dirty);
            if self.string_from(choice.quote, choice.next, true).is_ok() {
                return Ok(());
            }
            self.work += self.text.len() - choice.next;
        }
    }

    fn take(&mut self) -> ReadObject {
        if self.choices.is_empty() {
            // Nothing will be tried again.
            let (tape, changes) = (std::mem::take(&mut self.tape), std::mem::take(&mut self.changes));
            return ReadObject { tape, changes, end: self.at };
        }
        ReadObject { tape: self.tape.clone(), changes: self.changes.clone(), end: self.at }
    }

    /// Reads the inside of the uncertain strings.
    fn read_dirty(&mut self) -> Result<(), Stop> {
        for index in 0..self.dirty.len() {
            let Some(UncertainString { span, quote, item, whole, .. }) = self.dirty.get(index).cloned()
            else {
                continue;
            };
            self.work += span.len();
            self.body(Kind::Text, quote, whole, span)?;
            self.tape.put_last_at(item);
        }
        Ok(())
    }

    /// After an uncertain string, nothing behind the object may look as if it belonged to the string.
    fn no_quotes_follow(&self) -> Result<(), Stop> {
        if self.dirty.is_empty() {
            return Ok(());
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        // Back-ticks may be the end of a fence.
        let strange = |place: usize, letter: char| {
            matches!(letter, '{' | '[' | ':' | ',')
                || Quote::at(rest, place).is_some_and(|(quote, _)| quote != Quote::Tick)
        };
        if rest.char_indices().any(|(place, letter)| strange(place, letter)) {
            return Err(stop(Defect::Ambiguous, self.at, "quotation marks follow the end of the object"));
        }
        Ok(())
    }
}

fn too_many(at: usize) -> Stop {
    stop(
        Defect::Ambiguous,
        at,
        "there are too many ways to read the quotation marks: escape those inside strings",
    )
}

/// A reading is refused if one of its strings holds something like a key that could be meant, or like two strings.
fn swallows_nothing(dirty: &[UncertainString], text: &str, schema: Option<&ToolSchema>) -> Result<(), Stop> {
    for UncertainString { span, quote, in_list, .. } in dirty {
        let body = text.get(span.clone()).unwrap_or_default();
        let found = like_key(body, schema)
            .or_else(|| like_two(body, *quote, *in_list))
            .or_else(|| like_comment(body, *quote));
        let pairs = matches!(quote, Quote::Straight | Quote::Single);
        let found = found.or_else(|| like_one_lost(body, *quote).filter(|_| pairs));
        if let Some(place) = found {
            let why = "a quotation mark or comma is missing, or those inside the string are not escaped";
            return Err(stop(Defect::Ambiguous, span.start + place, why));
        }
    }
    Ok(())
}

/// `a" "b` could be two strings without a comma; in a list also `a", "b` and `a, "b` could be two elements.
fn like_two(body: &str, quote: Quote, in_list: bool) -> Option<usize> {
    let mut from = 0;
    let mut before = None;
    while let Some((place, length)) = quote.next_end(body, from) {
        let after = place + length;
        let next = blank_end(body, after).0;
        let same = quote.next_end(body, next).is_some_and(|(second, _)| second == next)
            || in_list && Quote::at(body, next).is_some();
        let rest = body.get(next..).unwrap_or_default();
        let gap = body.get(before.unwrap_or(0)..place).unwrap_or_default().trim_end();
        let separators = [',', '，', '、', ';', '；'];
        let beside_comma =
            rest.starts_with(separators) || rest.starts_with([':', '：']) || gap.ends_with(separators);
        let beside_bracket = rest.starts_with(['}', ']', ')']) || gap.ends_with(['{', '[', '(']);
        if (same && (in_list || next > after)) || (in_list && (beside_comma || beside_bracket)) {
            return Some(place);
        }
        before = Some(after);
        from = after;
    }
    None
}

/// `a = "b` has lost a mark, `5"` at the end has one too many or means inches, and `\\"` was escaped twice.
fn like_one_lost(body: &str, quote: Quote) -> Option<usize> {
    let letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut from, mut marks, mut last) = (0, 0_usize, None);
    while let Some((place, length)) = quote.next_end(body, from) {
        from = place + length;
        let before = body.get(..place).unwrap_or_default();
        let after = body.get(from..).unwrap_or_default();
        if quote == Quote::Straight && before.ends_with('\\') {
            return Some(place);
        }
        // An apostrophe inside a word has no partner.
        let in_word = letter(before.chars().next_back()) && letter(after.chars().next());
        if quote == Quote::Straight || !in_word {
            (marks, last) = (marks + 1, Some((place, before, after)));
        }
    }
    let (place, before, after) = last.filter(|_| !marks.is_multiple_of(2))?;
    let opens = before.chars().next_back().is_none_or(opens_quotation);
    (opens || after.is_empty()).then_some(place)
}

/// `a" // "b`: was the string over, and a comment followed it?
fn like_comment(body: &str, quote: Quote) -> Option<usize> {
    let mut from = 0;
    while let Some((place, length)) = quote.next_end(body, from) {
        from = place + length;
        let next = blank_end(body, from).0;
        let rest = body.get(next..).unwrap_or_default();
        if next > from && ["//", "#", "/*", "<!--"].iter().any(|begin| rest.starts_with(begin)) {
            return Some(place);
        }
    }
    None
}

/// Something like a key in a text.
pub(super) fn member_in(text: &str) -> Option<usize> {
    like_key(text, None)
}

fn like_key(body: &str, schema: Option<&ToolSchema>) -> Option<usize> {
    let mut from = 0;
    for (place, letter) in body.char_indices() {
        if Quote::at(body, place).is_none() {
            continue;
        }
        let after = place + letter.len_utf8();
        let (next, _) = blank_end(body, after);
        if body.get(next..).is_some_and(|rest| rest.starts_with([':', '：'])) {
            let between = body.get(from..place).unwrap_or_default();
            let word =
                between.rsplit(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))).next();
            let meant = |key: &str| schema.is_none_or(|schema| schema.could_mean(key));
            if meant(between) || word.is_some_and(meant) {
                return Some(place);
            }
        }
        from = after;
    }
    None
}
