//! The compiled config: where a model name leads, and what is known of the targets there.
//!
//! Plans and targets are data that many requests read at the same time; nothing here sends anything.

pub(crate) mod affinity;
pub(crate) mod answers;
pub(crate) mod auth;
pub(crate) mod capability;
pub(crate) mod causes;
pub(crate) mod classifier;
pub(crate) mod credential;
#[cfg(test)]
mod model_facts_tests;
pub(crate) mod plan;
pub(crate) mod prober;
pub(crate) mod provider;
pub(crate) mod repeated;
pub(crate) mod shown;
pub(crate) mod target;
pub(crate) mod timers;
pub(crate) mod token;
pub(crate) mod well_known;
