//! The Gemini dialect, as AI Studio and Vertex speak it: requests, streams, answers, and what we write ourselves.
//!
//! ```text
//!   body ──► request ──► GeminiRequest ──► Form                          what a client asks
//!                            └──────────► Rewrite ──► body               the same, changed in places
//!   Form ──► body ──► Written                                            what a foreign client asks, for Gemini
//!   bytes ──► sse or array (frames) ──► event::Events ──► Step           what an upstream says
//!   body ──► answer ──► Whole                                            an answer that is no stream
//!             writer, error, models ──► our own frames, answers, errors and lists
//! ```
//!
//! What sets the dialect apart: the model and the wish for a stream stand in the path; names of fields may be written in two ways; calls
//! have names where others have ids, and come whole; a stream has no end mark but the chunk with a finish reason.

pub mod answer;
pub mod array;
pub mod body;
pub mod count;
pub mod error;
pub mod event;
mod frames;
mod intake;
mod message;
mod model;
pub mod models;
mod output;
mod proto_json;
mod read_schema;
mod read_settings;
mod read_turns;
pub mod request;
mod rewrite;
pub mod write_answer;
mod write_parts;
mod write_settings;
mod write_turns;
pub mod writer;

pub use request::GeminiRequest;
pub use rewrite::Rewrite;
