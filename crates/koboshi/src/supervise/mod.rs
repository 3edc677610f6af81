//! The life of a supervised agent: what its end means, which other keys rest with it, and which agent may start next.
//!
//! ```text
//!   end of a process ──► judge ──► Outcome ──► ladder: which key rests ──► cooldown
//!   agent wants to start ──► ladder: may it? ──► room: is there a place on the account? ──► start
//!   time passes ──► when: is it wanted? ──► start, or the running one gives way
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
mod schedule;
mod step;
mod watchdog;
mod when;

pub use end::{End, NotStarted, Outcome, Status, StoppedFor, judge};
pub use ladder::{Ladder, Permit, RunEffects, is_dry};
pub use queue::{Waiting, first};
pub use room::{Room, RoomPolicy};
pub use schedule::{Schedule, ScheduleError};
pub use step::{Step, after};
pub use watchdog::{Overdue, Signs, WatchPolicy, next_check, overdue};
pub use when::{AgentAction, Due, MissedTimes, Overlap, Past, ScheduleRule, When, due, gives_way};
