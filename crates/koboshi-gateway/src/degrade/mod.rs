//! Lesser answers when no target of the chain can answer: a cached answer, a simpler model, a prepared text; else the error.
//!
//! Every lesser answer is marked as one, in a header and in its body (`koboshi.source`), and is never cached as a real one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi::redact::Redactor;
use koboshi_config::gateway::CacheMode;
use koboshi_store::EntryKind;
use koboshi_wire::any::{Request, answer};
use koboshi_wire::step::Usage;
use koboshi_wire::whole::{Choice, Whole};
use koboshi_wire::writer::Head;
use serde_json::{Value, json};

use crate::attempt::journey::JourneyEnd;
use crate::attempt::learn;
use crate::http::response_future::ResponseSender;
use crate::http::upstream::mark::SIMULATED;
use crate::reply;
use crate::route::answers::{AnswerLookup, Hints};
use crate::route::plan::{Backing, Plan};
use crate::route::target::Target;
use crate::shared::cache::{self, CachedAnswer};
use crate::shared::chains::Chain;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::{DegradeSource, Disclosure};
use crate::stream::machine::{Outcome, Stream};
use crate::stream::routed_request::RoutedRequest;
use crate::stream::writer::{LazyStreamWriter, answer_id};

/// How many characters of a client's mode or screen are recorded.
const MAX_NAME: usize = 100;
/// How long a request waits for the store's cache when no target can answer.
const CACHE_TIMEOUT: Duration = Duration::from_millis(250);

/// The lesser answers that one request may get.
pub(crate) struct DegradedAnswers<'l> {
    plan: &'l Plan,
    /// The cache key of the request; none where nothing of it may be cached.
    key: Option<String>,
    mode: CacheMode,
    simple: Vec<Arc<Target>>,
    prepared: AnswerLookup,
}

impl<'l> DegradedAnswers<'l> {
    pub(crate) fn of(
        core: &CoreState,
        plan: &'l Plan,
        context: &RequestContext,
        chain: &Chain,
        request: &Request<'_>,
        body: &[u8],
        hints: &Hints,
    ) -> Self {
        let route = &chain.route;
        let has_tools = request.has_tools();
        let may_keep = route.cache != CacheMode::Off
            && request.n() <= 1
            && (!has_tools || plan.config.degrade.cache_tools);
        Self {
            plan,
            key: may_keep
                .then(|| cache::key(context.tenant.name(), request.dialect().name(), request.model(), body))
                .flatten(),
            mode: route.cache,
            simple: chain.simple(&core.state),
            prepared: plan.answers.find(hints, request, context.lang),
        }
    }

    /// Whether this source may have an answer. What the cache holds is only known when it is asked.
    fn has(&self, source: DegradeSource) -> bool {
        match source {
            DegradeSource::Cache => self.key.is_some(),
            DegradeSource::Simple => !self.simple.is_empty(),
            DegradeSource::Static => self.prepared.text().is_some(),
        }
    }

    /// Whether there is a lesser answer.
    pub(crate) fn is_there(&self) -> bool {
        DegradeSource::ORDER.into_iter().any(|source| self.has(source))
    }

    /// Whether there is a lesser answer where this source has none.
    fn is_there_after(&self, tried: DegradeSource) -> bool {
        let mut behind = DegradeSource::ORDER.into_iter().skip_while(|source| *source != tried).skip(1);
        behind.any(|source| self.has(source))
    }

    /// An answer that is still fresh, where the cache may answer before a target is asked.
    pub(crate) fn fresh(&self, core: &CoreState) -> Option<CachedAnswer> {
        let key = self.key.as_ref().filter(|_| self.mode == CacheMode::Serve)?;
        let fresh = core.state.cache.fresh(key, core.state.now(), self.plan.config.degrade.cache_ttl);
        fresh.filter(|kept| self.may_send(kept))
    }

