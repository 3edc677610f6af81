//! Ways out of a turn: handing over to a person, asking the user, submitting, finishing.
//!
//! They are known by the words of a tool's name, or by the first sentence of its description. Such a call is never part of a
//! loop, and a stop must leave it open: an agent that cannot continue should be able to say so.

use super::words::{Words, words};

/// A tool of one of these names alone ends the work.
const ALONE: &[&str] = &[
    "submit", "finish", "finished", "done", "complete", "terminate", "exit", "quit", "conclude", "handoff",
    "handover", "escalate", "finalize", "finalise",
];
/// Words for what is done, and for whom or what: one of each makes a way out.
const PAIRS: &[(&[&str], &[&str])] = &[
    (
        &["transfer", "escalate", "handoff", "handover", "hand", "forward", "delegate", "route", "connect"],
        &[
            "human", "humans", "person", "operator", "staff", "support", "supervisor", "representative",
            "user",
        ],
    ),
    (
        &["ask", "question", "prompt", "clarify", "request", "message", "notify", "consult", "input"],
        &["user", "human", "person", "operator", "customer", "followup"],
    ),
    (
        &["submit", "finish", "complete", "end", "final", "finalize", "conclude", "attempt", "return"],
        &[
            "answer", "task", "solution", "conversation", "completion", "submission", "session", "report",
            "turn", "chat", "call",
        ],
    ),
    (&["give"], &["up"]),
    (&["task"], &["done", "completed", "finished"]),
];
/// What the description of such a tool begins with, after the words in [`BEFORE`].
const OPENINGS: &[&str] = &[
    "ask the user", "asks the user", "ask a human", "asks a human", "ask the human", "ask a person",
    "ask for clarification", "transfer the user to", "transfer the conversation to",
    "transfer the customer to", "hand over to", "hands over to", "hand off to", "hands off to",
    "hand the conversation", "escalate to", "escalates to", "escalate the", "submit the final",
    "submit your final", "submit your answer", "submit your solution", "submits the final", "submits your",
    "submit the answer", "finish the task", "finishes the task", "finish the interaction",
    "end the conversation", "ends the conversation", "end the task", "ends the task", "end the session",
    "signal that the task", "signals that the task", "signal task completion", "the task is complete",
    "the task is done", "the task is finished", "you have completed the task", "you are done",
    "you have finished", "mark the task as complete", "marks the task as complete",
    "provide the final answer", "provides the final answer", "give the final answer",
    "return the final answer", "terminate the interaction",
];
const BEFORE: &[&str] = &[
    "use this tool to ", "use this tool when ", "use this function to ", "use this to ", "use this when ",
    "use to ", "use when ", "call this tool to ", "call this tool when ", "call this function when ",
    "call this when ", "call this to ", "call when ", "this tool ", "tool to ", "a tool to ", "once ",
    "when ",
];

/// Whether a tool of this name and description (empty where there is none) is a way out: it hands over to a person, asks the
/// user, submits or finishes.
///
/// ```
/// use koboshi::guard::ends;
/// assert!(ends("transfer_to_human_agents", "") && ends("submit", "") && ends("AskUserQuestion", ""));
/// assert!(ends("wrap_up", "Call this tool when you are done with the task."));
/// assert!(!ends("submit_form", "") && !ends("ask_database", "") && !ends("bash", "Runs a command."));
/// ```
#[must_use]
pub fn ends(name: &str, description: &str) -> bool {
    by_name(&words(own_name(name))) || by_description(description)
}

/// The name without the server or module that it comes from.
fn own_name(name: &str) -> &str {
    let own = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    own.rsplit("__").next().unwrap_or(own)
}

/// By the words of its name, which were split already.
pub(super) fn by_tool_name(name: &str, whole: &Words) -> bool {
    let own = own_name(name);
    if own.len() == name.len() { by_name(whole) } else { by_name(&words(own)) }
}

fn by_name(words: &Words) -> bool {
    let alone = words.len() == 1 && words.any(ALONE);
    // A longer name is about something else that these words happen to be in.
    alone || words.len() <= 5 && PAIRS.iter().any(|(deeds, whom)| words.any(deeds) && words.any(whom))
}

fn by_description(description: &str) -> bool {
    let first = description.trim_start().split(['.', '\n']).next().unwrap_or_default();
    let first = first.get(..first.floor_char_boundary(200)).unwrap_or_default().to_lowercase();
    let mut rest = first.as_str();
    while let Some(next) = BEFORE.iter().find_map(|before| rest.strip_prefix(before)) {
        rest = next;
    }
    OPENINGS.iter().any(|opening| rest.starts_with(opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_out_are_known_by_name() {
        for name in [
            "transfer_to_human_agents", "ask_user", "AskUserQuestion", "ask_followup_question", "submit",
            "finish", "final_answer", "attempt_completion", "complete_task", "request_user_input",
            "escalate_to_human", "handoff", "mcp__desk__ask_human", "functions.submit", "task_done",
            "submit_answer", "end_conversation",
        ] {
            assert!(ends(name, ""), "{name}");
        }
        for name in [
            "submit_form", "get_user_details", "update_user_address", "search_users", "ask_database", "bash",
            "edit", "complete_order", "end_marker", "create_task", "finish_order_item", "exit_code_of",
            "return_delivered_order_items", "send_message", "task",
        ] {
            assert!(!ends(name, ""), "{name}");
        }
    }

    #[test]
    fn and_by_the_first_sentence_of_a_description() {
        for description in [
            "Asks the user a question and waits.", "Use this tool when you have completed the task.",
            "Call this when the task is done, with a summary.",
            "Hand over to a colleague.\nOnly in working hours.",
        ] {
            assert!(ends("x", description), "{description}");
        }
        for description in [
            "Runs a command. Ask the user before you delete anything.",
            "Edits a file until the task is done.", "", "Returns the answer of the database.",
        ] {
            assert!(!ends("x", description), "{description}");
        }
    }
}
