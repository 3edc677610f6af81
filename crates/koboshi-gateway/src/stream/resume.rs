//! Resumes a text that broke off: finds the part of a second answer that continues it.
//!
//! The client has seen a part of an answer. A second answer may only continue it: its repetition of that part is removed, and at the first
//! character that differs the stream ends, because two different answers are never joined. A target that was given the beginning
//! (prefill) continues where it ended, or repeats a little, or begins from the start; the text itself shows which. It does not distinguish a
//! continuation from an answer that begins differently: so only targets that are known to support prefill are given the beginning
//! (`route::capability`), and one that begins like the sent text and then differs is another answer all the same.

use koboshi_wire::step::Step;

/// The shortest overlap that counts as a repetition: shorter ones occur by chance.
const MIN_OVERLAP: usize = 12;
/// How many bytes of a continuation are buffered before it is decided how it begins.
const READ_AHEAD: usize = 64;

/// Where the new answer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeFrom {
    /// At the start.
    Start,
    /// After the sent text, which the target was given.
    Prefill,
}

/// Compares a new answer with the text that was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    from: ResumeFrom,
    /// Bytes of the sent text that the new answer has repeated.
    repeated: usize,
    /// What came and is not yet compared.
    waiting: String,
    /// Everything from here on continues the text.
    continues: bool,
}

/// The relation of a piece of the new answer to the sent text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// It continues the sent text by this, which may be empty.
    Text(String),
    /// It is another answer.
    Differs,
}

impl Resume {
    pub(crate) fn new(from: ResumeFrom) -> Self {
        Self { from, repeated: 0, waiting: String::new(), continues: false }
    }

    /// For an answer that follows the sent text, whatever it contains: the model has read its own words.
    pub(crate) fn following() -> Self {
        Self { continues: true, ..Self::new(ResumeFrom::Start) }
    }

    /// How a frame of the new answer continues the sent text. Thinking of another run of the model is not shown twice, and the end itself
    /// follows when the answer is whole.
    pub(crate) fn continued(&mut self, sent: &str, step: &Step<'_>) -> Continuation {
        let mut all = String::new();
        let text = step.text.as_deref().map(|text| self.take(sent, text));
        let ends = !step.finish.is_empty() || !step.calls.is_empty();
        let end = if ends { Some(self.end(sent)) } else { None };
        for part in [text, end].into_iter().flatten() {
            match part {
                Continuation::Text(text) => all.push_str(&text),
                Continuation::Differs => return Continuation::Differs,
            }
        }
        Continuation::Text(all)
    }

    /// Takes a piece of the new answer. `sent` is what the client has seen.
    fn take(&mut self, sent: &str, piece: &str) -> Continuation {
        if self.continues {
            return Continuation::Text(piece.to_owned());
        }
        self.waiting.push_str(piece);
        match self.from {
            ResumeFrom::Start => self.compare(sent),
            ResumeFrom::Prefill => self.continue_from(sent, false),
        }
    }

    /// Takes the end of the new answer.
    fn end(&mut self, sent: &str) -> Continuation {
        match self.from {
            _ if self.continues => Continuation::Text(String::new()),
            ResumeFrom::Start if self.repeated == sent.len() => Continuation::Text(String::new()),
            ResumeFrom::Start => Continuation::Differs,
            ResumeFrom::Prefill => self.continue_from(sent, true),
        }
    }

    /// Removes what repeats the sent text; returns what follows it.
    fn compare(&mut self, sent: &str) -> Continuation {
        let rest = sent.as_bytes().get(self.repeated..).unwrap_or_default();
        let new = self.waiting.as_bytes();
        let same = rest.iter().zip(new).take_while(|(left, right)| left == right).count();
        if same < rest.len() && same < new.len() {
            return Continuation::Differs;
        }
        self.repeated += same;
        let after = self.waiting.get(same..).unwrap_or_default().to_owned();
        self.waiting.clear();
        if self.repeated == sent.len() {
            self.continues = true;
        }
        Continuation::Text(after)
    }

    fn continue_from(&mut self, sent: &str, ended: bool) -> Continuation {
        // It may have begun from the start after all; a few equal characters are no proof of that.
        let from_start = self.waiting.len() >= MIN_OVERLAP.min(sent.len())
            && (sent.starts_with(self.waiting.as_str()) || self.waiting.starts_with(sent));
        if !sent.is_empty() && from_start && self.waiting.len() >= READ_AHEAD.min(sent.len()) {
            self.from = ResumeFrom::Start;
            return self.compare(sent);
        }
        let is_decided = ended || !sent.starts_with(self.waiting.as_str());
        if is_decided && alike(sent, &self.waiting) >= MIN_OVERLAP {
            return Continuation::Differs;
        }
        if !ended && self.waiting.len() < READ_AHEAD {
            return Continuation::Text(String::new());
        }
        self.continues = true;
        let waiting = std::mem::take(&mut self.waiting);
        let overlap = overlap(sent, &waiting);
        Continuation::Text(waiting.get(overlap..).unwrap_or_default().to_owned())
    }
}

