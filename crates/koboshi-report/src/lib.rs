//! What Koboshi says to people.
//!
//! The core decides in kinds and flags; this crate turns them into words. It deliberately decides
//! nothing, and it never adds text of the other side to a sentence: what a provider said is for operators,
//! redacted, and shown apart.

pub mod guard;
pub mod phrase;
pub mod reask;
pub mod spent;
pub mod when;
