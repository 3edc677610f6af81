//! A chat request in the internal form.
//!
//! What has no place in the form is named. It may be dropped where it changes how well, how fast or how cheap the answer comes, or what the
//! provider keeps of it; it is needed where the client waits for something that would not come: probabilities, audio, several
//! answers, a search.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::read_turns::Reader;
use super::request::{ChatRequest, NUMBERS};
use crate::form::{Choice, Effort, Form, Omission, Output, Sampling, Thinking, Tool, ToolInput};
use crate::lenient::{Number, is_full, text_of};
use crate::numbers;
use crate::raw::{Raw, flag, list, number};

/// Fields that have a place in the form, or none to need.
const KNOWN: &[&str] = &[
    "model", "stream", "stream_options", "messages", "tools", "functions", "tool_choice", "function_call",
    "parallel_tool_calls", "response_format", "temperature", "top_p", "top_k", "frequency_penalty",
    "presence_penalty", "seed", "stop", "n", "max_tokens", "max_completion_tokens", "reasoning_effort",
    "reasoning", "user",
];

/// Fields without a place that the answer can do without.
const DROPPED: &[(&str, &str)] = &[
    ("logit_bias", "drop_logit_bias"),
    ("prediction", "drop_prediction"),
    ("service_tier", "drop_service_tier"),
    ("store", "drop_store"),
    ("metadata", "drop_metadata"),
    ("safety_identifier", "drop_safety_identifier"),
    ("prompt_cache_key", "drop_prompt_cache"),
    ("prompt_cache_retention", "drop_prompt_cache"),
    ("verbosity", "drop_verbosity"),
];

/// Fields without a place that the client waits for. `logprobs: false` asks for nothing.
const NEEDED: &[(&str, &str)] = &[
    ("logprobs", "needs_logprobs"),
    ("top_logprobs", "needs_logprobs"),
    ("web_search_options", "needs_web_search"),
];

