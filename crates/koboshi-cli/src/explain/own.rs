//! The sentences of a Koboshi gateway's own error answer.
//!
//! The gateway may say more than the kind of a fault does ("nothing is served at this path"), so its sentences are shown as they
//! are, where they are in the reader's language. What decided is the classifier's business; this only reads words.

use koboshi::redact::Redactor;
use koboshi_report::phrase::Lang;
use serde_json::Value;

/// More than any of its sentences has.
const LONGEST: usize = 600;

/// Message and suggestion of the answer, if they are in this language.
pub(super) fn words(text: &str, lang: Lang) -> Option<(String, String)> {
    let object = object(text)?;
    let field = |name: &str| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if field("lang") != Some(lang.name()) {
        return None;
    }
    let fit = |text: &str| -> String {
        Redactor::new().excerpt(text, LONGEST).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    Some((fit(field("message")?), fit(field("suggestion")?)))
}

/// The `koboshi` object, in whatever it is wrapped. The name may stand elsewhere as a value.
fn object(text: &str) -> Option<Value> {
    text.match_indices("\"koboshi\"").take(8).find_map(|(at, name)| {
        let rest = text.get(at + name.len()..)?.trim_start().strip_prefix(':')?;
        let object = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
        object.is_object().then_some(object)
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
