//! What a call asked for, in the forms in which calls are compared.
//!
//! Arguments are read as JSON where they are JSON: order of keys, spacing and fields that only describe the call
//! (`description`, `timeout`) make no new call. Besides the whole call there is its *verb* (the tool, or the program of a
//! shell command), its *target* (file, page, command) and the *rest* without the target: the same question put to many
//! files is work. *Echoes* are the words of the arguments that an error message may repeat.
//!
//! Nothing here is fit to be shown: hashes are, words are not. Everything is bounded.

use serde_json::{Map, Value};

use super::effect::{self, Effect};
use super::ends::by_tool_name;
use super::failure_text::complains;
use super::mix::{hash, hash_numbers};
use super::shell::{Command, without_bodies};
use super::words::{Words, words};

/// Arguments of more bytes are compared as they are, unread.
const MAX_ARGUMENTS: usize = 128 * 1024;
const MAX_ECHOES: usize = 64;
const MAX_ECHO: usize = 400;

const TARGETS: &[&str] = &[
    "path", "file_path", "filepath", "file", "filename", "file_name", "target_file", "notebook_path",
    "paths", "files", "url", "uri", "href", "link", "dir", "directory", "folder", "table", "page", "offset",
    "cursor", "line", "start_line", "selector",
];
const COMMANDS: &[&str] = &["command", "cmd", "commands", "shell_command"];
const CODE: &[&str] = &["code", "script", "source_code"];
const STATEMENTS: &[&str] = &["query", "sql", "statement"];
/// Fields that say something about the call, where another field says what it is.
const BESIDE: &[&str] = &[
    "description", "explanation", "reason", "reasoning", "thought", "comment", "timeout", "timeout_ms",
    "timeout_seconds", "timeoutms", "request_id", "nonce", "_meta", "purpose", "task_progress",
    "requires_approval", "safetoautorun",
];

/// Beside a program, what else decides what it does. Everything else is for show: a title, a counter, a reason.
const AROUND: &[&str] = &[
    "cwd", "workdir", "working_directory", "workingdirectory", "dir", "directory", "env", "stdin", "input",
    "session", "session_id", "background", "run_in_background", "language", "lang", "kernel", "host",
    "container", "user", "args", "params", "parameters", "database", "db", "connection",
];

/// What a call asked for.
#[derive(Debug, Clone)]
pub(super) struct CallFeatures {
    /// Tool or program.
    pub(super) verb: u64,
    /// Tool and arguments.
    pub(super) call: u64,
    /// The thing it is about.
    pub(super) target: u64,
    /// Everything but the thing it is about; none where there is no such field.
    pub(super) rest: Option<u64>,
    pub(super) effect: Effect,
    /// The arguments are a program: another one is another thing, but not another place.
    pub(super) is_code: bool,
    /// It lets time pass before it does the rest.
    pub(super) pauses: bool,
    /// It keeps the agent's own list of what is to be done: an answer that says nothing is as it should be.
    pub(super) plans: bool,
    /// An exit code of 1 says "no", not that it failed.
    pub(super) asks: bool,
    /// It is a command of a shell, which says in its text all that it has to say.
    pub(super) is_command: bool,
    /// It says nothing by nature.
    pub(super) is_quiet: bool,
    /// It surely leaves something else behind, also where it fails in the end.
    pub(super) leaves: bool,
    /// It writes into a file or a record.
    pub(super) edits: bool,
    /// It continues from where it is: scrolls, steps, clicks.
    pub(super) moves: bool,
}

pub(super) fn asked(tool: &str, args: &str) -> CallFeatures {
    match fields(args) {
        Some(fields) => match inner(&fields) {
            Some((name, inner)) => of_fields(name, tool, &inner),
            None => of_fields(tool, tool, &fields),
        },
        None => of_text(tool, args),
    }
}

fn fields(args: &str) -> Option<Map<String, Value>> {
    let object = args.len() <= MAX_ARGUMENTS && args.trim_start().starts_with('{');
    object.then(|| serde_json::from_str(args).ok()).flatten()
}

