//! Koboshi's core: it decides and touches nothing.
//!
//! Agents fail in many ways, and all of them take one form: **every failure becomes one
//! [`Fault`](fault::Fault)**. This crate holds the fault table ([`fault`]), the readers that fill it
//! ([`classify`]), the grammar of stated waits ([`wait`]), the one place where secrets are taken out of text
//! ([`redact`]), and what to do about a fault: [`remedy`](remedy::remedy), with its pauses ([`backoff`])
//! and what they may cost ([`budget`]). What was learned is kept per [`key`]: [`breaker`] stops sending to a target
//! that keeps failing, [`gate`] keeps traffic below what a provider allows, [`cooldown`] lets a key rest until a
//! stated or guessed time. [`supervise`] decides what the end of an agent's process means and which agent may start; [`notice`] who gets which
//! notice, and [`spend`] what tokens cost. [`call`] puts them together for one request. [`guard`] distinguishes loops of tool calls from work.
//! [`models`] knows what models can do and which parameters they take. [`session`] is a conversation that survives its connections.
//!
//! No clock, no socket, no file, no async, no global: the time, the zone database and the rules are
//! arguments. So every decision here can be tested, replayed and fuzzed, and the same decision serves
//! the gateway, the supervisor, the command line and your own program.

#[cfg(feature = "args")]
pub mod args;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod call;
pub mod chance;
#[cfg(feature = "classify")]
pub mod classify;
pub mod cooldown;
pub mod fault;
pub mod gate;
#[cfg(feature = "guard")]
pub mod guard;
pub mod key;
#[cfg(feature = "models")]
pub mod models;
pub mod notice;
mod policies;
#[cfg(feature = "args")]
pub mod reask;
#[cfg(feature = "redact")]
pub mod redact;
pub mod remedy;
#[cfg(feature = "session")]
pub mod session;
pub mod spend;
#[cfg(feature = "supervise")]
pub mod supervise;
mod sync;
pub mod time;
#[cfg(feature = "tower")]
pub mod tower;
pub mod wait;

/// The crate of wall times in signatures here. A new major version of it is a new major version of this crate.
pub use jiff;

/// The snippets of the pages, compiled.
#[cfg(all(doctest, feature = "clock", feature = "classify"))]
mod pages {
    #[doc = include_str!("../README.md")]
    struct OfTheCrate;
    #[doc = include_str!("../../../README.md")]
    struct OfTheProject;
    #[doc = include_str!("../../../README.ja.md")]
    struct InJapanese;
}
