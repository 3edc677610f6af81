//! One learned allowance: how much is left, and how it comes back.
//!
//! A header says how much was left at one instant. From there the level is counted here: it falls with every
//! reservation and rises again in one of two ways. *Steady*: the provider's own bucket refills all the time, and the
//! stated reset is when it is full, so the pace is what is missing over the time until then. *At the reset*: nothing
//! comes back before, everything then. What is not known is not invented: without a limit or a reset nothing comes
//! back until there is news, or until what was learned is too old to be believed.
//!
//! All of it is whole-number arithmetic: levels are kept in units times the length of the refill, so that a refill of
//! 7 in 3 seconds is exact after every nanosecond and two ways of adding it up agree. Nothing overflows: amounts
//! are clamped to 2^50 and lengths to [`MAX_HOLD`].
//!
//! Invariants: the level is never above the ceiling; it may be below zero (a debt), then every caller waits. However
//! absurd the input, a bucket closes nothing for longer than `forget_after`.

use std::time::Duration;

use super::MAX_HOLD;
use super::cost::MAX_AMOUNT;
use crate::cooldown::FleetPlace;
use crate::time::Moment;

/// How an allowance comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Refill {
    /// All the time; the stated reset is when it is full. OpenAI, Groq and Anthropic count so.
    #[default]
    Steady,
    /// All at once at the reset: windows that begin again. The safe assumption about a provider that is not known.
    AtReset,
}

/// What a provider said about one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The most in a window, if it was stated.
    pub limit: Option<u64>,
    /// What is left.
    pub remaining: u64,
    /// When it is full again, if it was stated.
    pub resets_in: Option<Duration>,
    /// How it comes back until then.
    pub refill: Refill,
}

impl Allowance {
    /// The part of one node, where several share the limit. The parts of all nodes are the whole limit, and no more than what is left of it:
    /// what one of them has used already is in no other's part.
    #[must_use]
    pub fn share_of(self, place: FleetPlace) -> Self {
        let nodes = u64::from(place.nodes.max(1));
        let rank = u64::from(place.rank) % nodes;
        let part = |whole: u64| whole / nodes + u64::from(rank < whole % nodes);
        let is_full = self.limit == Some(self.remaining);
        let remaining = if is_full { part(self.remaining) } else { self.remaining / nodes };
        Self { limit: self.limit.map(part), remaining, ..self }
    }
}

/// A full bucket says nothing about its pace, and most providers count by the minute.
const USUAL_WINDOW: Duration = Duration::from_secs(60);
/// Resets are often cut to whole seconds: "0" means less than one, not nothing.
const MIN_RESET: Duration = Duration::from_secs(1);
/// From this share of what may be used on, it is nearly used up.
const NEARLY_PERCENT: i128 = 80;

/// What a bucket must know besides the allowance.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketContext {
    /// This share is left unused.
    pub(super) headroom: f64,
    /// How long news is believed.
    pub(super) forget_after: Duration,
    /// Reserved and perhaps not yet counted by the provider.
    pub(super) unseen: u128,
}

/// How a refresh changed a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowChange {
    /// The window continued as before.
    Same,
    /// A new window began.
    Reset,
    /// Nothing is known any more.
    Forgotten,
}

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// What may be used when it is full; of an unknown limit, what was left.
    ceiling: u64,
    /// Whether the ceiling comes from a stated limit.
    is_known: bool,
    /// Units times `per`.
    level: i128,
    /// Units that come back in `per` nanoseconds.
    gain: u64,
    per: u64,
    /// When a new window begins.
    reset: Option<Moment>,
    /// The level is of this moment.
    at: Moment,
    forget: Moment,
}

