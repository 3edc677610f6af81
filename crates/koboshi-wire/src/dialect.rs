//! The four dialects, how they differ, and what a finish is called in all of them.
//!
//! Code outside of a dialect's own folder asks for a property and never compares: `dialect.has_model_in_path()`. Each property names
//! the dialects that have it and those that do not, so that the compiler asks for a decision where a dialect is added.

/// The wire form that a client or a provider uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Dialect {
    /// OpenAI chat completions, and the servers that copy them.
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

/// Defines a method for each property, by an exhaustive match.
macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident { $($has:ident)|+ => true, $($lacks:ident)|+ => false })+) => {
        impl Dialect {
            $($(#[$doc])*
            #[must_use]
            pub const fn $name(self) -> bool {
                match self {
                    $(Self::$has)|+ => true,
                    $(Self::$lacks)|+ => false,
                }
            })+
        }
    };
}

properties! {
    /// The path names the model and asks for the stream; the body does neither.
    has_model_in_path { Gemini => true, Chat | Responses | Messages => false }
    /// A stream can also be one JSON list.
    has_list_streams { Gemini => true, Chat | Responses | Messages => false }
    /// An error inside a stream is bare JSON without a frame around it.
    has_bare_stream_errors { Gemini => true, Chat | Responses | Messages => false }
    /// Each frame of a stream is complete by itself: none opens, numbers or closes a part of the answer.
    has_standalone_frames { Chat => true, Responses | Messages | Gemini => false }
    /// A frame without JSON (`[DONE]`) marks the end of a stream.
    has_done_mark { Chat => true, Responses | Messages | Gemini => false }
    /// A stream can have several choices side by side.
    streams_several_choices { Chat => true, Responses | Messages | Gemini => false }
    /// Every frame of a stream may repeat the finish reason, so that only the end of the body ends the answer.
    repeats_finish { Gemini => true, Chat | Responses | Messages => false }
    /// Servers that copy the dialect may ignore `stream` and send a whole answer.
    may_ignore_stream { Chat => true, Responses | Messages | Gemini => false }
    /// A keep-alive frame must follow the frames that open the answer.
    opens_before_keep_alive { Responses => true, Chat | Messages | Gemini => false }
    /// A client can ask how many tokens a request has.
    has_token_count { Responses | Messages | Gemini => true, Chat => false }
    /// On Vertex the path to count tokens names `count-tokens` in place of a model.
    counts_by_model_name { Messages => true, Chat | Responses | Gemini => false }
    /// A request must state how many tokens may come back.
    requires_output_limit { Messages => true, Chat | Responses | Gemini => false }
    /// Models that never make parallel calls refuse a request that switches them off.
    refuses_idle_parallel_switch { Chat => true, Responses | Messages | Gemini => false }
    /// A request can name an earlier answer that its provider stores.
    has_stored_answers { Responses => true, Chat | Messages | Gemini => false }
    /// The vendor's own coding agent uses it, and reacts to statuses in its own way.
    has_vendor_agent { Responses | Messages | Gemini => true, Chat => false }
    /// A limit of usage that ends later is a 429 for the vendor's coding agent.
    has_usage_limit_status { Responses => true, Chat | Messages | Gemini => false }
    /// An overloaded vendor answers with a status of its own.
    has_overloaded_status { Messages => true, Chat | Responses | Gemini => false }
    /// The vendor's headers (`request-id`, `anthropic-version`) go with requests and answers.
    has_vendor_headers { Messages => true, Chat | Responses | Gemini => false }
    /// A stream states its usage only if the request asks for it, in a frame of its own.
    has_optional_usage { Chat => true, Responses | Messages | Gemini => false }
    /// JSON is asked for in the words of the prompt alone.
    asks_for_json_in_words { Messages => true, Chat | Responses | Gemini => false }
    /// A prompt that a filter refuses gets an answer that says so, not an error.
    answers_blocked_prompts { Gemini => true, Chat | Responses | Messages => false }
    /// Calls with broken arguments are left out, and the finish reason says so.
    withholds_malformed_calls { Gemini => true, Chat | Responses | Messages => false }
}

/// Why an answer ended, in one set of words: those of the chat dialect. Decoders translate into them and writers out of them; a reason that has
/// no word here is handed on as the provider wrote it. It is a fault only if the word says so: vendors make up new ones.
pub mod finish {
    /// The model was done, or met a stop sequence.
    pub const STOP: &str = "stop";
    /// The limit of tokens cut it.
    pub const LENGTH: &str = "length";
    /// It waits for tools.
    pub const TOOL_CALLS: &str = "tool_calls";
    /// A filter stopped it, or the model refused.
    pub const CONTENT_FILTER: &str = "content_filter";
    /// The old word for one call.
    pub const FUNCTION_CALL: &str = "function_call";

    /// The reason that fits what the answer has. Servers send `stop` after the calls of a tool that was demanded, and some `tool_calls` where there
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
