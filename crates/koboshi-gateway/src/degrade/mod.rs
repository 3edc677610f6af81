//! What is given when nobody in the chain can answer: a kept answer, a simpler model, a prepared text; else the error.
//!
//! Every lesser answer says that it is one, in a header and in its body (`koboshi.source`), and is never kept as if it were a real one.

use std::cell::{Cell, RefCell};
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
use crate::route::answers::{Found, Hints};
use crate::route::plan::{Backing, Plan};
use crate::route::target::Target;
use crate::shared::cache::{self, CachedAnswer};
use crate::shared::chains::Chain;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;
use crate::stream::machine::Stream;
use crate::stream::run::{Run, Steer};
use crate::stream::writer::{LazyStreamWriter, own_id};

/// Characters of a client's mode or screen that are written down.
const MAX_NAME: usize = 100;
/// So long a request waits for the store's cache when nobody else can answer.
const CACHE_TIMEOUT: Duration = Duration::from_millis(250);

/// What is left for one request when the chain is spent.
pub(crate) struct DegradedAnswers<'l> {
    plan: &'l Plan,
    /// The cache's name for the request; none where nothing of it may be kept.
    key: Option<String>,
    mode: CacheMode,
    simple: Vec<Arc<Target>>,
    prepared: Found,
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

    /// Whether there is anything lesser to give. What the cache holds is only known when it is asked.
    pub(crate) fn is_there(&self) -> bool {
        self.key.is_some() || !self.simple.is_empty() || self.prepared.text().is_some()
    }

    /// An answer that is still fresh, where the cache may answer before anybody is asked.
    pub(crate) fn fresh(&self, core: &CoreState) -> Option<CachedAnswer> {
        let key = self.key.as_ref().filter(|_| self.mode == CacheMode::Serve)?;
        let fresh = core.state.cache.fresh(key, core.state.now(), self.plan.config.degrade.cache_ttl);
        fresh.filter(|kept| self.may_send(kept))
    }

    /// Whether a kept answer may be given. What was made up for a demo is not given once real providers answer.
    fn may_send(&self, kept: &CachedAnswer) -> bool {
        !kept.simulated || self.plan.backing() != Backing::Providers
    }

    /// Gives a kept answer before anybody was asked.
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
        let mut source =
            json!({"source": "cache", "degraded": false, "ageSeconds": kept.age(core.state.now()).as_secs()});
        mark(&mut source, kept.simulated);
        core.state.meters.answer("cached");
        let writer = LazyStreamWriter::new(context, request, self.plan.config.serve.keep_alive);
        send_text(sender, context, request, &writer, &facts, &kept.model, &kept.text, &source, 200).await;
    }

    /// Gives something lesser. False if there is nothing.
    pub(crate) async fn send(&self, run: &Run<'_>, sender: &ResponseSender, ended: &JourneyEnd) -> bool {
        let state = &run.core.state;
        let why = reason(run, ended);
        if let Some(kept) = self.stale(run.core).await {
            let age = kept.age(state.now()).as_secs();
            let mut source = json!({"source": "cache", "degraded": true, "ageSeconds": age, "reason": why});
            mark(&mut source, kept.simulated);
            self.note(run, "cache", ended);
            run.disclose(|facts| {
                facts.degraded = Some("cache");
                facts.simulated = kept.simulated;
            });
            send_text(
                sender,
                run.context,
                run.request,
                run.writer,
                &run.facts(),
                &kept.model,
                &kept.text,
                &source,
                200,
            )
            .await;
            return true;
        }
        if !self.simple.is_empty() && Box::pin(self.ask_simple(run, sender, ended)).await {
            return true;
        }
        let Some(text) = self.prepared.text() else {
            self.note_missing(run);
            return false;
        };
        self.note(run, "static", ended);
        run.disclose(|facts| {
            facts.degraded = Some("static");
            facts.simulated = false;
        });
        let lang = run.context.lang;
        let configured = self.plan.answers.notice(lang).map(str::to_owned);
        let notice =
            configured.or_else(|| state.phrases.text(lang, "static-notice", &[])).unwrap_or_default();
        let source = json!({"source": "static", "degraded": true, "notice": notice, "reason": why});
        let status = self.plan.config.degrade.status;
        send_text(
            sender,
            run.context,
            run.request,
            run.writer,
            &run.facts(),
            "static-response",
            text,
            &source,
            status,
        )
        .await;
        true
    }

    /// Asks the simpler model, once.
    async fn ask_simple(&self, run: &Run<'_>, sender: &ResponseSender, ended: &JourneyEnd) -> bool {
        let breakers: Vec<_> = self.simple.iter().map(|target| Arc::clone(&target.breaker)).collect();
        let mut facts = run.facts();
        facts.degraded = Some("simple");
        let mut about = json!({"source": "simple", "degraded": true, "reason": reason(run, ended)});
        let simple = Run {
            core: run.core,
            plan: run.plan,
            context: run.context,
            request: run.request,
            body: run.body,
            targets: &self.simple,
            breakers: &breakers,
            shape: run.shape,
            commit: run.commit,
            steer: Steer::clone(&run.steer),
            can_degrade: self.prepared.text().is_some(),
            facts: RefCell::new(facts),
            writer: run.writer,
            noted: Cell::new(false),
            lost_media: Cell::new(false),
            trimmed: run.trimmed.clone(),
            mending: run.mending.clone(),
            refused: RefCell::default(),
            refusals: run.refusals.clone(),
        };
        let mut journey = simple.journey();
        let given = if run.request.stream() {
            Stream::new(&simple, sender).annotated(about).serve(&mut journey).await.is_ok()
        } else {
            match simple.answer(&mut journey).await {
                Ok(answered) => {
                    mark(&mut about, simple.facts.borrow().simulated);
                    sender.head(reply::head(200, "application/json", run.context, &simple.facts()));
                    sender.send(answer::with_note(run.request.dialect(), &answered.body, &about)).await;
                    true
                }
                Err(_) => false,
            }
        };
        if given {
            self.note(run, "simple", ended);
        }
        given
    }

    /// The file of prepared answers has none for this request: whoever wrote it wants to know.
    fn note_missing(&self, run: &Run<'_>) {
        let Found::Missing { mode, screen } = &self.prepared else { return };
        let redactor = Redactor::new();
        let named = |name: &Option<String>| match name {
            Some(name) => format!("`{}`", redactor.excerpt(name, MAX_NAME)),
            None => "none".to_owned(),
        };
        let text =
            format!("degrade.answers_file has no text for mode {} and screen {}", named(mode), named(screen));
        learn::own_fault(&run.core.state, run.plan, Kind::TemplateNotFound, &text, &run.context.id);
    }

    fn note(&self, run: &Run<'_>, source: &'static str, ended: &JourneyEnd) {
        let state = &run.core.state;
        state.meters.degraded(source);
        let text = format!("{}: a lesser answer was given ({source})", run.context.id);
        let data = json!({"source": source, "kind": ended.fault.kind.name(), "request": &*run.context.id});
        state.note(EntryKind::Remedy, "degrade", None, text, data);
    }

    /// A kept answer that may still serve. The store is asked only here, where nobody else can answer, and only for a moment.
    async fn stale(&self, core: &CoreState) -> Option<CachedAnswer> {
        let key = self.key.clone()?;
        let config = &self.plan.config.degrade;
        let most = config.cache_ttl.saturating_add(config.cache_stale);
        let fresh = core.state.cache.fresh(&key, core.state.now(), most);
        if let Some(kept) = fresh.filter(|kept| self.may_send(kept)) {
            return Some(kept);
        }
        let (store, wall, now) = (Arc::clone(&core.state.store), core.state.wall(), core.state.now());
        let asked = core.state.cache_calls.ask(CACHE_TIMEOUT, move || store.cache_get(&key, wall));
        let found = asked.await?.ok()??;
        CachedAnswer::read(&found, wall, now).filter(|kept| kept.age(now) <= most && self.may_send(kept))
    }

    /// Keeps the text of a stream.
    pub(crate) fn keep_text(&self, run: &Run<'_>, text: &str, model: &str) {
        if run.facts.borrow().degraded.is_none() && !text.is_empty() && !run.is_closed() {
            self.keep(run, text, model);
        }
    }

    /// Keeps a whole answer, if it is text and nothing else.
    pub(crate) fn keep_whole(&self, run: &Run<'_>, body: &Bytes) {
        if self.key.is_none() {
            return;
        }
        let Ok(whole) = answer::read(run.request.dialect(), body) else { return };
        let [choice] = whole.choices.as_slice() else { return };
        let plain = choice.calls.is_empty() && choice.finish.as_deref() == Some("stop");
        if let Some(text) = choice.text.as_deref().filter(|_| plain) {
            self.keep_text(run, text, whole.model.as_deref().unwrap_or_default());
        }
    }

    fn keep(&self, run: &Run<'_>, text: &str, model: &str) {
        let Some(key) = self.key.clone() else { return };
        let state = &run.core.state;
        let kept = CachedAnswer::new(text, model, state.now()).simulated(run.facts.borrow().simulated);
        let bytes = kept.write(state.wall());
        let most = run.plan.config.store.cache.most_bytes;
        state.cache.put(key.clone(), kept, usize::try_from(most).unwrap_or(usize::MAX));
        let config = &run.plan.config.degrade;
        let ttl = config.cache_ttl.saturating_add(config.cache_stale);
        let (store, wall, dropped) =
            (Arc::clone(&state.store), state.wall(), state.meters.cache_dropped.clone());
        // Written behind the answer; a cache that could not be written is a smaller cache.
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

/// Says in a note on an answer that it is made up.
fn mark(note: &mut Value, simulated: bool) {
    if let Some(note) = note.as_object_mut().filter(|_| simulated) {
        note.insert(SIMULATED.to_owned(), true.into());
    }
}

/// Why the answer is a lesser one.
fn reason(run: &Run<'_>, ended: &JourneyEnd) -> Value {
    let kind = ended.fault.kind;
    json!({"errorCode": kind.code(&run.plan.config.code_prefix), "kind": kind.name()})
}

/// Sends a text as an answer of the kind that the client asked for.
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
        id: own_id(dialect, &context.id),
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
    // A stream that was kept open has its head already, and the status in it.
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
