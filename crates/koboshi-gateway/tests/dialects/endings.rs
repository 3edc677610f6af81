//! How answers end: what says that it ended for an error is no end, and a word that nobody knows is one.

use koboshi_sim::{Ask, Beat, End, Play};
use koboshi_wire::Dialect;
use serde_json::json;

use crate::common::ms;
use crate::own::events;
use crate::speech::{ask, of_stream, question, stage};

const TEXT: &str = "Tell me about the doll that gets back up, at length.";

/// Some of Gemini's models say at every chunk that they have ended.
fn ends_at_every_chunk(ask: &Ask<'_>, keep: usize) -> Play {
    let play = koboshi_sim::play(&Ask { model: "ok", ..*ask });
    let frames = play.beats.map(|beat| String::from_utf8(beat.bytes.to_vec()).unwrap()).map(|frame| {
        let said = frame.contains("finishReason");
        if said { frame } else { frame.replacen("{\"content\"", "{\"finishReason\":\"STOP\",\"content\"", 1) }
    });
    let beats: Vec<_> = frames.take(keep).map(|frame| Beat { after: ms(0), bytes: frame.into() }).collect();
    Play { head: play.head, beats: beats.into(), end: End::Cut }
}

#[test]
fn an_end_that_was_none_does_not_hide_the_error_behind_it() {
    let stage = stage(Dialect::Gemini, &["one/own"], |config| config.remedy.backoff.attempts = 1);
    stage.one.set("own", |ask| ends_at_every_chunk(ask, 4));
    let answer = ask(&stage, &question(Dialect::Gemini, TEXT, true));
    assert!(of_last_frame(&answer.body).error, "{answer:?}");
}

/// What the last frame of a stream of Gemini says.
fn of_last_frame(body: &[u8]) -> crate::speech::Heard {
    let text = String::from_utf8_lossy(body);
    let at = text.rfind("\n{").map_or(0, |at| at + 1);
    of_stream(Dialect::Gemini, &body[at..])
}

#[test]
fn an_answer_that_went_on_elsewhere_says_its_end_at_its_end() {
    let stage = stage(Dialect::Gemini, &["one/own", "two/ok"], |config| config.remedy.backoff.attempts = 1);
    stage.one.set("own", |ask| ends_at_every_chunk(ask, 4));
    let answer = ask(&stage, &question(Dialect::Gemini, TEXT, true));
    let last = events(&answer).pop().unwrap();
    assert_eq!(
        (&last["candidates"][0]["finishReason"], stage.calls()),
        (&json!("STOP"), (1, 1)),
        "{answer:?}"
    );
    assert_eq!(last["modelVersion"].as_str().map(|model| model == "own"), Some(false), "{last}");
}
