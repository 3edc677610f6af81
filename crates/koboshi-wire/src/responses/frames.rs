//! The JSON of responses as we write it: the response object, its items, and the frames of a stream.
//!
//! Everything is written by serde, so it is JSON whatever the texts hold, and on one line. The response object has every field that the
//! official types require; what only the request knows (tools, sampling) is written as its default, because no client reads it back.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::ErrorJson;
use crate::json;
use crate::step::Usage;
use crate::writer::Head;

/// A response object.
#[derive(Serialize)]
pub(super) struct Response<'a> {
    id: &'a str,
    object: &'static str,
    created_at: i64,
    status: &'static str,
    background: bool,
    error: Option<&'a ErrorJson<'a>>,
    incomplete_details: Option<Incomplete<'a>>,
    instructions: (),
    max_output_tokens: (),
    model: &'a str,
    output: Vec<Item<'a>>,
    parallel_tool_calls: bool,
    previous_response_id: (),
    reasoning: Reasoning,
    store: bool,
    temperature: (),
    text: TextConfig,
    tool_choice: &'static str,
    tools: [(); 0],
    top_p: (),
    truncation: &'static str,
    usage: Option<UsageJson>,
    user: (),
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a> Response<'a> {
    /// One that is under way and has no output yet.
    pub(super) fn of(head: &'a Head, koboshi: Option<&'a Value>) -> Self {
        Self {
            id: &head.id,
            object: "response",
            created_at: head.created,
            status: "in_progress",
            background: false,
            error: None,
            incomplete_details: None,
            instructions: (),
            max_output_tokens: (),
            model: &head.model,
            output: Vec::new(),
            parallel_tool_calls: true,
            previous_response_id: (),
            reasoning: Reasoning { effort: (), summary: () },
            store: false,
            temperature: (),
            text: TextConfig { format: Kind { r#type: "text" } },
            tool_choice: "auto",
            tools: [],
            top_p: (),
            truncation: "disabled",
            usage: None,
            user: (),
            metadata: Map::new(),
            koboshi,
        }
    }

    /// The same, ended with this output.
    pub(super) fn ended(self, output: Vec<Item<'a>>, end: End<'a>, usage: Option<&Usage>) -> Self {
        let (status, incomplete_details) = match end {
            End::Completed => ("completed", None),
            End::Incomplete(reason) => ("incomplete", Some(Incomplete { reason })),
        };
        Self { status, incomplete_details, output, usage: usage.map(UsageJson::of), ..self }
    }

    /// The same, failed.
    pub(super) fn failed(self, output: Vec<Item<'a>>, error: &'a ErrorJson<'a>) -> Self {
        Self { status: "failed", output, error: Some(error), ..self }
    }
}

/// How a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End<'a> {
    /// It is complete.
    Completed,
    /// It is incomplete, for this reason.
    Incomplete(&'a str),
}

impl<'a> End<'a> {
    /// A reason in the words of this dialect. Only two reasons count as complete; a reason of another dialect
    /// is written as the reason why the response is incomplete.
    pub(super) fn of(reason: &'a str) -> Self {
        use crate::dialect::finish;
        match reason {
            finish::STOP | finish::TOOL_CALLS => Self::Completed,
            finish::LENGTH => Self::Incomplete("max_output_tokens"),
            other => Self::Incomplete(other),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Incomplete<'a> {
    reason: &'a str,
}

#[derive(Serialize)]
struct Reasoning {
    effort: (),
    summary: (),
}

#[derive(Serialize)]
struct TextConfig {
    format: Kind,
}

#[derive(Serialize)]
struct Kind {
    r#type: &'static str,
}

/// An item of the output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    /// Text.
    Message { id: &'a str, status: &'static str, role: &'static str, content: Vec<Part<'a>> },
    /// A thought.
    Reasoning {
        id: &'a str,
        summary: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    /// A call with JSON arguments.
    FunctionCall {
        id: &'a str,
        status: &'static str,
        arguments: &'a str,
        call_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    /// A call with free text.
    CustomToolCall {
        id: &'a str,
        status: &'static str,
        call_id: &'a str,
        input: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
}

/// A part of a message or of a summary.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    /// Text.
    OutputText { annotations: [(); 0], logprobs: [(); 0], text: &'a str },
    /// A refusal.
    Refusal { refusal: &'a str },
    /// A part of a summary.
    SummaryText { text: &'a str },
}

impl<'a> Part<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::OutputText { annotations: [], logprobs: [], text }
    }
}

/// The fields of an event beside its type and number; those that do not belong to it are left out.
#[derive(Serialize, Default)]
pub(super) struct EventFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item_id: Option<&'a str>,
    pub(super) output_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs: Option<[(); 0]>,
}

/// A lifecycle event.
#[derive(Serialize)]
pub(super) struct Whole<'a> {
    pub(super) response: Response<'a>,
}

/// One frame: the event line, and the data with type and number in front. `fields` is never an empty object.
pub(super) fn frame(out: &mut Vec<u8>, kind: &str, number: u64, fields: &impl Serialize) {
    out.extend_from_slice(
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number}").as_bytes(),
    );
    let brace = out.len();
    json::write(out, fields);
    if let Some(brace) = out.get_mut(brace) {
        *brace = b',';
    }
    out.extend_from_slice(b"\n\n");
}

/// A cost.
#[derive(Serialize)]
pub(super) struct UsageJson {
    input_tokens: u64,
    input_tokens_details: CachedTokens,
    output_tokens: u64,
    output_tokens_details: Thought,
    total_tokens: u64,
}

impl UsageJson {
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input,
            input_tokens_details: CachedTokens {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.stored,
            },
            output_tokens: usage.output,
            output_tokens_details: Thought { reasoning_tokens: usage.reasoning },
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}

#[derive(Serialize)]
struct CachedTokens {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct Thought {
    reasoning_tokens: u64,
}

/// A cost as it stands in an answer.
pub(super) fn usage_json(usage: &Usage) -> Bytes {
    json::bytes(&UsageJson::of(usage))
}
