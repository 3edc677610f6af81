//! One call and its answer, read once and made small.
//!
//! Reading costs time linear in the texts (and bounded: of long outputs the head and the tail are read). What is kept
//! is of bounded size, holds no arguments, and shows texts only redacted. All rules work on digests alone, so code that
//! keeps them reads every call once.

use std::sync::Arc;

use jiff::Zoned;

use super::answer::{self, NothingNew};
use super::asked::{CallFeatures, asked, echoes};
use super::cause::{Cause, cause};
use super::exit::{SearchAnswer, searched};
use super::failure_text::{Tally, ends_well, failure_text, without_colours};
use super::finding::Fingerprint;
use super::mask::{Depth, Masker};
use super::mix::hash;
use super::{Effect, NOTE_MARK};
use crate::classify::{Classifier, ToolOutput};
use crate::fault::Fault;
use crate::redact::{Redactor, shorten};

/// How much of an answer is kept to be shown.
const SHOWN_HEAD: usize = 2 * 1024;
const EXAMPLE_CHARS: usize = 300;
const ARGS_CHARS: usize = 160;
const TOOL_CHARS: usize = 120;
const FINGERPRINT_CHARS: usize = 400;

/// A tool call of a conversation and what came back, in no dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Its arguments as text, JSON or not.
    pub args: &'a str,
    /// What came back.
    pub output: &'a str,
    /// The error flag, if the wire format has one.
    pub is_error: Option<bool>,
    /// Number of the user turn: another one whenever the user has written.
    pub turn: u32,
    /// Calls that follow each other with the same number were issued in parallel by one model response.
    pub batch: Option<u32>,
}

/// A call, read. What the rules need, and what may be shown of it.
#[derive(Debug, Clone)]
pub struct Digest {
    pub(super) tool: Arc<str>,
    /// Redacted and shortened.
    pub(super) args: String,
    /// Redacted and shortened.
    pub(super) example: String,
    pub(super) turn: u32,
    pub(super) batch: Option<u32>,
    pub(super) verb: u64,
    pub(super) call: u64,
    pub(super) target: u64,
    pub(super) rest: Option<u64>,
    pub(super) is_code: bool,
    pub(super) pauses: bool,
    /// It surely left something else behind, also where it failed in the end.
    pub(super) leaves: bool,
    /// It writes: the same arguments again are the same step, whatever comes back.
    pub(super) edits: bool,
    /// The answer does not show whether anything changed: it is empty, or a line that only confirms.
    pub(super) is_mute: bool,
    pub(super) effect: Effect,
    pub(super) answer: u64,
    pub(super) waits: bool,
    pub(super) nothing_new: Option<NothingNew>,
    pub(super) failure: Option<Failure>,
}

/// What a failing call reported.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) category: Arc<str>,
    /// The message with names masked.
    pub(super) fingerprint: Fingerprint,
    /// The message with names, and where it came from.
    pub(super) named: u64,
    /// All of the answer but what moves by itself.
    pub(super) whole: u64,
    /// The cause in the environment, where one is known: it is the same in any words.
    pub(super) cause: Option<Cause>,
    pub(super) tally: Tally,
    /// Says hardly anything: equal only for the same tool.
    pub(super) is_generic: bool,
    /// Only some line of the text says so: no flag does, and it ends without a complaint.
    pub(super) is_weak: bool,
    /// May pass by itself.
    pub(super) passes: bool,
}

impl Digest {
    /// The call and its answer as one.
    pub(super) fn pair(&self) -> u64 {
        let answer = match &self.failure {
            Some(failure) if !failure.is_weak => failure.named ^ failure.tally.number(),
            _ => self.answer,
        };
        self.call.rotate_left(17) ^ answer
    }

    /// Whether the call reported a failure.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// What the failure reports.
    #[must_use]
    pub fn category(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.category.as_ref())
    }

    /// What makes two failures similar.
    #[must_use]
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        self.failure.as_ref().map(|failure| &failure.fingerprint)
    }
}

