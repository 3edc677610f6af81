//! Which tools are called, and with what.
//!
//! As a model would: a user's question with tools on offer is answered by a call, a tool's result by text. A prompt can
//! script an agent instead ([`Script`]).

use koboshi::guard::NOTE_MARK;
use koboshi_wire::form::{Tool, ToolInput};
use serde_json::{Value, json};

use crate::chance::Fingerprint;
use crate::fall::Form;
use crate::message::{Message, Role};
use crate::request::{Choice, Request, parsed};
use crate::schema::example;
use crate::script::{Arguments, Script, ScriptedCall};
use crate::spoil;

/// No answer has more calls.
const MAX_CALLS: usize = 3;

/// A call that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The tool takes free text: the arguments are that text.
    pub(crate) free_text: bool,
}

/// The calls of this answer; none if it is to be text. `print` is that of the conversation.
pub(crate) fn calls(
    request: &Request<'_>,
    print: Fingerprint,
    broken: Option<Form>,
    makes_up: bool,
) -> Vec<Call> {
    let script = Script::of(request.conversation());
    let alone =
        |name: &str, made: Option<ScriptedCall>| vec![(name.to_owned(), made.map(|made| made.arguments))];
    let free = |script: &Script<'_>| !script.is_there() && request.is_asked() && makes_up;
    let chosen = match (request.choice(), script.next(request)) {
        (Choice::None, _) => Vec::new(),
        (Choice::Named(name), _) => alone(name, script.demanded(request, name)),
        (_, Some(made)) => alone(&made.name.clone(), Some(made)),
        (Choice::Required, None) => fitting(request),
        (Choice::Auto, None) if free(&script) => fitting(request),
        (Choice::Auto, None) => Vec::new(),
    };
    let made = (0..).zip(chosen).map(|(nth, (name, arguments)): (u64, _)| {
        let print = print.add(&name).add(&nth.to_string());
        let tool = request.tool(&name);
        let arguments = match arguments {
            Some(Arguments::Text(given)) => given,
            Some(Arguments::Object(value)) => written(&value, broken),
            None => made_up(tool, print, broken),
        };
        let free_text = tool.is_some_and(|tool| matches!(tool.input, ToolInput::FreeText));
        Call { id: format!("call_sim{:016x}", print.value()), name, arguments, free_text }
    });
    made.collect()
}

/// The last calls of the conversation once more, as a model in a loop makes them. None if there are none yet, if no tool may be
/// called, or if they were refused and the model is not stubborn.
pub(crate) fn repeated(request: &Request<'_>, print: Fingerprint, stubborn: bool) -> Option<Vec<Call>> {
    let message = request.conversation();
    let last = message.iter().rev().find(|message| !message.calls.is_empty())?;
    let mut results = message.iter().rev().take_while(|message| message.role == Role::Tool);
    let is_refused = results.any(|result| result.text().starts_with(NOTE_MARK));
    if matches!(request.choice(), Choice::None) || (is_refused && !stubborn) {
        return None;
    }
    let made = (0_usize..).zip(&last.calls).map(|(nth, call)| {
        let print = print.add(&call.name).add(&nth.to_string());
        Call {
            id: format!("call_sim{:016x}", print.value()),
            name: call.name.to_string(),
            arguments: call.arguments.to_string(),
            free_text: call.free_text,
        }
    });
    Some(made.collect())
}

/// Whether there would be a call here if any were made up: then the text says why there is none.
pub(crate) fn holds_back(request: &Request<'_>, makes_up: bool) -> bool {
    let free = matches!(request.choice(), Choice::Auto) && !Script::of(request.conversation()).is_there();
    !makes_up && free && request.is_asked()
}

fn made_up(tool: Option<&Tool<'_>>, print: Fingerprint, broken: Option<Form>) -> String {
    match tool.map(|tool| &tool.input) {
        Some(ToolInput::FreeText) => {
            example(&json!({"type": "string"}), print.seed()).as_str().unwrap_or_default().to_owned()
        }
        Some(ToolInput::Schema(schema)) => {
            let value = example(&parsed(schema.as_deref()), print.seed());
            // Arguments are an object, whatever a schema leaves open.
            written(&Some(value).filter(Value::is_object).unwrap_or(json!({})), broken)
        }
        None => written(&json!({}), broken),
    }
}

fn written(value: &Value, broken: Option<Form>) -> String {
    broken.map_or_else(|| value.to_string(), |form| spoil::arguments(value, form))
}

/// The tool that the user names, else the first; several if the user asks for several.
fn fitting(request: &Request<'_>) -> Vec<(String, Option<Arguments>)> {
    let prompt = request.last_user();
    let several =
        request.parallel() && (prompt.to_lowercase().contains("parallel") || prompt.contains("並列"));
    let tools = request.tools();
    let mut chosen: Vec<&Tool<'_>> = if several {
        tools.iter().take(MAX_CALLS).collect()
    } else {
        let named = tools.iter().find(|tool| prompt.contains(&*tool.name));
        named.or_else(|| tools.first()).into_iter().collect()
    };
    if several && chosen.len() == 1 {
        // One tool alone is called twice.
        chosen.extend(tools.first());
    }
    chosen.into_iter().map(|tool| (tool.name.to_string(), None)).collect()
}

/// The text that answers the results of tools: it names each of the last ones.
pub(crate) fn mention(request: &Request<'_>) -> String {
    let results = request.conversation().iter().rev().take_while(|message| message.role == Role::Tool);
    let mut message: Vec<String> = results.take(MAX_CALLS).map(sentence).collect();
    message.reverse();
    message.join(" ")
}

fn sentence(result: &Message<'_>) -> String {
    let name = result.name.as_deref().unwrap_or("The tool");
    let plain: String =
        result.text().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{name} answered: {}.", plain.trim())
}
