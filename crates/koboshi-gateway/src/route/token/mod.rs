//! Bearer tokens that expire: fetched when first needed, and from then on before they expire.
//!
//! A request uses the current token and waits only where there is none: the very first time, and after the provider has refused a token. The
//! first fetch leaves a task on its core that fetches the next token in time. Of many requests that need one at once, one fetches and the others
//! share its token or its fault. A fetch that fails in the background is tried again with growing pauses, and the current token
//! is used to its end. A plan that no longer has a token ends its task.

pub(crate) mod account;
pub(crate) mod command;

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::redact::Redactor;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::http::upstream::FormClient;
use crate::observe::log::{Level, Log};
use crate::route::credential::bearer;
use account::Account;
use command::Command;

/// After this long a token without a stated lifetime is fetched again.
const UNSTATED: Duration = Duration::from_secs(5 * 60);
/// How long before its end, at most, the next one is fetched.
const RENEW_AHEAD: Duration = Duration::from_secs(5 * 60);
/// How long before its end, at most, a token is no longer sent.
const MARGIN: Duration = Duration::from_secs(20);
/// A younger token has not expired: it is refused for another reason.
const FRESH_TOKEN_AGE: Duration = Duration::from_secs(30);
/// Pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Longer tokens and answers are refused.
const MAX_BYTES: usize = 64 * 1024;
/// How long a fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Where tokens come from.
pub(crate) enum Source {
    /// A service account of Google.
    Account(Account),
    /// A program that prints them.
    Command(Command),
    #[cfg(test)]
    Scripted(tests::Script),
}

impl Source {
    /// Identifies it, without revealing its secrets.
    fn id(&self) -> &str {
        match self {
            Self::Account(account) => account.id(),
            Self::Command(command) => command.id(),
            #[cfg(test)]
            Self::Scripted(_) => "scripted",
        }
    }
}

/// A token as the source returned it.
#[derive(Debug)]
pub(crate) struct Grant {
    token: String,
    lasts: Option<Duration>,
}

/// The answer of a token endpoint; commands may print the same.
#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    expires_in: Option<serde_json::Value>,
}

impl Grant {
    /// Reads the JSON of a token endpoint.
    fn of_json(text: &[u8]) -> Option<Self> {
        let answer: Answer = serde_json::from_slice(text).ok()?;
        // Some endpoints write the number as text.
        let seconds = answer.expires_in.and_then(|seconds| match seconds {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        });
        let lasts = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Some(Self { token: answer.access_token.filter(|token| is_token(token))?, lasts })
    }
}

/// Whether a text can be a token: one word that fits into a header.
fn is_token(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A token that can be sent.
pub(crate) struct IssuedToken {
    bearer: HeaderValue,
    at: Instant,
    /// When the next one is fetched.
    renewal: Instant,
    /// When this one is no longer sent.
    end: Instant,
    /// The provider says that it has expired.
    refused: AtomicBool,
}

impl IssuedToken {
    fn of(grant: &Grant, now: Instant) -> Option<Self> {
        let ahead = |lasts: Duration| lasts.saturating_sub(RENEW_AHEAD.min(lasts / 5));
        // Without a stated end, the provider's refusal shows the end.
        let (renewal, end) = match grant.lasts {
            Some(lasts) => (ahead(lasts), Some(lasts.saturating_sub(MARGIN.min(lasts / 10)))),
            None => (UNSTATED, None),
        };
        let after = |length: Duration| now.checked_add(length).unwrap_or(now + UNSTATED);
        Some(Self {
            bearer: bearer(&grant.token)?,
            at: now,
            // A token that has expired on arrival must not be fetched again without a pause.
            renewal: after(renewal.max(FIRST_PAUSE)),
            end: end.map_or_else(|| now + Duration::from_secs(365 * 24 * 3600), after),
            refused: AtomicBool::new(false),
        })
    }

    /// The value of `Authorization`.
    pub(crate) fn bearer(&self) -> &HeaderValue {
        &self.bearer
    }

    fn is_usable(&self) -> bool {
        !self.refused.load(Ordering::Relaxed) && Instant::now() < self.end
    }
}

/// The token of a provider, shared by all cores.
pub(crate) struct Token {
    /// The provider's name, for the log.
    provider: Arc<str>,
    source: Source,
    current: ArcSwapOption<IssuedToken>,
    /// Held while a token is fetched.
    fetch_lock: tokio::sync::Mutex<()>,
    /// How the last fetch failed, and when.
    failed: Mutex<Option<(Instant, Box<Fault>)>>,
    /// Whether a task fetches the next one in time.
    is_kept: AtomicBool,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.provider)
    }
}

impl Token {
    pub(crate) fn new(provider: Arc<str>, source: Source) -> Arc<Self> {
        Arc::new(Self {
            provider,
            source,
            current: ArcSwapOption::empty(),
            fetch_lock: tokio::sync::Mutex::new(()),
            failed: Mutex::default(),
            is_kept: AtomicBool::new(false),
        })
    }

