//! The arguments of calls in a history: read if they can be read, else emptied, and the result says so.
//!
//! Nothing is made up: the missing part of a cut call is not known, and sending the cut text again breaks every server that parses it. The
//! model reads what happened to its call in the result.

use std::borrow::Cow;

use koboshi::args::{ArgsPolicy, Finish, Verdict, check};
use serde_json::value::RawValue;

use crate::form::Call;

/// The note quotes at most this much of the arguments.
const MAX_QUOTE_CHARS: usize = 200;

/// What was done to the arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgumentRepair {
    /// Nothing.
    Sound,
    /// They are JSON now.
    Read,
    /// They are gone; the result is to begin with this.
    Emptied(String),
}

/// Mends the arguments of a call.
pub(super) fn mend(call: &mut Call<'_>) -> ArgumentRepair {
    if call.free_text || is_object(&call.arguments) {
        return ArgumentRepair::Sound;
    }
    if call.arguments.trim().is_empty() {
        call.arguments = Cow::Borrowed("{}");
        return ArgumentRepair::Read;
    }
    if let Verdict::Repaired { json, .. } =
        check(&call.arguments, None, Finish::Unknown, &ArgsPolicy::default())
        && is_object(&json)
    {
        call.arguments = Cow::Owned(json);
        return ArgumentRepair::Read;
    }
    let quote = call.arguments.get(..call.arguments.floor_char_boundary(MAX_QUOTE_CHARS)).unwrap_or_default();
    let more = if quote.len() < call.arguments.len() { " ..." } else { "" };
    let note = format!(
        "[koboshi] The arguments of this call could not be read and are left out above. They began: {quote}{more}"
    );
    call.arguments = Cow::Borrowed("{}");
    ArgumentRepair::Emptied(note)
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(arguments: &str, free_text: bool) -> (String, ArgumentRepair) {
        let mut call = Call { arguments: arguments.into(), free_text, ..Call::default() };
        let mended = mend(&mut call);
        (call.arguments.into_owned(), mended)
    }

    #[test]
    fn one_reading_is_taken_and_none_is_made_up() {
        assert_eq!(mended(" {\"a\": 1 }", false), (" {\"a\": 1 }".to_owned(), ArgumentRepair::Sound));
        assert_eq!(mended("  ", false), ("{}".to_owned(), ArgumentRepair::Read));
        assert_eq!(mended("{'a': 1,}", false), ("{\"a\":1}".to_owned(), ArgumentRepair::Read));
        assert_eq!(mended("anything", true), ("anything".to_owned(), ArgumentRepair::Sound));
        for cut in ["{\"a\": \"b", "null", "[1,2]", "{\"a\":1}{\"b\":2}", "\u{0}"] {
            let (arguments, ArgumentRepair::Emptied(note)) = mended(cut, false) else { panic!("{cut}") };
            assert!(arguments == "{}" && note.contains(cut), "{cut}: {note}");
        }
        let (_, ArgumentRepair::Emptied(note)) = mended(&"é".repeat(500), false) else { panic!() };
        assert!(note.len() < 350 && note.ends_with(" ..."));
    }
}
