//! Prepared answers from a file: by mode and screen, in the user's language, with variables filled in.
//!
//! ```yaml
//! answers:
//!   - mode: context_help
//!     screen: studio/modeler
//!     text: { ja: "…", en: "…" }
//!   - text: { en: "The assistant is away, {{model}} could not be reached." }
//! ```
//!
//! `notice: { ja: "…", en: "…" }` beside `answers` is added to each, in place of the default one.
//!
//! The first matching entry is used; one without mode and screen always matches, so it comes last. Mode and screen come from the request's
//! `metadata` (`mode`, `screenId` or `screen_id`) or from the headers `x-koboshi-mode` and `x-koboshi-screen`.

use http::HeaderName;
use koboshi_report::phrase::Lang;
use koboshi_wire::any::Request;
use serde::Deserialize;

use crate::observe::names;
use koboshi_wire::http1::Fields;

/// Longer files are refused.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The prepared answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answers {
    #[serde(default)]
    notice: Texts,
    #[serde(default)]
    answers: Vec<PreparedAnswer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreparedAnswer {
    mode: Option<String>,
    screen: Option<String>,
    text: Texts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    ja: Option<String>,
    en: Option<String>,
}

impl Texts {
    /// The text in this language, else in the other.
    fn get(&self, lang: Lang) -> Option<&String> {
        match lang {
            Lang::Ja => self.ja.as_ref().or(self.en.as_ref()),
            Lang::En => self.en.as_ref().or(self.ja.as_ref()),
        }
    }
}

/// Why a file of prepared answers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswersError {
    #[error("the file is longer than {MAX_FILE_BYTES} bytes")]
    Long,
    #[error("{0}")]
    Unreadable(String),
    #[error("answer {0}: it has no text in any language")]
    Empty(usize),
}

/// Mode and screen from a request's headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    mode: Option<String>,
    screen: Option<String>,
}

impl Hints {
    pub(crate) fn of(headers: &Fields) -> Self {
        let text = |name: &HeaderName| headers.text(name).map(str::to_owned);
        Self { mode: text(&names::MODE), screen: text(&names::SCREEN) }
    }
}

impl Answers {
    /// Parses the text of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, AnswersError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(AnswersError::Long);
        }
        let answers: Self =
            serde_saphyr::from_str(text).map_err(|error| AnswersError::Unreadable(error.to_string()))?;
        let empty = |prepared: &PreparedAnswer| prepared.text.ja.is_none() && prepared.text.en.is_none();
        match answers.answers.iter().position(empty) {
            Some(at) => Err(AnswersError::Empty(at + 1)),
            None => Ok(answers),
        }
    }

    /// The notice for every answer, if the file has one.
    pub(crate) fn notice(&self, lang: Lang) -> Option<&str> {
        self.notice.get(lang).map(String::as_str)
    }

    /// The answer for a request.
    pub(crate) fn find(&self, hints: &Hints, request: &Request<'_>, lang: Lang) -> AnswerLookup {
        if self.answers.is_empty() {
            return AnswerLookup::NoFile;
        }
        let mode = hints.mode.clone().or_else(|| request.metadata("mode"));
        let screen = hints
            .screen
            .clone()
            .or_else(|| request.metadata("screenId"))
            .or_else(|| request.metadata("screen_id"));
        let agrees = |wanted: &Option<String>, said: &Option<String>| wanted.is_none() || same(wanted, said);
        let fits =
            |prepared: &&PreparedAnswer| agrees(&prepared.mode, &mode) && agrees(&prepared.screen, &screen);
        match self.answers.iter().find(fits).and_then(|prepared| prepared.text.get(lang)) {
            Some(text) => AnswerLookup::Text(
                text.replace("{{model}}", request.model())
                    .replace("{{mode}}", mode.as_deref().unwrap_or_default())
                    .replace("{{screen}}", screen.as_deref().unwrap_or_default()),
            ),
            None => AnswerLookup::Missing { mode, screen },
        }
    }
}

/// The prepared answer for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerLookup {
    /// There is no file, or nothing in it.
    NoFile,
    /// This text.
    Text(String),
    /// Texts, but none for this mode and screen.
    Missing { mode: Option<String>, screen: Option<String> },
}

impl AnswerLookup {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// `CONTEXT_HELP` and `context_help` are one mode.
fn same(wanted: &Option<String>, said: &Option<String>) -> bool {
    matches!((wanted, said), (Some(wanted), Some(said)) if wanted.eq_ignore_ascii_case(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_wire::Dialect;

    const FILE: &str = "answers:\n  - mode: context_help\n    screen: studio/modeler\n    text: {ja: 設計画面です, en: The modeler}\n  - text: {en: 'No answer from {{model}}.'}\n";

    fn find(metadata: &str, lang: Lang) -> Option<String> {
        let body = format!(r#"{{"model":"m1","messages":[],"metadata":{metadata}}}"#);
        let request = Request::parse(Dialect::Chat, body.as_bytes(), None).unwrap();
        Answers::parse(FILE).unwrap().find(&Hints::default(), &request, lang).text().map(str::to_owned)
    }

    #[test]
    fn mode_and_screen_choose_and_the_last_one_always_matches() {
        let modeler = r#"{"mode":"CONTEXT_HELP","screenId":"studio/modeler"}"#;
        assert_eq!(find(modeler, Lang::Ja).as_deref(), Some("設計画面です"));
        assert_eq!(find(modeler, Lang::En).as_deref(), Some("The modeler"));
        assert_eq!(
            find("{}", Lang::Ja).as_deref(),
            Some("No answer from m1."),
            "the other language before none"
        );
    }

    #[test]
    fn the_shipped_example_says_what_the_seeds_say() {
        let shipped = Answers::parse(include_str!("../../../../examples/answers.yaml")).unwrap();
        let find = |metadata: &str, lang| {
            let body = format!(r#"{{"model":"m1","messages":[],"metadata":{metadata}}}"#);
            shipped
                .find(&Hints::default(), &Request::parse(Dialect::Chat, body.as_bytes(), None).unwrap(), lang)
                .text()
                .unwrap()
                .to_owned()
        };
        let modeler = find(r#"{"mode":"CONTEXT_HELP","screenId":"studio/modeler"}"#, Lang::Ja);
        assert!(modeler.starts_with("## Modeler 画面について\n\nこの画面では、エンティティ"), "{modeler}");
        let forms = find(r#"{"mode":"context_help","screenId":"studio/form-designer"}"#, Lang::Ja);
        assert!(
            forms.starts_with("## Form Designer 画面について") && forms.ends_with("フィールド表示制御\n"),
            "{forms}"
        );
        // The others are the phrases of the same seeds, word for word.
        let phrases = koboshi_report::phrase::Phrases::new().unwrap();
        for lang in [Lang::Ja, Lang::En] {
            assert_eq!(Some(find("{}", lang)), phrases.text(lang, "static-unavailable", &[]));
            assert_eq!(shipped.notice(lang).map(str::to_owned), phrases.text(lang, "static-notice", &[]));
        }
    }

    #[test]
    fn the_error_of_a_wrong_file_names_the_mistake() {
        assert!(matches!(Answers::parse("answers: [{text: {}}]"), Err(AnswersError::Empty(1))));
        let error = Answers::parse("answers:\n  - txt: {}\n").unwrap_err().to_string();
        assert!(error.contains("txt"), "{error}");
        assert_eq!(Answers::parse("answers: []").unwrap(), Answers::default());
    }
}
