//! Tool calls for clients of every dialect: whole, valid, or not at all.

use koboshi_wire::Dialect;

use crate::common::Stage;
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
