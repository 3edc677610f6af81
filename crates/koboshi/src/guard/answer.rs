//! What kind of answer a successful call got: one that waits, one that is empty, one that blocks, or a real one.
//!
//! Polling is no loop, and a search that finds nothing seven times in other words is one. Both are recognised by short
//! answers only: a long text that happens to hold the word "pending" is what was asked for.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Value;

use super::mix::{hash, hash_numbers};
use super::words::{ends, words};

/// An answer without anything new in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NothingNew {
    /// Nothing at all: it says nothing, not even that there is nothing.
    Silent,
    /// It says that there is nothing.
    Empty,
    /// A page that keeps visitors out.
    Blocked,
    /// A long text: getting it again for another question is nothing new.
    Long,
}

const SHORT: usize = 400;
const MIN_LONG_ANSWER: usize = 240;

/// A confirmation is no longer.
const CONFIRMATION: usize = 120;

/// The part of a long answer that is compared in full, from either end.
const CLOSELY: usize = 2 * 1024;

/// What the answer is compared by: without what moves by itself, unless nothing else is in it. The middle of a long
/// answer is compared as it is.
pub(super) fn key(output: &str) -> u64 {
    let text = output.trim();
    if text.len() <= 2 * CLOSELY {
        return still(text);
    }
    let first = text.floor_char_boundary(CLOSELY);
    let last = text.ceil_char_boundary(text.len() - CLOSELY);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    hash_numbers(still(part(0..first)), [hash([part(first..last)]), still(part(last..text.len()))])
}

fn still(text: &str) -> u64 {
    static VOLATILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x-u)\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9:]{2,6})?
            | \b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b
            | \b0x[0-9a-fA-F]{6,}\b
            | (?i:\bpid)[\ :=]{1,2}[0-9]+
            | (?i:\b(?:in|took|time|finished\ in|after|elapsed)[\ :=]{1,2})\(?[0-9]+(?:\.[0-9]+)?\ ?(?:ms|s|seconds)\b
            | \([0-9]+(?:\.[0-9]+)?\ ?(?:ms|s)\)",
        )
        .ok()
    });
    // Whatever moves has digits in it.
    let volatile = VOLATILE.as_ref().filter(|_| text.bytes().any(|byte| byte.is_ascii_digit()));
    let Some(volatile) = volatile else { return hash([text]) };
    let still = volatile.replace_all(text, "~");
    let has_words = still.chars().any(|c| c.is_alphanumeric());
    hash([if has_words { still.as_ref() } else { text }])
}

/// What the answer of a failing call is compared by after something was changed: all of it, without what moves by itself and
/// without the places that edits move.
pub(super) fn whole(output: &str) -> u64 {
    static MOVING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x-u)\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T\ ][0-9:.,]+Z? | \b[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?
            | \b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b
            | \b0x[0-9a-fA-F]+\b | \btmp[A-Za-z0-9_]{4,} | \b(?:req|call|run|trace|sess)[-_][A-Za-z0-9]{6,}
            | \b[0-9]+(?:\.[0-9]+)?\ ?(?:ms|s|secs?|seconds|min)\b
            | :[0-9]+(?::[0-9]+)? | \b(?:line|lines|at|pid|PID)[\ :=]{1,2}[0-9]+ | \([0-9]+\)
            | (?m:^[\ >*]*[0-9]+(?:\ *\||\t|:))",
        )
        .ok()
    });
    let text = output.trim();
    let first = text.floor_char_boundary(CLOSELY);
    let last = text.ceil_char_boundary(text.len().saturating_sub(CLOSELY).max(first));
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let still = |text: &str| match MOVING.as_ref() {
        Some(moving) => hash([moving.replace_all(text, "~").as_ref()]),
        None => hash([text]),
    };
    hash_numbers(still(part(0..first)), [hash([part(first..last)]), still(part(last..text.len()))])
}

/// A short line that only confirms what was asked for. It says nothing about where that has led.
pub(super) fn confirms(output: &str) -> bool {
    let text = output.trim();
    text.len() <= CONFIRMATION && !text.contains('\n') && !text.starts_with(['{', '['])
}

