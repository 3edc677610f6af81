//! What a successful call does to the world: looks at it, waits, or changes it.
//!
//! A look at the status does not make the same failing call new, an edit may. The name of the tool tells, for a shell
//! the programs of its command, for SQL the first word, for HTTP the method. What is not known *changes*: then more
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
}

const LOOKING: &[&str] = &[
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

/// Programs that only look.
const PROGRAMS: &[&str] = &[
    "ls", "cat", "head", "tail", "less", "more", "grep", "egrep", "rg", "ag", "find", "fd", "stat", "file",
    "wc", "pwd", "which", "whereis", "type", "whoami", "id", "date", "echo", "printf", "env", "printenv",
    "ps", "top", "df", "du", "tree", "diff", "cmp", "uname", "hostname", "uptime", "free", "lsof", "netstat",
    "ss", "ping", "dig", "nslookup", "host", "jq", "sort", "uniq", "cut", "test", "true", "cd", "man",
    "history", "nl", "od", "xxd", "strings", "md5sum", "sha256sum", "dir", "awk", "get-content",
    "get-childitem", "get-location", "select-string", "fc-list", "fc-match", "column", "tr", "basename",
    "dirname", "realpath", "export", "set",
];
/// Programs whose second word tells, and the ones of them that look.
const SECOND: &[(&str, &[&str])] = &[
    ("git", &["status", "diff", "log", "show", "blame", "ls-files", "rev-parse", "describe", "grep"]),
    ("kubectl", &["get", "describe", "logs", "top", "explain", "version"]),
    ("docker", &["ps", "images", "logs", "inspect", "info", "version", "stats"]),
    ("gh", &["status"]),
    ("npm", &["ls", "list", "view", "outdated"]),
    ("pip", &["list", "show", "freeze", "check"]),
    ("pip3", &["list", "show", "freeze", "check"]),
    ("cargo", &["tree", "metadata", "search"]),
    ("systemctl", &["status", "is-active", "show", "list-units"]),
    ("apt", &["list", "show", "search"]),
    ("brew", &["list", "info", "search"]),
    ("conda", &["list", "info", "search"]),
    ("terraform", &["show", "output"]),
    ("yarn", &["list", "why", "info"]),
    ("pnpm", &["list", "why"]),
    ("npx", &[]),
    ("go", &["list", "version"]),
    ("make", &[]),
    ("python", &[]),
    ("python3", &[]),
    ("node", &[]),
    ("apt-get", &[]),
    ("aws", &[]),
    ("gcloud", &[]),
];

/// Pairs of words that look if nothing follows them, or one of these. Options alone follow nothing.
const THIRD: &[(&str, &str, &[&str])] = &[
    ("git", "remote", &["show", "get-url"]),
    ("git", "reflog", &["show", "exists", "list"]),
    ("git", "stash", &["list", "show"]),
    ("npm", "config", &["get", "list", "ls"]),
    ("terraform", "state", &["list", "show", "pull"]),
];

/// Words that a tool for plans has in its name, and no others.
const PLANNING: &[&str] =
    &["todo", "todos", "plan", "list", "write", "read", "update", "set", "manage", "get", "view"];

/// A tool for the agent's own list of what is to be done. What it writes changes nothing that another call could see.
pub(super) fn plans(name: &str) -> bool {
    let own = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let own = own.rsplit("__").next().unwrap_or(own);
    let words = words(own);
    words.any(&["todo", "todos", "plan"])
        && words.len() > 1
        && words.iter().all(|word| PLANNING.contains(&word))
}

/// By the words of a tool's name.
pub(super) fn of_tool(words: &Words) -> Effect {
    let changes = words.any(CHANGING);
    if !changes && words.any(WAITING) {
        return Effect::Waits;
    }
    if !changes && words.any(LOOKING) { Effect::Looks } else { Effect::Changes }
}

/// A command of a shell, split once into the commands that it is made of.
pub(super) struct Command<'c> {
    text: &'c str,
    parts: Vec<&'c str>,
}

