//! A text that broke off and begins anew: what of the new one may be passed on.
//!
//! The client has seen a part of an answer. A second answer may only continue it: what it repeats is taken away, and at the first
//! character that differs it is over, because two different answers are never joined. A target that was given the beginning
//! (prefill) goes on where it ended, or repeats a little, or begins from the start; all three are told apart by the text itself.

/// The least overlap that counts as a repetition: shorter ones happen by chance.
const LEAST_OVERLAP: usize = 12;
/// So much of a continuation is looked at before it is believed.
const LOOKED_AT: usize = 64;

/// How the new answer was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// From the start.
    Anew,
    /// With the text so far as its beginning.
    Prefilled,
}

/// Follows a new answer along the text that was sent.
#[derive(Debug)]
pub(crate) struct Resume {
    begun: Begun,
    /// Bytes of the sent text that the new answer has repeated.
    repeated: usize,
    /// What came and is not yet understood.
    waiting: String,
    settled: bool,
}

/// What to do with a piece of the new answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Send this; it may be empty.
    On(String),
    /// It is another answer.
    Differs,
}

impl Resume {
    pub(crate) fn new(begun: Begun) -> Self {
        Self { begun, repeated: 0, waiting: String::new(), settled: false }
    }

    /// For an answer that goes on after what was sent, whatever it says: the model has read its own words.
    pub(crate) fn following() -> Self {
        Self { settled: true, ..Self::new(Begun::Anew) }
    }

    /// Takes a piece of the new answer. `sent` is what the client has seen.
    pub(crate) fn take(&mut self, sent: &str, piece: &str) -> Passed {
        if self.settled {
            return Passed::On(piece.to_owned());
        }
        self.waiting.push_str(piece);
        match self.begun {
            Begun::Anew => self.follow(sent),
            Begun::Prefilled => self.continue_from(sent, false),
        }
    }

    /// The new answer has ended.
    pub(crate) fn end(&mut self, sent: &str) -> Passed {
        match self.begun {
            _ if self.settled => Passed::On(String::new()),
            Begun::Anew if self.repeated == sent.len() => Passed::On(String::new()),
            Begun::Anew => Passed::Differs,
            Begun::Prefilled => self.continue_from(sent, true),
        }
    }

    /// Eats what repeats the sent text; gives what comes after it.
    fn follow(&mut self, sent: &str) -> Passed {
        let rest = sent.as_bytes().get(self.repeated..).unwrap_or_default();
        let new = self.waiting.as_bytes();
        let same = rest.iter().zip(new).take_while(|(left, right)| left == right).count();
        if same < rest.len() && same < new.len() {
            return Passed::Differs;
        }
        self.repeated += same;
        let after = self.waiting.get(same..).unwrap_or_default().to_owned();
        self.waiting.clear();
        if self.repeated == sent.len() {
            self.settled = true;
        }
        Passed::On(after)
    }

    fn continue_from(&mut self, sent: &str, ended: bool) -> Passed {
        // It may have begun from the start after all; a few characters alike are no proof of that.
        let anew = self.waiting.len() >= LEAST_OVERLAP.min(sent.len())
            && (sent.starts_with(self.waiting.as_str()) || self.waiting.starts_with(sent));
        if !sent.is_empty() && anew && self.waiting.len() >= LOOKED_AT.min(sent.len()) {
            self.begun = Begun::Anew;
            return self.follow(sent);
        }
        if !ended && self.waiting.len() < LOOKED_AT {
            return Passed::On(String::new());
        }
        self.settled = true;
        let waiting = std::mem::take(&mut self.waiting);
        let overlap = overlap(sent, &waiting);
        Passed::On(waiting.get(overlap..).unwrap_or_default().to_owned())
    }
}

/// How much of the beginning of `new` repeats the end of `sent`.
fn overlap(sent: &str, new: &str) -> usize {
    let most = new.len().min(sent.len()).min(400);
    (LEAST_OVERLAP..=most)
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

    fn run(begun: Begun, sent: &str, answer: &str, piece: usize) -> Option<String> {
        let mut resume = Resume::new(begun);
        let mut text = sent.to_owned();
        let chars: Vec<char> = answer.chars().collect();
        for piece in chars.chunks(piece) {
            match resume.take(sent, &piece.iter().collect::<String>()) {
                Passed::On(more) => text.push_str(&more),
                Passed::Differs => return None,
            }
        }
        match resume.end(sent) {
            Passed::On(more) => Some(text + &more),
            Passed::Differs => None,
        }
    }

    #[test]
    fn the_same_answer_again_is_passed_on_from_where_it_broke() {
        for at in [0, 1, 20, WHOLE.len()] {
            for piece in [1, 7, 1000] {
                assert_eq!(
                    run(Begun::Anew, &WHOLE[..at], WHOLE, piece).as_deref(),
                    Some(WHOLE),
                    "{at} {piece}"
                );
            }
        }
    }

    #[test]
    fn another_answer_is_noticed_at_its_first_difference() {
        assert_eq!(run(Begun::Anew, &WHOLE[..20], "The doll stands still for ever.", 3), None);
        assert_eq!(run(Begun::Anew, &WHOLE[..20], "The doll", 3), None, "a shorter one is another one");
    }

    #[test]
    fn a_continuation_is_joined_with_its_overlap_taken_away() {
        for at in [20, 50] {
            for repeats in [0, 15] {
                let answer = &WHOLE[at - repeats..];
                for piece in [1, 9, 1000] {
                    assert_eq!(
                        run(Begun::Prefilled, &WHOLE[..at], answer, piece).as_deref(),
                        Some(WHOLE),
                        "{at} {repeats}"
                    );
                }
            }
        }
        assert_eq!(run(Begun::Prefilled, "short", " end", 1).as_deref(), Some("short end"));
    }

    #[test]
    fn a_target_that_begins_from_the_start_after_all_is_followed() {
        for piece in [1, 9, 1000] {
            assert_eq!(run(Begun::Prefilled, &WHOLE[..70], WHOLE, piece).as_deref(), Some(WHOLE));
        }
    }

    #[test]
    fn letters_of_many_bytes_are_never_split() {
        let whole = "起き上がり小法師は七回転んで八回起きます。何度でも立ち上がります。";
        let at = whole.char_indices().nth(10).unwrap().0;
        assert_eq!(run(Begun::Anew, &whole[..at], whole, 1).as_deref(), Some(whole));
        assert_eq!(run(Begun::Anew, &whole[..at], "起き上がるのは誰ですか", 1), None);
    }
}
