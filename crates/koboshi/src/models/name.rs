//! The one reader of model names: what a vendor puts before a name, its family, its version.
//!
//! Platforms write one model in many ways: `claude-3-5-haiku-20241022`, `anthropic.claude-opus-4-6-v1:0`, `claude-sonnet-4@20250514`,
//! `anthropic/claude-sonnet-4.5`. Words are what stands between signs. A version is the first number of at most two digits and the
//! number directly behind it, if that has at most two digits too: longer ones are dates.

/// A number of at most two digits, and the one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32);

/// A model's name, with what stands before it.
#[derive(Debug)]
pub(super) struct Name<'n> {
    provider: &'n str,
    model: &'n str,
    /// The name without the vendor that relays put before it.
    bare: &'n str,
    words: Vec<&'n str>,
}

impl<'n> Name<'n> {
    pub(super) fn new(provider: &'n str, model: &'n str) -> Self {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let words = bare.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
        Self { provider, model, bare, words }
    }

    /// Whether this word is in the name, in small letters or in capitals.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one.eq_ignore_ascii_case(word))
    }

    /// The version: the first number, where a family is meant behind its word. A name without a number has none.
    pub(super) fn version(&self, family: Option<&str>) -> Option<Version> {
        let mut words = self.words.iter();
        if let Some(family) = family {
            words.find(|word| word.eq_ignore_ascii_case(family))?;
        }
        let major = words.find_map(|word| number(word))?;
        Some(Version(major, words.next().and_then(|word| number(word)).unwrap_or(0)))
    }
}

/// A pattern of names. One with a `/` is compared with `provider/model`, any other with the model's name without the vendor that relays put
/// before it.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    /// How every name that it holds for begins.
    start: String,
    has_provider: bool,
}

impl Pattern {
    pub(super) fn new(text: String) -> Self {
        let start = text.split('*').next().unwrap_or_default().to_owned();
        Self { has_provider: text.contains('/'), start, text }
    }

    pub(super) fn holds(&self, name: &Name<'_>) -> bool {
        if self.has_provider {
            fits(&self.text, &format!("{}/{}", name.provider, name.model))
        } else {
            name.bare.starts_with(&self.start) && fits(&self.text, name.bare)
        }
    }
}

/// Whether a name is that of a model that makes embeddings, as far as names tell: `text-embedding-3-small`, `nomic-embed-text`, `bge-m3`.
///
/// ```
/// use koboshi::models::is_embedding;
///
/// assert!(is_embedding("text-embedding-3-small") && is_embedding("BAAI/bge-m3") && !is_embedding("gpt-4o"));
/// ```
#[must_use]
pub fn is_embedding(model: &str) -> bool {
    /// Families whose names do not say it.
    const FAMILIES: &[&str] = &["bge-", "e5-", "gte-", "voyage-", "all-minilm", "multilingual-e5"];
    let bare = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    bare.contains("embed") || FAMILIES.iter().any(|family| bare.starts_with(family))
}

fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|_| word.len() <= 2)
}

/// Whether a name fits a pattern in which `*` stands for anything. Linear in both for the few stars that people write.
///
/// ```
/// use koboshi::models::fits;
///
/// assert!(fits("gpt-5*-mini", "gpt-5.4-mini") && !fits("gpt-5", "gpt-5-mini"));
/// ```
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.find(part) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last: &str| rest.ends_with(last))
}

/// Versions that an entry is about: `4.5`, `from 4.1`, `before 4.6`, `from 4 before 4.6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Versions {
    from: Option<Version>,
    before: Option<Version>,
}

impl Versions {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (from, before) = match words.as_slice() {
            ["from", from, "before", before] => (Some(parsed(from)?), Some(parsed(before)?)),
            ["from", from] => (Some(parsed(from)?), None),
            ["before", before] => (None, Some(parsed(before)?)),
            [one] => {
                let Version(major, minor) = parsed(one)?;
                (Some(Version(major, minor)), Some(Version(major, minor + 1)))
            }
            _ => return None,
        };
        Some(Self { from, before })
    }

    /// Whether it is one of them. A name without a number is a new model's: it is from any version on, and before none.
    pub(super) fn hold(self, version: Option<Version>) -> bool {
        match version {
            Some(version) => {
                self.from.is_none_or(|from| from <= version)
                    && self.before.is_none_or(|before| version < before)
            }
            None => self.before.is_none(),
        }
    }
}

fn parsed(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some(Version(number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_vendors_spelling() {
        for (name, family, version) in [
            ("claude-3-5-haiku-20241022", "claude", Some(Version(3, 5))),
            ("anthropic.claude-opus-4-6-v1:0", "claude", Some(Version(4, 6))),
            ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude", Some(Version(4, 0))),
            ("claude-sonnet-4@20250514", "claude", Some(Version(4, 0))),
            ("anthropic/claude-4.7-opus", "claude", Some(Version(4, 7))),
            ("team-2-Claude-3-7-sonnet", "claude", Some(Version(3, 7))),
            ("claude-opus-latest", "claude", None),
            ("my-claudette-3", "claude", None),
            ("gpt-5.1-codex", "gpt", Some(Version(5, 1))),
            ("gpt-5-2025-08-07", "gpt", Some(Version(5, 0))),
            ("openai/gpt-4-0125-preview", "gpt", Some(Version(4, 0))),
            ("gpt-4o", "gpt", None),
            ("models/gemini-2.5-flash", "gemini", Some(Version(2, 5))),
            ("gemini-1.5-pro-002", "gemini", Some(Version(1, 5))),
            ("gemini-3-pro-preview", "gemini", Some(Version(3, 0))),
            ("gemini-flash-latest", "gemini", None),
            ("x-ai/grok-4.1-fast", "grok", Some(Version(4, 1))),
        ] {
            assert_eq!(Name::new("p", name).version(Some(family)), version, "{name}");
        }
        assert_eq!(Name::new("p", "llama-3.3-70b").version(None), Some(Version(3, 3)));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, fitting) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-*", "gpt-4o", true),
            ("*", "", true),
            ("*-mini", "gpt-4o-mini", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("a*a", "a", false),
            ("*/llama*", "groq/llama-3", true),
        ] {
            assert_eq!(fits(pattern, name), fitting, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_with_a_slash_means_the_provider_too() {
        let name = Name::new("together", "deepseek-ai/DeepSeek-V3");
        let holds = |pattern: &str| Pattern::new(pattern.to_owned()).holds(&name);
        assert!(holds("together/*") && holds("*/deepseek-ai/*") && holds("DeepSeek-*"));
        assert!(!holds("deepseek-*") && !holds("deepseek-ai/*"), "letter by letter");
    }

    #[test]
    fn a_name_without_a_number_is_newer_than_all() {
        let versions = |text| Versions::parse(text).unwrap();
        assert!(versions("from 4.7").hold(None) && !versions("before 4.7").hold(None));
        assert!(versions("4.6").hold(Some(Version(4, 6))) && !versions("4.6").hold(Some(Version(4, 7))));
        assert!(versions("from 4 before 4.6").hold(Some(Version(4, 5))));
        assert!(!versions("from 4 before 4.6").hold(Some(Version(4, 6))));
        for wrong in ["", "new", "from", "4 5", "before x", "from 4 to 5", "2024", "4.5.6"] {
            assert_eq!(Versions::parse(wrong), None, "{wrong}");
        }
    }
}
