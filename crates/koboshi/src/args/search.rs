//! The one edit that makes a broken text an object which the schema takes.
//!
//! A text that no reader understands is mostly a valid one with one mark too few, too many or of another kind. All single edits are tried, at every place
//! up to the one where the text stops being JSON: a later edit cannot mend that place. The [`State`] before each place is known, so a candidate costs only the bytes
//! from its edit to its next defect, which nearly always follows at once. What reaches the end is checked as a whole, by `strict` and the schema.
//!
//! The edits are those of marks: one inserted, dropped or exchanged for a relative, and a quotation mark inside a string escaped, so that the string
//! ends later. Accepted is only what all of them agree on:
//! two candidates with different values are two readings, and a refusal. A text that may have been cut is never completed: an edit with nothing but
//! closing brackets behind it is a reading that others must agree with, and alone none.
//!
//! Without a schema nothing is searched: every structure would do. See decision 16.

use serde_json::Value;

use super::automaton::{Expect, State};
use super::schema::ToolSchema;
use super::settle::{Arguments, Case};
use super::strict::{self, ScanResult, Top};
use super::verdict::{Change, ChangeKind, Defect, Stop};

/// Longer texts are not searched.
const MAX_BYTES: usize = 64 * 1024;
/// How many bytes all candidates together may read, for each byte of the text; and for a text of any length.
const MAX_STEPS_PER_BYTE: usize = 24;
const MIN_STEPS: usize = 20_000;
/// How many candidates may be checked as a whole.
const MAX_CANDIDATES: usize = 16;

/// What a search found.
pub(super) enum Outcome {
    /// All candidates have this one value.
    One(Arguments),
    /// Two have different values.
    Two(Stop),
    /// There is none, or the search was given up.
    None,
}

/// One edit of the text.
#[derive(Debug, Clone, Copy)]
struct Edit {
    what: ChangeKind,
    at: usize,
    /// How many bytes it takes away.
    taken: usize,
    /// What it puts there.
    put: &'static str,
    /// It begins a string.
    opens: bool,
}

impl Edit {
    fn applied(self, text: &str) -> Option<String> {
        let (before, after) = (text.get(..self.at)?, text.get(self.at + self.taken..)?);
        Some([before, self.put, after].concat())
    }
}

/// Marks that can be inserted, or that a relative is exchanged for.
const MARKS: [(u8, &str); 7] =
    [(b'"', "\""), (b',', ","), (b':', ":"), (b'{', "{"), (b'}', "}"), (b'[', "["), (b']', "]")];

/// The family of a mark: marks are exchanged within it.
fn family(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\'' | b'`' => 0,
        b',' | b':' | b';' | b'=' | b'.' => 1,
        b'{' | b'[' | b'(' => 2,
        b'}' | b']' | b')' => 3,
        _ => return None,
    })
}

/// Looks for the one edit.
pub(super) fn run(text: &str, case: Case<'_>) -> Outcome {
    let Some(schema) = case.schema else { return Outcome::None };
    if text.len() > MAX_BYTES {
        return Outcome::None;
    }
    let mut search = Search {
        text,
        schema,
        max_depth: case.max_depth,
        steps: text.len().saturating_mul(MAX_STEPS_PER_BYTE).max(MIN_STEPS),
        candidates: 0,
        found: None,
    };
    let ended = search.all();
    match (ended, search.found) {
        (Err(GivenUp::Two(at)), _) => {
            let why = "two different changes of one mark each make it readable";
            Outcome::Two(Stop::new(Defect::Ambiguous, at, why))
        }
        (Ok(()), Some(Reading { is_doubtful: false, json, edit, .. })) => {
            let changes = vec![Change { what: edit.what, span: edit.at..edit.at + edit.taken }];
            Outcome::One(Arguments { json, changes })
        }
        _ => Outcome::None,
    }
}

struct Search<'t> {
    text: &'t str,
    schema: &'t ToolSchema,
    max_depth: usize,
    /// How many bytes may still be read.
    steps: usize,
    candidates: usize,
    found: Option<Reading>,
}

/// The first candidate that was accepted.
struct Reading {
    value: Value,
    json: String,
    edit: Edit,
    /// It is a reading that others must agree with, but not enough by itself: nothing but closing brackets follows what was added, so that the text
    /// may have been cut there; or the string that was bounded has no word in it.
    is_doubtful: bool,
}

/// Why the search ended before all edits were tried.
enum GivenUp {
    /// It would take too long.
    Limit,
    /// A second value was found, by an edit at this place.
    Two(usize),
}

