//! Writes a form as a request of this dialect.
//!
//! What the dialect demands and the form lacks is filled in, what the vendor would refuse is fitted or left out, each by a rule with a
//! name. Schemas and arguments stay the text they were. The conversation itself is put in order by `turns`.

use std::borrow::Cow;

use koboshi::models::Facts;
use serde::Serialize;
use serde_json::value::RawValue;

use super::ids;
use super::model::Model;
use super::write_parts::{Block, Message, Role};
use super::write_schema;
use super::write_settings::{Thinking, Thought};
use super::write_turns;
use crate::form::{
    self, ASKS_FOR_JSON, Choice, Form, Omission, Output, Sampling, ToolInput, WrittenBody, free_text,
};
use crate::{inputs, json};

/// The vendor wants a limit of the answer with every request; this one is used where the client stated none and the model's own is not known.
pub const DEFAULT_MAX_TOKENS: u64 = 8192;
/// The most that is asked for where the client stated no limit: a model's whole limit would not fit into the window beside a long conversation.
const MAX_DEFAULT_TOKENS: u64 = 32_000;

/// The vendor takes ids of users up to this many letters.
const MAX_USER: usize = 256;

/// The form as a request, for a model of which this is known.
#[must_use]
pub fn write(form: &Form<'_>, facts: Facts) -> WrittenBody {
    write_within(form, facts, None)
}

