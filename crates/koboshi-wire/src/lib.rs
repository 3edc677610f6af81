//! The wire forms of model providers, as borrowed data.
//!
//! ```text
//!   bytes ──► sse (frames, byte-exact) ──► any::Events ──► Step ──► any::Writer ──► frames       what an upstream sends, and what a client gets
//!   body  ──► any::Request ──► splices in its own dialect, or form ──► body                      what a client asks, and what a target gets
//!   body  ──► any::answer  ──► Whole ──► body                                                    an answer that is no stream
//!             chat · responses · messages · gemini: one module a dialect, each with readers, splices and writers
//!   bytes ──► http1 (heads, chunks)
//! ```
//!
//! Where client and provider use the same dialect, frames and bodies are read and not re-encoded: what passes stays the bytes it was, and a change
//! is a splice. Between two dialects everything goes through [`form`] and [`step`]. Nothing here has a clock, a socket or async, and every reader takes
//! time linear in its input.
//!
//! *Not here*: what a fault is (`koboshi::classify`), when to send what (`koboshi-gateway`).

mod amend;
pub mod any;
mod blocks;
pub mod chat;
mod common;
pub mod dialect;
pub mod failure;
pub mod form;
pub mod gemini;
mod hash;
pub mod http1;
mod inputs;
mod intake;
mod json;
mod lenient;
mod malformed;
pub mod messages;
mod numbers;
mod raw;
pub mod responses;
mod splice;
pub mod sse;
pub mod step;
mod tally;
pub mod whole;
pub mod writer;

pub use dialect::Dialect;
pub use intake::{FieldForm, IntakeError, MAX_DEPTH};
pub use malformed::Malformed;