impl Search<'_> {
    /// Tries all edits at each place, up to the one where the text stops being JSON.
    fn all(&mut self) -> Result<(), GivenUp> {
        let mut state = State::START;
        let mut before = None;
        for (at, byte) in self.text.bytes().enumerate() {
            self.edits_at(at, Some(byte), before, state)?;
            let Some(next) = state.step(byte) else { return Ok(()) };
            state = next;
            before = Some(byte);
        }
        self.edits_at(self.text.len(), None, before, state)
    }

    fn edits_at(
        &mut self,
        at: usize,
        byte: Option<u8>,
        before: Option<u8>,
        state: State,
    ) -> Result<(), GivenUp> {
        let is_blank = |byte: Option<u8>| byte.is_some_and(|byte| b" \t\r\n".contains(&byte));
        let in_string = state.is_in_string();
        if matches!(state.expect, Expect::Escape { .. }) {
            return Ok(());
        }
        for (mark, put) in MARKS {
            let is_quote = mark == b'"';
            // Inside a string only a quotation mark changes the structure. A mark belongs to what stands beside it: to what is before it,
            // and a quotation mark that opens to what follows.
            let fits = match (is_quote, in_string) {
                // Behind an escaped quotation mark, its backslash may have been meant as one and the mark as the end.
                (true, true) => !is_blank(before) && before != Some(b'"'),
                (true, false) => !is_blank(byte) && byte.is_some(),
                (false, true) => false,
                (false, false) => !is_blank(before),
            };
            if !fits || (mark == b',' && self.joins_texts(at, before, state)) {
                continue;
            }
            if let Some(next) = state.step(mark) {
                self.follow(
                    Edit { what: ChangeKind::MarkAdded, at, taken: 0, put, opens: !in_string },
                    next,
                )?;
            }
        }
        let Some(byte) = byte else { return Ok(()) };
        let Some(of) = family(byte) else { return Ok(()) };
        for (mark, put) in MARKS {
            let is_relative = mark != byte && family(mark) == Some(of);
            // Inside a string, only a quotation mark of another kind can end it.
            if is_relative
                && (!in_string || mark == b'"')
                && let Some(next) = state.step(mark)
            {
                self.follow(Edit { what: ChangeKind::MarkExchanged, at, taken: 1, put, opens: false }, next)?;
            }
        }
        if in_string {
            if byte == b'"' {
                self.follow(
                    Edit { what: ChangeKind::QuotesEscaped, at, taken: 1, put: "\\\"", opens: false },
                    state,
                )?;
                self.follow(
                    Edit { what: ChangeKind::MarkDropped, at, taken: 1, put: "", opens: false },
                    state,
                )?;
            }
        } else if MARKS.iter().any(|(mark, _)| *mark == byte)
            && !self.leaves_hole(at, byte, before, state)
            && !self.joins_words(at, before)
        {
            self.follow(Edit { what: ChangeKind::MarkDropped, at, taken: 1, put: "", opens: false }, state)?;
        }
        Ok(())
    }

    /// Whether a comma here would separate two texts that stand side by side in an array: they may be one, as in Python.
    fn joins_texts(&self, at: usize, before: Option<u8>, state: State) -> bool {
        let follows = self.text.get(at..).map(str::trim_start).and_then(|rest| rest.bytes().next());
        state.is_in_array() && before == Some(b'"') && follows == Some(b'"')
    }

    /// Whether without this comma an array would have one element less than was meant: `[1,,2]`.
    fn leaves_hole(&self, at: usize, byte: u8, before: Option<u8>, state: State) -> bool {
        byte == b',' && state.is_in_array() && at > 0 && before != Some(b'}')
    }

    /// Whether what stands on both sides of this mark would become one word or number: `1,000`.
    fn joins_words(&self, at: usize, before: Option<u8>) -> bool {
        let after = self.text.as_bytes().get(at + 1).copied();
        let is_word = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        is_word(before) && is_word(after)
    }

    /// Whether the quotation mark that was added bounds a string with letters or digits in it, and has no separator on its inside. In `": "` it is as
    /// likely that the marks are structure.
    fn bounds_words(&self, edit: Edit) -> bool {
        let Some((before, after)) = self.text.split_at_checked(edit.at) else { return false };
        let inside = if edit.opens { after } else { before };
        let beside = if edit.opens { inside.bytes().next() } else { inside.bytes().next_back() };
        let behind = after.split('"').next().unwrap_or_default();
        let ahead = before.rsplit('"').next().unwrap_or_default();
        !matches!(beside, Some(b',' | b':'))
            && [behind, ahead].iter().any(|side| side.contains(char::is_alphanumeric))
    }

    /// Reads on behind an edit; a candidate that reaches the end is checked.
    fn follow(&mut self, edit: Edit, state: State) -> Result<(), GivenUp> {
        let rest = self.text.as_bytes().get(edit.at + edit.taken..).unwrap_or_default();
        let mut state = state;
        for byte in rest {
            self.steps = self.steps.checked_sub(1).ok_or(GivenUp::Limit)?;
            let Some(next) = state.step(*byte) else { return Ok(()) };
            state = next;
        }
        if state.is_over() { self.check(edit, rest) } else { Ok(()) }
    }

    /// Checks a candidate as a whole.
    fn check(&mut self, edit: Edit, rest: &[u8]) -> Result<(), GivenUp> {
        self.candidates += 1;
        if self.candidates > MAX_CANDIDATES {
            return Err(GivenUp::Limit);
        }
        let Some(json) = edit.applied(self.text) else { return Ok(()) };
        let Ok(ScanResult { top: Top::Object, duplicate: None }) = strict::scan(&json, self.max_depth) else {
            return Ok(());
        };
        let Ok(value) = serde_json::from_str::<Value>(&json) else { return Ok(()) };
        if !self.schema.is_satisfied_by(&value) {
            return Ok(());
        }
        let is_end = |byte: &u8| b"}] \t\r\n".contains(byte);
        let is_added = edit.what == ChangeKind::MarkAdded;
        let is_quote = edit.put == "\"";
        let is_doubtful = is_added && (rest.iter().all(is_end) || is_quote && !self.bounds_words(edit));
        match &mut self.found {
            Some(found) if found.value == value => found.is_doubtful &= is_doubtful,
            Some(_) => return Err(GivenUp::Two(edit.at)),
            none => *none = Some(Reading { value, json, edit, is_doubtful }),
        }
        Ok(())
    }
}
