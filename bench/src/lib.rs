//! What the two programs of the gateway bench share: one clock, and the one answer that all models give.
//!
//! `mock` plays the provider and `load` the client. A time that one writes can be read by the other, because both use the
//! machine's monotonic clock; a text that one sends can be checked by the other, because both know it.

pub mod answer;
pub mod clock;
