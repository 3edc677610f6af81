//! Marks answers of the simulated provider in their bodies: `"koboshi":{"simulated":true}`.
//!
//! A made-up answer must never pass for a real one. There is a header too, but logs and databases keep bodies. The mark is where all our
//! notes about an answer are: at the top of a whole answer and of the first chunk of a stream, inside `message` or `response`
//! where the dialect's events wrap the answer. The official SDKs keep or ignore unknown fields.
//!
//! Frames of the simulated provider are forwarded unchanged, so they are marked before they are parsed. Answers that are translated into
//! another dialect get their mark from the writer ([`StreamWriter`](crate::stream::writer::StreamWriter)).

use bytes::Bytes;
use koboshi_wire::Dialect;
use koboshi_wire::any::answer;
use serde_json::{Value, json};

use crate::http::upstream::mark::SIMULATED;
use crate::shared::disclosure::Disclosure;

/// The note on an answer.
pub(crate) fn note() -> Value {
    json!({ SIMULATED: true })
}

/// A whole answer, marked if the simulated provider made it up.
pub(crate) fn marked(dialect: Dialect, body: Bytes, facts: &Disclosure) -> Bytes {
    if facts.simulated { answer::with_note(dialect, &body, &note()) } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::upstream::mark::StreamMark;

    #[test]
    fn frames_are_marked_where_notes_on_an_answer_stand() {
        for (dialect, pieces, wanted) in [
            (
                Dialect::Chat,
                vec!["data: {\"id\":1}\n\n", "data: {\"id\":2}\n\n"],
                "data: {\"koboshi\":{\"simulated\":true},\"id\":1}\n\ndata: {\"id\":2}\n\n",
            ),
            (
                Dialect::Messages,
                vec!["data: {\"type\":\"message_start\",\"message\":{\"id\":1}}\n\n"],
                "data: {\"type\":\"message_start\",\"message\":{\"koboshi\":{\"simulated\":true},\"id\":1}}\n\n",
            ),
            (
                Dialect::Responses,
                vec![
                    "data: {\"response\":{\"id\":1}}\n\n", "data: {\"x\":1}\n\n",
                    "data: {\"response\":{\"id\":1}}\n\n",
                ],
                "data: {\"response\":{\"koboshi\":{\"simulated\":true},\"id\":1}}\n\ndata: {\"x\":1}\n\n\
                 data: {\"response\":{\"koboshi\":{\"simulated\":true},\"id\":1}}\n\n",
            ),
            (Dialect::Gemini, vec!["data: {}\n\n"], "data: {}\n\n"),
        ] {
            let mut mark = StreamMark::of(dialect);
            let said: Vec<u8> = pieces.into_iter().flat_map(|piece| mark.add(Bytes::from(piece))).collect();
            assert_eq!(String::from_utf8(said).unwrap(), wanted, "{dialect:?}");
        }
    }
}
