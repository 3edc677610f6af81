//! Real parts for tests: a Redis that can be killed, emptied and paused, a provider that falls on command and counts
//! what it is asked, and waiting with a deadline.
//!
//! For tests only; nobody ships it. A part that cannot be had fails the test and says how to get it: a test that
//! skips itself promises nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test must fail loudly")]

mod redis;
mod upstream;
mod wait;

pub use redis::RedisServer;
pub use upstream::{Seen, Upstream};
pub use wait::{DEADLINE, breathe, signal, until};
