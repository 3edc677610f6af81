//! What a healthy provider answers: text, an object, or tool calls; and how it ends.

use koboshi_wire::Dialect;

use crate::chance::Fingerprint;
use crate::fall::{Fall, Form, PlayOptions};
use crate::generator::{TextGenerator, pieces};
use crate::request::{Request, Shape, Thinks, parsed};
use crate::schema::example;
use crate::tool::{self, Call};
use crate::words::Language;

/// Characters of a piece of JSON.
const PIECE: usize = 8;
/// Pieces of a thought.
const THOUGHT: u64 = 12;

/// Gemini's reason for an answer whose call cannot be read.
pub(crate) const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";

/// The content of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What was thought before.
    pub(crate) thought: Option<Thought>,
    pub(crate) speech: SpokenText,
    pub(crate) calls: Vec<InPieces>,
    /// The calls were cut by the limit of tokens.
    calls_cut: bool,
    /// A call was so broken that the vendor only reports that there was one.
    is_malformed: bool,
}

/// What is shown of the thinking.
#[derive(Debug, Clone)]
pub(crate) struct Thought {
    /// Its text; none where only the signature is shown.
    pub(crate) words: SpokenText,
    /// The provider's signature.
    pub(crate) signature: String,
}

/// A call whose arguments come in pieces.
#[derive(Debug, Clone)]
pub(crate) struct InPieces {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) free_text: bool,
}

/// Text, piece by piece, up to the limit of tokens.
#[derive(Debug, Clone)]
pub(crate) struct SpokenText {
    source: Source,
    left: u64,
}

#[derive(Debug, Clone)]
enum Source {
    TextGenerator(Box<TextGenerator>),
    Pieces(std::vec::IntoIter<String>),
}

impl Answer {
    pub(crate) fn of(request: &Request<'_>, dialect: Dialect, options: &PlayOptions, fall: Fall) -> Self {
        let print = request.print();
        let max = request.max_output().unwrap_or(u64::MAX);
        let broken = match fall {
            Fall::BrokenArgs { form, always } if always || request.is_first_ask() => Some(form),
            _ => None,
        };
        let nothing = Self {
            thought: None,
            speech: SpokenText::of(Vec::new(), max),
            calls: Vec::new(),
            calls_cut: false,
            is_malformed: false,
        };
        if fall == Fall::Empty {
            return nothing;
        }
        let repeated = match fall {
            Fall::Loop { stubborn } => tool::repeated(request, print, stubborn),
            _ => None,
        };
        let calls = repeated.unwrap_or_else(|| tool::calls(request, print, broken, options.makes_up_calls));
        let thought = thought(request, dialect, print);
        if calls.is_empty() {
            let speech = words(request, print, options.chunks, max, options.makes_up_calls);
            return Self { thought, speech, ..nothing };
        }
        let speech = words(request, print, Some(options.say), max, options.makes_up_calls);
        let is_malformed = dialect.withholds_malformed_calls() && broken == Some(Form::Truncated);
        if is_malformed {
            return Self { thought, speech, is_malformed, ..nothing };
        }
        let (calls, calls_cut) = within(calls, max.saturating_sub(options.say));
        Self { thought, speech, calls, calls_cut, is_malformed }
    }

    /// How it ends, once everything is sent. `speech` is what is left of the text.
    pub(crate) fn finish(&self, speech: &SpokenText) -> &'static str {
        match (!self.calls.is_empty(), self.calls_cut) {
            _ if self.is_malformed => MALFORMED,
            (_, true) => "length",
            (true, false) => "tool_calls",
            (false, false) if speech.is_cut() => "length",
            (false, false) => "stop",
        }
    }

    /// Pieces of text and arguments.
    pub(crate) fn size(&self) -> u64 {
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len() + 1).sum();
        let thought = self.thought.as_ref().map_or(0, |thought| thought.words.clone().count());
        let words = self.speech.clone().count().saturating_add(thought);
        (words as u64).saturating_add(arguments as u64)
    }
}

