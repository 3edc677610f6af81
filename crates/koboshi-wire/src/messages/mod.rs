//! Anthropic's messages: requests, streams, answers, and what we write ourselves.

pub mod answer;
mod arguments;
pub mod body;
pub mod count;
pub mod error;
pub mod event;
mod frames;
mod ids;
mod message;
mod model;
pub mod models;
mod output;
mod read_settings;
mod read_turns;
pub mod request;
mod rewrite;
mod unsigned_thinking;
pub mod write_answer;
mod write_parts;
mod write_schema;
mod write_settings;
mod write_turns;
pub mod writer;

pub use request::MessagesRequest;
pub use rewrite::Rewrite;
