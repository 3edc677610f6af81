//! What a model takes, by its name.
//!
//! The dialect is one, but its models differ, and they refuse a request for a field too many: until 3.5 none thinks, from 3.7 they think by a
//! budget, from 4.6 as they like, from 4.7 only so and without sampling fields. The name says which it is on every platform
//! (`claude-3-7-sonnet-20250219`, `anthropic.claude-opus-4-6-v1`, `claude-sonnet-4@20250514`). A Claude without a number is taken for a new
//! one. Servers with other models that speak this dialect know its older part: thinking by budget, sampling.

use crate::form::Effort;

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claude {
    /// Version; none where the model is no Claude.
    version: Option<(u32, u32)>,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all.
    None,
    /// With a budget of tokens.
    Budget,
    /// With a budget, or as it likes.
    Both,
    /// As it likes, more or less hard.
    Adaptive,
}

impl Claude {
    /// The model of this name.
    pub(super) fn of(model: &str) -> Self {
        let mut words = model.split(|letter: char| !letter.is_ascii_alphanumeric());
        if !words.any(|word| word.eq_ignore_ascii_case("claude")) {
            return Self { version: None };
        }
        let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
        let mut version = None;
        while let Some(word) = words.next() {
            if let Some(major) = number(word) {
                version = Some((major, words.next().and_then(number).unwrap_or(0)));
                break;
            }
        }
        Self { version: Some(version.unwrap_or((u32::MAX, 0))) }
    }

    pub(super) fn way(self) -> Way {
        match self.version {
            None => Way::Budget,
            Some(version) if version < (3, 7) => Way::None,
            Some(version) if version < (4, 6) => Way::Budget,
            Some((4, 6)) => Way::Both,
            Some(_) => Way::Adaptive,
        }
    }

    /// Whether temperature and its like may be set.
    pub(super) fn samples(self) -> bool {
        self.version.is_none_or(|version| version < (4, 7))
    }

    /// Whether temperature and nucleus may be set together.
    pub(super) fn samples_by_both(self) -> bool {
        self.version.is_none_or(|version| version < (4, 1))
    }

    /// Whether it can be held to a schema, in its answer and in its calls.
    pub(super) fn follows_schemas(self) -> bool {
        self.version.is_some_and(|version| version >= (4, 5))
    }
}

/// The least budget that is taken.
pub(super) const LEAST_BUDGET: u64 = 1024;

/// The budget that stands for an effort. All of them leave room below the 32000 tokens that every model which thinks can answer with.
pub(super) const fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::Minimal => LEAST_BUDGET,
        Effort::Low => 2048,
        Effort::Medium => 6144,
        Effort::High => 16_384,
        Effort::Max => 23_552,
    }
}

/// The effort that stands for a budget. Claude Code's usual one (31999) is `high`.
pub(super) const fn effort_of(budget: u64) -> Effort {
    match budget {
        0..=4096 => Effort::Low,
        4097..=12_288 => Effort::Medium,
        12_289..=32_768 => Effort::High,
        _ => Effort::Max,
    }
}

/// The word for an effort.
pub(super) const fn word_of(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "max",
    }
}

/// The effort of a word.
pub(super) fn effort_named(word: &str) -> Option<Effort> {
    match word {
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        "xhigh" | "max" => Some(Effort::Max),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_platform_say_the_version() {
        for (name, way, samples) in [
            ("claude-2.1", Way::None, true),
            ("claude-3-haiku-20240307", Way::None, true),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", Way::None, true),
            ("claude-3-7-sonnet-20250219", Way::Budget, true),
            ("claude-sonnet-4@20250514", Way::Budget, true),
            ("claude-opus-4-1-20250805", Way::Budget, true),
            ("claude-haiku-4-5", Way::Budget, true),
            ("us.anthropic.claude-opus-4-6-v1", Way::Both, true),
            ("anthropic/claude-4.7-opus", Way::Adaptive, false),
            ("claude-sonnet-5", Way::Adaptive, false),
            ("claude-opus-latest", Way::Adaptive, false),
            ("MiniMax-M2", Way::Budget, true),
            ("", Way::Budget, true),
        ] {
            let model = Claude::of(name);
            assert_eq!((model.way(), model.samples()), (way, samples), "{name}");
        }
    }
}
