//! Not before: until when a scope is closed, and for which reasons.
//!
//! A hold is what a provider *stated* (or an operator decided), so it is shared as a fact, and two copies of it must
//! always merge to the same thing, in any order, however often: within an epoch the later end wins, per reason; a
//! clear raises the epoch, and a higher epoch beats everything before it. So a shorter hold never replaces a longer
//! one, and a cleared hold does not come back from a node that did not know of the clear.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::cooldown::is_past;

/// Which limit closes a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Requests in a window.
    Requests,
    /// Tokens in a window, of both directions or unsaid which.
    Tokens,
    /// Input tokens in a window.
    InputTokens,
    /// Output tokens in a window.
    OutputTokens,
    /// Requests at the same time.
    Concurrency,
    /// The allowance of a long window.
    Quota,
    /// A person closed it.
    Operator,
}

impl Limit {
    /// Every limit.
    pub const ALL: &[Self] = &[
        Self::Requests,
        Self::Tokens,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Concurrency,
        Self::Quota,
        Self::Operator,
    ];

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Concurrency => "concurrency",
            Self::Quota => "quota",
            Self::Operator => "operator",
        }
    }
}

impl Limit {
    /// The limit that a provider's sentence about a rate limit names: tokens, or requests at the same time. None if it names neither.
    #[must_use]
    pub fn named_in(sentence: &str) -> Option<Self> {
        const NAMES: [(Limit, &[&str]); 4] = [
            (
                Limit::InputTokens,
                &["input tokens", "input token", "input_token", "prompt tokens", "itpm", "入力トークン"],
            ),
            (
                Limit::OutputTokens,
                &[
                    "output tokens", "output token", "output_token", "completion tokens", "otpm",
                    "出力トークン",
                ],
            ),
            (
                Limit::Tokens,
                &[
                    "tokens per", "token per", "tokens/", "tpm", "token limit", "token rate", "token quota",
                    "token_limit", "tokens_per", "too many tokens", "number of tokens", "on tokens",
                    "トークン",
                ],
            ),
            (
                Limit::Concurrency,
                &["concurren", "simultaneous", "in flight", "parallel requests", "at the same time", "同時"],
            ),
        ];
        let sentence = sentence.to_lowercase();
        let is_named = |names: &&[&str]| names.iter().any(|name| sentence.contains(name));
        NAMES.iter().find(|(_, names)| is_named(names)).map(|(limit, _)| *limit)
    }
}

/// Until when a scope is closed, for which reasons.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holds {
    /// Raised by every clear.
    #[serde(default)]
    pub epoch: u64,
    /// The end of the hold, per reason.
    #[serde(default)]
    pub until: BTreeMap<Limit, Timestamp>,
    /// When the latest request that succeeded after a hold had begun: the holds that ended before it are over for all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Timestamp>,
}

/// A hold that ended this long ago holds nothing back any more, whether or not a request has succeeded since.
const DUE_FOR: SignedDuration = SignedDuration::from_mins(10);