/// The answer says that something still runs.
pub(super) fn waits(output: &str) -> bool {
    const STATES: &[&str] = &[
        "queued", "pending", "running", "creating", "waiting", "processing", "starting", "provisioning",
        "building", "deploying", "initializing", "initialising", "scheduled", "validating", "preparing",
        "uploading", "downloading", "installing", "updating", "stopping", "terminating", "booting",
        "loading", "enqueued", "indexing", "training",
    ];
    const DEEDS: &[&str] = &["of", "by", "after", "before", "when", "while", "from", "without"];
    const ENDS: &[&str] = &[
        "completed", "complete", "succeeded", "success", "failed", "failure", "done", "finished",
        "cancelled", "canceled", "error",
    ];
    const PAIRS: &[(&str, &str)] =
        &[("in", "progress"), ("not", "ready"), ("not", "yet"), ("still", "working")];
    const NATIVE: &[&str] =
        &["待機中", "実行中", "処理中", "保留中", "作成中", "準備中", "排队", "运行中", "等待"];
    // Most answers hold none of these at all.
    static CUES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let pairs = PAIRS.iter().map(|(_, second)| second);
        let all = STATES.iter().chain(pairs).chain(NATIVE);
        AhoCorasick::builder().ascii_case_insensitive(true).build(all).ok()
    });
    if is_longer(output, SHORT) || CUES.as_ref().is_some_and(|cues| !cues.is_match(output)) {
        return false;
    }
    let words = words(output);
    let has = |list: &[&str]| words.any(list);
    // "The result of running `cat`" is no state.
    let before = || std::iter::once("").chain(words.iter());
    let is_state =
        before().zip(words.iter()).any(|(before, word)| STATES.contains(&word) && !DEEDS.contains(&before));
    let pair = words.iter().zip(words.iter().skip(1)).any(|two| PAIRS.contains(&two));
    (is_state || pair || NATIVE.iter().any(|word| output.contains(word))) && !has(ENDS)
}

fn is_longer(text: &str, chars: usize) -> bool {
    text.len() > chars && (text.len() > 4 * chars || text.chars().nth(chars).is_some())
}

pub(super) fn nothing_new(output: &str) -> Option<NothingNew> {
    let text = output.trim();
    if text.is_empty()
        || matches!(text, "null" | "None" | "none" | "nil" | "(empty)" | "\"\"" | "(no output)" | "{}")
    {
        return Some(NothingNew::Silent);
    }
    if is_empty(text) {
        return Some(NothingNew::Empty);
    }
    let short = ends(text, 2 * SHORT, SHORT);
    if is_blocked(&short) {
        return Some(NothingNew::Blocked);
    }
    (text.len() >= MIN_LONG_ANSWER).then_some(NothingNew::Long)
}

fn is_empty(text: &str) -> bool {
    static NOTHING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^\W*(?:(?:found )?(?:no|0|zero|nothing)\b[^.\n]{0,40}\b(?:match(?:es|ed|ing)?|results?|files?|rows?|records?|hits?|entries|items?|documents?|data|occurrences?|references?|found|returned|tasks?|issues?|messages?|pages?)\b|nothing found|no\b[^.\n]{0,60}\bfound\b|not? (?:matches|results)|empty (?:result|set|list|response)|\(0 rows\)|.{0,60}did not match any|.{0,40}(?:returned|found) (?:no|0) )|見つかりませんでした|該当(?:する.{0,12})?(?:なし|ありません)|0 ?件|没有找到|未找到",
        )
        .ok()
    });
    if is_longer(text, SHORT) {
        return false;
    }
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return nothing_in(&value);
    }
    text.lines().count() <= 3 && NOTHING.as_ref().is_some_and(|nothing| nothing.is_match(text))
}

/// A list without members, or an object whose lists are all empty and whose counts are nought.
fn nothing_in(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            let listed = fields.values().filter(|value| value.is_array() || value.is_object());
            let counts =
                ["total", "count", "total_count", "totalcount", "hits", "results", "length", "found"];
            let nought = fields.iter().any(|(key, value)| {
                counts.contains(&key.to_ascii_lowercase().as_str()) && value.as_u64() == Some(0)
            });
            let all_empty = listed.clone().all(|value| {
                value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
            });
            (listed.count() > 0 || nought) && all_empty
        }
        _ => false,
    }
}

