//! Everything of a request that is not the conversation: tools, their choice, the form of the answer, sampling, thinking.
//!
//! Rules that name what has no place elsewhere: what Google runs itself is needed (`needs_hosted_tool`), since an answer without it would be
//! another one; what only tunes an answer is dropped.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::proto_json::{Node, camel, count, is_named, many, number, whole, written};
use super::read_schema::json_schema;
use crate::form::{Choice, Effort, Form, Omission, Output, Sampling, Thinking, Tool, ToolInput};
use crate::lenient::{Fields, is_full, text_of};
use crate::numbers;

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
                form.left.push(Omission::needed("needs_hosted_tool", format!("tools[{index}].{name}")));
            }
        }
    }
}

fn tool<'a>(declared: &Node<'a>, at: &str, form: &mut Form<'a>) {
    let Some(name) = declared.text("name").filter(|name| !name.is_empty()) else {
        return form.left.push(Omission::needed("needs_tool_name", at));
    };
    for field in ["response", "responseJsonSchema", "behavior"] {
        if declared.get(field).is_some() {
            form.left.push(Omission::dropped("drop_tool_detail", format!("{at}.{field}")));
        }
    }
    form.tools.push(Tool {
        name,
        description: declared.text("description"),
        input: ToolInput::Schema(schema(declared.get("parametersJsonSchema"), declared.get("parameters"))),
        strict: None,
    });
}

/// A schema that is given in one of two ways.
fn schema<'a>(json: Option<&'a RawValue>, openapi: Option<&'a RawValue>) -> Option<Cow<'a, RawValue>> {
    let is_object = |raw: &&RawValue| raw.get().starts_with('{');
    let given = json.filter(is_object).map(Cow::Borrowed);
    given.or_else(|| openapi.filter(is_object).map(|raw| Cow::Owned(json_schema(raw))))
}

/// Which tool is to be called.
pub(super) fn choice<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let config = Node::of(raw);
    for (name, _) in config.0.iter().filter(|(name, _)| !is_named(name, "functionCallingConfig")) {
        form.left.push(Omission::dropped("drop_tool_config", format!("toolConfig.{name}")));
    }
    let Some(calling) = config.get("functionCallingConfig").map(Node::of) else { return };
    let at = |name: &str| format!("toolConfig.functionCallingConfig.{name}");
    if calling.flag("streamFunctionCallArguments") {
        form.left.push(Omission::dropped("drop_streamed_arguments", at("streamFunctionCallArguments")));
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
        _ => Choice::Unspecified,
    };
    if mode == "VALIDATED" {
        form.left.push(Omission::dropped("drop_validated_calls", at("mode")));
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
            form.left.push(Omission::dropped("narrow_tools", at("allowedFunctionNames")));
        }
    }
}

/// How the answer is made: what stands in the `generationConfig`. Of a field that comes twice the last counts, and `null` as absent.
#[derive(Debug, Default)]
pub(super) struct Generation<'a> {
    sampling: Sampling<'a>,
    max_output: Option<u64>,
    shape: Shape<'a>,
    thinking: Option<&'a RawValue>,
    left: Vec<Omission>,
}

impl<'a> Generation<'a> {
    /// Puts it where it belongs.
    pub(super) fn put_into(mut self, form: &mut Form<'a>) {
        form.sampling = self.sampling;
        form.max_output = self.max_output;
        output(&self.shape, form);
        if let Some(raw) = self.thinking {
            thinking(&Node::of(raw), form);
        }
        form.left.append(&mut self.left);
    }
}

/// In which form the answer is wished.
#[derive(Debug, Default)]
struct Shape<'a> {
    media_type: Option<&'a RawValue>,
    json_schema: Option<&'a RawValue>,
    schema: Option<&'a RawValue>,
    /// The newer way to say it, which names a format for each kind of output.
    formats: Option<&'a RawValue>,
}