/// How long ended holds are of use: for a first request, and to be shown.
const ENDED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long what came after a clear is kept with it: a process that was cut off for less has nothing that comes back.
const CLEARED_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Holds {
    /// Closes until then; a hold that ends later stays. Says whether anything changed.
    pub fn hold(&mut self, reason: Limit, until: Timestamp) -> bool {
        let longer = self.until.get(&reason).is_none_or(|known| until > *known);
        if longer {
            self.until.insert(reason, until);
        }
        longer
    }

    /// Opens at once, for good: nothing that was known before comes back.
    pub fn clear(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        self.until.clear();
        self.passed = None;
    }

    /// Whether a hold has ended and no request has succeeded since: one should go first.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.longest(now).is_none()
            && self.until.values().any(|until| {
                now.duration_since(*until) < DUE_FOR && self.passed.is_none_or(|passed| passed < *until)
            })
    }

    /// A request that began then has succeeded. Says whether that is news.
    pub fn pass(&mut self, began: Timestamp) -> bool {
        let is_news = self.passed.is_none_or(|passed| passed < began);
        if is_news {
            self.passed = Some(began);
        }
        is_news
    }

    /// The hold that ends last, if one has not ended.
    #[must_use]
    pub fn longest(&self, now: Timestamp) -> Option<(Limit, Timestamp)> {
        let open = self.until.iter().filter(|(_, until)| **until > now);
        open.max_by_key(|(_, until)| **until).map(|(reason, until)| (*reason, *until))
    }

    /// Both together.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        if self.epoch != other.epoch {
            return if self.epoch > other.epoch { self.clone() } else { other.clone() };
        }
        let mut merged = self.clone();
        for (reason, until) in &other.until {
            merged.hold(*reason, *until);
        }
        merged.passed = merged.passed.max(other.passed);
        merged
    }

    /// Whether these holds are needed no more: all have ended long ago, and no clear must be remembered. A clear has no time of its own and
    /// is remembered as long as nothing came after it.
    #[must_use]
    pub fn is_spent(&self, now: Timestamp) -> bool {
        let last = self.until.values().copied().chain(self.passed).max();
        is_past(last, if self.epoch > 0 { CLEARED_FOR } else { ENDED_FOR }, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_hold_is_due_from_its_end_until_a_request_that_began_later_succeeds() {
        let mut holds = Holds::default();
        holds.hold(Limit::Requests, at(100));
        assert!(!holds.is_due(at(99)) && holds.is_due(at(100)));
        holds.pass(at(90));
        assert!(holds.is_due(at(101)), "it had begun before the hold");
        assert!(holds.pass(at(105)) && !holds.pass(at(104)));
        assert!(!holds.is_due(at(106)));
        holds.hold(Limit::Tokens, at(200));
        assert!(!holds.is_due(at(199)) && holds.is_due(at(200)), "a new hold has a first request of its own");
        assert!(!holds.is_due(at(200 + 600)), "no request waits for it any more");
    }

    #[test]
    fn a_sentence_names_its_limit() {
        for (sentence, limit) in [
            ("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000", Some(Limit::Tokens)),
            ("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Requested 1", None),
            ("would exceed your rate limit of 40,000 input tokens per minute", Some(Limit::InputTokens)),
            ("rate limit of 8,000 output tokens per minute", Some(Limit::OutputTokens)),
            ("Number of concurrent connections has exceeded your rate limit", Some(Limit::Concurrency)),
            ("同時リクエスト数の上限に達しました", Some(Limit::Concurrency)),
            ("1 分あたりのトークン数の上限に達しました", Some(Limit::Tokens)),
            ("Too Many Requests", None),
        ] {
            assert_eq!(Limit::named_in(sentence), limit, "{sentence}");
        }
    }

    #[test]
    fn a_shorter_hold_never_replaces_a_longer_one() {
        let mut holds = Holds::default();
        assert!(holds.hold(Limit::Requests, at(100)));
        assert!(!holds.hold(Limit::Requests, at(50)));
        assert_eq!(holds.longest(at(0)), Some((Limit::Requests, at(100))));
        assert_eq!(holds.longest(at(100)), None, "it has ended");
    }

    #[test]
    fn a_cleared_hold_does_not_come_back_from_a_stale_copy() {
        let mut here = Holds::default();
        here.hold(Limit::Quota, at(1000));
        let stale = here.clone();
        here.clear();
        assert_eq!(here.merge(&stale).longest(at(0)), None);
        assert_eq!(stale.merge(&here).longest(at(0)), None);
    }

    fn any_holds() -> impl Strategy<Value = Holds> {
        let until = proptest::collection::btree_map(0..Limit::ALL.len(), 0_i64..5, 0..4);
        let passed = proptest::option::of((0_i64..5).prop_map(at));
        (0_u64..3, until, passed).prop_map(|(epoch, until, passed)| Holds {
            passed,
            epoch,
            until: until.into_iter().map(|(limit, second)| (Limit::ALL[limit], at(second))).collect(),
        })
    }

    proptest! {
        #[test]
        fn merging_is_the_same_in_any_order(a in any_holds(), b in any_holds(), c in any_holds()) {
            prop_assert_eq!(a.merge(&b), b.merge(&a));
            prop_assert_eq!(a.merge(&b).merge(&c), a.merge(&b.merge(&c)));
            prop_assert_eq!(&a.merge(&a), &a);
        }
    }
}
