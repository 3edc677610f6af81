//! Keeps traffic below what a provider allows, so that limits are approached and not hit.

mod hold;
mod policy;

pub use hold::{Holds, Limit};
pub use policy::{GatePolicy, GatePolicyError, LARGEST_QUEUE};
