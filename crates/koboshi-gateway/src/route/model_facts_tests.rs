//! Records what the names of models decide, for models of every vendor, as it reaches the wire.
//!
//! `KOBOSHI_GOLDEN=write` writes the file again; review what changed.

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use koboshi::models::{Facts, Models};
use koboshi_config::Config;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::{AttemptMode, Edits, Request, RetriedCalls, TargetTraits};
use koboshi_wire::chat::Correction;
use koboshi_wire::writer::WholeCall;
use serde_json::{Value, json};

use crate::route::capability::facts_of;
use crate::route::well_known::owners_of;

const NAMES: &[&str] = &[
    // OpenAI
    "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-4", "gpt-4-0613", "gpt-4-32k", "gpt-4-turbo-2024-04-09",
    "gpt-4-1106-preview", "gpt-4-0125-preview", "gpt-4-vision-preview", "gpt-4o", "gpt-4o-mini",
    "gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-4.1", "gpt-4.1-nano", "gpt-4.5-preview", "gpt-5",
    "gpt-5-2025-08-07", "gpt-5-mini", "gpt-5-nano", "gpt-5-chat-latest", "gpt-5-pro", "gpt-5-pro-2025-10-06",
    "gpt-5-prod", "gpt-5-codex", "gpt-5.1", "gpt-5.1-2025-11-13", "gpt-5.1-codex", "gpt-5.1-codex-mini",
    "gpt-5.1-codex-max", "gpt-5.2", "gpt-5.2-pro", "gpt-5.2-codex", "gpt-5.3-codex", "gpt-5.4",
    "gpt-5.4-mini", "gpt-5.4-pro", "gpt-5.5", "gpt-5.6-terra", "gpt-6", "gpt-oss-120b", "o1", "o1-mini",
    "o1-pro", "o1-2024-12-17", "o3", "o3-mini", "o3-pro", "o3-deep-research", "o4-mini", "codex-mini-latest",
    "text-embedding-3-small", "ft:gpt-4o-mini:org::abc123", "openai/gpt-4o", "openai/gpt-5.1",
    "openai/gpt-oss-20b", "openai.gpt-oss-120b-1:0", "prod-gpt-5-mini", // Anthropic
    "claude-2.1", "claude-instant-1.2", "claude-3-opus-20240229", "claude-3-haiku-20240307",
    "claude-3-5-haiku-20241022", "claude-3-5-sonnet-latest", "claude-3-7-sonnet-20250219",
    "claude-sonnet-4-20250514", "claude-sonnet-4@20250514", "claude-opus-4-20250514",
    "claude-opus-4-1-20250805", "claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-opus-4-5",
    "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-sonnet-5", "claude-opus-latest",
    "anthropic/claude-sonnet-4.5", "anthropic/claude-opus-4.6", "anthropic/claude-4.7-opus",
    "anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic.claude-opus-4-6-v1:0",
    "us.anthropic.claude-sonnet-4-20250514-v1:0", "team-claude-haiku-4-5", "my-claudette",
    "anthropic/claude-opus-4.5", "anthropic/claude-haiku-4.5", "anthropic/claude-3.5-haiku",
    // Google
    "gemini-1.0-pro", "gemini-1.5-pro-002", "gemini-1.5-flash", "gemini-2.0-flash",
    "gemini-2.0-flash-lite-001", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro",
    "gemini-3-pro-preview", "gemini-3-flash-preview", "gemini-3.1-pro-preview", "gemini-flash-latest",
    "gemini-pro-latest", "google/gemini-2.5-pro", "models/gemini-2.5-flash",
    "publishers/google/models/gemini-3-pro-preview", "gemma-3-27b-it", "google/gemma-2-9b-it",
    // Others
    "deepseek-chat", "deepseek-reasoner", "deepseek-v4", "deepseek/deepseek-r1", "deepseek-ai/DeepSeek-V3.1",
    "grok-2-vision-1212", "grok-3-mini", "grok-4", "grok-4-fast-reasoning", "x-ai/grok-4.1-fast",
    "kimi-k2-thinking", "moonshotai/Kimi-K2-Instruct", "mistral-large-latest", "codestral-2501",
    "ministral-8b-latest", "mistralai/mixtral-8x7b", "llama3.2", "llama-3.3-70b-versatile",
    "meta-llama/Llama-3.3-70B-Instruct-Turbo", "qwen3-coder:30b", "MiniMax-M2", "glm-4.6", "never-heard-of",
];

static MODELS: LazyLock<Models> = LazyLock::new(|| Models::builtin().unwrap());

fn known(kind: ProviderKind, model: &str) -> Facts {
    facts_of("p", kind, model, &MODELS, &Config::default())
}