impl<'c> Command<'c> {
    pub(super) fn of(text: &'c str) -> Self {
        Self { text, parts: parts(text) }
    }

    fn programs(&self) -> impl DoubleEndedIterator<Item = (&'c str, Option<&'c str>)> {
        self.parts.iter().copied().filter_map(program)
    }

    /// It looks if all its parts do.
    pub(super) fn effect(&self) -> Effect {
        let mut effect = None;
        for part in &self.parts {
            let Some((program, second)) = program(part) else { continue };
            let this = of_program(program, second, part);
            effect = Some(match (effect, this) {
                (None, this) => this,
                (_, Effect::Changes) | (Some(Effect::Changes), _) => Effect::Changes,
                (Some(Effect::Waits), Effect::Waits) => Effect::Waits,
                _ => Effect::Looks,
            });
        }
        effect.unwrap_or(Effect::Changes)
    }

    /// What it is about: the program, with its second word where that tells; the first part that does not just change the
    /// directory.
    pub(super) fn verb(&self) -> (&'c str, Option<&'c str>) {
        let aside = ["cd", "export", "set", "source", "sleep", "pushd"];
        let Some((program, second)) = self.programs().find(|(program, _)| !aside.contains(program)) else {
            return (self.text.split_whitespace().next().unwrap_or_default(), None);
        };
        (program, second.filter(|_| SECOND.iter().any(|(name, _)| *name == program)))
    }

    /// It lets time pass before or between its parts.
    pub(super) fn pauses(&self) -> bool {
        self.programs().any(|(program, second)| {
            matches!(program, "sleep" | "start-sleep") && second.is_some_and(is_number)
                || matches!(program, "wait-for-it" | "wait-on" | "until" | "while")
        })
    }

    /// Its last program answers a question with its exit code: 1 is "no", not a failure.
    pub(super) fn asks(&self) -> bool {
        const ASKING: &[&str] = &[
            "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "pgrep", "which", "test", "[", "diff",
            "cmp",
        ];
        self.programs().next_back().is_some_and(|(program, second)| {
            ASKING.contains(&program) || (program == "git" && matches!(second, Some("grep" | "diff")))
        })
    }

    /// Without the files and folders it is about. For programs that take nothing else, all words are.
    pub(super) fn without_things(&self) -> impl Iterator<Item = &'c str> {
        const ON_FILES: &[&str] =
            &["ls", "cat", "head", "tail", "stat", "file", "wc", "du", "tree", "test", "less", "dir"];
        let on_files = program(self.text).is_some_and(|(program, _)| ON_FILES.contains(&program));
        let is_thing = move |at: usize, word: &str| {
            word.contains(['/', '\\']) || (on_files && at > 0 && !word.starts_with('-'))
        };
        let words = self.text.split_whitespace().enumerate();
        words.filter(move |(at, word)| !is_thing(*at, word)).map(|(_, word)| word)
    }
}

fn of_program(program: &str, second: Option<&str>, part: &str) -> Effect {
    if matches!(program, "sleep" | "wait" | "start-sleep" | "timeout") && second.is_none_or(is_number) {
        return Effect::Waits;
    }
    if writes(part) || (program == "awk" && part.contains('>')) {
        return Effect::Changes;
    }
    if program == "sed" || program == "perl" {
        return if part.contains(" -i") { Effect::Changes } else { Effect::Looks };
    }
    if program == "find" {
        let acts = ["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint"];
        let any = part.split_whitespace().any(|word| acts.contains(&word));
        return if any { Effect::Changes } else { Effect::Looks };
    }
    if program == "gh" {
        let looks = ["view", "list", "status", "checks", "watch", "diff"];
        return if part.split_whitespace().take(4).any(|word| looks.contains(&word)) {
            Effect::Looks
        } else {
            Effect::Changes
        };
    }
    if program == "curl" || program == "wget" {
        let sends = [" -X", " -d", " --data", " -F", " -T", " -o", " -O", " --output", " --request"];
        return if sends.iter().any(|flag| part.contains(flag)) { Effect::Changes } else { Effect::Looks };
    }
    if let Some(looks) = second.and_then(|second| by_what_follows(program, second, part)) {
        return if looks { Effect::Looks } else { Effect::Changes };
    }
    if let Some((_, looking)) = SECOND.iter().find(|(name, _)| *name == program) {
        return if second.is_some_and(|second| looking.contains(&second)) {
            Effect::Looks
        } else {
            Effect::Changes
        };
    }
    if PROGRAMS.contains(&program) { Effect::Looks } else { Effect::Changes }
}

