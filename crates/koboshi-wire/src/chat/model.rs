//! What a model and its server take in this dialect, by what is known of them.

use koboshi::models::{Efforts, Facts, Sampling};

/// Whose chat dialect it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flavor {
    /// OpenAI's own, or Azure's: custom tools, `refusal`, its limits.
    pub openai: bool,
    /// The model thinks: it takes `reasoning_effort`. OpenAI's then want `max_completion_tokens` and refuse sampling parameters.
    pub reasoning: bool,
    /// The model wants the thought before its calls back, and refuses calls without one. Other servers refuse the field.
    pub recalls: bool,
    /// Mistral's own: it refuses fields that it does not know, and ids of calls that are not like its own.
    pub mistral: bool,
    /// What is known of the model.
    pub facts: Facts,
}

impl Flavor {
    /// What is known of a model. Of others than OpenAI's it is not known that they take an effort.
    #[must_use]
    pub fn of(openai: bool, facts: Facts) -> Self {
        let reasons = facts.reasoning == Some(true);
        Self {
            openai,
            reasoning: openai && reasons,
            recalls: !openai && reasons && facts.reasoning_content == Some(true),
            mistral: false,
            facts,
        }
    }

    /// The efforts that the model knows. Of others than OpenAI's only the usual ones are known.
    pub(crate) fn efforts(self) -> Efforts {
        self.facts.efforts.filter(|_| self.openai).unwrap_or(Efforts::USUAL)
    }

    /// Whether temperature and its like are refused: by OpenAI's models that think, and by others of which that is known.
    pub(crate) fn refuses_sampling(self) -> bool {
        self.openai && (self.reasoning || self.facts.sampling == Some(Sampling::None))
    }

    /// Whether the model calls no tools in chat while it thinks.
    pub(super) fn thinks_or_calls(self) -> bool {
        self.openai && self.facts.reasoning_with_tools == Some(false)
    }
}
