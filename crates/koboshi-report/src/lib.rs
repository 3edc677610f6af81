//! Placeholder during set-up.