    /// Whether a cached answer may be sent. One that was made up for a demo is not sent once real providers answer.
    fn may_send(&self, kept: &CachedAnswer) -> bool {
        !kept.simulated || self.plan.backing() != Backing::Providers
    }

    /// Sends a cached answer before a target is asked.
    pub(crate) async fn send_cached(
        &self,
        core: &CoreState,
        sender: &ResponseSender,
        kept: CachedAnswer,
        context: &RequestContext,
        request: &Request<'_>,
        guard: Option<String>,
    ) {
        let facts = Disclosure { hit: true, guard, simulated: kept.simulated, ..Disclosure::default() };
        let mut source = json!({"source": DegradeSource::Cache.name(), "degraded": false, "ageSeconds": kept.age(core.state.now()).as_secs()});
        mark(&mut source, kept.simulated);
        core.state.meters.answer("cached");
        let writer = LazyStreamWriter::new(context, request, self.plan.config.serve.keep_alive);
        send_text(sender, context, request, &writer, &facts, &kept.model, &kept.text, &source, 200).await;
    }

    /// Sends a lesser answer from the first source that has one; false if none has.
    pub(crate) async fn send(
        &self,
        routed: &RoutedRequest<'_>,
        sender: &ResponseSender,
        ended: &JourneyEnd,
    ) -> bool {
        for source in DegradeSource::ORDER {
            let is_sent = match source {
                DegradeSource::Cache => self.send_stale(routed, sender, ended).await,
                DegradeSource::Simple => Box::pin(self.ask_simple(routed, sender, ended)).await,
                DegradeSource::Static => self.send_prepared(routed, sender, ended).await,
            };
            if is_sent {
                return true;
            }
        }
        false
    }

    /// Sends a cached answer that may be stale.
    async fn send_stale(
        &self,
        routed: &RoutedRequest<'_>,
        sender: &ResponseSender,
        ended: &JourneyEnd,
    ) -> bool {
        let Some(kept) = self.stale(routed.core).await else { return false };
        let mut note = note(DegradeSource::Cache, routed, ended);
        add(&mut note, "ageSeconds", kept.age(routed.core.state.now()).as_secs().into());
        mark(&mut note, kept.simulated);
        self.record(routed, DegradeSource::Cache, ended);
        routed.disclose(|facts| {
            facts.degraded = Some(DegradeSource::Cache);
            facts.simulated = kept.simulated;
        });
        send_lesser(routed, sender, (&kept.model, &kept.text), &note, 200).await;
        true
    }

    /// Sends a prepared text.
    async fn send_prepared(
        &self,
        routed: &RoutedRequest<'_>,
        sender: &ResponseSender,
        ended: &JourneyEnd,
    ) -> bool {
        let Some(text) = self.prepared.text() else {
            self.log_missing(routed);
            return false;
        };
        self.record(routed, DegradeSource::Static, ended);
        routed.disclose(|facts| {
            facts.degraded = Some(DegradeSource::Static);
            facts.simulated = false;
        });
        let lang = routed.context.lang;
        let configured = self.plan.answers.notice(lang).map(str::to_owned);
        let notice = configured
            .or_else(|| routed.core.state.phrases.text(lang, "static-notice", &[]))
            .unwrap_or_default();
        let mut note = note(DegradeSource::Static, routed, ended);
        add(&mut note, "notice", notice.into());
        let status = self.plan.config.degrade.status;
        send_lesser(routed, sender, ("static-response", text), &note, status).await;
        true
    }

