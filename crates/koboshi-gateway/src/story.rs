//! One request from beginning to end, as far as it is told to others: its name, its language, what was tried.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;
use koboshi::gate::Tenant;
use koboshi::time::Moment;
use koboshi_config::config::Language;
use koboshi_report::phrase::Lang;

use crate::trace::Trace;

/// The longest request id of a client that is echoed.
const LONGEST_ID: usize = 128;

/// What is known of a request before anybody is asked.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    /// The client's id, or one of ours.
    pub(crate) id: String,
    pub(crate) tenant: Tenant,
    pub(crate) lang: Lang,
    pub(crate) began: Moment,
    pub(crate) wall: Timestamp,
    /// Nothing is tried after this.
    pub(crate) deadline: Moment,
    /// What is told of it to a collector, where one is set.
    pub(crate) trace: Trace,
}

/// The client's request id, if it is fit to be echoed.
pub(crate) fn client_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let fit = (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    fit.then(|| id.to_owned())
}

/// How long the client wants to wait: `x-koboshi-deadline: 30s`, `30` or `1500ms`.
pub(crate) fn client_deadline(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("x-koboshi-deadline")?.to_str().ok()?.trim();
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds * scale).ok().filter(|length| !length.is_zero())
}

/// The language of texts for people: what the client prefers, else what the config says, else English.
pub(crate) fn language(headers: &HeaderMap, configured: Option<Language>) -> Lang {
    let asked = headers.get("accept-language").and_then(|value| value.to_str().ok()).and_then(preferred);
    asked.unwrap_or(match configured {
        Some(Language::Ja) => Lang::Ja,
        _ => Lang::En,
    })
}

/// The best of the languages that are there, by the client's weights.
fn preferred(header: &str) -> Option<Lang> {
    let mut best: Option<(f32, Lang)> = None;
    for part in header.split(',').take(20) {
        let mut pieces = part.split(';');
        let tag = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
        let weight =
            pieces.find_map(|piece| piece.trim().strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let lang = match tag.split('-').next() {
            Some("ja") => Lang::Ja,
            Some("en") => Lang::En,
            _ => continue,
        };
        if weight > 0.0 && best.is_none_or(|(known, _)| weight > known) {
            best = Some((weight, lang));
        }
    }
    best.map(|(_, lang)| lang)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn the_client_chooses_the_language() {
        for (header, lang) in [
            ("ja", Lang::Ja),
            ("ja-JP,en;q=0.5", Lang::Ja),
            ("en-US,ja;q=0.9", Lang::En),
            ("fr, ja;q=0.1", Lang::Ja),
            ("ja;q=0, en;q=0.2", Lang::En),
            ("*", Lang::Ja),
        ] {
            assert_eq!(language(&headers("accept-language", header), Some(Language::Ja)), lang, "{header}");
        }
        assert_eq!(language(&HeaderMap::new(), None), Lang::En);
    }

    #[test]
    fn deadlines_have_units() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("30", Some(30_000)),
            ("1500ms", Some(1500)),
            ("0", None),
            ("-1", None),
            ("soon", None),
            ("inf", None),
        ] {
            let length = client_deadline(&headers("x-koboshi-deadline", text));
            assert_eq!(length.map(|length| length.as_millis()), millis, "{text}");
        }
    }

    #[test]
    fn ids_are_echoed_only_if_they_are_harmless() {
        assert_eq!(client_id(&headers("x-request-id", "req-1")).as_deref(), Some("req-1"));
        assert_eq!(client_id(&headers("x-request-id", "a b")), None);
        assert_eq!(client_id(&headers("x-request-id", &"x".repeat(200))), None);
    }
}
