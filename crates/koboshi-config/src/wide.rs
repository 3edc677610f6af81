//! Full-width characters where YAML and the keys need ASCII.
//!
//! A Japanese keyboard makes `：`, `　` and `３` in place of `:`, a space and `3`. On the screen they look right, and any other message about such
//! a line hides the cause. So they are named, with the right form.

use crate::vocabulary::is_ours;
use crate::words::{Text, text};

/// The commas of Japanese text, and all commas.
const WIDE_COMMAS: [char; 2] = ['，', '、'];
const COMMAS: [char; 3] = [',', '，', '、'];

/// How many of them are named.
const MAX_NAMED: usize = 4;

/// The ASCII form of a full-width character, or of a quote that a word processor makes.
fn ascii(c: char) -> Option<char> {
    match c {
        '\u{3000}' => Some(' '),
        '\u{201c}'..='\u{201e}' => Some('"'),
        '\u{2018}' | '\u{2019}' => Some('\''),
        '、' => Some(','),
        '「' | '」' | '『' | '』' => Some('"'),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        _ => None,
    }
}

/// The hint for the full-width characters of a text; none if there are none. Letters and digits are named only where the text may be
/// shown.
pub(crate) fn hint(text: &str, may_be_shown: bool) -> Option<Text> {
    if let Some(list) = list_of_targets(text) {
        let comma = text.chars().find(|c| WIDE_COMMAS.contains(c)).unwrap_or('，');
        return Some(text!(
            "a full-width comma (`{comma}`) stands between them: write `{list}`",
            "区切りに全角の `{comma}` が使われています。`{list}` と書いてください"
        ));
    }
    let mut found: Vec<(char, char)> = Vec::new();
    for line in text.lines() {
        for c in without_comment(line).chars() {
            if let Some(meant) = ascii(c)
                && !found.iter().any(|(known, _)| *known == c)
            {
                found.push((c, meant));
            }
        }
    }
    if found.is_empty() {
        return None;
    }
    found.retain(|(_, meant)| may_be_shown || !meant.is_ascii_alphanumeric());
    found.truncate(MAX_NAMED);
    let each = |en: bool| -> String {
        let one = |(c, meant): &(char, char)| match (meant, en) {
            (' ', true) => "the full-width space (U+3000) is a space".to_owned(),
            (' ', false) => "全角スペース（U+3000）→ 半角スペース".to_owned(),
            (_, true) => format!("`{c}` is `{meant}`"),
            (_, false) => format!("`{c}` → `{meant}`"),
        };
        found.iter().map(one).collect::<Vec<_>>().join(if en { ", " } else { "、" })
    };
    let (en, ja) = (each(true), each(false));
    Some(if found.is_empty() {
        Text::new(
            "there are full-width characters in it: use ASCII".to_owned(),
            "全角文字が含まれています。半角で書いてください".to_owned(),
        )
    } else {
        Text::new(
            format!("there are full-width characters in it; in ASCII {en}"),
            format!("全角文字が含まれています。半角で書いてください（{ja}）"),
        )
    })
}

/// The list that a text with full-width commas means, where all its parts are names of targets and so can be shown.
fn list_of_targets(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['"', '\'', '[', ']']);
    let parts: Vec<&str> = text.split(COMMAS).map(str::trim).collect();
    let is_list = text.contains(WIDE_COMMAS) && are_targets(text);
    is_list.then(|| format!("[{}]", parts.join(", ")))
}

/// Whether a text is one target, or several with commas of any width between them.
pub(crate) fn are_targets(text: &str) -> bool {
    text.split(COMMAS).map(str::trim).all(|part| part.contains('/') && is_ours(part))
}

/// Whether a text has characters that look like ASCII and are not.
pub(crate) fn is_in(text: &str) -> bool {
    text.chars().any(|c| ascii(c).is_some())
}

/// Whether a character stands for one that YAML reads as the end of a word.
pub(crate) fn is_mark(c: char) -> bool {
    ascii(c).is_some_and(|meant| " {}[],\"':".contains(meant))
}

/// The place of a full-width colon after a key, in characters from 0.
pub(crate) fn colon(line: &str) -> Option<usize> {
    let at = without_comment(line).chars().position(|c| c == '：')?;
    let before: String = line.chars().take(at).collect();
    let is_key = !before.contains(':') && !before.trim().is_empty();
    is_key.then_some(at)
}

fn without_comment(line: &str) -> &str {
    let line = if line.trim_start().starts_with('#') { "" } else { line };
    line.split_once(" #").map_or(line, |(before, _)| before)
}
