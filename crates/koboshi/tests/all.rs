//! The tests of this crate from outside, a module for each subject.
//!
//! They are one program, so that what they share is compiled and linked once: `cargo test -p koboshi --test all MODULE`.

mod any_bytes;
mod args_any_bytes;
mod args_coercions;
mod args_corpus;
mod args_kit;
mod args_mutation;
mod args_single_edit;
mod args_strict;
mod chain_reaches;
mod contract;
mod contract_gate;
mod guard_any;
mod guard_corpus;
mod guard_seed;
mod model_breaker;
mod model_cooldown;
mod model_gate;
mod probes;
mod readers;
mod rule_files;
mod seeds;
mod session_any;
mod session_model;
mod session_vectors;
mod spawn_protection;
mod statuses;
