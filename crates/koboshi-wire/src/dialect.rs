//! The four dialects, and what a finish is called in all of them.

/// How a client or a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Dialect {
    /// OpenAI chat completions, and everybody who copies them.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Gemini and Vertex.
    Gemini,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// Its name in config, metrics and journal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }
}

/// Why an answer ended, in one set of words: those of the chat dialect. Decoders translate into them and writers out of them; a reason that has
/// no word here is handed on as the provider wrote it, and is a fault.
pub mod finish {
    /// It said all, or met a stop sequence.
    pub const STOP: &str = "stop";
    /// The limit of tokens cut it.
    pub const LENGTH: &str = "length";
    /// It waits for tools.
    pub const TOOL_CALLS: &str = "tool_calls";
    /// A filter stopped it, or the model refused.
    pub const CONTENT_FILTER: &str = "content_filter";
}
