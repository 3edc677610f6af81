//! How answers end: a finish reason that means an error is no end, and an unknown one is.

use koboshi_sim::{Ask, Beat, End, Play};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::ms;
use crate::own::{chunk, events, gives, part, streams, streams_after};
use crate::speech::{ask, heard, of_stream, question, stage};

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
fn of_last_frame(body: &[u8]) -> crate::speech::ClientView {
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

/// Words for an end that are an error, in the dialects that have them.
const ERRORS: &[(Dialect, &str)] = &[
    (Dialect::Chat, "error_finish"),
    (Dialect::Chat, "insufficient_system_resource"),
    (Dialect::Chat, "network_error"),
    (Dialect::Gemini, "MALFORMED_RESPONSE"),
];

/// A stream that ends with this word, after this text.
fn ends_with(dialect: Dialect, text: &str, word: &str) -> Vec<String> {
    let is_chat = dialect == Dialect::Chat;
    let mut frames = Vec::new();
    if !text.is_empty() {
        frames.push(if is_chat {
            chunk(&json!({"content": text}), None)
        } else {
            part(&json!({"text": text}), None)
        });
    }
    frames.push(if is_chat { chunk(&json!({}), Some(word)) } else { part(&json!({"text": ""}), Some(word)) });
    frames
}

fn whole(dialect: Dialect, text: &str, word: &str) -> Value {
    match dialect {
        Dialect::Chat => json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "own",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": word}]}),
        _ => {
            json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0, "finishReason": word}],
            "modelVersion": "own", "responseId": "r1"})
        }
    }
}

#[test]
fn an_answer_that_ended_for_an_error_is_no_answer() {
    for (dialect, word) in ERRORS.iter().copied() {
        for (text, stream) in [("", true), ("", false), ("Half a", false)] {
            let stage = stage(dialect, &["one/own", "two/ok"], |_| {});
            stage.one.set("own", move |_| match stream {
                true => streams(ends_with(dialect, text, word)),
                false => gives(&whole(dialect, text, word)),
            });
            let answer = ask(&stage, &question(dialect, TEXT, stream));
            let told = heard(dialect, &answer);
            assert_eq!(told.finish.as_deref(), Some("stop"), "{word} {stream} {text:?} {answer:?}");
            assert!(stage.calls().1 == 1 && told.text.len() > 40, "{word} {stream} {text:?} {answer:?}");
        }
    }
}

#[test]
fn an_answer_that_ends_for_an_error_after_its_text_goes_on_or_ends_with_one_error() {
    for (dialect, word) in ERRORS.iter().copied() {
        let healthy = stage(dialect, &["one/ok"], |_| {});
        let wanted = heard(dialect, &ask(&healthy, &question(dialect, TEXT, true))).text;
        for chain in [&["one/own", "two/ok"][..], &["one/own"][..]] {
            let stage = stage(dialect, chain, |config| config.remedy.backoff.attempts = 1);
            let begun = wanted[..20].to_owned();
            stage.one.set("own", move |_| {
                let pieces = ends_with(dialect, &begun, word).into_iter().map(|frame| (0, frame)).collect();
                streams_after(0, pieces, End::Clean)
            });
            let answer = ask(&stage, &question(dialect, TEXT, true));
            let told = of_stream(dialect, &answer.body);
            if chain.len() > 1 {
                assert_eq!((told.text, told.error), (wanted.clone(), false), "{word} {answer:?}");
            } else {
                assert!(told.error && !answer.text().contains("[DONE]"), "{word} {answer:?}");
                assert!(!answer.text().contains(word), "{word} {answer:?}");
            }
        }
    }
}

/// Vendors make up new words for their ends. They are no reason to break an answer that is whole.
#[test]
fn an_unknown_finish_reason_is_an_end() {
    for (dialect, word) in
        [(Dialect::Chat, "eos_token"), (Dialect::Gemini, "SOMETHING_NEW"), (Dialect::Gemini, "OTHER")]
    {
        for stream in [true, false] {
            let stage = stage(dialect, &["one/own", "two/ok"], |_| {});
            stage.one.set("own", move |_| match stream {
                true => streams(ends_with(dialect, "Seven times", word)),
                false => gives(&whole(dialect, "Seven times", word)),
            });
            let answer = ask(&stage, &question(dialect, TEXT, stream));
            let told = heard(dialect, &answer);
            assert_eq!(
                (told.text.as_str(), told.finish.as_deref()),
                ("Seven times", Some(word)),
                "{answer:?}"
            );
            assert_eq!(stage.calls(), (1, 0), "{word} {stream}");
        }
    }
}

