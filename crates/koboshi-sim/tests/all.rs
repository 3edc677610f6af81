//! The tests of this crate from outside, a module for each subject.
//!
//! They are one program, so that what they share is compiled and linked once: `cargo test -p koboshi-sim --test all MODULE`.

mod agents;
mod any;
mod chat;
mod common;
mod dialects;
mod falls;
mod page;
mod unchanged;
mod vendors;
