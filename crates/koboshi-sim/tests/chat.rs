//! The healthy provider: its dialect, its words, its tools.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use crate::common::{ask, got, perform, streaming, user, weather, with};
use koboshi_sim::{Head, Tally};
use serde_json::{Value, json};

#[test]
fn a_whole_answer_has_everything_that_sdks_read() {
    let tally = Tally { wall: 1_790_000_000, ..Tally::default() };
    let read_answer = perform(ask("ok", &user("hello"), tally));
    assert_eq!(read_answer.status, 200);
    assert_eq!(read_answer.header("content-type"), Some("application/json"));
    assert!(read_answer.header("x-request-id").is_some());
    let answer = read_answer.json();
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!((&answer["object"], &answer["model"]), (&json!("chat.completion"), &json!("ok")));
    assert_eq!(answer["created"], 1_790_000_000);
    let choice = &answer["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    assert_eq!(choice["message"]["role"], "assistant");
    let usage = &answer["usage"];
    assert!(usage["completion_tokens"].as_u64().unwrap() >= 40);
    assert_eq!(
        usage["total_tokens"].as_u64().unwrap(),
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
}

#[test]
fn a_stream_says_the_same_as_a_whole_answer() {
    let whole = got("ok", &user("hello"));
    let stream = got("ok", &streaming(user("hello")));
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(stream.text(), whole.text());
    assert_eq!(stream.finish().as_deref(), Some("stop"));
    assert!(stream.is_done());
    let chunks = stream.chunks();
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": "", "refusal": null})
    );
    assert!(chunks.len() > 40, "{}", chunks.len());
    for chunk in &chunks {
        assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &chunks[0]["id"]));
        assert!(chunk.get("usage").is_none(), "usage only if asked for");
    }
    assert_eq!(stream.beats.len(), chunks.len() + 1, "a piece for every frame");
}

#[test]
fn usage_of_a_stream_comes_last_and_only_if_asked_for() {
    let body = with(streaming(user("hello")), json!({"stream_options": {"include_usage": true}}));
    let stream = got("ok", &body);
    let chunks = stream.chunks();
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"], got("ok", &user("hello")).json()["usage"]);
    assert!(before.iter().all(|chunk| chunk["usage"] == Value::Null && chunk.get("usage").is_some()));
}

#[test]
fn the_words_depend_on_the_conversation_and_not_on_the_model() {
    let text = |model: &str, words: &str| got(model, &user(words)).text();
    assert_eq!(text("ok", "hello"), text("no-done?gap=5ms", "hello"));
    assert_ne!(text("ok", "hello"), text("ok", "hello!"));
    let nth = |nth| perform(ask("ok", &user("hello"), Tally { nth, ..Tally::default() })).text();
    assert_eq!(nth(0), nth(7), "nor on how often it was asked");
    assert!(text("ok", "hello").is_ascii());
    assert!(text("ok", "こんにちは").contains('。'));
    let parts = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]});
    assert_eq!(got("ok", &parts).text(), text("ok", "hello"), "parts are their text");
}

#[test]
fn chunks_and_tokens_are_counted() {
    let ten = got("ok?chunks=10", &streaming(user("hello")));
    assert_eq!(ten.chunks().len(), 12, "role, ten pieces, finish");
    assert_eq!(ten.finish().as_deref(), Some("stop"));
    let cut = got("ok", &with(user("hello"), json!({"max_tokens": 5})));
    assert_eq!(cut.finish().as_deref(), Some("length"));
    assert_eq!(cut.json()["usage"]["completion_tokens"], 5);
    assert!(got("ok", &user("hello")).text().starts_with(&cut.text()));
    let cut = got("ok", &with(streaming(user("hello")), json!({"max_completion_tokens": 5})));
    assert_eq!((cut.finish().as_deref(), cut.chunks().len()), (Some("length"), 7));
    let enough = got("ok?chunks=5", &with(user("hello"), json!({"max_tokens": 5})));
    assert_eq!(enough.finish().as_deref(), Some("stop"), "just enough is not cut");
}