/// How each dialect says that a filter ended an answer.
fn filter_word(dialect: Dialect, body: &str) -> bool {
    let word = match dialect {
        Dialect::Chat => r#""finish_reason":"content_filter""#,
        Dialect::Messages => r#""stop_reason":"refusal""#,
        Dialect::Responses => r#""reason":"content_filter""#,
        Dialect::Gemini => r#""finishReason":"SAFETY""#,
    };
    body.replace(": ", ":").contains(word)
}

#[test]
fn a_filter_that_ended_an_answer_is_a_finish_reason_in_every_pairing() {
    for upstream in Dialect::ALL {
        for client in Dialect::ALL {
            for stream in [false, true] {
                for (after, is_empty) in [(6, false), (1, true)] {
                    let link = format!("one/filter?after={after}");
                    let stage = stage(upstream, &[&link, "two/ok"], |_| {});
                    let answer = ask(&stage, &question(client, TEXT, stream));
                    let case = format!("{upstream:?} {client:?} {stream} {after} {answer:?}");
                    let told = heard(client, &answer);
                    assert_eq!(told.finish.as_deref(), Some("content_filter"), "{case}");
                    assert!(!told.error && (told.done || client == Dialect::Gemini), "{case}");
                    assert_eq!(told.text.is_empty(), is_empty, "{case}");
                    assert!(filter_word(client, &answer.text()), "{case}");
                    assert_eq!(stage.calls(), (1, 0), "{case}");
                }
            }
        }
    }
}

/// Google refuses a prompt with a good status and no candidate.
#[test]
fn a_prompt_that_gemini_blocked_is_reported_as_gemini_does() {
    for stream in [false, true] {
        let stage = stage(Dialect::Gemini, &["one/filter-400", "two/ok"], |_| {});
        let answer = ask(&stage, &question(Dialect::Gemini, TEXT, stream));
        assert_eq!((answer.status, stage.calls()), (200, (1, 0)), "{answer:?}");
        assert!(answer.text().contains(r#""blockReason":"PROHIBITED_CONTENT""#), "{answer:?}");
        for client in [Dialect::Chat, Dialect::Messages, Dialect::Responses] {
            let answer = ask(&stage, &question(client, TEXT, stream));
            assert!(filter_word(client, &answer.text()), "{client:?} {answer:?}");
        }
    }
}

/// Some relays write the error of their provider where the text should be.
#[test]
fn an_error_that_stands_in_the_text_is_known_by_its_words() {
    let told = r#"{"message":"Too many tokens, please wait before trying again."}"#;
    for stream in [true, false] {
        let stage = stage(Dialect::Chat, &["one/own"], |config| config.remedy.backoff.attempts = 1);
        stage.one.set("own", move |_| match stream {
            true => streams(ends_with(Dialect::Chat, told, "error_finish")),
            false => gives(&whole(Dialect::Chat, told, "error_finish")),
        });
        let answer = ask(&stage, &question(Dialect::Chat, TEXT, stream));
        assert!(answer.text().contains("rate_limited"), "{stream} {answer:?}");
    }
}

/// Nothing is learned of a key from what a model says about keys.
#[test]
fn the_words_of_a_model_are_no_error_whatever_they_are_about() {
    let told = "If your API key has expired or your budget is exceeded, look at your billing.";
    for stream in [true, false] {
        let stage = stage(Dialect::Chat, &["one/own"], |config| config.remedy.backoff.attempts = 1);
        stage.one.set("own", move |_| match stream {
            true => streams(ends_with(Dialect::Chat, told, "network_error")),
            false => gives(&whole(Dialect::Chat, told, "network_error")),
        });
        let answer = ask(&stage, &question(Dialect::Chat, TEXT, stream));
        let text = answer.text();
        for kind in ["quota_exceeded", "unauthorized"] {
            assert!(!text.contains(kind), "{stream} {answer:?}");
        }
    }
}
