//! Calls of conversations: message lists of OpenAI and Anthropic, rollouts of Codex, sessions of Claude Code. They become requests of their
//! dialect and are read like the gateway's.

use std::collections::BTreeMap;

use koboshi_wire::Dialect;
use koboshi_wire::any::Request;
use serde_json::{Value, json};

use super::record::{Piece, RecordedCall, Wrong};

/// After this many messages of one turn the calls are read once more: of a long turn the gateway reads only the last calls.
const STEP: usize = 200;

/// A list of messages; its content shows the dialect.
pub(super) fn list(text: &str) -> Result<Vec<RecordedCall>, Wrong> {
    let blocks = ["\"tool_use\"", "\"tool_result\""];
    let dialect =
        if blocks.iter().any(|block| text.contains(block)) { Dialect::Messages } else { Dialect::Chat };
    calls_of(dialect, text)
}

/// The calls of a conversation in this dialect; `text` is the list of its messages or items.
pub(super) fn calls_of(dialect: Dialect, text: &str) -> Result<Vec<RecordedCall>, Wrong> {
    let list: Vec<Value> =
        serde_json::from_str(text).map_err(|error| Wrong::new("guard-replay-no-messages", &error))?;
    of_list(dialect, &list)
}

/// A request carries the calls since the user last wrote, so the conversation is read up to each message of a user.
fn of_list(dialect: Dialect, list: &[Value]) -> Result<Vec<RecordedCall>, Wrong> {
    let mut turns: BTreeMap<u32, Vec<RecordedCall>> = BTreeMap::new();
    let mut since = 0;
    for end in 1..=list.len() {
        since += 1;
        let is_due = end == list.len() || since >= STEP || list.get(end).is_some_and(is_written);
        if !is_due {
            continue;
        }
        since = 0;
        // Text of a user beside results was written after them.
        let results = list.get(end).filter(|message| is_written(message)).and_then(results_alone);
        let (turn, calls) = read(dialect, list.get(..end).unwrap_or_default().iter().chain(&results))?;
        let known = turns.entry(turn).or_default();
        known.extend(calls.into_iter().skip(known.len()));
    }
    Ok(turns.into_values().flatten().collect())
}

/// The results of tools in a message, without its other content; none if there are none.
fn results_alone(message: &Value) -> Option<Value> {
    let blocks = message.get("content")?.as_array()?;
    let results: Vec<&Value> = blocks.iter().filter(|block| is_result(block)).collect();
    (!results.is_empty()).then(|| json!({"role": "user", "content": results}))
}

fn is_result(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("tool_result")
}

/// Whether a user may have written this: a message of a user with more than results of tools.
fn is_written(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("user")
        && !message
            .get("content")
            .and_then(Value::as_array)
            .is_some_and(|blocks| blocks.iter().all(is_result))
}

fn read<'v>(
    dialect: Dialect,
    list: impl Iterator<Item = &'v Value>,
) -> Result<(u32, Vec<RecordedCall>), Wrong> {
    let list: Vec<&Value> = list.collect();
    let body = match dialect {
        Dialect::Responses => json!({"model": "recorded", "input": list}),
        Dialect::Chat | Dialect::Messages | Dialect::Gemini => {
            json!({"model": "recorded", "max_tokens": 1, "messages": list})
        }
    };
    let body = body.to_string();
    let wrong = |error: koboshi_wire::IntakeError| Wrong::new("guard-replay-no-messages", &error);
    let request = Request::parse(dialect, body.as_bytes(), None).map_err(wrong)?;
    let calls = request.calls();
    let of = |call: &koboshi_wire::form::GuardCall<'_>| RecordedCall {
        tool: call.tool.to_string(),
        args: call.args.to_string(),
        output: call.output.to_string(),
        is_error: call.is_error,
        turn: call.turn,
        batch: Some(call.batch),
    };
    Ok((request.turn(), calls.iter().map(of).collect()))
}

/// A line of a rollout: the item is in `payload`; other lines describe the session or repeat items.
pub(super) fn codex_piece(text: &str) -> Piece {
    let mut line: Value = match serde_json::from_str(text) {
        Ok(line) => line,
        Err(error) => return Piece::wrong("guard-replay-no-json", &error),
    };
    let payload = line.get_mut("payload").map(Value::take).unwrap_or_default();
    match line.get("type").and_then(Value::as_str) {
        Some("session_meta") => {
            Piece::codex(None, payload.get("id").and_then(Value::as_str).map(str::to_owned))
        }
        Some("response_item") => Piece::codex(item(payload), None),
        _ => Piece::codex(None, None),
    }
}

