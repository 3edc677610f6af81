//! What Koboshi speaks: the wire forms of model providers, as borrowed data.
//!
//! ```text
//!   bytes ──► sse (frames, byte-exact) ──► chat::chunk ──► Step          what an upstream says
//!   body  ──► chat::request ──► ChatRequest ──► Rewrite ──► body         what a client asks, and what must change
//!   body  ──► chat::answer  ──► Whole                                    an answer that is no stream
//!             chat::write   ──► our own frames, answers and errors
//! ```
//!
//! Frames and bodies are looked at and not re-encoded: what passes stays the bytes it was, and a change is a splice. Nothing
//! here has a clock, a socket or async, and every reader takes time linear in its input.
//!
//! *Not here*: what a fault is (`koboshi::classify`), when to send what (`koboshi-gateway`).

pub mod any;
pub mod chat;
pub mod dialect;
pub mod failure;
pub mod form;
pub mod gemini;
pub mod http1;
mod intake;
mod lenient;
mod malformed;
pub mod messages;
mod raw;
pub mod responses;
mod splice;
pub mod sse;
pub mod step;
pub mod voice;
pub mod whole;

pub use dialect::Dialect;
pub use intake::IntakeError;
pub use malformed::Malformed;