impl Bucket {
    /// What is left without touching the share of others, once everything on its way has been counted.
    ///
    /// Everything unseen is taken off: a request that is on its way may or may not be in the stated number, and
    /// counting it twice costs a short wait, not counting it costs a refusal.
    pub(super) fn learned(
        allowance: Allowance,
        earlier: Option<&Self>,
        about: BucketContext,
        now: Moment,
    ) -> Self {
        let limit = allowance.limit.map(|limit| limit.clamp(1, MAX_AMOUNT));
        let remaining = allowance.remaining.min(limit.unwrap_or(MAX_AMOUNT));
        let whole = limit.unwrap_or(remaining);
        let spared = share_of(whole, about.headroom);
        let ceiling = if limit.is_some() { whole.saturating_sub(spared).max(1) } else { whole - spared };
        let usable = i128::from(remaining) - i128::from(whole.saturating_sub(ceiling));
        let length = allowance.resets_in.map(|length| length.min(MAX_HOLD));
        let ((gain, per), reset) = match (limit, length) {
            (Some(limit), Some(length)) if allowance.refill == Refill::Steady => (
                pace(limit - remaining, length)
                    .or(earlier.and_then(Self::pace))
                    .unwrap_or((ceiling, nanos(USUAL_WINDOW))),
                None,
            ),
            (_, length) => ((0, 1), length.map(|length| now.after(length.max(MIN_RESET)))),
        };
        let level = usable.saturating_sub(whole_number(about.unseen)).saturating_mul(i128::from(per));
        let forget = now.after(about.forget_after);
        Self { ceiling, is_known: limit.is_some(), level, gain, per, reset, at: now, forget }
    }

    /// The same where other nodes use the limit too: what this node has used of its own part is gone for it, whatever is left in
    /// all. Else a busy node would take a new part of the rest after each answer, and together they would take too much.
    pub(super) fn within_own_part(mut self, earlier: Option<&Self>) -> Self {
        let in_same_window = |earlier: &Self| match (earlier.reset, self.reset) {
            (Some(earlier), Some(own)) => own <= earlier.after(MIN_RESET),
            (None, None) => true,
            _ => false,
        };
        let comparable =
            |earlier: &&Self| self.is_known && earlier.ceiling == self.ceiling && in_same_window(earlier);
        if let Some(earlier) = earlier.filter(comparable) {
            let left = i128::from(earlier.left()).saturating_mul(i128::from(self.per));
            self.level = self.level.min(left);
        }
        self
    }

    fn pace(&self) -> Option<(u64, u64)> {
        (self.gain > 0).then_some((self.gain, self.per))
    }

    fn full(&self) -> i128 {
        i128::from(self.ceiling).saturating_mul(i128::from(self.per))
    }

    /// Brings the level up to this moment.
    pub(super) fn refresh(&mut self, unseen: u128, now: Moment) -> WindowChange {
        if now >= self.forget {
            return WindowChange::Forgotten;
        }
        if self.reset.is_some_and(|reset| now >= reset) {
            if !self.is_known {
                return WindowChange::Forgotten;
            }
            // As if the provider had stated "all of it is left": what is on its way counts against the new window.
            self.level =
                self.full().saturating_sub(whole_number(unseen).saturating_mul(i128::from(self.per)));
            (self.reset, self.at) = (None, now);
            return WindowChange::Reset;
        }
        let elapsed = now.nanos().saturating_sub(self.at.nanos());
        let gained = i128::from(elapsed).saturating_mul(i128::from(self.gain));
        self.level = self.level.saturating_add(gained).min(self.full());
        self.at = self.at.max(now);
        WindowChange::Same
    }

    /// Adds or takes whole units.
    pub(super) fn change(&mut self, units: i128) {
        let change = units.saturating_mul(i128::from(self.per));
        self.level = self.level.saturating_add(change).min(self.full());
    }

    /// When this much may be taken; `None` if it may be now. The bucket must be fresh.
    ///
    /// More than the bucket ever holds may be taken when it is full, else it would wait for ever.
    pub(super) fn ready(&self, units: u64) -> Option<Moment> {
        let units = if self.is_known { units.min(self.ceiling) } else { units };
        let missing = i128::from(units).saturating_mul(i128::from(self.per)).saturating_sub(self.level);
        (missing > 0).then(|| self.regained(missing).or(self.reset).unwrap_or(self.forget).min(self.forget))
    }

