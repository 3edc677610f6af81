//! The OpenAI responses dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
pub mod body;
pub mod count;
pub mod error;
pub mod event;
mod frames;
mod memory;
mod output;
mod read_settings;
mod read_turns;
pub mod request;
mod rewrite;
mod tools;
pub mod write_answer;
mod write_settings;
mod write_turns;
pub mod writer;

pub use event::Events;
pub use request::ResponsesRequest;
pub use rewrite::{Correction, Rewrite};
pub use tools::flat_name;
pub use writer::Writer;
