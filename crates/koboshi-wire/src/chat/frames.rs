//! Our own frames, answers and errors, as the official clients expect them.
//!
//! Everything is written by serde, so it is JSON whatever the texts hold, and on one line, so it is one `data:` line. The
//! `koboshi` object stands inside `error`, because that is the part an OpenAI client hands to its user, and at the top level
//! of an answer.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::dialect::finish;
use crate::json;
use crate::step::Usage;

pub use crate::writer::{Head, WholeCall};

/// The end of a stream. Never after an error: a client would take the cut text for a whole answer.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// A keep-alive comment: it keeps a silent stream open.
pub const COMMENT: &[u8] = b": keep-alive\n\n";

/// What an error says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ErrorBody<'a> {
    /// A sentence for a person.
    pub message: &'a str,
    /// The `type`: `invalid_request_error`, `server_error` and so on.
    pub kind: &'a str,
    /// A stable code.
    pub code: Option<&'a str>,
    /// The field it is about.
    pub param: Option<&'a str>,
    /// Koboshi's own object.
    pub koboshi: Option<&'a Value>,
}

/// The first chunk of an answer, with its role, and with Koboshi's own object where there is one.
#[must_use]
pub fn role_chunk(head: &Head, koboshi: Option<&Value>) -> Bytes {
    let delta = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
    frame(&Chunk { koboshi, ..Chunk::of(head, &[piece(delta, None)]) })
}

/// A piece of the model's output: text, thinking in the name that most compatible servers have for it, refusal.
pub(super) fn content_chunk(
    head: &Head,
    text: Option<&str>,
    thought: Option<&str>,
    refusal: Option<&str>,
) -> Bytes {
    let delta = Delta { content: text, reasoning_content: thought, refusal, ..Delta::default() };
    frame(&Chunk::of(head, &[piece(delta, None)]))
}

