//! Words that must be somewhere in a text before it is worth looking for them closely.
//!
//! Most outputs hold none of them, and one pass over the text says so. Words in one case are found many bytes at a time;
//! where either case counts, byte by byte, so that is for lines and not for whole outputs.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

/// A list of words, compiled when it is first asked.
pub(super) struct Cues {
    words: &'static [&'static str],
    any_case: bool,
    /// None cannot happen with constant words (a test compiles them).
    found: OnceLock<Option<AhoCorasick>>,
}

impl Cues {
    /// Words as they are written.
    pub(super) const fn new(words: &'static [&'static str]) -> Self {
        Self { words, any_case: false, found: OnceLock::new() }
    }

    /// Words whose ASCII letters count as equal in either case.
    pub(super) const fn any_case(words: &'static [&'static str]) -> Self {
        Self { words, any_case: true, found: OnceLock::new() }
    }

    fn compiled(&self) -> Option<&AhoCorasick> {
        let compile = || {
            AhoCorasick::builder()
                .ascii_case_insensitive(self.any_case)
                .match_kind(MatchKind::LeftmostFirst)
                .start_kind(if self.any_case { StartKind::Both } else { StartKind::Unanchored })
                .build(self.words)
                .ok()
        };
        self.found.get_or_init(compile).as_ref()
    }

    /// Whether one of the words may be in the text.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        self.compiled().is_none_or(|words| words.is_match(text))
    }

    /// Where words begin in the text, from left to right and not within each other.
    pub(super) fn places(&self, text: &str) -> impl Iterator<Item = usize> {
        self.compiled().into_iter().flat_map(move |words| words.find_iter(text)).map(|found| found.start())
    }

    /// The first word of the list that the text begins with, in either case.
    pub(super) fn beginning(&self, text: &str) -> Option<&'static str> {
        let input = Input::new(text).anchored(Anchored::Yes);
        let found = self.compiled()?.try_find(input).ok().flatten()?;
        self.words.get(found.pattern().as_usize()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_either_case() {
        static CUES: Cues = Cues::any_case(&["error", "no such"]);
        assert!(CUES.compiled().is_some());
        assert!(CUES.may_be_in("x ERROR") && CUES.may_be_in("No Such file") && !CUES.may_be_in("no  such"));
        assert_eq!(CUES.places("Error: an error").collect::<Vec<_>>(), [0, 10]);
        assert_eq!((CUES.beginning("Errors"), CUES.beginning("an error")), (Some("error"), None));
        static EXACT: Cues = Cues::new(&["error"]);
        assert!(EXACT.may_be_in("an error") && !EXACT.may_be_in("Error"));
    }
}
