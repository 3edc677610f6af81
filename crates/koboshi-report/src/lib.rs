//! The texts of Koboshi for people.
//!
//! The core decides in kinds and flags; this crate turns them into words. It decides
//! nothing, and it never adds a provider's text to a sentence: a provider's message is for operators,
//! redacted, and shown apart.

pub mod fault_words;
pub mod guard;
pub mod notice;
pub mod phrase;
pub mod reask;
pub mod spent;
pub mod when;
