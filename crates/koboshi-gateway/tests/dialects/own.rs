//! Answers that a test writes itself, frame by frame, as a provider of a dialect sends them.

use koboshi_sim::{Beat, End, Head, Play};
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

/// A frame with the name of its event, as responses and messages have them.
pub(crate) fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
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
