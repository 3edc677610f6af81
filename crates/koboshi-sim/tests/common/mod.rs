//! A play, performed without a clock: what a client would have.

#![allow(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test file uses its part, and a test may end by a panic"
)]

use std::time::Duration;

use koboshi_sim::{Ask, End, Head, Play, Tally, play};
use serde_json::{Value, json};

/// What a client has at the end of a play.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// The pieces as they came, with the pauses before them.
    pub(crate) beats: Vec<(Duration, String)>,
    pub(crate) end: End,
}

pub(crate) fn perform(play: Play) -> Got {
    let Head::Answer { status, headers, .. } = play.head else { panic!("{:?}", play.head) };
    let beats: Vec<(Duration, String)> =
        play.beats.map(|beat| (beat.after, String::from_utf8_lossy(&beat.bytes).into_owned())).collect();
    let body = beats.iter().map(|(_, text)| text.as_str()).collect();
    Got { status, headers, body, beats, end: play.end }
}

pub(crate) fn ask(model: &str, body: &Value, tally: Tally) -> Play {
    let body = body.to_string();
    play(&Ask { model, body: body.as_bytes(), tally, ..Ask::default() })
}

pub(crate) fn got(model: &str, body: &Value) -> Got {
    perform(ask(model, body, Tally::default()))
}

pub(crate) fn user(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

/// The body with these fields besides.
pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    body.as_object_mut().unwrap().extend(more);
    body
}

pub(crate) fn streaming(body: Value) -> Value {
    with(body, json!({"stream": true}))
}

pub(crate) fn weather() -> Value {
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 5},
    }, "required": ["city", "days"]});
    json!({"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]})
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of its frames.
    pub(crate) fn data(&self) -> Vec<&str> {
        self.body.split("\n\n").filter_map(|frame| frame.strip_prefix("data: ")).collect()
    }

    /// Those that are JSON.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        self.data().iter().filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// The text of a stream or a whole answer.
    pub(crate) fn text(&self) -> String {
        if self.body.starts_with('{') {
            return self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
        }
        let chunks = self.chunks();
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    }

    /// Name and arguments of its calls.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if self.body.starts_with('{') {
            let answer = self.json();
            let calls = answer["choices"][0]["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
            return calls
                .iter()
                .map(|call| (text(&call["function"]["name"]), text(&call["function"]["arguments"])))
                .collect();
        }
        let mut calls: Vec<(String, String)> = Vec::new();
        for chunk in self.chunks() {
            for piece in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
                if index == calls.len() {
                    assert!(piece["id"].is_string() && piece["type"] == "function");
                    calls.push((text(&piece["function"]["name"]), String::new()));
                }
                calls[index].1.push_str(piece["function"]["arguments"].as_str().unwrap());
            }
        }
        calls
    }

    pub(crate) fn finish(&self) -> Option<String> {
        if self.body.starts_with('{') {
            return self.json()["choices"][0]["finish_reason"].as_str().map(str::to_owned);
        }
        let mut reasons = self.chunks();
        reasons.retain(|chunk| chunk["choices"][0]["finish_reason"].is_string());
        assert!(reasons.len() <= 1, "one finish at most");
        reasons.first().and_then(|chunk| chunk["choices"][0]["finish_reason"].as_str()).map(str::to_owned)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.body.ends_with("data: [DONE]\n\n")
    }
}
