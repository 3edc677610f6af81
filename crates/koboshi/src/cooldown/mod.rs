//! Puts a key into cooldown after failures: how long, when it is parked, and which caller may try first.
//!
//! Four parts: the record of one key, which is stored, shared and merged (`record`); the rules that change it
//! (`decide`); the table of one process with what is local to it, for starts of agents (`table`); and how requests come
//! back to a key after its rest (`reopening`). Deadlines are wall time, because they
//! outlive the process and mean the same on every machine; a clock that is set back does not stretch a cooldown of our
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
mod reopening;
mod table;

#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use class::Class;
pub use decide::{Failure, Standing};
pub use event::{CooldownChange, CooldownEvent};
pub use policy::{ClassPolicy, CooldownPolicy, CooldownPolicyError, MarginPolicy};
pub(crate) use record::is_past;
pub use record::{BreakerOrder, ClearMark, Cooldown, OrderedMode, Rest};
pub use reopening::{FleetPlace, Reopening, ReopeningPolicy, RestPhase, Turn};
pub use table::{Cooldowns, RunEnd, StartPermit, StartRefusal, StartRefusalReason};
