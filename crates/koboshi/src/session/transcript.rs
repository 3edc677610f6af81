//! What a reader makes of the frames: the transcript.
//!
//! One reducer for three uses: the server keeps its result, a snapshot says it, and clients show it. It takes frames in any order and any
//! number and says what it did with each; only the next one is applied, so a reader that applies what it gets can never show something else
//! than the log says. A frame that does not fit (a number is missing, a piece stands at another place, the length at the end differs) is a
//! [`FrameResult::Gap`]: the reader comes back with its cursor.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{Body, DoneReason, ErrorBody, Event, Runs, Source, ToolState};
use super::units::{cut, units};

/// What was done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameResult {
    /// It was the next one.
    Applied,
    /// It is known already.
    Duplicate,
    /// Something is missing before it, or it does not fit: come back with the cursor.
    Gap,
    /// It is of an attempt that was taken back; its number counts.
    Stale,
    /// It changes nothing here.
    Ignored,
}

/// A conversation as its readers see it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The epoch of the log.
    pub epoch: String,
    /// The last number that was applied.
    pub seq: u64,
    /// What was said, in the order of the turns.
    pub messages: Vec<Message>,
    /// The turn that is being answered.
    pub open: Option<Open>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The chat's id, or the one of `done`.
    pub id: String,
    /// Its turn.
    pub turn: u64,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Value,
    /// The attempt that finished an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Why an answer ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DoneReason>,
    /// The tools that an answer called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Where a lesser answer came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Source>,
    /// Why an answer failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorBody>>,
}

/// The turn that is being answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// Its number.
    pub turn: u64,
    /// The attempt that may write.
    pub attempt: u32,
    /// The answer so far.
    pub text: String,
    /// The tools that it called.
    pub calls: Vec<Call>,
    /// Where a lesser answer comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Source>,
    /// Why it failed; `done` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorBody>>,
    /// The length of the text, in UTF-16 units; counted when it is first needed.
    #[serde(skip)]
    length: Option<u64>,
}

impl Open {
    fn new(turn: u64) -> Self {
        Self {
            turn,
            attempt: 1,
            text: String::new(),
            calls: Vec::new(),
            degraded: None,
            error: None,
            length: Some(0),
        }
    }

    /// The length of the text, in UTF-16 units.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length.unwrap_or_else(|| units(&self.text))
    }

    fn push(&mut self, data: &str) {
        let length = self.length() + units(data);
        self.text.push_str(data);
        self.length = Some(length);
    }
}

/// A tool call as readers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The server's id.
    pub call: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// Who runs it.
    pub runs: Runs,
    /// What became of it.
    pub state: ToolState,
    /// Where in the answer it was called, in UTF-16 units.
    pub at: u64,
    /// The tab that claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// A transcript for a reader whose cursor is of no use, in pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The epoch of the log.
    pub epoch: String,
    /// The number that it reaches.
    pub upto: u64,
    /// The message that these follow; all before it stay. None: they are all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Messages.
    pub messages: Vec<Message>,
    /// The chat ids that the log knows.
    #[serde(default)]
    pub ids: Vec<String>,
    /// The turn that is being answered; on the last page.
    #[serde(default)]
    pub open: Option<Open>,
    /// Another page follows.
    #[serde(default)]
    pub more: bool,
}

impl Transcript {
    /// An empty one.
    #[must_use]
    pub fn new(epoch: &str) -> Self {
        Self { epoch: epoch.to_owned(), ..Self::default() }
    }

    /// Applies a frame as it came over the wire.
    pub fn apply_frame(&mut self, frame: &Value) -> FrameResult {
        match frame.get("type").and_then(Value::as_str) {
            Some("session") => self.begin(frame),
            Some("snapshot") => match serde_json::from_value::<Snapshot>(frame.clone()) {
                Ok(snapshot) => self.apply_snapshot(snapshot),
                Err(_) => FrameResult::Ignored,
            },
            Some(_) => match serde_json::from_value::<Event>(frame.clone()) {
                Ok(event) => self.apply(&event),
                Err(_) => self.pass(frame),
            },
            None => FrameResult::Ignored,
        }
    }

