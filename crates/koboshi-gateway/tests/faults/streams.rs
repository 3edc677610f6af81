//! Falls in the middle of a stream, after the client has seen content: the same text goes on, or the stream ends with one error.

use bytes::Bytes;
use koboshi_config::gateway::{Commit, ProviderKind};
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_testkit::until;
use serde_json::json;

use crate::common::*;

/// After how much of the answer a fall comes: the role has gone, then some text, then most of it.
const EARLY_AND_LATE: [u64; 3] = [2, 20, 45];

fn short_idle(config: &mut koboshi_config::Config) {
    timeouts(config, "one", |limits| limits.idle = Some(ms(400)));
}

fn prefills(config: &mut koboshi_config::Config, provider: &str) {
    model(config, &format!("{provider}/*"), |facts| facts.prefill = Some(true));
}

/// A provider that streams these frames in one piece, and then ends like this.
fn streams(frames: &[String], end: End) -> Play {
    let bytes = Bytes::from(frames.concat());
    Play {
        head: Head::Answer {
            after: ms(0),
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
        },
        beats: Beats::from(vec![Beat { after: ms(0), bytes }]),
        end,
    }
}

fn text(content: &str) -> String {
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
        "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

fn stop() -> String {
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    format!("data: {chunk}\n\n")
}

#[test]
fn a_cut_is_resumed_by_a_restart_of_the_same_text() {
    let cases: Vec<String> = EARLY_AND_LATE
        .iter()
        .flat_map(|after| {
            [
                format!("cut?after={after}"),
                format!("cut?after={after}&bytes=30"),
                format!("fin?after={after}"),
                format!("bad-chunk?after={after}"),
                format!("in-band-error?after={after}"),
            ]
        })
        .collect();
    let cases: Vec<String> = cases.into_iter().chain(["half".to_owned()]).collect();
    let stage = Stage::with(&[], |config| {
        for fall in &cases {
            config.routes.insert(fall.clone(), route(&[&format!("one/{fall}"), "two/ok"]));
        }
    });
    for fall in cases {
        stage.reset();
        let mut body = chat(true);
        body["model"] = fall.clone().into();
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(stage.calls(), (2, 1), "{fall}: one restart on the same target, then the next");
        let ids: std::collections::BTreeSet<_> =
            answer.chunks().iter().map(|chunk| chunk["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{fall}: one answer has one id: {ids:?}");
        let models: Vec<_> = answer.chunks().iter().map(|chunk| chunk["model"].to_string()).collect();
        assert_eq!(models.last().unwrap(), "\"ok\"", "{fall}: the model that really answered: {models:?}");
    }
}

#[test]
fn a_cut_that_passes_is_resumed_on_the_same_target() {
    let stage = Stage::of(&["one/cut?after=20&times=1", "two/ok"]);
    let body = chat(true);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 0));
}

#[test]
fn a_stall_goes_to_the_next_target_at_once() {
    for after in EARLY_AND_LATE {
        let stage = Stage::with(&[&format!("one/stall?after={after}"), "two/ok"], short_idle);
        let body = chat(true);
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 1));
        until("the request to it is cancelled", || (stage.one.cancelled() == 1).then_some(()));
    }
}

#[test]
fn alone_a_stream_that_stays_broken_ends_with_one_error() {
    for (fall, kind) in [
        ("cut?after=20", "connection_closed"),
        ("fin?after=20", "connection_closed"),
        ("stall?after=20", "timeout"),
        ("bad-chunk?after=20", "response_invalid"),
        ("in-band-error?after=20", "internal"),
    ] {
        let stage = Stage::with(&[&format!("one/{fall}")], short_idle);
        let body = chat(true);
        let answer = stage.ask(&body);
        assert_broken_stream(&answer, kind);
        let whole = healthy_text(&body);
        assert!(whole.starts_with(&answer.content()) && answer.content().len() < whole.len(), "{fall}");
        assert_eq!(stage.calls(), (3, 0), "{fall}");
    }
}

