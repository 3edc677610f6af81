//! Reads everything of a request but the conversation: tools, limits, sampling, thinking, the form of the answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::message::{full, some};
use super::model;
use crate::form::{Choice, Form, Omission, Output, Thinking, Tool, ToolInput};
use crate::intake::fields;
use crate::lenient::{List, Number, is_full, text_of};
use crate::numbers;

type Fields<'a> = [(Cow<'a, str>, &'a RawValue)];

/// Names in what was left are the client's: they are bounded.
const MAX_NAME: usize = 80;

/// Takes the fields of a request into its form. Model, stream, system and messages are read by others.
pub(super) fn read<'a>(all: &Fields<'a>, form: &mut Form<'a>) {
    let mut effort = None;
    for (name, raw) in all {
        let Some(raw) = some(raw) else { continue };
        if matches!(name.as_ref(), "max_tokens" | "temperature" | "top_p") {
            numbers::check(name, raw.get(), &mut form.left);
        }
        match name.as_ref() {
            "model" | "messages" | "stream" | "system" => {}
            "max_tokens" => form.max_output = number(raw),
            "tools" => tools(raw, form),
            "tool_choice" => tool_choice(raw, form),
            "temperature" => form.sampling.temperature = float(raw),
            "top_p" => form.sampling.top_p = float(raw),
            "top_k" => form.sampling.top_k = number(raw),
            "stop_sequences" => {
                let List(texts) = serde_json::from_str::<List<&RawValue>>(raw.get()).unwrap_or_default();
                form.sampling.stop = texts.into_iter().filter_map(text_of).collect();
            }
            "thinking" => thinking(raw, form),
            "output_config" => effort = output_config(raw, form),
            // The older place of the same, and still sent.
            "output_format" => output_format(raw, "output_format", form),
            "metadata" => metadata(raw, form),
            name => form.left.push(unknown(name, raw)),
        }
    }
    if let Some(effort) = effort {
        match form.thinking {
            Thinking::Unspecified | Thinking::Adaptive => form.thinking = Thinking::Effort(effort),
            _ => form.left.push(Omission::dropped("drop_effort", "output_config.effort")),
        }
    }
}

/// A field that the form has no place for.
fn unknown(name: &str, raw: &RawValue) -> Omission {
    match name {
        "cache_control" => Omission::dropped("drop_cache_control", name),
        "context_management" => Omission::dropped("drop_context_management", name),
        "service_tier" => Omission::dropped("drop_service_tier", name),
        "container" => Omission::needed("needs_container", name),
        "mcp_servers" if is_full(raw) => Omission::needed("needs_hosted_tool", name),
        // The region in which the answer may be made must not be dropped.
        "inference_geo" => Omission::needed("needs_inference_geo", name),
        // The conversation is kept by the vendor.
        "thread" => Omission::needed("needs_server_state", name),
        _ => Omission::dropped("drop_unknown_field", bounded(name)),
    }
}

fn bounded(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME).collect()
}

fn number(raw: &RawValue) -> Option<u64> {
    serde_json::from_str::<Number>(raw.get()).ok()?.0
}

fn float(raw: &RawValue) -> Option<f64> {
    serde_json::from_str::<f64>(raw.get()).ok()
}

fn flag(raw: &RawValue) -> Option<bool> {
    serde_json::from_str::<bool>(raw.get()).ok()
}

fn tools<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let List(all) = serde_json::from_str::<List<&RawValue>>(raw.get()).unwrap_or_default();
    for (index, raw) in all.into_iter().enumerate() {
        let known = fields(raw).unwrap_or_default();
        let kind = known.iter().find(|(name, _)| name == "type").and_then(|(_, raw)| full(Some(raw)));
        match kind.as_deref() {
            None | Some("custom") => tool(&known, index, form),
            Some(_) => form.left.push(Omission::needed("needs_hosted_tool", format!("tools[{index}]"))),
        }
    }
}

