//! Lets a key rest after failures: how long, when it is parked, and who may try first.

mod class;
mod policy;
mod record;

pub use class::Class;
pub use policy::{ClassPolicy, CooldownPolicy, CooldownPolicyError, MarginPolicy};
pub use record::{Cleared, Cooldown, Rest};
