//! The smaller suites of the gateway, a module for each subject.
//!
//! They are one program, so that what they share is compiled and linked once: `cargo test -p koboshi-gateway --test all MODULE`. The larger
//! suites are programs of their own, and so are those that use up what a process has (`descriptors`, `ports`).

mod admin;
mod common;
mod degrade;
mod edge;
mod guard;
mod operator;
mod own_errors;
mod reload;
mod restart;
mod secure;
mod stores;
mod tls;
mod trace;
mod unavailable;
