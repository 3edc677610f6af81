//! When a breaker opens, for how long, and what it takes to close it again.

use std::time::Duration;

/// The largest count window.
pub const MAX_WINDOW_CALLS: u32 = 100_000;
/// The most failures in a row that can be asked for.
pub const MAX_STREAK: u32 = 254;
/// The longest time window.
pub const MAX_WINDOW_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A failure that comes within this time is quick: a caller that meets it has lost little, so such a target is probed
/// again and again at the first pace.
pub const QUICK_FAILURE: Duration = Duration::from_secs(1);

/// What a sliding window looks back on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Span {
    /// The last calls, this many of them.
    Calls(u32),
    /// The calls of the last stretch of time, counted in ten parts.
    Time(Duration),
}

/// Calls that answer, but too slowly.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SlowPolicy {
    /// A call that takes longer is slow.
    pub longer_than: Duration,
    /// This share of slow calls opens the breaker, in `0..=1`.
    pub rate: f64,
}

/// The sliding window.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct WindowPolicy {
    /// What it looks back on.
    pub span: Span,
    /// With fewer calls than this nothing is concluded.
    pub min_calls: u32,
    /// This share of failures opens the breaker, in `0..=1`.
    pub failure_rate: f64,
    /// Slow calls, where they matter.
    pub slow: Option<SlowPolicy>,
}

/// How long a breaker stays open.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct OpenPolicy {
    /// The first time.
    pub first: Duration,
    /// What it is multiplied by each time that the probes fail, unless the failure came within [`QUICK_FAILURE`].
    pub growth: f64,
    /// It never stays open longer, so that a recovered target is soon back in use.
    pub cap: Duration,
    /// Up to this share of it is left out by chance, so that breakers do not probe in step; in `0..1`.
    pub jitter: f64,
}

/// How a breaker finds out whether the target is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbePolicy {
    /// Probes at the same time.
    pub permits: u32,
    /// Successes in a row that close it.
    pub successes: u32,
    /// A probe that has not come back for this long is written off.
    pub timeout: Duration,
    /// When no other target is left, an open breaker lets one call through in each such stretch; none refuses all.
    pub last_target_every: Option<Duration>,
    /// A probe that may cost its caller a long wait is better sent beside a call that another target serves, see
    /// [`Breaker::probe_is_dear`](super::Breaker::probe_is_dear).
    pub beside: bool,
    /// One probe beside calls is sent in each such stretch.
    pub beside_every: Duration,
}

/// When a breaker opens, for how long, and what closes it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BreakerPolicy {
    /// Opens after this many failures in a row.
    pub consecutive: Option<u32>,
    /// Opens by the share of failed or slow calls.
    pub window: Option<WindowPolicy>,
    /// How long it stays open.
    pub open: OpenPolicy,
    /// How it finds out.
    pub probe: ProbePolicy,
}

impl SlowPolicy {
    /// Calls that take longer count as slow; at this share of slow calls the breaker opens.
    #[must_use]
    pub const fn new(longer_than: Duration, rate: f64) -> Self {
        Self { longer_than, rate }
    }
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self::BOTH
    }
}

const HALF_A_MINUTE: Duration = Duration::from_secs(30);
/// A target that is back is found soon, and few calls are wasted while it is not: `tests/probes.rs` has the figures.
const BESIDE_EVERY: Duration = Duration::from_secs(7);
const HALF_A_MINUTE_OPEN: OpenPolicy =
    OpenPolicy { first: HALF_A_MINUTE, growth: 1.0, cap: HALF_A_MINUTE, jitter: 0.1 };

impl BreakerPolicy {
    /// Five failures in a row, open for thirty seconds.
    pub const CONSECUTIVE: Self = Self {
        consecutive: Some(5),
        window: None,
        open: HALF_A_MINUTE_OPEN,
        probe: ProbePolicy {
            permits: 1,
            successes: 2,
            timeout: HALF_A_MINUTE,
            last_target_every: Some(Duration::from_secs(1)),
            beside: true,
            beside_every: BESIDE_EVERY,
        },
    };

    /// Half of the last ten calls (of at least five), open for thirty seconds, three probes.
    pub const WINDOW: Self = Self {
        consecutive: None,
        window: Some(WindowPolicy { span: Span::Calls(10), min_calls: 5, failure_rate: 0.5, slow: None }),
        open: HALF_A_MINUTE_OPEN,
        probe: ProbePolicy {
            permits: 3,
            successes: 3,
            timeout: HALF_A_MINUTE,
            last_target_every: Some(Duration::from_secs(1)),
            beside: true,
            beside_every: BESIDE_EVERY,
        },
    };

