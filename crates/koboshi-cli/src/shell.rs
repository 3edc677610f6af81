//! Words of a command that a person copies into a shell.

/// A word as a shell must read it: quoted where it holds anything that a shell would take for something else.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/_-.@+=,%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
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
