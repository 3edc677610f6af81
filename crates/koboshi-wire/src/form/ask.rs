//! What the gateway asks of any request, whatever its dialect: what a target must be able to do, and which tools were called since the user
//! last wrote.
//!
//! Only calls since the user last wrote count, and of a long turn only the last ones are read; those before are counted. A call is paired
//! with its result by id within its own answer, because some servers use the same ids in each. Calls without a result
//! are left out: nothing has happened yet.
//!
//! Results of tools are in turns of the user's role, so it must be decided who wrote a text: texts beside or after results are the user's,
//! images alone are the results' second half, because some dialects cannot put them there. An image is part of an answer by its hash:
//! a screenshot that differs is another answer.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use koboshi::guard;
use serde_json::value::RawValue;

use super::{Form, Image, Outcome, Output, Part, Role, ToolInput, Turn};
use crate::step::join;

/// Bytes for one token, roughly, in text and JSON.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// The tokens that an image, audio or a file is counted as: its bytes do not show them.
pub(crate) const TOKENS_OF_ENCODED: usize = 1000;
/// At most this many calls of a turn are read. The guard looks back on fewer.
const MAX_CALLS_READ: usize = 300;

/// What a target must be able to do for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Tools are offered.
    pub tools: bool,
    /// There are images.
    pub images: bool,
    /// The answer must be JSON.
    pub json: JsonNeed,
    /// The last message is the assistant's: the answer continues it.
    pub prefill: bool,
    /// The most tokens that may come back, where the request states it.
    pub output: Option<u64>,
    /// About how many tokens are sent.
    pub input_tokens: u64,
}

/// Whether the answer must be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonNeed {
    /// Any text will do.
    #[default]
    None,
    /// Some JSON object.
    Object,
    /// JSON that follows a schema.
    Schema,
}

/// A call of the conversation and its result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuardCall<'a> {
    /// Name of the tool; empty where the call is only counted.
    pub tool: Cow<'a, str>,
    /// Its arguments as text.
    pub args: Cow<'a, str>,
    /// What came back.
    pub output: Cow<'a, str>,
    /// Whether the tool failed, where the dialect states it.
    pub is_error: Option<bool>,
    /// Number of the user turn.
    pub turn: u32,
    /// Number of the answer that made it.
    pub batch: u32,
}

impl GuardCall<'_> {
    /// As the guard takes it.
    #[must_use]
    pub fn call(&self) -> guard::Call<'_> {
        guard::Call {
            tool: &self.tool,
            args: &self.args,
            output: &self.output,
            is_error: self.is_error,
            turn: self.turn,
            batch: Some(self.batch),
        }
    }
}