/// A target as the gateway passes it to the wire crate.
fn to(dialect: Dialect, openai: bool, model: &str) -> TargetTraits {
    TargetTraits { dialect, openai, facts: known(ProviderKind::Openai, model), ..TargetTraits::default() }
}

/// The same for a model that the config declares to think.
fn thinking(dialect: Dialect, model: &str) -> TargetTraits {
    let to = to(dialect, false, model);
    TargetTraits { facts: to.facts.with(|facts| facts.reasoning = Some(true)), ..to }
}

/// The request that a target gets, and the rules by which parts were left out.
fn sent(from: Dialect, body: &Value, to: TargetTraits, model: &str) -> (Value, Vec<String>) {
    let body = Bytes::from(body.to_string());
    let request = Request::parse(from, &body, Some(("m", false))).unwrap();
    let written = request.write(&body, to, &Edits::plain(model));
    let left = written.left.iter().map(|left| left.rule.to_owned()).collect();
    (serde_json::from_slice(&written.body).unwrap(), left)
}

/// A request of a client of this dialect with just these fields.
fn asks(dialect: Dialect, more: &Value) -> Value {
    let mut body = match dialect {
        Dialect::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}),
        Dialect::Responses => json!({"model": "m", "input": "Hi"}),
        Dialect::Messages => {
            json!({"model": "m", "max_tokens": 30000, "messages": [{"role": "user", "content": "Hi"}]})
        }
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn tool() -> Value {
    json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}])
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// One line for each place where a name decides.
fn row(model: &str) -> String {
    let mut out = format!("{model}\n");
    let facts = known(ProviderKind::Openai, model);
    writeln!(
        out,
        "  can       {:?} {:?} tools={} images={} json={} prefill={} reasoning={}",
        facts.context_window,
        facts.max_output_tokens,
        facts.tools != Some(false),
        facts.images != Some(false),
        facts.json != Some(false),
        known(ProviderKind::Anthropic, model).prefill == Some(true),
        facts.reasoning == Some(true),
    )
    .unwrap();
    let owners: Vec<_> = owners_of(&MODELS, model).collect();
    writeln!(out, "  owners    {}", owners.join(" ")).unwrap();
    let price = MODELS.price("p", model).map(|price| serde_json::to_value(price).unwrap());
    writeln!(out, "  price     {}", price.as_ref().map_or_else(|| "-".to_owned(), per_million)).unwrap();
    out += &compatible(model);
    if !model.contains("gem") {
        writeln!(out, "  responses={}", facts.responses_api == Some(true)).unwrap();
        out += &openai(model);
        out += &messages(model);
    }
    if model.contains("gem") || model == "never-heard-of" {
        out += &gemini(model);
    }
    out
}

/// A price in dollars for a million tokens; it is kept in ten-thousandths.
fn per_million(price: &Value) -> String {
    let dollars = |class: &str| price[class].as_f64().unwrap() / 1e4;
    let [input, output, cached, stored] = ["input", "output", "cached", "stored"].map(dollars);
    format!("in={input} out={output} cached={cached} stored={stored}")
}

fn openai(model: &str) -> String {
    let mut out = String::new();
    for dialect in [Dialect::Chat, Dialect::Responses] {
        let to = to(dialect, true, model);
        // From another dialect, so that the request is written from its form.
        let (from, limit) = match dialect {
            Dialect::Chat => (Dialect::Responses, "max_output_tokens"),
            _ => (Dialect::Chat, "max_tokens"),
        };
        let asked = |effort: &str, more: &Value| {
            let how = match from {
                Dialect::Chat => json!({"reasoning_effort": effort}),
                _ => json!({"reasoning": {"effort": effort}}),
            };
            let mut body = asks(from, &how);
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            sent(from, &body, to, model)
        };
        let word = |body: &Value| match dialect {
            Dialect::Chat => shown(&body["reasoning_effort"]),
            _ => shown(&body["reasoning"]["effort"]),
        };
        let words = EFFORTS.map(|effort| {
            let (body, left) = asked(effort, &json!({}));
            word(&body) + if left.iter().any(|rule| rule == "nearest_effort") { "~" } else { "" }
        });
        let tools = match from {
            Dialect::Chat => tool(),
            _ => {
                json!([{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}])
            }
        };
        let settings = json!({limit: 99, "temperature": 0.5, "top_p": 0.5, "tools": tools,
            "parallel_tool_calls": false});
        let (body, left) = asked("high", &settings);
        let limit = ["max_tokens", "max_completion_tokens", "max_output_tokens"]
            .into_iter()
            .find(|name| !body[*name].is_null());
        writeln!(
            out,
            "  {:9} {} | {} {} t={} p={} parallel={} {left:?}",
            dialect.name(),
            words.join(" "),
            word(&body),
            limit.unwrap_or("-"),
            shown(&body["temperature"]),
            shown(&body["top_p"]),
            shown(&body["parallel_tool_calls"]),
        )
        .unwrap();
    }
    let call =
        WholeCall { id: "c", name: "f", arguments: "{", free_text: false, namespace: None, signature: None };
    let broken = [Correction { call, correction: "no" }];
    let mode = AttemptMode::Redo(RetriedCalls { broken: &broken, tool: "f" });
    let body = Bytes::from(asks(Dialect::Chat, &json!({"tools": tool()})).to_string());
    let request = Request::parse(Dialect::Chat, &body, None).unwrap();
    let edits = Edits { mode, ..Edits::plain(model) };
    let redone = request.write(&body, to(Dialect::Chat, true, model), &edits).body;
    let redone: Value = serde_json::from_slice(&redone).unwrap();
    writeln!(out, "  redo      parallel={}", shown(&redone["parallel_tool_calls"])).unwrap();
    out
}

