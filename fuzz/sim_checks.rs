//! What must hold of the simulated provider for any name and any body. The fuzz target calls it for hours; the ordinary
//! tests (`crates/koboshi-sim/tests/any.rs`) call the same for a moment, on stable Rust.

use std::time::Duration;

use koboshi_sim::{Ask, End, Head, Play, Tally, embed, names, play};
use serde_json::Value;

/// So much of a play is looked at.
const LOOK: usize = 3000;

/// Any bytes as a name (the first line) and a body (the rest). A first byte below 128 chooses a real name.
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
        let ask = Ask { model: &name, body, tally, ..Ask::default() };
        keeps_promises(&ask, play);
        keeps_promises(&ask, embed);
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
    if streams && ask.model.split('?').next() == Some("ok") && beats.len() < LOOK {
        let text = std::str::from_utf8(&text).expect("a healthy stream is text");
        let done = text.strip_suffix("data: [DONE]\n\n").expect("it ends with its mark");
        for frame in done.split_terminator("\n\n") {
            let data = frame.strip_prefix("data: ").expect("a frame has data");
            let chunk: Value = serde_json::from_str(data).expect("which is JSON");
            assert_eq!(chunk["object"], "chat.completion.chunk");
        }
    }
}
