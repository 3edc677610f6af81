//! One request from beginning to end, as far as it is told to others: its name, its language, what was tried.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::ACCEPT_LANGUAGE;
use jiff::Timestamp;
use koboshi::fault::Sub;
use koboshi::gate::Tenant;
use koboshi::time::Moment;
use koboshi_config::config::Language;
use koboshi_report::phrase::Lang;
use koboshi_store::{Clock, SystemClock};

use crate::http::upstream::Sends;
use crate::observe::names;
use crate::shared::program::Program;
use crate::shared::trace::Trace;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::out::hex;

/// The longest request id of a client that is echoed.
const LONGEST_ID: usize = 128;

/// What is known of a request before anybody is asked.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// The client's id, or one of ours.
    pub(crate) id: RequestId,
    pub(crate) tenant: Tenant,
    pub(crate) lang: Lang,
    pub(crate) began: Moment,
    pub(crate) wall: Timestamp,
    /// Nothing is tried after this.
    pub(crate) deadline: Moment,
    /// The client set that deadline itself.
    pub(crate) is_clients_deadline: bool,
    /// What is told of it to a collector, where one is set.
    pub(crate) trace: Trace,
    /// What the client speaks.
    pub(crate) dialect: Dialect,
    /// Which interface it asks, as the vendor calls it.
    pub(crate) method: &'static str,
    /// What it is, where that matters.
    pub(crate) program: Program,
    /// The client is on this machine.
    pub(crate) is_local: bool,
    /// A stream is to be one JSON list, as Gemini's clients may want it.
    pub(crate) list: bool,
    /// What a client that speaks Anthropic's dialect wants of its newer parts: without it they are refused there.
    pub(crate) betas: Option<HeaderValue>,
    /// How often it was really sent.
    pub(crate) sends: Sends,
    /// How many attempts were made, the running one included: a head may be written at any time.
    pub(crate) attempts: Cell<u32>,
}

impl RequestContext {
    /// One more attempt begins.
    pub(crate) fn attempt(&self) {
        self.attempts.set(self.attempts.get().saturating_add(1));
    }

    /// Why a request failed that reached its deadline.
    pub(crate) fn deadline_sub(&self) -> Sub {
        if self.is_clients_deadline { Sub::Deadline } else { Sub::Total }
    }

    /// What a clock on the wall shows at this moment, if it is soon after the request's beginning.
    pub(crate) fn wall_at(&self, moment: Moment) -> Timestamp {
        self.wall.checked_add(moment.since(self.began)).unwrap_or(self.wall)
    }
}

/// The name of a request: fit for a header, for a journal and for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The client's own, if it is fit to be echoed.
    pub(crate) fn of_client(headers: &Fields) -> Option<Self> {
        Self::of(headers.get(&names::REQUEST_ID)?)
    }

    /// A name, if it is a harmless one.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let fit = (1..=LONGEST_ID).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
        // Copied: a part of the client's head would keep all of it.
        HeaderValue::from_bytes(name).ok().filter(|_| fit).map(Self)
    }

    fn unknown() -> Self {
        Self(HeaderValue::from_static("kbs"))
    }

    /// As a header.
    pub(crate) fn as_header(&self) -> &HeaderValue {
        &self.0
    }
}

impl Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// A name that no other request of this process has, and hardly one of another: its start, its number, and a count.
pub(crate) fn own_id() -> RequestId {
    static PROCESS: OnceLock<String> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS
        .get_or_init(|| format!("kbs-{:x}-{:x}", SystemClock.wall().as_millisecond(), std::process::id()));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let digits = count.checked_ilog2().unwrap_or_default() / 4 + 1;
    // Just as long as it gets: then it becomes a header without another copy.
    let mut name = Vec::with_capacity(process.len() + 1 + usize::try_from(digits).unwrap_or_default());
    name.extend_from_slice(process.as_bytes());
    name.push(b'-');
    hex(&mut name, count);
    HeaderValue::from_maybe_shared(Bytes::from(name)).map_or_else(|_| RequestId::unknown(), RequestId)
}

/// The newer parts of Anthropic's dialect that a client uses.
pub(crate) fn betas(headers: &Fields) -> Option<HeaderValue> {
    // Copied: a part of the client's head would keep all of it.
    HeaderValue::from_str(headers.text(&names::ANTHROPIC_BETA)?).ok()
}

/// How long the client wants to wait: `x-koboshi-deadline: 30s`, `30` or `1500ms`; none where it does not say so.
///
/// # Errors
/// The header is no length of time above zero.
pub(crate) fn client_deadline(headers: &Fields) -> Result<Option<Duration>, BadDeadline> {
    let Some(value) = headers.get(&names::DEADLINE) else { return Ok(None) };
    let text = std::str::from_utf8(value).map_err(|_| BadDeadline)?;
    duration(text.trim()).map(Some).ok_or(BadDeadline)
}

/// `x-koboshi-deadline` cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadDeadline;

fn duration(text: &str) -> Option<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let with_unit = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let (number, scale) = with_unit.unwrap_or((text, 1.0));
    let seconds: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds * scale).ok().filter(|length| !length.is_zero())
}

/// The language of texts for people: what the client prefers, else what the config says, else English.
pub(crate) fn language(headers: &Fields, configured: Option<Language>) -> Lang {
    let asked = headers.text(ACCEPT_LANGUAGE).and_then(preferred);
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

    fn headers(name: &str, value: &str) -> Fields {
        Fields::of([(name, value.as_bytes())])
    }

    #[test]
    fn names_of_ours_count_in_hexadecimal() {
        let count = |id: &RequestId| u64::from_str_radix(id.rsplit('-').next().unwrap(), 16).unwrap();
        let mut last = count(&own_id());
        for _ in 0..300 {
            let next = own_id();
            assert!(count(&next) > last && next.starts_with("kbs-"), "{next}");
            last = count(&next);
        }
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
        assert_eq!(language(&Fields::default(), None), Lang::En);
    }

    #[test]
    fn deadlines_have_units() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("30", Some(30_000)),
            ("1500ms", Some(1500)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("0", None),
            ("-1", None),
            ("soon", None),
            ("inf", None),
        ] {
            let length = client_deadline(&headers("x-koboshi-deadline", text));
            let length = length.map(|length| length.map(|length| length.as_millis()));
            assert_eq!(length, millis.map(Some).ok_or(BadDeadline), "{text}");
        }
        assert_eq!(client_deadline(&headers("x-request-id", "req-1")), Ok(None));
    }

    #[test]
    fn ids_of_our_own_are_all_different() {
        let ids: std::collections::HashSet<String> = (0..1000).map(|_| own_id().to_string()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.starts_with("kbs-") && id.len() < 50), "{ids:?}");
    }

    #[test]
    fn ids_are_echoed_only_if_they_are_harmless() {
        let id = |text: &str| RequestId::of_client(&headers("x-request-id", text));
        assert_eq!(id("req-1").as_deref(), Some("req-1"));
        assert_eq!(id("a b"), None);
        assert_eq!(id(&"x".repeat(200)), None);
    }
}
