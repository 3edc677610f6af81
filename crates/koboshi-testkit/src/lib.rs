//! Real parts for tests: a Redis that can be killed, emptied and paused, a provider that fails on command and counts
//! what it is asked, a client, a crowd of clients under chaos, a proxy, and waiting with a deadline.
//!
//! For tests only; it is not shipped. A part that is not installed fails the test and says how to get it: a test that
//! skips itself promises nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test must fail loudly")]
#![allow(clippy::indexing_slicing, clippy::missing_panics_doc, reason = "a test must fail loudly")]

mod agent;
pub mod chaos;
mod client;
pub mod dialect;
mod proxy;
pub mod questions;
mod raw;
mod receiver;
mod redis;
mod redis_sets;
mod session;
mod upstream;
mod wait;

pub use agent::{MARK, ScriptedAgent, zombies_of};
pub use client::{Answer, Client};
pub use proxy::Proxy;
pub use raw::{RawReply, RawUpstream};
pub use receiver::{Delivery, Receiver, Reception};
pub use redis::RedisServer;
pub use redis_sets::{Line, RedisCluster, SentinelSet};
pub use session::{SessionClient, SessionEnd};
pub use upstream::{Authority, Protocol, ReceivedRequest, Upstream};
pub use wait::{DEADLINE, pause, signal, until};