/// The same for a model that has room for this many tokens beside this conversation, where that is known.
#[must_use]
pub fn write_within(form: &Form<'_>, facts: Facts, room: Option<u64>) -> WrittenBody {
    let mut left = Vec::new();
    let body = Body::of(form, facts, room, &mut left);
    WrittenBody { body: json::bytes(&body), left }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[derive(Serialize, Default)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

impl OutputConfig<'_> {
    const fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: Cow<'a, RawValue>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
struct ToolChoice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_parallel_tool_use: Option<bool>,
}

impl<'a> Body<'a> {
    fn of(form: &'a Form<'_>, facts: Facts, room: Option<u64>, left: &mut Vec<Omission>) -> Self {
        let (model, output_limit) = (Model(facts), facts.max_output_tokens);
        let mut messages = write_turns::messages(&form.turns, left);
        let mut system: Vec<Block<'a>> = Vec::new();
        for text in form.system.iter().filter(|text| !text.trim().is_empty()) {
            system.push(Block::Text { text: text.as_ref().into() });
        }
        if messages.is_empty() {
            // A conversation has at least one message; a system prompt without any becomes it.
            messages.extend(system.pop().map(|block| Message { role: Role::User, content: vec![block] }));
            left.push(Omission::dropped("system_as_user", "system"));
        }
        let (format, asked) = output(form, model, left);
        system.extend(asked.map(|text| Block::Text { text: Cow::Owned(text) }));
        let mut tools: Vec<Tool<'a>> =
            form.tools.iter().enumerate().filter_map(|(at, offer)| tool(at, offer, model, left)).collect();
        let mut tool_choice = if tools.is_empty() { None } else { choice(form) };
        if form.tools.is_empty() {
            tools = past_tools(form);
            if !tools.is_empty() {
                left.push(Omission::dropped("declare_past_tools", "tools"));
                tool_choice =
                    Some(ToolChoice { r#type: "none", name: None, disable_parallel_tool_use: None });
            }
        }
        let default_limit = output_limit.map_or(DEFAULT_MAX_TOKENS, |max| max.min(MAX_DEFAULT_TOKENS));
        let default_limit = default_limit.min(room.map_or(u64::MAX, |room| room.max(DEFAULT_MAX_TOKENS)));
        let thought = Thought::of(form, model, &messages, (default_limit, output_limit), left);
        let mut body = Body {
            model: &form.model,
            max_tokens: thought.max_tokens.unwrap_or(default_limit),
            thinking: thought.thinking,
            output_config: OutputConfig { effort: thought.effort, format },
            temperature: None,
            top_p: None,
            top_k: None,
            stop_sequences: Vec::new(),
            tools,
            tool_choice,
            system,
            messages,
            metadata: user(form, left),
            stream: form.stream,
        };
        body.sample(&form.sampling, model, left);
        body
    }

    /// The sampling parameters that the model takes.
    fn sample(&mut self, sampling: &'a Sampling<'_>, model: Model, left: &mut Vec<Omission>) {
        let thinks = matches!(self.thinking, Some(Thinking::Enabled { .. } | Thinking::Adaptive));
        let mut keep = |is_set: bool, rule: &'static str, at: &'static str, fits: bool| {
            if is_set && !fits {
                left.push(Omission::dropped(rule, at));
            }
            is_set && fits
        };
        let (temperature, top_p) = (sampling.temperature, sampling.top_p);
        for (is_set, at) in [
            (temperature.is_some(), "temperature"),
            (top_p.is_some(), "top_p"),
            (sampling.top_k.is_some(), "top_k"),
        ] {
            keep(is_set, "drop_sampling", at, model.samples());
        }
        if model.samples() {
            if keep(temperature.is_some(), "drop_temperature_with_thinking", "temperature", !thinks) {
                self.temperature = temperature.map(|value| value.clamp(0.0, 1.0));
                keep(true, "clamp_temperature", "temperature", self.temperature == temperature);
            }
            let near_one = !thinks || top_p.is_some_and(|value| value >= 0.95);
            if keep(top_p.is_some(), "drop_top_p_with_thinking", "top_p", near_one) {
                let fits = self.temperature.is_none() || model.samples_by_both();
                self.top_p = top_p.filter(|_| keep(true, "drop_top_p_beside_temperature", "top_p", fits));
            }
            let top_k = sampling.top_k;
            self.top_k = top_k.filter(|_| keep(true, "drop_top_k_with_thinking", "top_k", !thinks));
        }
        keep(sampling.frequency_penalty.is_some(), "drop_frequency_penalty", "frequency_penalty", false);
        keep(sampling.presence_penalty.is_some(), "drop_presence_penalty", "presence_penalty", false);
        keep(sampling.seed.is_some(), "drop_seed", "seed", false);
        for text in &sampling.stop {
            if keep(true, "drop_blank_stop", "stop", !text.trim().is_empty()) {
                self.stop_sequences.push(text);
            }
        }
        if sampling.answers.is_some_and(|answers| answers > 1) {
            left.push(Omission::needed("needs_answers", "n"));
        }
    }
}

/// The form of the answer: as a schema that the model is held to, or in words.
fn output<'a>(
    form: &'a Form<'_>,
    model: Model,
    left: &mut Vec<Omission>,
) -> (Option<Format<'a>>, Option<String>) {
    match &form.output {
        Output::Text => (None, None),
        Output::Json => {
            left.push(Omission::dropped("json_by_prompt", "output"));
            (None, Some(ASKS_FOR_JSON.to_owned()))
        }
        Output::Schema { schema, .. } if model.follows_schemas() => {
            let fitted = write_schema::answer(schema);
            if matches!(fitted, Cow::Owned(_)) {
                left.push(Omission::dropped("fit_schema", "output"));
            }
            (Some(Format { r#type: "json_schema", schema: fitted }), None)
        }
        Output::Schema { schema, .. } => {
            left.push(Omission::dropped("schema_by_prompt", "output"));
            let asked = "Answer with one JSON value that follows this JSON schema, and nothing else:";
            (None, Some(format!("{asked}\n{}", schema.get())))
        }
    }
}

fn tool<'a>(at: usize, tool: &'a form::Tool<'_>, model: Model, left: &mut Vec<Omission>) -> Option<Tool<'a>> {
    if !ids::is_name(&tool.name) {
        // Its calls would come back under a name that the client does not know.
        left.push(Omission::needed("needs_tool_name", format!("tools[{at}].name")));
        return None;
    }
    let input_schema = match &tool.input {
        ToolInput::FreeText => RawValue::from_string(free_text::SCHEMA.to_owned()).ok().map(Cow::Owned),
        ToolInput::Schema(schema) => {
            let fitted = inputs::input(schema.as_deref());
            // A tool without a schema loses nothing by one that says so.
            let rule = fitted.rule.filter(|_| schema.is_some());
            left.extend(rule.map(|rule| Omission::dropped(rule, format!("tools[{at}]"))));
            Some(fitted.schema)
        }
    };
    let strict = tool.strict.filter(|_| model.follows_schemas());
    if strict != tool.strict && tool.strict == Some(true) {
        left.push(Omission::dropped("drop_strict", format!("tools[{at}].strict")));
    }
    let description = tool.description.as_deref();
    Some(Tool { name: &tool.name, description, input_schema: input_schema?, strict })
}

/// The tools that were called before, where none is offered now: a history with calls is refused without them.
fn past_tools<'a>(form: &'a Form<'_>) -> Vec<Tool<'a>> {
    let mut names: Vec<&'a str> = Vec::new();
    for part in form.turns.iter().flat_map(|turn| &turn.parts) {
        if let form::Part::Call(call) = part
            && ids::is_name(&call.name)
        {
            names.push(&call.name);
        }
    }
    names.sort_unstable();
    names.dedup();
    let any = |name| Tool { name, description: None, input_schema: inputs::input(None).schema, strict: None };
    names.into_iter().map(any).collect()
}

fn choice<'a>(form: &'a Form<'_>) -> Option<ToolChoice<'a>> {
    let disable_parallel_tool_use = form.parallel.map(|parallel| !parallel);
    let of = |r#type| Some(ToolChoice { r#type, name: None, disable_parallel_tool_use });
    match &form.choice {
        Choice::Unspecified if form.parallel == Some(false) => of("auto"),
        Choice::Unspecified => None,
        Choice::Auto => of("auto"),
        Choice::Any => of("any"),
        Choice::Never => Some(ToolChoice { r#type: "none", name: None, disable_parallel_tool_use: None }),
        Choice::Tool(name) => {
            Some(ToolChoice { r#type: "tool", name: Some(name), disable_parallel_tool_use })
        }
    }
}

fn user<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Option<Metadata<'a>> {
    let user_id = form.user.as_deref()?;
    if user_id.chars().count() > MAX_USER {
        left.push(Omission::dropped("drop_user", "user"));
        return None;
    }
    Some(Metadata { user_id })
}