#[test]
fn pauses_are_stated_not_made() {
    let play = ask("ok?latency=2s&gap=30ms", &streaming(user("hello")), Tally::default());
    let Head::Answer { after, .. } = &play.head else { panic!() };
    assert_eq!(after.as_secs(), 2);
    let read_answer = perform(play);
    assert!(read_answer.beats[0].0.is_zero(), "time to first content holds no gap");
    assert!(read_answer.beats[1..].iter().all(|(after, _)| after.as_millis() == 30));
}

#[test]
fn ten_thousand_chunks_are_made_one_by_one() {
    let mut play = ask("ok?chunks=100000", &streaming(user("hello")), Tally::default());
    assert!(play.beats.by_ref().take(3).count() == 3);
    assert!(std::mem::size_of_val(&play.beats) < 64);
    assert_eq!(play.beats.count(), 100_000);
}

#[test]
fn an_answer_in_json_follows_its_schema() {
    let object = got("ok", &with(user("hello"), json!({"response_format": {"type": "json_object"}})));
    assert!(serde_json::from_str::<Value>(&object.text()).unwrap().is_object());
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    }, "required": ["name", "tags"], "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
    let read_answer = got("ok", &with(streaming(user("hello")), json!({"response_format": &format})));
    let value: Value = serde_json::from_str(&read_answer.text()).unwrap();
    assert!(jsonschema::is_valid(&schema, &value), "{value}");
    assert!(read_answer.chunks().len() > 4, "in pieces");
    let begun = json!({"messages": [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": read_answer.text()[..9]},
    ]});
    let rest = got("ok", &with(begun, json!({"response_format": format})));
    assert_eq!(format!("{}{}", &read_answer.text()[..9], rest.text()), read_answer.text());
}

#[test]
fn a_question_with_tools_is_answered_by_a_call() {
    let body = with(user("How is the weather?"), weather());
    for read_answer in [got("ok", &body), got("ok", &streaming(body.clone()))] {
        assert_eq!(read_answer.finish().as_deref(), Some("tool_calls"));
        assert_eq!(read_answer.text(), "");
        let calls = read_answer.calls();
        assert_eq!((calls.len(), &*calls[0].0), (1, "get_weather"));
        let arguments: Value = serde_json::from_str(&calls[0].1).unwrap();
        assert!(jsonschema::is_valid(&weather()["tools"][0]["function"]["parameters"], &arguments));
    }
    assert_eq!(got("ok", &body).calls(), got("fin?p=0", &streaming(body)).calls());
}

#[test]
fn the_caller_chooses_the_tool_or_none() {
    let two = json!({"tools": [
        {"type": "function", "function": {"name": "first"}},
        {"type": "function", "function": {"name": "second", "parameters": {}}},
    ]});
    let called = |body: Value, more: Value| -> Vec<String> {
        got("ok", &with(body, more)).calls().into_iter().map(|(name, _)| name).collect()
    };
    let body = || with(user("go"), two.clone());
    assert_eq!(called(body(), json!({})), ["first"]);
    assert_eq!(called(with(user("use second"), two.clone()), json!({})), ["second"]);
    assert_eq!(called(body(), json!({"tool_choice": "none"})), [""; 0]);
    let forced = json!({"tool_choice": {"type": "function", "function": {"name": "second"}}});
    assert_eq!(called(body(), forced), ["second"]);
    assert_eq!(got("ok", &body()).calls()[0].1, "{}", "no parameters are an empty object");
    let parallel = || with(user("do it in parallel"), two.clone());
    assert_eq!(called(parallel(), json!({})), ["first", "second"]);
    assert_eq!(called(parallel(), json!({"parallel_tool_calls": false})), ["first"]);
    let alone = got("ok", &with(user("parallel, please"), weather())).calls();
    assert_eq!(alone.len(), 2);
    assert_ne!(alone[0], alone[1]);
}

fn after_a_result(result: &str) -> Value {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]);
    with(json!({"messages": messages}), weather())
}

