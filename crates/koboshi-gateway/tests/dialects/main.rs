//! Clients of every dialect before providers of every dialect: clients do not notice which target answers, and failures are handled in all of them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;
mod endings;
mod errors;
mod falls;
mod own;
mod passing;
mod repeated;
mod silence;
mod simulated;
mod speech;
mod tools;
mod trim;
