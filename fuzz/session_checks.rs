//! What must hold of session frames for any bytes at all. The fuzz target calls it for hours; the ordinary tests
//! (`crates/koboshi/tests/session_any.rs`) call the same for a moment, on stable Rust.

use koboshi::session::{Body, ClientFrame, Event, FrameResult, Transcript};
use serde_json::Value;

/// Any bytes as frames, one in a line: those of a client are read, those of a gateway are applied. No panic, and a reader keeps its promises.
pub(crate) fn frames(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut transcript = Transcript::default();
    for line in text.lines().take(400) {
        client_frame(line);
        if let Ok(frame) = serde_json::from_str::<Value>(line) {
            server_frame(&mut transcript, &frame);
        }
    }
}

/// A frame that can be read says the same when it is written and read again, and its id has a bound.
fn client_frame(line: &str) {
    match ClientFrame::parse(line) {
        Ok(frame) => {
            assert!(frame.id().is_none_or(|id| (1..=64).contains(&id.chars().count())));
            let again = serde_json::to_string(&frame).expect("a frame can be written");
            assert_eq!(ClientFrame::parse(&again).as_ref(), Ok(&frame));
        }
        // What is wrong can be told, and repeats no more than a part of the frame.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn server_frame(transcript: &mut Transcript, frame: &Value) {
    let before = transcript.clone();
    let applied = transcript.apply_frame(frame);
    let kind = frame.get("type").and_then(Value::as_str);
    match applied {
        FrameResult::Duplicate | FrameResult::Gap => {
            assert_eq!(*transcript, before, "nothing follows from it");
        }
        FrameResult::Stale | FrameResult::Ignored => assert_eq!(transcript.messages, before.messages),
        FrameResult::Applied => {}
    }
    if !matches!(kind, Some("session" | "snapshot")) {
        assert!(transcript.seq >= before.seq, "a cursor goes forward");
        assert_eq!(transcript.epoch, before.epoch, "an epoch begins with a snapshot");
        // The same frame once more changes nothing.
        let once = transcript.clone();
        if frame.get("seq").and_then(Value::as_u64).is_some_and(|seq| seq <= transcript.seq) {
            transcript.apply_frame(frame);
            assert_eq!(*transcript, once, "a duplicate changes nothing");
        }
    }
    // An event of a later version is passed over and never stored.
    let known =
        serde_json::from_value::<Event>(frame.clone()).ok().filter(|event| event.body != Body::Unknown);
    if let Some(event) = known {
        // What is stored of it is read again as the same.
        let again = serde_json::to_value(&event).and_then(serde_json::from_value::<Event>);
        assert_eq!(again.ok(), Some(event));
    }
}
