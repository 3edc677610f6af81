//! The session log: what may happen to a conversation, as decisions.
//!
//! Every order gives a [`Change`]: the events that follow from it, numbered, and what else the log must know of them. Nothing changes before
//! [`Log::commit`]: the shell stores the durable ones first, so that no reader ever sees what a crash could take back. An order whose id is
//! known changes nothing and is answered as before.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::client::{Busy, Chat, Tool};
use super::event::{Body, DoneReason, ErrorBody, Event, Retry, RetryWhere, Texts, ToolState, Usage};
use super::transcript::{Message, Open, Role, Transcript};

mod entry;
mod reading;
mod size;

pub use entry::Entry;
use entry::Note;
pub use reading::Place;
use size::{event_size, size_of_message};

/// What a session may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns that may wait behind the running one.
    pub max_queued: usize,
    /// Bytes of messages that are kept; the oldest turns go first.
    pub max_transcript: usize,
    /// Events of the tail.
    pub max_tail: usize,
    /// Bytes of the tail's texts.
    pub max_tail_bytes: usize,
    /// Recoveries of one turn.
    pub max_recoveries: u32,
    /// Recoveries without a finished segment between them.
    pub max_recoveries_in_place: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_queued: 4,
            max_transcript: 4 * 1024 * 1024,
            max_tail: 2000,
            max_tail_bytes: 256 * 1024,
            max_recoveries: 5,
            max_recoveries_in_place: 2,
        }
    }
}

/// What is known of a turn besides its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnSpec {
    /// Its number.
    pub turn: u64,
    /// The route or model that answers.
    #[serde(default)]
    pub route: Option<String>,
    /// Tools that the client runs.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// The language of the person who asked.
    #[serde(default)]
    pub lang: String,
    /// The one who asked can take text back. Else the answer goes on or ends with an error once some of it was shown, as over HTTP.
    #[serde(default = "yes")]
    pub can_rewind: bool,
    /// The key of the one who asked, by its name, where keys are needed: its limits hold, and it pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

const fn yes() -> bool {
    true
}

/// What a turn does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// There is none.
    Idle,
    /// It is being answered.
    Running,
    /// It waits for tools.
    WaitingTool,
}

/// Why an order is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another turn is running.
    #[error("another turn is running")]
    Busy,
    /// Too many turns wait.
    #[error("too many turns wait")]
    QueueFull,
    /// The log has gone on.
    #[error("the log is at {0}")]
    Moved(u64),
    /// There is no such turn, or it cannot be tried again.
    #[error("no such turn")]
    UnknownTurn,
    /// There is no such call.
    #[error("no such call")]
    UnknownCall,
    /// Another tab has the call, or it is over.
    #[error("the call is taken")]
    Taken,
}

/// What follows from an order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// The events, numbered.
    pub events: Vec<Event>,
    note: Note,
}

impl Change {
    /// The turn that it begins is for a client that cannot take text back.
    #[must_use]
    pub fn without_rewind(mut self) -> Self {
        if let Some(spec) = &mut self.note.spec {
            spec.can_rewind = false;
        }
        self
    }

    /// The turn that it begins is asked and paid by this key.
    #[must_use]
    pub fn paid_by(mut self, key: Option<&str>) -> Self {
        if let Some(spec) = &mut self.note.spec {
            spec.key = key.map(str::to_owned);
        }
        self
    }

    /// Whether something of it must be stored first.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.note.id.is_some() || self.events.iter().any(|event| event.body.is_durable())
    }
}

/// The log of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Log {
    transcript: Transcript,
    /// Orders that were executed, and the turn of each.
    ids: VecDeque<(String, u64)>,
    /// The running turn and those that wait.
    turns: VecDeque<TurnSpec>,
    /// The last turn that ended, for a retry.
    last: Option<TurnSpec>,
    last_turn: u64,
    last_message: u64,
    last_call: u64,
    context_from: u64,
    recoveries: u32,
    recoveries_in_place: u32,
    /// Events for readers that come back.
    #[serde(skip)]
    tail: VecDeque<Arc<Event>>,
    #[serde(skip)]
    tail_bytes: usize,
    /// Raised where messages are not only added at the end: pages of a snapshot that were read before are of no use then.
    #[serde(skip)]
    rewrites: u64,
}