/// Whether a pair of words looks, where that depends on what follows it.
fn by_what_follows(program: &str, second: &str, part: &str) -> Option<bool> {
    // What is redirected here goes nowhere: `writes` was asked before.
    let is_named = |word: &&str| !word.contains('>') && *word != "/dev/null";
    let after = || part.split_whitespace().skip_while(|word| *word != second).skip(1).filter(is_named);
    let is_option = |word: &&str| word.starts_with('-');
    match (program, second) {
        ("git", "branch") => Some(lists_branches(after())),
        ("go", "env") => Some(!after().any(|word| matches!(word, "-w" | "-u"))),
        _ => {
            let (_, _, looking) = THIRD.iter().find(|(one, two, _)| (*one, *two) == (program, second))?;
            let third = after().find(|word| !is_option(word));
            // `git stash` alone puts everything away.
            Some(third.map_or(second != "stash", |third| looking.contains(&third)))
        }
    }
}

/// `git branch` lists with options for lists; a name alone makes a branch.
fn lists_branches<'w>(mut words: impl Iterator<Item = &'w str> + Clone) -> bool {
    const LISTING: &[&str] = &[
        "-a", "-r", "-v", "-vv", "-l", "-i", "--all", "--remotes", "--list", "--verbose", "--show-current",
        "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--sort", "--format",
        "--column", "--no-column", "--color", "--no-color", "--ignore-case", "-avv", "-av", "-rv", "-ra",
    ];
    let mut options = words.clone().filter(|word| word.starts_with('-'));
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let takes_names =
        ["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    let mut named = options.clone().map(name);
    options.all(|option| LISTING.contains(&name(option).as_str()))
        && (words.all(|word| word.starts_with('-'))
            || named.any(|option| takes_names.contains(&option.as_str())))
}

/// The commands of a line. A mark in quotes or behind a backslash separates nothing, and neither does the `&` of `2>&1`.
fn parts(command: &str) -> Vec<&str> {
    let is_mark = |c: char| matches!(c, '\n' | ';' | '|' | '&');
    // Quotes that are never closed are apostrophes of some text: then every mark separates, and less is taken for a look.
    let Some(bare) = unquoted(command, is_mark) else { return command.split(is_mark).collect() };
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, c) in bare {
        let joins = c == '&'
            && (command.get(..at).is_some_and(|before| before.ends_with('>'))
                || command.get(at + 1..).is_some_and(|after| after.starts_with('>')));
        if !joins {
            parts.push(command.get(from..at).unwrap_or_default());
            from = at + 1;
        }
    }
    parts.push(command.get(from..).unwrap_or_default());
    parts
}

/// The wanted characters that stand neither in quotes nor behind a backslash, with their places. None if a quote is never
/// closed.
fn unquoted(text: &str, wanted: impl Fn(char) -> bool) -> Option<Vec<(usize, char)>> {
    let mut bare = Vec::new();
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                chars.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, c) if wanted(c) => bare.push((at, c)),
            (None, _) => {}
        }
    }
    quote.is_none().then_some(bare)
}