    /// Both rules; opens for five seconds at first and for thirty at most; quick failures keep it at five.
    pub const BOTH: Self = Self {
        consecutive: Some(5),
        window: Self::WINDOW.window,
        open: OpenPolicy { first: Duration::from_secs(5), growth: 2.0, ..HALF_A_MINUTE_OPEN },
        probe: ProbePolicy { permits: 3, successes: 2, ..Self::WINDOW.probe },
    };
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BreakerPolicyError {
    /// It would never open.
    #[error("neither `consecutive` nor `window` is set: it would never open")]
    NeverOpens,
    /// A count out of its range.
    #[error("`consecutive` must be 1 to {MAX_STREAK}")]
    Consecutive,
    /// A window of nothing, or a huge one.
    #[error("the window must cover 1 to {MAX_WINDOW_CALLS} calls, or more than no time and at most a day")]
    Window,
    /// Never enough calls.
    #[error("`min_calls` must be at least 1 and at most the calls of the window")]
    MinCalls,
    /// A rate out of its range.
    #[error("a rate must be above 0 and at most 1")]
    Rate,
    /// A slow call of no length.
    #[error("`longer_than` must be more than nothing")]
    SlowCall,
    /// A factor that is no number, or shrinks.
    #[error("growth must be a number of at least 1")]
    Growth,
    /// Open for no time, or first longer than the cap.
    #[error("the open time must be more than nothing and at most its cap")]
    OpenTime,
    /// A share out of its range.
    #[error("the jitter must be at least 0 and below 1")]
    Jitter,
    /// It could never close.
    #[error("`permits`, `successes`, `timeout` and `beside_every` must be more than nothing")]
    Probe,
    /// A pace of nothing would let everything through.
    #[error("`last_target_every` must be more than nothing")]
    Pace,
}

impl BreakerPolicy {
    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), BreakerPolicyError> {
        use BreakerPolicyError as Wrong;
        let require = |holds: bool, wrong: Wrong| if holds { Ok(()) } else { Err(wrong) };
        require(self.consecutive.is_some() || self.window.is_some(), Wrong::NeverOpens)?;
        require(self.consecutive.is_none_or(|n| (1..=MAX_STREAK).contains(&n)), Wrong::Consecutive)?;
        if let Some(window) = &self.window {
            window.validate()?;
        }
        let open = &self.open;
        require(open.growth.is_finite() && open.growth >= 1.0, Wrong::Growth)?;
        require(!open.first.is_zero() && open.first <= open.cap, Wrong::OpenTime)?;
        require((0.0..1.0).contains(&open.jitter), Wrong::Jitter)?;
        let probe = &self.probe;
        let is_nothing = probe.timeout.is_zero() || probe.beside_every.is_zero();
        require(probe.permits > 0 && probe.successes > 0 && !is_nothing, Wrong::Probe)?;
        require(probe.last_target_every.is_none_or(|pace| !pace.is_zero()), Wrong::Pace)
    }
}

impl WindowPolicy {
    fn validate(&self) -> Result<(), BreakerPolicyError> {
        use BreakerPolicyError as Wrong;
        let max = match self.span {
            Span::Calls(calls) if (1..=MAX_WINDOW_CALLS).contains(&calls) => calls,
            Span::Time(length) if !length.is_zero() && length <= MAX_WINDOW_TIME => u32::MAX,
            _ => return Err(Wrong::Window),
        };
        if !(1..=max).contains(&self.min_calls) {
            return Err(Wrong::MinCalls);
        }
        let is_rate = |rate: f64| rate > 0.0 && rate <= 1.0;
        if !is_rate(self.failure_rate) || self.slow.is_some_and(|slow| !is_rate(slow.rate)) {
            return Err(Wrong::Rate);
        }
        if self.slow.is_some_and(|slow| slow.longer_than.is_zero()) {
            return Err(Wrong::SlowCall);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sound_and_have_the_values_of_their_designs() {
        for policy in [BreakerPolicy::CONSECUTIVE, BreakerPolicy::WINDOW, BreakerPolicy::BOTH] {
            assert_eq!(policy.validate(), Ok(()));
            assert!(policy.open.cap <= HALF_A_MINUTE, "a recovered target is back within thirty seconds");
            assert!(policy.open.jitter > 0.0, "the nodes of a fleet do not probe in step");
        }
        assert_eq!(BreakerPolicy::CONSECUTIVE.consecutive, Some(5));
        assert_eq!(BreakerPolicy::CONSECUTIVE.open.first, HALF_A_MINUTE);
        let window = BreakerPolicy::WINDOW.window.unwrap();
        assert_eq!((window.span, window.min_calls), (Span::Calls(10), 5));
        assert_eq!(BreakerPolicy::WINDOW.probe.permits, 3);
    }

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        use BreakerPolicyError as Wrong;
        let base = BreakerPolicy::BOTH;
        let window = base.window.unwrap();
        let with_window = |window| BreakerPolicy { window: Some(window), ..base };
        let cases = [
            (BreakerPolicy { consecutive: None, window: None, ..base }, Wrong::NeverOpens),
            (BreakerPolicy { consecutive: Some(0), ..base }, Wrong::Consecutive),
            (BreakerPolicy { consecutive: Some(255), ..base }, Wrong::Consecutive),
            (with_window(WindowPolicy { span: Span::Calls(0), ..window }), Wrong::Window),
            (with_window(WindowPolicy { span: Span::Time(Duration::ZERO), ..window }), Wrong::Window),
            (with_window(WindowPolicy { min_calls: 11, ..window }), Wrong::MinCalls),
            (with_window(WindowPolicy { failure_rate: f64::NAN, ..window }), Wrong::Rate),
            (BreakerPolicy { open: OpenPolicy { growth: 0.9, ..base.open }, ..base }, Wrong::Growth),
            (
                BreakerPolicy { open: OpenPolicy { first: Duration::ZERO, ..base.open }, ..base },
                Wrong::OpenTime,
            ),
            (BreakerPolicy { open: OpenPolicy { jitter: 1.0, ..base.open }, ..base }, Wrong::Jitter),
            (BreakerPolicy { probe: ProbePolicy { permits: 0, ..base.probe }, ..base }, Wrong::Probe),
            (
                BreakerPolicy {
                    probe: ProbePolicy { last_target_every: Some(Duration::ZERO), ..base.probe },
                    ..base
                },
                Wrong::Pace,
            ),
        ];
        for (policy, wrong) in cases {
            assert_eq!(policy.validate(), Err(wrong));
        }
    }
}