#[test]
fn frames_before_a_broken_one_in_the_same_block_are_not_lost() {
    let stage = Stage::of(&["one/own", "two/own"]);
    stage.one.set("own", |_| {
        streams(&[text("The doll "), text("falls "), "data: {\"a\":\n\n".into()], End::Clean)
    });
    stage.two.set("own", |_| {
        streams(
            &[text("The doll "), text("falls "), text("and rises."), stop(), "data: [DONE]\n\n".into()],
            End::Clean,
        )
    });
    let answer = stage.ask(&chat(true));
    assert_eq!(answer.content(), "The doll falls and rises.", "{answer:?}");
    assert!(answer.is_done());
    assert_eq!(stage.calls(), (2, 1));
}

#[test]
fn a_fallback_that_refuses_prefill_is_asked_again_without() {
    let stage = Stage::with(&["one/cut?after=20", "two/ok?prefill=refuse"], |config| prefills(config, "two"));
    let body = chat(true);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 2), "the refusal, and the restart");
    let asked = stage.two.requests();
    let last = |seen: usize| asked[seen].body["messages"].as_array().unwrap().last().unwrap()["role"].clone();
    assert_eq!((last(0), last(1)), (json!("assistant"), json!("user")));
    stage.reset();
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 1), "it is known now");
    assert_eq!(stage.breaker("two/ok?prefill=refuse"), "closed");
}

