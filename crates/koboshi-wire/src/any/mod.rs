//! Any dialect: one interface for callers that must not care which one is spoken.
//!
//! ```text
//!   body ──► Request ──► Request::write ──► body of the target's dialect: by splices in its own, through the form in another one
//!   frames ──► Events ──► Step ──► Writer ──► frames of the client's dialect
//!   body ──► answer::read ──► Whole ──► answer::write ──► body of the client's dialect
//! ```
//!
//! Nothing is decided here: every arm hands on to the module of its dialect.

pub mod answer;
mod edit;
mod events;
mod fit;
mod kept;
mod request;
mod writer;

pub use edit::{Edits, Mending, RefusedCalls, RetriedCalls, To, Turn, WrittenRequest};
pub use events::Events;
pub use request::Request;
pub use writer::{Manner, Writer};
