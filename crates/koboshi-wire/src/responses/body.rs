//! Writes a form as a request of this dialect.
//!
//! For clients of other dialects nothing is stored (`store: false`): none of them stores without being asked. Tools are not strict unless the
//! form says so, because here they would be by default, and few schemas are fit for it. All system texts are one `instructions`: several
//! system messages break the templates of compatible servers.
//!
//! *Not here*: repairing the conversation. A result without its call, or a call without its result, is written as it is.

use std::borrow::Cow;

use koboshi::models::Facts;
use serde::Serialize;
use serde_json::value::RawValue;

use super::write_settings::{Reasoning, Text, drawn, effort, format, not_carried};
use super::write_turns::{Item, Piece, items};
use crate::chat::model::Flavor;
use crate::form::{
    ASKS_FOR_JSON, Choice, Form, Omission, Output, Tool, ToolInput, Turn, WrittenBody, names_json,
};
use crate::inputs::{self, Input};
use crate::json;

/// The vendor refuses to write fewer tokens than this.
const MIN_OUTPUT: u64 = 16;
/// The end user's id may have this many characters.
const MAX_USER: usize = 64;
/// The name of a tool may have this many characters.
const MAX_NAME: usize = 128;
/// The schema of a tool that has none.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// The form as a body of this dialect, for a model of the vendor itself of which this is known.
#[must_use]
pub fn write(form: &Form<'_>, facts: Facts) -> WrittenBody {
    write_as(form, Flavor::of(true, facts), Some(false))
}

/// The same for a server with this flavor of the chat dialect: models are the same in both. Whether the answer is stored is decided by
/// a client that uses this dialect.
#[must_use]
pub fn write_as(form: &Form<'_>, flavor: Flavor, store: Option<bool>) -> WrittenBody {
    let mut left = Vec::new();
    let (temperature, top_p) = drawn(&form.sampling, flavor, &mut left);
    let tools = tools(form, &mut left);
    let body = Body {
        model: &form.model,
        instructions: instructions(form).filter(|_| !form.turns.is_empty()),
        input: input(form, &mut left),
        tool_choice: choice(form, &mut left),
        parallel_tool_calls: form.parallel.filter(|_| !form.tools.is_empty()),
        tools,
        text: format(&form.output).map(|format| Text { format }),
        reasoning: effort(form, flavor, &mut left).map(|effort| Reasoning { effort }),
        max_output_tokens: form.max_output.map(|max| {
            if max < MIN_OUTPUT {
                left.push(Omission::dropped("raise_max_output", "max_output"));
            }
            max.max(MIN_OUTPUT)
        }),
        temperature,
        top_p,
        user: user(form, &mut left),
        store,
        stream: form.stream,
    };
    not_carried(&form.sampling, &mut left);
    WrittenBody { body: json::bytes(&body), left }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChosenTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// The input. It must mention JSON where an answer in JSON is asked for: that the instructions do is not enough.
fn input<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Vec<Item<'a>> {
    let (mut all, is_named) = if form.turns.is_empty() {
        (alone(form), form.system.iter().any(|text| names_json(text)))
    } else {
        (items(form, left), form.turns.iter().any(Turn::names_json))
    };
    if matches!(form.output, Output::Json) && !is_named {
        left.push(Omission::dropped("name_json", "output"));
        let content = vec![Piece::InputText { text: ASKS_FOR_JSON }];
        all.insert(0, Item::Message { role: "system", content });
    }
    all
}

/// Where there is only a system text, that becomes the input: the vendor refuses a request without one.
fn alone<'a>(form: &'a Form<'_>) -> Vec<Item<'a>> {
    let content: Vec<_> = form.system.iter().map(|text| Piece::InputText { text }).collect();
    if content.is_empty() { Vec::new() } else { vec![Item::Message { role: "system", content }] }
}

fn instructions<'a>(form: &'a Form<'_>) -> Option<Cow<'a, str>> {
    match form.system.as_slice() {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        all => Some(Cow::Owned(all.join("\n\n"))),
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Offer<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        parameters: Cow<'a, RawValue>,
        strict: bool,
    },
    Custom {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
    },
}

fn tools<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Vec<Offer<'a>> {
    let any_object: Option<&'static RawValue> = serde_json::from_str(ANY_OBJECT).ok();
    let each = form.tools.iter().enumerate().filter_map(|(index, tool)| {
        if !is_name(&tool.name) {
            // Another name would come back in the calls, and the client does not know it.
            left.push(Omission::needed("needs_tool_name", format!("tools[{index}].name")));
            return None;
        }
        let Tool { name, description, input, strict } = tool;
        let description = description.as_deref();
        Some(match input {
            ToolInput::FreeText => Offer::Custom { name, description },
            ToolInput::Schema(schema) => {
                let Input { schema: parameters, rule } = inputs::openai(schema.as_deref().or(any_object)?);
                left.extend(rule.map(|rule| Omission::dropped(rule, format!("tools[{index}]"))));
                Offer::Function { name, description, parameters, strict: strict.unwrap_or(false) }
            }
        })
    });
    each.collect()
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(fits)
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChosenTool<'a> {
    Word(&'static str),
    Tool { r#type: &'static str, name: &'a str },
}

fn choice<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Option<ChosenTool<'a>> {
    if form.tools.is_empty() {
        if matches!(form.choice, Choice::Any | Choice::Tool(_)) {
            left.push(Omission::needed("needs_tools", "choice"));
        }
        return None;
    }
    match &form.choice {
        Choice::Unspecified => None,
        Choice::Auto => Some(ChosenTool::Word("auto")),
        Choice::Never => Some(ChosenTool::Word("none")),
        Choice::Any => Some(ChosenTool::Word("required")),
        Choice::Tool(name) => {
            let tool = form.tools.iter().find(|tool| tool.name == *name);
            let is_custom = tool.is_some_and(|tool| matches!(tool.input, ToolInput::FreeText));
            Some(ChosenTool::Tool { r#type: if is_custom { "custom" } else { "function" }, name })
        }
    }
}

fn user<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Option<&'a str> {
    let user = form.user.as_deref()?;
    if user.chars().nth(MAX_USER).is_some() {
        left.push(Omission::dropped("drop_user", "user"));
        return None;
    }
    Some(user)
}
