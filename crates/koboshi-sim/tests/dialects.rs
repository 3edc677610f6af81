//! One provider, four dialects: the same words in each, in the vendor's own form, read back by the wire's readers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use crate::common::{Got, perform, user, weather, with};
use koboshi_sim::{Ask, Tally, count, play};
use koboshi_testkit::dialect::{ReadAnswer, body, read_body};
use koboshi_wire::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    Stream,
    /// Gemini's stream as one list.
    List,
}

fn ways(dialect: Dialect) -> Vec<Way> {
    if dialect == Dialect::Gemini {
        vec![Way::Whole, Way::Stream, Way::List]
    } else {
        vec![Way::Whole, Way::Stream]
    }
}

/// What comes for a body in this dialect.
fn got(model: &str, dialect: Dialect, way: Way, body: &impl ToString) -> Got {
    let text = body.to_string();
    let ask = Ask {
        model,
        dialect,
        stream: Some(way != Way::Whole),
        list: way == Way::List,
        body: text.as_bytes(),
        tally: Tally { wall: 1_790_000_000, ..Tally::default() },
    };
    perform(play(&ask))
}

fn read(dialect: Dialect, way: Way, got: &Got) -> ReadAnswer {
    read_body(dialect, way == Way::Stream, got.body.as_bytes())
}

/// What is said to a chat request that was carried over into this dialect.
fn said(model: &str, dialect: Dialect, way: Way, chat: &Value) -> ReadAnswer {
    let chat = with(chat.clone(), json!({"model": "m"}));
    read(dialect, way, &got(model, dialect, way, &body(dialect, &chat)))
}

fn two() -> Value {
    json!({"tools": [
        {"type": "function", "function": {"name": "first", "parameters": {"type": "object", "properties": {}}}},
        {"type": "function", "function": {"name": "second", "parameters": {
            "type": "object", "properties": {"a": {"type": "number"}, "b": {"enum": ["x", "y"]}}, "required": ["a"]}}},
    ]})
}

fn picture() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}})
}

fn conversations() -> Vec<(&'static str, Value)> {
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let messages = |messages: Value| json!({"messages": messages});
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    }, "required": ["name", "tags"], "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
    let asked = json!({"role": "user", "content": "How is the weather?"});
    vec![
        ("plain", user("hello")),
        ("japanese", user("こんにちは")),
        (
            "system",
            messages(
                json!([{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]),
            ),
        ),
        (
            "developer",
            messages(
                json!([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]),
            ),
        ),
        (
            "turns",
            messages(
                json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b\n\nc"}, {"role": "user", "content": "d\ne"}]),
            ),
        ),
        (
            "neighbours",
            messages(
                json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}, {"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}]),
            ),
        ),
        (
            "middle",
            messages(
                json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "system", "content": "now"}, {"role": "user", "content": "c"}]),
            ),
        ),
        (
            "parts",
            messages(
                json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            ),
        ),
        (
            "picture",
            messages(
                json!([{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture(), picture()]}]),
            ),
        ),
        // The word must be there: to a conversation without it one is added in another dialect.
        ("object", with(user("hello, in JSON"), json!({"response_format": {"type": "json_object"}}))),
        ("schema", with(user("hello"), json!({"response_format": format}))),
        ("tool", with(messages(json!([asked])), weather())),
        ("no arguments", with(user("go first"), two())),
        ("second", with(user("use second"), two())),
        ("parallel", with(user("both in parallel"), two())),
        ("forced", with(user("go"), with(two(), json!({"tool_choice": "required"})))),
        ("none", with(user("go"), with(two(), json!({"tool_choice": "none"})))),
        (
            "results",
            with(
                messages(json!([
                    asked,
                    {"role": "assistant", "content": "Let me look.", "tool_calls": [call("c1", "first", "{}"), call("c2", "second", "{\"a\": 1,\n \"b\": \"x\"}")]},
                    {"role": "tool", "tool_call_id": "c1", "content": "sunny\n"},
                    {"role": "tool", "tool_call_id": "c2", "content": "{\"sky\": \"grey\"}\n"},
                ])),
                two(),
            ),
        ),
        (
            "results and words",
            with(
                messages(json!([
                    asked,
                    {"role": "assistant", "content": null, "tool_calls": [call("c1", "first", "{}")]},
                    {"role": "tool", "tool_call_id": "c1", "content": ""},
                    {"role": "user", "content": "And now use second."},
                ])),
                two(),
            ),
        ),
        (
            "tools are gone",
            messages(
                json!([asked, {"role": "assistant", "tool_calls": [call("c1", "first", "{}")]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]),
            ),
        ),
        (
            "begun",
            messages(
                json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "After each"}]),
            ),
        ),
        ("limited", with(user("hello"), json!({"max_tokens": 17}))),
        ("script", with(user("koboshi-sim: call second {\"a\": 2}"), two())),
    ]
}