/// Reads calls.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    masker: Masker,
    redactor: Redactor,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { masker: Masker::new(), redactor: Redactor::new() }
    }

    /// Depends on tool, arguments, output and flag; turn and batch are taken over as they are.
    pub(super) fn read(&self, call: &Call<'_>, classifier: &Classifier, now: &Zoned) -> Digest {
        let output = without_notes(call.output);
        let asked = asked(call.tool, call.args);
        // A search that finds nothing ends with 1, and many harnesses flag that as a failure.
        let search = if asked.asks { searched(output) } else { None };
        let fault = match &search {
            Some(SearchAnswer::Nothing) => None,
            Some(SearchAnswer::Text(text)) => classifier.tool(&ToolOutput { text, is_error: None }, now),
            None => classifier.tool(&ToolOutput { text: output, is_error: call.is_error }, now),
        };
        let is_flagged = call.is_error == Some(true) && search.is_none();
        let failure =
            fault.map(|fault| self.failure(output, is_flagged, &echoes(call.tool, call.args), &fault));
        Digest {
            tool: Arc::from(self.shown(call.tool, TOOL_CHARS)),
            args: self.shown(call.args, ARGS_CHARS),
            example: self.shown(output, EXAMPLE_CHARS),
            turn: call.turn,
            batch: call.batch,
            verb: asked.verb,
            call: asked.call,
            target: asked.target,
            rest: asked.rest,
            is_code: asked.is_code,
            pauses: asked.pauses,
            effect: asked.effect,
            leaves: asked.leaves,
            edits: asked.edits,
            is_mute: is_mute(&asked, output),
            answer: answer::key(output),
            waits: failure.is_none() && answer::waits(output),
            nothing_new: nothing_new(&asked, search.as_ref(), output)
                .filter(|_| failure.is_none() && !asked.plans),
            failure,
        }
    }

    /// A text fit to be shown: redacted, shortened, and without anything that a terminal would obey.
    fn shown(&self, text: &str, chars: usize) -> String {
        let plain = without_colours(beginning(text));
        let obeyed = |c: char| c.is_control() && c != '\n';
        if !plain.chars().any(obeyed) {
            return self.redactor.excerpt(&plain, chars);
        }
        let harmless = |c: char| if obeyed(c) { ' ' } else { c };
        self.redactor.excerpt(&plain.chars().map(harmless).collect::<String>(), chars)
    }

    /// `is_flagged` where a flag says that it failed.
    fn failure(&self, output: &str, is_flagged: bool, echoes: &[String], fault: &Fault) -> Failure {
        let report = failure_text(output);
        // First of all: a mask inside a secret would hide it from the redactor.
        let safe = self.redactor.redact(&report.text);
        let masked = self.masker.mask(&safe, echoes, Depth::Names);
        let named = self.masker.mask(&safe, &[], Depth::Volatile);
        let place = self.masker.mask(&report.place, &[], Depth::Volatile);
        let category = fault.category.clone().unwrap_or_else(|| Arc::from("other"));
        let words =
            masked.text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 2).count();
        let shown = self.redactor.excerpt(&masked.text, FINGERPRINT_CHARS);
        Failure {
            cause: cause(&category, &report.text),
            fingerprint: Fingerprint {
                id: hash([masked.text.as_str()]),
                text: shorten(&shown, FINGERPRINT_CHARS).into_owned(),
                masks: masked.masks.into_iter().collect(),
            },
            named: hash([named.text.as_str(), place.text.as_str()]),
            whole: answer::whole(output),
            is_weak: !is_flagged && ends_well(output, echoes),
            tally: report.tally,
            is_generic: category.as_ref() == "other" && words < 3,
            passes: fault.advice.same || answer::waits(output),
            category,
        }
    }
}

/// Whether the answer shows nothing: a shell that prints nothing has no more to show, any other tool may have answered with a picture. A step
/// further is confirmed in the same words wherever it leads.
fn is_mute(asked: &CallFeatures, output: &str) -> bool {
    let is_silent = output.trim().is_empty();
    (is_silent && !asked.is_command) || (asked.moves && answer::confirms(output))
}

/// An answer without anything in it. Silence is one only where something was looked for in a shell.
fn nothing_new(asked: &CallFeatures, search: Option<&SearchAnswer>, output: &str) -> Option<NothingNew> {
    if search == Some(&SearchAnswer::Nothing) {
        return Some(NothingNew::Empty);
    }
    answer::nothing_new(output)
        .filter(|nothing_new| *nothing_new != NothingNew::Silent || (asked.is_command && !asked.is_quiet))
}

/// The part of a text that is read in order to show some of it. It ends at a space or, in JSON without spaces, at a quotation mark:
/// half a secret would not be known as one.
fn beginning(text: &str) -> &str {
    let text = text.trim_start();
    if text.len() <= SHOWN_HEAD {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(SHOWN_HEAD)).unwrap_or_default();
    let ends = |(at, c): &(usize, char)| {
        let escaped = head.get(..*at).is_some_and(|before| before.ends_with('\\'));
        c.is_whitespace() || (*c == '"' && !escaped)
    };
    let end = head.char_indices().rev().find(ends).map_or(0, |(at, _)| at);
    head.get(..end).unwrap_or_default()
}

/// The output without a note of the guard that came back with it.
fn without_notes(output: &str) -> &str {
    for at in memchr::memmem::find_iter(output.as_bytes(), NOTE_MARK) {
        let before = output.get(..at).unwrap_or_default();
        if before.is_empty() || before.ends_with('\n') {
            return before.trim_end();
        }
    }
    output
}