impl Form<'_> {
    /// The tools that are offered: their names, and the schemas of their arguments where they have one.
    pub(crate) fn names_and_schemas(&self) -> impl Iterator<Item = (&str, Option<&RawValue>)> {
        self.tools.iter().map(|tool| match &tool.input {
            ToolInput::Schema(schema) => (tool.name.as_ref(), schema.as_deref()),
            ToolInput::FreeText => (tool.name.as_ref(), None),
        })
    }

    /// What a target must be able to do.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let parts = || self.turns.iter().flat_map(|turn| &turn.parts);
        Needs {
            tools: !self.tools.is_empty(),
            images: parts().any(Part::has_image),
            json: match self.output {
                Output::Text => JsonNeed::None,
                Output::Json => JsonNeed::Object,
                Output::Schema { .. } => JsonNeed::Schema,
            },
            prefill: self.is_prefilled(),
            output: self.max_output,
            input_tokens: u64::try_from(self.weight().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX),
        }
    }

    /// Whether the conversation ends with an answer that the model is to continue, not one that calls tools.
    pub(crate) fn is_prefilled(&self) -> bool {
        self.turns.last().is_some_and(|turn| {
            turn.role == Role::Assistant && !turn.parts.iter().any(|part| matches!(part, Part::Call(_)))
        })
    }

    /// About how many bytes of text are sent; encoded data counts as the text that costs the same.
    pub(crate) fn weight(&self) -> usize {
        let system: usize = self.system.iter().map(|text| text.len()).sum();
        let turns: usize = self.turns.iter().map(Turn::weight).sum();
        self.weight_of_tools() + system + turns
    }

    fn weight_of_tools(&self) -> usize {
        let each = self.tools.iter().map(|tool| {
            let schema = match &tool.input {
                ToolInput::Schema(Some(schema)) => schema.get().len(),
                ToolInput::Schema(None) | ToolInput::FreeText => 0,
            };
            tool.name.len() + tool.description.as_ref().map_or(0, |text| text.len()) + schema
        });
        each.sum()
    }

    /// What the user wrote last: the texts, a line each.
    #[must_use]
    pub fn last_user_text(&self) -> Option<Cow<'_, str>> {
        let last = (0..self.turns.len()).rev().find(|index| self.is_real_user(*index))?;
        text_of_parts(&self.turns.get(last)?.parts)
    }

    /// Number of the current user turn: how often the user has written.
    #[must_use]
    pub fn turn(&self) -> u32 {
        let written = (0..self.turns.len()).filter(|index| self.is_real_user(*index)).count();
        u32::try_from(written).unwrap_or(u32::MAX)
    }

    /// The answered tool calls since the user last wrote, oldest first. All but the last 300 are only counted: their texts are
    /// empty. Answers that follow each other without anything between count as one.
    #[must_use]
    pub fn calls(&self) -> Vec<GuardCall<'_>> {
        let written = (0..self.turns.len()).rev().find(|index| self.is_real_user(*index));
        // A text beside results was written after them.
        let start = written.map_or(0, |at| at + 1);
        calls_since(&self.turns, start, self.turn(), |turn| turn.role == Role::Assistant, paired, counted)
    }

    /// Whether a user wrote in this turn. Images alone right after results belong to these.
    pub(crate) fn is_real_user(&self, index: usize) -> bool {
        let Some(turn) = self.turns.get(index).filter(|turn| turn.role == Role::User) else { return false };
        let before = index.checked_sub(1).and_then(|before| self.turns.get(before));
        let has_results = turn.has_results();
        let writes = turn.parts.iter().any(|part| match part {
            Part::Text(text) if has_results => !text.trim().is_empty() && !is_reminder(text),
            Part::Text(text) => !text.trim().is_empty(),
            _ => false,
        });
        let shows = || turn.parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Media(_)));
        writes || (!has_results && !before.is_some_and(Turn::has_results) && shows())
    }
}

/// Whether a text beside results is the client program's own note to the model. Coding agents add one to every few results, and
/// the user has not written.
fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
}

/// The sentence that is added where an answer in JSON is asked for and the conversation does not mention JSON.
pub(crate) const ASKS_FOR_JSON: &str = "Answer with one JSON object and nothing else.";

/// Whether a text names JSON, in either case: OpenAI, and the servers that copy it, refuse to answer in JSON where no text does.
pub(crate) fn names_json(text: &str) -> bool {
    text.as_bytes().windows(4).any(|four| four.eq_ignore_ascii_case(b"json"))
}

impl Turn<'_> {
    /// Whether a text of it names JSON.
    pub(crate) fn names_json(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text(text) => names_json(text),
            Part::Outcome(outcome) => {
                outcome.parts.iter().any(|part| matches!(part, Part::Text(text) if names_json(text)))
            }
            _ => false,
        })
    }

    /// Whether results of tools are in it.
    pub(crate) fn has_results(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Outcome(_)))
    }

    pub(crate) fn weight(&self) -> usize {
        self.parts.iter().map(Part::weight).sum()
    }
}

impl Part<'_> {
    fn has_image(&self) -> bool {
        match self {
            Part::Image(_) => true,
            Part::Outcome(outcome) => outcome.parts.iter().any(Part::has_image),
            _ => false,
        }
    }

    /// What stands for an image or a file where answers are compared.
    fn mark(&self) -> Option<String> {
        let data = match self {
            Part::Image(Image::Data { data, .. }) => data,
            Part::Image(Image::Url(url)) => url,
            Part::Media(media) => &media.data,
            _ => return None,
        };
        Some(guard::image_mark(data))
    }

    pub(crate) fn weight(&self) -> usize {
        match self {
            Part::Text(text) | Part::Refusal(text) => text.len(),
            Part::Thought(thought) => thought.text.len(),
            Part::Image(_) | Part::Media(_) => TOKENS_OF_ENCODED * BYTES_PER_TOKEN,
            Part::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Part::Outcome(outcome) => {
                outcome.id.len() + outcome.parts.iter().map(Part::weight).sum::<usize>()
            }
        }
    }
}

impl Outcome<'_> {
    /// The texts of the result, a line each.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        text_of_parts(&self.parts)
    }
}

