//! A whole closed breaker in one machine word.
//!
//! Healthy traffic must cost next to nothing, also on many cores. So the mode, the generation and the evidence of a
//! small window live in one `u64` that is read and exchanged as a whole: a call that changes nothing (a success after
//! successes) is two loads and no store, and no reader ever sees half of a change. The generation in the same word is
//! what makes late results harmless: an outcome is only counted into the very word that admitted its call.
//!
//! | Bits | Field |
//! |---|---|
//! | 0–16 | the last calls, newest lowest, 1 = failed; above the oldest stands one more 1 that marks the length |
//! | 17–32 | the same calls, 1 = slow; for a window that does not fit, bit 17 says that it is full of good calls |
//! | 33–40 | failures in a row; 255 = wary: the next failure opens |
//! | 41–42 | mode |
//! | 43–63 | generation, wrapping: a call would have to outlive two million changes to be mistaken |

use crate::time::Moment;

use super::permit::Outcome;
use super::policy::QUICK_FAILURE;

/// The largest count window that fits the word.
pub(super) const SMALL_WINDOW: u32 = 16;

/// Streak value of a breaker that was warned by another node.
const WARNED_STREAK: u64 = 255;

const SLOW_AT: u32 = 17;
const STREAK_AT: u32 = 33;
const MODE_AT: u32 = 41;
const GENERATION_AT: u32 = 43;
const GENERATION_MASK: u64 = (1 << (64 - GENERATION_AT)) - 1;
const EVIDENCE_MASK: u64 = (1 << MODE_AT) - 1;
const FAILED_MASK: u64 = (1 << SLOW_AT) - 1;
const SLOW_MASK: u64 = (1 << (STREAK_AT - SLOW_AT)) - 1;
const STREAK_MASK: u64 = 0xff;
/// No calls seen: only the mark of the length.
const NO_EVIDENCE: u64 = 1;

/// What the word can say about the mode; forced modes are a closed or open one with a note in the slow part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordMode {
    Closed,
    Open,
    Probing,
    Disabled,
}

/// What one call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallResult {
    pub(super) failed: bool,
    pub(super) slow: bool,
}

/// What else is known of a call that opens a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// It failed within [`QUICK_FAILURE`].
    pub(super) is_quick: bool,
    /// The target could not be reached.
    pub(super) is_local: bool,
}

/// What a window holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) calls: u32,
    pub(super) failed: u32,
    pub(super) slow: u32,
}

