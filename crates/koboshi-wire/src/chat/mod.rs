//! The chat completions dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
pub mod body;
mod calls;
mod content;
pub mod embeddings;
pub mod error;
pub mod event;
pub mod frames;
mod intake;
mod message;
pub mod model;
pub mod models;
mod output;
mod read_parts;
mod read_settings;
mod read_turns;
pub mod request;
mod rewrite;
mod tools;
pub mod unstreamed;
pub mod write_answer;
pub(crate) mod write_settings;
mod write_turns;
pub mod writer;

pub use intake::IntakeError;
pub use request::{ChatRequest, GuardCall, JsonNeed, Needs};
pub use rewrite::{Correction, Rewrite};