impl SpokenText {
    fn of(pieces: Vec<String>, left: u64) -> Self {
        Self { source: Source::Pieces(pieces.into_iter()), left }
    }

    /// The limit came before the end.
    fn is_cut(&self) -> bool {
        self.left == 0
            && match &self.source {
                Source::TextGenerator(generator) => generator.clone().next().is_some(),
                Source::Pieces(pieces) => !pieces.as_slice().is_empty(),
            }
    }
}

impl Iterator for SpokenText {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.source {
            Source::TextGenerator(generator) => generator.next(),
            Source::Pieces(pieces) => pieces.next(),
        }
    }
}

/// What is thought before the answer, in other words than it.
fn thought(request: &Request<'_>, dialect: Dialect, print: Fingerprint) -> Option<Thought> {
    let print = print.add("thought");
    let language = Language::of(&request.last_user());
    let words = SpokenText {
        source: Source::TextGenerator(Box::new(TextGenerator::new(
            print.seed(),
            language,
            "",
            Some(THOUGHT),
        ))),
        left: match request.thinks() {
            Thinks::No => return None,
            Thinks::Silently => 0,
            Thinks::Aloud => u64::MAX,
        },
    };
    // Four letters and sixteen digits: valid base64 for clients that decode it.
    let whose = match dialect {
        Dialect::Chat => "simC",
        Dialect::Responses => "simR",
        Dialect::Messages => "simM",
        Dialect::Gemini => "simG",
    };
    Some(Thought { words, signature: format!("{whose}{:016x}", print.value()) })
}

fn words(
    request: &Request<'_>,
    print: Fingerprint,
    chunks: Option<u64>,
    max: u64,
    makes_up: bool,
) -> SpokenText {
    let prefill = request.prefill();
    let object = match request.shape() {
        Shape::Text => None,
        Shape::Object => Some(example(&parsed_text(OBJECT), print.seed())),
        Shape::Schema(schema) => Some(example(&parsed(Some(schema)), print.seed())),
    };
    if let Some(object) = object.map(|object| object.to_string()) {
        let rest = prefill.as_deref().and_then(|begun| object.strip_prefix(begun)).unwrap_or(&object);
        return SpokenText::of(pieces(rest, PIECE), max);
    }
    let language = Language::of(&request.last_user());
    let lead = if tool::holds_back(request, makes_up) {
        language.no_call().to_owned()
    } else {
        match request.pictures() {
            0 => tool::mention(request),
            count => language.pictures(count),
        }
    };
    let generator = || TextGenerator::new(print.seed(), language, &lead, chunks);
    let generator = match prefill {
        Some(begun) => generator().after(&begun).unwrap_or_else(generator),
        None => generator(),
    };
    SpokenText { source: Source::TextGenerator(Box::new(generator)), left: max }
}

/// What an answer in JSON looks like where no schema is given.
const OBJECT: &str = r#"{"type": "object", "properties": {
    "answer": {"type": "string"}, "steps": {"type": "array", "items": {"type": "string"}}, "sure": {"type": "boolean"}
}}"#;

fn parsed_text(schema: &str) -> serde_json::Value {
    serde_json::from_str(schema).unwrap_or_default()
}

/// As much of the calls as the limit allows, and whether it cut them.
fn within(calls: Vec<Call>, mut left: u64) -> (Vec<InPieces>, bool) {
    let mut kept = Vec::new();
    for Call { id, name, arguments, free_text } in calls {
        let mut arguments = pieces(&arguments, PIECE.min(arguments.chars().count().div_ceil(3).max(1)));
        let room = usize::try_from(left).unwrap_or(usize::MAX);
        let cut = arguments.len() > room;
        arguments.truncate(room);
        left = left.saturating_sub(arguments.len() as u64);
        kept.push(InPieces { id, name, arguments, free_text });
        if cut {
            return (kept, true);
        }
    }
    (kept, false)
}
