//! A command of a shell: the programs that it runs, and what they do together.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::effect::Effect;
use super::program::{ASKING, QUIET, SECOND, leaves, of_program};

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

    /// It only reads if all its parts do.
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

    /// What it is about: the program, with its second word where that decides; the first part that does not just change the
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

    /// Its last program answers a question with its exit code.
    pub(super) fn asks(&self) -> bool {
        self.parts.iter().rev().find_map(|part| Some((program(part)?, part))).is_some_and(
            |((program, second), part)| {
                ASKING.contains(&program)
                    || (program == "git" && matches!(second, Some("grep" | "diff")))
                    // What xargs and find run, they answer for.
                    || (matches!(program, "xargs" | "find")
                        && part.split_whitespace().any(|word| ASKING.contains(&word)))
            },
        )
    }

    /// Its last program says nothing by nature.
    pub(super) fn is_quiet(&self) -> bool {
        self.programs().next_back().is_some_and(|(program, _)| QUIET.contains(&program))
    }

    /// It surely leaves something else behind before its last program runs: it edits and then runs.
    pub(super) fn leaves(&self) -> bool {
        let mut parts = self.parts.iter().filter_map(|part| Some((program(part)?, part)));
        parts.next_back();
        parts.any(|((program, second), part)| leaves(program, second, part))
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

/// The commands of a line. A mark in quotes or behind a backslash separates nothing, and neither does the `&` of `2>&1`.
fn parts(command: &str) -> Vec<&str> {
    let is_mark = |c: char| matches!(c, '\n' | ';' | '|' | '&');
    // Quotes that are never closed are apostrophes of some text: then every mark separates, and fewer commands count as reading.
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
pub(super) fn unquoted(text: &str, wanted: impl Fn(char) -> bool) -> Option<Vec<(usize, char)>> {
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
pub(super) fn writes(part: &str) -> bool {
    let Some(bare) = unquoted(part, |c| c == '>') else { return part.contains('>') };
    bare.into_iter().any(|(at, _)| {
        let behind = part.get(at + 1..).unwrap_or_default().trim_start_matches(['>', '|']);
        let target = behind.trim_start();
        let is_copy = behind.starts_with('&') && behind.get(1..).is_some_and(is_number);
        !is_copy && !target.starts_with("/dev/null") && !behind.starts_with("&-")
    })
}

pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// The command without the texts that it hands to its programs: `<<EOF` and the lines up to `EOF`.
pub(super) fn without_bodies(command: &str) -> Cow<'_, str> {
    if !command.contains("<<") {
        return Cow::Borrowed(command);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut ends: VecDeque<&str> = VecDeque::new();
    for line in command.lines() {
        match ends.front() {
            Some(end) if line.trim() == *end => drop(ends.pop_front()),
            Some(_) => {}
            None => {
                kept.push(line);
                ends.extend(line.split("<<").skip(1).filter_map(body_end));
            }
        }
    }
    Cow::Owned(kept.join("\n"))
}

/// The word that ends the text, from what follows `<<`; none for `<<<`.
fn body_end(after: &str) -> Option<&str> {
    let after = after.trim_start_matches(['-', '~']).trim_start_matches(' ');
    let word = after.trim_start_matches(['\'', '"', '\\']);
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
    word.get(..end).filter(|word| !word.is_empty())
}

/// What stands in front of a program without being what is done.
const WRAPPERS: &[&str] = &[
    "sudo", "doas", "time", "nohup", "env", "exec", "command", "nice", "ionice", "stdbuf", "setsid",
    "timeout", "gtimeout", "xvfb-run", "unbuffer", "caffeinate", "chronic",
];
/// Their options that take a word of their own.
const WITH_A_WORD: &[&str] = &[
    "-n", "-s", "-k", "-u", "-c", "-g", "--signal", "--kill-after", "--user", "--server-args", "--adjustment",
];

/// The program of one part of a command and the word after it, without wrappers, settings and options.
pub(super) fn program(part: &str) -> Option<(&str, Option<&str>)> {
    let mut words = part.split_whitespace().peekable();
    // The last wrapper is the program if nothing follows it: `env` lists, and `timeout 5` waits.
    let mut wrapper = None;
    let mut counted = None;
    while let Some(word) = words.peek().copied() {
        let is_before = matches!(word, "(" | "{" | "!" | "then" | "do" | "else" | "if") || is_setting(word);
        let is_wrapper = WRAPPERS.contains(&word);
        let is_option = wrapper.is_some() && word.starts_with('-');
        let is_count = matches!(wrapper, Some("timeout" | "gtimeout")) && counted.is_none();
        if !(is_before || is_wrapper || is_option || is_count) {
            break;
        }
        words.next();
        if is_wrapper {
            (wrapper, counted) = (Some(word), None);
        } else if is_option && WITH_A_WORD.contains(&word) {
            words.next();
        } else if is_count && !is_option && !is_before {
            counted = Some(word);
        }
    }
    let Some(program) = words.next() else { return wrapper.map(|wrapper| (wrapper, counted)) };
    let program = program.trim_matches(['(', '{', '"', '\'']);
    let program = program.rsplit('/').next().unwrap_or(program);
    Some((program, words.find(|word| !word.starts_with('-'))))
}

/// `NAME=value` in front of a program.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_command(command: &str) -> Effect {
        Command::of(command).effect()
    }

    #[test]
    fn what_stands_in_front_of_a_program_is_not_what_is_done() {
        for command in [
            "timeout 60 pip install x", "timeout -k 5 60s pip install x", "nice -n 10 pip install x",
            "env A=1 pip install x", "xvfb-run -a pip install x", "sudo -u me timeout 9 pip install x",
        ] {
            assert_eq!(Command::of(command).verb(), ("pip", Some("install")), "{command}");
            assert_eq!(of_command(command), Effect::Changes, "{command}");
        }
        assert_eq!(of_command("timeout 5"), Effect::Waits);
        assert_eq!(of_command("timeout 5 git status"), Effect::Looks);
        assert_eq!(of_command("env"), Effect::Looks);
    }

    #[test]
    fn texts_that_are_handed_over_are_no_commands() {
        let command = "cat > t.py <<'EOF'\nprint(\"it's; rm x\")\nEOF\npython t.py";
        assert_eq!(without_bodies(command), "cat > t.py <<'EOF'\npython t.py");
        let look = "python - <<EOF | head\nx > y\nEOF\ngrep a <<< b";
        assert_eq!(without_bodies(look), "python - <<EOF | head\ngrep a <<< b");
    }

    #[test]
    fn what_is_left_behind_and_what_says_nothing_is_known() {
        let leaves = |command| Command::of(command).leaves();
        for command in ["sed -i s/a/b/ f && pytest", "echo x > f; python f", "pip install a && python b"] {
            assert!(leaves(command), "{command}");
        }
        for command in ["pytest 2>&1 | tail -5", "python x.py > /dev/null; true", "cp a b", "cd a && rm b"] {
            assert!(!leaves(command), "{command}");
        }
        let quiet = |command| Command::of(command).is_quiet();
        assert!(quiet("cd a") && quiet("export A=1") && !quiet("cd a && ls"));
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
        assert!(asks("find . -name '*.py' | xargs grep -l x") && asks(r"find . -exec grep x {} \;"));
        assert!(!asks("grep x f && make") && !asks("grep x f | xargs rm") && !asks("npm test"));
        let pauses = |command| Command::of(command).pauses();
        assert!(pauses("sleep 5 && curl localhost") && !pauses("curl localhost"));
        let rest = |command| Command::of(command).without_things().collect::<Vec<_>>();
        assert_eq!(rest("ls -l src"), rest("ls -l lib"));
        assert_ne!(rest("grep a src/x"), rest("grep b src/x"));
    }
}
