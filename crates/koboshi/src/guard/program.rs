//! What a program of a shell command does: reads, waits or changes something.
//!
//! Some are known by their name, some by their second word, some by what follows it or by an option. What is not known changes
//! something.

use super::effect::Effect;
use super::shell::{is_number, writes};

/// Programs that only read.
const PROGRAMS: &[&str] = &[
    "ls", "cat", "head", "tail", "less", "more", "grep", "egrep", "rg", "ag", "find", "fd", "stat", "file",
    "wc", "pwd", "which", "whereis", "type", "whoami", "id", "date", "echo", "printf", "env", "printenv",
    "ps", "top", "df", "du", "tree", "diff", "cmp", "uname", "hostname", "uptime", "free", "lsof", "netstat",
    "ss", "ping", "dig", "nslookup", "host", "jq", "sort", "uniq", "cut", "test", "true", "cd", "man",
    "history", "nl", "od", "xxd", "strings", "md5sum", "sha256sum", "dir", "awk", "get-content",
    "get-childitem", "get-location", "select-string", "fc-list", "fc-match", "column", "tr", "basename",
    "dirname", "realpath", "export", "set", "unset", "alias", "pushd", "popd", ":", "[",
];

/// Programs that print nothing when all is well, or whose silence is an answer.
pub(super) const QUIET: &[&str] = &[
    "cd", "export", "set", "unset", "alias", "true", ":", "pushd", "popd", "source", ".", "test", "[", "cmp",
    "diff", "wait",
];

/// Programs that answer a question with their exit code: 1 is "no", not a failure.
pub(super) const ASKING: &[&str] =
    &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "pgrep", "which", "test", "[", "diff", "cmp"];

/// Programs that write, make, move or fetch something before the next one of the line runs.
const WRITING: &[&str] = &[
    "patch", "cp", "mv", "rm", "mkdir", "touch", "ln", "chmod", "chown", "unzip", "tar", "truncate", "rsync",
    "dd", "install",
];
/// The same by their second word.
const WRITING_SECOND: &[(&str, &[&str])] = &[
    ("git", &["apply", "checkout", "stash", "reset", "restore", "pull", "merge", "rebase", "am", "revert"]),
    ("pip", &["install", "uninstall"]),
    ("pip3", &["install", "uninstall"]),
    ("npm", &["install", "i", "ci", "uninstall"]),
    ("yarn", &["add", "install", "remove"]),
    ("pnpm", &["add", "install", "remove"]),
    ("apt", &["install", "update"]),
    ("apt-get", &["install", "update"]),
    ("cargo", &["add", "install", "update"]),
    ("go", &["get", "install"]),
    ("conda", &["install", "create"]),
];

/// It surely leaves something else behind: a file, a package, another state of the repository.
pub(super) fn leaves(program: &str, second: Option<&str>, part: &str) -> bool {
    let in_place = (program == "sed" || program == "perl") && part.contains(" -i");
    let second_tells = || {
        let all = WRITING_SECOND.iter().find(|(name, _)| *name == program);
        all.is_some_and(|(_, writing)| second.is_some_and(|second| writing.contains(&second)))
    };
    in_place || writes(part) || WRITING.contains(&program) || second_tells()
}
/// Programs whose second word decides, with the second words that only read.
pub(super) const SECOND: &[(&str, &[&str])] = &[
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

/// Pairs of words that only read if nothing follows them, or one of these. Options alone follow nothing.
const THIRD: &[(&str, &str, &[&str])] = &[
    ("git", "remote", &["show", "get-url"]),
    ("git", "reflog", &["show", "exists", "list"]),
    ("git", "stash", &["list", "show"]),
    ("npm", "config", &["get", "list", "ls"]),
    ("terraform", "state", &["list", "show", "pull"]),
];

/// What one program does, by its name, the word after it and the whole part of the command that it stands in.
pub(super) fn of_program(program: &str, second: Option<&str>, part: &str) -> Effect {
    if matches!(program, "sleep" | "wait" | "start-sleep" | "timeout")
        && second.is_none_or(|second| is_number(second) || second == "/t")
    {
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

/// Whether a pair of words only reads, where that depends on what follows it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::shell::Command;

    fn of_command(command: &str) -> Effect {
        Command::of(command).effect()
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
}
