//! Any dialect: one interface for callers that must not depend on which one it is.
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

pub use edit::{AttemptMode, Edits, HistoryRepair, RefusedCalls, RetriedCalls, TargetTraits, WrittenRequest};
pub use events::Events;
pub use request::Request;
pub use writer::{StreamOptions, Writer};