#[test]
fn a_fallback_that_prefills_goes_on_from_the_text() {
    for after in [10, 20, 45] {
        let stage =
            Stage::with(&[&format!("one/cut?after={after}"), "two/ok"], |config| prefills(config, "two"));
        let body = chat(true);
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(stage.calls(), (2, 1));
        let asked = stage.two.requests();
        let last = asked[0].body["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["role"], "assistant", "{last}");
        assert!(healthy_text(&body).starts_with(last["content"].as_str().unwrap()));
    }
}

#[test]
fn another_text_is_never_joined() {
    let stage = Stage::of(&["one/cut?after=20", "two/own"]);
    stage.two.set("own", |_| {
        streams(
            &[text("Quite another answer "), text("than that one."), stop(), "data: [DONE]\n\n".into()],
            End::Clean,
        )
    });
    let body = chat(true);
    let answer = stage.ask(&body);
    assert_broken_stream(&answer, "connection_closed");
    assert!(healthy_text(&body).starts_with(&answer.content()), "{answer:?}");
    assert_eq!(stage.calls(), (2, 1));
    let error = answer.error().unwrap();
    let attempts = error["koboshi"]["attempts"].as_array().unwrap();
    let named: Vec<_> = attempts.iter().map(|one| (one["target"].as_str(), one["sub"].as_str())).collect();
    assert_eq!(
        named.last(),
        Some(&(Some("two/own"), Some("differs"))),
        "every target that was asked: {error}"
    );
    assert_eq!(named.len(), 3, "{error}");
    assert!(error["message"].as_str().unwrap().contains("answered differently"), "{error}");
}

/// `one` dies after the words "The answer".
fn dies_after_two_words(stage: &Stage) {
    stage.one.set("own", |_| streams(&[text("The "), text("answer")], End::Cut));
}

#[test]
fn the_simulated_provider_continues_no_answer_of_another() {
    let stage = Stage::of(&["one/own", "sim/ok"]);
    dies_after_two_words(&stage);
    let answer = stage.ask(&chat(true));
    assert_broken_stream(&answer, "connection_closed");
    assert_eq!(answer.content(), "The answer");
}

#[test]
fn a_relay_of_claude_is_given_no_beginning_to_continue() {
    let stage = Stage::with(&["one/own", "two/claude-sonnet-4-5"], |config| {
        let two = config.providers.get_mut("two").unwrap();
        two.kind = ProviderKind::Anthropic;
    });
    dies_after_two_words(&stage);
    let answer = stage.ask(&chat(true));
    assert_broken_stream(&answer, "connection_closed");
    assert_eq!(answer.content(), "The answer");
    let asked = stage.two.requests();
    assert_eq!(asked[0].body["messages"].as_array().unwrap().last().unwrap()["role"], "user");
}

#[test]
fn a_target_that_is_said_to_prefill_and_starts_over_is_noticed() {
    let stage = Stage::with(&["one/own", "two/own"], |config| prefills(config, "two"));
    stage.one.set("own", |_| streams(&[text("The doll falls "), text("seven")], End::Cut));
    stage.two.set("own", |_| {
        streams(&[text("The doll falls and "), text("rises."), stop(), "data: [DONE]\n\n".into()], End::Clean)
    });
    let answer = stage.ask(&chat(true));
    assert_broken_stream(&answer, "connection_closed");
    assert_eq!(answer.content(), "The doll falls seven");
}

#[test]
fn an_empty_second_answer_is_none_and_the_next_one_is_asked() {
    let stage = Stage::of(&["one/own", "two/ok"]);
    stage.one.set("own", |ask| {
        let model = if ask.tally.nth == 0 { "cut?after=20" } else { "empty" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    let body = chat(true);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 1));
}

#[test]
fn a_shorter_answer_is_another_answer() {
    let stage = Stage::of(&["one/cut?after=20", "two/own"]);
    let begin = healthy_text(&chat(true)).chars().take(5).collect::<String>();
    stage.two.set("own", move |_| streams(&[text(&begin), stop(), "data: [DONE]\n\n".into()], End::Clean));
    assert_broken_stream(&stage.ask(&chat(true)), "connection_closed");
}

#[test]
fn commit_complete_shows_no_fault_of_a_stream_even_to_another_text() {
    for fall in
        ["cut?after=20", "stall?after=20", "bad-chunk?after=20", "in-band-error?after=20", "fin?after=45"]
    {
        let stage = Stage::with(&[], |config| {
            short_idle(config);
            let links = [&*format!("one/{fall}"), "two/own"];
            config.routes.insert(
                "m".to_owned(),
                koboshi_config::gateway::RouteConfig { commit: Commit::Complete, ..route(&links) },
            );
        });
        stage.two.set("own", |_| {
            streams(&[text("Quite another "), text("answer."), stop(), "data: [DONE]\n\n".into()], End::Clean)
        });
        let answer = stage.ask(&chat(true));
        assert_eq!(
            (answer.content().as_str(), answer.is_done()),
            ("Quite another answer.", true),
            "{fall}: {answer:?}"
        );
        assert_eq!(answer.error(), None);
        assert_eq!(stage.two.all_calls(), 1);
        assert_eq!(answer.header("x-koboshi-target"), Some("two/own"));
    }
}

#[test]
fn usage_is_asked_for_and_given_only_to_those_who_asked() {
    let stage = Stage::of(&["one/ok"]);
    let mut body = chat(true);
    let without = stage.ask(&body);
    assert_whole(&without, &body);
    assert_eq!(without.usage(), None);
    assert_eq!(stage.one.requests()[0].body["stream_options"]["include_usage"], true);
    body["stream_options"] = json!({"include_usage": true});
    let with = stage.ask(&body);
    let usage = with.usage().unwrap();
    assert!(usage["prompt_tokens"].as_u64().unwrap() > 0 && usage["completion_tokens"].as_u64().unwrap() > 0);
    let last = with.chunks().pop().unwrap();
    assert_eq!(last["choices"], json!([]), "after the last choice");
}

#[test]
fn of_several_choices_every_one_must_end() {
    let chunk = |index: u32, content: &str, reason: Option<&str>| {
        let delta = if content.is_empty() { json!({}) } else { json!({"content": content}) };
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
            "choices": [{"index": index, "delta": delta, "finish_reason": reason}]});
        format!("data: {chunk}\n\n")
    };
    let begun = vec![chunk(0, "one", None), chunk(1, "two", None), chunk(0, "", Some("stop"))];
    let whole = [begun.clone(), vec![chunk(1, "", Some("stop")), "data: [DONE]\n\n".into()]].concat();
    for end in [End::Clean, End::Cut] {
        let stage = Stage::of(&["one/own"]);
        let begun = begun.clone();
        stage.one.set("own", move |_| streams(&begun, end));
        let mut body = chat(true);
        body["n"] = 2.into();
        let answer = stage.ask(&body);
        assert!(answer.error().is_some() && !answer.is_done(), "a cut answer never looks whole: {answer:?}");
        let whole = whole.clone();
        stage.one.set("own", move |_| streams(&whole, End::Clean));
        let answer = stage.ask(&body);
        assert!(answer.error().is_none() && answer.is_done(), "{answer:?}");
    }
}

