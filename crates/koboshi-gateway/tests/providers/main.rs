//! Providers of every kind over real sockets: their paths, their credentials, and tokens that expire.
//!
//! The answers of a kind are not tested here: these are the requests to it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod counts;
mod ends;
mod pinned;
mod poisoned;
mod scripted;
mod tokens;
mod ways;
