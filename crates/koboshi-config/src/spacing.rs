//! Detects missing spaces after a colon or a dash, and wrongly indented items of a list.
//!
//! Without the space YAML reads a text in place of a key or a list, and any other message about that text hides the cause.

use crate::words::{Text, Words, words};

const COLON: (Words, Words) = (
    words("there is no space after the colon", "コロンの後に空白がありません"),
    words(
        "a space is needed after the colon, as in `key: value`",
        "`key: value` のように、コロンの後に空白が必要です",
    ),
);
const DASH: (Words, Words) = (
    words("there is no space after the dash", "`-` の後に空白がありません"),
    words(
        "a space is needed after the dash, as in `- value`",
        "`- value` のように、`-` の後に空白が必要です",
    ),
);
const ITEM: Words = words(
    "the `-` of all items of a list begin in the same column: this one is indented differently from the one above",
    "リストの `-` はすべて同じ桁から始めてください。インデントが上の行と異なる項目があります",
);

/// The mistake of a line, with its place in characters from 0 and a hint.
pub(crate) fn of_line(line: &str) -> Option<(usize, Words, Words)> {
    let line = line.split_once(" #").map_or(line, |(before, _)| before).trim_end();
    let plain = line.trim_start();
    let indent = line.chars().count().saturating_sub(plain.chars().count());
    if lacks_space_after_dash(plain) {
        return Some((indent, DASH.0, DASH.1));
    }
    let at = colon_without_space(plain)?;
    Some((indent + at, COLON.0, COLON.1))
}

/// The hint for a text in place of keys or a list.
pub(crate) fn of_text(text: &str) -> Option<Text> {
    if lacks_space_after_dash(text) {
        return Some(DASH.1.into());
    }
    colon_without_space(text).map(|_| COLON.1.into())
}

/// The hint for an item of a list that includes the lines below it: a real one-line text with such spaces is quoted.
pub(crate) fn of_item(text: &str) -> Option<Text> {
    let (_, behind) = text.split_once(" -")?;
    Some(if behind.starts_with(' ') { ITEM.into() } else { DASH.1.into() })
}

fn lacks_space_after_dash(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || "\"'[{".contains(c)))
}

/// The colon of a key without a space after it. An address such as `http://host` is no key.
fn colon_without_space(text: &str) -> Option<usize> {
    let (name, rest) = text.split_once(':')?;
    let name = name.trim_matches(['"', '\'']);
    let is_key = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.*/".contains(c));
    let lacks = rest.starts_with(|c: char| !c.is_whitespace()) && !rest.starts_with("//");
    (is_key && lacks).then(|| text.chars().take_while(|c| *c != ':').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_their_space_are_seen_and_others_are_not() {
        for (line, at) in
            [("  a:[sim/ok]", 3), ("listen:127.0.0.1:4242", 6), ("  -sim/fail-503", 2), ("  \"*\":[x]", 5)]
        {
            assert_eq!(of_line(line).map(|found| found.0), Some(at), "{line}");
        }
        for line in
            ["a: [x]", "a:", "- sim/ok", "---", "http://host", "- http://host:1", "# a:b", "", "a: b:c"]
        {
            assert!(of_line(line).is_none(), "{line}");
        }
    }
}