#[test]
fn signs_of_life_are_no_content() {
    // Comments and empty frames go on for ever; the text does not.
    let beat = |frame: &str, after: u64| Beat { after: ms(after), bytes: Bytes::from(frame.to_owned()) };
    let empty = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    for begun in [false, true] {
        let stage = Stage::with(&["one/own", "two/ok"], |config| {
            timeouts(config, "one", |limits| {
                (limits.first_token, limits.idle) = (Some(ms(400)), Some(ms(400)));
            });
        });
        let body = chat(true);
        let first = healthy_text(&body).chars().take(9).collect::<String>();
        stage.one.set("own", move |_| {
            let mut beats = vec![beat(empty, 0)];
            if begun {
                beats.push(beat(&text(&first), 0));
            }
            for _ in 0..300 {
                beats.extend([beat(": alive\n\n", 50), beat(empty, 50)]);
            }
            Play { beats: beats.into(), ..streams(&[], End::Stall) }
        });
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 1), "begun: {begun}");
        let asked = stage.two.requests()[0].at;
        assert!(asked < ms(10_000), "it was not believed for {asked:?}");
    }
}

/// A frame of a choice.
fn frame(index: u32, delta: &serde_json::Value, reason: Option<&str>) -> String {
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
        "choices": [{"index": index, "delta": delta, "finish_reason": reason}]});
    format!("data: {chunk}\n\n")
}

/// A provider that says one thing at once and the rest after a while.
fn in_two_parts(first: &[String], pause: u64, rest: &[String], end: End) -> Play {
    let beat = |frames: &[String], after: u64| Beat { after: ms(after), bytes: frames.concat().into() };
    Play { beats: vec![beat(first, 0), beat(rest, pause)].into(), ..streams(&[], end) }
}

/// Tokens of answers that were counted for the model.
fn counted_tokens(stage: &Stage) -> f64 {
    let name = "gen_ai_client_token_usage_total{gen_ai_provider_name=\"one\",gen_ai_request_model=\"own\",\
                gen_ai_token_type=\"output\"}";
    gauge(&stage.get("/metrics").text(), name).unwrap_or(0.0)
}

#[test]
fn no_client_waits_for_a_cost_that_only_we_asked_for() {
    let usage = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
        "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}});
    let rest = [format!("data: {usage}\n\n"), "data: [DONE]\n\n".to_owned()];
    let stage = Stage::of(&["one/own"]);
    stage.one.set("own", move |_| {
        in_two_parts(&[text("The doll "), text("rises."), stop()], 800, &rest, End::Clean)
    });
    // A machine that is busy may look too late once or twice, but not always.
    let mut done_first = 0;
    for nth in 1..=5 {
        let answer = stage.ask(&chat(true));
        assert_eq!((answer.content().as_str(), answer.is_done()), ("The doll rises.", true), "{answer:?}");
        assert_eq!(answer.usage(), None);
        done_first += usize::from(counted_tokens(&stage) < 7.0 * f64::from(nth));
        koboshi_testkit::until("it is counted all the same", || {
            (counted_tokens(&stage) >= 7.0 * f64::from(nth)).then_some(())
        });
    }
    assert!(done_first > 0, "the client waited for what it did not ask for");
    assert_eq!((stage.calls(), stage.one.cancelled()), ((5, 0), 0), "and its connection is used again");
    assert_eq!(stage.one.open_connections(), 1);
    let mut body = chat(true);
    body["stream_options"] = json!({"include_usage": true});
    assert_eq!(stage.ask(&body).usage().unwrap()["completion_tokens"], 7, "who asks for it gets it");
}