impl Cost {
    pub(super) fn of(outcome: Outcome, since: Moment, now: Moment) -> Self {
        Self {
            is_quick: outcome.is_failure() && now.since(since) <= QUICK_FAILURE,
            is_local: outcome == Outcome::Unreachable,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// A word without evidence.
    pub(super) const fn new(mode: WordMode, generation: u64) -> Self {
        let mode = match mode {
            WordMode::Closed => 0,
            WordMode::Open => 1,
            WordMode::Probing => 2,
            WordMode::Disabled => 3,
        };
        Self((generation & GENERATION_MASK) << GENERATION_AT | mode << MODE_AT | NO_EVIDENCE)
    }

    pub(super) const fn mode(self) -> WordMode {
        match self.0 >> MODE_AT & 3 {
            0 => WordMode::Closed,
            1 => WordMode::Open,
            2 => WordMode::Probing,
            _ => WordMode::Disabled,
        }
    }

    pub(super) const fn generation(self) -> u64 {
        self.0 >> GENERATION_AT
    }

    /// Whether this is the generation that a permit was given in.
    pub(super) const fn is_of(self, generation: u64) -> bool {
        self.generation() == generation & GENERATION_MASK
    }

    /// The same evidence under another generation.
    pub(super) const fn renumbered(self, generation: u64) -> Self {
        Self(self.0 & !(GENERATION_MASK << GENERATION_AT) | (generation & GENERATION_MASK) << GENERATION_AT)
    }

    pub(super) const fn streak(self) -> u64 {
        self.0 >> STREAK_AT & STREAK_MASK
    }

    pub(super) const fn is_warned(self) -> bool {
        self.streak() == WARNED_STREAK
    }

    /// The next failure opens; a success makes it forget.
    pub(super) const fn warned(self) -> Self {
        Self(self.0 | WARNED_STREAK << STREAK_AT)
    }

    pub(super) const fn tally(self) -> Tally {
        let failed = self.0 & FAILED_MASK;
        // The mark is the highest bit that is set: its place is the length.
        let calls = 63 - (failed | 1).leading_zeros();
        Tally {
            calls,
            failed: failed.count_ones().saturating_sub(1),
            slow: (self.0 >> SLOW_AT & SLOW_MASK).count_ones(),
        }
    }

    /// Whether a window that lives elsewhere is full of good calls, so that one more changes nothing.
    #[inline]
    pub(super) const fn is_spotless(self) -> bool {
        self.0 >> SLOW_AT & 1 == 1
    }

    pub(super) const fn spotless(self, yes: bool) -> Self {
        Self(self.0 & !(1 << SLOW_AT) | (yes as u64) << SLOW_AT)
    }

    /// Whether a window of this many calls has no room left; one of none always is.
    #[inline]
    pub(super) const fn is_full(self, window: u32) -> bool {
        window == 0 || self.0 >> window & 1 == 1
    }

    /// One more call, in a window of this many (0: no window).
    #[inline]
    pub(super) const fn with(self, seen: CallResult, window: u32) -> Self {
        let streak = match (seen.failed, self.streak()) {
            (false, _) => 0,
            (true, streak) if streak + 1 < WARNED_STREAK => streak + 1,
            // Neither a long row nor wariness may turn into the other.
            (true, streak) => streak,
        };
        let (mut failed, mut slow) = (self.0 & FAILED_MASK, self.0 >> SLOW_AT & SLOW_MASK);
        if window > 0 {
            let mark = 1 << window;
            let full = failed & mark != 0;
            failed = (failed & !(if full { mark } else { 0 })) << 1 | seen.failed as u64;
            if full {
                failed = failed & (mark - 1) | mark;
            }
            slow = (slow << 1 | seen.slow as u64) & (mark - 1);
        }
        Self(self.0 & !EVIDENCE_MASK | streak << STREAK_AT | slow << SLOW_AT | failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: CallResult = CallResult { failed: false, slow: false };
    const BAD: CallResult = CallResult { failed: true, slow: false };

    #[test]
    fn a_success_after_successes_changes_nothing() {
        let mut word = Word::new(WordMode::Closed, 7);
        for _ in 0..10 {
            word = word.with(GOOD, 10);
        }
        assert_eq!(word.with(GOOD, 10), word);
        assert_eq!(word.tally(), Tally { calls: 10, failed: 0, slow: 0 });
        let only_streak = Word::new(WordMode::Closed, 7);
        assert_eq!(only_streak.with(GOOD, 0), only_streak);
    }

    #[test]
    fn evidence_never_touches_mode_or_generation() {
        let mut word = Word::new(WordMode::Closed, 0x1f_ffff);
        for _ in 0..1000 {
            word = word.with(CallResult { failed: true, slow: true }, SMALL_WINDOW);
        }
        assert_eq!((word.mode(), word.generation(), word.streak()), (WordMode::Closed, 0x1f_ffff, 254));
        assert_eq!(word.tally(), Tally { calls: 16, failed: 16, slow: 16 });
    }

    #[test]
    fn wariness_lasts_until_a_success() {
        let warned = Word::new(WordMode::Closed, 0).warned();
        assert!(warned.is_warned() && warned.with(BAD, 0).is_warned());
        assert!(!warned.with(GOOD, 0).is_warned());
    }

    #[test]
    fn generations_wrap() {
        assert!(Word::new(WordMode::Open, 1 << 21).is_of(0));
        assert!(!Word::new(WordMode::Open, 3).is_of(4));
    }

    proptest! {
        #[test]
        fn the_register_is_a_queue_of_the_last_calls(
            window in 1..=SMALL_WINDOW, calls in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..60),
        ) {
            let mut word = Word::new(WordMode::Closed, 5);
            for (index, (failed, slow)) in calls.iter().enumerate() {
                word = word.with(CallResult { failed: *failed, slow: *slow }, window);
                let seen = &calls[..=index];
                let last = &seen[seen.len().saturating_sub(window as usize)..];
                let count = |pick: fn(&(bool, bool)) -> bool| u32::try_from(last.iter().filter(|call| pick(call)).count()).unwrap();
                let expected = Tally { calls: u32::try_from(last.len()).unwrap(), failed: count(|c| c.0), slow: count(|c| c.1) };
                prop_assert_eq!(word.tally(), expected);
                prop_assert_eq!((word.mode(), word.generation()), (WordMode::Closed, 5));
            }
        }
    }
}
