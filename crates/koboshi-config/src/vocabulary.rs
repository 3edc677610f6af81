//! Words that can be shown anywhere: our own, and values too plain to be a secret.
//!
//! [`is_ours`] is for text in an unknown place: it accepts names of keys, words that keys may have, well-known
//! providers, short numbers and lengths. [`is_harmless`] is for the value of a key that holds no secret, which users
//! must see to fix it (`kind: opnai`): it rejects only what looks like a key.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::gateway::SIM;
use crate::schema::{KEYS, Shape, parse_length};
use crate::well_known;

/// A number with more digits may be a secret.
const MAX_NUMBER: usize = 7;
/// A shorter text is no real key.
const MIN_KEY: usize = 12;
/// Letters and digits in a row, as in a key and in no name.
const MAX_RUN: usize = 20;
/// Digits of a date: `20250929`.
const MAX_DATE: usize = 8;

/// Names of keys and words that they may have.
static WORDS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let mut words: BTreeSet<&str> =
        ["true", "false", "null", "on", "off", "yes", "no", "none", "model", SIM].into();
    words.extend(well_known::names());
    for key in KEYS.iter() {
        words.insert(key.name());
        words.extend(key.former());
        words.extend(key.former_words().map(|(before, _)| before));
        match &key.shape {
            Shape::Word { words: of_key, .. } => words.extend(*of_key),
            Shape::Section { word: Some(stand), .. } => {
                words.insert(stand.word);
            }
            _ => {}
        }
    }
    words
});

/// Whether a word can be shown in an unknown place.
pub(crate) fn is_ours(word: &str) -> bool {
    let is_number = || word.len() <= MAX_NUMBER && word.parse::<f64>().is_ok_and(f64::is_finite);
    let is_length = || word.len() <= MAX_NUMBER && parse_length(word).is_some();
    // A target of a well-known provider, outside of braces.
    let is_target = || {
        word.split_once('/').is_some_and(|(provider, model)| {
            (provider == SIM || well_known::find(provider).is_some()) && is_shown_model(model)
        })
    };
    let is_pattern = || {
        let body = word.trim_end_matches('*');
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        body.len() < word.len() && body.len() < MIN_KEY && body.chars().all(fits)
    };
    WORDS.contains(word)
        || !word.chars().any(char::is_alphanumeric)
        || is_number()
        || is_length()
        || is_target()
        || is_pattern()
}

/// Whether the name of a variable can be shown: users write the key itself in braces.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    let is_usual = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_usual && !has_long_run(name) || is_harmless(name)
}

/// Whether the value of a key that holds no secret can be shown.
pub(crate) fn is_harmless(value: &str) -> bool {
    let is_plain = |text: &str| !text.split(is_edge).any(|part| has_long_run(part) || looks_like_key(part));
    is_ours(value) || behind_host(value).map_or_else(|| is_plain(value), is_plain)
}

/// The part after the host of a web address, where the host can be shown: a host name is no secret, however long it is. A part
/// before an `@` is hidden, and a single long word with digits may be a key in the wrong place.
fn behind_host(value: &str) -> Option<&str> {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"))?;
    let (server, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_name = match host.rsplit_once('.') {
        Some((_, top)) => top.bytes().all(|byte| byte.is_ascii_alphabetic()),
        None => !has_long_run(host) || !host.contains(|c: char| c.is_ascii_digit()),
    };
    let is_host = is_name && host.split('.').all(is_label) && port.bytes().all(|byte| byte.is_ascii_digit());
    is_host.then_some(behind)
}

/// Where a path, an address or a sentence can be split.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || "/:?&=,;()[]{}*$\"'".contains(c)
}

/// Letters and digits together, long, and no host: hosts have a point before their last letters.
fn looks_like_key(part: &str) -> bool {
    let has = |test: fn(char) -> bool| part.chars().any(test);
    let is_host = part
        .rsplit_once('.')
        .is_some_and(|(_, end)| end.len() >= 2 && end.chars().all(|c| c.is_ascii_alphabetic()));
    part.chars().count() >= MIN_KEY
        && has(|c| c.is_ascii_digit())
        && has(char::is_alphabetic)
        && !is_host
        && !is_model(part)
}

/// Names of models are long and have digits too; the well-known ones begin with these words.
fn is_model(part: &str) -> bool {
    const FAMILIES: &[&str] = &[
        "gpt-", "chatgpt-", "o1-", "o3-", "o4-", "claude-", "gemini-", "gemma-", "llama", "Llama",
        "Meta-Llama", "meta-llama", "mistral-", "mixtral-", "codestral-", "ministral-", "deepseek-", "qwen",
        "Qwen", "grok-", "phi", "command-", "text-embedding-", "nomic-", "kimi-", "glm-", "gpt_oss",
        "rate-429", "fail-", "broken-tool-args", "in-band-error",
    ];
    FAMILIES.iter().any(|family| part.starts_with(family))
}