type Map = serde_json::Map<String, Value>;

fn is_blocked(text: &str) -> bool {
    static BLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)captcha|verify (?:that )?you are (?:a )?human|are you a robot|just a moment|checking your browser|enable javascript|unusual traffic|access (?:to this page )?(?:has been )?denied|you have been blocked|request blocked|ddos protection|(?:sign|log) ?in to continue|please (?:sign|log) ?in|subscribe to (?:continue|read)|attention required|403 forbidden|bot detection|security check",
        )
        .ok()
    });
    !is_longer(text, 3 * SHORT) && BLOCK.as_ref().is_some_and(|block| block.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_states_wait_and_ends_do_not() {
        for text in [
            "{\"status\":\"queued\"}", "web-0 0/1 ContainerCreating 0 30s", "state: IN_PROGRESS",
            "実行中です", "Not ready",
        ] {
            assert!(waits(text), "{text}");
        }
        for text in [
            "{\"status\":\"completed\"}", "ok", "", "running tests: 3 failed",
            "Here's the result of running `cat -n` on a.py:",
        ] {
            assert!(!waits(text), "{text}");
        }
        assert!(!waits(&"pending ".repeat(100)), "a long text is what was asked for");
    }

    #[test]
    fn after_a_change_all_of_an_answer_counts_but_what_edits_move() {
        assert_eq!(whole("DEBUG a\nx.py:12: KeyError"), whole("DEBUG a\nx.py:14: KeyError"));
        assert_eq!(
            whole("File \"a\", line 3\n3 | x\n1 failed in 0.41s"),
            whole("File \"a\", line 5\n5 | x\n1 failed in 0.39s")
        );
        assert_ne!(whole("DEBUG a=1\nKeyError"), whole("DEBUG a=2\nKeyError"));
        assert_ne!(whole("KeyError"), whole("DEBUG b\nKeyError"));
    }

    #[test]
    fn empty_and_blocked_answers_are_barren() {
        for (text, kind) in [
            ("", Some(NothingNew::Silent)),
            ("[]", Some(NothingNew::Empty)),
            ("No matches found", Some(NothingNew::Empty)),
            ("No files found matching *.x", Some(NothingNew::Empty)),
            ("{\"results\":[],\"total\":0}", Some(NothingNew::Empty)),
            ("(0 rows)", Some(NothingNew::Empty)),
            ("見つかりませんでした", Some(NothingNew::Empty)),
            ("Just a moment... Checking your browser", Some(NothingNew::Blocked)),
            ("updated", None),
            ("1. result", None),
            ("{\"items\":[1]}", None),
        ] {
            assert_eq!(nothing_new(text), kind, "{text}");
        }
    }

    #[test]
    fn what_moves_by_itself_is_not_compared_and_the_rest_is() {
        assert_eq!(key("ok in 0.31s"), key("ok in 0.40s"));
        assert_eq!(key("at 2026-11-15T12:00:00Z: idle"), key("at 2026-11-15T12:00:09Z: idle"));
        assert_ne!(key("web-0 Creating 30s"), key("web-0 Creating 60s"));
        assert_ne!(key("2026-11-15T12:00:00Z"), key("2026-11-15T12:00:09Z"), "a clock moves");
    }

    #[test]
    fn of_a_long_answer_the_ends_are_compared_in_full_and_every_byte_counts() {
        let long = |head: &str, middle: &str, tail: &str| {
            let fill = "あ line of text\n".repeat(500);
            key(&format!("{head}\n{fill}{middle}\n{fill}{tail}"))
        };
        assert_eq!(
            long("at 2026-11-15T12:00:00Z", "", "took 3 s"),
            long("at 2026-11-15T12:00:09Z", "", "took 4 s")
        );
        assert_ne!(long("a", "x", ""), long("a", "y", ""));
        assert_ne!(long("a", "", ""), long("b", "", ""));
        assert_ne!(long("", "", "a"), long("", "", "b"));
    }
}
