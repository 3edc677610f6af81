//! What a request carries, what one core has, and what all cores share.

pub(crate) mod agents;
pub(crate) mod attempt_guard;
pub(crate) mod cache;
pub(crate) mod chains;
pub(crate) mod context;
pub(crate) mod core_state;
pub(crate) mod disclosure;
pub(crate) mod forwarded;
pub(crate) mod host;
pub(crate) mod large;
pub(crate) mod locality;
pub(crate) mod notice;
pub(crate) mod operator;
pub(crate) mod panics;
pub(crate) mod program;
pub(crate) mod reopenings;
pub(crate) mod retention;
pub(crate) mod sessions;
pub(crate) mod spend;
pub(crate) mod state;
pub(crate) mod stored_part;
pub(crate) mod targets;
pub(crate) mod trace;
pub(crate) mod visitors;
pub(crate) mod worker;
