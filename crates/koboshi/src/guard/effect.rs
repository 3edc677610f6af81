//! What a successful call does to the world: looks at it, waits, changes it, or ends the work.
//!
//! A look at the status does not make the same failing call new, an edit may. The name of the tool decides, for a shell
//! the programs of its command, for SQL the first word, for HTTP the method, for an editor or a browser the word in its field
//! `command` or `action`. What is not known *changes*: then more
//! repetitions are allowed, never fewer. A policy may say it for its own tools.

use super::words::{Words, words};

/// What a successful call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It only reads: afterwards everything is as before.
    Looks,
    /// It lets time pass.
    Waits,
    /// It may change something.
    Changes,
    /// It is a way out: it hands over to a person, asks the user, submits or finishes. It never counts toward a loop.
    Ends,
}

const READING_VERBS: &[&str] = &[
    "read", "view", "cat", "get", "list", "ls", "show", "search", "grep", "find", "glob", "fetch", "query",
    "status", "check", "describe", "inspect", "screenshot", "snapshot", "diff", "log", "logs", "head",
    "tail", "stat", "tree", "lookup", "browse", "count", "poll", "watch", "diagnostics", "hover",
    "definition", "references", "peek", "scan", "open", "observe", "look", "think", "retrieve", "explain",
    "preview", "ping", "whoami", "history", "info", "help", "symbols", "outline", "console",
];
const CHANGING: &[&str] = &[
    "write", "edit", "patch", "create", "update", "delete", "remove", "set", "put", "post", "insert",
    "replace", "move", "rename", "install", "apply", "add", "send", "click", "type", "press", "fill",
    "submit", "run", "execute", "exec", "save", "upload", "merge", "commit", "push", "start", "stop",
    "restart", "kill", "generate", "draw", "navigate", "step", "next",
];
const WAITING: &[&str] = &["sleep", "wait", "delay", "pause", "timer"];

/// Words that a tool for plans has in its name, and no others.
const PLANNING: &[&str] =
    &["todo", "todos", "plan", "list", "write", "read", "update", "set", "manage", "get", "view"];

/// A tool for the agent's own list of what is to be done. What it writes changes nothing that another call could see.
pub(super) fn plans(name: &str) -> bool {
    let own = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let own = own.rsplit("__").next().unwrap_or(own);
    let cue = |cue: &str| own.as_bytes().windows(4).any(|four| four.eq_ignore_ascii_case(cue.as_bytes()));
    if !cue("todo") && !cue("plan") {
        return false;
    }
    let words = words(own);
    words.any(&["todo", "todos", "plan"])
        && words.len() > 1
        && words.iter().all(|word| PLANNING.contains(&word))
}

/// Words of tools that write into a file or a record.
const EDITING: &[&str] =
    &["edit", "write", "patch", "replace", "insert", "create", "append", "overwrite", "undo", "save"];
/// Beside one of these, what is written is input for something that runs.
const FEEDING: &[&str] = &["stdin", "terminal", "process", "session", "pty", "input"];
/// Words of tools that go somewhere else each time: the same call is not the same step.
const MOVING: &[&str] = &[
    "scroll", "next", "previous", "prev", "page", "down", "up", "press", "key", "keys", "swipe", "click",
    "tap", "drag", "wheel", "forward", "back", "step", "continue", "hover",
];

/// By the words of a tool's name, or of the action in its arguments where that word is known.
pub(super) fn of_tool(words: &Words, deed: Option<&Words>) -> Effect {
    deed.and_then(known).or_else(|| known(words)).unwrap_or(Effect::Changes)
}

fn known(words: &Words) -> Option<Effect> {
    if words.any(CHANGING) {
        return Some(Effect::Changes);
    }
    if words.any(WAITING) {
        return Some(Effect::Waits);
    }
    words.any(READING_VERBS).then_some(Effect::Looks)
}

/// It writes, so that the same arguments again are the same step, whatever it shows of the result.
pub(super) fn edits(words: &Words, deed: Option<&Words>) -> bool {
    let name = deed.filter(|deed| known(deed).is_some()).unwrap_or(words);
    name.any(EDITING) && !words.any(FEEDING)
}

/// It continues from where it is.
pub(super) fn moves(words: &Words, deed: Option<&Words>) -> bool {
    words.any(MOVING) || deed.is_some_and(|deed| deed.any(MOVING))
}

/// By the first word of a statement.
pub(super) fn of_sql(statement: &str) -> Effect {
    let first = statement.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let looks = ["select", "show", "explain", "describe", "desc", "with", "pragma", "table", "values"];
    if looks.contains(&first.as_str()) { Effect::Looks } else { Effect::Changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tool(name: &str) -> Effect {
        super::of_tool(&words(name), None)
    }

    #[test]
    fn the_action_of_an_editor_decides() {
        let of = |deed: &str| super::of_tool(&words("str_replace_editor"), Some(&words(deed)));
        assert_eq!(
            (of("view"), of("create"), of("str_replace")),
            (Effect::Looks, Effect::Changes, Effect::Changes)
        );
        let edit = |name: &str, deed: Option<&str>| edits(&words(name), deed.map(words).as_ref());
        assert!(edit("str_replace_editor", Some("insert")) && edit("apply_patch", None));
        assert!(
            !edit("str_replace_editor", Some("view")) && !edit("write_stdin", None) && !edit("read", None)
        );
    }

    #[test]
    fn names_of_tools_tell() {
        for name in [
            "read_file", "Grep", "web_search", "check_approval", "browser_screenshot", "ListDir",
            "get_status",
        ] {
            assert_eq!(of_tool(name), Effect::Looks, "{name}");
        }
        for name in ["edit_file", "apply_patch", "create_ticket", "run_code", "frobnicate", "generate_image"]
        {
            assert_eq!(of_tool(name), Effect::Changes, "{name}");
        }
        assert_eq!(of_tool("sleep"), Effect::Waits);
    }

    /// A list of what is to be done changes nothing of what is there.
    #[test]
    fn plans_are_no_changes() {
        for name in [
            "TodoWrite", "update_plan", "write_todos", "update_todo_list", "manage_todo_list", "todo_write",
            "functions.update_plan", "mcp__agent__update_plan", "TodoRead",
        ] {
            assert!(plans(name), "{name}");
        }
        for name in ["create_todo", "delete_plan", "update_plan_price", "write_file", "set", "plan"] {
            assert!(!plans(name), "{name}");
        }
    }
}
