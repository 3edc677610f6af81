//! Promises of `check` that no other test holds.
