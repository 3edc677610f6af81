//! What reading costs: a chunk of a stream, a request of two sizes, and cutting a stream into frames.
//!
//! Promise: a usual chunk in less than 500 ns. `cargo bench -p koboshi-wire` prints the figures; nothing asserts them.

#![allow(missing_docs, clippy::expect_used, clippy::semicolon_if_nothing_returned, reason = "a bench")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use koboshi_wire::chat::{ChatRequest, Rewrite, answer, event};
use koboshi_wire::sse::Framer;
use serde_json::json;

const TEXT: &str = r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_50cad350e4","choices":[{"index":0,"delta":{"content":" world"},"logprobs":null,"finish_reason":null}],"usage":null}"#;
const CALL: &str = r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"logprobs":null,"finish_reason":null}]}"#;
const SMALL: &str = r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}"#;

/// A conversation of about this many bytes: a system prompt, a task, and turns of tool calls with results.
fn request(bytes: usize) -> Bytes {
    let line = "error[E0308]: mismatched types at src/main.rs:42\n  expected `u32`, found `\"text\"`\n";
    let mut messages = vec![
        json!({"role": "system", "content": "You are a careful engineer. Answer briefly."}),
        json!({"role": "user", "content": "Why does the build fail? Look at it and mend it."}),
    ];
    let mut size = 700;
    for turn in 0.. {
        if size >= bytes {
            break;
        }
        let id = format!("call_{turn}");
        let call = json!({"id": id, "type": "function", "function": {"name": "run", "arguments": "{\"command\":\"cargo check\"}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": line.repeat(10)}));
        size += 1150;
    }
    let tool = json!({"type": "function", "function": {"name": "run", "description": "Runs a command", "parameters": {
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}});
    let body =
        json!({"model": "gpt-4o", "stream": true, "temperature": 0.2, "messages": messages, "tools": [tool]});
    Bytes::from(body.to_string())
}

fn chunks(c: &mut Criterion) {
    let mut group = c.benchmark_group("chunk");
    for (name, data) in [("text_178", SMALL), ("text_290", TEXT), ("call", CALL), ("done", "[DONE]")] {
        group.bench_function(name, |b| {
            b.iter(|| event::read(black_box(data)).expect("a chunk").has_content())
        });
    }
    group.finish();
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("request");
    for (name, bytes) in [("1KB", 1_000), ("100KB", 100_000)] {
        let body = request(bytes);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format!("{name}/parse"), |b| {
            b.iter(|| ChatRequest::parse(black_box(&body)).is_ok())
        });
        let parsed = ChatRequest::parse(&body).expect("a request");
        group.bench_function(format!("{name}/needs"), |b| b.iter(|| black_box(&parsed).needs()));
        group.bench_function(format!("{name}/calls"), |b| b.iter(|| black_box(&parsed).calls().len()));
        group.bench_function(format!("{name}/rewrite"), |b| {
            b.iter(|| Rewrite::of(black_box(&parsed), &body).model("other").include_usage().finish().len())
        });
    }
    group.finish();
}

fn framer(c: &mut Criterion) {
    let stream = Bytes::from(format!("data: {TEXT}\n\n").repeat(200));
    let mut group = c.benchmark_group("framer");
    group.throughput(Throughput::Elements(200));
    for (name, size) in [("one_block", stream.len()), ("blocks_of_4096", 4096), ("blocks_of_100", 100)] {
        let blocks: Vec<Bytes> =
            (0..stream.len()).step_by(size).map(|at| stream.slice(at..stream.len().min(at + size))).collect();
        group.bench_function(format!("200_frames/{name}"), |b| {
            b.iter(|| {
                let (mut framer, mut frames) = (Framer::new(1 << 20), 0);
                for block in black_box(&blocks) {
                    framer.push(block.clone());
                    while let Some(frame) = framer.next_frame() {
                        frames += usize::from(
                            frame.is_ok_and(|frame| frame.data().is_ok_and(|data| data.is_some())),
                        );
                    }
                }
                frames
            })
        });
    }
    group.finish();
}

fn answers(c: &mut Criterion) {
    let text = "Hello there, how may I help you today? ".repeat(50);
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 500, "total_tokens": 510}})
    .to_string();
    c.bench_function("answer/2KB", |b| b.iter(|| answer::read(black_box(body.as_bytes())).is_ok()));
}

criterion_group!(benches, chunks, requests, framer, answers);
criterion_main!(benches);
