//! The chat completions dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
pub mod body;
mod calls;
pub mod chunk;
mod content;
pub mod embeddings;
pub mod error;
mod form;
mod history;
mod intake;
mod message;
pub mod models;
mod parts;
pub mod request;
mod rewrite;
mod said;
pub(crate) mod sampling;
mod tools;
mod turns;
pub mod unstreamed;
pub mod voice;
pub mod write;

pub use intake::IntakeError;
pub use request::{ChatRequest, GuardCall, JsonNeed, Needs};
pub use rewrite::{Corrected, Rewrite};
