//! What a prompt scripts: calls to make, one a turn.
//!
//! A line `koboshi-sim: call NAME {json}` is a call as it stands. A line `koboshi: write FILE with TEXT, then run COMMAND` says what is to happen,
//! and the tool is found among those on offer, by its name and its schema: so one prompt makes any agent do the same. Calls that were made
//! since the prompt are done.

use koboshi_wire::form::{Tool, ToolInput};
use serde_json::{Map, Value, json};

use crate::chance::Fingerprint;
use crate::message::{Message, Role};
use crate::request::{Request, parsed};
use crate::schema::example;

/// A line that scripts a call.
const CALL: &str = "koboshi-sim: call ";
/// What a line begins with that says what is to happen.
const MARKS: [&str; 2] = ["koboshi:", "koboshi-sim:"];
/// What stands between two steps of a line.
const THEN: &str = ", then ";

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'r> {
    /// This call, with the arguments as they stand.
    Call { name: &'r str, arguments: &'r str },
    /// A file is to be written.
    Write { file: &'r str, text: &'r str },
    /// A command is to be run.
    Run { command: &'r str },
}

/// What the conversation scripts.
#[derive(Debug, Default)]
pub(crate) struct Script<'r> {
    steps: Vec<Step<'r>>,
    /// How many of them are done.
    done: usize,
}

/// A call that a step makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptedCall {
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
}

/// What a call is made with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    /// This text, as it stands.
    Text(String),
    /// This object.
    Object(Value),
}

impl<'r> Script<'r> {
    /// The steps of the user's last text that has any.
    pub(crate) fn of(message: &'r [Message<'_>]) -> Self {
        let scripts = |message: &Message<'_>| message.role == Role::User && steps(message).next().is_some();
        let from = message.iter().rposition(scripts).and_then(|at| message.get(at..)?.split_first());
        let Some((prompt, since)) = from else { return Self::default() };
        let done = since.iter().filter(|message| !message.calls.is_empty()).count();
        Self { steps: steps(prompt).collect(), done }
    }

    /// It scripts calls: then no others are made, so that an agent does nothing but what the prompt says.
    pub(crate) fn is_there(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The call that is next.
    pub(crate) fn next(&self, request: &Request<'_>) -> Option<ScriptedCall> {
        self.steps.get(self.done)?.made(request)
    }

    /// The call of this tool that the caller demands: the last one once more, if it was such a one, because then it went wrong; else the next.
    pub(crate) fn demanded(&self, request: &Request<'_>, name: &str) -> Option<ScriptedCall> {
        let again = self.done.checked_sub(1).and_then(|at| self.steps.get(at));
        let steps = again.into_iter().chain(self.steps.get(self.done));
        steps.filter_map(|step| step.made(request)).find(|made| made.name == name)
    }
}

/// The steps in a user's texts. They are read one by one: agents put notes of their own before the prompt.
fn steps<'r>(message: &'r Message<'_>) -> impl Iterator<Item = Step<'r>> {
    message.texts.iter().flat_map(|text| text.lines()).flat_map(line)
}

fn line(line: &str) -> Vec<Step<'_>> {
    let line = line.trim();
    if let Some(call) = line.strip_prefix(CALL) {
        return call_of(call).into_iter().collect();
    }
    let Some(rest) = MARKS.iter().find_map(|mark| line.strip_prefix(mark)) else { return Vec::new() };
    let steps: Option<Vec<Step<'_>>> = pieces(rest.trim()).into_iter().map(step).collect();
    // A line that is not understood to its end scripts nothing.
    steps.unwrap_or_default()
}

/// The steps of a line, unread. A text may have the same words in it, but not with a step behind them.
fn pieces(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut from, mut search) = (0, 0);
    while let Some(found) = line.get(search..).and_then(|rest| rest.find(THEN)) {
        let (at, behind) = (search + found, search + found + THEN.len());
        let next = line.get(behind..).unwrap_or_default();
        if ["write ", "run ", "call "].iter().any(|verb| next.starts_with(verb)) {
            all.extend(line.get(from..at));
            from = behind;
        }
        search = behind;
    }
    all.extend(line.get(from..));
    all
}

fn step(text: &str) -> Option<Step<'_>> {
    let text = text.trim();
    if let Some(call) = text.strip_prefix("call ") {
        return call_of(call);
    }
    if let Some(command) = text.strip_prefix("run ") {
        return Some(unquoted(command))
            .filter(|command| !command.is_empty())
            .map(|command| Step::Run { command });
    }
    let (file, text) = text.strip_prefix("write ")?.split_once(" with ")?;
    let file = unquoted(file);
    (!file.is_empty()).then_some(Step::Write { file, text: unquoted(text) })
}

fn call_of(call: &str) -> Option<Step<'_>> {
    let call = call.trim();
    let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
    (!name.is_empty()).then_some(Step::Call { name, arguments: arguments.trim() })
}

/// Without the quotes around it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside =
        |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).filter(|inside| !inside.contains(quote));
    ['`', '"', '\''].into_iter().find_map(inside).unwrap_or(text)
}

