//! The OpenAI responses dialect: requests, streams, answers, and what we write ourselves.

pub mod answer;
pub mod body;
mod content;
pub mod error;
pub mod event;
mod items;
mod memory;
mod object;
pub mod request;
mod rewrite;
mod said;
mod settings;
mod tools;
mod whole;
pub mod write;

use bytes::Bytes;

pub use event::Events;
pub use request::ResponsesRequest;
pub use rewrite::{Corrected, Rewrite};
pub use tools::flat_name;
pub use write::Writer;

/// The answer of `POST /v1/responses/input_tokens`.
#[must_use]
pub fn counted(tokens: u64) -> Bytes {
    format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#).into()
}