/// How many bytes both begin with; surrounding whitespace is no proof.
fn alike(sent: &str, new: &str) -> usize {
    let same = sent.bytes().zip(new.bytes()).take_while(|(left, right)| left == right).count();
    new.as_bytes().get(..same).unwrap_or_default().trim_ascii().len()
}

/// How much of the beginning of `new` repeats the end of `sent`.
fn overlap(sent: &str, new: &str) -> usize {
    let max_overlap = new.len().min(sent.len()).min(400);
    (MIN_OVERLAP..=max_overlap)
        .rev()
        .filter(|length| new.is_char_boundary(*length))
        .find(|length| new.get(..*length).is_some_and(|start| sent.ends_with(start)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str =
        "The doll falls seven times and gets up eight, and that is all there is to say about it today.";

    fn run(from: ResumeFrom, sent: &str, answer: &str, piece: usize) -> Option<String> {
        let mut resume = Resume::new(from);
        let mut text = sent.to_owned();
        let chars: Vec<char> = answer.chars().collect();
        for piece in chars.chunks(piece) {
            match resume.take(sent, &piece.iter().collect::<String>()) {
                Continuation::Text(more) => text.push_str(&more),
                Continuation::Differs => return None,
            }
        }
        match resume.end(sent) {
            Continuation::Text(more) => Some(text + &more),
            Continuation::Differs => None,
        }
    }

    #[test]
    fn the_same_answer_again_is_passed_on_from_where_it_broke() {
        for at in [0, 1, 20, WHOLE.len()] {
            for piece in [1, 7, 1000] {
                assert_eq!(
                    run(ResumeFrom::Start, &WHOLE[..at], WHOLE, piece).as_deref(),
                    Some(WHOLE),
                    "{at} {piece}"
                );
            }
        }
    }

    #[test]
    fn another_answer_is_noticed_at_its_first_difference() {
        assert_eq!(run(ResumeFrom::Start, &WHOLE[..20], "The doll stands still for ever.", 3), None);
        assert_eq!(run(ResumeFrom::Start, &WHOLE[..20], "The doll", 3), None, "a shorter one is another one");
    }

    #[test]
    fn a_continuation_is_joined_with_its_overlap_taken_away() {
        for at in [20, 50] {
            for repeats in [0, 15] {
                let answer = &WHOLE[at - repeats..];
                for piece in [1, 9, 1000] {
                    assert_eq!(
                        run(ResumeFrom::Prefill, &WHOLE[..at], answer, piece).as_deref(),
                        Some(WHOLE),
                        "{at} {repeats}"
                    );
                }
            }
        }
        assert_eq!(run(ResumeFrom::Prefill, "short", " end", 1).as_deref(), Some("short end"));
    }

    #[test]
    fn a_target_that_begins_from_the_start_after_all_is_followed() {
        for piece in [1, 9, 1000] {
            assert_eq!(run(ResumeFrom::Prefill, &WHOLE[..70], WHOLE, piece).as_deref(), Some(WHOLE));
        }
    }

    #[test]
    fn a_target_that_begins_from_the_start_and_then_differs_is_noticed() {
        for other in ["The doll falls on its face.", "The doll falls seven times", &WHOLE[..40]] {
            for piece in [1, 9, 1000] {
                assert_eq!(run(ResumeFrom::Prefill, &WHOLE[..70], other, piece), None, "{other}");
            }
        }
        let begins_alike = "The doll is old.";
        let joined = format!("{}{begins_alike}", &WHOLE[..70]);
        assert_eq!(run(ResumeFrom::Prefill, &WHOLE[..70], begins_alike, 1), Some(joined), "a few letters");
    }

    #[test]
    fn letters_of_many_bytes_are_never_split() {
        let whole = "起き上がり小法師は七回転んで八回起きます。何度でも立ち上がります。";
        let at = whole.char_indices().nth(10).unwrap().0;
        assert_eq!(run(ResumeFrom::Start, &whole[..at], whole, 1).as_deref(), Some(whole));
        assert_eq!(run(ResumeFrom::Start, &whole[..at], "起き上がるのは誰ですか", 1), None);
    }
}
