//! Bearer tokens that run out: fetched when they are first needed, and from then on before they run out.
//!
//! A request takes what is there and waits only where nothing is: the very first time, and after the provider has refused a token. Whoever
//! fetches first leaves a task on its core that fetches the next one in time. Of many that need one at once, one fetches and the others
//! take what it got, or its fault. A fetch that fails in the background is tried again with growing pauses, and the token that is
//! there serves to its end. A plan that no longer has a token ends its task.

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

/// What does not say how long it lasts is fetched again after this.
const UNSTATED: Duration = Duration::from_secs(5 * 60);
/// So long before its end, at most, the next one is fetched.
const AHEAD: Duration = Duration::from_secs(5 * 60);
/// So long before its end, at most, a token is no longer sent.
const MARGIN: Duration = Duration::from_secs(20);
/// A younger token has not run out: it is refused for another reason.
const YOUNG: Duration = Duration::from_secs(30);
/// Pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// No token and no answer about one is longer.
const LONGEST: usize = 64 * 1024;
/// No fetch takes longer.
const LIMIT: Duration = Duration::from_secs(30);

/// Where tokens come from.
pub(crate) enum Source {
    /// A service account of Google's.
    Account(Account),
    /// A program that prints them.
    Command(Command),
    #[cfg(test)]
    Scripted(tests::Script),
}

impl Source {
    /// What tells it from others, and says nothing about its secrets.
    fn id(&self) -> &str {
        match self {
            Self::Account(account) => account.id(),
            Self::Command(command) => command.id(),
            #[cfg(test)]
            Self::Scripted(_) => "scripted",
        }
    }
}

/// A token as it was given.
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
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A token that can be sent.
pub(crate) struct Issued {
    bearer: HeaderValue,
    at: Instant,
    /// When the next one is fetched.
    renewal: Instant,
    /// When this one is no longer sent.
    end: Instant,
    /// The provider says that it has run out.
    refused: AtomicBool,
}

impl Issued {
    fn of(grant: &Grant, now: Instant) -> Option<Self> {
        let ahead = |lasts: Duration| lasts.saturating_sub(AHEAD.min(lasts / 5));
        // Where nobody says when it ends, the provider says so by refusing it.
        let (renewal, end) = match grant.lasts {
            Some(lasts) => (ahead(lasts), Some(lasts.saturating_sub(MARGIN.min(lasts / 10)))),
            None => (UNSTATED, None),
        };
        let after = |length: Duration| now.checked_add(length).unwrap_or(now + UNSTATED);
        Some(Self {
            bearer: bearer(&grant.token)?,
            at: now,
            // One that has run out when it comes must not be fetched without a pause.
            renewal: after(renewal.max(FIRST_PAUSE)),
            end: end.map_or_else(|| now + Duration::from_secs(365 * 24 * 3600), after),
            refused: AtomicBool::new(false),
        })
    }

    /// What stands in `Authorization`.
    pub(crate) fn bearer(&self) -> &HeaderValue {
        &self.bearer
    }

    fn is_usable(&self) -> bool {
        !self.refused.load(Ordering::Relaxed) && Instant::now() < self.end
    }
}

/// A token of a provider, whoever of all cores needs it.
pub(crate) struct Token {
    /// The provider's name, for the log.
    provider: Arc<str>,
    source: Source,
    current: ArcSwapOption<Issued>,
    /// Held by whoever fetches.
    turn: tokio::sync::Mutex<()>,
    /// How the last fetch failed, and when.
    failed: Mutex<Option<(Instant, Box<Fault>)>>,
    /// A task fetches the next one in time.
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
            turn: tokio::sync::Mutex::new(()),
            failed: Mutex::default(),
            is_kept: AtomicBool::new(false),
        })
    }

    /// Whether it comes from the same place: then a reload goes on with it.
    pub(crate) fn is_from(&self, source: &Source) -> bool {
        self.source.id() == source.id()
    }

    /// What tells it from others, and says nothing about its secrets.
    pub(crate) fn id(&self) -> &str {
        self.source.id()
    }

    /// The token that can be sent now, if one is there.
    pub(crate) fn ready(&self) -> Option<Arc<Issued>> {
        self.current.load_full().filter(|issued| issued.is_usable())
    }

    /// A token, fetched if need be.
    pub(crate) async fn get(
        self: &Arc<Self>,
        form_client: &Rc<FormClient>,
        log: &Log,
    ) -> Result<Arc<Issued>, Box<Fault>> {
        let asked = Instant::now();
        let _turn = self.turn.lock().await;
        if let Some(issued) = self.ready() {
            return Ok(issued);
        }
        // Whoever waited here shares the failure of the one before: nobody queues up for the next.
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

    /// Fetches a token. Only for who has the turn.
    async fn fetch(&self, form_client: &FormClient) -> Result<Arc<Issued>, Box<Fault>> {
        let fetched = tokio::time::timeout(LIMIT, self.ask(form_client)).await;
        let grant = fetched.unwrap_or_else(|_| Err(fault(Kind::Timeout, "no token came in time")));
        let issued = grant.and_then(|grant| {
            // It was fetched before now; what is lost by that is less than the margin.
            Issued::of(&grant, Instant::now())
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

    /// The provider refused a request that was sent with this token. If it is the token's fault, the next request gets another one, and
    /// what is returned says so. A refused credential is the token's fault unless it is a fresh one.
    pub(crate) fn judge(&self, issued: &Arc<Issued>, fault: Box<Fault>) -> Box<Fault> {
        let is_current = self.current.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, issued));
        let is_old = !is_current || issued.at.elapsed() >= YOUNG;
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

/// Fetches the next token before the one that is there runs out, for as long as anybody has the token.
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
        let _turn = known.turn.lock().await;
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
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// A fault of the way to a token.
fn fault(kind: Kind, detail: &str) -> Box<Fault> {
    let mut fault = Box::new(Fault::of(kind, "gateway.token"));
    fault.sub = (kind == Kind::TokenExpired).then_some(Sub::Token);
    fault.detail = Redactor::new().excerpt(detail, 200);
    fault
}

#[cfg(test)]
mod tests;