/// The words of the arguments that an error message may repeat, longest first. Only failures need them.
pub(super) fn echoes(tool: &str, args: &str) -> Vec<String> {
    let mut echoes = Vec::new();
    match fields(args) {
        Some(fields) => {
            let call = inner(&fields);
            let (name, fields) = call.as_ref().map_or((tool, &fields), |(name, inner)| (*name, inner));
            name_echo(name, &mut echoes);
            fields.values().for_each(|value| leaves(value, &mut echoes));
        }
        None => {
            name_echo(tool, &mut echoes);
            echo(args.get(..args.floor_char_boundary(MAX_ARGUMENTS)).unwrap_or_default(), &mut echoes);
        }
    }
    by_length(echoes)
}

/// `{"name": …, "arguments": {…}}`: a call inside a call.
fn inner(fields: &Map<String, Value>) -> Option<(&str, Map<String, Value>)> {
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| fields.get(*key)?.as_str())?;
    let arguments =
        ["arguments", "parameters", "input", "params", "args"].iter().find_map(|key| fields.get(*key))?;
    match arguments {
        Value::Object(inner) => Some((name, inner.clone())),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(inner)) => Some((name, inner)),
            _ => None,
        },
        _ => None,
    }
}

fn of_text(tool: &str, args: &str) -> CallFeatures {
    let words = words(tool);
    let text = without_bodies(args);
    let command = words.any(SHELLS).then(|| Command::of(&text));
    let plans = effect::plans(tool);
    let call = hash([tool].into_iter().chain(args.split_whitespace()));
    CallFeatures {
        verb: command.as_ref().map_or_else(|| hash([tool]), |command| verb_of(&[tool], command)),
        call,
        target: call,
        rest: command.as_ref().map(|command| hash([tool].into_iter().chain(command.without_things()))),
        effect: match &command {
            _ if by_tool_name(tool, &words) => Effect::Ends,
            Some(command) => command.effect(),
            None if plans => Effect::Looks,
            None => effect::of_tool(&words, None),
        },
        is_code: command.is_some(),
        ..CallFeatures::of(plans, &words, None, command.as_ref())
    }
}

impl CallFeatures {
    /// What follows from the names and the command alone.
    fn of(plans: bool, words: &Words, deed: Option<&Words>, command: Option<&Command<'_>>) -> Self {
        Self {
            verb: 0,
            call: 0,
            target: 0,
            rest: None,
            effect: Effect::Changes,
            is_code: false,
            pauses: command.is_some_and(Command::pauses),
            plans,
            asks: command.is_some_and(Command::asks),
            is_command: command.is_some(),
            is_quiet: command.is_some_and(Command::is_quiet),
            leaves: command.is_some_and(Command::leaves),
            edits: command.is_none() && !plans && effect::edits(words, deed),
            moves: command.is_none() && effect::moves(words, deed),
        }
    }
}

fn verb_of(tool: &[&str], command: &Command<'_>) -> u64 {
    let (program, second) = command.verb();
    hash(tool.iter().copied().chain([program]).chain(second))
}

/// A harness that does not know a tool names it.
fn name_echo(tool: &str, echoes: &mut Vec<String>) {
    if is_name(tool) {
        echoes.push(tool.to_owned());
    }
}