    /// `session`: the log of a new session begins; in every other case the frames that follow say it.
    fn begin(&mut self, frame: &Value) -> FrameResult {
        if frame.get("resumed").and_then(Value::as_str) == Some("new") {
            *self = Self::new(frame.get("epoch").and_then(Value::as_str).unwrap_or_default());
        }
        FrameResult::Applied
    }

    /// A frame that cannot be read: where it has a number, the number counts.
    fn pass(&mut self, frame: &Value) -> FrameResult {
        let number = |name: &str| frame.get(name).and_then(Value::as_u64);
        let Some(seq) = number("seq") else { return FrameResult::Ignored };
        self.next(number("first").unwrap_or(seq), seq).unwrap_or(FrameResult::Ignored)
    }

    /// Takes a page of a snapshot.
    pub fn apply_snapshot(&mut self, snapshot: Snapshot) -> FrameResult {
        let kept = match &snapshot.after {
            None => 0,
            Some(after) => match self.messages.iter().rposition(|message| message.id == *after) {
                Some(at) => at + 1,
                None => return FrameResult::Gap,
            },
        };
        self.messages.truncate(kept);
        self.messages.extend(snapshot.messages);
        // Half of a snapshot is no place to go on from: a reader that is cut off here has no cursor.
        (self.epoch, self.seq) =
            if snapshot.more { (String::new(), 0) } else { (snapshot.epoch, snapshot.upto) };
        self.open = snapshot.open;
        FrameResult::Applied
    }

    /// Whether these numbers are next; then they count from now on.
    fn next(&mut self, first: u64, seq: u64) -> Option<FrameResult> {
        if seq <= self.seq {
            return Some(FrameResult::Duplicate);
        }
        if first != self.seq + 1 {
            return Some(FrameResult::Gap);
        }
        self.seq = seq;
        None
    }

    /// Applies an event, if it is the next one.
    pub fn apply(&mut self, event: &Event) -> FrameResult {
        let before = self.seq;
        if let Some(passed) = self.next(event.first(), event.seq) {
            return passed;
        }
        let applied = self.change(event);
        if applied == FrameResult::Gap {
            self.seq = before;
        }
        applied
    }

    fn change(&mut self, event: &Event) -> FrameResult {
        let turn = event.turn;
        match &event.body {
            Body::Accepted { id, content, queued } => self.accept(turn, id, content, *queued),
            Body::Rewind { attempt, to, .. } => self.rewind(turn, *attempt, *to),
            Body::ToolState { call, state, by, content } => {
                let Some(known) = self.call_mut(call) else { return FrameResult::Ignored };
                known.state = *state;
                known.by.clone_from(by);
                if content.is_some() {
                    known.content.clone_from(content);
                }
                FrameResult::Applied
            }
            Body::Done { attempt, message, reason, chars, degraded, .. } => {
                self.done(turn, *attempt, message, *reason, *chars, *degraded)
            }
            Body::Unknown => FrameResult::Ignored,
            body => self.change_open(turn, body),
        }
    }

    /// What is about the answer that is being written.
    fn change_open(&mut self, turn: u64, body: &Body) -> FrameResult {
        let Some(open) = self.open.as_mut().filter(|open| open.turn == turn) else {
            return FrameResult::Stale;
        };
        if body.attempt().is_some_and(|attempt| attempt != open.attempt) {
            return FrameResult::Stale;
        }
        match body {
            Body::Content { at, data, .. } => {
                if open.length() != *at {
                    return FrameResult::Gap;
                }
                open.push(data);
            }
            Body::ToolCall { call, name, arguments, runs, .. } => {
                if open.calls.iter().any(|known| known.call == *call) {
                    return FrameResult::Ignored;
                }
                let at = open.length();
                open.calls.push(Call {
                    call: call.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    runs: *runs,
                    state: ToolState::Offered,
                    at,
                    by: None,
                    content: None,
                });
            }
            Body::Degraded { source, .. } => open.degraded = Some(*source),
            Body::Error(error) => open.error = Some(error.clone()),
            _ => {}
        }
        FrameResult::Applied
    }

    fn accept(&mut self, turn: u64, id: &str, content: &Value, queued: bool) -> FrameResult {
        self.messages.push(Message {
            id: id.to_owned(),
            turn,
            role: Role::User,
            content: content.clone(),
            attempt: None,
            reason: None,
            calls: Vec::new(),
            degraded: None,
            error: None,
        });
        if !queued || self.open.is_none() {
            self.open = Some(Open::new(turn));
        }
        FrameResult::Applied
    }

