//! A form as the body of a chat request.
//!
//! There are two kinds of servers. OpenAI itself takes everything the dialect has, but its reasoning models refuse what others
//! want (`max_tokens`, temperature). The many compatible servers take the common part: free-text tools go there as tools with one field, and
//! the effort is only sent to models that are known to think.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::model::Flavor;
use super::write_settings::SamplingJson;
use super::write_turns::{Message, messages};
use crate::form::{Choice, Form, Omission, Output, Tool, ToolInput, WrittenBody, free_text};
use crate::hash;
use crate::inputs::{self, Input};
use crate::json;

/// Writes a form.
///
/// ```
/// use koboshi::models::Facts;
/// use koboshi_wire::chat::{body, model::Flavor};
/// use koboshi_wire::form::{Form, Part, Role, Turn};
///
/// let turn = Turn { role: Role::User, parts: vec![Part::Text("Hi".into())] };
/// let form = Form { model: "gpt-4o".into(), turns: vec![turn], max_output: Some(9), ..Form::default() };
/// let written = body::write(&form, Flavor::of(true, Facts::default()));
/// assert_eq!(written.body, r#"{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}],"max_tokens":9}"#);
/// ```
#[must_use]
pub fn write(form: &Form<'_>, flavor: Flavor) -> WrittenBody {
    let mut notes = Notes::default();
    let tools: Vec<Offer<'_>> =
        form.tools.iter().enumerate().map(|(index, tool)| offer(tool, index, flavor, &mut notes)).collect();
    let has_tools = !tools.is_empty();
    let limit = |is_new: bool| form.max_output.filter(|_| is_new == (flavor.openai && flavor.reasoning));
    let body = Body {
        model: &form.model,
        messages: messages(form, flavor, &mut notes),
        stream: form.stream.then_some(true),
        stream_options: (form.stream && !flavor.mistral).then_some(StreamOptions { include_usage: true }),
        tools,
        tool_choice: choice(form, flavor, &mut notes),
        parallel_tool_calls: parallel(form, flavor, has_tools, &mut notes),
        response_format: format(&form.output),
        max_tokens: limit(false),
        max_completion_tokens: limit(true),
        drawn: SamplingJson::of(form, flavor, &mut notes),
        user: user(form, flavor, &mut notes),
    };
    WrittenBody { body: json::bytes(&body), left: notes.all }
}

/// What could not be carried over: each rule once, with its first place, because a long conversation would repeat it
/// for every turn.
#[derive(Debug, Default)]
pub(super) struct Notes {
    all: Vec<Omission>,
}

impl Notes {
    pub(super) fn add(&mut self, left: Omission) {
        if self.all.iter().all(|known| known.rule != left.rule) {
            self.all.push(left);
        }
    }
}

#[derive(Serialize)]
struct Body<'f> {
    model: &'f str,
    messages: Vec<Message<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offer<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceJson<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(flatten)]
    drawn: SamplingJson<'f>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'f str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Offer<'f> {
    Function { function: FunctionJson<'f> },
    Custom { custom: FunctionJson<'f> },
}

/// A word, or the name of a tool in the form in which it is offered.
#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoiceJson<'f> {
    Mode(&'static str),
    Tool(Offer<'f>),
}

#[derive(Serialize)]
struct FunctionJson<'f> {
    name: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'f, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// The longest name of a tool that OpenAI takes.
const MAX_NAME: usize = 64;

fn offer<'f>(tool: &'f Tool<'_>, index: usize, flavor: Flavor, notes: &mut Notes) -> Offer<'f> {
    let fits = tool.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if flavor.openai && !(fits && tool.name.len() <= MAX_NAME) {
        // Another name would come back in the calls.
        notes.add(Omission::needed("needs_tool_name", format!("tools[{index}].name")));
    }
    let mut offered = FunctionJson {
        name: &tool.name,
        description: tool.description.as_deref(),
        parameters: None,
        strict: tool.strict,
    };
    match &tool.input {
        ToolInput::Schema(schema) => {
            offered.parameters = schema.as_deref().map(|schema| parameters(schema, index, flavor, notes));
            Offer::Function { function: offered }
        }
        ToolInput::FreeText if flavor.openai => {
            Offer::Custom { custom: FunctionJson { strict: None, ..offered } }
        }
        ToolInput::FreeText => {
            offered.parameters = RawValue::from_string(free_text::SCHEMA.to_owned()).ok().map(Cow::Owned);
            Offer::Function { function: offered }
        }
    }
}

/// The schema of a tool. What others than OpenAI take is not known, so theirs is only made clearer.
fn parameters<'f>(
    schema: &'f RawValue,
    index: usize,
    flavor: Flavor,
    notes: &mut Notes,
) -> Cow<'f, RawValue> {
    let plain = Input::plain(schema);
    let Input { schema, rule } = if flavor.openai { inputs::openai(schema) } else { plain.with_properties() };
    if let Some(rule) = rule {
        notes.add(Omission::dropped(rule, format!("tools[{index}]")));
    }
    schema
}

