//! Events of the log: what every reader gets, in order.
//!
//! An event serialises as the frame that goes out. Texts for people are kept in the language of the person who asked ([`Texts`]); the shell
//! puts the reader's own words in their place.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A numbered frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number; the last one where several were merged.
    pub seq: u64,
    /// The first number that it covers, where several were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The turn that it is about.
    pub turn: u64,
    /// What it says.
    #[serde(flatten)]
    pub body: Body,
}

impl Event {
    /// The first number that it covers.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first.unwrap_or(self.seq)
    }
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// A message of the user was stored.
    Accepted {
        /// The client's key of it.
        id: String,
        /// What it says.
        content: Value,
        /// It waits for the turns before it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
    },
    /// A piece of the answer.
    Content {
        /// Which attempt wrote it.
        attempt: u32,
        /// Where it stands in the answer, in UTF-16 units.
        at: u64,
        /// The piece.
        data: String,
        /// Where it comes from.
        #[serde(default)]
        source: Source,
    },
    /// A piece of the thinking before the answer.
    Reasoning {
        /// Which attempt wrote it.
        attempt: u32,
        /// Where it stands in the thinking, in UTF-16 units.
        at: u64,
        /// The piece.
        data: String,
    },
    /// The model calls a tool: whole and checked.
    ToolCall {
        /// Which attempt called.
        attempt: u32,
        /// The server's id of the call.
        call: String,
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Value,
        /// Who runs it.
        runs: Runs,
        /// The result must be there after this.
        deadline_ms: u64,
        /// Whether the store makes sure that it runs at most once.
        at_most_once: bool,
    },
    /// What became of a call.
    ToolState {
        /// The call.
        call: String,
        /// Its state.
        state: ToolState,
        /// The tab that claimed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// What it returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
    },
    /// Another try follows.
    Retry(Retry),
    /// The answer begins again at `to`, with this attempt.
    Rewind {
        /// The attempt that follows.
        attempt: u32,
        /// How much of the text stays, in UTF-16 units.
        to: u64,
        /// The kind of the fault, or `retry` where a person asked.
        reason: String,
    },
    /// What follows is a lesser answer.
    Degraded {
        /// Where it comes from.
        source: Source,
        /// The kind of the fault that made it necessary.
        kind: String,
        /// How old it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        age_ms: Option<u64>,
        /// The sentence for a person.
        #[serde(flatten)]
        texts: Texts,
    },
    /// Older messages were left out of what the model gets.
    Trimmed {
        /// How many messages.
        messages: u64,
        /// About how many tokens.
        tokens: u64,
        /// The kind of the fault, or `request`.
        reason: String,
    },
    /// Something failed.
    Error(Box<ErrorBody>),
    /// The turn ended.
    Done {
        /// Which attempt.
        attempt: u32,
        /// The id of the answer.
        message: String,
        /// Why it ended.
        reason: DoneReason,
        /// The length of the answer, in UTF-16 units.
        chars: u64,
        /// What it cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Where a lesser answer came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        degraded: Option<Source>,
    },
    /// A type that this version does not know.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl Body {
    /// Whether it must be stored before a reader sees it.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(
            self,
            Self::Accepted { .. }
                | Self::ToolCall { .. }
                | Self::ToolState { .. }
                | Self::Rewind { .. }
                | Self::Done { .. }
        )
    }

    /// The attempt that wrote it, where one did.
    #[must_use]
    pub const fn attempt(&self) -> Option<u32> {
        match self {
            Self::Content { attempt, .. }
            | Self::Reasoning { attempt, .. }
            | Self::ToolCall { attempt, .. }
            | Self::Rewind { attempt, .. }
            | Self::Done { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }
}

/// Where a piece of an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From the model that was asked for.
    #[default]
    Model,
    /// From the cache.
    Cache,
    /// From a simpler model.
    Simple,
    /// A prepared text.
    Fallback,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// A tab.
    Client,
    /// The server.
    Server,
}

/// What became of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// It may be claimed.
    #[default]
    Offered,
    /// A tab runs it.
    Claimed,
    /// Its result is there.
    Done,
    /// The tab is gone, and the tool must not run twice.
    Unknown,
    /// No result came in time.
    Expired,
}

impl ToolState {
    /// Whether nothing more follows.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Unknown | Self::Expired)
    }
}

/// Another try follows after a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Which try failed, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// The pause.
    pub delay_ms: u64,
    /// The kind of the fault.
    pub kind: String,
    /// Who is asked next.
    #[serde(rename = "where")]
    pub place: RetryWhere,
    /// The attempt whose text it is about.
    pub answer_attempt: u32,
    /// The sentence for a person.
    #[serde(flatten)]
    pub texts: Texts,
}

/// Who is asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryWhere {
    /// The same target.
    Same,
    /// The process that took the session over.
    Recover,
}

/// Sentences for a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Texts {
    /// Their language.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lang: String,
    /// What happens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// One thing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggestion: String,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The number of the streaming protocol.
    pub code: u16,
    /// The kind of the fault.
    pub kind: String,
    /// Its code with the prefix.
    pub kbs: String,
    /// The session can go on.
    pub recoverable: bool,
    /// Whether and when the turn may be tried again.
    pub retry: RetryLater,
    /// What it ends: `turn`, `session` or `connection`.
    pub scope: String,
    /// The order that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The request, for those who run the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The sentences for a person.
    #[serde(flatten)]
    pub texts: Texts,
}

/// Whether and when the turn may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RetryLater {
    /// It may.
    pub later: bool,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneReason {
    /// The answer is whole.
    Stop,
    /// It met the limit of its length.
    Length,
    /// A content filter ended it.
    Filtered,
    /// A person stopped it.
    Cancelled,
    /// It failed.
    Error,
}

/// What an answer cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Sent.
    pub input: u64,
    /// Received.
    pub output: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}
