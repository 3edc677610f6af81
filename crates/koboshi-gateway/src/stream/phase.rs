//! What the client of a stream has, and what follows from that for a frame, a whole answer and a failure: the table of [`stream`](crate::stream).
//!
//! The functions are pure: a phase and an event yield the next phase and an action.

use crate::stream::resume::{Resume, ResumeFrom};

/// Text beyond this is not kept, and a stream that breaks after it cannot be resumed.
const MAX_RESUMED: usize = 1024 * 1024;

/// What the client has of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No content; the head and keep-alive frames at most.
    #[default]
    Held,
    /// Content of the current attempt.
    Committed,
    /// Content of an earlier attempt. The current answer must continue it, which this checks.
    Resuming(Resume),
    /// Everything that it will get.
    Ended,
}

/// What a frame contains for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameEvent {
    /// Nothing.
    Nothing,
    /// Something that must wait: there was no content yet, or the answer must be complete first.
    Wait,
    /// Content.
    Content,
}

/// The action for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameAction {
    Skip,
    Buffer,
    /// Send the head, the buffer and this frame.
    Commit,
    Forward,
}

/// The action for a whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WholeAction {
    /// Send the head, then as `Finish`.
    CommitAndFinish,
    /// Send the buffer and the end.
    Finish,
    Nothing,
}

/// A failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptFailure {
    /// Another attempt may be made.
    pub(crate) can_retry: bool,
    /// Another answer can continue what the client has, or the client can begin the answer again.
    pub(crate) can_resume: bool,
}

/// The action for a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureAction {
    /// Ask the next target.
    Retry,
    /// Return the error to the caller: the client has seen nothing.
    Report,
    /// Send the error as the last frame.
    ErrorFrame,
    Nothing,
}

/// The action for a target that begins to answer and cannot continue what the client has, where the client can begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindAction {
    /// Tell the client that it has nothing now.
    Rewind,
    /// It has nothing of an earlier attempt.
    Nothing,
}

impl Phase {
    /// For a frame of the answer that was judged.
    pub(crate) fn on_frame(self, event: FrameEvent) -> (Self, FrameAction) {
        match (self, event) {
            (Self::Ended, _) => (Self::Ended, FrameAction::Skip),
            (phase, FrameEvent::Nothing) => (phase, FrameAction::Skip),
            (phase, FrameEvent::Wait) => (phase, FrameAction::Buffer),
            (Self::Held, FrameEvent::Content) => (Self::Committed, FrameAction::Commit),
            (phase, FrameEvent::Content) => (phase, FrameAction::Forward),
        }
    }

    /// For an answer that is whole, and whose tool calls may be sent.
    pub(crate) fn on_whole(self) -> (Self, WholeAction) {
        let action = match self {
            Self::Held => WholeAction::CommitAndFinish,
            Self::Committed | Self::Resuming(_) => WholeAction::Finish,
            Self::Ended => WholeAction::Nothing,
        };
        (Self::Ended, action)
    }

    /// For an attempt that failed.
    pub(crate) fn on_failure(self, failed: AttemptFailure) -> (Self, FailureAction) {
        match self {
            Self::Held if failed.can_retry => (Self::Held, FailureAction::Retry),
            Self::Held => (Self::Ended, FailureAction::Report),
            Self::Committed | Self::Resuming(_) if failed.can_retry && failed.can_resume => {
                (Self::Resuming(Resume::new(ResumeFrom::Start)), FailureAction::Retry)
            }
            Self::Committed | Self::Resuming(_) => (Self::Ended, FailureAction::ErrorFrame),
            Self::Ended => (Self::Ended, FailureAction::Nothing),
        }
    }

    /// For an answer that the client must begin again.
    pub(crate) fn on_rewind(self) -> (Self, RewindAction) {
        match self {
            Self::Resuming(_) => (Self::Held, RewindAction::Rewind),
            phase => (phase, RewindAction::Nothing),
        }
    }

    /// Whether the client has seen no content.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self, Self::Held)
    }

    /// Whether the answer must continue an earlier one.
    pub(crate) const fn is_resuming(&self) -> bool {
        matches!(self, Self::Resuming(_))
    }
}

/// The content that the client has.
#[derive(Debug, Default)]
pub(crate) struct DeliveredContent {
    /// Its text, as long as a resumed answer could need it.
    pub(crate) text: String,
    /// Whether some text is not kept.
    pub(crate) is_partial: bool,
    /// Whether it contains something that no other answer can continue: a refusal, sound, another choice.
    pub(crate) beyond_text: bool,
    /// The length of the text when an answer was refused for what the guard forbids.
    pub(crate) refused_at: Option<usize>,
}

impl DeliveredContent {
    /// Whether another answer can continue it.
    pub(crate) fn can_resume(&self) -> bool {
        // After a refused answer another model would write something else than the client has begun to read.
        let goes_on = self.refused_at.is_none_or(|at| at == self.text.len());
        goes_on && !self.beyond_text && self.text.len() < MAX_RESUMED
    }

