//! Which tools are called, and with what.
//!
//! As a model would: a user's question with tools on offer is answered by a call, a tool's result by words. A prompt can
//! script an agent instead: each line `koboshi-sim: call NAME {json}` of the user's words is one call, one a turn.

use serde_json::{Value, json};

use crate::chance::Print;
use crate::fall::Form;
use crate::request::{Choice, Function, Message, Request};
use crate::schema::example;
use crate::spoil;

/// A line of the prompt that scripts a call.
const SCRIPT: &str = "koboshi-sim: call ";
/// No answer has more calls.
const MOST_CALLS: usize = 3;

/// A call that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// The calls of this answer; none if it is to be words. `print` is that of the conversation.
pub(crate) fn calls(request: &Request<'_>, print: Print, broken: Option<Form>, makes_up: bool) -> Vec<Call> {
    let script = Script::of(request.conversation());
    let asked = is_asked(request);
    let chosen: Vec<(&str, Option<&str>)> = match (request.choice(), script.next) {
        (Choice::None, _) => Vec::new(),
        (Choice::Named(name), next) => {
            vec![(name, next.filter(|(next, _)| *next == name).map(|(_, arguments)| arguments))]
        }
        (_, Some((name, arguments))) => vec![(name, Some(arguments))],
        (Choice::Required, None) => fitting(request),
        (Choice::Auto, None) if asked && makes_up && !script.any => fitting(request),
        (Choice::Auto, None) => Vec::new(),
    };
    let made = (0..).zip(chosen).map(|(nth, (name, arguments)): (u64, _)| {
        let print = print.add(name).add(&nth.to_string());
        let arguments = match arguments {
            Some(given) => given.to_owned(),
            None => arguments_of(request, name, print, broken),
        };
        Call { id: format!("call_sim{:016x}", print.value()), name: name.to_owned(), arguments }
    });
    made.collect()
}

/// A user has asked, and waits for words or calls.
fn is_asked(request: &Request<'_>) -> bool {
    request.messages.last().is_some_and(|last| last.role == "user")
}

/// Whether there would be a call here if any were made up: then the words say why there is none.
pub(crate) fn holds_back(request: &Request<'_>, makes_up: bool) -> bool {
    let offered = request.tools().next().is_some();
    let free = matches!(request.choice(), Choice::Auto) && !Script::of(request.conversation()).any;
    !makes_up && offered && free && is_asked(request)
}

fn arguments_of(request: &Request<'_>, name: &str, print: Print, broken: Option<Form>) -> String {
    let schema = request.tools().find(|tool| tool.name == name).map_or(Value::Null, Function::schema);
    // Arguments are an object, whatever a schema leaves open.
    let value = Some(example(&schema, print.seed())).filter(Value::is_object).unwrap_or(json!({}));
    broken.map_or_else(|| value.to_string(), |form| spoil::arguments(&value, form))
}

/// The tool that the user names, else the first; several if the user says so.
fn fitting<'r>(request: &'r Request<'_>) -> Vec<(&'r str, Option<&'r str>)> {
    let prompt = request.last_user();
    let several =
        request.parallel() && (prompt.to_lowercase().contains("parallel") || prompt.contains("並列"));
    let mut chosen: Vec<&Function<'_>> = if several {
        request.tools().take(MOST_CALLS).collect()
    } else {
        let named = request.tools().find(|tool| !tool.name.is_empty() && prompt.contains(&*tool.name));
        named.or_else(|| request.tools().next()).into_iter().collect()
    };
    if several && chosen.len() == 1 {
        // One tool alone is called twice.
        chosen.extend(request.tools().next());
    }
    chosen.into_iter().map(|tool| (&*tool.name, None)).collect()
}

/// What the conversation scripts.
struct Script<'r> {
    /// It scripts calls: then no others are made, so that an agent does nothing that nobody wrote.
    any: bool,
    /// The next one: its name, and its arguments as they stand.
    next: Option<(&'r str, &'r str)>,
}

impl<'r> Script<'r> {
    /// The calls of the last user message that has any; those made since then are done.
    fn of(messages: &'r [Message<'_>]) -> Self {
        let scripts =
            |message: &Message<'_>| message.role == "user" && lines(&message.content.0).next().is_some();
        let from = messages.iter().rposition(scripts).and_then(|at| messages.get(at..)?.split_first());
        let Some((message, since)) = from else { return Self { any: false, next: None } };
        let done = since.iter().filter(|message| message.tool_calls.is_some()).count();
        Self { any: true, next: lines(&message.content.0).nth(done) }
    }
}

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let call = line.trim().strip_prefix(SCRIPT)?.trim();
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        (!name.is_empty()).then_some((name, arguments.trim()))
    })
}

/// What the results of tools are answered with: each of the last ones is named.
pub(crate) fn mention(request: &Request<'_>) -> String {
    let messages = request.conversation();
    let results = messages.iter().rev().take_while(|message| message.role == "tool");
    let mut said: Vec<String> = results.take(MOST_CALLS).map(|result| sentence(messages, result)).collect();
    said.reverse();
    said.join(" ")
}

fn sentence(messages: &[Message<'_>], result: &Message<'_>) -> String {
    let calls = messages.iter().rev().flat_map(|message| message.tool_calls.iter().flatten());
    let call = calls.filter(|call| call.id.is_some()).find(|call| call.id == result.tool_call_id);
    let name = call.and_then(|call| call.function.as_ref()).map_or("The tool", |function| &*function.name);
    let plain: String =
        result.content.0.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{name} answered: {}.", plain.trim())
}