/// How many ids of orders are remembered beyond those of the messages.
const MAX_IDS: usize = 1024;

impl Log {
    /// The log of a new session.
    #[must_use]
    pub fn new(epoch: &str) -> Self {
        Self { transcript: Transcript::new(epoch), ..Self::default() }
    }

    /// What readers see.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The last number.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.transcript.seq
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.transcript.epoch
    }

    /// The running turn and how it is answered.
    #[must_use]
    pub fn running(&self) -> Option<(&TurnSpec, &Open)> {
        let open = self.transcript.open.as_ref()?;
        Some((self.turns.iter().find(|spec| spec.turn == open.turn)?, open))
    }

    /// What the running turn does.
    #[must_use]
    pub fn state(&self) -> TurnState {
        match &self.transcript.open {
            None => TurnState::Idle,
            Some(open) if open.calls.iter().all(|call| call.state.is_final()) => TurnState::Running,
            Some(_) => TurnState::WaitingTool,
        }
    }

    /// The messages that the model gets.
    pub fn told(&self) -> impl Iterator<Item = &Message> {
        self.transcript.messages.iter().filter(|message| message.turn >= self.context_from)
    }

    /// The turn of an order that was executed.
    #[must_use]
    pub fn known(&self, id: &str) -> Option<u64> {
        self.ids.iter().find(|(known, _)| known == id).map(|(_, turn)| *turn)
    }

    /// The event that accepted a chat, as its sender gets it again: without a number.
    #[must_use]
    pub fn accepted(&self, id: &str) -> Option<(u64, &Message)> {
        let turn = self.known(id)?;
        let asks = |message: &&Message| message.turn == turn && message.role == Role::User;
        Some((turn, self.transcript.messages.iter().find(asks)?))
    }

    /// The position that a rewind goes back to: what stands before the last tool call is never taken back.
    fn segment(&self) -> u64 {
        let calls = self.transcript.open.iter().flat_map(|open| &open.calls);
        calls.map(|call| call.at).max().unwrap_or(0)
    }

    fn numbered(&self, bodies: impl IntoIterator<Item = (u64, Body)>) -> Change {
        let first = self.seq() + 1;
        let events = bodies.into_iter().zip(first..);
        let events = events.map(|((turn, body), seq)| Event { seq, first: None, turn, body });
        Change { events: events.collect(), ..Change::default() }
    }

    /// A message of the user. None where its id is known.
    ///
    /// # Errors
    /// It cannot be taken now.
    pub fn chat(
        &self,
        id: &str,
        chat: &Chat,
        lang: &str,
        limits: &Limits,
    ) -> Result<Option<Change>, Refusal> {
        if self.known(id).is_some() {
            return Ok(None);
        }
        if chat.if_seq.is_some_and(|seq| seq != self.seq()) {
            return Err(Refusal::Moved(self.seq()));
        }
        let turn = self.last_turn + 1;
        let is_busy = self.transcript.open.is_some();
        let mut bodies = Vec::new();
        let queued = match chat.on_busy {
            _ if !is_busy => false,
            Busy::Reject => return Err(Refusal::Busy),
            Busy::Queue if self.turns.len() > limits.max_queued => return Err(Refusal::QueueFull),
            Busy::Queue => true,
            Busy::Replace => {
                bodies.extend(self.turns.iter().flat_map(|spec| self.cancelled(spec.turn)));
                false
            }
        };
        let accepted = Body::Accepted { id: id.to_owned(), content: chat.content.clone(), queued };
        bodies.push((turn, accepted));
        let spec = TurnSpec {
            turn,
            route: chat.route.clone(),
            tools: chat.tools.clone(),
            lang: lang.to_owned(),
            can_rewind: true,
            key: None,
        };
        let note = Note { id: Some((id.to_owned(), turn)), spec: Some(spec), ..Note::default() };
        Ok(Some(Change { note, ..self.numbered_with_messages(bodies) }))
    }

    /// Stops a turn. None where there is nothing to stop, or the order is known.
    #[must_use]
    pub fn cancel(&self, id: &str, turn: Option<u64>) -> Option<Change> {
        if self.known(id).is_some() {
            return None;
        }
        let turn = turn.or(self.transcript.open.as_ref().map(|open| open.turn))?;
        self.turns.iter().find(|spec| spec.turn == turn)?;
        let note = Note { id: Some((id.to_owned(), turn)), ..Note::default() };
        Some(Change { note, ..self.numbered_with_messages(self.cancelled(turn).collect::<Vec<_>>()) })
    }

    /// The events that stop a turn: its open calls expire, its partial text stays.
    fn cancelled(&self, turn: u64) -> impl Iterator<Item = (u64, Body)> + use<> {
        let open = self.transcript.open.as_ref().filter(|open| open.turn == turn);
        let expired = open.map(|open| self.expired(open)).unwrap_or_default();
        let (attempt, chars) = open.map_or((1, 0), |open| (open.attempt, open.length()));
        let done = Body::Done {
            attempt,
            message: String::new(),
            reason: DoneReason::Cancelled,
            chars,
            usage: None,
            degraded: None,
        };
        expired.into_iter().chain([done]).map(move |body| (turn, body))
    }

    fn expired(&self, open: &Open) -> Vec<Body> {
        let waits = open.calls.iter().filter(|call| !call.state.is_final());
        let expire = |call: &super::Call| Body::ToolState {
            call: call.call.clone(),
            state: ToolState::Expired,
            by: call.by.clone(),
            content: None,
        };
        waits.map(expire).collect()
    }

    /// Numbers events and gives the answers in them their ids.
    fn numbered_with_messages(&self, bodies: Vec<(u64, Body)>) -> Change {
        let mut last = self.last_message;
        let named = bodies.into_iter().map(|(turn, mut body)| {
            if let Body::Done { message, .. } = &mut body {
                last += 1;
                *message = format!("m_{last}");
            }
            (turn, body)
        });
        self.numbered(named.collect::<Vec<_>>())
    }

    /// What a `retry` of this turn would ask for again.
    #[must_use]
    pub fn asked(&self, turn: u64) -> Option<&TurnSpec> {
        self.last.as_ref().filter(|spec| spec.turn == turn)
    }

    /// The same user message once more. None where the order is known.
    ///
    /// # Errors
    /// Another turn is running, or this is not the last one.
    pub fn retry(&self, id: &str, turn: u64) -> Result<Option<Change>, Refusal> {
        if self.known(id).is_some() {
            return Ok(None);
        }
        if self.transcript.open.is_some() {
            return Err(Refusal::Busy);
        }
        let spec = self.last.clone().filter(|spec| spec.turn == turn).ok_or(Refusal::UnknownTurn)?;
        let answers = |message: &&Message| message.turn == turn && message.role == Role::Assistant;
        let answer = self.transcript.messages.iter().rev().find(answers).ok_or(Refusal::UnknownTurn)?;
        let to = answer.calls.iter().map(|call| call.at).max().unwrap_or(0);
        let attempt = answer.attempt.unwrap_or(1).saturating_add(1);
        let rewind = Body::Rewind { attempt, to, reason: "retry".to_owned() };
        let note = Note { id: Some((id.to_owned(), turn)), spec: Some(spec), ..Note::default() };
        Ok(Some(Change { note, ..self.numbered([(turn, rewind)]) }))
    }

    /// Leaves older turns out of what the model gets. None where the order is known.
    #[must_use]
    pub fn trim(&self, id: &str, keep_turns: u32) -> Option<Change> {
        if self.known(id).is_some() {
            return None;
        }
        let from = (self.last_turn + 1).saturating_sub(u64::from(keep_turns)).max(self.context_from);
        let left_out = self.told().filter(|message| message.turn < from);
        let (messages, bytes) =
            left_out.fold((0, 0), |(count, bytes), message| (count + 1, bytes + size_of_message(message)));
        let tokens = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
        let trimmed = Body::Trimmed { messages, tokens, reason: "request".to_owned() };
        let id = Some((id.to_owned(), self.last_turn));
        let note = Note { id, context_from: Some(from), ..Note::default() };
        Some(Change { note, ..self.numbered([(self.last_turn, trimmed)]) })
    }

    /// Something about the running turn: a piece of its answer, a notice.
    #[must_use]
    pub fn tell(&self, body: Body) -> Option<Change> {
        let turn = self.transcript.open.as_ref()?.turn;
        Some(self.numbered([(turn, body)]))
    }

    /// The answer begins again: the attempt before it failed with this kind of fault.
    #[must_use]
    pub fn rewind(&self, reason: &str) -> Option<Change> {
        let open = self.transcript.open.as_ref()?;
        let attempt = open.attempt.saturating_add(1);
        self.tell(Body::Rewind { attempt, to: self.segment(), reason: reason.to_owned() })
    }

    /// The running turn ends.
    #[must_use]
    pub fn done(&self, reason: DoneReason, error: Option<ErrorBody>, usage: Option<Usage>) -> Option<Change> {
        let open = self.transcript.open.as_ref()?;
        let done = Body::Done {
            attempt: open.attempt,
            message: String::new(),
            reason,
            chars: open.length(),
            usage,
            degraded: open.degraded,
        };
        let error = error.map(|error| Body::Error(Box::new(error)));
        let bodies = self.expired(open).into_iter().chain(error).chain([done]);
        Some(self.numbered_with_messages(bodies.map(|body| (open.turn, body)).collect()))
    }

    /// Another process takes the log over after its owner was lost. The running segment begins again, as often as the limits say; after that
    /// the turn ends with this error.
    #[must_use]
    pub fn recover(&self, error: ErrorBody, limits: &Limits) -> Option<Change> {
        let open = self.transcript.open.as_ref()?;
        if self.state() == TurnState::WaitingTool {
            return None;
        }
        if !self.may_begin_again()
            || self.recoveries >= limits.max_recoveries
            || self.recoveries_in_place >= limits.max_recoveries_in_place
        {
            return self.done(DoneReason::Error, Some(error), None);
        }
        let attempt = open.attempt.saturating_add(1);
        let retry = Body::Retry(Retry {
            attempt: self.recoveries + 1,
            max_attempts: limits.max_recoveries,
            delay_ms: 0,
            kind: error.kind,
            place: RetryWhere::Recover,
            answer_attempt: attempt,
            texts: Texts::default(),
        });
        let rewind = Body::Rewind { attempt, to: self.segment(), reason: "recover".to_owned() };
        let note = Note { recovers: true, ..Note::default() };
        Some(Change { note, ..self.numbered([(open.turn, rewind), (open.turn, retry)]) })
    }

    /// Another process goes on with a log that its owner handed over in good order: what the owner's provider had said of the running segment
    /// is sent again. It counts against no limit, because nothing has failed. None where nothing of the segment was shown. Where it cannot be taken
    /// back, the turn ends with this error.
    #[must_use]
    pub fn go_on(&self, error: ErrorBody) -> Option<Change> {
        if self.state() != TurnState::Running || !self.is_shown() {
            return None;
        }
        if self.may_begin_again() {
            self.rewind("restart")
        } else {
            self.done(DoneReason::Error, Some(error), None)
        }
    }

    /// Something of the running segment was shown.
    fn is_shown(&self) -> bool {
        let open = self.transcript.open.as_ref();
        open.is_some_and(|open| open.length() > self.segment() || open.degraded.is_some())
    }

    /// The running segment may begin again: nothing of it was shown, or it can be taken back.
    fn may_begin_again(&self) -> bool {
        !self.is_shown() || self.running().is_none_or(|(spec, _)| spec.can_rewind)
    }

    /// Continuity is not proven any more: readers of the old epoch get a snapshot.
    pub fn begin_epoch(&mut self, epoch: &str) {
        epoch.clone_into(&mut self.transcript.epoch);
        self.tail.clear();
        self.tail_bytes = 0;
    }

    /// Puts a change into the log.
    pub fn commit(&mut self, change: Change, limits: &Limits) {
        let Change { events, note } = change;
        for event in events {
            self.follow(event, limits);
        }
        self.heed(note);
    }

    /// Takes an event of another process into this copy, or one of this log.
    pub fn follow(&mut self, event: Event, limits: &Limits) {
        let before = self.transcript.messages.len();
        self.transcript.apply(&event);
        let messages = &self.transcript.messages;
        // A second try takes the first one out, and an answer may stand before messages that wait.
        let is_inserted = matches!(&event.body, Body::Done { message, .. } if messages.last().is_some_and(|last| last.id != *message));
        if messages.len() < before || is_inserted {
            self.rewrites += 1;
        }
        match &event.body {
            Body::Accepted { id, .. } => {
                self.last_turn = self.last_turn.max(event.turn);
                self.remember(id.clone(), event.turn);
            }
            Body::ToolCall { .. } => {
                self.last_call += 1;
                self.recoveries_in_place = 0;
            }
            Body::Done { .. } => {
                self.last_message += 1;
                if let Some(at) = self.turns.iter().position(|spec| spec.turn == event.turn) {
                    self.last = self.turns.remove(at);
                }
                (self.recoveries, self.recoveries_in_place) = (0, 0);
                self.forget_oldest(limits);
            }
            _ => {}
        }
        self.push_tail(event, limits);
    }

    /// This log in the place of another one that readers may be in the middle of.
    #[must_use]
    pub fn instead_of(mut self, other: &Self) -> Self {
        self.rewrites = other.rewrites + 1;
        self
    }

    /// The first event that is kept for readers that come back.
    #[must_use]
    pub fn first_kept(&self) -> u64 {
        self.tail.front().map_or(self.seq() + 1, |event| event.first())
    }

    fn push_tail(&mut self, event: Event, limits: &Limits) {
        self.tail_bytes += event_size(&event);
        self.tail.push_back(Arc::new(event));
        while self.tail.len() > limits.max_tail || self.tail_bytes > limits.max_tail_bytes {
            let Some(gone) = self.tail.pop_front() else { break };
            self.tail_bytes = self.tail_bytes.saturating_sub(event_size(&gone));
        }
    }

    fn remember(&mut self, id: String, turn: u64) {
        if self.known(&id).is_none() {
            self.ids.push_back((id, turn));
        }
        let max = MAX_IDS.max(self.transcript.messages.len());
        while self.ids.len() > max {
            self.ids.pop_front();
        }
    }

    /// The next call's id.
    #[must_use]
    pub fn next_call(&self, offset: u64) -> String {
        format!("t_{}", self.last_call + 1 + offset)
    }

    /// Whole turns go, oldest first, until the rest fits.
    fn forget_oldest(&mut self, limits: &Limits) {
        let messages = &mut self.transcript.messages;
        let mut bytes: usize = messages.iter().map(size_of_message).sum();
        while bytes > limits.max_transcript {
            let Some(oldest) = messages.first().map(|message| message.turn) else { return };
            if oldest >= self.last_turn {
                return;
            }
            messages.retain(|message| message.turn != oldest);
            self.rewrites += 1;
            bytes = messages.iter().map(size_of_message).sum();
        }
    }
}
