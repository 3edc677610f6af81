//! Lets a key rest after failures: how long, when it is parked, and who may try first.
//!
//! Three parts: the record of one key, which is stored, shared and merged (`record`); the rules that change it
//! (`decide`); and the table of one process with what is local to it (`table`). Deadlines are wall time, because they
//! outlive the process and mean the same on every machine; a clock that is set back does not stretch a rest of our
//! own choice, and one that is set on only lets the probe go earlier.
//!
//! *Not here*: starting anything, sleeping, storing.
#![doc = include_str!("../docs/cooldown.md")]

mod cause;
mod class;
mod decide;
mod event;
mod policy;
mod record;
mod table;

#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use class::Class;
pub use decide::{Failure, Standing};
pub use event::{CooldownEvent, Happened};
pub use policy::{ClassPolicy, CooldownPolicy, CooldownPolicyError, MarginPolicy};
pub use record::{Cleared, Cooldown, Rest};
pub use table::{Cooldowns, RunEnd, StartRefusal, StartRefusalReason, Started};
