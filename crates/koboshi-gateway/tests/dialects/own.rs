//! Answers that a test writes itself, frame by frame, as a provider of a dialect sends them.

use koboshi_sim::{Beat, End, Head, Play};
use koboshi_testkit::Answer;
use serde_json::{Value, json};

use crate::common::ms;

/// A provider that begins after a pause, sends these pieces, each after its own pause in milliseconds, and then ends like this.
pub(crate) fn streams_after(head: u64, pieces: Vec<(u64, String)>, end: End) -> Play {
    let headers = vec![("content-type", "text/event-stream".to_owned())];
    let beats: Vec<_> =
        pieces.into_iter().map(|(after, text)| Beat { after: ms(after), bytes: text.into() }).collect();
    Play { head: Head::Answer { after: ms(head), status: 200, headers }, beats: beats.into(), end }
}

/// The same without pauses, and with a clean end.
pub(crate) fn streams(pieces: Vec<String>) -> Play {
    streams_after(0, pieces.into_iter().map(|piece| (0, piece)).collect(), End::Clean)
}

/// A provider that gives a whole answer.
pub(crate) fn gives(body: &Value) -> Play {
    let headers = vec![("content-type", "application/json".to_owned())];
    let beats = vec![Beat { after: ms(0), bytes: body.to_string().into() }];
    Play { head: Head::Answer { after: ms(0), status: 200, headers }, beats: beats.into(), end: End::Clean }
}

/// A frame that has only data.
pub(crate) fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// A frame with the name of its event, as responses and messages have them.
pub(crate) fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

/// A chunk of chat completions.
pub(crate) fn chunk(delta: &Value, finish: Option<&str>) -> String {
    data(&json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "own",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

/// A chunk of Gemini.
pub(crate) fn part(part: &Value, finish: Option<&str>) -> String {
    let mut candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    data(&json!({"candidates": [candidate], "modelVersion": "own", "responseId": "r1"}))
}

/// A response object of the provider.
pub(crate) fn response(status: &str, output: &Value) -> Value {
    json!({"id": "resp_theirs", "object": "response", "created_at": 1, "status": status, "model": "own", "output": output,
        "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}})
}

/// A stream of responses with these items, which come whole, each with its `added`.
pub(crate) fn items(items: &[Value]) -> Vec<String> {
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", &json!([]))}),
        json!({"type": "response.in_progress", "response": response("in_progress", &json!([]))}),
    ];
    for (index, item) in items.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(json!({"type": kind, "output_index": index, "item": item}));
        }
    }
    events.push(json!({"type": "response.completed", "response": response("completed", &json!(items))}));
    let numbered = events.into_iter().enumerate().map(|(number, mut frame)| {
        frame["sequence_number"] = number.into();
        event(&frame)
    });
    numbered.collect()
}

/// An item that is a message with this text.
pub(crate) fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// The data of all events of a stream, as a parser of the standard gives them: an event without its blank line is lost.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text().replace("\r\n", "\n");
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let frames = whole.split("\n\n").filter_map(|frame| {
        let lines: Vec<_> = frame.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    });
    frames.filter_map(|data| serde_json::from_str(&data).ok()).collect()
}

/// A stream of responses is one answer: opened once and first of all, every piece belongs to an item that is open, and its end says
/// what the pieces said. Gives the text and the response at the end.
pub(crate) fn one_response(answer: &Answer) -> (String, Value) {
    let events = events(answer);
    let all = answer.text();
    assert_eq!(events[0]["type"], "response.created", "{all}");
    let (mut open, mut text): (Vec<String>, String) = (Vec::new(), String::new());
    let last = events.len() - 1;
    for (at, event) in events.iter().enumerate() {
        let id = event["item_id"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "response.created" => assert_eq!(at, 0, "opened twice: {all}"),
            "response.output_item.added" => open.push(event["item"]["id"].as_str().unwrap().to_owned()),
            "response.output_item.done" => {
                let id = event["item"]["id"].as_str().unwrap();
                assert!(open.iter().any(|known| known == id), "{id} was never added: {all}");
                open.retain(|known| known != id);
                if let Some(told) = event["item"]["content"][0]["text"].as_str() {
                    if text.is_empty() {
                        text = told.to_owned();
                    }
                    assert_eq!(told, text, "{all}");
                }
            }
            "response.output_text.delta" => {
                assert!(open.iter().any(|known| known == id), "{id} is not open: {all}");
                text.push_str(event["delta"].as_str().unwrap());
            }
            "response.output_text.done" => assert_eq!(event["text"], text.as_str(), "{all}"),
            "response.completed" => assert_eq!(at, last, "{all}"),
            _ => {}
        }
    }
    assert_eq!(events[last]["type"], "response.completed", "{all}");
    (text, events[last]["response"].clone())
}
