//! Koboshi's core: it decides and touches nothing.
//!
//! Agents fall in many ways, and all of them are the same thing: **every failure becomes one
//! [`Fault`](fault::Fault)**. This crate holds the fault table ([`fault`]), the readers that fill it ([`classify`]), the grammar of stated
//! waits ([`wait`]), and the one place where secrets are taken out of text ([`redact`]).
//!
//! No clock, no socket, no file, no async, no global: the time, the zone database and the rules are
//! arguments. So every decision here can be tested, replayed and fuzzed, and the same decision serves
//! the gateway, the supervisor, the command line and your own program.

pub mod classify;
pub mod fault;
pub mod redact;
pub mod wait;
