//! The tests of this crate from outside, a module for each subject.
//!
//! They are one program, so that what they share is compiled and linked once: `cargo test -p koboshi-wire --test all MODULE`.

mod answers;
mod any;
mod any_bytes;
mod chat_forms;
mod chat_golden;
mod chat_writer;
mod chunks;
mod common;
mod form_ask;
mod form_sanitize;
mod form_trim;
mod forms;
mod gemini_golden;
mod gemini_requests;
mod gemini_rewrite;
mod gemini_streams;
mod http1_differential;
mod messages_any_bytes;
mod messages_golden;
mod messages_requests;
mod messages_streams;
mod noise;
mod numbers;
mod pairs;
mod request;
mod responses_answers;
mod responses_body;
mod responses_events;
mod responses_request;
mod responses_rewrite;
mod responses_writer;
mod rewrite;
mod sse;
