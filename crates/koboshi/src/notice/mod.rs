//! Who gets which notice, and when: decides about notices; writes and sends none.
//!
//! What is the matter now is handed in as [`Fact`]s, read from state. A [`Book`] makes episodes of them: something fails,
//! may get worse, and is well again. Each channel gets at most one [`Notice`] for each of these [`Stage`]s, in whatever order
//! and however often facts arrive. A [`Queue`] then decides which notices go out together, and when: not one by one,
//! not too many in an hour, and in quiet hours only what is critical.
//!
//! Facts are state and not events: a storm of failures is one fact, and a lost event loses no notice.
//!
//! Book and queues are plain data, so that a caller can store them before it sends and go on after a crash: a message that
//! was decided keeps its id, however often it is sent.

mod book;
mod fact;
mod queue;
#[cfg(test)]
mod tests;

pub use book::{Book, Episode, Interest, MAX_EPISODES};
pub use fact::{Damage, Fact, Notice, Severity, Stage, Trigger};
pub use queue::{ChannelState, MAX_IN_MESSAGE, MAX_WAITING, Message, Queue, QueuePolicy, Refused, is_quiet};
