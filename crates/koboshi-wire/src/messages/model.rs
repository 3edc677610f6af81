//! What a model takes in this dialect, by what is known of it.
//!
//! The dialect is one, but its models differ, and they refuse a request for a field too many: the older ones do not think, later ones think by
//! a budget, the newest only adaptively and without sampling fields. Servers with other models that speak this dialect know its older
//! part: thinking by budget, sampling.

use koboshi::models::{Facts, Sampling, Thinking};

use crate::form::Effort;

/// A model as this dialect sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model(pub(super) Facts);

impl Model {
    /// How a request states thinking for it.
    pub(super) fn thinking(self) -> Thinking {
        // Levels belong to another dialect.
        self.0.thinking.filter(|way| *way != Thinking::Levels).unwrap_or(Thinking::Budget)
    }

    /// Whether temperature and its like may be set.
    pub(super) fn samples(self) -> bool {
        self.0.sampling != Some(Sampling::None)
    }

    /// Whether temperature and nucleus may be set together.
    pub(super) fn samples_by_both(self) -> bool {
        self.0.sampling.is_none_or(|taken| taken == Sampling::Both)
    }

    /// Whether it can be held to a schema, in its answer and in its calls.
    pub(super) fn follows_schemas(self) -> bool {
        self.0.structured_outputs == Some(true)
    }
}

/// The least budget that is taken.
pub(super) const MIN_BUDGET: u64 = 1024;

/// The budget that stands for an effort. All of them leave room below the 32000 tokens that every model which thinks can answer with.
pub(super) const fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::Minimal => MIN_BUDGET,
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