#[test]
fn a_conversation_gets_the_same_words_in_every_dialect() {
    for (name, chat) in conversations() {
        let meant = said("ok", Dialect::Chat, Way::Whole, &chat);
        assert!(!meant.text.is_empty() || !meant.calls.is_empty(), "{name}");
        for dialect in Dialect::ALL {
            for way in ways(dialect) {
                let read_answer = said("ok", dialect, way, &chat);
                let place = format!("{name}, {dialect:?}, {way:?}");
                assert_eq!(read_answer.text, meant.text, "{place}");
                assert_eq!(read_answer.read_calls(), meant.read_calls(), "{place}");
                assert_eq!(read_answer.finish, meant.finish, "{place}");
                assert!(!read_answer.error && !read_answer.malformed, "{place}");
                assert_eq!(read_answer.done, way != Way::Whole, "{place}");
                let usage =
                    read_answer.usage.or_else(|| (dialect == Dialect::Chat).then(|| meant.usage.unwrap()));
                assert_eq!(usage.unwrap().output, meant.usage.unwrap().output, "{place}");
                assert!(usage.unwrap().input > 0, "{place}");
            }
        }
    }
}

#[test]
fn pictures_are_seen() {
    let (_, chat) = conversations().into_iter().find(|(name, _)| *name == "picture").unwrap();
    assert!(said("ok", Dialect::Gemini, Way::Whole, &chat).text.starts_with("I see the 2 pictures. "));
}

#[test]
fn schemas_are_followed_in_every_dialect() {
    let schema = weather()["tools"][0]["function"]["parameters"].clone();
    for dialect in Dialect::ALL {
        for way in ways(dialect) {
            let read_answer = said("ok", dialect, way, &with(user("How is the weather?"), weather()));
            let (name, arguments) = read_answer.read_calls().pop().unwrap();
            assert!(
                name == "get_weather" && jsonschema::is_valid(&schema, &arguments),
                "{dialect:?} {arguments}"
            );
        }
    }
}

/// Turns of a conversation, with everything that can stand in one. The user begins: where the model does, translators make something up.
fn any_chat() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "hello", "a\nb", "  b ", "日本語", "parallel", "{\"a\": 1}", "use second", "\n", "koboshi: run x",
    ]);
    let turn = (words.clone(), words.clone(), 0..6_u8);
    prop::collection::vec(turn, 0..5).prop_flat_map(move |turns| (Just(turns), words.clone())).prop_map(|(turns, last)| {
        let mut messages = vec![json!({"role": "user", "content": "First."})];
        for (at, (one, other, kind)) in turns.into_iter().enumerate() {
            let id = format!("c{at}");
            let call = json!({"id": id, "type": "function", "function": {"name": "second", "arguments": "{\"a\": 1}"}});
            match kind {
                0 => messages.push(json!({"role": "user", "content": [{"type": "text", "text": one}, {"type": "text", "text": other}]})),
                1 => messages.push(json!({"role": "user", "content": [{"type": "text", "text": one}, picture()]})),
                2 | 3 => messages.extend([json!({"role": "user", "content": one}), json!({"role": "assistant", "content": other})]),
                _ => messages.extend([
                    json!({"role": "user", "content": one}),
                    json!({"role": "assistant", "content": other, "tool_calls": [call]}),
                    json!({"role": "tool", "tool_call_id": id, "content": one}),
                ]),
            }
        }
        messages.push(json!({"role": "user", "content": format!("{last}.")}));
        with(json!({"messages": messages}), two())
    })
}

