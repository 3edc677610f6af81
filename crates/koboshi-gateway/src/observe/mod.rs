//! What machines and operators are told while the gateway runs: metrics, the log, the live feed of the journal.
//!
//! Nothing here knows of requests or targets; those who do tell it.

pub(crate) mod feed;
pub(crate) mod log;
pub(crate) mod meters;
pub(crate) mod names;
pub(crate) mod transition;
