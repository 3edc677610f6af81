//! What must hold of the simulated provider for any name and any body. The fuzz target calls it for hours; the ordinary
//! tests (`crates/koboshi-sim/tests/any.rs`) call the same for a moment, on stable Rust.

use std::time::Duration;

use bytes::Bytes;
use koboshi_sim::{Ask, End, Head, Play, Tally, count, embed, endpoint, names, play};
use koboshi_wire::any::{Events, answer};
use koboshi_wire::gemini::array;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::Step;
use koboshi_wire::{Dialect, Malformed};
use serde_json::Value;

/// How much of a play is read.
const LOOK: usize = 3000;

/// Any bytes as a name (the first line) and a body (the rest), in every dialect. A first byte below 128 chooses a real name.
pub(crate) fn ask(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == b'\n');
    let name = halves.next().unwrap_or_default();
    let body = halves.next().unwrap_or_default();
    let name = match name.split_first() {
        Some((first, rest)) if *first < 128 => {
            let known = names()[usize::from(*first) % names().len()];
            format!("{}{}", known.example, String::from_utf8_lossy(rest))
        }
        _ => String::from_utf8_lossy(name).into_owned(),
    };
    for nth in [0, 1, 6] {
        let tally = Tally { nth, elapsed: Duration::from_secs(nth * 17), wall: 1_790_000_000 };
        // Later calls differ by what the name makes of their number, which is the same in all.
        for dialect in Dialect::ALL.into_iter().filter(|dialect| nth == 0 || *dialect == Dialect::Chat) {
            let ask = Ask { model: &name, dialect, body, tally, ..Ask::default() };
            keeps_promises(&ask, play);
            if nth == 0 {
                keeps_promises(&ask, count);
                keeps_promises(&Ask { stream: Some(true), ..ask }, play);
            }
            if dialect == Dialect::Gemini {
                keeps_promises(&Ask { stream: Some(true), list: true, ..ask }, play);
            }
        }
        keeps_promises(&Ask { model: &name, body, tally, ..Ask::default() }, embed);
    }
    if let Some(found) = std::str::from_utf8(data).ok().and_then(endpoint) {
        assert!(found.model.is_none_or(|model| !model.is_empty()));
    }
}

fn keeps_promises(ask: &Ask<'_>, play: fn(&Ask<'_>) -> Play) {
    let (one, other) = (play(ask), play(ask));
    assert_eq!((&one.head, one.end), (&other.head, other.end), "the same ask gives the same play");
    let beats: Vec<_> = one.beats.take(LOOK).collect();
    assert!(beats.iter().eq(&other.beats.take(LOOK).collect::<Vec<_>>()));
    assert!(beats.iter().all(|beat| !beat.bytes.is_empty()), "a piece of nothing would end a chunked body");
    let Head::Answer { status, headers, .. } = one.head else {
        assert!(beats.is_empty());
        return;
    };
    assert!((200..600).contains(&status));
    for (name, value) in &headers {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value:?}");
    }
    let text: Vec<u8> = beats.iter().flat_map(|beat| beat.bytes.iter().copied()).collect();
    if status != 200 {
        let error: Value = serde_json::from_slice(&text).expect("an error is JSON");
        assert!(error["error"]["message"].is_string() && text.len() < 10_000 && one.end == End::Clean);
        return;
    }
    let streams = headers.iter().any(|(_, value)| value.starts_with("text/event-stream"));
    if ask.model.split('?').next() == Some("ok") && beats.len() < LOOK {
        reads_back(ask, streams, &text);
    }
}

/// The reader of its dialect can read a healthy provider's answer to its end.
fn reads_back(ask: &Ask<'_>, streams: bool, text: &[u8]) {
    let is_list = text.starts_with(b"[");
    if !streams && !is_list {
        let whole: Value = serde_json::from_slice(text).expect("a whole answer is JSON");
        // Counts and vectors are no answers.
        if whole.get("id").is_some() || whole.get("candidates").is_some() {
            let read = answer::read(ask.dialect, text).expect("which can be read");
            assert!(
                !read.error
                    && read.choices.len() == 1
                    && read.choices[0].finish.is_some()
                    && read.usage.is_some()
            );
        }
        return;
    }
    let mut events = Events::of(ask.dialect);
    let (mut done, mut finishes) = (false, 0);
    let mut take = |step: Result<Step<'_>, Malformed>| {
        let step = step.expect("a healthy frame can be read");
        assert!(!done && !step.error, "nothing comes after the end, and no error");
        finishes += step.finish.len();
        done |= step.done;
    };
    if is_list {
        let mut framer = array::Framer::new(1 << 24);
        framer.push(Bytes::copy_from_slice(text));
        while let Some(frame) = framer.next_frame() {
            if let Some(data) = frame.expect("short").data().expect("text") {
                take(events.read(None, data));
            }
        }
        assert!(framer.finish().is_none(), "the list is closed");
    } else {
        let mut framer = Framer::new(1 << 24);
        framer.push(Bytes::copy_from_slice(text));
        while let Some(frame) = framer.next_frame() {
            let frame = frame.expect("short");
            if let Some(data) = events.data(&frame).expect("text") {
                take(events.read(frame.event(), &data));
            }
        }
        assert!(framer.finish().is_none(), "every frame is closed");
    }
    assert!(done && finishes == 1, "it ends, once");
}