    /// Asks the simpler model, once. True if the client got an answer of it, or the beginning of one and an error frame: then nothing else can
    /// be sent.
    async fn ask_simple(
        &self,
        routed: &RoutedRequest<'_>,
        sender: &ResponseSender,
        ended: &JourneyEnd,
    ) -> bool {
        if self.simple.is_empty() {
            return false;
        }
        let breakers: Vec<_> = self.simple.iter().map(|target| Arc::clone(&target.breaker)).collect();
        let mut facts = routed.facts();
        facts.degraded = Some(DegradeSource::Simple);
        let mut about = note(DegradeSource::Simple, routed, ended);
        let can_degrade = self.is_there_after(DegradeSource::Simple);
        let simple = routed.for_simple(&self.simple, &breakers, can_degrade, facts);
        routed.context.is_lesser.set(true);
        let mut journey = simple.journey();
        let outcome = if routed.request.stream() {
            Stream::new(&simple, sender).annotated(about).serve(&mut journey).await.ok()
        } else if let Ok(answered) = simple.answer(&mut journey).await {
            mark(&mut about, simple.facts.borrow().simulated);
            sender.head(reply::head(200, "application/json", routed.context, &simple.facts()));
            sender.send(answer::with_note(routed.request.dialect(), &answered.body, &about)).await;
            Some(Outcome::Whole)
        } else {
            None
        };
        // A stream that broke is a failed answer, and was counted as one.
        if outcome == Some(Outcome::Whole) {
            self.record(routed, DegradeSource::Simple, ended);
        }
        outcome.is_some()
    }

    /// Logs that the file of prepared answers has none for this request, for the author of that file.
    fn log_missing(&self, routed: &RoutedRequest<'_>) {
        let AnswerLookup::Missing { mode, screen } = &self.prepared else { return };
        let redactor = Redactor::new();
        let named = |name: &Option<String>| match name {
            Some(name) => format!("`{}`", redactor.excerpt(name, MAX_NAME)),
            None => "none".to_owned(),
        };
        let text =
            format!("degrade.answers_file has no text for mode {} and screen {}", named(mode), named(screen));
        learn::own_fault(&routed.core.state, routed.plan, Kind::TemplateNotFound, &text, routed.context);
    }

    /// Counts a lesser answer and writes it to the journal.
    fn record(&self, routed: &RoutedRequest<'_>, source: DegradeSource, ended: &JourneyEnd) {
        let (state, source) = (&routed.core.state, source.name());
        state.meters.degraded(source);
        let text = format!("{}: a lesser answer was given ({source})", routed.context.id);
        let data = json!({"source": source, "kind": ended.fault.kind.name(), "request": &*routed.context.id});
        state.note_for(routed.context, EntryKind::Remedy, "degrade", None, text, data);
    }

    /// A cached answer that may still be used. Only here is the store asked, for a moment, because no target can answer.
    async fn stale(&self, core: &CoreState) -> Option<CachedAnswer> {
        let key = self.key.clone()?;
        let config = &self.plan.config.degrade;
        let max_age = config.cache_ttl.saturating_add(config.cache_stale);
        let fresh = core.state.cache.fresh(&key, core.state.now(), max_age);
        if let Some(kept) = fresh.filter(|kept| self.may_send(kept)) {
            return Some(kept);
        }
        let (store, wall, now) = (Arc::clone(&core.state.store), core.state.wall(), core.state.now());
        let asked = core.state.cache_calls.ask(CACHE_TIMEOUT, move || store.cache_get(&key, wall));
        let found = asked.await?.ok()??;
        CachedAnswer::read(&found, wall, now).filter(|kept| kept.age(now) <= max_age && self.may_send(kept))
    }

    /// Caches the text of a stream.
    pub(crate) fn keep_text(&self, routed: &RoutedRequest<'_>, text: &str, model: &str) {
        if routed.facts.borrow().degraded.is_none() && !text.is_empty() && !routed.is_closed() {
            self.keep(routed, text, model);
        }
    }

    /// Caches a whole answer, if it is text and nothing else.
    pub(crate) fn keep_whole(&self, routed: &RoutedRequest<'_>, body: &Bytes) {
        if self.key.is_none() {
            return;
        }
        let Ok(whole) = answer::read(routed.request.dialect(), body) else { return };
        let [choice] = whole.choices.as_slice() else { return };
        let plain = choice.calls.is_empty() && choice.finish.as_deref() == Some("stop");
        if let Some(text) = choice.text.as_deref().filter(|_| plain) {
            self.keep_text(routed, text, whole.model.as_deref().unwrap_or_default());
        }
    }