#[test]
fn an_answer_without_a_mark_or_a_cost_ends_at_once_and_its_connection_is_closed() {
    let stage = Stage::of(&["one/own"]);
    stage.one.set("own", |_| streams(&[text("The doll "), text("rises."), stop()], End::Stall));
    for _ in 0..5 {
        let answer = stage.ask(&chat(true));
        assert_eq!((answer.content().as_str(), answer.is_done()), ("The doll rises.", true), "{answer:?}");
    }
    // A machine that is busy may be slow once or twice, but not always.
    let asked = stage.one.requests();
    let soonest = asked.windows(2).map(|pair| pair[1].at - pair[0].at).min().unwrap();
    assert!(soonest < ms(900), "the client waited for nothing: {soonest:?}");
    koboshi_testkit::until("all are let go", || (stage.one.cancelled() == 5).then_some(()));
    assert_eq!(stage.breaker("one/own"), "closed");
}

#[test]
fn an_end_is_believed_only_where_nothing_can_follow() {
    let done = "data: [DONE]\n\n".to_owned();
    let call = |index: u32| {
        json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "type": "function",
            "function": {"name": "look_up", "arguments": "{\"city\": \"Aizu\", \"count\": 2}"}}]})
    };
    // A second choice that begins late; a reason in every frame; a call after the reason.
    let late_choice = (
        vec![frame(0, &json!({"content": "one"}), None), frame(0, &json!({}), Some("stop"))],
        vec![frame(1, &json!({"content": "two"}), None), frame(1, &json!({}), Some("stop")), done.clone()],
        "two",
    );
    let reasons = (
        vec![frame(0, &json!({"content": "one "}), Some("stop"))],
        vec![frame(0, &json!({"content": "two"}), None), done.clone()],
        "two",
    );
    let calls = (
        vec![frame(0, &call(0), None), frame(0, &json!({}), Some("tool_calls"))],
        vec![frame(0, &call(1), None), done],
        "call_1",
    );
    for (first, rest, last) in [late_choice, reasons, calls] {
        let stage = Stage::of(&["one/own"]);
        let mut body = with_tools(true, "look it up");
        if first[0].contains("\"one\"") {
            body["n"] = 2.into();
        }
        stage.one.set("own", move |_| in_two_parts(&first, 100, &rest, End::Clean));
        let answer = stage.ask(&body);
        assert!(answer.text().contains(last) && answer.is_done(), "{last}: {answer:?}");
        assert_eq!(stage.calls(), (1, 0));
    }
}

/// A provider that answers whole, though a stream was asked for; its head may say either.
fn answers_whole(kind: &'static str, body: &str) -> Play {
    let headers = vec![("content-type", kind.to_owned())];
    // In two pieces, so that the first one is no JSON yet.
    let (first, rest) = body.split_at(body.len() / 2);
    let beat = |text: &str| Beat { after: ms(0), bytes: Bytes::from(text.to_owned()) };
    Play {
        head: Head::Answer { after: ms(0), status: 200, headers },
        beats: vec![beat(first), beat(rest)].into(),
        end: End::Clean,
    }
}

/// The whole answer of the simulated provider to this, as text.
fn whole_of(model: &str, body: &serde_json::Value) -> String {
    let mut whole = body.clone();
    whole["stream"] = false.into();
    whole.as_object_mut().unwrap().remove("stream_options");
    let text = whole.to_string();
    let ask = koboshi_sim::Ask { model, body: text.as_bytes(), ..koboshi_sim::Ask::default() };
    String::from_utf8(koboshi_sim::play(&ask).beats.flat_map(|beat| beat.bytes).collect()).unwrap()
}