#[test]
fn any_conversation_gets_the_same_words() {
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(chat in any_chat(), tools in any::<bool>())| {
        let model = if tools { "ok" } else { "ok?tools=no" };
        let meant = said(model, Dialect::Chat, Way::Whole, &chat);
        for dialect in Dialect::ALL {
            for way in ways(dialect) {
                let read_answer = said(model, dialect, way, &chat);
                prop_assert_eq!(&read_answer.text, &meant.text, "{:?} {:?}", dialect, way);
                prop_assert_eq!(read_answer.read_calls(), meant.read_calls(), "{:?} {:?}", dialect, way);
            }
        }
    });
}

fn thinking(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat => with(user("hello"), json!({"model": "m", "reasoning_effort": "high"})),
        Dialect::Messages => with(
            user("hello"),
            json!({"model": "m", "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ),
        Dialect::Responses => {
            json!({"model": "m", "input": "hello", "reasoning": {"effort": "high", "summary": "auto"}})
        }
        Dialect::Gemini => json!({
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 512, "includeThoughts": true}},
        }),
    }
}

#[test]
fn thoughts_come_where_they_are_asked_for_and_are_sealed() {
    let words = said("ok", Dialect::Chat, Way::Whole, &user("hello")).text;
    for dialect in Dialect::ALL {
        for way in ways(dialect) {
            let read_answer = read(dialect, way, &got("ok", dialect, way, &thinking(dialect)));
            assert_eq!(read_answer.text, words, "{dialect:?} {way:?}");
            if dialect == Dialect::Chat {
                assert!(
                    read_answer.thought.is_empty() && read_answer.signatures.is_empty(),
                    "OpenAI shows none"
                );
                continue;
            }
            assert!(
                read_answer.thought.len() > 20 && read_answer.thought != words,
                "{dialect:?} {way:?}: {read_answer:?}"
            );
            let [seal] = read_answer.signatures.as_slice() else {
                panic!("{dialect:?} {way:?}: {read_answer:?}")
            };
            assert!(seal.starts_with("sim") && seal.len() % 4 == 0, "base64, for those who decode it");
            let usage = read_answer.usage.unwrap();
            assert_eq!(
                usage.output,
                words_of(&read_answer.text) + words_of(&read_answer.thought),
                "{dialect:?} {way:?}"
            );
            let plain = read(
                dialect,
                way,
                &got("ok", dialect, way, &body(dialect, &with(user("hello"), json!({"model": "m"})))),
            );
            assert!(plain.thought.is_empty() && plain.signatures.is_empty(), "{dialect:?} {way:?}");
        }
    }
    let quiet = json!({"model": "m", "input": "hello", "reasoning": {"effort": "high"}});
    let read_answer =
        read(Dialect::Responses, Way::Stream, &got("ok", Dialect::Responses, Way::Stream, &quiet));
    assert!(
        read_answer.thought.is_empty() && read_answer.signatures.len() == 1,
        "no summary, but what is to come back: {read_answer:?}"
    );
}

/// Pieces of a text: words, and the stops behind them.
fn words_of(text: &str) -> u64 {
    (text.split_whitespace().count() + text.matches('.').count()) as u64
}

#[test]
fn a_sealed_call_of_gemini_comes_back_as_it_was() {
    let tools = json!([{"functionDeclarations": [{"name": "first", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}}]}]);
    let asked = with(thinking(Dialect::Gemini), json!({"tools": tools}));
    let first = got("ok", Dialect::Gemini, Way::Whole, &asked).json();
    let parts = first["candidates"][0]["content"]["parts"].as_array().unwrap();
    let call = parts.iter().find(|part| part.get("functionCall").is_some()).unwrap();
    assert!(call["thoughtSignature"].is_string() && call["functionCall"]["args"]["a"].is_i64(), "{call}");
    let mut contents = asked["contents"].as_array().unwrap().clone();
    contents.push(first["candidates"][0]["content"].clone());
    contents.push(json!({"role": "user", "parts": [{"functionResponse": {"name": "first", "response": {"output": "done"}}}]}));
    let read_answer = read(
        Dialect::Gemini,
        Way::Stream,
        &got("ok", Dialect::Gemini, Way::Stream, &with(asked, json!({"contents": contents}))),
    );
    assert!(read_answer.text.starts_with("first answered: done."), "{read_answer:?}");
}