    fn rewind(&mut self, turn: u64, attempt: u32, to: u64) -> FrameResult {
        let open = match self.open.take() {
            Some(open) if open.turn == turn => open,
            Some(other) => {
                self.open = Some(other);
                return FrameResult::Stale;
            }
            None => match self.reopened(turn, to) {
                Ok(open) => open,
                Err(misfit) => return misfit,
            },
        };
        let Some(text) = cut(&open.text, to).map(str::to_owned) else {
            self.open = Some(open);
            return FrameResult::Gap;
        };
        let calls = open.calls.into_iter().filter(|call| call.at <= to).collect();
        self.open = Some(Open { turn, attempt, text, calls, degraded: None, error: None, length: Some(to) });
        FrameResult::Applied
    }

    /// The answer of a turn that had ended, as an open one. It stays where it is if it is shorter than what is kept of it.
    fn reopened(&mut self, turn: u64, to: u64) -> Result<Open, FrameResult> {
        let answers = |message: &Message| message.turn == turn && message.role == Role::Assistant;
        let at = self.messages.iter().rposition(answers).ok_or(FrameResult::Stale)?;
        let text = self.messages.get(at).and_then(|message| message.content.as_str()).unwrap_or_default();
        let text = text.to_owned();
        cut(&text, to).ok_or(FrameResult::Gap)?;
        let message = self.messages.remove(at);
        Ok(Open { text, calls: message.calls, length: None, ..Open::new(turn) })
    }

    fn done(
        &mut self,
        turn: u64,
        attempt: u32,
        id: &str,
        reason: DoneReason,
        chars: u64,
        degraded: Option<Source>,
    ) -> FrameResult {
        let (open, is_running) = match self.open.take() {
            Some(open) if open.turn == turn => (open, true),
            other => {
                // A turn that was cancelled while it waited.
                self.open = other;
                let waits = |message: &Message| message.turn == turn && message.role == Role::User;
                if self.is_answered(turn) || !self.messages.iter().any(waits) {
                    return FrameResult::Stale;
                }
                (Open { attempt, ..Open::new(turn) }, false)
            }
        };
        let misfit = match () {
            () if open.attempt != attempt => Some(FrameResult::Stale),
            () if open.length() != chars => Some(FrameResult::Gap),
            () => None,
        };
        if let Some(misfit) = misfit {
            // The answer of another turn, which may be running, stays.
            if is_running {
                self.open = Some(open);
            }
            return misfit;
        }
        let message = Message {
            id: id.to_owned(),
            turn,
            role: Role::Assistant,
            content: Value::String(open.text),
            attempt: Some(attempt),
            reason: Some(reason),
            calls: open.calls,
            degraded: degraded.or(open.degraded),
            error: open.error,
        };
        let at = self.messages.iter().rposition(|one| one.turn <= turn).map_or(0, |at| at + 1);
        self.messages.insert(at, message);
        if self.open.is_none() {
            self.open = self.next_waiting().map(Open::new);
        }
        FrameResult::Applied
    }

    fn is_answered(&self, turn: u64) -> bool {
        self.messages.iter().any(|message| message.turn == turn && message.role == Role::Assistant)
    }

    /// The turn that waits longest.
    fn next_waiting(&self) -> Option<u64> {
        let asked = self.messages.iter().filter(|message| message.role == Role::User);
        asked.map(|message| message.turn).find(|turn| !self.is_answered(*turn))
    }

    /// A call of the open turn or of an answer.
    #[must_use]
    pub fn call(&self, call: &str) -> Option<&Call> {
        let open = self.open.iter().flat_map(|open| &open.calls);
        open.chain(self.messages.iter().flat_map(|message| &message.calls)).find(|known| known.call == call)
    }

    fn call_mut(&mut self, call: &str) -> Option<&mut Call> {
        let open = self.open.iter_mut().flat_map(|open| &mut open.calls);
        let all = open.chain(self.messages.iter_mut().flat_map(|message| &mut message.calls));
        all.into_iter().find(|known| known.call == call)
    }
}