impl<'a> ChatRequest<'a> {
    /// The request in the internal form.
    #[must_use]
    pub fn form(&self) -> Form<'a> {
        let Reader { system, turns, mut left, .. } = Reader::of(&self.messages);
        let mut tools = self.form_tools(&mut left);
        let choice = self.form_choice(&mut tools, &mut left);
        let form = Form {
            model: self.name().clone(),
            stream: self.stream(),
            system,
            turns,
            tools,
            choice,
            parallel: self.parallel_tool_calls(),
            output: self.form_output(&mut left),
            sampling: self.form_sampling(&mut left),
            max_output: self.max_output(),
            thinking: self.form_thinking(&mut left),
            user: self.user().filter(|user| !user.is_empty()),
            left: Vec::new(),
        };
        self.name_the_rest(&mut left);
        Form { left, ..form }
    }

    /// Names the fields that have no place.
    fn name_the_rest(&self, left: &mut Vec<Omission>) {
        let rule_in = |table: &[(&str, &'static str)], name: &str| {
            table.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
        };
        for (name, raw) in self.top.fields() {
            if raw.get() == "null" || KNOWN.contains(&name) {
                continue;
            }
            if name == "modalities" || name == "audio" {
                self.name_sound(name, raw, left);
            } else if let Some(rule) = rule_in(DROPPED, name) {
                left.push(Omission::dropped(rule, name));
            } else if let Some(rule) = rule_in(NEEDED, name) {
                if raw.get() != "false" && raw.get() != "0" {
                    left.push(Omission::needed(rule, name));
                }
            } else {
                let name: String = name.chars().filter(|letter| !letter.is_control()).take(80).collect();
                left.push(Omission::dropped("drop_unknown_field", name));
            }
        }
    }

    /// Audio is wanted only if the modalities list it; the `audio` settings alone ask for nothing.
    fn name_sound(&self, name: &str, raw: &'a RawValue, left: &mut Vec<Omission>) {
        let all = if name == "modalities" { list(raw).unwrap_or_default() } else { Vec::new() };
        if all.into_iter().filter_map(text_of).any(|kind| kind != "text") {
            left.push(Omission::needed("needs_audio_output", name));
        } else if name == "audio" {
            left.push(Omission::dropped("drop_audio", name));
        }
    }

    fn form_tools(&self, left: &mut Vec<Omission>) -> Vec<Tool<'a>> {
        let mut tools = Vec::new();
        let of = |name| self.raw(name).and_then(list).unwrap_or_default();
        for (index, raw) in of("tools").into_iter().enumerate() {
            let at = || format!("tools[{index}]");
            let offered = Raw::of(raw).unwrap_or_default();
            let found = match (offered.object("function"), offered.object("custom")) {
                (Some(function), _) => function_tool(&function),
                (None, Some(custom)) => {
                    let format = custom.object("format").and_then(|format| format.full("type"));
                    if format.is_some_and(|kind| kind != "text") {
                        left.push(Omission::dropped("drop_tool_grammar", at()));
                    }
                    free_tool(&custom)
                }
                (None, None) => None,
            };
            match found {
                Some(tool) => tools.push(tool),
                None => left.push(Omission::needed("needs_hosted_tool", at())),
            }
        }
        tools.extend(of("functions").into_iter().filter_map(|raw| function_tool(&Raw::of(raw)?)));
        tools
    }

    fn form_choice(&self, tools: &mut Vec<Tool<'a>>, left: &mut Vec<Omission>) -> Choice<'a> {
        let (at, raw) = match (self.raw("tool_choice"), self.raw("function_call")) {
            (Some(raw), _) => ("tool_choice", raw),
            (None, Some(raw)) => ("function_call", raw),
            (None, None) => return Choice::Unspecified,
        };
        let chosen = match text_of(raw) {
            Some(word) => mode(&word),
            None => {
                let object = Raw::of(raw).unwrap_or_default();
                let inside = object.object("function").or_else(|| object.object("custom"));
                match object.object("allowed_tools") {
                    Some(allowed) => narrowed(&allowed, tools, left),
                    None => inside.as_ref().unwrap_or(&object).full("name").map(Choice::Tool),
                }
            }
        };
        chosen.unwrap_or_else(|| {
            left.push(Omission::needed("needs_tool_choice", at));
            Choice::Unspecified
        })
    }

    fn form_output(&self, left: &mut Vec<Omission>) -> Output<'a> {
        let Some(format) = self.response_format().and_then(Raw::of) else { return Output::Text };
        match format.text("type").as_deref() {
            None | Some("text") => Output::Text,
            Some("json_object") => Output::Json,
            Some("json_schema") => {
                let inside = format.object("json_schema").unwrap_or_default();
                if inside.full("description").is_some() {
                    left.push(Omission::dropped("drop_schema_description", "response_format.json_schema"));
                }
                let Some(schema) = inside.raw_object("schema") else { return Output::Json };
                let strict = inside.flag("strict");
                Output::Schema { name: inside.full("name"), schema: Cow::Borrowed(schema), strict }
            }
            Some(_) => {
                left.push(Omission::needed("needs_response_format", "response_format"));
                Output::Text
            }
        }
    }

    fn form_sampling(&self, left: &mut Vec<Omission>) -> Sampling<'a> {
        let float = |name| self.raw(name).and_then(number::<f64>);
        let stop = self.raw("stop").map_or_else(Vec::new, |raw| match text_of(raw) {
            Some(text) => vec![text],
            None => list(raw).unwrap_or_default().into_iter().filter_map(text_of).collect(),
        });
        for name in NUMBERS {
            numbers::check_raw(name, self.raw(name), left);
        }
        let answers = Some(self.n()).filter(|count| *count > 1);
        if answers.is_some() {
            left.push(Omission::needed("needs_answers", "n"));
        }
        Sampling {
            temperature: float("temperature"),
            top_p: float("top_p"),
            top_k: self.raw("top_k").and_then(|raw| number::<Number>(raw)?.0),
            frequency_penalty: float("frequency_penalty"),
            presence_penalty: float("presence_penalty"),
            seed: self.raw("seed").and_then(number::<i64>),
            stop: stop.into_iter().filter(|text| !text.is_empty()).collect(),
            answers,
        }
    }

    /// `reasoning_effort`, or OpenRouter's `reasoning`.
    fn form_thinking(&self, left: &mut Vec<Omission>) -> Thinking {
        let (at, word) = match (self.raw("reasoning_effort"), self.raw("reasoning")) {
            (Some(raw), _) => ("reasoning_effort", text_of(raw)),
            (None, Some(raw)) => {
                let reasoning = Raw::of(raw).unwrap_or_default();
                if let Some(budget) = reasoning.number::<Number>("max_tokens").and_then(|number| number.0) {
                    return Thinking::Budget(budget);
                }
                if reasoning.flag("enabled") == Some(false) {
                    return Thinking::Off;
                }
                if reasoning.get("effort").is_none() {
                    return if is_full(raw) { Thinking::Adaptive } else { Thinking::Unspecified };
                }
                ("reasoning", reasoning.text("effort"))
            }
            (None, None) => return Thinking::Unspecified,
        };
        match word.as_deref() {
            Some("none") => Thinking::Off,
            Some("minimal") => Thinking::Effort(Effort::Minimal),
            Some("low") => Thinking::Effort(Effort::Low),
            Some("medium") => Thinking::Effort(Effort::Medium),
            Some("high") => Thinking::Effort(Effort::High),
            Some("xhigh" | "max") => Thinking::Effort(Effort::Max),
            _ => {
                left.push(Omission::dropped("drop_reasoning_effort", at));
                Thinking::Unspecified
            }
        }
    }
}

fn function_tool<'a>(function: &Raw<'a>) -> Option<Tool<'a>> {
    Some(Tool {
        name: function.full("name")?,
        description: function.full("description"),
        input: ToolInput::Schema(function.raw_object("parameters").map(Cow::Borrowed)),
        strict: function.get("strict").and_then(flag),
    })
}

fn free_tool<'a>(custom: &Raw<'a>) -> Option<Tool<'a>> {
    let description = custom.full("description");
    Some(Tool { name: custom.full("name")?, description, input: ToolInput::FreeText, strict: None })
}

/// A choice that is one word. Mistral writes `any`.
fn mode<'a>(word: &str) -> Option<Choice<'a>> {
    match word {
        "auto" => Some(Choice::Auto),
        "none" => Some(Choice::Never),
        "required" | "any" => Some(Choice::Any),
        _ => None,
    }
}

/// Only some of the tools may be called: then only these are offered. The others are hidden, as was asked, though a prompt
/// cache then has to be built again.
fn narrowed<'a>(
    allowed: &Raw<'a>,
    tools: &mut Vec<Tool<'a>>,
    left: &mut Vec<Omission>,
) -> Option<Choice<'a>> {
    let named = |raw: &'a RawValue| {
        let tool = Raw::of(raw)?;
        let inside = tool.object("function").or_else(|| tool.object("custom"));
        inside.as_ref().unwrap_or(&tool).full("name")
    };
    let names: HashSet<_> = list(allowed.get("tools")?)?.into_iter().filter_map(named).collect();
    let chosen = mode(&allowed.text("mode")?)?;
    tools.retain(|tool| names.contains(&tool.name));
    left.push(Omission::dropped("narrow_tools", "tool_choice.allowed_tools"));
    Some(chosen)
}