fn of_fields(name: &str, tool: &str, fields: &Map<String, Value>) -> CallFeatures {
    let words = words(name);
    let plans = effect::plans(name);
    let text = first(fields, COMMANDS).filter(|_| words.any(SHELLS)).map(command_text);
    let text = text.as_deref().map(without_bodies);
    let command = text.as_deref().map(Command::of);
    let deed = if command.is_none() { deed(fields) } else { None };
    let deed_words = deed.map(self::words);
    let has_code = words.any(RUNS) && first(fields, CODE).is_some();
    let statement = first(fields, STATEMENTS).and_then(Value::as_str);
    let is_sql = words.any(&["sql", "postgres", "mysql", "sqlite", "database", "db"]);
    let has =
        |lists: &[&[&str]]| fields.keys().any(|key| lists.iter().any(|list| list.contains(&key.as_str())));
    let main = has(&[COMMANDS, CODE, STATEMENTS, TARGETS, &["pattern"]]);

    let is_program = command.is_some() || has_code;
    let is_kept = |key: &str| {
        if is_program {
            return [COMMANDS, CODE, AROUND].iter().any(|list| holds(list, key));
        }
        !(main && holds(BESIDE, key))
    };
    // Each field once: its name, its words, and what it counts for.
    let facets: Vec<(u64, bool, bool)> =
        fields.iter().map(|(key, value)| (field(key, value), is_kept(key), holds(TARGETS, key))).collect();
    // An editor that views and one that writes are two tools.
    let own = hash([tool, name].into_iter().chain(deed));
    let of = |pick: fn(bool, bool) -> bool| {
        let picked = facets.iter().filter(|(_, kept, target)| pick(*kept, *target));
        hash_numbers(own, picked.map(|(number, ..)| *number))
    };

    let call = of(|kept, _| kept);
    let has_target = command.is_none() && facets.iter().any(|(.., target)| *target);
    let effect = match (&command, statement) {
        _ if by_tool_name(name, &words) => Effect::Ends,
        (Some(command), _) => command.effect(),
        (None, Some(statement)) if is_sql => effect::of_sql(statement),
        _ => match first(fields, &["method"]).and_then(Value::as_str) {
            Some(method) if matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD") => Effect::Looks,
            Some(_) => Effect::Changes,
            None if plans || words.any(&["http"]) => Effect::Looks,
            None => effect::of_tool(&words, deed_words.as_ref()),
        },
    };
    CallFeatures {
        verb: match &command {
            Some(command) => verb_of(&[tool, name], command),
            None => own,
        },
        call,
        target: if has_target { of(|_, target| target) } else { call },
        rest: match &command {
            Some(command) => Some(hash([tool, name].into_iter().chain(command.without_things()))),
            None => has_target.then(|| of(|kept, target| kept && !target)),
        },
        effect,
        is_code: is_program || is_sql,
        ..CallFeatures::of(plans, &words, deed_words.as_ref(), command.as_ref())
    }
}

/// The action that the arguments ask of a tool with several uses, where it is one word: `{"command": "view"}`, `{"action": "scroll_down"}`.
fn deed(fields: &Map<String, Value>) -> Option<&str> {
    let action =
        ["command", "action", "operation", "op"].iter().find_map(|key| fields.get(*key)?.as_str())?;
    let is_word = !action.is_empty()
        && action.len() <= 32
        && action.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word.then_some(action)
}

fn holds(list: &[&str], key: &str) -> bool {
    list.iter().any(|name| name.eq_ignore_ascii_case(key))
}

/// A text this long is not written again with other spaces.
const MAX_RESPACED_TEXT: usize = 2 * 1024;

/// One field with single spaces; keys of objects are in order already.
fn field(key: &str, value: &Value) -> u64 {
    match value {
        Value::String(text) if text.len() > MAX_RESPACED_TEXT => hash([key, text.trim()]),
        Value::String(text) => hash([key].into_iter().chain(text.split_whitespace())),
        other => hash([key, &other.to_string()]),
    }
}

const SHELLS: &[&str] = &[
    "bash", "shell", "sh", "zsh", "terminal", "powershell", "pwsh", "cmd", "command", "exec", "execute",
    "console",
];

/// A field named `code` may also be a voucher's.
const RUNS: &[&str] = &[
    "run", "exec", "execute", "eval", "evaluate", "interpreter", "python", "ipython", "jupyter", "notebook",
    "repl", "node", "javascript", "js", "ruby", "r", "julia", "script", "sandbox",
];

fn first<'a>(fields: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| fields.get(*key))
}

/// A command, also where it is a list of words; without the shell in front of it.
fn command_text(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            match items.as_slice() {
                ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh", "-c" | "-lc", command] => {
                    (*command).to_owned()
                }
                _ => items.into_iter().map(word).collect::<Vec<_>>().join(" "),
            }
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word of a list is one word, whatever is in it.
fn word(word: &str) -> String {
    let plain = !word.contains([' ', '\n', ';', '|', '&', '>', '"', '\\']) || word.contains('\'');
    if plain { word.to_owned() } else { format!("'{word}'") }
}

fn leaves(value: &Value, echoes: &mut Vec<String>) {
    match value {
        Value::String(text) => echo(text, echoes),
        Value::Array(items) => items.iter().take(MAX_ECHOES).for_each(|item| leaves(item, echoes)),
        Value::Object(fields) => fields.values().take(MAX_ECHOES).for_each(|field| leaves(field, echoes)),
        _ => {}
    }
}

