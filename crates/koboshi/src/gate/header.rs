//! Allowances that response headers state.
//!
//! The families differ in where they put the words, not in the words: `x-ratelimit-remaining-tokens` (OpenAI, Groq, Azure),
//! `anthropic-ratelimit-input-tokens-remaining`, `x-ratelimit-remaining` (OpenRouter, GitHub), `ratelimitbysize-remaining`
//! (Mistral), `x-ratelimit-remaining-tokens-minute` (Cerebras). So a name is cut into words behind its prefix: one word
//! says which of limit, remaining and reset it is, and what is left of the name says of what. Names whose rest is
//! unknown are left alone: a share of a subscription is no count.
//!
//! Names and values come from outside: long ones are skipped, absurd numbers saturate, of a hostile number of
//! headers only the first few count, and of two with one name the first. Exhausted limits with a stated wait are read by
//! [`exhausted_bucket_wait`](crate::wait::exhausted_bucket_wait); here nothing closes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::wait::{Clock, field_wait};

use super::{Allowance, Limit, Refill};

/// At most this many headers of interest are read.
const MAX_HEADERS: usize = 64;
const MAX_NAME: usize = 80;
const MAX_VALUE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Limit,
    Remaining,
    Reset,
}

#[derive(Debug, Default)]
struct HeaderFields {
    limit: Option<u64>,
    remaining: Option<u64>,
    resets_in: Option<Duration>,
}

/// What the headers of an answer say about limits, one allowance for each limit.
///
/// If several windows of one limit are stated (a minute and a day), the one with the least left counts.
#[must_use]
pub fn allowances<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    clock: Clock<'_>,
) -> Vec<(Limit, Allowance)> {
    let mut stated: BTreeMap<(Limit, String), (Refill, HeaderFields)> = BTreeMap::new();
    let named = headers.filter_map(|(name, value)| Some((read_name(name)?, name, value.trim())));
    for ((word, kind), name, value) in named.take(MAX_HEADERS) {
        let Some((limit, refill)) = meaning(&kind).filter(|_| value.len() <= MAX_VALUE) else { continue };
        let (_, fields) = stated.entry((limit, kind)).or_insert_with(|| (refill, HeaderFields::default()));
        match word {
            Word::Limit => fields.limit = fields.limit.or_else(|| count(value)),
            Word::Remaining => fields.remaining = fields.remaining.or_else(|| count(value)),
            Word::Reset => {
                let reset = || field_wait(name.trim(), value, clock).map(|wait| wait.after);
                fields.resets_in = fields.resets_in.or_else(reset);
            }
        }
    }
    let mut tightest: BTreeMap<Limit, Allowance> = BTreeMap::new();
    for ((limit, _), (refill, fields)) in stated {
        let HeaderFields { limit: max, remaining: Some(remaining), resets_in } = fields else { continue };
        let allowance = Allowance { limit: max, remaining, resets_in, refill };
        let known = tightest.entry(limit).or_insert(allowance);
        if allowance.remaining < known.remaining {
            *known = allowance;
        }
    }
    tightest.into_iter().collect()
}

/// Which of the three a name is, and of what.
fn read_name(name: &str) -> Option<(Word, String)> {
    let name = name.trim();
    if name.len() > MAX_NAME || !name.is_ascii() {
        return None;
    }
    let name = name.to_ascii_lowercase().replace("rate-limit", "ratelimit");
    let (prefix, rest) = name.split_once("ratelimit")?;
    if !matches!(prefix, "" | "x-" | "anthropic-") {
        return None;
    }
    let mut found = None;
    let mut kind = Vec::new();
    for word in rest.split('-').filter(|word| !word.is_empty() && *word != "after") {
        match word {
            "limit" if found.is_none() => found = Some(Word::Limit),
            "remaining" if found.is_none() => found = Some(Word::Remaining),
            "reset" | "timeremaining" if found.is_none() => found = Some(Word::Reset),
            _ => kind.push(word),
        }
    }
    Some((found?, kind.join("-")))
}

/// Which limit is meant, and how it comes back. Only providers that are known to refill steadily are treated so.
fn meaning(kind: &str) -> Option<(Limit, Refill)> {
    match kind {
        "requests" => Some((Limit::Requests, Refill::Steady)),
        "tokens" => Some((Limit::Tokens, Refill::Steady)),
        "input-tokens" => Some((Limit::InputTokens, Refill::Steady)),
        "output-tokens" => Some((Limit::OutputTokens, Refill::Steady)),
        "" | "requests-second" | "requests-minute" | "requests-hour" | "requests-day" => {
            Some((Limit::Requests, Refill::AtReset))
        }
        "bysize" | "tokens-second" | "tokens-minute" | "tokens-hour" | "tokens-day" => {
            Some((Limit::Tokens, Refill::AtReset))
        }
        _ => None,
    }
}