    /// Whether it comes from the same source: then a reload keeps it.
    pub(crate) fn is_from(&self, source: &Source) -> bool {
        self.source.id() == source.id()
    }

    /// Identifies it, without revealing its secrets.
    pub(crate) fn id(&self) -> &str {
        self.source.id()
    }

    /// The token that can be sent now, if there is one.
    pub(crate) fn ready(&self) -> Option<Arc<IssuedToken>> {
        self.current.load_full().filter(|issued| issued.is_usable())
    }

    /// A token, fetched if need be.
    pub(crate) async fn get(
        self: &Arc<Self>,
        form_client: &Rc<FormClient>,
        log: &Log,
    ) -> Result<Arc<IssuedToken>, Box<Fault>> {
        let asked = Instant::now();
        let _lock = self.fetch_lock.lock().await;
        if let Some(issued) = self.ready() {
            return Ok(issued);
        }
        // A caller that waited shares the failure of the fetch before, and does not fetch again.
        if let Some((at, fault)) = &*self.failed.lock().unwrap_or_else(PoisonError::into_inner)
            && *at >= asked
        {
            return Err(fault.clone());
        }
        let issued = self.fetch(form_client).await?;
        if !self.is_kept.swap(true, Ordering::Relaxed) {
            tokio::task::spawn_local(keep(Arc::downgrade(self), Rc::clone(form_client), log.clone()));
        }
        Ok(issued)
    }

    /// Fetches a token. The caller holds the lock.
    async fn fetch(&self, form_client: &FormClient) -> Result<Arc<IssuedToken>, Box<Fault>> {
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.ask(form_client)).await;
        let grant = fetched.unwrap_or_else(|_| Err(fault(Kind::Timeout, "no token came in time")));
        let issued = grant.and_then(|grant| {
            // It was issued earlier than now, but the difference is less than the margin.
            IssuedToken::of(&grant, Instant::now())
                .ok_or_else(|| fault(Kind::Unauthorized, "what came is no token"))
        });
        match issued {
            Ok(issued) => {
                let issued = Arc::new(issued);
                self.current.store(Some(Arc::clone(&issued)));
                Ok(issued)
            }
            Err(fault) => {
                let failed = (Instant::now(), fault.clone());
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
                Err(fault)
            }
        }
    }

    async fn ask(&self, form_client: &FormClient) -> Result<Grant, Box<Fault>> {
        match &self.source {
            Source::Account(account) => account.ask(form_client).await,
            Source::Command(command) => command.ask().await,
            #[cfg(test)]
            Source::Scripted(script) => script.ask().await,
        }
    }

    /// Judges a refused request that was sent with this token. If the token is at fault, the next request gets another one, and the
    /// returned fault says so. A refused credential is the token's fault unless it is a fresh one.
    pub(crate) fn judge(&self, issued: &Arc<IssuedToken>, fault: Box<Fault>) -> Box<Fault> {
        let is_current = self.current.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, issued));
        let is_old = !is_current || issued.at.elapsed() >= FRESH_TOKEN_AGE;
        let refused = fault.kind == Kind::Unauthorized && fault.status == Some(401);
        if fault.kind != Kind::TokenExpired && !(refused && is_old) {
            return fault;
        }
        issued.refused.store(true, Ordering::Relaxed);
        if fault.kind == Kind::TokenExpired {
            return fault;
        }
        let mut expired = Box::new(Fault::of(Kind::TokenExpired, "gateway.token"));
        (expired.status, expired.detail) = (fault.status, fault.detail);
        expired
    }
}

/// Fetches the next token before the current one expires, while a plan uses the token.
async fn keep(token: Weak<Token>, form_client: Rc<FormClient>, log: Log) {
    let mut pause = FIRST_PAUSE;
    let mut next = None;
    loop {
        let Some(known) = token.upgrade() else { return };
        let renewal = known.current.load().as_ref().map(|issued| issued.renewal);
        drop(known);
        let until = next.take().or(renewal).unwrap_or_else(|| Instant::now() + pause);
        sleep_until(until).await;
        let Some(known) = token.upgrade() else { return };
        let _lock = known.fetch_lock.lock().await;
        // A request may have fetched one meanwhile.
        if known.current.load().as_ref().is_some_and(|issued| issued.renewal > Instant::now()) {
            continue;
        }
        match known.fetch(&form_client).await {
            Ok(_) => pause = FIRST_PAUSE,
            Err(fault) => {
                let facts = json!({"provider": &*known.provider, "why": fault.detail});
                log.line(Level::Warn, "the next token could not be fetched; it is tried again", &facts);
                next = Some(Instant::now() + pause);
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
}

/// A fault of fetching a token.
fn fault(kind: Kind, detail: &str) -> Box<Fault> {
    let mut fault = Box::new(Fault::of(kind, "gateway.token"));
    fault.sub = (kind == Kind::TokenExpired).then_some(Sub::Token);
    fault.detail = Redactor::new().excerpt(detail, 200);
    fault
}

#[cfg(test)]
mod tests;