/// A line of an older rollout, which is the item itself.
pub(super) fn bare_piece(text: &str) -> Piece {
    match serde_json::from_str::<Value>(text) {
        Ok(line) => match line.get("type").and_then(Value::as_str) {
            Some("summary" | "system" | "file-history-snapshot" | "queue-operation" | "progress") => {
                Piece::claude(None, None, None)
            }
            Some(kind) if kind == "message" || kind.ends_with("_call") || kind.ends_with("_output") => {
                Piece::codex(item(line), None)
            }
            _ => Piece::wrong("guard-replay-no-form", &""),
        },
        Err(error) => Piece::wrong("guard-replay-no-json", &error),
    }
}

/// The part of an item that matters for calls and turns.
fn item(mut item: Value) -> Option<Value> {
    let kind = item.get("type").and_then(Value::as_str)?.to_owned();
    let role = item.get("role").and_then(Value::as_str).unwrap_or_default();
    if kind == "message" && !matches!(role, "user" | "assistant") {
        return None;
    }
    // The harness writes facts about the machine as a user message.
    if role == "user" && text_of(&item).trim_start().starts_with('<') {
        return None;
    }
    let is_known = kind == "message" || kind.ends_with("_call") || kind.ends_with("_call_output");
    let fields = item.as_object_mut().filter(|_| is_known)?;
    // Some versions keep the output as an object with the text in `content` or `output`.
    let inner = fields.get("output").and_then(Value::as_object);
    let inner = inner.and_then(|output| output.get("content").or_else(|| output.get("output")));
    if let Some(text) = inner.filter(|text| text.is_string()).cloned() {
        fields.insert("output".to_owned(), text);
    }
    Some(item)
}

fn text_of(item: &Value) -> &str {
    let content = item.get("content");
    let first = content.and_then(Value::as_array).and_then(|blocks| blocks.first());
    content.and_then(Value::as_str).or_else(|| first?.get("text")?.as_str()).unwrap_or_default()
}

/// A line of a session: messages of the user and the assistant; everything else belongs to the program.
pub(super) fn claude_piece(text: &str) -> Piece {
    let mut line: Value = match serde_json::from_str(text) {
        Ok(line) => line,
        Err(error) => return Piece::wrong("guard-replay-no-json", &error),
    };
    let is = |name: &str| line.get(name).and_then(Value::as_bool) == Some(true);
    let word = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
    let (session, agent) =
        (word("sessionId"), word("agentId").or_else(|| is("isSidechain").then(|| "agent".to_owned())));
    let counts = matches!(word("type").as_deref(), Some("user" | "assistant")) && !is("isMeta");
    let message = line.get_mut("message").map(Value::take).filter(|_| counts);
    let message = message.and_then(|message| {
        let (role, content) = (message.get("role")?.clone(), message.get("content")?.clone());
        Some(json!({"role": role, "content": content}))
    });
    Piece::claude(message, session, agent)
}

/// A conversation that is spread over the lines of a file.
pub(super) struct Session {
    id: String,
    codex: Vec<Value>,
    /// By sub-agent; none is the session itself.
    claude: BTreeMap<Option<String>, Vec<Value>>,
    is_codex: bool,
}

impl Session {
    pub(super) fn new(name: &str) -> Self {
        Self { id: name.to_owned(), codex: Vec::new(), claude: BTreeMap::new(), is_codex: false }
    }

    pub(super) fn codex(&mut self, item: Option<Value>, id: Option<String>) {
        self.is_codex = true;
        if let Some(id) = id {
            self.id = id;
        }
        self.codex.extend(item);
    }

    pub(super) fn claude(&mut self, message: Option<Value>, id: Option<String>, agent: Option<String>) {
        if let Some(id) = id {
            self.id = id;
        }
        let messages = self.claude.entry(agent).or_default();
        messages.extend(message);
    }

    /// The runs of the file.
    pub(super) fn end(self) -> Vec<(String, Result<Vec<RecordedCall>, Wrong>)> {
        let mut runs = Vec::new();
        if self.is_codex {
            runs.push((self.id.clone(), of_list(Dialect::Responses, &self.codex)));
        }
        for (agent, messages) in self.claude {
            if messages.is_empty() {
                continue;
            }
            let id = agent.map_or_else(|| self.id.clone(), |agent| format!("{}#{agent}", self.id));
            runs.push((id, of_list(Dialect::Messages, &messages)));
        }
        runs
    }
}
