//! What is known of one request from beginning to end: its id, its language, its attempts.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
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
use crate::shared::notice::{Notice, Notices};
use crate::shared::program::Program;
use crate::shared::spend::Payer;
use crate::shared::trace::Trace;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::out::hex;

/// Longer request ids of clients are not echoed.
const MAX_ID: usize = 128;

/// What is shown for a request without a route.
static NO_ROUTE: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

/// What is known of a request before a target is asked.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// The client's id, or one of ours.
    pub(crate) id: RequestId,
    pub(crate) tenant: Tenant,
    /// The name of the client's key: it pays.
    pub(crate) key: Arc<str>,
    pub(crate) lang: Lang,
    pub(crate) began: Moment,
    pub(crate) wall: Timestamp,
    /// No attempt begins after this.
    pub(crate) deadline: Moment,
    /// The client set that deadline itself.
    pub(crate) is_clients_deadline: bool,
    /// The agent that asks, if it says so; a claim, which only the journal repeats.
    pub(crate) agent: Option<Arc<str>>,
    /// Its trace, where a collector is configured.
    pub(crate) trace: Trace,
    /// The client's dialect.
    pub(crate) dialect: Dialect,
    /// The endpoint, as the vendor calls it.
    pub(crate) method: &'static str,
    /// The client program, where that matters.
    pub(crate) program: Program,
    /// The client is on this machine.
    pub(crate) is_local: bool,
    /// Whether a stream is to be one JSON list, as Gemini's clients may want it.
    pub(crate) list: bool,
    /// The beta features that a client of Anthropic's dialect names: without them Anthropic refuses their fields.
    pub(crate) betas: Option<HeaderValue>,
    /// How often it was really sent.
    pub(crate) sends: Sends,
    /// How many attempts were made, the running one included: a head may be written at any time.
    pub(crate) attempts: Cell<u32>,
    /// The route that answers, as the config names it; empty where none does.
    pub(crate) route: OnceCell<Arc<str>>,
    /// Whether a lesser answer is being asked for.
    pub(crate) is_lesser: Cell<bool>,
    /// Where a client gets notices for which HTTP has no place.
    pub(crate) notices: Option<Arc<Notices>>,
}

impl RequestContext {
    /// For a request of the gateway's own, which no client waits for.
    pub(crate) fn of_own(
        (tenant, key): (Tenant, Arc<str>),
        method: &'static str,
        (began, wall): (Moment, Timestamp),
        deadline: Moment,
    ) -> Self {
        Self {
            id: new_request_id(),
            tenant,
            key,
            lang: Lang::En,
            began,
            wall,
            deadline,
            is_clients_deadline: false,
            agent: None,
            trace: Trace::default(),
            dialect: Dialect::Chat,
            method,
            program: Program::default(),
            is_local: true,
            list: false,
            betas: None,
            sends: Sends::default(),
            attempts: Cell::default(),
            route: OnceCell::new(),
            is_lesser: Cell::default(),
            notices: None,
        }
    }

    /// Counts an attempt that begins.
    pub(crate) fn attempt(&self) {
        self.attempts.set(self.attempts.get().saturating_add(1));
    }

    /// On whose account the next attempt is made.
    pub(crate) fn payer(&self) -> Payer {
        Payer {
            key: Arc::clone(&self.key),
            route: self.route.get().cloned().unwrap_or_else(|| Arc::clone(&NO_ROUTE)),
            agent: self.agent.clone(),
            is_lesser: self.is_lesser.get(),
        }
    }

    /// Sends a notice to a client that gets notices.
    pub(crate) fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(notices) = &self.notices {
            notices.add(notice());
        }
    }

    /// Whether the client can begin an answer again.
    pub(crate) fn can_rewind(&self) -> bool {
        self.notices.as_ref().is_some_and(|notices| notices.can_rewind)
    }

    /// The sub-kind of a request that reached its deadline.
    pub(crate) fn deadline_sub(&self) -> Sub {
        if self.is_clients_deadline { Sub::Deadline } else { Sub::Total }
    }

    /// The wall time at this moment, which must be soon after the request's beginning.
    pub(crate) fn wall_at(&self, moment: Moment) -> Timestamp {
        self.wall.checked_add(moment.since(self.began)).unwrap_or(self.wall)
    }
}

/// The id of a request: fit for a header, for a journal and for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The client's own, if it is fit to be echoed.
    pub(crate) fn of_client(headers: &Fields) -> Option<Self> {
        Self::of(headers.get(&names::REQUEST_ID)?)
    }

    /// An id, if it is harmless.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let fit = (1..=MAX_ID).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
        // Copied: a slice would keep the client's whole head in memory.
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

/// An id that no other request of this process has, and hardly one of another: the process's start and number, and a count.
pub(crate) fn new_request_id() -> RequestId {
    static PROCESS: OnceLock<String> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS
        .get_or_init(|| format!("kbs-{:x}-{:x}", SystemClock.wall().as_millisecond(), std::process::id()));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let digits = count.checked_ilog2().unwrap_or_default() / 4 + 1;
    // The exact capacity, so that it becomes a header without another copy.
    let mut name = Vec::with_capacity(process.len() + 1 + usize::try_from(digits).unwrap_or_default());
    name.extend_from_slice(process.as_bytes());
    name.push(b'-');
    hex(&mut name, count);
    HeaderValue::from_maybe_shared(Bytes::from(name)).map_or_else(|_| RequestId::unknown(), RequestId)
}

/// The agent that asks: `name/project`, as a supervisor lets it say.
pub(crate) fn agent(headers: &Fields) -> Option<Arc<str>> {
    let name = headers.text(&names::AGENT)?.trim();
    let is_fit = (1..=MAX_ID).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then(|| name.into())
}

/// The beta features of Anthropic's API that a client names.
pub(crate) fn betas(headers: &Fields) -> Option<HeaderValue> {
    // Copied: a slice would keep the client's whole head in memory.
    HeaderValue::from_str(headers.text(&names::ANTHROPIC_BETA)?).ok()
}

/// How long the client is willing to wait: `x-koboshi-deadline: 30s`, `30` or `1500ms`; none without that header.
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

/// The language of texts for people: the client's preference, else the config's, else English.
pub(crate) fn language(headers: &Fields, configured: Option<Language>) -> Lang {
    let asked = headers.text(ACCEPT_LANGUAGE).and_then(preferred);
    asked.unwrap_or(match configured {
        Some(Language::Ja) => Lang::Ja,
        _ => Lang::En,
    })
}

/// The best of the supported languages, by the client's weights.
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
        let mut last = count(&new_request_id());
        for _ in 0..300 {
            let next = new_request_id();
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
        let ids: std::collections::HashSet<String> =
            (0..1000).map(|_| new_request_id().to_string()).collect();
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
