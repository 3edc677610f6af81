//! The tools of a request, and which of them is to be called.
//!
//! Hosted tools are run by the provider. Those that Codex always offers and works well without are dropped where another vendor answers;
//! a client that offers any other one counts on it, and so does one that forces one.
//!
//! Tools in a group (`namespace`) stand in no other dialect: there each is offered by itself, under a name that is made of both, and
//! [`in_group`] finds both again in its calls.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::form::{Choice, Form, Omission, Tool, ToolInput};
use crate::hash;
use crate::lenient::text_of;
use crate::raw::{Raw, list};

/// Reads the list of tools into the form.
pub(super) fn read_tools<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let mut names = Names::default();
    for (index, raw) in list(raw).unwrap_or_default().into_iter().enumerate() {
        let place = || format!("tools[{index}]");
        let Some(tool) = Raw::of(raw) else {
            form.left.push(Omission::needed("needs_hosted_tool", place()));
            continue;
        };
        let kind = tool.kind();
        let left = match kind.as_deref() {
            Some("function") => match offered(&tool) {
                Some(tool) => {
                    form.tools.push(tool);
                    continue;
                }
                None => Omission::needed("needs_tool_name", place()),
            },
            Some("custom") => match free_text(&tool) {
                Some((tool, has_grammar)) => {
                    form.tools.push(tool);
                    if !has_grammar {
                        continue;
                    }
                    Omission::dropped("describe_grammar", format!("{}.format", place()))
                }
                None => Omission::needed("needs_tool_name", place()),
            },
            Some("namespace") => {
                read_group(&tool, &place(), form, &mut names);
                Omission::dropped("flatten_namespace", place())
            }
            Some("tool_search") => Omission::dropped("drop_tool_search", place()),
            Some(kind) if kind.starts_with("web_search") => Omission::dropped("drop_web_search", place()),
            _ => Omission::needed("needs_hosted_tool", place()),
        };
        form.left.push(left);
    }
}

/// The names that are taken, as far as tools were read. Most requests have no groups, and need none of this.
#[derive(Default)]
struct Names<'a> {
    taken: HashSet<Cow<'a, str>>,
    seen: usize,
}

impl<'a> Names<'a> {
    fn is_new(&mut self, name: &str, tools: &[Tool<'a>]) -> bool {
        self.taken.extend(tools.iter().skip(self.seen).map(|tool| tool.name.clone()));
        self.seen = tools.len();
        !self.taken.contains(name)
    }
}

/// Reads the tools of a group, each under its flat name.
fn read_group<'a>(group: &Raw<'a>, place: &str, form: &mut Form<'a>, names: &mut Names<'a>) {
    let namespace = group.full("name").unwrap_or_default();
    for (index, raw) in group.get("tools").and_then(list).unwrap_or_default().into_iter().enumerate() {
        let tool = Raw::of(raw).and_then(|tool| match tool.kind().as_deref() {
            Some("function") => offered(&tool),
            Some("custom") => free_text(&tool).map(|(tool, _)| tool),
            _ => None,
        });
        let flat = tool.map(|tool| Tool { name: Cow::Owned(flat_name(&namespace, &tool.name)), ..tool });
        match flat.filter(|tool| names.is_new(&tool.name, &form.tools)) {
            Some(tool) => form.tools.push(tool),
            None => form.left.push(Omission::dropped("drop_namespace", format!("{place}.tools[{index}]"))),
        }
    }
}

/// The longest name that every dialect takes.
const MAX_FLAT_NAME: usize = 64;

/// The name of a tool in a group where there are no groups: both names, as far as they fit. The rule is fixed, because the calls of a
/// conversation come back under it.
#[must_use]
pub fn flat_name(namespace: &str, name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let between = if namespace.ends_with("__") || name.starts_with("__") { "" } else { "__" };
    let flat = format!("{namespace}{between}{name}");
    if flat.len() <= MAX_FLAT_NAME && flat.chars().all(fits) {
        return flat;
    }
    let mark = format!("_{:08x}", hash::short(&flat));
    let plain = flat.chars().map(|c| if fits(c) { c } else { '_' });
    plain.take(MAX_FLAT_NAME - mark.len()).chain(mark.chars()).collect()
}

/// The group and the name of the tool with this flat name, if it stands in a group.
pub(super) fn in_group<'a>(raw: &'a RawValue, flat: &str) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    groups(raw).find_map(|(namespace, tools)| {
        let name = tools.iter().filter_map(|tool| tool.full("name"));
        let name = { name }.find(|name| flat_name(&namespace, name) == flat)?;
        Some((namespace, name))
    })
}

