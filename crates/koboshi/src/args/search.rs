//! The fewest edits that make a broken text an object which the schema takes.
//!
//! A text that no reader understands is mostly a valid one with a mark or two too few, too many or of another kind. All edits are tried, at every place
//! up to the one where the text stops being JSON: a later edit cannot mend that place. The [`State`] before each place is known, so a candidate costs only the letters
//! from its edit to its next defect, which nearly always follows at once. What reaches the end is checked as a whole, by `strict` and the schema, or by the
//! readers if the text has notations of its own.
//!
//! The edits are those of marks: one inserted, dropped or exchanged for a relative, and a quotation mark inside a string escaped, so that the string
//! ends later. What is cheap is tried first ([`PASSES`]), and a pass ends the search as soon as it has a candidate. Accepted is only what all candidates of
//! that pass agree on: two with different values are two readings, and a refusal that names both. A text that may have been cut is never completed: an edit with
//! nothing but closing brackets behind it is a reading that others must agree with, and alone none.
//!
//! Without a schema nothing is searched: every structure would do. See decision 16.

use std::collections::HashSet;

use serde_json::Value;

use super::automaton::{Expect, Notation, State};
use super::find;
use super::schema::ToolSchema;
use super::settle::{Arguments, Case};
use super::strict::{self, ScanResult, Top};
use super::verdict::{Change, ChangeKind, Defect, Position, Stop};

/// Longer texts are not searched.
const MAX_BYTES: usize = 64 * 1024;
/// How many candidates of a pass may be checked as a whole.
const MAX_CANDIDATES: usize = 16;
/// The most edits of one reading.
const MAX_EDITS: usize = 2;

/// What one pass over the text looks for.
struct Pass {
    notation: Notation,
    edits: usize,
    /// How many letters all candidates together may read, for each byte of the text; and for a text of any length.
    steps_per_byte: usize,
    steps: usize,
}

/// The passes, by what they cost the writer: a notation is one habit, an edit is one mistake.
const PASSES: [Pass; 3] = [
    Pass { notation: Notation::Json, edits: 1, steps_per_byte: 24, steps: 20_000 },
    Pass { notation: Notation::Any, edits: 1, steps_per_byte: 8, steps: 20_000 },
    Pass { notation: Notation::Json, edits: 2, steps_per_byte: 0, steps: 250_000 },
];

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
    /// In words, without a word of the text itself.
    fn told(self, text: &str) -> String {
        let Position { line, column, .. } = Position::of(text, self.at);
        let taken = text.get(self.at..self.at + self.taken).unwrap_or_default();
        let what = match self.what {
            ChangeKind::MarkAdded => format!("{} added", self.put),
            ChangeKind::MarkDropped => format!("{taken} left out"),
            ChangeKind::MarkExchanged => format!("{} in place of {taken}", self.put),
            _ => format!("{taken} escaped"),
        };
        format!("{what} in line {line}, column {column}")
    }
}

/// The edits of one reading, in the order of the text.
#[derive(Debug, Clone, Copy, Default)]
struct Edits([Option<Edit>; MAX_EDITS]);

impl Edits {
    fn and(mut self, edit: Edit) -> Self {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(edit);
        }
        self
    }

    fn all(&self) -> impl Iterator<Item = Edit> {
        self.0.into_iter().flatten()
    }

    fn applied(&self, text: &str) -> Option<String> {
        let mut edited = String::with_capacity(text.len() + MAX_EDITS);
        let mut from = 0;
        for edit in self.all() {
            edited.push_str(text.get(from..edit.at)?);
            edited.push_str(edit.put);
            from = edit.at + edit.taken;
        }
        edited.push_str(text.get(from..)?);
        Some(edited)
    }

    /// The place in the text of a place in the edited text.
    fn place_before(&self, place: usize) -> usize {
        self.all().fold(place, |place, edit| {
            // What is behind the edit has moved; what is inside of it is at its place.
            if place <= edit.at {
                place
            } else {
                (place + edit.taken).saturating_sub(edit.put.len()).max(edit.at)
            }
        })
    }

    fn told(&self, text: &str) -> String {
        self.all().map(|edit| edit.told(text)).collect::<Vec<_>>().join(" and ")
    }
}

/// Marks that can be inserted, or that a relative is exchanged for.
const MARKS: [(char, &str); 8] =
    [('"', "\""), (',', ","), (':', ":"), ('{', "{"), ('}', "}"), ('[', "["), (']', "]"), ('\'', "'")];

/// The family of a mark: marks are exchanged within it.
const fn family(letter: char) -> Option<u8> {
    Some(match letter {
        '"' | '\'' | '`' => 0,
        ',' | ':' | ';' | '=' | '.' => 1,
        '{' | '[' | '(' => 2,
        '}' | ']' | ')' => 3,
        _ => return None,
    })
}

