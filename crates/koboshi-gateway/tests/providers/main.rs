//! Providers of every kind over real sockets: where they are asked, how they are told who asks, and tokens that run out.
//!
//! What a kind answers is not looked at here: these are the ways to it.

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
