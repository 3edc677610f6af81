//! Text outside the object that may be a part of it: `limit: 5` beside it is a member, and `filter: {…}` is one member
//! of something that is no JSON.
//!
//! Prose is left out without asking, so what is looked for here must not be prose: a name at the beginning of a line or
//! after a comma, and a colon or an equals sign. If the schema declares the name, it is a member. Without a schema only
//! a name right before the object counts, unless it is one that arguments are announced with, and a member that
//! follows the object after a comma.

use std::ops::Range;

use super::lexis::{Mark, bare_key_end, blank_end, mark};
use super::schema::ToolSchema;

/// Names that announce the arguments as a whole.
const LABELS: &[&str] = &[
    "action_input", "answer", "args", "arguments", "call", "data", "function_call", "input", "inputs",
    "json", "output", "parameters", "params", "payload", "result", "tool_call", "tool_input",
];

/// Where a member without quotation marks begins in a part of the text that was left out.
pub(super) fn bare_member(text: &str, outside: &Range<usize>, schema: Option<&ToolSchema>) -> Option<usize> {
    let piece = text.get(outside.clone()).unwrap_or_default();
    let beginnings = piece.char_indices().filter(|(_, letter)| matches!(letter, '\n' | ',' | ';' | '>'));
    let beginnings = beginnings.map(|(place, letter)| (place + letter.len_utf8(), letter));
    let mut seen = None;
    std::iter::once((0, '\n')).chain(beginnings).find_map(|(place, before)| {
        // A flood of line breaks is passed over once, not once for each.
        if seen.is_some_and(|seen| outside.start + place <= seen) {
            return None;
        }
        let begin = past_bullet(text, outside.start + place);
        seen = Some(begin);
        let end = bare_key_end(text, begin);
        let name = text.get(begin..end).filter(|name| !name.is_empty() && end <= outside.end)?;
        let (found, length, _) = mark(text, blank_end(text, end).0)?;
        if !matches!(found, Mark::Colon | Mark::Equals | Mark::Arrow) {
            return None;
        }
        let meant = match schema {
            Some(schema) => schema.declares(name),
            None => {
                let value = blank_end(text, blank_end(text, end).0 + length).0;
                let opens = matches!(mark(text, value), Some((Mark::OpenObject, ..)));
                let follows = before == ',' && outside.start > 0 && place == 1;
                let small = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                follows || (opens && small && !LABELS.contains(&name))
            }
        };
        meant.then_some(begin)
    })
}

/// Past white space and the sign of a list.
fn past_bullet(text: &str, at: usize) -> usize {
    let begin = blank_end(text, at).0;
    let bullet = text.get(begin..).is_some_and(|rest| rest.starts_with("- ") || rest.starts_with("* "));
    if bullet { blank_end(text, begin + 1).0 } else { begin }
}