impl<'a> Outcome<'a> {
    /// What the guard compares: the texts, a mark for each image or file, and the marks of what was shown after the results.
    fn compared(&self, shown: &[String]) -> Cow<'_, str> {
        let mut all = self.text();
        for mark in self.parts.iter().filter_map(Part::mark).chain(shown.iter().cloned()) {
            join(&mut all, Cow::Owned(mark), "\n");
        }
        all.unwrap_or_default()
    }
}

/// The marks of images that a message after the results shows. The results share them: nothing says whose they are.
fn shown_after(results: &[Turn<'_>]) -> Vec<String> {
    results.iter().flat_map(|turn| &turn.parts).filter_map(Part::mark).collect()
}

fn text_of_parts<'s>(parts: &'s [Part<'_>]) -> Option<Cow<'s, str>> {
    let mut all: Option<Cow<'s, str>> = None;
    for part in parts {
        if let Part::Text(text) = part
            && !text.is_empty()
        {
            join(&mut all, Cow::Borrowed(text), "\n");
        }
    }
    all
}

fn results_in<'s, 'a>(turns: &'s [Turn<'a>]) -> impl Iterator<Item = &'s Outcome<'a>> {
    turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
        Part::Outcome(outcome) => Some(outcome),
        _ => None,
    })
}

fn calls_in<'s, 'a>(turns: &'s [Turn<'a>]) -> impl Iterator<Item = &'s super::Call<'a>> {
    turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    })
}

/// The answered calls of the entries from `start` on, oldest first. Answers that follow each other without anything between count as one.
/// The last [`MAX_CALLS_READ`] calls are read by `paired`, those before only by `counted`; both get an answer and the entries after it.
pub(crate) fn calls_since<'s, 'g, T>(
    entries: &'s [T],
    start: usize,
    turn: u32,
    is_answer: impl Fn(&T) -> bool,
    paired: impl Fn(&'s [T], &'s [T], &GuardCall<'g>) -> Vec<GuardCall<'g>>,
    counted: impl Fn(&'s [T], &'s [T], &GuardCall<'g>) -> Vec<GuardCall<'g>>,
) -> Vec<GuardCall<'g>> {
    let is_answer = |index: usize| entries.get(index).is_some_and(&is_answer);
    let mut answers = Vec::new();
    let (mut read, mut end, mut index) = (0, entries.len(), entries.len());
    while index > start {
        index -= 1;
        if !is_answer(index) {
            continue;
        }
        let last = index;
        while index > start && is_answer(index - 1) {
            index -= 1;
        }
        let asked = entries.get(index..=last).unwrap_or_default();
        let results = entries.get(last + 1..end).unwrap_or_default();
        end = index;
        let batch = u32::try_from(index).unwrap_or(u32::MAX);
        let blank = GuardCall { turn, batch, ..GuardCall::default() };
        let calls = if read < MAX_CALLS_READ {
            paired(asked, results, &blank)
        } else {
            counted(asked, results, &blank)
        };
        read += calls.len();
        answers.push(calls);
    }
    answers.into_iter().rev().flatten().collect()
}

/// The calls of an answer with their results.
fn paired<'s>(asked: &'s [Turn<'_>], results: &'s [Turn<'_>], blank: &GuardCall<'s>) -> Vec<GuardCall<'s>> {
    let asked: Vec<_> = calls_in(asked).collect();
    // Several calls of one answer may have one id: then their order decides.
    let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, call) in asked.iter().enumerate() {
        open.entry(&call.id).or_default().push_back(index);
    }
    let mut outcomes: Vec<Option<&Outcome<'_>>> = vec![None; asked.len()];
    let shown = shown_after(results);
    for result in results_in(results) {
        let index = open.get_mut(result.id.as_ref()).and_then(VecDeque::pop_front);
        if let Some(outcome) = index.and_then(|index| outcomes.get_mut(index)) {
            *outcome = Some(result);
        }
    }
    let answered = asked.into_iter().zip(outcomes).filter_map(|(call, outcome)| Some((call, outcome?)));
    answered
        .map(|(call, outcome)| GuardCall {
            tool: Cow::Borrowed(&call.name),
            args: Cow::Borrowed(&call.arguments),
            output: outcome.compared(&shown),
            is_error: outcome.failed,
            ..blank.clone()
        })
        .collect()
}

/// As many blank calls as the answer made and got answered.
fn counted<'s>(asked: &[Turn<'_>], results: &[Turn<'_>], blank: &GuardCall<'s>) -> Vec<GuardCall<'s>> {
    let answered = calls_in(asked).count().min(results_in(results).count());
    vec![blank.clone(); answered]
}
