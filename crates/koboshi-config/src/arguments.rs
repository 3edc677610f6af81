//! Arguments of a program: how a line is cut into them, and which of them may be shown.
//!
//! `koboshi check` and the admin API show commands. Every user of the machine can read the arguments of a program, so they are a bad place
//! for a secret; people write one there all the same. A secret is known by the option before it (`--token …`), by its name in front of it
//! (`--token=…`, `TOKEN=…`, `Authorization: …`) or by its form. A bare word without any of these is shown: it may as well be a name.

use crate::source::HIDDEN;
use crate::vocabulary::is_harmless;

/// The arguments as they may be shown.
pub(crate) fn shown(arguments: &[String]) -> Vec<String> {
    let mut is_value = false;
    arguments
        .iter()
        .map(|argument| {
            let follows = std::mem::replace(&mut is_value, is_option_of_secret(argument));
            let hides = follows && !argument.starts_with('-') || !is_harmless(argument);
            if hides { HIDDEN.to_owned() } else { without_value(argument) }
        })
        .collect()
}

/// Whether all of a line's arguments may be shown.
pub(crate) fn may_be_shown(arguments: &[String]) -> bool {
    shown(arguments) == arguments
}

/// The words of a command line, as a shell would cut it; what is in quotes is one.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_open, mut quote) = (String::new(), false, None);
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.push(letter),
            ('"' | '\'', None) => (quote, is_open) = (Some(letter), true),
            (_, None) if letter.is_whitespace() => {
                if is_open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (_, None) => word.push(letter),
        }
    }
    if is_open || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a name is one of a secret: `GITHUB_TOKEN`.
pub(crate) fn is_name_of_secret(name: &str) -> bool {
    name.to_ascii_uppercase().split(['_', '-', '.']).any(is_word_of_secret)
}

/// Whether the next argument is a secret: `--api-key`, and not `--key-file`.
fn is_option_of_secret(argument: &str) -> bool {
    argument.starts_with('-') && is_secret_by_its_end(argument)
}

/// Whether the last word of a name says that its value is a secret.
fn is_secret_by_its_end(name: &str) -> bool {
    let end = name.trim().rsplit(['_', '-', '.']).next().unwrap_or_default();
    is_word_of_secret(&end.to_ascii_uppercase())
        || ["PASS", "PWD"].contains(&end.to_ascii_uppercase().as_str())
}

fn is_word_of_secret(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PAT", "CREDENTIAL",
        "CREDENTIALS", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE",
    ];
    WORDS.contains(&word)
}

/// An argument with its value behind a name hidden, where the name is one of a secret.
fn without_value(argument: &str) -> String {
    let Some((name, value)) = argument.split_once(['=', ':']) else { return argument.to_owned() };
    if value.is_empty() || !is_secret_by_its_end(name) {
        return argument.to_owned();
    }
    format!("{}{HIDDEN}", argument.strip_suffix(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_option_or_a_name_calls_a_secret_is_hidden() {
        for (line, expected) in [
            ("claude --token horse-battery -p hi", "claude --token *** -p hi"),
            ("send --api-key=horse-battery", "send --api-key=***"),
            ("env PASSWORD=horse send", "env PASSWORD=*** send"),
            ("curl -H 'Authorization: Basic horse'", "curl -H Authorization:***"),
            (
                "run --key-file secrets.json --max-tokens 1000",
                "run --key-file secrets.json --max-tokens 1000",
            ),
            ("run --token --verbose", "run --token --verbose"),
            ("run sk-proj-Zq8Lw3vN0tYx1Kf6Rb2m", "run ***"),
            (
                "claude -p 'Review the open pull requests: all'",
                "claude -p Review the open pull requests: all",
            ),
        ] {
            assert_eq!(shown(&split(line)).join(" "), expected, "{line}");
        }
    }
}
