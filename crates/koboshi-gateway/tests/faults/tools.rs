//! Tool calls: complete, valid and checked, or not sent at all; broken ones are repaired or corrected by the model, unseen by the client.

use koboshi_config::gateway::{Commit, RouteConfig};
use koboshi_sim::{Beat, End, Head, Play};
use serde_json::{Value, json};

use crate::common::*;

/// Forms that have exactly one reading, and those that have none.
const MENDED: [&str; 4] = ["trailing-comma", "unquoted", "python", "prose"];

#[test]
fn arguments_with_one_reading_are_mended_without_asking() {
    let stage = Stage::with(&[], |config| {
        for form in MENDED {
            config.routes.insert(form.to_owned(), route(&[&format!("one/broken-tool-args?form={form}")]));
        }
    });
    for form in MENDED {
        for stream in [false, true] {
            stage.reset();
            let mut body = with_tools(stream, "look it up");
            body["model"] = form.into();
            let answer = stage.ask(&body);
            assert_calls(&answer, &body);
            assert_eq!(stage.calls(), (1, 0), "{form}, stream: {stream}");
            assert_eq!(answer.number("x-koboshi-repaired"), Some(1), "{form}, stream: {stream}");
            assert_eq!(answer.header("x-koboshi-reask"), None, "{form}");
        }
    }
}

#[test]
fn arguments_without_a_reading_are_asked_for_again_unseen() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/broken-tool-args?form=truncated", "two/ok"]);
        let mut body = with_tools(stream, "look it up");
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = stage.ask(&body);
        assert_calls_valid(&answer);
        assert_eq!(stage.calls(), (2, 0), "stream: {stream}");
        let asked = stage.one.requests();
        let again = &asked[1].body;
        assert_eq!(again["tool_choice"], json!({"type": "function", "function": {"name": "look_up"}}));
        assert_eq!(again["parallel_tool_calls"], false);
        assert_eq!(again["stream"], false);
        let messages = again["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
        let usage = answer.usage().unwrap();
        let one = stage_usage(&asked[0].body);
        assert!(
            usage["prompt_tokens"].as_u64().unwrap() > one,
            "both attempts are paid: {usage}, the first alone {one}"
        );
        assert_eq!(answer.number("x-koboshi-reask"), Some(1));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(2));
        assert_eq!(stage.breaker("one/broken-tool-args?form=truncated"), "closed");
    }
}

/// Tokens of the prompt alone.
fn stage_usage(body: &Value) -> u64 {
    let mut body = body.clone();
    body["stream"] = json!(false);
    body.as_object_mut().unwrap().remove("stream_options");
    let text = body.to_string();
    let play = koboshi_sim::play(&koboshi_sim::Ask {
        model: "ok",
        body: text.as_bytes(),
        ..koboshi_sim::Ask::default()
    });
    let answer: Vec<u8> = play.beats.flat_map(|beat| beat.bytes).collect();
    serde_json::from_slice::<Value>(&answer).unwrap()["usage"]["prompt_tokens"].as_u64().unwrap()
}

/// Calls that follow their schema; what they say may differ from the first try.
fn assert_calls_valid(answer: &Answer) {
    assert_eq!((answer.status, answer.broken, answer.error()), (200, None, None), "{answer:?}");
    assert_eq!(answer.finish().as_deref(), Some("tool_calls"), "{answer:?}");
    assert!(!answer.calls().is_empty());
    for (name, arguments) in answer.calls() {
        let read: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| panic!("{arguments}"));
        let field = if name == "look_up" { "city" } else { "note" };
        assert!(read[field].is_string() && read["count"].is_i64(), "{name} {arguments}");
    }
    assert!(!answer.is_stream() || answer.is_done());
}

#[test]
fn a_model_that_never_mends_its_call_is_replaced() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/broken-tool-args?form=truncated&always=yes", "two/ok"]);
        let body = with_tools(stream, "look it up");
        let answer = stage.ask(&body);
        assert_calls(&answer, &body);
        assert_eq!(stage.calls(), (3, 1), "two re-asks, then the next target");
    }
}

