//! Falls of the primary, seen by clients of every dialect: the whole right answer, or one clean error.

use koboshi_testkit::until;
use koboshi_wire::Dialect;
use serde_json::Value;

use crate::common::{Stage, ms, timeouts};
use crate::speech::{ClientView, ask, heard, of_stream, question, stage};

const TEXT: &str = "Tell me about the doll that gets back up, at length.";

/// What every client should get: the same question to a healthy provider, in a dialect of its own.
fn wanted(dialect: Dialect, stream: bool) -> ClientView {
    let stage = Stage::of(&["one/ok"]);
    let told = heard(dialect, &ask(&stage, &question(dialect, TEXT, stream)));
    assert!(told.text.len() > 40 && told.done && !told.error, "{told:?}");
    assert_eq!(told.finish.as_deref(), Some("stop"), "{dialect:?}");
    told
}

#[test]
fn a_healthy_provider_is_heard_in_every_dialect_streamed_and_whole() {
    let words = wanted(Dialect::Chat, true).text;
    for upstream in Dialect::ALL {
        let stage = stage(upstream, &["one/ok"], |_| {});
        for client in Dialect::ALL {
            for stream in [true, false] {
                let answer = ask(&stage, &question(client, TEXT, stream));
                let told = heard(client, &answer);
                assert_eq!(told.text, words, "{client:?} {upstream:?} {stream} {answer:?}");
                let translated = answer.header("x-koboshi-translated");
                assert_eq!(translated, (client != upstream).then(|| upstream.name()), "{client:?}");
            }
        }
    }
}

#[test]
fn the_cost_is_stated_in_every_dialect() {
    for dialect in [Dialect::Messages, Dialect::Responses, Dialect::Gemini] {
        for stream in [true, false] {
            let (input, output) = wanted(dialect, stream).usage.unwrap();
            assert!(input > 0 && output > 0, "{dialect:?} {stream} {input} {output}");
        }
    }
}

/// Some of Gemini's models say at every chunk that they have ended.
#[test]
fn an_end_that_is_said_at_every_chunk_ends_nothing() {
    for (cut, calls) in [(false, (1, 0)), (true, (1, 1))] {
        for client in Dialect::ALL {
            let stage = stage(Dialect::Gemini, &["one/own", "two/ok"], |config| {
                config.remedy.backoff.attempts = 1;
            });
            stage.one.set("own", move |ask| {
                let play = koboshi_sim::play(&koboshi_sim::Ask { model: "ok", ..*ask });
                let mut frames: Vec<String> = play
                    .beats
                    .map(|beat| String::from_utf8(beat.bytes.to_vec()).unwrap())
                    .map(|frame| match frame.contains("finishReason") {
                        true => frame,
                        false => frame.replacen("{\"content\"", "{\"finishReason\":\"STOP\",\"content\"", 1),
                    })
                    .collect();
                assert!(frames.iter().all(|frame| frame.contains("STOP")), "{frames:?}");
                if cut {
                    frames.truncate(4);
                }
                let beats: Vec<_> = frames
                    .into_iter()
                    .map(|frame| koboshi_sim::Beat { after: ms(0), bytes: frame.into() })
                    .collect();
                let end = if cut { koboshi_sim::End::Cut } else { play.end };
                koboshi_sim::Play { head: play.head, beats: beats.into(), end }
            });
            let answer = ask(&stage, &question(client, TEXT, true));
            let text = match client {
                // Its chunks pass as they are.
                Dialect::Gemini => answer
                    .text()
                    .lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
                    .filter_map(|data| {
                        Some(data["candidates"][0]["content"]["parts"][0]["text"].as_str()?.to_owned())
                    })
                    .collect(),
                _ => heard(client, &answer).text,
            };
            assert_eq!(text, wanted(client, true).text, "{client:?} {cut} {answer:?}");
            assert_eq!(stage.calls(), calls, "{client:?}");
        }
    }
}

/// Failures that no client may notice, whichever provider fails.
const FALLS: &[&str] = &[
    "fail-503", "rate-429?retry_after=60", "reset", "cut?after=0", "cut?after=3", "cut?after=20",
    "in-band-error?after=1", "bad-chunk", "no-done", "half",
];

/// Of those, the ones for every pair.
const BETWEEN: &[&str] = &["fail-503", "cut?after=3", "cut?after=20", "in-band-error?after=1"];