/// The text, its lines, and its words that look like names.
fn echo(text: &str, echoes: &mut Vec<String>) {
    let text = text.trim();
    let fits = |part: &str| part.len() >= 3 && part.len() <= MAX_ECHO;
    // A word of complaint is no echo, whatever was asked for.
    if fits(text) && (text.contains(char::is_whitespace) || !complains(text)) {
        echoes.push(text.to_owned());
    }
    if text.contains('\n') {
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= 8 && fits(line));
        echoes.extend(lines.take(20).map(str::to_owned));
    }
    let separators = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | ','
                    | ';'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '='
                    | '<'
                    | '>'
                    | '|'
                    | '&'
            )
    };
    let names = text.split(separators).filter(|word| fits(word) && is_name(word));
    echoes.extend(names.take(40).map(str::to_owned));
}

fn is_name(word: &str) -> bool {
    let letters = word.chars().any(char::is_alphabetic);
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
    let joined =
        inner.contains(['_', '-', '.', '/', '\\', ':', '@']) || inner.chars().any(|c| c.is_ascii_digit());
    let camel = inner.chars().skip(1).any(char::is_uppercase) && inner.chars().any(char::is_lowercase);
    letters && (joined || camel)
}

fn by_length(mut echoes: Vec<String>) -> Vec<String> {
    echoes.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    echoes.dedup();
    echoes.truncate(MAX_ECHOES);
    echoes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_spacing_and_descriptions_make_no_new_call() {
        let one = asked("bash", r#"{"command": "ls  -l", "description": "look"}"#);
        let other = asked("bash", r#"{"description":"again","timeout":9,"command":"ls -l"}"#);
        assert_eq!(one.call, other.call);
        assert_ne!(one.call, asked("bash", r#"{"command":"ls"}"#).call);
        let shown = |title: &str| asked("bash", &format!(r#"{{"command":"ls","title":"{title}"}}"#)).call;
        assert_eq!(shown("1"), shown("2"), "what is only shown does not change what is run");
        let at = |cwd: &str| asked("bash", &format!(r#"{{"command":"ls","cwd":"{cwd}"}}"#)).call;
        assert_ne!(at("a"), at("b"));
        let ticket =
            |text: &str| asked("create_ticket", &format!(r#"{{"title":"t","description":"{text}"}}"#)).call;
        assert_ne!(ticket("a"), ticket("b"), "here the description is the call");
    }

    #[test]
    fn targets_and_the_rest_are_distinguished() {
        let grep = |path: &str, pattern: &str| {
            asked("grep", &format!(r#"{{"path":"{path}","pattern":"{pattern}"}}"#))
        };
        assert_eq!(grep("a", "x").rest, grep("b", "x").rest);
        assert_ne!(grep("a", "x").target, grep("b", "x").target);
        assert_ne!(grep("a", "x").rest, grep("a", "y").rest);
        assert_eq!(grep("a", "x").verb, grep("b", "y").verb);
    }

    #[test]
    fn a_command_may_be_a_list_of_words() {
        let of = |command: &str| asked("shell", &format!(r#"{{"command":{command}}}"#)).effect;
        assert_eq!(of(r#"["rg","-n","foo|bar","src"]"#), Effect::Looks);
        assert_eq!(of(r#"["bash","-lc","rg foo | xargs rm"]"#), Effect::Changes);
    }

    #[test]
    fn a_call_inside_a_call_is_the_call() {
        let mcp = |name: &str| asked("mcp", &format!(r#"{{"name":"{name}","arguments":{{"id":1}}}}"#));
        assert_ne!(mcp("check_approval").verb, mcp("create_ticket").verb);
        assert_eq!(mcp("check_approval").effect, Effect::Looks);
    }

    #[test]
    fn names_in_the_arguments_are_echoes_and_complaints_are_not() {
        let of_query = echoes("sql", r#"{"query":"SELECT * FROM tbl_orders"}"#);
        assert_eq!(of_query, ["SELECT * FROM tbl_orders", "tbl_orders"]);
        assert!(echoes("grep", r#"{"pattern":"error"}"#).is_empty());
    }
}