const fn is_quote(letter: char) -> bool {
    matches!(letter, '"' | '\'')
}

const fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Looks for the fewest edits. `is_plain`: the readers found no reading at all, so that the dearer passes compete with nothing.
pub(super) fn run(text: &str, case: Case<'_>, is_plain: bool) -> Outcome {
    let Some(schema) = case.schema else { return Outcome::None };
    if text.len() > MAX_BYTES {
        return Outcome::None;
    }
    let passes = if is_plain { PASSES.as_slice() } else { PASSES.get(..1).unwrap_or_default() };
    for pass in passes {
        let mut search = Search {
            text,
            schema,
            case,
            notation: pass.notation,
            edits: pass.edits,
            has_single: pass.notation == Notation::Any && text.contains('\''),
            steps: text.len().saturating_mul(pass.steps_per_byte).max(pass.steps),
            candidates: 0,
            found: None,
            failed: HashSet::new(),
        };
        let ended = search.walk(State::start(pass.notation), 0, None, Edits::default());
        match (ended, search.found) {
            (Err(GivenUp::Two(stop)), _) => return Outcome::Two(stop),
            (Err(GivenUp::Limit), _) => return Outcome::None,
            (Ok(()), None) => {}
            (Ok(()), Some(Reading { is_doubtful: true, .. })) => return Outcome::None,
            (Ok(()), Some(Reading { json, mut changes, edits, .. })) => {
                changes.extend(
                    edits.all().map(|edit| Change { what: edit.what, span: edit.at..edit.at + edit.taken }),
                );
                changes.sort_by_key(|change| (change.span.start, change.span.end));
                return Outcome::One(Arguments { json, changes });
            }
        }
    }
    Outcome::None
}

struct Search<'t> {
    text: &'t str,
    schema: &'t ToolSchema,
    case: Case<'t>,
    notation: Notation,
    /// How many edits a reading of this pass has.
    edits: usize,
    /// The text has single quotation marks that may enclose strings.
    has_single: bool,
    /// How many letters may still be read.
    steps: usize,
    candidates: usize,
    found: Option<Reading>,
    /// Places behind an edit from which no further edit leads to a candidate.
    failed: HashSet<(usize, State)>,
}

/// The first candidate that was accepted.
struct Reading {
    value: Value,
    json: String,
    changes: Vec<Change>,
    edits: Edits,
    /// It is a reading that others must agree with, but not enough by itself: nothing but closing brackets follows what was added, so that the text
    /// may have been cut there; or the string that was bounded has no word in it.
    is_doubtful: bool,
}

/// Why the search ended before all edits were tried.
enum GivenUp {
    /// It would take too long.
    Limit,
    /// A second value was found.
    Two(Stop),
}

