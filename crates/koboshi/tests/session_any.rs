//! Frames of sessions that are any bytes, or almost right: what the fuzz target checks, for a moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/session_checks.rs"]
mod session_checks;

use proptest::prelude::*;
use serde_json::Value;

/// The frames of the shared vectors, a line each.
fn vectors() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/session");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let lines = files.flat_map(|path| {
        let vector: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let steps = vector.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
        steps.into_iter().filter_map(|step| step.get("frame").map(ToString::to_string))
    });
    lines.collect()
}

proptest! {
    #[test]
    fn any_bytes_are_survived(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        session_checks::frames(&data);
    }

    #[test]
    fn frames_in_any_order_with_any_byte_changed_are_survived(
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let lines = vectors();
        let picked: Vec<&str> = picks.iter().map(|pick| lines[pick.index(lines.len())].as_str()).collect();
        let mut data = picked.join("\n").into_bytes();
        if let Some((at, byte)) = change {
            let at = at.index(data.len());
            data[at] = byte;
        }
        session_checks::frames(&data);
    }
}

/// The fuzz target found it: the end of a turn that waits, which does not fit, took the place of the answer that was running.
#[test]
fn an_end_that_does_not_fit_leaves_the_answer_of_another_turn() {
    let frames = r#"{"type":"accepted","seq":1,"id":"c-1","turn":1,"content":"one?"}
{"type":"accepted","seq":2,"id":"c-2","turn":2,"content":"two?","queued":true}
{"type":"content","seq":3,"turn":1,"attempt":1,"at":0,"data":"one"}
{"type":"done","seq":4,"turn":2,"attempt":1,"message":"m_2","reason":"stop","chars":3}"#;
    session_checks::frames(frames.as_bytes());
}

/// The same for a `rewind` to a place that the finished answer does not have.
#[test]
fn a_rewind_that_does_not_fit_leaves_the_finished_answer() {
    let frames = r#"{"type":"accepted","seq":1,"id":"c-1","turn":1,"content":"one?"}
{"type":"content","seq":2,"turn":1,"attempt":1,"at":0,"data":"a"}
{"type":"done","seq":3,"turn":1,"attempt":1,"message":"m_1","reason":"stop","chars":1}
{"type":"rewind","seq":4,"turn":1,"attempt":2,"to":3,"reason":"connection_closed"}"#;
    session_checks::frames(frames.as_bytes());
}
