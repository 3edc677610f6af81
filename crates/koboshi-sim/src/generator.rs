//! The text of an answer, piece by piece, without end or to a natural one.
//!
//! A conversation has one text: sentence after sentence drawn from its fingerprint. An answer is the beginning of that
//! text, so an answer of ten chunks is the beginning of one of a thousand, and an answer that continues a given text
//! is what follows it. Only the current sentence is in memory.

use koboshi::chance::Seed;

use crate::chance::pick;
use crate::words::Language;

/// A natural end is at the end of the sentence that has this piece.
const USUAL_LENGTH: u64 = 42;

/// The text of a conversation, from some place on.
#[derive(Debug, Clone)]
pub(crate) struct TextGenerator {
    seed: Seed,
    language: Language,
    /// What comes before the first sentence.
    lead: std::vec::IntoIter<String>,
    /// What is left of the current sentence.
    sentence: std::vec::IntoIter<String>,
    sentences: u64,
    /// The number of pieces up to now, those before the place included.
    given: u64,
    /// The text ends after this many pieces; without a number at its natural end.
    chunks: Option<u64>,
    /// The rest of a piece whose beginning was given.
    rest: Option<String>,
}

impl TextGenerator {
    /// The text of a conversation, from its beginning. `lead` comes before the first sentence.
    pub(crate) fn new(seed: Seed, language: Language, lead: &str, chunks: Option<u64>) -> Self {
        Self {
            seed,
            language,
            lead: words(lead).into_iter(),
            sentence: Vec::new().into_iter(),
            sentences: 0,
            given: 0,
            chunks,
            rest: None,
        }
    }

    /// What follows this beginning, if the text begins with it.
    pub(crate) fn after(mut self, words: &str) -> Option<Self> {
        let mut left = words;
        while !left.is_empty() {
            let piece = self.next()?;
            if let Some(rest) = left.strip_prefix(&*piece) {
                left = rest;
            } else {
                self.rest = Some(piece.strip_prefix(left)?.to_owned());
                left = "";
            }
        }
        Some(self)
    }

    fn is_over(&self) -> bool {
        match self.chunks {
            Some(chunks) => self.given >= chunks,
            None => self.given >= USUAL_LENGTH && self.sentence.as_slice().is_empty(),
        }
    }

    fn next_sentence(&mut self) {
        let seed = self.seed.nth(self.sentences);
        self.sentences = self.sentences.saturating_add(1);
        let draw = |(nth, phrases): (u64, &&'static [&'static str])| pick(seed.nth(nth), phrases).copied();
        let phrases = (0..).zip(self.language.phrases()).filter_map(draw);
        let mut pieces = Vec::new();
        for phrase in phrases {
            match self.language {
                Language::English => pieces.extend(words(phrase)),
                Language::Japanese => {
                    pieces.extend(phrase.split('|').filter(|piece| !piece.is_empty()).map(str::to_owned));
                }
            }
        }
        pieces.push(if self.language == Language::English { "." } else { "。" }.to_owned());
        self.sentence = pieces.into_iter();
    }
}

impl Iterator for TextGenerator {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if let Some(rest) = self.rest.take() {
            return Some(rest);
        }
        if self.is_over() {
            return None;
        }
        let piece = match self.lead.next() {
            Some(piece) => piece,
            None => {
                if self.sentence.as_slice().is_empty() {
                    self.next_sentence();
                }
                self.sentence.next()?
            }
        };
        self.given = self.given.saturating_add(1);
        // Words bring the space before them; the very first has none.
        Some(if self.given == 1 { piece.trim_start().to_owned() } else { piece })
    }
}

/// The words of a text, each with a space before it.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| format!(" {word}")).collect()
}

/// A text that is no prose (JSON, arguments) in pieces of a few characters.
pub(crate) fn pieces(text: &str, size: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut piece = String::new();
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % size.max(1) == 0 {
            all.push(std::mem::take(&mut piece));
        }
        piece.push(c);
    }
    if !piece.is_empty() {
        all.push(piece);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn generator(seed: u64, language: Language, chunks: Option<u64>) -> TextGenerator {
        TextGenerator::new(Seed::new(seed), language, "", chunks)
    }

    #[test]
    fn a_text_is_readable_and_ends_with_a_sentence() {
        for seed in 0..50 {
            let text: Vec<String> = generator(seed, Language::English, None).collect();
            assert!((42..70).contains(&text.len()), "{}", text.len());
            let text = text.concat();
            assert!(text.ends_with('.') && !text.contains("  ") && !text.starts_with(' '), "{text}");
            let text: String = generator(seed, Language::Japanese, None).collect();
            assert!(text.ends_with('。') && !text.contains(['|', ' ']), "{text}");
        }
    }

    #[test]
    fn a_longer_text_begins_with_the_shorter_one() {
        let long: String = generator(3, Language::English, Some(1000)).collect();
        let usual: String = generator(3, Language::English, None).collect();
        let short: String = generator(3, Language::English, Some(5)).collect();
        assert!(long.starts_with(&usual) && usual.starts_with(&short));
        assert_eq!(generator(3, Language::English, Some(1000)).count(), 1000);
        assert_eq!(generator(3, Language::English, Some(0)).count(), 0);
    }

    proptest! {
        #[test]
        fn what_follows_given_words_completes_them(seed in any::<u64>(), at in 0_usize..400, japanese in any::<bool>()) {
            let language = if japanese { Language::Japanese } else { Language::English };
            let whole: String = generator(seed, language, None).collect();
            let at = whole.floor_char_boundary(at.min(whole.len()));
            let rest: String = generator(seed, language, None).after(&whole[..at]).unwrap().collect();
            prop_assert_eq!(format!("{}{rest}", &whole[..at]), whole);
        }
    }

    #[test]
    fn words_of_another_text_are_not_continued() {
        assert!(generator(3, Language::English, None).after("Something else").is_none());
        let whole: String = generator(3, Language::English, None).collect();
        assert!(generator(3, Language::English, None).after(&format!("{whole} more")).is_none());
    }
}
