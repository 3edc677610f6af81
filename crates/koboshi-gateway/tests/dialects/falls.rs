//! Falls of the primary, seen by clients of every dialect: the whole right answer, or one clean error.

use koboshi_testkit::until;
use koboshi_wire::Dialect;

use crate::common::{Stage, ms, timeouts};
use crate::speech::{Heard, ask, heard, of_stream, question};

const TEXT: &str = "Tell me about the doll that gets back up, at length.";

/// What everybody should hear: the same question to a healthy provider, in a dialect of its own.
fn wanted(dialect: Dialect, stream: bool) -> Heard {
    let stage = Stage::of(&["one/ok"]);
    let told = heard(dialect, &ask(&stage, &question(dialect, TEXT, stream)));
    assert!(told.text.len() > 40 && told.done && !told.error, "{told:?}");
    assert_eq!(told.finish.as_deref(), Some("stop"), "{dialect:?}");
    told
}

#[test]
fn a_healthy_provider_is_heard_in_every_dialect_streamed_and_whole() {
    let words: Vec<String> = Dialect::ALL
        .into_iter()
        .flat_map(|dialect| [true, false].map(|stream| wanted(dialect, stream).text))
        .collect();
    assert!(words.iter().all(|text| *text == words[0]), "the same words for all: {words:?}");
}

#[test]
fn the_cost_is_told_in_every_dialect() {
    for dialect in [Dialect::Messages, Dialect::Responses, Dialect::Gemini] {
        for stream in [true, false] {
            let (input, output) = wanted(dialect, stream).usage.unwrap();
            assert!(input > 0 && output > 0, "{dialect:?} {stream} {input} {output}");
        }
    }
}

#[test]
fn what_falls_before_or_in_the_text_is_caught_in_every_dialect() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let wanted = wanted(dialect, stream);
            for fall in [
                "fail-503", "rate-429?retry_after=60", "reset", "cut?after=0", "cut?after=3", "cut?after=20",
                "in-band-error?after=1", "bad-chunk", "no-done", "fail-500?times=1", "refused", "half",
            ] {
                let stage = Stage::of(&[&format!("one/{fall}"), "two/ok"]);
                let answer = ask(&stage, &question(dialect, TEXT, stream));
                let told = heard(dialect, &answer);
                assert_eq!(told.text, wanted.text, "{dialect:?} {stream} {fall} {answer:?}");
                assert!(
                    told.done && !told.error && told.finish == wanted.finish,
                    "{dialect:?} {fall} {told:?}"
                );
            }
        }
    }
}

#[test]
fn a_stall_in_the_text_goes_on_elsewhere_in_every_dialect() {
    for dialect in Dialect::ALL {
        for after in [0, 20] {
            let stage = Stage::with(&[&format!("one/stall?after={after}"), "two/ok"], |config| {
                timeouts(config, "one", |limits| {
                    (limits.idle, limits.first) = (Some(ms(200)), Some(ms(200)));
                });
            });
            let told = heard(dialect, &ask(&stage, &question(dialect, TEXT, true)));
            assert_eq!(told, Heard { usage: told.usage, ..wanted(dialect, true) }, "{dialect:?} {after}");
        }
    }
}

#[test]
fn alone_a_stream_that_breaks_ends_with_one_error_and_no_terminal_mark() {
    for dialect in Dialect::ALL {
        let stage = Stage::of(&["one/cut?after=20"]);
        let answer = ask(&stage, &question(dialect, TEXT, true));
        assert_eq!(answer.status, 200, "{answer:?}");
        let told = of_stream(dialect, &answer.body);
        assert!(told.error, "{dialect:?} {answer:?}");
        assert!(!told.text.is_empty() && told.finish.as_deref() != Some("stop"), "{dialect:?} {told:?}");
        let text = answer.text();
        for mark in ["[DONE]", "message_stop", "response.completed", "\"STOP\""] {
            assert!(!text.contains(mark), "{dialect:?}: a cut answer never looks whole: {text}");
        }
    }
}

#[test]
fn a_client_that_goes_away_lets_go_of_the_provider_in_every_dialect() {
    for dialect in Dialect::ALL {
        let stage = Stage::of(&["one/stall?after=5"]);
        let (path, body) = question(dialect, TEXT, true);
        let mut client = stage.client();
        client.send("POST", &path, &[], body.to_string().as_bytes());
        until("it is asked", || (stage.one.all_calls() == 1).then_some(()));
        drop(client);
        until("it is let go", || (stage.one.cancelled() == 1).then_some(()));
    }
}

#[test]
fn a_long_silence_is_kept_open_as_each_dialect_wants_it() {
    for (dialect, sign, never) in [
        (Dialect::Chat, ": keep-alive", ""),
        (Dialect::Messages, "event: ping", ": keep"),
        (Dialect::Responses, "response.in_progress", ": keep"),
        (Dialect::Gemini, "\r\n", ": keep"),
    ] {
        let stage = Stage::with(&["one/slow-first?after=600ms", "two/ok"], |config| {
            config.serve.hold = ms(50);
            config.serve.keep_alive_every = ms(50);
        });
        let answer = ask(&stage, &question(dialect, TEXT, true));
        let told = heard(dialect, &answer);
        assert_eq!(told.text, wanted(dialect, true).text, "{dialect:?}");
        assert!(told.done && !told.error, "{dialect:?}");
        let text = answer.text();
        assert!(text.matches(sign).count() >= 3, "{dialect:?} {text}");
        assert!(never.is_empty() || !text.contains(never), "{dialect:?} {text}");
        let opened =
            ["event: message_start", "event: response.created"].map(|mark| text.matches(mark).count());
        assert!(opened.iter().all(|count| *count <= 1), "{dialect:?}: an answer is opened once: {text}");
    }
}

#[test]
fn a_stream_of_gemini_may_be_one_list() {
    let stage = Stage::of(&["one/cut?after=3&times=1", "two/ok"]);
    let (_, body) = question(Dialect::Gemini, TEXT, true);
    let answer = ask(&stage, &("/v1beta/models/m:streamGenerateContent".to_owned(), body));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let list = answer.json();
    let texts = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|chunk| chunk["candidates"][0]["content"]["parts"][0]["text"].as_str());
    assert_eq!(texts.collect::<String>(), wanted(Dialect::Gemini, true).text);
    assert_eq!(list[list.as_array().unwrap().len() - 1]["candidates"][0]["finishReason"], "STOP");
}