/// Names under which agents offer these tools, in small letters and without what stands between words.
const WRITES: [&str; 6] = ["write", "writefile", "createfile", "writetofile", "filewrite", "savefile"];
const RUNS: [&str; 12] = [
    "bash", "runshellcommand", "execcommand", "shellcommand", "shell", "runcommand", "executecommand",
    "exec", "terminal", "runterminalcmd", "run", "localshell",
];
/// Names of the fields.
const FILES: [&str; 7] = ["file_path", "filePath", "path", "absolute_path", "filename", "file_name", "file"];
const TEXTS: [&str; 5] = ["content", "contents", "text", "file_text", "body"];
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

impl Step<'_> {
    /// The call that does it with the tools on offer; none where no tool can.
    fn made(&self, request: &Request<'_>) -> Option<ScriptedCall> {
        match *self {
            Step::Call { name, arguments } => {
                Some(ScriptedCall { name: name.to_owned(), arguments: Arguments::Text(arguments.to_owned()) })
            }
            Step::Run { command } => run(request, command),
            Step::Write { file, text } => {
                let fields = [(&FILES[..], json!(file)), (&TEXTS[..], json!(text))];
                named(request, &WRITES)
                    .find_map(|tool| filled(tool, &fields))
                    .or_else(|| patch(request, file, text))
                    .or_else(|| run(request, &format!("printf '%s\\n' {} > {}", quoted(text), quoted(file))))
            }
        }
    }
}

/// The tools on offer with one of these names, in the order of the names.
fn named<'r, 'a>(
    request: &'r Request<'a>,
    names: &'static [&'static str],
) -> impl Iterator<Item = &'r Tool<'a>> {
    let plain = |name: &str| {
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    names.iter().flat_map(move |name| request.tools().iter().filter(move |tool| plain(&tool.name) == *name))
}

fn run(request: &Request<'_>, command: &str) -> Option<ScriptedCall> {
    named(request, &RUNS).find_map(|tool| {
        let schema = schema_of(tool)?;
        let is_list = COMMANDS
            .iter()
            .any(|field| schema.pointer(&format!("/properties/{field}/type")) == Some(&json!("array")));
        let command = if is_list { json!(["bash", "-lc", command]) } else { json!(command) };
        filled(tool, &[(&COMMANDS[..], command)])
    })
}

/// A patch that adds the file: Codex has a tool that takes such a text, and elsewhere it is an object with one field.
fn patch(request: &Request<'_>, file: &str, text: &str) -> Option<ScriptedCall> {
    let tool = named(request, &["applypatch"]).next()?;
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {file}\n{lines}*** End Patch\n");
    match &tool.input {
        ToolInput::FreeText => {
            Some(ScriptedCall { name: tool.name.to_string(), arguments: Arguments::Text(patch) })
        }
        ToolInput::Schema(_) => filled(tool, &[(&["input", "patch"][..], json!(patch))]),
    }
}

fn schema_of(tool: &Tool<'_>) -> Option<Value> {
    match &tool.input {
        ToolInput::Schema(schema) => Some(parsed(schema.as_deref())),
        ToolInput::FreeText => None,
    }
}

/// A call of this tool with each value in the first of its fields that the tool has; what else it demands is made up.
fn filled(tool: &Tool<'_>, values: &[(&[&str], Value)]) -> Option<ScriptedCall> {
    let schema = schema_of(tool)?;
    let properties = schema.get("properties").and_then(Value::as_object)?;
    let mut fields = Map::new();
    for (names, value) in values {
        let name = names.iter().find(|name| properties.contains_key(**name))?;
        fields.insert((*name).to_owned(), value.clone());
    }
    let made_up = example(&schema, Fingerprint::new().add(&tool.name).seed());
    let demanded =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in demanded {
        if !fields.contains_key(name) {
            fields.insert(name.to_owned(), made_up.get(name).cloned().unwrap_or_default());
        }
    }
    Some(ScriptedCall { name: tool.name.to_string(), arguments: Arguments::Object(Value::Object(fields)) })
}

/// A text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_steps_or_nothing() {
        assert_eq!(
            line("  koboshi: write a.txt with one, then two, then run `cat a.txt`"),
            [Step::Write { file: "a.txt", text: "one, then two" }, Step::Run { command: "cat a.txt" }]
        );
        assert_eq!(
            line("koboshi: run echo \"a\" && echo \"b\""),
            [Step::Run { command: "echo \"a\" && echo \"b\"" }]
        );
        assert_eq!(
            line("koboshi-sim: call read {\"a\": 1}, then run x"),
            [Step::Call { name: "read", arguments: "{\"a\": 1}, then run x" }],
            "a call is taken as it stands"
        );
        assert_eq!(
            line("koboshi: call done, then write 'a b' with \"\""),
            [Step::Call { name: "done", arguments: "{}" }, Step::Write { file: "a b", text: "" }]
        );
        for other in [
            "koboshi: nothing of that", "koboshi:", "write a with b", "koboshi: run ",
            "koboshi: write a, then run b",
        ] {
            assert_eq!(line(other), [], "{other}");
        }
    }

    #[test]
    fn a_text_for_a_shell_is_one_word() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
