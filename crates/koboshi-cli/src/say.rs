//! Phrases of the commands about the config, in the reader's language.

use koboshi_config::config::Language;
use koboshi_report::phrase::{Lang, Phrases};

use crate::Failure;

/// Says things in one language.
pub(crate) struct Say {
    phrases: Phrases,
    pub(crate) lang: Lang,
}

impl Say {
    pub(crate) fn new(lang: Lang) -> Result<Self, Failure> {
        let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { phrases, lang })
    }

    /// The phrase with this id.
    pub(crate) fn text(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }

    /// The same language, as the config calls it.
    pub(crate) fn language(&self) -> Language {
        match self.lang {
            Lang::En => Language::En,
            Lang::Ja => Language::Ja,
        }
    }
}