/// Without tools the fields about tools are left out: servers refuse them.
fn choice<'f>(form: &'f Form<'_>, flavor: Flavor, notes: &mut Notes) -> Option<ToolChoiceJson<'f>> {
    if form.tools.is_empty() {
        if matches!(form.choice, Choice::Any | Choice::Tool(_)) {
            notes.add(Omission::dropped("drop_tool_choice", "choice"));
        }
        return None;
    }
    match &form.choice {
        Choice::Unspecified => None,
        Choice::Auto => Some(ToolChoiceJson::Mode("auto")),
        Choice::Never => Some(ToolChoiceJson::Mode("none")),
        Choice::Any => Some(ToolChoiceJson::Mode("required")),
        Choice::Tool(name) => {
            let is_free = |tool: &Tool<'_>| tool.name == *name && matches!(tool.input, ToolInput::FreeText);
            let named = FunctionJson { name, description: None, parameters: None, strict: None };
            let is_custom = flavor.openai && form.tools.iter().any(is_free);
            Some(ToolChoiceJson::Tool(if is_custom {
                Offer::Custom { custom: named }
            } else {
                Offer::Function { function: named }
            }))
        }
    }
}

/// OpenAI's first reasoning models call one tool at a time and refuse the parameter.
fn parallel(form: &Form<'_>, flavor: Flavor, has_tools: bool, notes: &mut Notes) -> Option<bool> {
    let parallel = form.parallel.filter(|_| has_tools)?;
    if flavor.openai && flavor.facts.parallel_tool_calls == Some(false) {
        notes.add(Omission::dropped("drop_parallel", "parallel"));
        return None;
    }
    Some(parallel)
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'f> {
    JsonObject,
    JsonSchema { json_schema: Schema<'f> },
}

#[derive(Serialize)]
struct Schema<'f> {
    name: &'f str,
    schema: &'f RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

fn format<'f>(output: &'f Output<'_>) -> Option<Format<'f>> {
    match output {
        Output::Text => None,
        Output::Json => Some(Format::JsonObject),
        Output::Schema { name, schema, strict } => {
            let name = name.as_deref().unwrap_or("answer");
            Some(Format::JsonSchema { json_schema: Schema { name, schema, strict: *strict } })
        }
    }
}

/// The end user's id may have this many characters.
const MAX_USER: usize = 64;

fn user<'f>(form: &'f Form<'_>, flavor: Flavor, notes: &mut Notes) -> Option<&'f str> {
    let user = form.user.as_deref()?;
    if flavor.mistral || user.chars().nth(MAX_USER).is_some() {
        notes.add(Omission::dropped("drop_user", "user"));
        return None;
    }
    Some(user)
}

/// The longest id of a call that OpenAI takes.
const MAX_ID: usize = 40;

/// The length of all ids of calls that Mistral takes.
const MISTRALS_ID: usize = 9;

/// An id of a call that the server takes: the same one for the same id.
pub(super) fn fit_id(id: &str, flavor: Flavor) -> Cow<'_, str> {
    if flavor.mistral {
        let fits = id.len() == MISTRALS_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return if fits { Cow::Borrowed(id) } else { Cow::Owned(mistrals_id(id)) };
    }
    hash::shortened(id, MAX_ID)
}

/// Letters and digits only.
fn mistrals_id(id: &str) -> String {
    let mut rest = hash::long(id);
    let letters = (0..MISTRALS_ID).filter_map(|_| {
        let digit = u32::try_from(rest % 36).ok()?;
        rest /= 36;
        char::from_digit(digit, 36)
    });
    letters.collect()
}
