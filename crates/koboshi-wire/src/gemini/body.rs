//! Writes a request for Gemini.
//!
//! The rules of the vendor, each of which costs a 400 where it is broken:
//! - Turns alternate, and the first is the user's. Neighbours of one side are joined; a conversation that the model opens gets an opening.
//! - Results come directly after their calls, one for each, in their order. What is missing is filled in, what has no call becomes text.
//! - Calls and results carry no ids: Vertex refuses the field. Their order and names pair them.
//! - From Gemini 3 on the first call of an answer must be signed. One that another vendor made gets the stand-in that Google documents for it.
//! - There is no empty text.
//!
//! What is known of the model decides where generations differ: how thinking is asked for, where images of a result stand, whether JSON goes with tools.

use std::borrow::Cow;

use koboshi::models::Facts;
use serde::Serialize;
use serde_json::value::RawValue;

use super::model::Model;
use super::write_parts::Part;
use super::write_settings::Generation;
use super::write_turns::{Builder, Content};
use crate::form::{Choice, Form, Omission, Output, Tool, ToolInput, WrittenBody, free_text};
use crate::json;

/// The form as the body of `:generateContent` or `:streamGenerateContent`, for a model of which this is known. Model and stream stand in the
/// path.
///
/// ```
/// use koboshi::models::Facts;
/// use koboshi_wire::form::{Form, Part, Turn};
/// use koboshi_wire::gemini::body;
///
/// let turn = Turn { parts: vec![Part::Text("Hi".into())], ..Turn::default() };
/// let form = Form { turns: vec![turn], ..Form::default() };
/// let written = body::write(&form, Facts::default());
/// assert_eq!(&written.body[..], br#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#);
/// assert!(written.left.is_empty());
/// ```
#[must_use]
pub fn write(form: &Form<'_>, facts: Facts) -> WrittenBody {
    let model = Model(facts);
    let mut builder = Builder::new(model);
    let contents = builder.contents(&form.turns);
    let mut left = builder.left;
    let tools = tools(&form.tools, &mut left);
    let system: Vec<Part<'_>> =
        form.system.iter().filter(|text| !text.is_empty()).map(|text| Part::text(&**text)).collect();
    let tool_config = if tools.is_empty() { None } else { ToolConfig::of(&form.choice) };
    if form.parallel == Some(false) && !tools.is_empty() {
        left.push(Omission::dropped("drop_parallel_off", "parallel"));
    }
    if form.user.is_some() {
        left.push(Omission::dropped("drop_user", "user"));
    }
    if !matches!(form.output, Output::Text) && !tools.is_empty() && !model.has_json_with_tools() {
        left.push(Omission::needed("needs_json_with_tools", "output"));
    }
    let generation = Generation::of(form, model, &mut left);
    let body = json::bytes(&Body {
        contents,
        system_instruction: (!system.is_empty()).then_some(System { parts: system }),
        tools: if tools.is_empty() { Vec::new() } else { vec![ToolJson { function_declarations: tools }] },
        tool_config,
        generation_config: Some(generation).filter(Generation::is_set),
    });
    WrittenBody { body, left }
}

fn tools<'a>(tools: &'a [Tool<'_>], left: &mut Vec<Omission>) -> Vec<FunctionJson<'a>> {
    let declared = tools.iter().enumerate().map(|(index, tool)| {
        if !is_name(&tool.name) {
            left.push(Omission::needed("needs_tool_name", format!("tools[{index}].name")));
        }
        if tool.strict == Some(true) {
            left.push(Omission::dropped("drop_strict", format!("tools[{index}].strict")));
        }
        let schema = match &tool.input {
            ToolInput::Schema(schema) => schema.as_deref(),
            ToolInput::FreeText => serde_json::from_str(free_text::SCHEMA).ok(),
        };
        FunctionJson {
            name: &tool.name,
            description: tool.description.as_deref(),
            parameters_json_schema: schema,
        }
    });
    declared.collect()
}

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// Whether Gemini takes it as the name of a tool.
fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

/// A name of the conversation as Gemini takes it. By one rule for calls and results, so that they still find each other.
pub(super) fn fitted(name: &str) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let fits = |c: char| if c.is_ascii_alphanumeric() || "_.:-".contains(c) { c } else { '_' };
    let start = if name.starts_with(|first: char| first.is_ascii_alphabetic()) { "" } else { "_" };
    Cow::Owned(start.chars().chain(name.chars().map(fits)).take(MAX_NAME).collect())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<System<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Generation<'a>>,
}

#[derive(Serialize)]
struct System<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolJson<'a> {
    function_declarations: Vec<FunctionJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: CallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

impl<'a> ToolConfig<'a> {
    fn of(choice: &'a Choice<'_>) -> Option<Self> {
        let (mode, allowed) = match choice {
            Choice::Unspecified => return None,
            Choice::Auto => ("AUTO", None),
            Choice::Never => ("NONE", None),
            Choice::Any => ("ANY", None),
            Choice::Tool(name) => ("ANY", Some([name.as_ref()])),
        };
        Some(Self { function_calling_config: CallingConfig { mode, allowed_function_names: allowed } })
    }
}
