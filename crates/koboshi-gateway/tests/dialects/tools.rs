//! Tool calls for clients of every dialect: whole, valid, or not at all.

use koboshi::guard::RulePolicy;
use koboshi_config::gateway::GuardMode;
use koboshi_wire::Dialect;
use serde_json::json;

use crate::common::{Stage, with_tools};
use crate::speech::{ask, heard, of_stream, stage, with_tool};

const TEXT: &str = "What is the weather in Kyoto? Look it up.";

#[test]
fn a_call_is_the_same_in_every_dialect_streamed_and_whole() {
    let mut all = Vec::new();
    for upstream in Dialect::ALL {
        let stage = stage(upstream, &["one/ok"], |_| {});
        for client in Dialect::ALL {
            for stream in [true, false] {
                let answer = ask(&stage, &with_tool(client, TEXT, stream));
                let told = heard(client, &answer);
                assert_eq!(told.finish.as_deref(), Some("tool_calls"), "{client:?} {upstream:?} {answer:?}");
                assert!(!told.calls.is_empty() && told.done, "{client:?} {upstream:?} {stream}");
                all.push(told.calls);
            }
        }
    }
    assert!(all.iter().all(|calls| *calls == all[0]), "{all:?}");
}

#[test]
fn broken_arguments_are_mended_or_asked_for_again_in_every_dialect() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let healthy = Stage::of(&["one/ok"]);
            let wanted = heard(dialect, &ask(&healthy, &with_tool(dialect, TEXT, stream))).calls;
            for upstream in Dialect::ALL {
                for fall in ["broken-tool-args", "broken-tool-args?times=1", "tool-cut"] {
                    let stage = stage(upstream, &[&format!("one/{fall}"), "two/ok"], |_| {});
                    let answer = ask(&stage, &with_tool(dialect, TEXT, stream));
                    let told = heard(dialect, &answer);
                    assert_eq!(told.calls, wanted, "{dialect:?} {upstream:?} {stream} {fall} {answer:?}");
                    assert!(told.done && !told.error, "{dialect:?} {upstream:?} {fall}");
                }
            }
        }
    }
}

#[test]
fn alone_a_call_that_cannot_be_mended_is_never_seen() {
    for dialect in Dialect::ALL {
        let stage = Stage::of(&["one/broken-tool-args?form=truncated&always=yes"]);
        let answer = ask(&stage, &with_tool(dialect, TEXT, true));
        assert_eq!(answer.status, 502, "{dialect:?} {answer:?}");
        let error = &answer.json()["error"]["koboshi"]["kind"];
        assert_eq!(error, "tool_arguments_invalid", "{dialect:?} {answer:?}");
        let stage = Stage::of(&["one/broken-tool-args?form=truncated&always=yes&say=5"]);
        let answer = ask(&stage, &with_tool(dialect, TEXT, true));
        assert_eq!(answer.status, 200, "{dialect:?} {answer:?}");
        let told = of_stream(dialect, &answer.body);
        assert!(told.error && told.calls.is_empty() && !told.text.is_empty(), "{dialect:?} {answer:?}");
    }
}

#[test]
fn a_call_that_the_provider_itself_could_not_read_goes_elsewhere() {
    for thinks in [true, false] {
        for stream in [true, false] {
            let stage = stage(Dialect::Gemini, &["one/broken-tool-args?form=truncated", "two/ok"], |_| {});
            let (path, mut body) = with_tool(Dialect::Gemini, TEXT, stream);
            body["generationConfig"] = serde_json::json!({"thinkingConfig": {"includeThoughts": thinks}});
            let answer = ask(&stage, &(path, body));
            let told = heard(Dialect::Gemini, &answer);
            assert_eq!(told.finish.as_deref(), Some("tool_calls"), "{thinks} {stream} {answer:?}");
            assert!(!told.calls.is_empty() && told.done && !told.error, "{answer:?}");
            assert!(!answer.text().contains("MALFORMED"), "{answer:?}");
        }
    }
}

/// Whatever the target speaks, the model reads that its repeated call was refused, and the client never sees the call.
#[test]
fn a_repeated_call_is_refused_in_every_dialect() {
    for upstream in Dialect::ALL {
        for (stream, say) in [(false, 0), (true, 0), (true, 5)] {
            let chain = format!("one/loop?say={say}");
            let stage = stage(upstream, &[&chain], |config| {
                config.guard.mode = GuardMode::Stop;
                config.guard.policy.same_call = RulePolicy::stop(5);
            });
            let mut body = with_tools(stream, "look it up");
            let result = r#"{"city":"Aizu","weather":"light rain","temperature":12,"wind":"north"}"#;
            let messages = body["messages"].as_array_mut().unwrap();
            for number in 0..5 {
                let id = format!("call_{number}");
                let function = json!({"name": "look_up", "arguments": r#"{"city":"Aizu","count":1}"#});
                messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": id, "type": "function", "function": function}]}));
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
            let answer = stage.ask(&body);
            assert_eq!(answer.status, 200, "{upstream:?} {stream}: {answer:?}");
            assert!(answer.calls().is_empty(), "{upstream:?} {stream}: {answer:?}");
            assert!(!answer.content().is_empty(), "{upstream:?} {stream}: {answer:?}");
            assert_eq!(answer.finish().as_deref(), Some("stop"), "{upstream:?} {stream}: {answer:?}");
            assert_eq!(stage.calls().0, 2, "{upstream:?} {stream}");
        }
    }
}
