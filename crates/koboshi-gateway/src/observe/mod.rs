//! What the gateway reports while it runs: metrics, the log, the live feed of the journal.
//!
//! It knows neither requests nor targets; its callers report them.

pub(crate) mod error_log;
pub(crate) mod feed;
pub(crate) mod log;
pub(crate) mod meters;
pub(crate) mod names;
pub(crate) mod otlp;
pub(crate) mod transition;
