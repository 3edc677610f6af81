//! How many tokens a request has, as the vendors' endpoints for it answer.

use koboshi_wire::Dialect;
use serde_json::json;

use crate::error::{Problem, in_band};
use crate::fall::Fall;
use crate::play::{Ask, Play, Stage};
use crate::request::Request;

/// What the provider sends for this request to count its tokens: Anthropic's `count_tokens`, Gemini's `countTokens`, OpenAI's `input_tokens`.
/// It falls under the same names as an answer does, as far as a body that is no stream can. Chat completions have nothing of the kind.
#[must_use]
pub fn count(ask: &Ask<'_>) -> Play {
    let ask = &Ask { stream: Some(false), ..*ask };
    let stage = Stage::of(ask);
    let plan = match stage.plan() {
        Ok(plan) => plan,
        Err(play) => return play,
    };
    let latency = plan.whole_latency();
    if !ask.dialect.has_token_count() {
        let says = "Chat completions have no way to count tokens.".to_owned();
        return stage.failure(&Problem::Request { says, param: None }, latency);
    }
    let mut made = Vec::new();
    let request = match stage.read(Request::read_count, &mut made, latency) {
        Ok(request) => request,
        Err(play) => return play,
    };
    let tokens = request.tokens();
    if let Fall::Context { limit } = plan.fall
        && limit.is_none_or(|limit| tokens > limit)
    {
        return stage.failure(&Problem::context(tokens, limit), latency);
    }
    let body = match (plan.fall, ask.dialect) {
        (Fall::InBand { .. }, dialect) => in_band(dialect),
        (Fall::Empty, _) => json!({}),
        (_, Dialect::Gemini) => {
            let details = json!([{"modality": "TEXT", "tokenCount": tokens}]);
            json!({"totalTokens": tokens, "promptTokensDetails": details})
        }
        (_, Dialect::Responses) => json!({"object": "response.input_tokens", "input_tokens": tokens}),
        (_, Dialect::Messages | Dialect::Chat) => json!({"input_tokens": tokens}),
    };
    stage.json(latency, body.to_string(), plan.fall)
}