    /// Adds text. A stream that can no longer be resumed needs no memory either.
    pub(crate) fn push(&mut self, text: &str) {
        if self.can_resume() {
            self.text.push_str(text);
        } else {
            self.is_partial |= !text.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resuming() -> Phase {
        Phase::Resuming(Resume::new(ResumeFrom::Start))
    }

    fn phase(name: &str) -> Phase {
        match name {
            "held" => Phase::Held,
            "committed" => Phase::Committed,
            "resuming" => resuming(),
            "ended" => Phase::Ended,
            other => panic!("{other} is no phase"),
        }
    }

    const FRAMES: [FrameEvent; 3] = [FrameEvent::Nothing, FrameEvent::Wait, FrameEvent::Content];
    const FAILURES: [AttemptFailure; 4] = [
        AttemptFailure { can_retry: true, can_resume: true },
        AttemptFailure { can_retry: true, can_resume: false },
        AttemptFailure { can_retry: false, can_resume: true },
        AttemptFailure { can_retry: false, can_resume: false },
    ];

    /// The results of the functions, as a row of the table: three frames, a whole answer, failures that can be resumed, only retried,
    /// and neither, and an answer that begins again.
    fn row(name: &str) -> Vec<String> {
        let changed = |next: Phase, action: String| {
            if next == phase(name) { action } else { format!("**{}**: {action}", of(&next)) }
        };
        let frames = FRAMES.map(|event| {
            let (next, action) = phase(name).on_frame(event);
            changed(next, format!("{action:?}").to_lowercase())
        });
        let (next, action) = phase(name).on_whole();
        let whole = changed(next, whole_name(action).to_owned());
        let failures = FAILURES.map(|failed| {
            let (next, action) = phase(name).on_failure(failed);
            changed(next, failure_name(action).to_owned())
        });
        let [resumable, retriable, last, same] = failures;
        assert_eq!(last, same, "{name}: what could be resumed does not matter where nothing can be retried");
        let (next, action) = phase(name).on_rewind();
        let rewind = changed(next, format!("{action:?}").to_lowercase());
        frames.into_iter().chain([whole, resumable, retriable, last, rewind]).collect()
    }

    fn of(phase: &Phase) -> &'static str {
        match phase {
            Phase::Held => "held",
            Phase::Committed => "committed",
            Phase::Resuming(_) => "resuming",
            Phase::Ended => "ended",
        }
    }

    fn whole_name(action: WholeAction) -> &'static str {
        match action {
            WholeAction::CommitAndFinish => "commit, finish",
            WholeAction::Finish => "finish",
            WholeAction::Nothing => "nothing",
        }
    }

    fn failure_name(action: FailureAction) -> &'static str {
        match action {
            FailureAction::Retry => "retry",
            FailureAction::Report => "report",
            FailureAction::ErrorFrame => "error frame",
            FailureAction::Nothing => "nothing",
        }
    }

    #[test]
    fn the_phases_do_what_the_table_of_the_stream_says() {
        let header = include_str!("mod.rs");
        for name in ["held", "committed", "resuming", "ended"] {
            let line = header
                .lines()
                .filter_map(|line| line.strip_prefix("//! | "))
                .find(|line| line.starts_with(name))
                .unwrap_or_else(|| panic!("the table has no row for {name}"));
            let cells: Vec<&str> = line.trim_end_matches('|').split('|').skip(1).map(str::trim).collect();
            assert_eq!(cells, row(name), "{name}");
        }
    }

    #[test]
    fn no_content_goes_out_twice_and_none_after_the_end() {
        // Every sequence of six events: at most one commit unless the client begins again, and nothing after an end.
        fn follow(phase: &Phase, depth: u8, commits: u32) {
            assert!(commits <= 1);
            if depth == 0 {
                return;
            }
            let again = || match phase {
                Phase::Held => Phase::Held,
                Phase::Committed => Phase::Committed,
                Phase::Resuming(_) => resuming(),
                Phase::Ended => Phase::Ended,
            };
            for event in FRAMES {
                let (next, action) = again().on_frame(event);
                assert!(*phase != Phase::Ended || action == FrameAction::Skip);
                follow(&next, depth - 1, commits + u32::from(action == FrameAction::Commit));
            }
            let (next, action) = again().on_whole();
            follow(&next, depth - 1, commits + u32::from(action == WholeAction::CommitAndFinish));
            let (next, action) = again().on_rewind();
            follow(&next, depth - 1, if action == RewindAction::Rewind { 0 } else { commits });
            for failed in FAILURES {
                let (next, action) = again().on_failure(failed);
                let hides = matches!(action, FailureAction::Report);
                assert!(!hides || commits == 0, "after content the client never gets another answer");
                follow(&next, depth - 1, commits);
            }
        }
        follow(&Phase::Held, 6, 0);
    }

    #[test]
    fn only_text_can_be_continued_and_text_that_is_not_kept_is_known_to_be() {
        let mut delivered = DeliveredContent::default();
        delivered.push("abc");
        assert!(delivered.can_resume() && !delivered.is_partial);
        delivered.refused_at = Some(3);
        assert!(delivered.can_resume(), "nothing came after the refused answer");
        delivered.push("d");
        assert!(!delivered.can_resume() && !delivered.is_partial);
        delivered.push("e");
        assert!(delivered.is_partial, "this text is not all of it: {}", delivered.text);
        let heard = DeliveredContent { beyond_text: true, ..DeliveredContent::default() };
        assert!(!heard.can_resume());
        let mut long = DeliveredContent::default();
        long.push(&"x".repeat(MAX_RESUMED));
        assert!(!long.can_resume());
    }
}
