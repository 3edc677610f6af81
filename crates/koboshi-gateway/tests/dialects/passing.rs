//! Answers of the client's own dialect pass as they are, whatever is in them.

use koboshi_sim::End;
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::own::{chunk, data, event, events, gives, items, message, one_response, part, response, streams};
use crate::speech::{ask, question, stage};

/// OpenAI repeats the instructions and tools of a request in the frames that open its answer.
#[test]
fn what_stands_before_content_may_be_as_long_as_a_large_request() {
    for (length, calls) in [(1_500_000, (1, 0)), (6_000_000, (1, 1))] {
        let stage = stage(Dialect::Responses, &["one/own", "two/own"], |config| {
            config.remedy.backoff.attempts = 1;
        });
        stage.one.set("own", move |_| {
            let mut frames = items(&[message("Hi")]);
            for frame in frames.iter_mut().take(2) {
                let instructions = format!("\"response\":{{\"instructions\":\"{}\",", "x".repeat(length));
                *frame = frame.replacen("\"response\":{", &instructions, 1);
            }
            streams(frames)
        });
        stage.two.set("own", |_| streams(items(&[message("Hi")])));
        let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
        assert_eq!((answer.status, stage.calls()), (200, calls), "{length}");
        assert!(answer.text().contains("response.completed"), "{length}");
    }
}

/// Items that are no text and no call of a function, but are an answer.
const ITEMS: &[&str] = &[
    "computer_call", "local_shell_call", "tool_search_call", "mcp_approval_request", "image_generation_call",
    "web_search_call", "something_new",
];

#[test]
fn an_item_that_only_responses_know_is_an_answer_to_their_clients() {
    for kind in ITEMS {
        let stage = stage(Dialect::Responses, &["one/own", "two/ok"], |_| {});
        let item = json!({"type": kind, "id": "item_1", "call_id": "call_1", "status": "completed", "action": {"type": "x"}});
        let whole = item.clone();
        stage.one.set("own", move |ask| {
            match String::from_utf8_lossy(ask.body).contains("\"stream\":true") {
                true => streams(items(std::slice::from_ref(&item))),
                false => gives(&response("completed", &json!([item]))),
            }
        });
        let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
        assert_eq!((answer.status, stage.calls()), (200, (1, 0)), "{kind} {answer:?}");
        assert_eq!(one_response(&answer).1["output"], json!([whole]), "{kind}");
        let answer = ask(&stage, &question(Dialect::Responses, "Hello", false));
        assert_eq!((answer.status, stage.calls()), (200, (2, 0)), "{kind} {answer:?}");
        assert_eq!(answer.json()["output"], json!([whole]), "{kind}");
    }
}

#[test]
fn thinking_without_a_word_is_no_answer() {
    let stage = stage(Dialect::Responses, &["one/own", "two/ok"], |_| {});
    stage.one.set("own", |_| streams(items(&[json!({"type": "reasoning", "id": "rs_1", "summary": []})])));
    let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
    assert!(answer.status == 200 && stage.calls().1 == 1, "{answer:?}");
}

/// The provider runs its tools itself, and wants to go on with them in the next turn.
#[test]
fn a_turn_that_pauses_in_the_providers_own_tools_is_an_answer() {
    let stage = stage(Dialect::Messages, &["one/own", "two/ok"], |_| {});
    let block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "doll"}});
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "own", "content": [block],
        "stop_reason": "pause_turn", "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 7}});
    let given = whole.clone();
    stage.one.set("own", move |ask| {
        if !String::from_utf8_lossy(ask.body).contains("\"stream\":true") {
            return gives(&given);
        }
        let mut opening = given.clone();
        (opening["content"], opening["stop_reason"]) = (json!([]), Value::Null);
        let mut begun = block.clone();
        begun["input"] = json!({});
        let frames = [
            json!({"type": "message_start", "message": opening}),
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\": \"doll\"}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn", "stop_sequence": null}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ];
        streams(frames.iter().map(event).collect())
    });
    let answer = ask(&stage, &question(Dialect::Messages, "Hello", true));
    assert_eq!((answer.status, stage.calls()), (200, (1, 0)), "{answer:?}");
    assert!(answer.text().contains("pause_turn") && answer.text().contains("srvtoolu_1"), "{answer:?}");
    let answer = ask(&stage, &question(Dialect::Messages, "Hello", false));
    assert_eq!((answer.status, stage.calls(), answer.json()), (200, (2, 0), whole), "{answer:?}");
}