impl Search<'_> {
    /// Tries all edits at each place from here, up to the one where the text stops being JSON.
    fn walk(
        &mut self,
        mut state: State,
        from: usize,
        mut before: Option<char>,
        edits: Edits,
    ) -> Result<(), GivenUp> {
        for (offset, letter) in self.text.get(from..).unwrap_or_default().char_indices() {
            self.steps = self.steps.checked_sub(1).ok_or(GivenUp::Limit)?;
            // Text around the object is the readers' business.
            if state.is_inside() || self.notation == Notation::Json {
                self.edits_at(from + offset, Some(letter), before, state, edits)?;
            }
            let Some(next) = state.step(letter) else { return Ok(()) };
            state = next;
            before = Some(letter);
        }
        self.edits_at(self.text.len(), None, before, state, edits)
    }

    fn edits_at(
        &mut self,
        at: usize,
        letter: Option<char>,
        before: Option<char>,
        state: State,
        edits: Edits,
    ) -> Result<(), GivenUp> {
        let in_string = state.is_in_string();
        if matches!(state.expect, Expect::Escape { .. }) {
            return Ok(());
        }
        for (mark, put) in MARKS {
            if mark == '\'' && !self.has_single {
                continue;
            }
            // Inside a string only its quotation mark changes the structure. A mark belongs to what stands beside it: to what is before it,
            // and a quotation mark that opens to what follows.
            let fits = match (is_quote(mark), in_string) {
                // Behind an escaped quotation mark, its backslash may have been meant as one and the mark as the end.
                (true, true) => {
                    state.is_ended_by(mark)
                        && !before.is_none_or(|before| is_blank(before) || before == mark)
                        && self.may_end(at)
                }
                (true, false) => letter.is_some_and(|letter| !is_blank(letter)),
                (false, true) => false,
                (false, false) => !before.is_some_and(is_blank),
            };
            if !fits || (mark == ',' && self.joins_texts(at, before, state)) {
                continue;
            }
            if let Some(next) = state.step(mark) {
                let edit = Edit { what: ChangeKind::MarkAdded, at, taken: 0, put, opens: !in_string };
                self.follow(edits, edit, next)?;
            }
        }
        let Some(letter) = letter else { return Ok(()) };
        let Some(of) = family(letter) else { return Ok(()) };
        let exchanged = |put| Edit { what: ChangeKind::MarkExchanged, at, taken: 1, put, opens: false };
        for (mark, put) in MARKS {
            let is_relative = mark != letter && family(mark) == Some(of) && (mark != '\'' || self.has_single);
            // Inside a string, only a quotation mark of another kind can end it.
            if is_relative
                && (!in_string || state.is_ended_by(mark))
                && let Some(next) = state.step(mark)
            {
                self.follow(edits, exchanged(put), next)?;
            }
        }
        let dropped = Edit { what: ChangeKind::MarkDropped, at, taken: 1, put: "", opens: false };
        if in_string {
            if state.is_ended_by(letter) {
                let put = if letter == '"' { "\\\"" } else { "\\'" };
                let escaped = Edit { what: ChangeKind::QuotesEscaped, at, taken: 1, put, opens: false };
                self.follow(edits, escaped, state)?;
                self.follow(edits, dropped, state)?;
            }
        } else if MARKS.iter().any(|(mark, _)| *mark == letter)
            && !self.leaves_hole(at, letter, before, state)
            && !self.joins_words(at, before)
        {
            self.follow(edits, dropped, state)?;
        }
        Ok(())
    }

    /// Whether this pass takes more than one edit of JSON.
    fn is_free(&self) -> bool {
        self.edits > 1 || self.notation == Notation::Any
    }

    /// Whether a string may end here: a mark follows. Where one edit is left, the automaton says so itself.
    fn may_end(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        self.edits == 1 || !rest.trim_start_matches(is_blank).starts_with(char::is_alphanumeric)
    }

    /// Whether a comma here would separate two texts that stand side by side in an array: they may be one, as in Python.
    fn joins_texts(&self, at: usize, before: Option<char>, state: State) -> bool {
        let follows = self.text.get(at..).map(str::trim_start).and_then(|rest| rest.chars().next());
        let is_text = |letter: char| is_quote(letter) || self.is_free() && letter.is_alphanumeric();
        state.is_in_array() && before.is_some_and(is_quote) && follows.is_some_and(is_text)
    }

    /// Whether without this comma an array would have one element less than was meant: `[1,,2]`.
    fn leaves_hole(&self, at: usize, letter: char, before: Option<char>, state: State) -> bool {
        letter == ',' && state.is_in_array() && at > 0 && before != Some('}')
    }

    /// Whether what stands on both sides of this mark would become one word or number: `1,000`.
    fn joins_words(&self, at: usize, before: Option<char>) -> bool {
        let after = self.text.get(at + 1..).and_then(|rest| rest.chars().next());
        let is_word = |letter: Option<char>| {
            letter.is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '+' | '-' | '.'))
        };
        is_word(before) && is_word(after)
    }

    /// Whether the quotation mark that was added bounds a string with letters or digits in it, and has no separator on its inside. In `": "` it is as
    /// likely that the marks are structure.
    fn bounds_words(&self, edit: Edit) -> bool {
        let Some((before, after)) = self.text.split_at_checked(edit.at) else { return false };
        let inside = if edit.opens { after } else { before };
        let beside = if edit.opens {
            inside.trim_start().bytes().next()
        } else {
            inside.trim_end().bytes().next_back()
        };
        let behind = after.split('"').next().unwrap_or_default();
        let ahead = before.rsplit('"').next().unwrap_or_default();
        !matches!(beside, Some(b',' | b':'))
            && [behind, ahead].iter().any(|side| side.contains(char::is_alphanumeric))
    }

    /// Reads on behind an edit: to the end, or with one more edit.
    fn follow(&mut self, edits: Edits, edit: Edit, state: State) -> Result<(), GivenUp> {
        let from = edit.at + edit.taken;
        let edits = edits.and(edit);
        if edits.all().count() < self.edits {
            if self.failed.contains(&(from, state)) {
                return Ok(());
            }
            let candidates = self.candidates;
            let before =
                edit.put.chars().next_back().or_else(|| self.text.get(..edit.at)?.chars().next_back());
            self.walk(state, from, before, edits)?;
            if candidates == self.candidates {
                self.failed.insert((from, state));
            }
            return Ok(());
        }
        let mut state = state;
        for letter in self.text.get(from..).unwrap_or_default().chars() {
            self.steps = self.steps.checked_sub(1).ok_or(GivenUp::Limit)?;
            let Some(next) = state.step(letter) else { return Ok(()) };
            state = next;
        }
        if state.is_over() { self.check(edits) } else { Ok(()) }
    }

    /// Checks a candidate as a whole.
    fn check(&mut self, edits: Edits) -> Result<(), GivenUp> {
        self.candidates += 1;
        if self.candidates > MAX_CANDIDATES {
            return Err(GivenUp::Limit);
        }
        let Some(edited) = edits.applied(self.text) else { return Ok(()) };
        let Some((json, changes)) = self.read(edited, edits) else { return Ok(()) };
        let Ok(value) = serde_json::from_str::<Value>(&json) else { return Ok(()) };
        if !self.schema.is_satisfied_by(&value) {
            return Ok(());
        }
        let is_doubtful = edits.all().any(|edit| self.is_doubtful(edit))
            || self.bounds_doubtfully(edits)
            || changes.iter().any(|change| change.what == ChangeKind::ControlsEscaped);
        match &mut self.found {
            Some(found) if found.value == value => found.is_doubtful &= is_doubtful,
            Some(found) => {
                let (one, other) = (found.edits.told(self.text), edits.told(self.text));
                let why = format!("it can be read in two ways: with {one}, or with {other}");
                let at = edits.all().next().map_or(0, |edit| edit.at);
                return Err(GivenUp::Two(Stop { why: why.into(), ..Stop::new(Defect::Ambiguous, at, "") }));
            }
            none => *none = Some(Reading { value, json, changes, edits, is_doubtful }),
        }
        Ok(())
    }

    /// The arguments that an edited text is, and what its notation changed.
    fn read(&self, edited: String, edits: Edits) -> Option<(String, Vec<Change>)> {
        if self.notation == Notation::Json {
            let scan = strict::scan(&edited, self.case.max_depth);
            let is_object = matches!(scan, Ok(ScanResult { top: Top::Object, duplicate: None }));
            return is_object.then(|| (edited, Vec::new()));
        }
        let Arguments { json, mut changes } = find::settle(&edited, self.case).ok()?;
        // A reader that had to mend the text has made an edit more.
        if changes.iter().any(|change| change.what.is_mend()) {
            return None;
        }
        for Change { span, .. } in &mut changes {
            *span = edits.place_before(span.start)..edits.place_before(span.end);
        }
        Some((json, changes))
    }

    fn is_doubtful(&self, edit: Edit) -> bool {
        let rest = self.text.get(edit.at + edit.taken..).unwrap_or_default();
        match edit.what {
            ChangeKind::MarkAdded => {
                !rest.contains(['"', '\'', ':', ',', '{', '['])
                    || edit.put.contains(is_quote) && !self.bounds_words(edit)
                    || edit.put.contains([',', ':']) && self.is_beside_another(edit)
            }
            // `["a"'b"]`: two texts, or one with a mark inside?
            ChangeKind::QuotesEscaped => {
                rest.trim_start_matches(is_blank).starts_with(['"', '\'', '`', ':', ','])
            }
            _ => false,
        }
    }

    /// Whether two marks were added around what may be several values, `null, ...`, or dropped around one: that is more than marks.
    fn bounds_doubtfully(&self, edits: Edits) -> bool {
        let [Some(first), Some(last)] = edits.0 else { return false };
        let between = self.text.get(first.at + first.taken..last.at).unwrap_or_default();
        let is_bound = |edit: Edit| {
            let mark = if edit.what == ChangeKind::MarkDropped {
                self.text.get(edit.at..).unwrap_or_default()
            } else {
                edit.put
            };
            mark.starts_with(is_quote)
        };
        let is_value = is_bound(first) && is_bound(last) && !between.contains(is_quote);
        let is_several = between.contains([',', ':']) || !between.contains(char::is_alphabetic);
        is_value
            && (is_several || first.what == ChangeKind::MarkDropped && last.what == ChangeKind::MarkDropped)
    }

    /// Whether a string beside this separator has one on its own inside: `": x"`.
    fn is_beside_another(&self, edit: Edit) -> bool {
        let Some((before, after)) = self.text.split_at_checked(edit.at) else { return false };
        let separators = [',', ':', ';', '='];
        let left = before.trim_end().strip_suffix(is_quote);
        let right = after.trim_start().strip_prefix(is_quote);
        left.is_some_and(|text| text.trim_end().ends_with(separators))
            || right.is_some_and(|text| text.trim_start().starts_with(separators))
    }
}
