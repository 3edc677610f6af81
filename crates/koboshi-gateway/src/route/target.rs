//! A target: provider, model and key, with everything that is known about it.
//!
//! Targets are made when they are first asked for and kept, so that their breakers remember. Model names come from clients, so
//! the table is bounded: beyond the bound a target is made for one request and forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use koboshi::breaker::Breaker;
use koboshi::chance::Seed;
use koboshi::gate::Gate;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::models::Facts;
use koboshi::time::Moment;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::To;
use serde::{Deserialize, Serialize};

use crate::http::upstream::interface::{Interface, Paths};
use crate::observe::meters::TargetMeters;
use crate::route::capability::facts_of;
use crate::route::causes::Causes;
use crate::route::credential::Credential;
use crate::route::plan::{KeyUse, Plan, Provider};
use crate::route::repeated::Repeated;
use crate::route::shown;
use crate::route::timers::Timers;

/// How often limits are learned from headers.
const LEARN_EVERY: Duration = Duration::from_millis(20);

/// What one target is and how it fares.
pub(crate) struct Target {
    /// `provider/model`, for headers and journals.
    pub(crate) name: Arc<str>,
    /// The model's name as it may be seen.
    pub(crate) shown_model: Arc<str>,
    pub(crate) provider: Arc<Provider>,
    pub(crate) model: Arc<str>,
    /// What tells the provider who asks.
    pub(crate) credential: Credential,
    paths: Paths,
    /// What it is spoken to where it does not speak the client's dialect.
    best: Option<Dialect>,
    /// The key is the client's own: nothing that is learned with it is filed under ours.
    pub(crate) is_borrowed: bool,
    /// The config names it: it is never forgotten while the config holds.
    is_fixed: bool,
    /// When it was asked last, as nanoseconds of the monotonic clock.
    last_used: AtomicU64,
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) gate: Arc<Gate>,
    /// What is known of its model.
    pub(crate) facts: Facts,
    pub(crate) timers: Timers,
    pub(crate) scopes: Scopes,
    pub(crate) meters: TargetMeters,
    /// It may be asked to report usage at the end of a stream.
    pub(crate) asks_usage: bool,
    /// It refused to go on with a text that it was given.
    refuses_prefill: AtomicBool,
    /// The provider said that it has no such model; not asked again before this. Of a target that the config names, the ledger knows it.
    absent_until: AtomicU64,
    /// When limits were last learned from headers.
    learned: AtomicU64,
    /// What keeps it from being asked, for those who come meanwhile.
    pub(crate) causes: Causes,
    /// How often it answered in place of one that was not asked.
    pub(crate) rescued: Repeated,
}

/// What a target keeps while the config changes: made by whoever knows what was learned before.
pub(crate) struct LearnedState {
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) meters: TargetMeters,
    pub(crate) causes: Causes,
}

/// What knowledge about a target is filed under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scopes {
    /// Provider, model and key together: the breaker's.
    pub(crate) target: Option<ScopeKey>,
    pub(crate) key: Option<ScopeKey>,
    pub(crate) account: Option<ScopeKey>,
    pub(crate) model: Option<ScopeKey>,
    pub(crate) provider: Option<ScopeKey>,
    /// The account's limits for this model: the gate's.
    pub(crate) limits: Option<ScopeKey>,
}

impl Scopes {
    /// Of one key for one model of a provider.
    pub(crate) fn of_target(provider: &Provider, model: &str, key: &KeyUse) -> Self {
        let mut scopes = Self::of(&provider.name, model, key);
        if provider.kind == ProviderKind::Sim {
            scopes.stand_alone(&format!("{}/{model}", provider.name));
        }
        scopes
    }

    /// Of a provider and one of its keys, whatever the model.
    pub(crate) fn of_key(provider: &Provider, key: &KeyUse) -> Self {
        let all = Self::of(&provider.name, "", key);
        let own = provider.kind != ProviderKind::Sim;
        Self {
            target: None,
            model: None,
            limits: None,
            key: all.key.filter(|_| own),
            account: all.account.filter(|_| own),
            provider: all.provider,
        }
    }

