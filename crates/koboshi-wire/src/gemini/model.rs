//! What a model takes in this dialect, by what is known of it. One that is not known is taken for a new one.

use koboshi::models::{Effort, Efforts, Facts, Thinking};

/// The most tokens for thinking where nothing else is known.
const MAX_THINKING: u64 = 24_576;

/// A model as this dialect sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model(pub(super) Facts);

impl Model {
    /// Whether the answer can be JSON where tools are offered.
    pub(super) fn has_json_with_tools(self) -> bool {
        self.0.json_with_tools.unwrap_or(true)
    }

    /// Whether images can stand inside of a result.
    pub(super) fn has_media_in_results(self) -> bool {
        self.0.images_in_results.unwrap_or(true)
    }

    pub(super) fn thinks(self) -> bool {
        self.0.thinking != Some(Thinking::None)
    }

    /// Whether the request names a level of thinking, and not a number of tokens.
    pub(super) fn has_levels(self) -> bool {
        self.0.thinking != Some(Thinking::Budget)
    }

    /// The fewest and the most tokens for thinking. A model with a fewest number cannot be kept from it.
    pub(super) fn budget(self) -> (u64, u64) {
        let min = self.0.min_thinking_tokens.unwrap_or(0);
        (min, self.0.max_thinking_tokens.unwrap_or(MAX_THINKING).max(min))
    }

    /// The level that comes nearest to an effort.
    pub(super) fn level(self, wanted: Effort) -> &'static str {
        match self.0.efforts.unwrap_or(Efforts::WITH_MINIMAL).nearest(wanted.min(Effort::High)) {
            Effort::None | Effort::Minimal => "MINIMAL",
            Effort::Low => "LOW",
            Effort::Medium => "MEDIUM",
            Effort::High | Effort::Xhigh => "HIGH",
        }
    }
}
