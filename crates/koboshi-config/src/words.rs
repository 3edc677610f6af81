//! Texts for people, in English and in Japanese.
//!
//! Every message is written in both languages in one place: its values are known there, and neither language can be
//! forgotten. The code that shows it chooses the language. [`Words`] are fixed, a [`Text`] has values in it.

use std::fmt;
use std::ops::Deref;

use crate::config::Language;

/// A fixed text in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// English.
    pub en: &'static str,
    /// Japanese.
    pub ja: &'static str,
}

/// Short for a fixed text.
#[must_use]
pub const fn words(en: &'static str, ja: &'static str) -> Words {
    Words { en, ja }
}

impl Words {
    /// The text in a language.
    #[must_use]
    pub const fn get(self, language: Language) -> &'static str {
        match language {
            Language::En => self.en,
            Language::Ja => self.ja,
        }
    }
}

/// A text in both languages. As a string it is English.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(Box<Forms>);

/// Boxed, because results carry texts as errors and most results are none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Forms {
    en: String,
    ja: String,
}

impl Text {
    /// A text from its two forms.
    #[must_use]
    pub fn new(en: impl Into<String>, ja: impl Into<String>) -> Self {
        Self(Box::new(Forms { en: en.into(), ja: spaced(&ja.into()) }))
    }

    /// The text that `make` returns for each language.
    pub(crate) fn of(make: impl Fn(Language) -> String) -> Self {
        Self::new(make(Language::En), make(Language::Ja))
    }

    /// The text in a language.
    #[must_use]
    pub fn get(&self, language: Language) -> &str {
        match language {
            Language::En => &self.0.en,
            Language::Ja => &self.0.ja,
        }
    }

    /// The same with a change in each language.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self::new(change(&self.0.en), change(&self.0.ja))
    }
}

/// Adds a space between Latin and Japanese letters, as technical texts have it. Text between backticks is quoted and stays.
fn spaced(text: &str) -> String {
    let is_latin = |c: char| c.is_ascii_alphanumeric() || c == '`' || c == '%';
    let is_japanese = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
    let mut out = String::with_capacity(text.len() + 16);
    let (mut before, mut quoted) = (' ', false);
    for c in text.chars() {
        let meets = is_latin(before) && is_japanese(c) || is_japanese(before) && is_latin(c);
        if !quoted && meets {
            out.push(' ');
        }
        if c == '`' {
            quoted = !quoted;
        }
        out.push(c);
        before = c;
    }
    out
}

impl From<Words> for Text {
    fn from(words: Words) -> Self {
        Self::new(words.en, words.ja)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.en
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.en)
    }
}

/// A text in one of the languages, with the same values in both.
macro_rules! tr {
    ($language:expr, $en:literal, $ja:literal $(, $value:expr)* $(,)?) => {
        match $language {
            $crate::config::Language::En => format!($en $(, $value)*),
            $crate::config::Language::Ja => format!($ja $(, $value)*),
        }
    };
}

/// A text in both languages, with the same values.
macro_rules! text {
    ($en:literal, $ja:literal $(, $value:expr)* $(,)?) => {
        $crate::words::Text::of(|language| $crate::words::tr!(language, $en, $ja $(, $value)*))
    };
}

pub(crate) use {text, tr};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_and_japanese_letters_are_apart_outside_of_quotations() {
        let text = Text::new("", "`a日`は2を超え、`b`と URLにして`キーx`です（`c`）");
        assert_eq!(text.get(Language::Ja), "`a日` は 2 を超え、`b` と URL にして `キーx` です（`c`）");
    }
}