fn compatible(model: &str) -> String {
    let to = thinking(Dialect::Chat, model);
    let thought = json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "temperature": 0.5, "thinking": {"type": "enabled", "budget_tokens": 9000}});
    let (body, _) = sent(Dialect::Messages, &asks(Dialect::Messages, &thought), to, model);
    let message = &body["messages"][1];
    format!(
        "  compat    {} t={} reasoning_content={}\n",
        shown(&body["reasoning_effort"]),
        shown(&body["temperature"]),
        shown(&message["reasoning_content"])
    )
}

fn messages(model: &str) -> String {
    let to = thinking(Dialect::Messages, model);
    let thinks = |body: &Value| {
        let thinking = &body["thinking"];
        let budget = &thinking["budget_tokens"];
        let word = if budget.is_null() { shown(&thinking["type"]) } else { budget.to_string() };
        format!("{word}/{}", shown(&body["output_config"]["effort"]))
    };
    let efforts = ["none", "low", "xhigh"].map(|effort| {
        thinks(&sent(Dialect::Chat, &asks(Dialect::Chat, &json!({"reasoning_effort": effort})), to, model).0)
    });
    let budget = json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 9000}}});
    let (budget, _) = sent(Dialect::Gemini, &asks(Dialect::Gemini, &budget), to, model);
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object",
        "properties": {}, "additionalProperties": false}}});
    let settings = json!({"temperature": 0.5, "top_p": 0.4, "response_format": format, "tools": tool()});
    let (body, left) = sent(Dialect::Chat, &asks(Dialect::Chat, &settings), to, model);
    format!(
        "  messages  {} {} | t={} p={} max={} format={} {left:?}\n",
        efforts.join(" "),
        thinks(&budget),
        shown(&body["temperature"]),
        shown(&body["top_p"]),
        body["max_tokens"],
        shown(&body["output_config"]["format"]["type"]),
    )
}

fn gemini(model: &str) -> String {
    let to = thinking(Dialect::Gemini, model);
    let thinks = |body: &Value| {
        let config = &body["generationConfig"]["thinkingConfig"];
        format!("{}/{}", shown(&config["thinkingBudget"]), shown(&config["thinkingLevel"]))
    };
    let efforts = EFFORTS.map(|effort| {
        let (body, left) =
            sent(Dialect::Chat, &asks(Dialect::Chat, &json!({"reasoning_effort": effort})), to, model);
        thinks(&body) + if left.iter().any(|rule| rule == "least_thinking") { "~" } else { "" }
    });
    let budgets = [1, 99_999].map(|budget| {
        let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": budget}});
        thinks(&sent(Dialect::Messages, &asks(Dialect::Messages, &thinking), to, model).0)
    });
    let adaptive = json!({"thinking": {"type": "adaptive"}});
    let adaptive = thinks(&sent(Dialect::Messages, &asks(Dialect::Messages, &adaptive), to, model).0);
    let settings = json!({"response_format": {"type": "json_object"}, "tools": tool()});
    let (_, left) = sent(Dialect::Chat, &asks(Dialect::Chat, &settings), to, model);
    let image = json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}]});
    let (body, _) = sent(Dialect::Messages, &asks(Dialect::Messages, &image), to, model);
    let result = &body["contents"][2]["parts"][0]["functionResponse"];
    format!(
        "  gemini    {} | {} {adaptive} | json+tools={left:?} media_in_result={}\n",
        efforts.join(" "),
        budgets.join(" "),
        !result["parts"].is_null(),
    )
}

#[test]
fn what_a_name_decides_is_as_recorded() {
    assert!(NAMES.len() >= 80);
    let found: String = NAMES.iter().map(|name| row(name)).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models.txt");
    if std::env::var_os("KOBOSHI_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    for (found, known) in found.lines().zip(known.lines()) {
        assert_eq!(found, known);
    }
    assert_eq!(found.lines().count(), known.lines().count());
}
