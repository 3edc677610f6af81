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
/// no word here is handed on as the provider wrote it. It is a fault only if the word says so: vendors make up new ones.
pub mod finish {
    /// It said all, or met a stop sequence.
    pub const STOP: &str = "stop";
    /// The limit of tokens cut it.
    pub const LENGTH: &str = "length";
    /// It waits for tools.
    pub const TOOL_CALLS: &str = "tool_calls";
    /// A filter stopped it, or the model refused.
    pub const CONTENT_FILTER: &str = "content_filter";
    /// The old word for one call.
    pub const FUNCTION_CALL: &str = "function_call";

    /// The reason that fits what the answer has. Servers say `stop` behind the calls of a tool that was demanded, and some `tool_calls` where there
    /// are none; clients of other dialects run tools, or do not, by this word alone.
    #[must_use]
    pub fn fitting(reason: &str, has_calls: bool) -> &str {
        match (reason, has_calls) {
            (STOP, true) => TOOL_CALLS,
            (TOOL_CALLS | FUNCTION_CALL, false) => STOP,
            _ => reason,
        }
    }

    /// Whether a reason says that the answer ended for an error, so that it is not whole: OpenRouter's `error`, the `error_finish` of relays,
    /// DeepSeek's `insufficient_system_resource`, Zhipu's `network_error`, Gemini's `MALFORMED_RESPONSE`, the `abort` of engines that stop.
    #[must_use]
    pub fn is_error(reason: &str) -> bool {
        if matches!(reason, STOP | LENGTH | TOOL_CALLS | CONTENT_FILTER) {
            return false;
        }
        let is = |words: &[&str], word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        is(&["insufficient_system_resource", "malformed_response", "abort", "aborted"], reason)
            || reason.split(['_', '-', ' ']).any(|word| is(&["error", "failed", "failure"], word))
    }

    #[cfg(test)]
    mod tests {
        use super::is_error;

        #[test]
        fn words_of_errors_are_known_and_new_words_are_none() {
            for word in [
                "error", "error_finish", "network_error", "ERROR", "insufficient_system_resource",
                "MALFORMED_RESPONSE", "abort", "failed",
            ] {
                assert!(is_error(word), "{word}");
            }
            for word in [
                "stop", "length", "", "eos_token", "OTHER", "pause_turn", "terror", "MALFORMED_FUNCTION_CALL",
            ] {
                assert!(!is_error(word), "{word}");
            }
        }
    }
}
