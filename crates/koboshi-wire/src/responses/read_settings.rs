//! Everything of a request that is neither input nor tools, as a form.
//!
//! What the form has no place for is named. What only matters to the vendor's own service (where it is stored, cached, billed) is dropped;
//! what the client reads back or what stores its conversation is needed.

use serde_json::value::RawValue;

use crate::form::{Effort, Form, Omission, Output, Thinking};
use crate::lenient::{Number, text_of};
use crate::numbers;
use crate::raw::{Raw, flag, list};

/// Reads one field of the top level. Those that are read elsewhere are passed over.
pub(super) fn read_field<'a>(name: &str, raw: &'a RawValue, form: &mut Form<'a>) {
    if matches!(name, "temperature" | "top_p" | "max_output_tokens") {
        numbers::check_raw(name, Some(raw), &mut form.left);
    }
    let left = match name {
        "model" | "stream" | "input" | "instructions" | "tools" | "tool_choice" => return,
        "parallel_tool_calls" => return form.parallel = flag(raw),
        "temperature" => return form.sampling.temperature = float(raw),
        "top_p" => return form.sampling.top_p = float(raw),
        "max_output_tokens" => return form.max_output = number(raw),
        "reasoning" => return reasoning(raw, form),
        "text" => return text(raw, form),
        // The new name counts only where the old one is missing.
        "safety_identifier" => return form.user = form.user.take().or_else(|| text_of(raw)),
        "user" => return form.user = text_of(raw).or(form.user.take()),
        "previous_response_id" | "conversation" => Omission::needed("needs_server_state", name),
        "prompt" => Omission::needed("needs_prompt_template", name),
        "background" if flag(raw) == Some(true) => Omission::needed("needs_background", name),
        "background" => return,
        "top_logprobs" if number(raw) != Some(0) => Omission::needed("needs_logprobs", name),
        "include"
            if list(raw)
                .into_iter()
                .flatten()
                .filter_map(text_of)
                .any(|what| what.ends_with(".logprobs")) =>
        {
            Omission::needed("needs_logprobs", name)
        }
        "include" => Omission::dropped("drop_include", name),
        "store" if flag(raw) == Some(false) => return,
        "store" => Omission::dropped("drop_store", name),
        "metadata" | "client_metadata" => Omission::dropped("drop_metadata", name),
        "prompt_cache_key" | "prompt_cache_retention" => Omission::dropped("drop_cache_hint", name),
        "service_tier" => Omission::dropped("drop_service_tier", name),
        "truncation" if text_of(raw).as_deref() == Some("disabled") => return,
        "truncation" => Omission::dropped("drop_truncation", name),
        "stream_options" => Omission::dropped("drop_stream_options", name),
        "max_tool_calls" => Omission::dropped("drop_max_tool_calls", name),
        _ => {
            let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
            Omission::dropped("drop_unknown_field", name)
        }
    };
    form.left.push(left);
}

fn reasoning<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let Some(reasoning) = Raw::of(raw) else { return };
    if let Some(effort) = reasoning.text("effort") {
        form.thinking = match &*effort {
            "none" => Thinking::Off,
            "minimal" => Thinking::Effort(Effort::Minimal),
            "low" => Thinking::Effort(Effort::Low),
            "medium" => Thinking::Effort(Effort::Medium),
            "high" => Thinking::Effort(Effort::High),
            "xhigh" | "max" => Thinking::Effort(Effort::Max),
            _ => {
                form.left.push(Omission::dropped("drop_effort", "reasoning.effort"));
                Thinking::Unspecified
            }
        };
    }
    if reasoning.get("summary").or(reasoning.get("generate_summary")).is_some() {
        form.left.push(Omission::dropped("drop_summary", "reasoning.summary"));
    }
}

fn text<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let Some(text) = Raw::of(raw) else { return };
    if text.get("verbosity").is_some() {
        form.left.push(Omission::dropped("drop_verbosity", "text.verbosity"));
    }
    let Some(format) = text.object("format") else { return };
    form.output = match format.kind().as_deref() {
        None | Some("text") => Output::Text,
        Some("json_object") => Output::Json,
        Some("json_schema") => {
            if format.get("description").is_some() {
                form.left.push(Omission::dropped("drop_schema_description", "text.format.description"));
            }
            match format.get("schema").filter(|raw| raw.get().starts_with('{')) {
                Some(schema) => Output::Schema {
                    name: format.full("name"),
                    schema: std::borrow::Cow::Borrowed(schema),
                    strict: format.flag("strict"),
                },
                None => Output::Json,
            }
        }
        Some(_) => {
            form.left.push(Omission::needed("needs_text_format", "text.format"));
            Output::Text
        }
    };
}

fn number(raw: &RawValue) -> Option<u64> {
    serde_json::from_str::<Number>(raw.get()).ok()?.0
}

fn float(raw: &RawValue) -> Option<f64> {
    serde_json::from_str::<f64>(raw.get()).ok().filter(|number| number.is_finite())
}
