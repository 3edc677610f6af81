//! Words of a command that a user copies into a shell.

use koboshi::redact::Redactor;

/// A word for a shell: quoted where it contains special characters.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/_-.@+=,%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Flags with their values, as they are put behind a command: those that have one. A password is not repeated, so a command with one must be
/// completed by the person who has it.
pub(crate) fn flags(given: impl IntoIterator<Item = (&'static str, Option<String>)>) -> String {
    let redactor = Redactor::new();
    given
        .into_iter()
        .filter_map(|(flag, value)| Some(format!(" {flag} {}", word(&redactor.redact(&value?)))))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_every_word_as_it_was() {
        for text in [
            "provider:openai", "target:a/b#none", "model:gpt-*", "two words", "it's", "$HOME `x` \"y\"", "",
            "~/x", "a;b&c|d",
        ] {
            let said =
                Command::new("sh").args(["-c", &format!("printf %s {}", word(text))]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
        assert_eq!(word("provider:openai"), "provider:openai", "nothing is quoted without need");
    }
}