/// Whole tool calls of this choice, numbered from `first`: for calls that follow others.
#[must_use]
pub fn calls_chunk_from(head: &Head, choice: u32, first: u32, calls: &[WholeCall<'_>]) -> Bytes {
    let calls: Vec<Call<'_>> =
        (first..).zip(calls).map(|(index, call)| Call::of(Some(index), call)).collect();
    let delta = Delta { tool_calls: Some(&calls), ..Delta::default() };
    frame(&Chunk::of(head, &[Piece { index: choice, ..piece(delta, None) }]))
}

/// A whole call of a choice in the old form, for clients that offered `functions`. It has room for one.
#[must_use]
pub fn function_chunk(head: &Head, choice: u32, call: &WholeCall<'_>) -> Bytes {
    let function = Function { name: call.name, arguments: call.arguments };
    let delta = Delta { function_call: Some(function), ..Delta::default() };
    frame(&Chunk::of(head, &[Piece { index: choice, ..piece(delta, None) }]))
}

/// The end of choice 0: `stop`, `length`, `tool_calls` and so on.
#[must_use]
pub fn finish_chunk(head: &Head, reason: &str) -> Bytes {
    frame(&Chunk::of(head, &[piece(Delta::default(), Some(reason))]))
}

/// The usage, after the last choice has ended.
#[must_use]
pub fn usage_chunk(head: &Head, usage: &Usage) -> Bytes {
    frame(&Chunk { usage: Some(UsageJson::of(usage)), ..Chunk::of(head, &[]) })
}

/// An empty chunk: keeps a stream open for clients that cannot read comments.
#[must_use]
pub fn empty_chunk(head: &Head) -> Bytes {
    frame(&Chunk::of(head, &[piece(Delta::default(), None)]))
}

/// An error inside a stream. The stream ends with it.
#[must_use]
pub fn error_frame(error: &ErrorBody<'_>) -> Bytes {
    frame(&ErrorEnvelope::of(error))
}

/// An error as the body of an answer.
#[must_use]
pub fn error_body(error: &ErrorBody<'_>) -> Bytes {
    json::bytes(&ErrorEnvelope::of(error))
}

/// A whole answer.
pub(super) fn whole_of(
    head: &Head,
    choices: &[Choice<'_>],
    usage: Option<&Usage>,
    koboshi: Option<&Value>,
) -> Bytes {
    let answer = Answer {
        usage: usage.map(UsageJson::of),
        koboshi,
        ..Answer::named("chat.completion", head, choices)
    };
    json::bytes(&answer)
}

/// A cost as it stands in an answer.
pub(super) fn usage_json(usage: &Usage) -> Bytes {
    json::bytes(&UsageJson::of(usage))
}

/// One event of a stream.
fn frame(value: &impl Serialize) -> Bytes {
    let mut text = b"data: ".to_vec();
    json::write(&mut text, value);
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// An answer, or a chunk of one.
#[derive(Serialize)]
struct Answer<'a, C> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_fingerprint: Option<&'a str>,
    choices: &'a [C],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a, C> Answer<'a, C> {
    fn named(object: &'static str, head: &'a Head, choices: &'a [C]) -> Self {
        Self {
            id: &head.id,
            object,
            created: head.created,
            model: &head.model,
            system_fingerprint: head.fingerprint.as_deref(),
            choices,
            usage: None,
            koboshi: None,
        }
    }
}

type Chunk<'a> = Answer<'a, Piece<'a>>;

impl<'a> Chunk<'a> {
    fn of(head: &'a Head, choices: &'a [Piece<'a>]) -> Self {
        Self::named("chat.completion.chunk", head, choices)
    }
}

#[derive(Serialize)]
struct Piece<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: (),
    finish_reason: Option<&'a str>,
}

fn piece<'a>(delta: Delta<'a>, finish_reason: Option<&'a str>) -> Piece<'a> {
    Piece { index: 0, delta, logprobs: (), finish_reason }
}

#[derive(Serialize, Default)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [Call<'a>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Function<'a>>,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    id: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Function<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<Custom<'a>>,
}

impl<'a> Call<'a> {
    pub(super) fn of(index: Option<u32>, call: &WholeCall<'a>) -> Self {
        let (id, name) = (call.id, call.name);
        if call.free_text {
            let custom = Some(Custom { name, input: call.arguments });
            return Self { index, id, r#type: "custom", function: None, custom };
        }
        let function = Some(Function { name, arguments: call.arguments });
        Self { index, id, r#type: "function", function, custom: None }
    }
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    input: &'a str,
}

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: (),
    finish_reason: &'a str,
}

impl<'a> Choice<'a> {
    pub(super) fn of(index: u32, message: Message<'a>, finish_reason: &'a str) -> Self {
        Self { index, message, logprobs: (), finish_reason }
    }
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<Function<'a>>,
}

impl Default for Message<'_> {
    fn default() -> Self {
        Self {
            role: "assistant",
            content: None,
            reasoning_content: None,
            refusal: None,
            tool_calls: None,
            function_call: None,
        }
    }
}

#[derive(Serialize)]
struct UsageJson {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: CachedTokens,
    completion_tokens_details: ReasoningTokens,
}

impl UsageJson {
    fn of(usage: &Usage) -> Self {
        Self {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.input.saturating_add(usage.output),
            prompt_tokens_details: CachedTokens {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.stored,
            },
            completion_tokens_details: ReasoningTokens { reasoning_tokens: usage.reasoning },
        }
    }
}

#[derive(Serialize)]
struct CachedTokens {
    cached_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct ReasoningTokens {
    reasoning_tokens: u64,
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a> ErrorEnvelope<'a> {
    fn of(error: &ErrorBody<'a>) -> Self {
        let ErrorBody { message, kind, code, param, koboshi } = *error;
        Self { error: ErrorJson { message, r#type: kind, param, code, koboshi } }
    }
}

/// A finish reason in this dialect. One that it does not know becomes a reason for a cut answer, never `stop`.
pub(super) fn finish_word(reason: &str, in_old_form: bool) -> &str {
    match reason {
        finish::TOOL_CALLS | finish::FUNCTION_CALL if in_old_form => finish::FUNCTION_CALL,
        finish::FUNCTION_CALL => finish::TOOL_CALLS,
        finish::STOP | finish::LENGTH | finish::TOOL_CALLS | finish::CONTENT_FILTER => reason,
        _ => nearest(reason),
    }
}

/// Words of other dialects that the decoders hand on as they are: what a filter stopped is named so, the rest was cut.
fn nearest(reason: &str) -> &'static str {
    const FILTERS: &[&str] =
        &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED", "SPII", "REFUSAL", "FILTER", "GUARDRAIL"];
    let reason = reason.to_ascii_uppercase();
    if FILTERS.iter().any(|word| reason.contains(word)) { finish::CONTENT_FILTER } else { finish::LENGTH }
}