/// Every group, and the tools in it.
fn groups(raw: &RawValue) -> impl Iterator<Item = (Cow<'_, str>, Vec<Raw<'_>>)> {
    list(raw).unwrap_or_default().into_iter().filter_map(|raw| {
        let group = Raw::of(raw).filter(|group| group.kind().as_deref() == Some("namespace"))?;
        let tools =
            group.get("tools").and_then(list).unwrap_or_default().into_iter().filter_map(Raw::of).collect();
        Some((group.full("name").unwrap_or_default(), tools))
    })
}

fn offered<'a>(tool: &Raw<'a>) -> Option<Tool<'a>> {
    Some(Tool {
        name: tool.full("name")?,
        description: tool.text("description"),
        input: ToolInput::Schema(schema_of(tool).map(Cow::Borrowed)),
        strict: tool.flag("strict"),
    })
}

/// A tool that takes free text, and whether a grammar was put into its description: other dialects have no place for one, and without it
/// the model would not know what to write.
fn free_text<'a>(tool: &Raw<'a>) -> Option<(Tool<'a>, bool)> {
    let format = tool.object("format");
    let grammar = format.filter(|format| format.kind().as_deref() == Some("grammar")).and_then(|format| {
        let definition = format.full("definition")?;
        let syntax = format.full("syntax").unwrap_or(Cow::Borrowed("lark"));
        Some(format!("The input must follow this {syntax} grammar:\n{definition}"))
    });
    let has_grammar = grammar.is_some();
    let description = match (tool.full("description"), grammar) {
        (Some(known), Some(grammar)) => Some(Cow::Owned(format!("{known}\n\n{grammar}"))),
        (None, Some(grammar)) => Some(Cow::Owned(grammar)),
        (known, None) => known,
    };
    let tool = Tool { name: tool.full("name")?, description, input: ToolInput::FreeText, strict: None };
    Some((tool, has_grammar))
}

/// Names and schemas of the client's own tools; those in groups under their flat names.
pub(super) fn names_and_schemas(raw: &RawValue) -> impl Iterator<Item = (Cow<'_, str>, Option<&RawValue>)> {
    let alone = list(raw).unwrap_or_default().into_iter().filter_map(|raw| name_and_schema(&Raw::of(raw)?));
    let grouped = groups(raw).flat_map(|(namespace, tools)| {
        let known: Vec<_> = tools.iter().filter_map(name_and_schema).collect();
        known.into_iter().map(move |(name, schema)| (Cow::Owned(flat_name(&namespace, &name)), schema))
    });
    alone.chain(grouped)
}

fn name_and_schema<'a>(tool: &Raw<'a>) -> Option<(Cow<'a, str>, Option<&'a RawValue>)> {
    match tool.kind().as_deref() {
        Some("function") => Some((tool.full("name")?, schema_of(tool))),
        Some("custom") => Some((tool.full("name")?, None)),
        _ => None,
    }
}

fn schema_of<'a>(tool: &Raw<'a>) -> Option<&'a RawValue> {
    tool.raw_object("parameters")
}

/// Reads the choice into the form, whose tools are known by then.
pub(super) fn read_choice<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    let choice = match Raw::of(raw) {
        None => match text_of(raw).as_deref() {
            Some("auto") => Ok(Choice::Auto),
            Some("none") => Ok(Choice::Never),
            Some("required") if form.tools.is_empty() => Err("needs_hosted_tool"),
            Some("required") => Ok(Choice::Any),
            _ => Err("needs_tool_choice"),
        },
        Some(choice) => match choice.kind().as_deref() {
            Some("function" | "custom") => match choice.full("name") {
                Some(name) if form.tools.iter().any(|tool| tool.name == name) => Ok(Choice::Tool(name)),
                _ => Err("needs_tool_choice"),
            },
            Some("allowed_tools") => allowed(&choice, form),
            _ => Err("needs_hosted_tool"),
        },
    };
    match choice {
        Ok(choice) => form.choice = choice,
        Err(rule) => form.left.push(Omission::needed(rule, "tool_choice")),
    }
}

/// Where only some of the tools may be called, only those are offered.
fn allowed<'a>(choice: &Raw<'a>, form: &mut Form<'a>) -> Result<Choice<'a>, &'static str> {
    let named = choice.get("tools").and_then(list).unwrap_or_default().into_iter().filter_map(Raw::of);
    let names: std::collections::HashSet<Cow<'a, str>> = named.filter_map(|tool| tool.full("name")).collect();
    form.tools.retain(|tool| names.contains(&tool.name));
    form.left.push(Omission::dropped("narrow_tools", "tool_choice.tools"));
    match choice.text("mode").as_deref() {
        Some("required") if form.tools.is_empty() => Err("needs_hosted_tool"),
        Some("required") => Ok(Choice::Any),
        _ if form.tools.is_empty() => Ok(Choice::Never),
        _ => Ok(Choice::Auto),
    }
}
