//! The OpenAI responses dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
pub mod error;
pub mod event;
mod memory;
mod object;
mod said;
mod whole;
pub mod write;

pub use event::Events;
pub use write::Writer;
