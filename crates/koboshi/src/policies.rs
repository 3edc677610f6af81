//! Policies can grow: each is `#[non_exhaustive]`, so a new setting breaks no program. `with` changes what a program wants to have
//! changed.
//!
//! ```
//! use koboshi::breaker::BreakerPolicy;
//!
//! let policy = BreakerPolicy::default().with(|policy| policy.consecutive = Some(3));
//! assert_eq!(policy.consecutive, Some(3));
//! ```

macro_rules! with {
    ($($(#[$feature:meta])? $policy:ty),+ $(,)?) => {$(
        $(#[$feature])?
        impl $policy {
            /// The same policy with changes.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }
        }
    )+};
}

with!(
    crate::backoff::BackoffPolicy,
    crate::breaker::BreakerPolicy,
    crate::breaker::OpenPolicy,
    crate::breaker::ProbePolicy,
    crate::breaker::SlowPolicy,
    crate::breaker::WindowPolicy,
    crate::budget::RequestPolicy,
    crate::budget::SharePolicy,
    crate::cooldown::ClassPolicy,
    crate::cooldown::CooldownPolicy,
    crate::cooldown::MarginPolicy,
    crate::cooldown::ReopeningPolicy,
    crate::gate::GatePolicy,
    crate::notice::QueuePolicy,
    crate::remedy::RemedyPolicy,
    #[cfg(feature = "supervise")]
    crate::supervise::RoomPolicy,
    #[cfg(feature = "supervise")]
    crate::supervise::WatchPolicy,
    #[cfg(feature = "args")]
    crate::args::ArgsPolicy,
    #[cfg(feature = "args")]
    crate::reask::ReaskPolicy,
    #[cfg(feature = "guard")]
    crate::guard::GuardPolicy,
    #[cfg(feature = "guard")]
    crate::guard::RulePolicy,
    #[cfg(feature = "guard")]
    crate::guard::ToolPolicy,
);