#[test]
fn what_falls_before_or_in_the_text_is_caught_in_every_pair_of_dialects() {
    for client in Dialect::ALL {
        for stream in [true, false] {
            let wanted = wanted(client, stream);
            for upstream in Dialect::ALL {
                // Between two vendors those suffice that the relay itself must catch.
                let all = client == upstream || upstream == Dialect::Chat;
                for fall in FALLS.iter().filter(|fall| all || BETWEEN.contains(fall)) {
                    let stage = stage(upstream, &[&format!("one/{fall}"), "two/ok"], |_| {});
                    let answer = ask(&stage, &question(client, TEXT, stream));
                    let told = heard(client, &answer);
                    assert_eq!(told.text, wanted.text, "{client:?} {stream} {upstream:?} {fall} {answer:?}");
                    assert!(
                        told.done && !told.error && told.finish == wanted.finish,
                        "{client:?} {upstream:?} {fall} {told:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_fallback_of_another_vendor_goes_on_where_the_first_one_broke_off() {
    for client in Dialect::ALL {
        let wanted = wanted(client, true);
        for (first, second) in
            [(client, Dialect::Chat), (Dialect::Messages, client), (Dialect::Gemini, Dialect::Responses)]
        {
            for fall in ["fail-503", "cut?after=3", "cut?after=20"] {
                let (one, two) = (stage(first, &[], |_| {}), stage(second, &[], |_| {}));
                let mixed = Stage::with(&[&format!("one/{fall}"), "two/ok"], |config| {
                    config.providers.insert("one".to_owned(), one.config.providers["one"].clone());
                    config.providers.insert("two".to_owned(), two.config.providers["two"].clone());
                });
                let told = heard(client, &ask(&mixed, &question(client, TEXT, true)));
                assert_eq!(told.text, wanted.text, "{client:?} {first:?} {second:?} {fall}");
                assert!(told.done && !told.error, "{client:?} {first:?} {second:?} {fall}");
            }
        }
    }
}

/// What is refused there is not what the client said, but what we made of it.
#[test]
fn a_refusal_of_a_translated_request_goes_to_the_next_target() {
    for (client, upstream) in [(Dialect::Messages, Dialect::Chat), (Dialect::Chat, Dialect::Gemini)] {
        for stream in [true, false] {
            let wanted = wanted(client, stream);
            let stage = stage(upstream, &["one/fail-400", "two/ok"], |_| {});
            let told = heard(client, &ask(&stage, &question(client, TEXT, stream)));
            assert_eq!((told.text, stage.calls()), (wanted.text, (1, 1)), "{client:?} {upstream:?} {stream}");
            let noted =
                stage.journal("the reason", |entry| entry.kind.as_deref() == Some("refused_translation"));
            assert_eq!(noted.data.as_ref().unwrap()["to"], upstream.name(), "{noted:?}");
        }
        // The last word is the refusal's, and nothing lesser hides it.
        let alone = stage(upstream, &["one/fail-400"], |config| {
            config.degrade.simple_model = Some("two/ok".to_owned());
        });
        // The same where others are left, but no attempt.
        let spent = stage(upstream, &["one/fail-400", "two/fail-503"], |config| {
            config.degrade.simple_model = Some("two/ok".to_owned());
            config.remedy.request.in_all = Some(1);
        });
        for stage in [alone, spent] {
            let answer = ask(&stage, &question(client, TEXT, false));
            assert_eq!((answer.status, stage.calls()), (400, (1, 0)), "{client:?} {answer:?}");
            assert_eq!(answer.header("x-koboshi-fault"), Some("invalid_request"));
        }
    }
}

#[test]
fn a_stall_in_the_text_goes_on_elsewhere_in_every_dialect() {
    for dialect in Dialect::ALL {
        for after in [0, 20] {
            let stage = stage(dialect, &[&format!("one/stall?after={after}"), "two/ok"], |config| {
                timeouts(config, "one", |limits| {
                    (limits.idle, limits.first_token) = (Some(ms(200)), Some(ms(200)));
                });
            });
            let told = heard(dialect, &ask(&stage, &question(dialect, TEXT, true)));
            assert_eq!(
                told,
                ClientView { usage: told.usage, ..wanted(dialect, true) },
                "{dialect:?} {after}"
            );
        }
    }
}

#[test]
fn alone_a_stream_that_breaks_ends_with_one_error_and_no_terminal_mark() {
    for dialect in Dialect::ALL {
        let stage = stage(dialect, &["one/cut?after=20"], |_| {});
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
        let stage = stage(dialect, &["one/stall?after=5"], |_| {});
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
            config.serve.first_byte_hold = ms(50);
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

#[test]
fn a_lesser_answer_says_what_it_is_in_its_first_frame() {
    for client in Dialect::ALL {
        for upstream in Dialect::ALL {
            let stage = stage(upstream, &["one/fail-503"], |config| {
                config.remedy.backoff.attempts = 1;
                config.degrade.simple_model = Some("two/ok".to_owned());
            });
            let answer = ask(&stage, &question(client, TEXT, true));
            assert_eq!(heard(client, &answer).text, wanted(client, true).text, "{client:?} {upstream:?}");
            let first = answer.text().lines().find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
            assert!(
                first.unwrap().contains("\"source\":\"simple\""),
                "{client:?} {upstream:?} {}",
                answer.text()
            );
        }
    }
}
