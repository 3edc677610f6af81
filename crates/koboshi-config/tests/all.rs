//! The tests of this crate from outside, a module for each subject.
//!
//! They are one program, so that what they share is compiled and linked once: `cargo test -p koboshi-config --test all MODULE`.

mod any_bytes;
mod effect;
mod gateway;
mod hints;
mod litellm;
mod load;
mod reload;
mod secrets;
mod table;
