//! Notes of the guard that came back: a model repeated one, or a transcript was kept behind the gateway.
//!
//! They are known by the guard's mark at the beginning of a line. In a result the note was added at the end, so all from there on is ours; in
//! an answer it ends with its paragraph. A user may quote one: what users write is left alone.

use std::borrow::Cow;

use koboshi::guard::NOTE_MARK;

use super::Mends;
use crate::form::{Part, Turn};

/// Takes notes out of an answer's text. Whether there were any.
pub(super) fn drop_from_text(text: &mut Cow<'_, str>) -> bool {
    let mut kept = String::new();
    let mut at = 0;
    while let Some(start) = mark(text, at) {
        kept.push_str(text.get(at..start).unwrap_or_default());
        let rest = text.get(start..).unwrap_or_default();
        at = rest.find("\n\n").map_or(text.len(), |length| start + length + 2);
    }
    let found = at > 0;
    if found {
        kept.push_str(text.get(at..).unwrap_or_default());
        kept.truncate(kept.trim_end().len());
        *text = Cow::Owned(kept);
    }
    found
}

/// Takes notes out of the results of a turn.
pub(super) fn drop_from_results(turn: &mut Turn<'_>, from: usize, mends: &mut Mends) {
    for part in &mut turn.parts {
        let Part::Outcome(outcome) = part else { continue };
        outcome.parts.retain_mut(|part| {
            let Part::Text(text) = part else { return true };
            let Some(start) = mark(text, 0) else { return true };
            mends.note("drop_own_note", from);
            let length = text.get(..start).unwrap_or_default().trim_end().len();
            match text {
                Cow::Borrowed(text) => *text = text.get(..length).unwrap_or_default(),
                Cow::Owned(text) => text.truncate(length),
            }
            !text.is_empty()
        });
    }
}

/// Where a line begins with the mark, from this place on.
fn mark(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let begins_line = |at: usize| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
    rest.match_indices(NOTE_MARK).map(|(at, _)| from + at).find(|at| begins_line(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_end_with_their_paragraph() {
        for (text, left) in [
            ("[koboshi guard] Again.", ""),
            ("a\n\n[koboshi guard] Again.\nMore.\n\nb", "a\n\nb"),
            ("[koboshi guard] one\n\n[koboshi guard] two\n\nx", "x"),
            ("see [koboshi guard] x", "see [koboshi guard] x"),
            ("a\n[koboshi guard] x", "a"),
        ] {
            let mut found = Cow::Borrowed(text);
            assert_eq!(drop_from_text(&mut found), text != left, "{text}");
            assert_eq!(found, left);
        }
    }
}