    /// When this much, in units times `per`, has come back.
    fn regained(&self, missing: i128) -> Option<Moment> {
        let gain = (self.gain > 0).then(|| i128::from(self.gain))?;
        let wait = missing.saturating_add(gain - 1) / gain;
        Some(self.at.after(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))))
    }

    /// How much is used, in percent, if it is nearly all; and when this window is over.
    pub(super) fn nearly(&self) -> Option<(u8, Moment)> {
        let used = self.full().saturating_sub(self.level);
        let percent = used.saturating_mul(100).checked_div(self.full()).filter(|_| self.is_known)?;
        (percent >= NEARLY_PERCENT).then(|| {
            let over = self.reset.or_else(|| self.regained(used)).unwrap_or(self.forget);
            (u8::try_from(percent.min(100)).unwrap_or(100), over)
        })
    }

    /// Whole units left; below zero is a debt.
    pub(super) fn left(&self) -> i64 {
        let units = self.level.div_euclid(i128::from(self.per.max(1)));
        i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
    }

    /// What there is when it is full.
    pub(super) fn max(&self) -> Option<u64> {
        self.is_known.then_some(self.ceiling)
    }
}

/// What is missing comes back in this length; neither may be nothing.
fn pace(missing: u64, length: Duration) -> Option<(u64, u64)> {
    let per = nanos(length);
    (missing > 0 && per > 0).then_some((missing, per))
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn whole_number(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

/// The whole units in a share.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^50 and not negative")]
fn share_of(whole: u64, share: f64) -> u64 {
    ((whole.min(MAX_AMOUNT) as f64) * share.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    fn about(unseen: u128) -> BucketContext {
        BucketContext { headroom: 0.0, forget_after: Duration::from_secs(600), unseen }
    }

    fn stated(limit: Option<u64>, remaining: u64, seconds: Option<u64>) -> Allowance {
        let resets_in = seconds.map(Duration::from_secs);
        Allowance { limit, remaining, resets_in, refill: Refill::Steady }
    }

    fn after(mut bucket: Bucket, seconds: u64) -> Option<i64> {
        (bucket.refresh(0, at(seconds)) != WindowChange::Forgotten).then(|| bucket.left())
    }

    #[test]
    fn what_is_missing_comes_back_steadily_until_the_stated_reset_and_no_further() {
        let bucket = Bucket::learned(stated(Some(100), 40, Some(30)), None, about(0), at(0));
        for (second, left) in [(0, 40), (1, 42), (15, 70), (30, 100), (300, 100)] {
            assert_eq!(after(bucket.clone(), second), Some(left), "after {second} s");
        }
        assert_eq!(bucket.ready(40), None);
        assert_eq!(bucket.ready(50), Some(at(5)));
    }

    #[test]
    fn without_a_limit_nothing_comes_back_before_the_reset_and_then_nothing_is_known() {
        let bucket = Bucket::learned(stated(None, 3, Some(30)), None, about(0), at(0));
        assert_eq!(after(bucket.clone(), 29), Some(3));
        assert_eq!(after(bucket.clone(), 30), None);
        assert_eq!(bucket.ready(4), Some(at(30)), "not sooner because the bucket is 'full'");
        let bucket = Bucket::learned(stated(None, 0, None), None, about(0), at(0));
        assert_eq!(bucket.ready(1), Some(at(600)), "no reset either: until it is too old to be believed");
    }

    #[test]
    fn a_window_refills_at_its_end_and_what_is_on_its_way_counts_against_the_next() {
        let window = Allowance { refill: Refill::AtReset, ..stated(Some(100), 0, Some(30)) };
        let mut bucket = Bucket::learned(window, None, about(0), at(0));
        assert_eq!(after(bucket.clone(), 29), Some(0));
        assert_eq!(bucket.refresh(7, at(30)), WindowChange::Reset);
        assert_eq!(bucket.left(), 93);
        assert_eq!(bucket.refresh(7, at(31)), WindowChange::Same);
    }

    #[test]
    fn what_is_on_its_way_is_taken_off_what_was_stated() {
        let bucket = Bucket::learned(stated(Some(100), 40, Some(30)), None, about(50), at(0));
        assert_eq!(bucket.left(), -10);
        assert_eq!(bucket.ready(0), Some(at(5)), "a debt closes the gate for every caller");
    }

    #[test]
    fn headroom_is_left_unused_at_the_low_end_too() {
        let shared = BucketContext { headroom: 0.2, ..about(0) };
        let bucket = Bucket::learned(stated(Some(100), 50, Some(50)), None, shared, at(0));
        assert_eq!((bucket.left(), bucket.max()), (30, Some(80)), "twenty of the fifty are for others");
        let unknown = Bucket::learned(stated(None, 50, None), None, shared, at(0));
        assert_eq!((unknown.left(), unknown.max()), (40, None));
    }

    #[test]
    fn more_than_the_whole_bucket_passes_when_it_is_full() {
        let mut bucket = Bucket::learned(stated(Some(100), 90, Some(10)), None, about(0), at(0));
        assert_eq!(bucket.ready(1000), Some(at(10)));
        bucket.refresh(0, at(10));
        assert_eq!(bucket.ready(1000), None);
        bucket.change(-1000);
        assert_eq!((bucket.left(), bucket.ready(0)), (-900, Some(at(600))), "a debt");
    }

    #[test]
    fn a_full_bucket_keeps_its_last_pace_and_else_takes_a_minute() {
        let earlier = Bucket::learned(stated(Some(100), 40, Some(30)), None, about(0), at(0));
        let mut full = Bucket::learned(stated(Some(100), 100, Some(0)), Some(&earlier), about(0), at(0));
        full.change(-50);
        assert_eq!(after(full, 10), Some(70), "two a second, as before");
        let mut full = Bucket::learned(stated(Some(60), 60, Some(0)), None, about(0), at(0));
        full.change(-50);
        assert_eq!(after(full, 10), Some(20), "sixty a minute");
    }

    #[test]
    fn the_parts_of_all_nodes_are_the_whole_and_none_takes_more_than_its_own() {
        for (whole, nodes) in [(10, 3), (2, 5), (0, 2), (u64::MAX, 7)] {
            let parts = (0..nodes).map(|rank| {
                let allowance = stated(Some(whole), whole, Some(30)).share_of(FleetPlace { rank, nodes });
                assert_eq!(allowance.limit, Some(allowance.remaining));
                u128::from(allowance.remaining)
            });
            assert_eq!(parts.sum::<u128>(), u128::from(whole));
        }
        let pair = FleetPlace { rank: 0, nodes: 2 };
        let window = |remaining, seconds| {
            let all = Allowance { refill: Refill::AtReset, ..stated(Some(100), remaining, Some(seconds)) };
            all.share_of(pair)
        };
        let mut own = Bucket::learned(window(100, 30), None, about(0), at(0));
        own.change(-50);
        let news = Bucket::learned(window(50, 30), Some(&own), about(0), at(0)).within_own_part(Some(&own));
        assert_eq!(news.left(), 0, "the other fifty are the other node's");
        let next = Bucket::learned(window(99, 60), Some(&own), about(0), at(29)).within_own_part(Some(&own));
        assert_eq!(next.left(), 50, "a new window");
    }

    #[test]
    fn absurd_news_is_clamped_and_never_closes_for_good() {
        let lengths = [None, Some(Duration::ZERO), Some(Duration::from_nanos(1)), Some(Duration::MAX)];
        let amounts = [0, 1, 100, u64::MAX];
        for resets_in in lengths {
            for remaining in amounts {
                for limit in [None, Some(0), Some(1), Some(u64::MAX)] {
                    for refill in [Refill::Steady, Refill::AtReset] {
                        let allowance = Allowance { limit, remaining, resets_in, refill };
                        let mut bucket = Bucket::learned(allowance, None, about(u128::MAX), at(0));
                        bucket.change(i128::MIN);
                        bucket.change(i128::MAX);
                        let ready = bucket.ready(u64::MAX).unwrap_or(at(0));
                        assert!(ready <= at(600), "{allowance:?} closes until {ready:?}");
                        let _ = (bucket.refresh(u128::MAX, at(1)), bucket.nearly(), bucket.left());
                        assert_eq!(bucket.refresh(0, at(600)), WindowChange::Forgotten);
                    }
                }
            }
        }
    }
}
