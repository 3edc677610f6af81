//! A moment and a reason in one word, so that the fast check is one load and never sees half of an answer.
//!
//! The reason takes the lowest three bits, so the moment is rounded up to eight nanoseconds: late by nothing
//! a caller can measure, never early.

use crate::time::Moment;

use super::Limit;

const REASON: u64 = 0b111;
/// A moment that never comes.
pub(super) const NEVER: Moment = Moment::from_nanos(!REASON);
/// Closed by nothing.
pub(super) const OPEN: u64 = 0;

const _: () = assert!(Limit::ALL.len() as u64 <= REASON + 1, "every reason fits its bits");

pub(super) const fn pack(until: Moment, reason: Limit) -> u64 {
    (until.nanos().saturating_add(REASON) & !REASON) | code(reason)
}

/// What is closed at this moment: until when and why.
pub(super) fn closed(word: u64, now: Moment) -> Option<(Moment, Limit)> {
    let until = Moment::from_nanos(word & !REASON);
    (now < until).then(|| (until, reason(word)))
}

const fn code(reason: Limit) -> u64 {
    match reason {
        Limit::Requests => 0,
        Limit::Tokens => 1,
        Limit::InputTokens => 2,
        Limit::OutputTokens => 3,
        Limit::Concurrency => 4,
        Limit::Quota => 5,
        Limit::Operator => 6,
    }
}

const fn reason(word: u64) -> Limit {
    match word & REASON {
        0 => Limit::Requests,
        1 => Limit::Tokens,
        2 => Limit::InputTokens,
        3 => Limit::OutputTokens,
        4 => Limit::Concurrency,
        5 => Limit::Quota,
        _ => Limit::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_in_and_is_never_early() {
        for limit in Limit::ALL {
            for nanos in [1, 7, 8, 9, 1_000_003, u64::MAX - 100] {
                let word = pack(Moment::from_nanos(nanos), *limit);
                let (until, reason) = closed(word, Moment::from_nanos(nanos - 1)).unwrap();
                assert!(until.nanos() >= nanos && until.nanos() < nanos + 8);
                assert_eq!((reason, closed(word, until)), (*limit, None));
            }
            assert!(
                closed(pack(Moment::from_nanos(u64::MAX), *limit), Moment::START).is_some(),
                "no overflow"
            );
        }
        assert_eq!(closed(OPEN, Moment::START), None);
    }
}