impl<'a> Fields<'a> for Generation<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let raw: &'a RawValue = map.next_value()?;
        let given = Some(raw).filter(|raw| raw.get() != "null");
        let camel = camel(name);
        if let (Some(at), Some(raw)) = (number_named(&camel), given) {
            numbers::check(at, &written(raw), &mut self.left);
        }
        let Self { sampling, shape, .. } = self;
        match camel.as_ref() {
            "temperature" => sampling.temperature = number(raw),
            "topP" => sampling.top_p = number(raw),
            "topK" => sampling.top_k = count(raw),
            "frequencyPenalty" => sampling.frequency_penalty = number(raw),
            "presencePenalty" => sampling.presence_penalty = number(raw),
            "seed" => sampling.seed = whole(raw),
            "candidateCount" => {
                let answers = count(raw).and_then(|count| u32::try_from(count).ok());
                sampling.answers = answers.filter(|count| *count > 1);
            }
            "maxOutputTokens" => self.max_output = count(raw),
            "stopSequences" => sampling.stop = many(raw).into_iter().filter_map(text_of).collect(),
            "responseMimeType" => shape.media_type = given,
            "responseJsonSchema" => shape.json_schema = given,
            "responseSchema" => shape.schema = given,
            "responseFormat" => shape.formats = given,
            "thinkingConfig" => self.thinking = given,
            // An empty value is not noted as left out.
            camel if is_full(raw) => self.left.extend(rest(camel, name, raw)),
            _ => {}
        }
        Ok(())
    }
}

/// The place of a number that has to be understood.
fn number_named(camel: &str) -> Option<&'static str> {
    Some(match camel {
        "maxOutputTokens" => "generationConfig.maxOutputTokens",
        "candidateCount" => "generationConfig.candidateCount",
        "temperature" => "generationConfig.temperature",
        "topP" => "generationConfig.topP",
        _ => return None,
    })
}

/// What has no place.
fn rest(camel: &str, name: &str, value: &RawValue) -> Option<Omission> {
    let at = format!("generationConfig.{name}");
    Some(match camel {
        "responseModalities" => {
            let is_text =
                |kind: &RawValue| text_of(kind).is_some_and(|kind| kind.eq_ignore_ascii_case("text"));
            if many(value).into_iter().all(is_text) {
                return None;
            }
            Omission::needed("needs_media_output", at)
        }
        "logprobs" | "responseLogprobs" => Omission::dropped("drop_logprobs", at),
        "mediaResolution" => Omission::dropped("drop_media_view", at),
        _ => Omission::dropped("drop_unknown_field", at),
    })
}

fn output<'a>(shape: &Shape<'a>, form: &mut Form<'a>) {
    let given = shape.media_type.and_then(text_of).unwrap_or_default();
    let mut schema = schema(shape.json_schema, shape.schema);
    let mut is_json = given == "application/json";
    for (place, format) in shape.formats.map(many).unwrap_or_default().into_iter().enumerate() {
        for (name, value) in Node::of(format).0 {
            let text = Node::of(value);
            if name == "text" {
                let kind = text.text("mimeType").unwrap_or_default();
                is_json |= matches!(kind.as_ref(), "application/json" | "APPLICATION_JSON");
                schema = schema.or_else(|| text.get("schema").map(Cow::Borrowed));
            } else {
                let at = format!("generationConfig.responseFormat[{place}].{name}");
                form.left.push(Omission::needed("needs_media_output", at));
            }
        }
    }
    form.output = match schema {
        Some(schema) => Output::Schema { name: None, schema, strict: None },
        None if is_json => Output::Json,
        None => Output::Text,
    };
    if !matches!(given.as_ref(), "" | "application/json" | "text/plain") {
        form.left.push(Omission::needed("needs_mime_type", "generationConfig.responseMimeType"));
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
        (None, None) => Thinking::Unspecified,
    };
    // Beside an effort the flag only makes the thoughts visible; alone it is a wish to see them, no more.
    if form.thinking == Thinking::Unspecified && config.flag("includeThoughts") {
        let at = "generationConfig.thinkingConfig.includeThoughts";
        form.left.push(Omission::dropped("drop_include_thoughts", at));
    }
}
