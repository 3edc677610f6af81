//! Exit codes in the words of harnesses, and what a search answers with one.
//!
//! A search that finds nothing ends with 1, `xargs` that runs it with 123, and one that was given a folder which is not there
//! ends with 2 and says so beside its hits. None of that is a failure of the search, whatever a flag says; and each harness writes
//! the code in its own way: `Exit code 1`, `[exit code: 1]`, `<returncode>1</returncode>`, a field of JSON.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// How much is read: a search that found more than this has more to report than its code.
const MAX_OUTPUT: usize = 16 * 1024;

/// What a search reported, without its exit code.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchAnswer {
    /// Nothing but a code that says "no".
    Nothing,
    /// The code, and this text.
    Text(String),
}

/// What is left of the answer of a search that ended with a code which says "no"; none if there is no such code.
pub(super) fn searched(output: &str) -> Option<SearchAnswer> {
    let text = output.trim();
    if text.len() > MAX_OUTPUT {
        return None;
    }
    if text.starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let mut code = None;
        let is_bare = only_code(&value, "", &mut code);
        return (is_bare && code.is_some_and(says_no)).then_some(SearchAnswer::Nothing);
    }
    in_lines(text)
}

fn says_no(code: u64) -> bool {
    matches!(code, 1 | 2 | 123)
}

fn in_lines(text: &str) -> Option<SearchAnswer> {
    static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^[\[(<]*(?:error:? *)?(?:the )?(?:process |command )?(?:failed |returned |finished )?(?:with )?(?:(?:exit(?:ed)?(?: with)?)(?:[ _-]?code| status)?|return[ _]?code)[ :=>]*([0-9]{1,3})(?:[\])>.]*|</[a-z_ -]+>)$",
        )
        .ok()
    });
    static AROUND: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:(?:stdout|stderr|output|error)[ :]*(?:\(empty\))?|</?(?:stdout|stderr|output|result|observation)>|<(stdout|stderr|output)></(?:stdout|stderr|output)>|(?:wall|duration|elapsed)[ a-z_]*[:=].*|chunk id:.*|(?:total output lines|original token count): *[0-9]+|\((?:no output|empty)\)|<no output>)$",
        )
        .ok()
    });
    static ASIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:[efz]?grep|rg|ag|ack|diff|cmp|find|git)(?:\.exe)?: .*(?:no such file or directory|is a directory|binary file matches|permission denied|os error 2)",
        )
        .ok()
    });
    // A complaint of the search itself, or of the shell that should have run it.
    static OWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(?:[efz]?grep|rg|ag|ack|diff|cmp|find|git|xargs|fatal|(?:[a-z/]*/)?(?:ba|z|da)?sh)(?:\.exe)?: ").ok()
    });
    let (exit, around, aside) = (CODE.as_ref()?, AROUND.as_ref()?, ASIDE.as_ref()?);
    let mut code = None;
    let mut left: Vec<&str> = Vec::new();
    for line in text.lines() {
        let bare = line.trim();
        if let Some(found) = exit.captures(bare) {
            code = found.get(1).and_then(|digits| digits.as_str().parse().ok());
        } else if !(bare.is_empty() || around.is_match(bare) || aside.is_match(bare)) {
            left.push(line);
        }
    }
    code.filter(|code| says_no(*code))?;
    if OWN.as_ref().is_some_and(|own| left.iter().any(|line| own.is_match(line))) {
        return None;
    }
    Some(if left.is_empty() { SearchAnswer::Nothing } else { SearchAnswer::Text(left.join("\n")) })
}

/// No text in it, and no number that could be another code.
fn only_code(value: &Value, key: &str, code: &mut Option<u64>) -> bool {
    const CODES: &[&str] =
        &["exit_code", "exitcode", "code", "status", "returncode", "return_code", "exit_status"];
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Number(number) if CODES.contains(&key) => {
            *code = number.as_u64();
            code.is_some()
        }
        Value::Number(_) => ["duration", "time", "elapsed", "ms"].iter().any(|word| key.contains(word)),
        Value::Array(items) => items.iter().all(|item| only_code(item, key, code)),
        Value::Object(fields) => {
            fields.iter().all(|(key, inner)| only_code(inner, &key.to_ascii_lowercase(), code))
        }
        Value::Null | Value::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_code_says_no_in_every_wrapper() {
        for text in [
            "Exit code 1",
            "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n",
            "[exit code: 1]",
            "Error: Exit code 1",
            "(no output)\nexit status 1",
            "Command failed with exit code 1",
            "<returncode>1</returncode>\n<output>\n</output>",
            "<returncode>123</returncode>\n<output></output>",
            "returncode: 1",
            "Exit code 2\ngrep: lib/: No such file or directory",
            "{\"output\":\"\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.0}}",
            "{\"stdout\":\"\",\"stderr\":\"\",\"code\":1,\"interrupted\":false}",
        ] {
            assert_eq!(searched(text), Some(SearchAnswer::Nothing), "{text}");
        }
        for text in ["", "1", "Exit code 127", "{\"output\":\"\"}", "{\"output\":\"x\",\"exit_code\":1}"] {
            assert_eq!(searched(text), None, "{text}");
        }
    }

    #[test]
    fn what_else_was_said_is_kept() {
        let text_of = |text| match searched(text) {
            Some(SearchAnswer::Text(text)) => text,
            other => format!("{other:?}"),
        };
        assert_eq!(text_of("Exit code 1\n< a\n> b"), "< a\n> b");
        assert_eq!(
            text_of("Exit code 2\ngrep: app/: No such file or directory\nsrc/a.ts:1: x"),
            "src/a.ts:1: x"
        );
        assert_eq!(text_of("Exit code 2\nrg: regex parse error: unclosed group"), "None");
        assert_eq!(text_of("Exit code 1\nbash: cd: x: No such file or directory"), "None");
    }
}
