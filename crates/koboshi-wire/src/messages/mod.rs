//! Anthropic's messages: requests, streams, answers, and what we write ourselves.

mod arguments;
mod block;
pub mod body;
mod claude;
pub mod error;
pub mod event;
mod fit;
mod frame;
mod ids;
mod stop;
mod thinking;
mod turns;
mod usage;
pub mod write;