#[test]
fn alone_a_call_that_cannot_be_mended_is_a_clean_error() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/broken-tool-args?form=truncated&always=yes"]);
        let answer = stage.ask(&with_tools(stream, "look it up"));
        let error = assert_error(&answer, 502, "tool_arguments_invalid");
        assert_eq!(stage.calls(), (3, 0));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
        assert!(!answer.text().contains("city"), "half of a call is never shown: {error}");
    }
}

#[test]
fn after_text_was_seen_a_call_that_cannot_be_mended_ends_the_stream() {
    let stage = Stage::of(&["one/broken-tool-args?form=truncated&always=yes&say=5"]);
    let answer = stage.ask(&with_tools(true, "look it up"));
    assert_broken_stream(&answer, "tool_arguments_invalid");
    assert!(!answer.content().is_empty() && answer.calls().is_empty(), "{answer:?}");
}

#[test]
fn text_before_a_mended_call_is_kept_in_every_way_of_committing() {
    for commit in [Commit::First, Commit::Complete] {
        let stage = Stage::with(&[], |config| {
            let links = ["one/broken-tool-args?form=python&say=5"];
            config.routes.insert("m".to_owned(), RouteConfig { commit, ..route(&links) });
        });
        let body = with_tools(true, "look it up");
        let answer = stage.ask(&body);
        assert_calls(&answer, &body);
        let whole = Stage::of(&["one/ok?say=5"]).ask(&with_tools(false, "look it up")).content();
        assert_eq!(answer.content(), whole, "{commit:?}");
        assert!(!whole.is_empty());
        let roles = answer
            .chunks()
            .iter()
            .filter(|chunk| chunk["choices"][0]["delta"]["role"] == "assistant")
            .count();
        assert_eq!(roles, 1, "{answer:?}");
    }
}

#[test]
fn a_stream_cut_inside_a_call_shows_nothing_of_it() {
    for (say, fall) in [(0, "cut-tool"), (5, "cut-tool")] {
        let stage = Stage::of(&[&format!("one/{fall}?say={say}"), &format!("two/ok?say={say}")]);
        let body = with_tools(true, "look it up");
        let answer = stage.ask(&body);
        assert_calls(&answer, &body);
        assert_eq!(stage.calls(), (2, 1), "say {say}");
        let alone = Stage::of(&[&format!("one/{fall}?say={say}")]);
        let answer = alone.ask(&body);
        if say == 0 {
            assert_error(&answer, 502, "connection_closed");
        } else {
            assert_broken_stream(&answer, "connection_closed");
            assert!(answer.calls().is_empty(), "{answer:?}");
        }
        assert_eq!(alone.calls(), (3, 0));
    }
}

#[test]
fn of_parallel_calls_only_the_broken_one_is_asked_for_again() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/own"]);
        // The second of two calls is cut off.
        stage.one.set("own", move |ask| {
            let first = ask.tally.nth == 0;
            let play = koboshi_sim::play(&koboshi_sim::Ask { model: "ok", ..*ask });
            if !first {
                return play;
            }
            let body: Vec<u8> = play.beats.flat_map(|beat| beat.bytes.to_vec()).collect();
            let text = String::from_utf8(body).unwrap();
            let broken = if stream { without_last_pieces(&text) } else { without_end(&text) };
            let beat = koboshi_sim::Beat { after: ms(0), bytes: broken.into() };
            koboshi_sim::Play { head: play.head, beats: vec![beat].into(), end: play.end }
        });
        let body = with_tools(stream, "look it up and write it down in parallel");
        let answer = stage.ask(&body);
        assert_calls_valid(&answer);
        let healthy = healthy_calls(&body);
        let calls = answer.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(serde_json::from_str::<Value>(&calls[0].1).unwrap(), healthy[0].1, "the good one stays");
        assert_eq!(calls[1].0, healthy[1].0);
        assert_eq!(stage.calls(), (2, 0), "{calls:?}, healthy: {healthy:?}");
        let again = &stage.one.requests()[1].body;
        assert_eq!(again["tool_choice"]["function"]["name"], "write_down");
    }
}

/// The stream without the last pieces of arguments.
fn without_last_pieces(text: &str) -> String {
    let mut frames: Vec<&str> = text.split_inclusive("\n\n").collect();
    let last = frames.iter().rposition(|frame| frame.contains("\"tool_calls\":[")).unwrap();
    frames.drain(last - 1..=last);
    frames.concat()
}

