//! The chat completions dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
mod calls;
pub mod chunk;
mod content;
pub mod embeddings;
mod intake;
mod message;
pub mod models;
pub mod request;
mod rewrite;
mod said;
mod tools;
pub mod unstreamed;
pub mod write;

pub use intake::IntakeError;
pub use request::{ChatRequest, GuardCall, JsonNeed, Needs};
pub use rewrite::{Corrected, Rewrite};