/// A count: the whole number that a value begins with (`100`, `100, 100;w=60`). Less than nothing is nothing.
fn count(value: &str) -> Option<u64> {
    let value = value.trim_matches(['"', '\'', ' ']);
    let (value, is_negative) = value.strip_prefix('-').map_or((value, false), |value| (value, true));
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (digits, rest) = value.split_at_checked(end)?;
    let is_ended = rest.is_empty() || rest.starts_with([',', ';', '.', ' ']);
    (!digits.is_empty() && is_ended).then(|| if is_negative { 0 } else { digits.parse().unwrap_or(u64::MAX) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;
    use proptest::prelude::*;

    fn read(headers: &[(&str, &str)]) -> Vec<(Limit, Allowance)> {
        let zones = TimeZoneDatabase::bundled();
        let now = "2026-11-15T12:00:00[UTC]".parse().unwrap();
        allowances(headers.iter().copied(), Clock { now: &now, zones: &zones })
    }

    fn steady(limit: u64, remaining: u64, millis: u64) -> Allowance {
        let resets_in = Some(Duration::from_millis(millis));
        Allowance { limit: Some(limit), remaining, resets_in, refill: Refill::Steady }
    }

    #[test]
    fn openai_and_groq() {
        let read = read(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("X-RateLimit-Limit-Tokens", "150000"),
            ("X-RateLimit-Remaining-Tokens", "149984"),
            ("X-RateLimit-Reset-Tokens", "20ms"),
            ("x-request-id", "req_1"),
        ]);
        assert_eq!(
            read,
            [(Limit::Requests, steady(60, 59, 360_000)), (Limit::Tokens, steady(150_000, 149_984, 20))]
        );
    }

    #[test]
    fn anthropic_in_four_kinds_and_no_share_of_a_subscription() {
        let read = read(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:01Z"),
            ("anthropic-ratelimit-tokens-limit", "90000"),
            ("anthropic-ratelimit-tokens-remaining", "80000"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-15T12:00:07Z"),
            ("anthropic-ratelimit-input-tokens-limit", "50000"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-15T12:01:00Z"),
            ("anthropic-ratelimit-output-tokens-limit", "10000"),
            ("anthropic-ratelimit-output-tokens-remaining", "9000"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-11-15T11:59:00Z"),
            ("anthropic-ratelimit-unified-5h-reset", "1763211600"),
            ("anthropic-ratelimit-unified-remaining", "1"),
        ]);
        let expected = [
            (Limit::Requests, steady(50, 49, 1000)),
            (Limit::Tokens, steady(90_000, 80_000, 7000)),
            (Limit::InputTokens, steady(50_000, 0, 60_000)),
            (Limit::OutputTokens, steady(10_000, 9000, 0)),
        ];
        assert_eq!(read, expected, "a reset that has passed is now");
    }

    #[test]
    fn the_rest_of_the_world() {
        let window = |limit, remaining, seconds: Option<u64>| Allowance {
            limit,
            remaining,
            resets_in: seconds.map(Duration::from_secs),
            refill: Refill::AtReset,
        };
        let openrouter = [
            ("X-RateLimit-Limit", "20"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "1794744030000"),
        ];
        assert_eq!(read(&openrouter), [(Limit::Requests, window(Some(20), 0, Some(30)))]);
        let azure = [("x-ratelimit-remaining-tokens", "239"), ("x-ratelimit-remaining-requests", "9")];
        let left = |remaining| Allowance { refill: Refill::Steady, ..window(None, remaining, None) };
        assert_eq!(read(&azure), [(Limit::Requests, left(9)), (Limit::Tokens, left(239))]);
        let mistral = [
            ("ratelimitbysize-limit", "500000"),
            ("ratelimitbysize-remaining", "499900"),
            ("ratelimitbysize-reset", "13"),
        ];
        assert_eq!(read(&mistral), [(Limit::Tokens, window(Some(500_000), 499_900, Some(13)))]);
        let standard =
            [("RateLimit-Limit", "100, 100;w=60"), ("RateLimit-Remaining", "50"), ("RateLimit-Reset", "30")];
        assert_eq!(read(&standard), [(Limit::Requests, window(Some(100), 50, Some(30)))]);
        let github = [("x-ratelimit-remaining", "3"), ("x-ratelimit-timeremaining", "40")];
        assert_eq!(read(&github), [(Limit::Requests, window(None, 3, Some(40)))]);
        let cerebras = [
            ("x-ratelimit-remaining-requests-day", "900"),
            ("x-ratelimit-remaining-requests-minute", "9"),
            ("x-ratelimit-reset-requests-minute", "12.5"),
        ];
        let resets_in = Some(Duration::from_millis(12_500));
        assert_eq!(
            read(&cerebras),
            [(Limit::Requests, Allowance { resets_in, ..window(None, 9, None) })],
            "the tightest window counts"
        );
    }

    #[test]
    fn what_says_nothing_or_nonsense_is_left_alone() {
        let long = "9".repeat(65);
        let table: &[&[(&str, &str)]] = &[
            &[],
            &[("x-ratelimit-limit-requests", "60")],
            &[("x-ratelimit-remaining-requests", "many")],
            &[("x-ratelimit-remaining-requests", "")],
            &[("x-ratelimit-remaining-requests", "5x")],
            &[("x-ratelimit-remaining-requests", &long)],
            &[("x-ratelimit-remaining-apples", "5")],
            &[("x-ratelimit-over-limit", "1")],
            &[("my-ratelimit-remaining", "5")],
            &[("ratelimit", "1"), ("retry-after", "5")],
        ];
        for headers in table {
            assert_eq!(read(headers), [], "{headers:?}");
        }
        let odd = read(&[("x-ratelimit-remaining", "-3"), ("x-ratelimit-limit", "99999999999999999999999")]);
        let (_, allowance) = odd.first().unwrap();
        assert_eq!((allowance.remaining, allowance.limit), (0, Some(u64::MAX)));
        let twice = read(&[("x-ratelimit-remaining", "3"), ("X-RATELIMIT-REMAINING", "7")]);
        assert_eq!(twice.first().unwrap().1.remaining, 3, "the first counts");
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_panic(
            name in "(x-|anthropic-|.{0,3})(ratelimit|rate-limit)(-(limit|remaining|reset|tokens|requests|.{0,4})){0,4}",
            value in ".{0,70}",
        ) {
            for (_, allowance) in read(&[(&name, &value), ("x-ratelimit-remaining", &value)]) {
                prop_assert!(allowance.resets_in.is_none_or(|length| length <= crate::wait::MAX_WAIT));
            }
        }
    }
}
