//! What a healthy provider says: words, an object, or tool calls; and how it ends.

use crate::chance::Print;
use crate::fall::{Fall, Manner};
use crate::request::{Request, Shape, parsed};
use crate::schema::example;
use crate::talk::{Talk, pieces};
use crate::tool::{self, Call};
use crate::words::Tongue;

/// Characters of a piece of JSON.
const PIECE: usize = 8;

/// What is said.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) speech: Speech,
    pub(crate) calls: Vec<InPieces>,
    /// The calls were cut by the limit of tokens.
    calls_cut: bool,
}

/// A call whose arguments come in pieces.
#[derive(Debug, Clone)]
pub(crate) struct InPieces {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
}

/// Words, piece by piece, up to the limit of tokens.
#[derive(Debug, Clone)]
pub(crate) struct Speech {
    source: Source,
    left: u64,
}

#[derive(Debug, Clone)]
enum Source {
    Talk(Box<Talk>),
    Pieces(std::vec::IntoIter<String>),
}

impl Answer {
    pub(crate) fn of(request: &Request<'_>, manner: &Manner, fall: Fall) -> Self {
        let print = request.print();
        let most = request.most().unwrap_or(u64::MAX);
        let broken = match fall {
            Fall::BrokenArgs { form, always } if always || request.is_first_ask() => Some(form),
            _ => None,
        };
        let calls = tool::calls(request, print, broken, manner.makes_up_calls);
        if fall == Fall::Empty {
            return Self { speech: Speech::of(Vec::new(), most), calls: Vec::new(), calls_cut: false };
        }
        if calls.is_empty() {
            return Self {
                speech: words(request, print, manner.chunks, most, manner.makes_up_calls),
                calls: Vec::new(),
                calls_cut: false,
            };
        }
        let speech = words(request, print, Some(manner.say), most, manner.makes_up_calls);
        let (calls, calls_cut) = within(calls, most.saturating_sub(manner.say));
        Self { speech, calls, calls_cut }
    }

    /// How it ends, once everything is said.
    pub(crate) fn finish(calls: bool, calls_cut: bool, speech: &Speech) -> &'static str {
        match (calls, calls_cut) {
            (_, true) => "length",
            (true, false) => "tool_calls",
            (false, false) if speech.is_cut() => "length",
            (false, false) => "stop",
        }
    }

    pub(crate) const fn calls_cut(&self) -> bool {
        self.calls_cut
    }

    /// Pieces of words and arguments.
    pub(crate) fn size(&self) -> u64 {
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len() + 1).sum();
        (self.speech.clone().count() as u64).saturating_add(arguments as u64)
    }
}

impl Speech {
    fn of(pieces: Vec<String>, left: u64) -> Self {
        Self { source: Source::Pieces(pieces.into_iter()), left }
    }

    /// The limit came before the end.
    fn is_cut(&self) -> bool {
        self.left == 0
            && match &self.source {
                Source::Talk(talk) => talk.clone().next().is_some(),
                Source::Pieces(pieces) => !pieces.as_slice().is_empty(),
            }
    }
}

impl Iterator for Speech {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.source {
            Source::Talk(talk) => talk.next(),
            Source::Pieces(pieces) => pieces.next(),
        }
    }
}

fn words(request: &Request<'_>, print: Print, chunks: Option<u64>, most: u64, makes_up: bool) -> Speech {
    let object = match request.shape() {
        Shape::Text => None,
        Shape::Object => Some(example(&parsed_text(OBJECT), print.seed())),
        Shape::Schema(schema) => Some(example(&parsed(Some(schema)), print.seed())),
    };
    if let Some(object) = object.map(|object| object.to_string()) {
        let rest = request.prefill().and_then(|begun| object.strip_prefix(begun)).unwrap_or(&object);
        return Speech::of(pieces(rest, PIECE), most);
    }
    let tongue = Tongue::of(request.last_user());
    let lead = if tool::holds_back(request, makes_up) {
        tongue.no_call().to_owned()
    } else {
        tool::mention(request)
    };
    let talk = || Talk::new(print.seed(), tongue, &lead, chunks);
    let talk = match request.prefill() {
        Some(begun) => talk().after(begun).unwrap_or_else(talk),
        None => talk(),
    };
    Speech { source: Source::Talk(Box::new(talk)), left: most }
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
    for Call { id, name, arguments } in calls {
        let mut arguments = pieces(&arguments, PIECE.min(arguments.chars().count().div_ceil(3).max(1)));
        let room = usize::try_from(left).unwrap_or(usize::MAX);
        let cut = arguments.len() > room;
        arguments.truncate(room);
        left = left.saturating_sub(arguments.len() as u64);
        kept.push(InPieces { id, name, arguments });
        if cut {
            return (kept, true);
        }
    }
    (kept, false)
}
