//! Stops sending to a target that keeps failing, and finds out when it is back.

mod policy;
mod snapshot;

pub use policy::{
    BreakerPolicy, BreakerPolicyError, LARGEST_WINDOW, LONGEST_STREAK, LONGEST_WINDOW, OpenPolicy,
    ProbePolicy, SlowPolicy, Span, WindowPolicy,
};
pub use snapshot::{BreakerSnapshot, Mode};
