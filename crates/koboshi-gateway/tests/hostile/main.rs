//! Clients, upstreams, proxies, stores and the machine itself at their worst, over real sockets.
//!
//! Each test is something that once broke, or that an attacker will try. The long tier has more mutated requests and `bench/hostile.py`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod drain;
mod gone;
mod large;
mod panics;
mod trust;
