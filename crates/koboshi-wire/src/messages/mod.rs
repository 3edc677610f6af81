//! Anthropic's messages: requests, streams, answers, and what we write ourselves.

pub mod answer;
mod arguments;
mod block;
pub mod body;
pub mod error;
pub mod event;
mod fit;
mod frame;
mod ids;
mod message;
mod model;
pub mod models;
mod parts;
pub mod request;
mod rewrite;
mod settings;
mod stop;
mod thinking;
mod turns;
mod unproven;
mod usage;
pub mod write;

pub use request::MessagesRequest;
pub use rewrite::Rewrite;