#[test]
fn a_tools_result_is_answered_in_words_that_mention_it() {
    let read_answer = got("ok", &streaming(after_a_result("sunny, 21 degrees")));
    assert_eq!(read_answer.finish().as_deref(), Some("stop"));
    assert!(
        read_answer.text().starts_with("get_weather answered: sunny, 21 degrees."),
        "{}",
        read_answer.text()
    );
    let again = got("ok", &with(after_a_result("rain"), json!({"tool_choice": "required"})));
    assert_eq!(again.calls().len(), 1, "unless a call is required");
}

#[test]
fn words_may_come_before_a_call() {
    let body = with(user("How is the weather?"), weather());
    let read_answer = got("ok?say=4", &streaming(body.clone()));
    assert_eq!(
        read_answer
            .chunks()
            .iter()
            .filter(|chunk| chunk["choices"][0]["delta"]["content"].is_string())
            .count(),
        4
    );
    assert_eq!((read_answer.calls().len(), read_answer.finish().as_deref()), (1, Some("tool_calls")));
    assert_eq!(read_answer.text(), got("ok?say=4", &body).text());
}

#[test]
fn a_limit_cuts_arguments_too() {
    let body = with(with(user("How is the weather?"), weather()), json!({"max_tokens": 1}));
    let read_answer = got("ok", &body);
    assert_eq!(read_answer.finish().as_deref(), Some("length"));
    assert!(serde_json::from_str::<Value>(&read_answer.calls()[0].1).is_err());
}

#[test]
fn an_assistants_beginning_is_continued_where_it_ends() {
    let whole = got("ok", &user("hello")).text();
    for at in [1, 7, 30, whole.len()] {
        let messages =
            json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": whole[..at]}]);
        let rest = got("ok", &streaming(json!({"messages": messages}))).text();
        assert_eq!(format!("{}{rest}", &whole[..at]), whole);
    }
    let other = json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Never."}]});
    assert_eq!(got("ok", &other).text(), whole, "another beginning is not gone on with");
    let refused = got("ok?prefill=refuse", &other);
    assert_eq!(refused.status, 400);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("prefill"));
    assert_eq!(got("ok?prefill=refuse", &user("hello")).status, 200);
}

#[test]
fn a_prompt_can_script_an_agent() {
    let script = "Do this:\n  koboshi-sim: call write {\"path\": \"a\"}\nkoboshi-sim: call done\nThanks.";
    let tools = json!({"tools": [{"type": "function", "function": {"name": "get_weather"}}]});
    let mut messages = vec![json!({"role": "user", "content": script})];
    let mut seen = Vec::new();
    for turn in 0..4 {
        let read_answer = got("ok", &with(json!({"messages": messages}), tools.clone()));
        let Some((name, arguments)) = read_answer.calls().pop() else {
            assert_eq!(read_answer.finish().as_deref(), Some("stop"));
            break;
        };
        let id = format!("c{turn}");
        let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "fine"}));
        seen.push((name, arguments));
    }
    assert_eq!(
        seen,
        [("write".to_owned(), "{\"path\": \"a\"}".to_owned()), ("done".to_owned(), "{}".to_owned())]
    );
    messages.push(json!({"role": "user", "content": "and now?"}));
    let read_answer = got("ok", &with(json!({"messages": messages}), tools));
    assert!(read_answer.calls().is_empty(), "a scripted agent does only what the script says");
}

#[test]
fn wrong_requests_are_refused_with_the_reason() {
    let refused = |body: &str| {
        let read_answer = perform(koboshi_sim::play(&koboshi_sim::Ask {
            model: "ok",
            body: body.as_bytes(),
            ..koboshi_sim::Ask::default()
        }));
        assert_eq!(read_answer.status, 400, "{body}");
        read_answer.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(refused("{").contains("parse"));
    assert!(refused("{}").contains("messages"));
    assert!(refused(r#"{"messages":[]}"#).contains("messages"));
    assert!(refused(r#"{"messages":[{"role":"user","content":7}]}"#).contains("content"));
    assert!(refused(r#"{"messages":[{"role":"user","content":"a"}],"n":2}"#).contains("'n'"));
    assert!(refused(&"[".repeat(100_000)).contains("parse"));
}