    fn of(provider: &str, model: &str, key: &KeyUse) -> Self {
        let model = shown::model(model);
        let scope = |level, name: &str| ScopeKey::new(level, name).ok();
        Self {
            target: scope(ScopeLevel::Target, &format!("{provider}/{model}#{}", key.fingerprint)),
            key: scope(ScopeLevel::Key, &format!("{provider}/{}", key.fingerprint)),
            account: scope(ScopeLevel::Account, &key.account),
            model: scope(ScopeLevel::Model, &format!("{provider}/{model}")),
            provider: scope(ScopeLevel::Provider, provider),
            limits: scope(ScopeLevel::Model, &format!("{}/{model}", key.account)),
        }
    }

    /// Each name of the built-in provider has a key and an account of its own: what dies for one is alive for the others.
    fn stand_alone(&mut self, name: &str) {
        self.key = ScopeKey::new(ScopeLevel::Key, name).ok();
        self.account = ScopeKey::new(ScopeLevel::Account, name).ok();
    }

    /// With a key that is not ours: only what holds for everybody.
    pub(crate) fn borrowed(provider: &str, model: &str) -> Self {
        let model = shown::model(model);
        let scope = |level, name: &str| ScopeKey::new(level, name).ok();
        Self {
            target: None,
            key: None,
            account: None,
            model: scope(ScopeLevel::Model, &format!("{provider}/{model}")),
            provider: scope(ScopeLevel::Provider, provider),
            limits: None,
        }
    }

    /// What a target rests for, the widest first.
    pub(crate) fn cooldown_keys(&self) -> impl Iterator<Item = &ScopeKey> {
        [&self.provider, &self.account, &self.key, &self.model, &self.target].into_iter().flatten()
    }

    /// The model's name without its provider.
    pub(crate) fn model_name(&self) -> Option<&str> {
        let (model, provider) = (self.model.as_ref()?, self.provider.as_ref()?);
        model.name().strip_prefix(provider.name())?.strip_prefix('/')
    }

    /// An order in which equal ones stand together.
    pub(crate) fn order(&self) -> [&Option<ScopeKey>; 6] {
        [&self.provider, &self.model, &self.target, &self.account, &self.key, &self.limits]
    }

    /// Whether anything about the target is filed under this key.
    pub(crate) fn has(&self, key: &ScopeKey) -> bool {
        self.cooldown_keys().chain(&self.limits).any(|known| known == key)
    }

    /// Where a fault of this scope is filed.
    pub(crate) fn of_scope(&self, scope: koboshi::fault::Scope) -> Option<&ScopeKey> {
        use koboshi::fault::Scope;
        match scope {
            Scope::Key => self.key.as_ref(),
            Scope::Account => self.account.as_ref(),
            Scope::Model => self.model.as_ref(),
            Scope::Provider => self.provider.as_ref(),
            _ => None,
        }
    }
}

impl Target {
    /// The name of a model as it may be shown, and the name of its target.
    pub(crate) fn names(provider: &Provider, model: &str) -> (Arc<str>, Arc<str>) {
        let shown_model: Arc<str> = shown::model(model).into();
        let name = format!("{}/{shown_model}", provider.name).into();
        (shown_model, name)
    }

    /// The target of a provider's model with this credential.
    pub(crate) fn new(
        plan: &Plan,
        provider: &Arc<Provider>,
        model: &str,
        credential: Credential,
        scopes: Scopes,
        kept: LearnedState,
        now: Moment,
    ) -> Self {
        let (shown_model, name) = Self::names(provider, model);
        let facts = facts_of(&provider.name, provider.kind, model, &plan.models, &plan.config);
        let of_model = plan.config.model(&provider.name, model).map(|(_, said)| &said.timeouts);
        let timers = Timers::of(&provider.name, provider.kind, &facts, &provider.timeouts, of_model);
        Self {
            meters: kept.meters,
            shown_model,
            name,
            provider: Arc::clone(provider),
            model: model.into(),
            credential,
            paths: provider.paths(model),
            best: provider.speaks_best(&facts),
            is_borrowed: false,
            is_fixed: plan.names(&provider.name, model),
            last_used: AtomicU64::new(now.nanos()),
            breaker: kept.breaker,
            gate: kept.gate,
            facts,
            timers,
            scopes,
            // Its interface refuses fields that it does not know, and reports usage anyway.
            asks_usage: !provider.is_mistral(),
            refuses_prefill: AtomicBool::new(false),
            absent_until: AtomicU64::new(0),
            learned: AtomicU64::new(0),
            causes: kept.causes,
            rescued: Repeated::default(),
        }
    }

    /// The same with the client's own key.
    pub(crate) fn borrowed(mut self) -> Self {
        self.is_borrowed = true;
        self
    }