fn tool<'a>(known: &Fields<'a>, index: usize, form: &mut Form<'a>) {
    let mut offer =
        Tool { name: Cow::Borrowed(""), description: None, input: ToolInput::Schema(None), strict: None };
    for (name, raw) in known {
        let Some(raw) = some(raw) else { continue };
        match name.as_ref() {
            "type" => {}
            "name" => offer.name = text_of(raw).unwrap_or_default(),
            "description" => offer.description = text_of(raw),
            "input_schema" => {
                let schema = raw.get().starts_with('{').then_some(Cow::Borrowed(raw));
                offer.input = ToolInput::Schema(schema);
            }
            "strict" => offer.strict = flag(raw),
            "cache_control" => {
                form.left.push(Omission::dropped("drop_cache_control", format!("tools[{index}]")));
            }
            name => {
                let at = format!("tools[{index}].{}", bounded(name));
                form.left.push(Omission::dropped("drop_unknown_field", at));
            }
        }
    }
    if offer.name.is_empty() {
        form.left.push(Omission::needed("needs_tool_name", format!("tools[{index}].name")));
    } else {
        form.tools.push(offer);
    }
}

fn tool_choice<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let (mut kind, mut tool) = (None, None);
    for (name, raw) in fields(raw).unwrap_or_default() {
        match name.as_ref() {
            "type" => kind = text_of(raw),
            "name" => tool = text_of(raw),
            "disable_parallel_tool_use" => form.parallel = flag(raw).map(|disabled| !disabled),
            _ => {}
        }
    }
    match (kind.as_deref(), tool) {
        (Some("auto"), _) => form.choice = Choice::Auto,
        (Some("any"), _) => form.choice = Choice::Any,
        (Some("none"), _) => form.choice = Choice::Never,
        (Some("tool"), Some(tool)) => form.choice = Choice::Tool(tool),
        _ => form.left.push(Omission::needed("needs_tool_choice", "tool_choice")),
    }
}

fn thinking<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let (mut kind, mut budget) = (None, None);
    for (name, raw) in fields(raw).unwrap_or_default() {
        match name.as_ref() {
            "type" => kind = text_of(raw),
            "budget_tokens" => budget = number(raw),
            "display" => form.left.push(Omission::dropped("drop_thinking_display", "thinking.display")),
            _ => {}
        }
    }
    form.thinking = match (kind.as_deref(), budget) {
        (Some("disabled"), _) => Thinking::Off,
        (Some("enabled"), Some(budget)) => Thinking::Budget(budget),
        (Some("enabled" | "adaptive"), _) => Thinking::Adaptive,
        _ => {
            form.left.push(Omission::dropped("drop_thinking", "thinking"));
            Thinking::Unspecified
        }
    };
}

/// Takes the form of the answer, and gives the effort.
fn output_config<'a>(raw: &'a RawValue, form: &mut Form<'a>) -> Option<crate::form::Effort> {
    let mut effort = None;
    for (name, raw) in fields(raw).unwrap_or_default() {
        let Some(raw) = some(raw) else { continue };
        match name.as_ref() {
            "format" => output_format(raw, "output_config.format", form),
            "effort" => {
                effort = text_of(raw).and_then(|word| model::effort_named(&word));
                if effort.is_none() {
                    form.left.push(Omission::dropped("drop_effort", "output_config.effort"));
                }
            }
            name => {
                let at = format!("output_config.{}", bounded(name));
                form.left.push(Omission::dropped("drop_unknown_field", at));
            }
        }
    }
    effort
}

fn output_format<'a>(raw: &'a RawValue, at: &str, form: &mut Form<'a>) {
    let known = fields(raw).unwrap_or_default();
    let schema = known.iter().find(|(name, _)| name == "schema").map(|(_, raw)| *raw);
    let kind = known.iter().find(|(name, _)| name == "type").and_then(|(_, raw)| text_of(raw));
    match (kind.as_deref(), schema) {
        (Some("json_schema"), Some(schema)) => {
            form.output = Output::Schema { name: None, schema: Cow::Borrowed(schema), strict: None };
        }
        _ => form.left.push(Omission::needed("needs_response_format", at)),
    }
}

fn metadata<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    for (name, raw) in fields(raw).unwrap_or_default() {
        match name.as_ref() {
            "user_id" => form.user = full(Some(raw)),
            name => {
                form.left.push(Omission::dropped("drop_metadata", format!("metadata.{}", bounded(name))));
            }
        }
    }
}
