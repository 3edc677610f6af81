//! Why an answer ended: the words of this dialect, and those of [`finish`].

use std::borrow::Cow;

use crate::dialect::finish;

/// A stop reason in our words; one that has none here stays as it is.
pub(super) fn read(reason: Cow<'_, str>) -> Cow<'_, str> {
    match reason.as_ref() {
        // A pause comes only with tools that the provider runs, and those never leave their dialect: its client sees the frame itself.
        "end_turn" | "stop_sequence" | "pause_turn" => Cow::Borrowed(finish::STOP),
        "max_tokens" | "model_context_window_exceeded" => Cow::Borrowed(finish::LENGTH),
        "tool_use" => Cow::Borrowed(finish::TOOL_CALLS),
        "refusal" => Cow::Borrowed(finish::CONTENT_FILTER),
        _ => reason,
    }
}

/// A reason in the words of this dialect. What nobody here knows is an answer that was cut: to call it ended would be a lie.
pub(super) fn write(reason: &str) -> &str {
    match reason {
        finish::STOP => "end_turn",
        finish::TOOL_CALLS | finish::FUNCTION_CALL => "tool_use",
        finish::CONTENT_FILTER => "refusal",
        "end_turn"
        | "stop_sequence"
        | "pause_turn"
        | "tool_use"
        | "refusal"
        | "model_context_window_exceeded" => reason,
        _ => "max_tokens",
    }
}
