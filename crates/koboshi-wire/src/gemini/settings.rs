//! Everything of a request that is not the conversation: tools, their choice, the form of the answer, sampling, thinking.
//!
//! Rules that name what has no place elsewhere: what Google runs itself is needed (`needs_hosted_tool`), since an answer without it would be
//! another one; what only tunes an answer is dropped.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::reading::{Node, is_named, many};
use super::schema::json_schema;
use crate::form::{Choice, Effort, Form, Left, Output, Thinking, Tool, ToolInput};
use crate::lenient::{is_full, text_of};

/// The tools.
pub(super) fn tools<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    for (index, group) in many(raw).into_iter().enumerate() {
        for (name, value) in Node::of(group).0 {
            if is_named(&name, "functionDeclarations") {
                for (place, declared) in many(value).into_iter().enumerate() {
                    let at = format!("tools[{index}].functionDeclarations[{place}]");
                    tool(&Node::of(declared), &at, form);
                }
            } else if value.get() != "null" {
                form.left.push(Left::needed("needs_hosted_tool", format!("tools[{index}].{name}")));
            }
        }
    }
}

fn tool<'a>(declared: &Node<'a>, at: &str, form: &mut Form<'a>) {
    let Some(name) = declared.text("name").filter(|name| !name.is_empty()) else {
        return form.left.push(Left::needed("needs_tool_name", at));
    };
    for field in ["response", "responseJsonSchema", "behavior"] {
        if declared.get(field).is_some() {
            form.left.push(Left::dropped("drop_tool_detail", format!("{at}.{field}")));
        }
    }
    form.tools.push(Tool {
        name,
        description: declared.text("description"),
        input: ToolInput::Schema(schema(declared, "parametersJsonSchema", "parameters")),
        strict: None,
    });
}

/// A schema that is given in one of two ways.
fn schema<'a>(node: &Node<'a>, json: &str, openapi: &str) -> Option<Cow<'a, RawValue>> {
    let is_object = |raw: &&RawValue| raw.get().starts_with('{');
    let given = node.get(json).filter(is_object).map(Cow::Borrowed);
    given.or_else(|| node.get(openapi).filter(is_object).map(|raw| Cow::Owned(json_schema(raw))))
}

/// Which tool is to be called.
pub(super) fn choice<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let config = Node::of(raw);
    for (name, _) in config.0.iter().filter(|(name, _)| !is_named(name, "functionCallingConfig")) {
        form.left.push(Left::dropped("drop_tool_config", format!("toolConfig.{name}")));
    }
    let Some(calling) = config.get("functionCallingConfig").map(Node::of) else { return };
    let at = |name: &str| format!("toolConfig.functionCallingConfig.{name}");
    if calling.flag("streamFunctionCallArguments") {
        form.left.push(Left::dropped("drop_streamed_arguments", at("streamFunctionCallArguments")));
    }
    let mode = calling.text("mode").unwrap_or_default().to_ascii_uppercase();
    let allowed: Vec<Cow<'a, str>> = calling
        .get("allowedFunctionNames")
        .map(|raw| many(raw).into_iter().filter_map(text_of).collect())
        .unwrap_or_default();
    form.choice = match (mode.as_str(), allowed.as_slice()) {
        ("ANY", [one]) => Choice::Tool(one.clone()),
        ("ANY", _) => Choice::Any,
        ("NONE", _) => Choice::Never,
        ("AUTO" | "VALIDATED", _) => Choice::Auto,
        _ => Choice::Unsaid,
    };
    if mode == "VALIDATED" {
        form.left.push(Left::dropped("drop_validated_calls", at("mode")));
    }
    // Other dialects cannot allow some of the tools: then only those are offered.
    let is_narrow = match mode.as_str() {
        "ANY" => allowed.len() > 1,
        "VALIDATED" => !allowed.is_empty(),
        _ => false,
    };
    if is_narrow {
        let before = form.tools.len();
        let allowed: HashSet<&str> = allowed.iter().map(AsRef::as_ref).collect();
        form.tools.retain(|tool| allowed.contains(tool.name.as_ref()));
        if form.tools.len() != before {
            form.left.push(Left::dropped("narrow_tools", at("allowedFunctionNames")));
        }
    }
}

