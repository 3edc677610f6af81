//! Recorded runs in their various forms, recognised by their content.
//!
//! JSON lines with `calls` and JSON lines with message lists hold a run per line. A rollout of Codex and a session of Claude Code are
//! one run per file (and one for each sub-agent). Anything else may be a single JSON text over many lines.

use std::io;
use std::path::Path;

use koboshi_wire::Dialect;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::messages;
use super::source::{Line, Source};
use crate::Failure;

/// A call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub(super) tool: String,
    pub(super) args: String,
    pub(super) output: String,
    pub(super) is_error: Option<bool>,
    pub(super) turn: u32,
    pub(super) batch: Option<u32>,
}

/// A run, or an invalid line.
pub(super) struct Run {
    pub(super) id: String,
    /// The line that it ends in.
    pub(super) line: usize,
    /// How many bytes were read for it.
    pub(super) bytes: usize,
    pub(super) calls: Result<Vec<RecordedCall>, Wrong>,
}

/// Why something is no run: a phrase, and the details in the reader's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) phrase: &'static str,
    pub(super) detail: String,
}

impl Wrong {
    pub(super) fn new(phrase: &'static str, detail: &impl std::fmt::Display) -> Self {
        Self { phrase, detail: format!("{detail}") }
    }
}

/// The content of a line.
pub(super) enum Piece {
    Run(String, Result<Vec<RecordedCall>, Wrong>),
    /// An item of a Codex rollout, and the name of the session where it says one.
    Codex(Option<Value>, Option<String>),
    /// A message of a Claude Code session, the session and the sub-agent.
    Claude(Option<Value>, Option<String>, Option<String>),
    Wrong(Wrong),
}

/// Reads all runs of an input and passes each on. False if the input was empty.
pub(super) fn each_run(
    source: &mut Source,
    path: &Path,
    mut take: impl FnMut(Run) -> io::Result<()>,
) -> Result<bool, Failure> {
    let name = path.file_stem().map_or_else(|| "-".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut session = messages::Session::new(&name);
    let (mut first, mut is_wrong) = (true, false);
    let unreadable = |error: io::Error, line: usize| Run {
        id: String::new(),
        line,
        bytes: 0,
        calls: Err(Wrong::new("guard-replay-unreadable", &error)),
    };
    loop {
        let line = match source.next() {
            Ok(None) => break,
            Ok(Some(line)) => line,
            Err(error) => {
                is_wrong = true;
                take(unreadable(error, source.number() + 1))?;
                break;
            }
        };
        let number = source.number();
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong | Line::NoText => {
                let phrase = if matches!(line, Line::TooLong) {
                    "guard-replay-long-line"
                } else {
                    "guard-replay-no-text"
                };
                is_wrong = true;
                let calls = Err(Wrong::new(phrase, &""));
                take(Run { id: String::new(), line: number, bytes: 0, calls })?;
                continue;
            }
        };
        let bytes = text.len();
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        let mut piece = piece(text, &name, number);
        // Only the first line can be the beginning of a text over many lines.
        if std::mem::take(&mut first) && matches!(piece, Piece::Wrong(_)) && text.starts_with(['{', '[']) {
            let whole = rest_of(source, text)?;
            piece = self::piece(&whole, &name, number);
            if let Piece::Wrong(_) = piece
                && whole.len() > text.len() + 1
            {
                piece = Piece::Wrong(Wrong::new("guard-replay-no-form", &""));
            }
        }
        match piece {
            Piece::Run(id, calls) => take(Run { id, line: number, bytes, calls })?,
            Piece::Wrong(wrong) => take(Run { id: String::new(), line: number, bytes, calls: Err(wrong) })?,
            Piece::Codex(item, id) => session.codex(item, id),
            Piece::Claude(message, id, agent) => session.claude(message, id, agent),
        }
    }
    let line = source.number();
    session.end().into_iter().try_for_each(|(id, calls)| take(Run { id, line, bytes: 0, calls }))?;
    Ok(is_wrong || !first)
}

/// The first line and everything after it. A text over many lines may be as long as a line.
fn rest_of(source: &mut Source, first: &str) -> Result<String, Failure> {
    const MAX_BYTES: usize = 128 * 1024 * 1024;
    let mut whole = first.to_owned();
    while let Some(line) = source.next()? {
        if let Line::Text(text) = line
            && whole.len() + text.len() < MAX_BYTES
        {
            whole.push('\n');
            whole.push_str(&text);
        }
    }
    Ok(whole)
}

/// The fields that distinguish the forms.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    calls: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

fn piece(text: &str, name: &str, line: usize) -> Piece {
    if text.starts_with('[') {
        let id = if line == 1 { name.to_owned() } else { format!("{name}:{line}") };
        return Piece::Run(id, messages::list(text));
    }
    let head: Head<'_> = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(error) => return Piece::Wrong(Wrong::new("guard-replay-no-json", &error)),
    };
    let id = || {
        let own = head.id.and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        own.unwrap_or_else(|| if line == 1 { name.to_owned() } else { format!("{name}:{line}") })
    };
    let has_kind = head.kind.is_some();
    match &head {
        Head { calls: Some(calls), .. } => Piece::Run(id(), of_corpus(calls.get())),
        Head { messages: Some(list), .. } => Piece::Run(id(), messages::list(list.get())),
        Head { payload: Some(_), .. } if has_kind => messages::codex_piece(text),
        Head { session: Some(_), .. } | Head { message: Some(_), .. } if has_kind => {
            messages::claude_piece(text)
        }
        Head { input: Some(list), .. } => {
            Piece::Run(id(), messages::calls_of(Dialect::Responses, list.get()))
        }
        _ if has_kind => messages::bare_piece(text),
        _ => Piece::Wrong(Wrong::new("guard-replay-no-form", &"")),
    }
}

impl Piece {
    pub(super) fn codex(item: Option<Value>, id: Option<String>) -> Self {
        Self::Codex(item, id)
    }

    pub(super) fn claude(message: Option<Value>, id: Option<String>, agent: Option<String>) -> Self {
        Self::Claude(message, id, agent)
    }

    pub(super) fn wrong(phrase: &'static str, detail: &impl std::fmt::Display) -> Self {
        Self::Wrong(Wrong::new(phrase, detail))
    }
}

/// A call as the corpus has it.
#[derive(Deserialize)]
struct CorpusCall<'a> {
    tool: String,
    #[serde(borrow)]
    args: &'a RawValue,
    output: String,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    turn: u32,
    #[serde(default)]
    batch: Option<u32>,
}

fn of_corpus(calls: &str) -> Result<Vec<RecordedCall>, Wrong> {
    let calls: Vec<CorpusCall<'_>> =
        serde_json::from_str(calls).map_err(|error| Wrong::new("guard-replay-no-calls", &error))?;
    let of = |call: CorpusCall<'_>| {
        let args = call.args.get();
        // A text stands for itself.
        let text = args.starts_with('"').then(|| serde_json::from_str::<String>(args).ok()).flatten();
        RecordedCall {
            tool: call.tool,
            args: text.unwrap_or_else(|| args.to_owned()),
            output: call.output,
            is_error: call.is_error,
            turn: call.turn,
            batch: call.batch,
        }
    };
    Ok(calls.into_iter().map(of).collect())
}
