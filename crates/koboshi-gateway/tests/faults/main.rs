//! Every fall of a provider over real sockets: the client gets the whole right answer or the right clean error, and the
//! provider is asked exactly as often as it should be.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;

mod breakers;
mod clients;
mod framing;
mod heads;
mod keys;
mod limits;
mod messages;
mod refusals;
mod resends;
mod scenarios;
mod streams;
mod tools;
mod transient;
mod unasked;
