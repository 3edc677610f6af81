//! What is allowed to a reader of arguments, and how the model's answer ended.

/// How the answer that holds the call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Finish {
    /// It is not known.
    #[default]
    Unknown,
    /// The model ended it.
    Done,
    /// The output limit ended it.
    Cut,
}

impl Finish {
    /// The words of the common dialects, in lower case, and what each means.
    pub const WORDS: &[(&str, Self)] = &[
        ("length", Self::Cut),
        ("max_tokens", Self::Cut),
        ("max_output_tokens", Self::Cut),
        ("incomplete", Self::Cut),
        ("model_length", Self::Cut),
        ("model_context_window_exceeded", Self::Cut),
        ("stop", Self::Done),
        ("tool_calls", Self::Done),
        ("function_call", Self::Done),
        ("tool_use", Self::Done),
        ("end_turn", Self::Done),
        ("completed", Self::Done),
        ("stop_sequence", Self::Done),
    ];

    /// The finish reason or stop reason of any of the common dialects.
    ///
    /// ```
    /// use koboshi::args::Finish;
    /// assert_eq!(Finish::of("max_tokens"), Finish::Cut);
    /// assert_eq!(Finish::of("tool_calls"), Finish::Done);
    /// assert_eq!(Finish::of("something new"), Finish::Unknown);
    /// ```
    #[must_use]
    pub fn of(reason: &str) -> Self {
        let known = Self::WORDS.iter().find(|(word, _)| reason.eq_ignore_ascii_case(word));
        known.map_or(Self::Unknown, |(_, finish)| *finish)
    }
}

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgsPolicy {
    /// Read other notations where exactly one reading exists; otherwise only strict JSON passes.
    pub repair: bool,
    /// Longer texts are refused unread. At most 4 GiB are read.
    pub max_bytes: usize,
    /// Deeper nesting is refused. At most [`MAX_DEPTH`] is used.
    pub max_depth: usize,
}

/// No policy reads deeper than this: values are dropped and checked by recursive code of others.
pub const MAX_DEPTH: usize = 512;

impl Default for ArgsPolicy {
    fn default() -> Self {
        Self { repair: true, max_bytes: 4 * 1024 * 1024, max_depth: 128 }
    }
}

impl ArgsPolicy {
    /// Validate only: every defect goes back to the model.
    #[must_use]
    pub fn strict() -> Self {
        Self { repair: false, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.max_bytes.min(super::tape::MAX_TEXT)
    }

    pub(super) fn depth(&self) -> usize {
        self.max_depth.min(MAX_DEPTH)
    }
}