#[test]
fn free_text_tools_are_called_with_text() {
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": [{"type": "custom", "custom": {"name": "note"}}]});
    let responses = json!({"model": "m", "input": "go", "tools": [{"type": "custom", "name": "note"}]});
    for (dialect, body) in [(Dialect::Chat, chat), (Dialect::Responses, responses)] {
        for way in ways(dialect) {
            let read_answer = read(dialect, way, &got("ok", dialect, way, &body));
            assert_eq!(read_answer.calls[0].0, "note");
            assert!(
                serde_json::from_str::<Value>(&read_answer.calls[0].1).is_err()
                    && !read_answer.calls[0].1.is_empty(),
                "{read_answer:?}"
            );
        }
    }
}

#[test]
fn tokens_are_counted_in_every_dialect_that_has_an_endpoint_for_it() {
    let counted = |dialect, text: &str| {
        perform(count(&Ask { model: "ok", dialect, body: text.as_bytes(), ..Ask::default() }))
    };
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hello there"}]});
    let tokens = said("ok", Dialect::Messages, Way::Whole, &chat).usage.unwrap().input;
    assert_eq!(
        counted(Dialect::Messages, &body(Dialect::Messages, &chat)).json(),
        json!({"input_tokens": tokens})
    );
    let gemini = body(Dialect::Gemini, &chat);
    assert_eq!(counted(Dialect::Gemini, &gemini).json()["totalTokens"], tokens);
    assert_eq!(
        counted(Dialect::Gemini, &format!("{{\"generateContentRequest\":{gemini}}}")).json()["totalTokens"],
        tokens
    );
    assert_eq!(counted(Dialect::Responses, &body(Dialect::Responses, &chat)).json()["input_tokens"], tokens);
    assert_eq!(counted(Dialect::Chat, &chat.to_string()).status, 400);
    let text = chat.to_string();
    let failing =
        Ask { model: "overloaded", dialect: Dialect::Messages, body: text.as_bytes(), ..Ask::default() };
    assert_eq!(perform(count(&failing)).status, 529);
}

/// Whole streams, for a person to read; `KOBOSHI_GOLDEN=write` writes them again.
#[test]
fn streams_are_what_the_vendors_send() {
    let asked = |dialect| with(thinking(dialect), tools_of(dialect));
    for dialect in Dialect::ALL {
        for (name, model, body) in [
            ("words", "ok?chunks=3", thinking(dialect)),
            ("call", "ok?say=1", asked(dialect)),
            ("error", "in-band-error?after=15", thinking(dialect)),
        ] {
            let read_answer = got(model, dialect, Way::Stream, &body);
            let headers: String =
                read_answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let text =
                format!("{}\n{headers}\n{}", read_answer.status, read_answer.body.replace("\r\n", "\n"));
            golden(&format!("{}-{name}.txt", dialect.name()), &text);
        }
    }
    golden(
        "gemini-list.txt",
        &got("ok?chunks=2", Dialect::Gemini, Way::List, &thinking(Dialect::Gemini))
            .body
            .replace("\r\n", "\n"),
    );
}

fn tools_of(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    match dialect {
        Dialect::Chat => {
            json!({"tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}]})
        }
        Dialect::Messages => json!({"tools": [{"name": "look", "input_schema": schema}]}),
        Dialect::Responses => json!({"tools": [{"type": "function", "name": "look", "parameters": schema}]}),
        Dialect::Gemini => {
            json!({"tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": schema}]}]})
        }
    }
}

fn golden(name: &str, found: &str) {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("KOBOSHI_GOLDEN").is_ok_and(|mode| mode == "write") {
        return std::fs::write(path, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(path).unwrap(), "{name}");
}