/// It writes into a file. `2>&1` and `2>/dev/null` write nothing that matters.
fn writes(part: &str) -> bool {
    let Some(bare) = unquoted(part, |c| c == '>') else { return part.contains('>') };
    bare.into_iter().any(|(at, _)| {
        let behind = part.get(at + 1..).unwrap_or_default().trim_start_matches(['>', '|']);
        let target = behind.trim_start();
        let is_copy = behind.starts_with('&') && behind.get(1..).is_some_and(is_number);
        !is_copy && !target.starts_with("/dev/null") && !behind.starts_with("&-")
    })
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// The program of one part of a command and the word after it, without `sudo`, settings and options.
pub(super) fn program(part: &str) -> Option<(&str, Option<&str>)> {
    // Only in front: `env` is a program, and in `go env` it is none.
    let mut words = part.split_whitespace().skip_while(|word| {
        let setting = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        let before = ["sudo", "time", "nohup", "env", "exec", "command", "(", "{", "then", "do"];
        setting || before.contains(word)
    });
    let program = words.next()?;
    let program = program.trim_matches(['(', '{', '"', '\'']);
    let program = program.rsplit('/').next().unwrap_or(program);
    Some((program, words.find(|word| !word.starts_with('-'))))
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
        super::of_tool(&words(name))
    }

    fn of_command(command: &str) -> Effect {
        Command::of(command).effect()
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

    #[test]
    fn what_follows_the_second_word_tells_too() {
        for command in [
            "git branch", "git branch -a", "git branch --list 'x*'", "git branch -vv --sort=-committerdate",
            "git branch --show-current", "git branch --contains abc", "git remote", "git remote -v 2>&1",
            "git remote show origin", "git remote get-url origin", "git reflog", "git reflog show main",
            "npm config get registry", "npm config list", "terraform state list", "go env GOPATH",
        ] {
            assert_eq!(of_command(command), Effect::Looks, "{command}");
        }
        for command in [
            "git branch -D old", "git branch new", "git branch -m a b", "git branch -u origin/x",
            "git branch --delete x", "git branch --unset-upstream", "git branch --list x -d y",
            "git remote add o url", "git remote remove o", "git remote set-url o x", "git remote prune o",
            "git remote -v update", "git reflog expire --all", "git reflog delete x", "npm config set a b",
            "terraform state rm x", "go env -w A=b",
        ] {
            assert_eq!(of_command(command), Effect::Changes, "{command}");
        }
    }

    #[test]
    fn programs_tell() {
        for command in [
            "git status", "cd x && ls -la | grep y", "FOO=1 cat a 2>/dev/null", "kubectl get pod",
            "gh run view 9 --json status", "sleep 5 && git log", "cat a 2>&1 | head -5", "ls x &>/dev/null",
            "grep -rnE \"foo|bar\" src 2> /dev/null", r"grep 'a\|b; -> c' f",
            r"find . \( -name '*.rs' \) | wc -l",
        ] {
            assert_eq!(of_command(command), Effect::Looks, "{command}");
        }
        for command in [
            "git push", "echo x > f", "pip install a", "sed -i s/a/b/ f", "ls && rm x", "app --init",
            "echo 'a' >> f", "ls 2>&1 & rm x", "echo it's; rm x", "cat a >&2 b > c", "echo \"a\" | tee f",
            "awk '{print > \"f\"}' g", r"find . -name x -exec rm {} \;",
        ] {
            assert_eq!(of_command(command), Effect::Changes, "{command}");
        }
        assert_eq!(of_command("sleep 30"), Effect::Waits);
        assert_eq!(Command::of("cd a && PORT=1 git push origin").verb(), ("git", Some("push")));
        let asks = |command| Command::of(command).asks();
        assert!(asks("cd a && grep -n 'x|y' b 2>/dev/null") && asks("ps aux | grep x") && asks("git grep x"));
        assert!(!asks("grep x f && make") && !asks("grep x f | xargs rm") && !asks("npm test"));
        let pauses = |command| Command::of(command).pauses();
        assert!(pauses("sleep 5 && curl localhost") && !pauses("curl localhost"));
        let rest = |command| Command::of(command).without_things().collect::<Vec<_>>();
        assert_eq!(rest("ls -l src"), rest("ls -l lib"));
        assert_ne!(rest("grep a src/x"), rest("grep b src/x"));
    }
}
