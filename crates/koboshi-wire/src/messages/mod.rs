//! Anthropic's messages: requests, streams, answers, and what we write ourselves.

mod arguments;
pub mod error;
pub mod event;
mod frame;
mod ids;
mod stop;
mod usage;
pub mod write;