/// How the answer is made.
pub(super) fn generation<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let config = Node::of(raw);
    form.sampling.temperature = config.number("temperature");
    form.sampling.top_p = config.number("topP");
    form.sampling.top_k = config.count("topK");
    form.sampling.frequency_penalty = config.number("frequencyPenalty");
    form.sampling.presence_penalty = config.number("presencePenalty");
    form.sampling.seed = config.whole("seed");
    let answers = config.count("candidateCount").and_then(|count| u32::try_from(count).ok());
    form.sampling.answers = answers.filter(|count| *count > 1);
    form.max_output = config.count("maxOutputTokens");
    if let Some(raw) = config.get("stopSequences") {
        form.sampling.stop = many(raw).into_iter().filter_map(text_of).collect();
    }
    output(&config, form);
    if let Some(raw) = config.get("thinkingConfig") {
        thinking(&Node::of(raw), form);
    }
    for (name, value) in &config.0 {
        if !KNOWN.iter().any(|known| is_named(name, known)) && is_full(value) {
            rest(name, value, form);
        }
    }
}

/// What is read above.
const KNOWN: [&str; 14] = [
    "temperature", "topP", "topK", "frequencyPenalty", "presencePenalty", "seed", "candidateCount",
    "maxOutputTokens", "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema",
    "thinkingConfig", "responseFormat",
];

/// What has no place.
fn rest(name: &str, value: &RawValue, form: &mut Form<'_>) {
    let at = format!("generationConfig.{name}");
    let left = if is_named(name, "responseModalities") {
        let is_text = |kind: &RawValue| text_of(kind).is_some_and(|kind| kind.eq_ignore_ascii_case("text"));
        if many(value).into_iter().all(is_text) {
            return;
        }
        Left::needed("needs_media_output", at)
    } else if is_named(name, "logprobs") || is_named(name, "responseLogprobs") {
        Left::dropped("drop_logprobs", at)
    } else if is_named(name, "mediaResolution") {
        Left::dropped("drop_media_view", at)
    } else {
        Left::dropped("drop_unknown_field", at)
    };
    form.left.push(left);
}

fn output<'a>(config: &Node<'a>, form: &mut Form<'a>) {
    let given = config.text("responseMimeType").unwrap_or_default();
    let mut schema = schema(config, "responseJsonSchema", "responseSchema");
    let mut is_json = given == "application/json";
    // The newer way to say it, which names a format for each kind of output.
    for (place, format) in config.get("responseFormat").map(many).unwrap_or_default().into_iter().enumerate()
    {
        for (name, value) in Node::of(format).0 {
            let text = Node::of(value);
            if name == "text" {
                let kind = text.text("mimeType").unwrap_or_default();
                is_json |= matches!(kind.as_ref(), "application/json" | "APPLICATION_JSON");
                schema = schema.or_else(|| text.get("schema").map(Cow::Borrowed));
            } else {
                let at = format!("generationConfig.responseFormat[{place}].{name}");
                form.left.push(Left::needed("needs_media_output", at));
            }
        }
    }
    form.output = match schema {
        Some(schema) => Output::Schema { name: None, schema, strict: None },
        None if is_json => Output::Json,
        None => Output::Text,
    };
    if !matches!(given.as_ref(), "" | "application/json" | "text/plain") {
        form.left.push(Left::needed("needs_mime_type", "generationConfig.responseMimeType"));
    }
}

fn thinking(config: &Node<'_>, form: &mut Form<'_>) {
    let level = config.text("thinkingLevel").unwrap_or_default().to_ascii_uppercase();
    let effort = match level.as_str() {
        "MINIMAL" => Some(Effort::Minimal),
        "LOW" => Some(Effort::Low),
        "MEDIUM" => Some(Effort::Medium),
        "HIGH" => Some(Effort::High),
        _ => None,
    };
    form.thinking = match (effort, config.whole("thinkingBudget")) {
        (Some(effort), _) => Thinking::Effort(effort),
        (None, Some(0)) => Thinking::Off,
        (None, Some(budget)) => u64::try_from(budget).map_or(Thinking::Adaptive, Thinking::Budget),
        (None, None) => Thinking::Unsaid,
    };
    // Whoever is told how hard to think shows it where the client can read it; alone it is a wish to see, no more.
    if form.thinking == Thinking::Unsaid && config.flag("includeThoughts") {
        let at = "generationConfig.thinkingConfig.includeThoughts";
        form.left.push(Left::dropped("drop_include_thoughts", at));
    }
}