/// Whether a text in the place of a model's name can be shown. A passphrase with a digit looks like the name of a deployment, so such a name must
/// contain a word of model names.
pub(crate) fn is_shown_model(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "gpt", "chatgpt", "claude", "sonnet", "haiku", "opus", "gemini", "gemma", "llama", "mistral",
        "mixtral", "codestral", "ministral", "deepseek", "qwen", "grok", "phi", "command", "embedding",
        "nomic", "kimi", "glm", "whisper", "sim",
    ];
    let is_word = |piece: &str| {
        let piece = piece.to_ascii_lowercase();
        WORDS
            .iter()
            .any(|word| piece.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphabetic)))
    };
    is_name(text)
        && (!text.split('/').any(looks_like_key) || text.split(|c: char| !c.is_alphanumeric()).any(is_word))
}

/// Whether a text in the place of a name is one: words, versions and dates, with separators. A key has letters and digits mixed in one
/// piece, a long number, or the prefix of a vendor's keys.
fn is_name(text: &str) -> bool {
    const OF_KEYS: &[&str] =
        &["sk-", "sk_", "pk-", "pk_", "key-", "rk_", "gsk_", "xai-", "ghp_", "hf_", "AIza", "AKIA"];
    let is_piece = |piece: &str| {
        let digits = piece.chars().filter(char::is_ascii_digit).count();
        match (digits, piece.chars().count()) {
            (0, length) => length < MAX_RUN && !is_of_mixed_case(piece),
            (digits, length) if digits == length => length <= MAX_DATE,
            (digits, length) => length < MIN_KEY && digits <= 2,
        }
    };
    let fits = |c: char| c.is_alphanumeric() || "-._:/@".contains(c);
    text.len() <= 80
        && text.chars().all(fits)
        && !OF_KEYS.iter().any(|start| text.starts_with(start))
        && text.split(|c: char| !c.is_alphanumeric()).all(is_piece)
}

/// Mixed upper and lower case, as in no word.
fn is_of_mixed_case(piece: &str) -> bool {
    let large = piece.chars().filter(|c| c.is_uppercase()).count();
    large > 3 && piece.chars().any(char::is_lowercase)
}

/// Letters and digits in a row that are longer than in any name.
pub(crate) fn has_long_run(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|run| run.chars().count() >= MAX_RUN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_shown_and_others_are_not() {
        for word in [
            "max_attempts", "hold", "openai", "30s", "4141", "memory", "openai/gpt-4o", "gpt-*", "-", "0.5",
            "sim/",
        ] {
            assert!(is_ours(word), "{word}");
        }
        for word in [
            "alice", "hunter2", "5f2c9a7be01d4c55a0aa93e1b6f1d2aa", "12345678", "x/gpt", "sk-abc",
            "openai/abcdefghijklmnopqrst1",
        ] {
            assert!(!is_ours(word), "{word}");
        }
    }

    #[test]
    fn names_of_deployments_differ_from_keys() {
        for name in [
            "gpt4o-mini-eastus2", "anthropic.claude-3-5-sonnet-20241022-v2:0", "assistant-v2-prod",
            "text-model-2024-prod", "Qwen/Qwen2.5-72B-Instruct",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["gpt4o-mini-eastus2", "anthropic.claude-3-5-sonnet-20241022-v2:0", "chat-prod", "v2-prod"]
        {
            assert!(is_shown_model(name), "{name}");
        }
        for name in
            ["hunter2-admin-key", "correct-horse-9-battery", "my/hunter2-admin-key", "simple-1-phrase"]
        {
            assert!(is_name(name) && !is_shown_model(name), "{name}");
        }
        for key in [
            "5f2c9a7be01d4c55a0aa93e1b6f1d2aa", "sk-proj-Zq8Lw3vN0tYx1Kf6Rb2m", "sk-abcd-efgh", "q7Zp+0sLk",
            "AIzaSyD4x9QmZ7pW2kLr5vT8nB1cF6h", "9dWv3xYb2NcA", "a b", "ZqLwvNtYxKfRb", "123456789012",
        ] {
            assert!(!is_name(key), "{key}");
        }
    }

    #[test]
    fn what_people_must_see_is_harmless_and_keys_are_not() {
        for value in [
            "opnai",
            "bedrock",
            "https://api.openai.com/v1",
            "api.openai.com/v1",
            "2024-10-21",
            "claude-sonnet-4-5-20250929",
            "openrouter/meta-llama/Llama-3.3-70B-Instruct",
            "my prefix",
            "127.0.0.1:4141",
            "0.0.0.0:99999",
            "anthropic/claude-3-5-haiku",
            "https://inferenceplatformservices.example.com/v1",
            "http://my-ollama-server-01:11434",
            "https://internal-5f2c9a7be01d4c55a0aa93e1b6f1d2aa.us-east-1.elb.amazonaws.com:8443",
        ] {
            assert!(is_harmless(value), "{value}");
        }
        for value in [
            "hunter2-admin-key", "5f2c9a7be01d4c55a0aa93e1b6f1d2aa", "openaihunter2-admin-key",
            "https://h/v1hunter2-admin-key", "https://host.example/v1?api-key=hunter2-admin-key",
            "https://host.example/hunter2-admin-key/v1", "https://5f2c9a7be01d4c55a0aa93e1b6f1d2aa/v1",
            "https://host.example:5f2c9a7be01d4c55a0aa93e1b6f1d2aa",
        ] {
            assert!(!is_harmless(value), "{value}");
        }
    }
}
