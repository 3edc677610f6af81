//! Sessions through the real gateway, with scripted providers: a conversation survives what happens to its connections and its provider.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]
#![allow(clippy::disallowed_methods, reason = "how long real gateways take is what some tests are about")]

#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod hostile;
mod keys;
mod replicas;
mod resume;
mod tools;
mod turns;