/// Some servers close behind their last frame without its blank line, and without one parsers drop it.
#[test]
fn a_last_frame_without_its_blank_line_is_completed() {
    for dialect in Dialect::ALL {
        for end in ["", "\n", "\r\n", "\r"] {
            let stage = stage(dialect, &["one/own"], |config| config.remedy.backoff.attempts = 1);
            stage.one.set("own", move |_| {
                let mut frames = match dialect {
                    Dialect::Chat => {
                        vec![chunk(&json!({"role": "assistant", "content": "Hi"}), None), chunk(&json!({}), Some("stop"))]
                    }
                    Dialect::Responses => items(&[message("Hi")]),
                    Dialect::Messages => [
                        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "own", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
                        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
                        json!({"type": "content_block_stop", "index": 0}),
                        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
                        json!({"type": "message_stop"}),
                    ]
                    .iter()
                    .map(event)
                    .collect(),
                    Dialect::Gemini => vec![part(&json!({"text": "Hi"}), None), part(&json!({"text": ""}), Some("STOP"))],
                };
                let last = frames.pop().unwrap();
                frames.push(format!("{}{end}", last.trim_end()));
                streams(frames)
            });
            let answer = ask(&stage, &question(dialect, "Hello", true));
            assert_eq!(answer.status, 200, "{dialect:?} {end:?} {answer:?}");
            let (events, text) = (events(&answer), answer.text());
            let last = events.last().unwrap();
            match dialect {
                Dialect::Chat => assert_eq!(last["choices"][0]["finish_reason"], "stop", "{end:?} {text}"),
                Dialect::Responses => assert_eq!(last["type"], "response.completed", "{end:?} {text}"),
                Dialect::Messages => assert_eq!(last["type"], "message_stop", "{end:?} {text}"),
                Dialect::Gemini => {
                    assert_eq!(last["candidates"][0]["finishReason"], "STOP", "{end:?} {text}");
                }
            }
            assert!(dialect != Dialect::Chat || text.ends_with("\n\ndata: [DONE]\n\n"), "{end:?} {text}");
        }
    }
}

/// Chunks of Gemini for a client that reads one list: pictures, several candidates, where the words come from.
#[test]
fn chunks_pass_into_a_list_as_they_are() {
    let stage = stage(Dialect::Gemini, &["one/own"], |_| {});
    let one =
        |index: u32, part: Value| json!({"content": {"parts": [part], "role": "model"}, "index": index});
    let chunks = [
        json!({"candidates": [one(0, json!({"text": "Hi"})), one(1, json!({"text": "Ho"}))], "responseId": "r1"}),
        json!({"candidates": [one(0, json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})), one(1, json!({"executableCode": {"language": "PYTHON", "code": "1"}}))], "responseId": "r1"}),
        json!({"candidates": [
            {"content": {"parts": [{"text": ""}], "role": "model"}, "index": 0, "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["doll"]}},
            {"content": {"parts": [{"text": ""}], "role": "model"}, "index": 1, "finishReason": "STOP"}],
            "responseId": "r1"}),
    ];
    let frames: Vec<_> = chunks.iter().map(data).collect();
    stage.one.set("own", move |_| streams(frames.clone()));
    let (_, mut body) = question(Dialect::Gemini, "Hello", true);
    body["generationConfig"] = json!({"candidateCount": 2});
    let answer = ask(&stage, &("/v1beta/models/m:streamGenerateContent".to_owned(), body));
    assert_eq!((answer.status, answer.json()), (200, json!(chunks)), "{answer:?}");
}

/// What was passed ends nothing but itself: a list that breaks has its error, and is closed.
#[test]
fn a_list_that_breaks_is_closed_behind_its_error() {
    let stage = stage(Dialect::Gemini, &["one/own"], |config| config.remedy.backoff.attempts = 1);
    stage.one.set("own", |_| {
        let pieces = [Some("STOP"), Some("STOP")].map(|end| (0, part(&json!({"text": "Hi"}), end)));
        crate::own::streams_after(0, pieces.to_vec(), End::Cut)
    });
    let (_, body) = question(Dialect::Gemini, "Hello", true);
    let answer = ask(&stage, &("/v1beta/models/m:streamGenerateContent".to_owned(), body));
    let list = answer.json();
    assert!(list[2]["error"]["message"].is_string() && list.as_array().unwrap().len() == 3, "{list}");
}
