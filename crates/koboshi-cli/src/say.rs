//! Phrases of the commands about the config, in the reader's language.

use koboshi_config::config::Language;
use koboshi_report::phrase::{Lang, Phrases};

use crate::Failure;

/// Phrases in one language.
pub(crate) struct Say {
    phrases: Phrases,
    pub(crate) lang: Lang,
}

impl Say {
    pub(crate) fn new(lang: Lang) -> Result<Self, Failure> {
        let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { phrases, lang })
    }

    /// All phrases.
    pub(crate) fn phrases(&self) -> &Phrases {
        &self.phrases
    }

    /// The phrase with this id.
    pub(crate) fn text(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }

    /// Names, one after the other.
    pub(crate) fn list<T: AsRef<str>>(&self, names: &[T]) -> String {
        names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(self.lang.comma())
    }

    /// Why a text is no JSON. The parser has English messages only: in Japanese only the place is given, which is enough to find it.
    pub(crate) fn json_error(&self, error: &str) -> String {
        let place = error.rsplit_once(" at line ").and_then(|(_, place)| place.split_once(" column "));
        match (self.lang, place) {
            (Lang::Ja, Some((line, column))) => format!("{line} 行目の {column} 列目に誤りがあります"),
            _ => error.to_owned(),
        }
    }

    /// The same language, as the config's type.
    pub(crate) fn language(&self) -> Language {
        match self.lang {
            Lang::En => Language::En,
            Lang::Ja => Language::Ja,
        }
    }
}

/// The width in columns of a terminal: a Japanese letter takes two.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| if c >= '\u{1100}' && c != '…' { 2 } else { 1 }).sum()
}

/// The place of a store in words; `place` is the store's own name for it.
pub(crate) fn store_place(place: &str, text: impl Fn(&str, &[(&str, &str)]) -> String) -> String {
    if place == "memory" {
        return text("store-memory", &[]);
    }
    if let Some(address) = place.strip_prefix("Redis at ") {
        return text("store-redis", &[("address", address)]);
    }
    place.strip_prefix("the store file ").unwrap_or(place).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_json_is_described_in_the_readers_language() {
        let error = serde_json::from_str::<serde_json::Value>("{a").unwrap_err().to_string();
        let say = |lang| Say::new(lang).map(|say| say.json_error(&error)).unwrap_or_default();
        assert_eq!(say(Lang::En), error);
        assert_eq!(say(Lang::Ja), "1 行目の 2 列目に誤りがあります");
    }
}
