//! What becomes of a supervised agent: what its end means, what else rests with it, and who may start next.
//!
//! ```text
//!   end of a process ──► judge ──► Outcome ──► ladder: which key rests ──► cooldown
//!   agent wants to start ──► ladder: may it? ──► room: is there a place on the account? ──► start
//!   running ──► watchdog: too long, too quiet, cut off?
//! ```
//!
//! How long a key rests, when it is parked and when that is forgotten is [`cooldown`](crate::cooldown)'s. This module adds what only
//! processes have: an end with an exit code that may lie, several keys at once, places per account and limits of time.
//!
//! *Not here*: processes, signals, logs, clocks.

mod end;
mod ladder;
mod queue;
mod room;
mod step;
mod watchdog;
mod when;

pub use end::{End, NotStarted, Outcome, Status, StoppedFor, judge};
pub use ladder::{Ladder, Learned, Permit};
pub use queue::{Waiting, first};
pub use room::{Room, RoomPolicy};
pub use step::{Step, after};
pub use watchdog::{Overdue, Signs, WatchPolicy, next_look, overdue};
pub use when::{Due, When, due};
