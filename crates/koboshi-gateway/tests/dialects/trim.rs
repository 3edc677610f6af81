//! A conversation that is too long is made shorter where the config allows it, in every dialect.

use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::{Stage, model};
use crate::speech::{ask, heard, stage, with_tool};

/// A conversation with one very long result.
fn long(dialect: Dialect, stream: bool) -> (String, Value) {
    let (path, mut body) = with_tool(dialect, "Read the file.", stream);
    let file = "line of a long file\n".repeat(20_000);
    let arguments = json!({"city": "Kyoto", "days": 1});
    match dialect {
        Dialect::Chat => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments.to_string()}}]}));
            messages.push(json!({"role": "tool", "tool_call_id": "call_1", "content": file}));
        }
        Dialect::Messages => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "get_weather", "input": arguments}]}));
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": file}]}));
        }
        Dialect::Responses => {
            body["input"] = json!([
                {"role": "user", "content": "Read the file."},
                {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": arguments.to_string()},
                {"type": "function_call_output", "call_id": "call_1", "output": file},
            ]);
        }
        Dialect::Gemini => {
            let contents = body["contents"].as_array_mut().unwrap();
            contents.push(json!({"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": arguments}}]}));
            contents.push(json!({"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": file}}}]}));
        }
    }
    (path, body)
}

#[test]
fn what_a_provider_refuses_as_too_long_is_sent_again_shorter() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let stage = Stage::with(&["one/context?times=1"], |config| config.remedy.max_trims = 1);
            let answer = ask(&stage, &long(dialect, stream));
            assert!(heard(dialect, &answer).done, "{dialect:?} {answer:?}");
            assert!(answer.header("x-koboshi-trimmed").unwrap().ends_with(" tokens"), "{answer:?}");
            let sent: Vec<String> = stage.one.requests().iter().map(|seen| seen.body.to_string()).collect();
            assert_eq!(sent.len(), 2, "{dialect:?}");
            assert!(
                sent[1].len() < sent[0].len() * 8 / 10,
                "{dialect:?} {} {}",
                sent[0].len(),
                sent[1].len()
            );
            assert!(
                sent[1].contains("[koboshi]") && sent[1].contains("call_1") == sent[0].contains("call_1")
            );
            stage.journal("an entry about the trim", |entry| entry.kind.as_deref() == Some("trim"));
        }
    }
}

#[test]
fn a_message_with_a_pinned_text_stays() {
    for (pinned, stays) in [(vec!["long file".to_owned()], true), (Vec::new(), false)] {
        let stage = Stage::with(&["one/context?times=1"], |config| {
            config.remedy.max_trims = 1;
            config.pinned = pinned;
        });
        let (path, mut body) = long(Dialect::Chat, false);
        // Something else that can go.
        let other = "other words of a tool\n".repeat(15_000);
        let messages = body["messages"].as_array_mut().unwrap();
        let mut again = messages[messages.len() - 2..].to_vec();
        again[0]["tool_calls"][0]["id"] = "call_2".into();
        again[1]["tool_call_id"] = "call_2".into();
        again[1]["content"] = other.into();
        messages.extend(again);
        let answer = ask(&stage, &(path, body));
        assert_eq!(answer.status, 200, "{answer:?}");
        let sent: Vec<String> = stage.one.requests().iter().map(|seen| seen.body.to_string()).collect();
        assert_eq!(sent[1].matches("line of a long file").count() == 20_000, stays);
        assert!(sent[1].len() < sent[0].len() * 9 / 10);
    }
}

#[test]
fn what_is_known_to_be_too_long_is_shortened_before_a_target_is_asked() {
    for (trims, status, calls) in [(1, 200, 1), (0, 400, 0)] {
        let stage = Stage::with(&["one/ok"], |config| {
            config.remedy.max_trims = trims;
            model(config, "one/ok", |facts| facts.context_window = Some(8_000));
        });
        let answer = ask(&stage, &long(Dialect::Messages, false));
        assert_eq!((answer.status, stage.calls().0), (status, calls), "{answer:?}");
        assert_eq!(answer.header("x-koboshi-trimmed").is_some(), trims > 0);
    }
}

#[test]
fn a_conversation_that_cannot_be_shorter_keeps_its_error() {
    let stage = Stage::with(&["one/context"], |config| config.remedy.max_trims = 3);
    let answer = ask(&stage, &crate::speech::question(Dialect::Messages, "hello", true));
    assert_eq!((answer.status, stage.calls().0), (400, 1), "{answer:?}");
    assert_eq!(answer.json()["error"]["koboshi"]["kind"], "context_too_large");
}

#[test]
fn a_shortened_request_that_cannot_be_built_keeps_the_error_and_is_noted_for_operators() {
    let stage = stage(Dialect::Responses, &["one/context"], |config| config.remedy.max_trims = 1);
    let (path, mut body) = long(Dialect::Responses, false);
    // Only the provider itself holds this item: the client's own bytes can name it, a rebuilt request cannot.
    body["input"].as_array_mut().unwrap().insert(0, json!({"type": "item_reference", "id": "item_1"}));
    let answer = ask(&stage, &(path, body));
    assert_eq!((answer.status, stage.calls().0), (400, 1), "{answer:?}");
    assert_eq!(answer.json()["error"]["koboshi"]["kind"], "context_too_large", "{answer:?}");
    let entry = stage.journal("the fault", |entry| entry.kind.as_deref() == Some("context_build_failed"));
    assert_eq!(entry.data.unwrap()["code"], "KBS-4001");
}