/// The whole answer whose last call has lost its end.
fn without_end(text: &str) -> String {
    let mut answer: Value = serde_json::from_str(text).unwrap();
    let call = answer["choices"][0]["message"]["tool_calls"].as_array_mut().unwrap().last_mut().unwrap();
    let arguments = call["function"]["arguments"].as_str().unwrap();
    let half = arguments[..arguments.len() - 6].to_owned();
    call["function"]["arguments"] = half.into();
    answer.to_string()
}

#[test]
fn good_calls_pass_as_they_came() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/ok"]);
        let body = with_tools(stream, "look it up and write it down in parallel");
        let answer = stage.ask(&body);
        assert_calls(&answer, &body);
        assert_eq!(answer.calls().len(), 2);
        assert_eq!(answer.header("x-koboshi-repaired"), None);
    }
}

#[test]
fn a_call_cut_by_the_output_limit_is_never_shown_or_completed() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/ok"]);
        let mut body = with_tools(stream, "look it up");
        body["max_tokens"] = 2.into();
        let answer = stage.ask(&body);
        assert_error(&answer, 502, "tool_arguments_invalid");
        assert_eq!(stage.calls(), (2, 0), "not a third time with the same limit");
    }
}

/// An answer with one call in the old form, as a stream or whole.
fn old_form(stream: bool, arguments: &str) -> Play {
    let call = json!({"name": "look_up", "arguments": arguments});
    let (kind, bytes) = if stream {
        let chunk = |delta: Value, finish: Option<&str>| {
            let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
            format!("data: {chunk}\n\n")
        };
        let (begin, end) = arguments.split_at(arguments.len() / 2);
        let frames = [
            chunk(json!({"role": "assistant", "content": null}), None),
            chunk(json!({"function_call": {"name": "look_up", "arguments": begin}}), None),
            chunk(json!({"function_call": {"arguments": end}}), None),
            chunk(json!({}), Some("function_call")),
            "data: [DONE]\n\n".to_owned(),
        ];
        ("text/event-stream", frames.concat())
    } else {
        let message = json!({"role": "assistant", "content": null, "function_call": call});
        let answer = json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "own",
            "choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]});
        ("application/json", answer.to_string())
    };
    let headers = vec![("content-type", kind.to_owned())];
    Play {
        head: Head::Answer { after: ms(0), status: 200, headers },
        beats: vec![Beat { after: ms(0), bytes: bytes.into() }].into(),
        end: End::Clean,
    }
}

#[test]
fn a_client_of_the_old_form_gets_its_mended_call_in_the_old_form() {
    for (broken, sent) in [("{\"city\": \"Aizu\", \"count\": 2,}", 1), ("{\"city\": \"Aizu\", \"cou", 2)] {
        for stream in [true, false] {
            let stage = Stage::of(&["one/own"]);
            stage.one.set("own", move |ask| {
                let arguments =
                    if ask.tally.nth == 0 { broken } else { "{\"city\": \"Aizu\", \"count\": 2}" };
                old_form(stream && ask.tally.nth == 0, arguments)
            });
            let mut body = with_tools(stream, "look it up");
            let tools = body.as_object_mut().unwrap().remove("tools").unwrap();
            body["functions"] =
                tools.as_array().unwrap().iter().map(|tool| tool["function"].clone()).collect();
            let answer = stage.ask(&body);
            assert_eq!((answer.status, answer.broken, answer.error()), (200, None, None), "{answer:?}");
            assert_eq!(stage.calls(), (sent, 0));
            assert!(!answer.text().contains("tool_calls"), "{answer:?}");
            let calls: Vec<Value> = if stream {
                assert!(answer.is_done());
                let chunks = answer.chunks();
                chunks.iter().map(|chunk| chunk["choices"][0]["delta"]["function_call"].clone()).collect()
            } else {
                vec![answer.json()["choices"][0]["message"]["function_call"].clone()]
            };
            let text = |field: &str| calls.iter().filter_map(|call| call[field].as_str()).collect::<String>();
            assert_eq!(text("name"), "look_up", "{answer:?}");
            assert_eq!(
                serde_json::from_str::<Value>(&text("arguments")).unwrap(),
                json!({"city": "Aizu", "count": 2})
            );
            assert_eq!(answer.finish().as_deref(), Some("function_call"));
        }
    }
}