    /// Whether the config names it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// When it was asked last, as nanoseconds of the monotonic clock.
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// What it is spoken to for a client of this dialect: the client's own if the provider speaks it, else what the provider speaks best.
    pub(crate) fn speaks(&self, client: Dialect) -> Dialect {
        self.provider.speaks(client, self.best)
    }

    /// For whom a request of such a client is written.
    pub(crate) fn to(&self, client: Dialect) -> To {
        To {
            dialect: self.speaks(client),
            openai: self.provider.is_openai(),
            mistral: self.provider.is_mistral(),
            vertex: self.provider.kind == ProviderKind::Vertex,
            prefill: self.prefills(),
            facts: self.facts,
        }
    }

    /// The same question in its own dialect, and where it goes; none where it has no such interface, or needs no path.
    pub(crate) fn asks(&self, interface: Interface, streams: bool) -> (Interface, Option<&PathAndQuery>) {
        let spoken = match interface {
            Interface::Generate(client) => Interface::Generate(self.speaks(client)),
            Interface::Count(client) => Interface::Count(self.speaks(client)),
            Interface::Embeddings => Interface::Embeddings,
        };
        (spoken, self.paths.path(spoken, streams))
    }

    /// Whether the simulated provider answers.
    pub(crate) fn is_simulated(&self) -> bool {
        self.provider.origin.is_none()
    }

    /// Whether it makes embeddings.
    pub(crate) fn embeds(&self) -> bool {
        self.provider.origin.is_none() || self.paths.path(Interface::Embeddings, false).is_some()
    }

    /// It is asked now.
    pub(crate) fn is_used(&self, now: Moment) {
        self.last_used.store(now.nanos(), Ordering::Relaxed);
    }

    /// The provider has no such model: not asked again for a while, and the first to be forgotten.
    pub(crate) fn is_absent_until(&self, until: Moment) {
        self.absent_until.store(until.nanos(), Ordering::Relaxed);
        self.last_used.store(0, Ordering::Relaxed);
    }

    /// It may be asked again at once.
    pub(crate) fn is_there_again(&self) {
        self.absent_until.store(0, Ordering::Relaxed);
    }

    /// Whether limits may be learned from headers again: under load every answer repeats them, and the gate counts what was
    /// sent since by itself.
    pub(crate) fn may_learn(&self, now: Moment) -> bool {
        let last = self.learned.load(Ordering::Relaxed);
        if last != 0 && now.since(Moment::from_nanos(last)) < LEARN_EVERY {
            return false;
        }
        self.learned.store(now.nanos().max(1), Ordering::Relaxed);
        true
    }

    /// Whether it goes on with a text that it is given.
    pub(crate) fn prefills(&self) -> bool {
        self.facts.prefill == Some(true) && !self.refuses_prefill.load(Ordering::Relaxed)
    }

    /// It was given the beginning of an answer and refused.
    pub(crate) fn refused_prefill(&self) {
        self.refuses_prefill.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_absent(&self, now: Moment) -> bool {
        self.absent_until.load(Ordering::Relaxed) > now.nanos()
    }

    /// Until when it is absent, if it is.
    pub(crate) fn absent_until(&self, now: Moment) -> Option<Moment> {
        self.is_absent(now).then(|| Moment::from_nanos(self.absent_until.load(Ordering::Relaxed)))
    }
}

/// The order of a chain's targets for one conversation: the one that served it before comes first if it is in the chain, because
/// its prompt cache is warm; in a loop before all others, else before the other keys of its model. A preference only: it is passed over
/// like any other when it cannot answer.
pub(crate) fn prefer(targets: &mut [Arc<Target>], served: &ScopeKey, in_a_loop: bool, goes_on: bool) {
    let Some(at) = targets.iter().position(|target| target.scopes.target.as_ref() == Some(served)) else {
        return;
    };
    let of_its_model = |target: &&Arc<Target>| targets.get(at).is_some_and(|known| known.name == target.name);
    let from = match (in_a_loop, goes_on) {
        (true, _) => 0,
        (false, true) => at - targets.iter().take(at).rev().take_while(of_its_model).count(),
        (false, false) => at,
    };
    if let Some(front) = targets.get_mut(from..=at) {
        front.rotate_right(1);
    }
}

/// A seed for a target's breaker.
pub(crate) fn seed_of(name: &str) -> Seed {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Seed::new(hash)
}
