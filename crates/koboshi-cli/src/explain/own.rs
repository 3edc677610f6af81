//! The sentences of a Koboshi gateway's own error answer.
//!
//! The gateway may say more than the kind of a fault does ("nothing is served at this path"), so its sentences are shown
//! unchanged, where they are in the reader's language. The classifier decides; this module only reads texts.

use koboshi::redact::Redactor;
use koboshi_report::phrase::Lang;
use serde_json::Value;

/// Longer than any of its sentences.
const MAX_CHARS: usize = 600;
/// More such names than a stream of a real answer has.
const MAX_PLACES: usize = 4096;

/// Message and suggestion of the answer, if they are in this language.
pub(super) fn words(text: &str, lang: Lang) -> Option<(String, String)> {
    let object = object(text, lang)?;
    let field = |name: &str| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let fit = |text: &str| -> String {
        Redactor::new()
            .excerpt(text, MAX_CHARS)
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    };
    Some((fit(field("message")?), fit(field("suggestion")?)))
}

/// The first `koboshi` object with sentences in this language, at any depth. The name may also occur as a value, and events of a stream have
/// marks under it.
fn object(text: &str, lang: Lang) -> Option<Value> {
    text.match_indices("\"koboshi\"").take(MAX_PLACES).find_map(|(at, name)| {
        let rest = text.get(at + name.len()..)?.trim_start().strip_prefix(':')?;
        let object = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
        (object.get("lang").and_then(Value::as_str) == Some(lang.name())).then_some(object)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_taken_in_the_readers_language_only() {
        let text = "HTTP/1.1 404 Not Found\r\n\r\n{\"error\":{\"koboshi\": {\"lang\":\"en\",\"message\":\"M.\",\"suggestion\":\"S.\"}}}";
        assert_eq!(words(text, Lang::En), Some(("M.".to_owned(), "S.".to_owned())));
        assert_eq!(words(text, Lang::Ja), None);
        for other in ["", "\"koboshi\"", "\"koboshi\": 5", "\"koboshi\": {\"lang\":\"en\"}", "\"koboshi\": {"]
        {
            assert_eq!(words(other, Lang::En), None, "{other}");
        }
    }
}