    fn keep(&self, routed: &RoutedRequest<'_>, text: &str, model: &str) {
        let Some(key) = self.key.clone() else { return };
        let state = &routed.core.state;
        let kept = CachedAnswer::new(text, model, state.now()).simulated(routed.facts.borrow().simulated);
        let bytes = kept.write(state.wall());
        let max_bytes = routed.plan.config.store.cache.max_bytes;
        state.cache.put(key.clone(), kept, usize::try_from(max_bytes).unwrap_or(usize::MAX));
        let config = &routed.plan.config.degrade;
        let ttl = config.cache_ttl.saturating_add(config.cache_stale);
        let (store, wall, dropped) =
            (Arc::clone(&state.store), state.wall(), state.meters.cache_dropped.clone());
        // Written after the answer; a failed write only makes the cache smaller.
        let queued = state.cache_calls.push(key.len() + bytes.len(), move || {
            if store.cache_put(&key, &bytes, ttl, wall).is_err() {
                dropped.inc();
            }
        });
        if !queued {
            state.meters.cache_dropped.inc();
        }
    }
}

/// Marks a lesser answer as made up.
fn mark(note: &mut Value, simulated: bool) {
    if simulated {
        add(note, SIMULATED, true.into());
    }
}

fn add(note: &mut Value, name: &str, value: Value) {
    if let Some(note) = note.as_object_mut() {
        note.insert(name.to_owned(), value);
    }
}

/// What the body of a lesser answer says about it: its source, and why it is a lesser one.
fn note(source: DegradeSource, routed: &RoutedRequest<'_>, ended: &JourneyEnd) -> Value {
    let kind = ended.fault.kind;
    let reason = json!({"errorCode": kind.code(&routed.plan.config.code_prefix), "kind": kind.name()});
    json!({"source": source.name(), "degraded": true, "reason": reason})
}

/// Sends a lesser answer to a request whose chain is spent.
async fn send_lesser(
    routed: &RoutedRequest<'_>,
    sender: &ResponseSender,
    (model, text): (&str, &str),
    source: &Value,
    status: u16,
) {
    let facts = routed.facts();
    send_text(sender, routed.context, routed.request, routed.writer, &facts, model, text, source, status)
        .await;
}

/// Sends a text as an answer in the form that the client asked for.
#[expect(clippy::too_many_arguments, reason = "one place where a text becomes an answer")]
async fn send_text(
    sender: &ResponseSender,
    context: &RequestContext,
    request: &Request<'_>,
    writer: &LazyStreamWriter<'_>,
    facts: &Disclosure,
    model: &str,
    text: &str,
    source: &Value,
    status: u16,
) {
    let dialect = request.dialect();
    let head = Head {
        id: answer_id(dialect, &context.id),
        model: model.to_owned(),
        created: context.wall.as_second(),
        fingerprint: None,
    };
    if !request.stream() {
        sender.head(reply::head_with(status, "application/json", context, facts));
        let choice = Choice { text: Some(text.into()), finish: Some("stop".into()), ..Choice::default() };
        let whole = Whole { choices: vec![choice], usage: Some(Usage::default()), ..Whole::default() };
        sender.send(answer::write(dialect, &head, &whole, Some(source), request.is_legacy())).await;
        return;
    }
    // A stream that was kept open has its head already, with its status.
    if !sender.has_head() {
        sender.head(reply::stream_head_with(status, context, facts));
    }
    let frames = {
        let mut writer = writer.borrow_mut();
        writer.begin();
        writer.forward_signatures(false);
        writer.names = head;
        [writer.open(source), writer.text(text), writer.finish("stop", Some(&Usage::default()))]
    };
    for frame in frames {
        sender.send(frame).await;
    }
}