#[test]
fn a_whole_answer_in_place_of_a_stream_becomes_one() {
    for kind in ["application/json", "text/event-stream"] {
        for (asks, commit) in [(false, Commit::First), (true, Commit::First), (true, Commit::Complete)] {
            let stage = Stage::with(&[], |config| {
                let route = koboshi_config::gateway::RouteConfig { commit, ..route(&["one/own", "two/ok"]) };
                config.routes.insert("m".to_owned(), route);
            });
            let mut body = chat(true);
            let answer = whole_of("ok", &body);
            stage.one.set("own", move |_| answers_whole(kind, &answer));
            if asks {
                body["stream_options"] = json!({"include_usage": true});
            }
            let answer = stage.ask(&body);
            assert_whole(&answer, &body);
            assert!(answer.is_stream() && answer.usage().is_some() == asks, "{answer:?}");
            let chunks = answer.chunks();
            assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
            for chunk in &chunks {
                assert_eq!(chunk["object"], "chat.completion.chunk");
                assert!(chunk["id"] == chunks[0]["id"] && chunk["model"] == chunks[0]["model"], "{chunk}");
            }
            assert_eq!(stage.calls(), (1, 0), "{kind}");
            assert_eq!(stage.breaker("one/own"), "closed");
        }
    }
}

#[test]
fn tool_calls_of_a_whole_answer_in_place_of_a_stream_pass_the_firewall() {
    for (fall, sent) in [
        ("ok", 1),
        ("broken-tool-args?form=python", 1),
        ("broken-tool-args?form=truncated", 2),
        ("ok?say=5", 1),
    ] {
        let stage = Stage::of(&["one/own"]);
        let question = if fall == "ok" { "look it up and write it down in parallel" } else { "look it up" };
        let body = with_tools(true, question);
        let answer = whole_of(fall, &body);
        stage.one.set("own", move |ask| match ask.tally.nth {
            0 => answers_whole("application/json", &answer),
            _ => koboshi_sim::play(&koboshi_sim::Ask { model: "ok", ..*ask }),
        });
        let answer = stage.ask(&body);
        assert_eq!((answer.status, answer.error(), answer.is_done()), (200, None, true), "{answer:?}");
        assert!(!answer.calls().is_empty(), "{fall}");
        for (_, arguments) in answer.calls() {
            serde_json::from_str::<serde_json::Value>(&arguments).unwrap();
        }
        assert_eq!(answer.finish().as_deref(), Some("tool_calls"));
        assert_eq!(stage.calls(), (sent, 0), "{fall}");
        if fall.starts_with("ok") {
            assert_calls(&answer, &body);
        }
    }
}

#[test]
fn what_is_no_answer_in_place_of_a_stream_is_none() {
    for wrong in [
        "{\"error\":{\"message\":\"The server is overloaded\",\"code\":503}}",
        "{\"object\":\"chat.completion\",\"choices\":[]}",
        "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}",
        "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"The doll",
    ] {
        let stage = Stage::of(&["one/own", "two/ok"]);
        stage.one.set("own", move |_| answers_whole("application/json", wrong));
        let body = chat(true);
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(stage.two.all_calls(), 1, "{wrong}");
        assert!(answer.header("x-koboshi-fault").is_some());
    }
}

/// What follows a long pause is silence, also where a part of the answer had come: the same target would be silent again.
#[test]
fn a_stream_that_dies_after_a_long_pause_goes_elsewhere_at_once() {
    let stage = Stage::with(&["one/pausing", "two/ok"], |_| {});
    stage.one.set("pausing", |_| {
        let beat = |after: u64, text: &str| Beat { after: ms(after), bytes: Bytes::from(text.to_owned()) };
        // Frames that only keep the connection alive are no content.
        let beats = vec![beat(0, &text("I have")), beat(2600, ": alive\n\n"), beat(2600, ": alive\n\n")];
        Play { beats: Beats::from(beats), ..streams(&[], End::Cut) }
    });
    drop(stage.ask(&chat(true)));
    assert_eq!((stage.one.all_calls(), stage.two.all_calls()), (1, 1));
}
