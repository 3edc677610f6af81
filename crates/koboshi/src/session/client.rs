//! What a client sends.
//!
//! A frame is one JSON object with a `type`. Unknown fields are passed over; an unknown type is distinguished from a frame that cannot be read, because
//! it is no fault of the client: a newer one may know more.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How deep a frame may be nested.
pub(super) const MAX_DEPTH: usize = 64;
/// The longest id that a client may make.
const MAX_ID: usize = 64;

/// A frame of a client.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientFrame {
    /// The first one.
    Hello(Box<Hello>),
    /// A message of the user.
    Chat(Box<Chat>),
    /// A tab wants to run a tool.
    ToolClaim {
        /// The call.
        call: String,
    },
    /// What a tool returned.
    ToolResult(ToolResult),
    /// Stops a turn.
    Cancel {
        /// The client's key of this order.
        id: String,
        /// Which turn; the running one where it is not said.
        #[serde(default)]
        turn: Option<u64>,
    },
    /// The same user message once more.
    Retry {
        /// The client's key of this order.
        id: String,
        /// Which turn.
        turn: u64,
    },
    /// Leaves older turns out of what the model gets.
    Trim {
        /// The client's key of this order.
        id: String,
        /// How many turns stay.
        #[serde(default)]
        keep_turns: Option<u32>,
    },
    /// Everything up to here has come.
    Ack {
        /// The last number.
        seq: u64,
    },
    /// Is anyone there?
    Ping {
        /// Comes back in the pong.
        #[serde(default)]
        t: Value,
    },
    /// Proves again who the client is.
    Auth {
        /// A ticket.
        ticket: String,
    },
    /// The session ends.
    Bye {
        /// It is also deleted.
        #[serde(default)]
        forget: bool,
    },
}

/// The first frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Hello {
    /// The version of the protocol.
    pub v: u32,
    /// The session to go on with.
    #[serde(default)]
    pub session: Option<String>,
    /// The secret that goes with it.
    #[serde(default)]
    pub resume: Option<String>,
    /// The epoch of the cursor.
    #[serde(default)]
    pub epoch: Option<String>,
    /// The last number that the client has.
    #[serde(default)]
    pub after: Option<u64>,
    /// The last finished message that the client has; nothing follows from it (decision 14).
    #[serde(default)]
    pub last: Option<String>,
    /// The tab.
    #[serde(default)]
    pub client: Option<String>,
    /// The language of texts for people.
    #[serde(default)]
    pub lang: Option<String>,
    /// What the client can do: `rewind`, `tools`, `reasoning`.
    #[serde(default)]
    pub can: Vec<String>,
    /// Who the client is.
    #[serde(default)]
    pub ticket: Option<String>,
}

impl Hello {
    /// Whether the client can do this.
    #[must_use]
    pub fn can(&self, what: &str) -> bool {
        self.can.iter().any(|one| one == what)
    }
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Chat {
    /// The client's key of this message; the shell makes one where the client has none.
    #[serde(default)]
    pub id: Option<String>,
    /// Text, or parts.
    pub content: Value,
    /// The route or model that answers.
    #[serde(default)]
    pub route: Option<String>,
    /// Tools that the client runs.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// What happens while another turn is running.
    #[serde(default)]
    pub on_busy: Busy,
    /// Accepted only if this is the log's last number.
    #[serde(default)]
    pub if_seq: Option<u64>,
}

/// What happens to a chat while another turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Busy {
    /// It is refused.
    #[default]
    Reject,
    /// It waits.
    Queue,
    /// The running turn is cancelled for it.
    Replace,
}

/// A tool that the client runs.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// It may be run a second time.
    #[serde(default)]
    pub idempotent: bool,
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ToolResult {
    /// The call.
    pub call: String,
    /// How it went.
    #[serde(default)]
    pub status: ToolStatus,
    /// What it returned.
    #[serde(default)]
    pub content: Value,
}

/// How a tool went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Well.
    #[default]
    Ok,
    /// It failed.
    Error,
    /// The client cannot tell.
    Unknown,
}

/// Why a frame cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It is no JSON.
    #[error("the frame is not valid JSON: {0}")]
    Json(String),
    /// It is no object, or has no type.
    #[error("the frame is not a JSON object with a `type`")]
    NoType,
    /// A newer client may know this type.
    #[error("the type `{0}` is not known")]
    UnknownType(String),
    /// A field is missing or wrong.
    #[error("the frame `{0}` cannot be used: {1}")]
    Field(String, String),
    /// It is nested too deep.
    #[error("the frame is nested deeper than {MAX_DEPTH} levels")]
    Deep,
}

const TYPES: &[&str] =
    &["hello", "chat", "tool_claim", "tool_result", "cancel", "retry", "trim", "ack", "ping", "auth", "bye"];

impl ClientFrame {
    /// Reads a frame.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadFrame> {
        let value: Value = serde_json::from_str(text).map_err(|error| BadFrame::Json(error.to_string()))?;
        if is_deeper_than(&value, MAX_DEPTH) {
            return Err(BadFrame::Deep);
        }
        let kind = value.get("type").and_then(Value::as_str).ok_or(BadFrame::NoType)?.to_owned();
        if !TYPES.contains(&kind.as_str()) {
            return Err(BadFrame::UnknownType(kind.chars().take(MAX_ID).collect()));
        }
        let frame: Self = serde_json::from_value(value)
            .map_err(|error| BadFrame::Field(kind.clone(), error.to_string()))?;
        match frame.id() {
            Some(id) if id.is_empty() || id.chars().count() > MAX_ID => {
                Err(BadFrame::Field(kind, format!("`id` must have 1 to {MAX_ID} characters")))
            }
            _ => Ok(frame),
        }
    }

    /// The client's key of an order.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Chat(chat) => chat.id.as_deref(),
            Self::Cancel { id, .. } | Self::Retry { id, .. } | Self::Trim { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Whether a value is nested deeper than that. It goes no deeper than it has to.
fn is_deeper_than(value: &Value, depth: usize) -> bool {
    let Some(left) = depth.checked_sub(1) else { return matches!(value, Value::Array(_) | Value::Object(_)) };
    match value {
        Value::Array(parts) => parts.iter().any(|part| is_deeper_than(part, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper_than(field, left)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_and_what_is_wrong_is_named() {
        let chat = ClientFrame::parse(r#"{"type":"chat","content":"hi","more":1}"#).unwrap();
        assert!(
            matches!(&chat, ClientFrame::Chat(chat) if chat.content == "hi" && chat.on_busy == Busy::Reject)
        );
        for (text, wanted) in [
            ("{", "not valid JSON"),
            ("[]", "with a `type`"),
            (r#"{"type":1}"#, "with a `type`"),
            (r#"{"type":"dance"}"#, "`dance` is not known"),
            (r#"{"type":"chat"}"#, "missing field `content`"),
            (r#"{"type":"cancel","id":""}"#, "1 to 64"),
            (r#"{"type":"chat","content":"\ud800"}"#, "not valid JSON"),
        ] {
            let error = ClientFrame::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let deep = format!(r#"{{"type":"ping","t":{}{}}}"#, "[".repeat(80), "]".repeat(80));
        assert_eq!(ClientFrame::parse(&deep), Err(BadFrame::Deep));
        let bomb = format!(r#"{{"type":"ping","t":{}"#, "[".repeat(1_000_000));
        assert!(matches!(ClientFrame::parse(&bomb), Err(BadFrame::Json(_))));
    }
}
