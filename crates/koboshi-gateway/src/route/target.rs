//! A target: provider, model and key, with everything that is known about it.
//!
//! Targets are made when first used and kept, so that their breakers remember. Model names come from clients, so
//! the table is bounded: beyond the bound a target is made for one request and forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use koboshi::breaker::{Breaker, BreakerSnapshot, ForcedMode};
use koboshi::chance::Seed;
use koboshi::cooldown::{BreakerOrder, OrderedMode};
use koboshi::gate::Gate;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::models::Facts;
use koboshi::spend::Price;
use koboshi::time::Moment;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::TargetTraits;
use serde::{Deserialize, Serialize};

use crate::http::upstream::RehearsedTarget;
use crate::http::upstream::interface::{Interface, Paths};
use crate::observe::meters::TargetMeters;
use crate::route::capability::facts_of;
use crate::route::causes::Causes;
use crate::route::credential::Credential;
use crate::route::plan::{KeyUse, Plan, Provider};
use crate::route::prober::Prober;
use crate::route::repeated::RepeatedEvent;
use crate::route::shown;
use crate::route::timers::Timers;

/// How often rate-limit headers are evaluated.
const LEARN_EVERY: Duration = Duration::from_millis(20);
/// The time of its last use is written again after this long.
const USED_EVERY: Duration = Duration::from_millis(20);

/// A target and its state.
pub(crate) struct Target {
    /// `provider/model`, for headers and journals.
    pub(crate) name: Arc<str>,
    /// The model's name as it may be shown.
    pub(crate) shown_model: Arc<str>,
    pub(crate) provider: Arc<Provider>,
    pub(crate) model: Arc<str>,
    /// The credential for the provider.
    pub(crate) credential: Credential,
    paths: Paths,
    /// The dialect where it does not speak the client's.
    best: Option<Dialect>,
    /// The key is the client's own: what is learned with it does not affect ours.
    pub(crate) is_borrowed: bool,
    /// The config names it: it is kept while the config is in use.
    is_fixed: bool,
    /// When it was last used, as nanoseconds of the monotonic clock.
    last_used: AtomicU64,
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) gate: Arc<Gate>,
    /// What is known of its model.
    pub(crate) facts: Facts,
    pub(crate) timers: Timers,
    pub(crate) scopes: Scopes,
    pub(crate) meters: TargetMeters,
    /// What its tokens cost, in the currency of the config; none where that is unknown.
    pub(crate) price: Option<Price>,
    /// Whether it may be asked to report usage at the end of a stream.
    pub(crate) asks_usage: bool,
    /// Whether it refused to continue a given text.
    refuses_prefill: AtomicBool,
    /// The provider said that it has no such model; not asked again before this. For a target that the config names, the ledger knows it.
    absent_until: AtomicU64,
    /// When rate-limit headers were last evaluated.
    learned: AtomicU64,
    /// The newest opening of another node's breaker that its own breaker has taken into account, in milliseconds of Unix time.
    hinted: AtomicI64,
    /// When the last order of an operator that its breaker obeys was given, in milliseconds of Unix time.
    ordered: AtomicI64,
    /// The faults that keep it from being asked, for later requests.
    pub(crate) causes: Causes,
    /// How often it answered in place of a target that was not asked.
    pub(crate) rescued: RepeatedEvent,
    /// How it is probed beside requests that others serve.
    pub(crate) prober: Prober,
}

/// What a target keeps when the config changes.
pub(crate) struct LearnedState {
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) meters: TargetMeters,
    pub(crate) causes: Causes,
    /// When the last order that its breaker obeys was given.
    pub(crate) ordered: i64,
}

/// The keys under which knowledge about a target is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scopes {
    /// Provider, model and key together: for the breaker.
    pub(crate) target: Option<ScopeKey>,
    pub(crate) key: Option<ScopeKey>,
    pub(crate) account: Option<ScopeKey>,
    pub(crate) model: Option<ScopeKey>,
    pub(crate) provider: Option<ScopeKey>,
    /// The account's limits for this model: for the gate.
    pub(crate) limits: Option<ScopeKey>,
}

impl Scopes {
    /// The keys of one API key for one model of a provider.
    pub(crate) fn of_target(provider: &Provider, model: &str, key: &KeyUse) -> Self {
        let mut scopes = Self::of(&provider.name, model, key);
        if provider.kind == ProviderKind::Sim {
            scopes.stand_alone(&format!("{}/{model}", provider.name));
        }
        scopes
    }

    /// The keys of a provider and one of its API keys, whatever the model.
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

    /// Gives each name of the built-in provider a key and an account of its own: a fault of one does not affect the others.
    fn stand_alone(&mut self, name: &str) {
        self.key = ScopeKey::new(ScopeLevel::Key, name).ok();
        self.account = ScopeKey::new(ScopeLevel::Account, name).ok();
    }

    /// The keys for an API key that is not ours: only what applies to all clients.
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

    /// The keys whose cooldowns affect a target, the widest first.
    pub(crate) fn cooldown_keys(&self) -> impl Iterator<Item = &ScopeKey> {
        [&self.provider, &self.account, &self.key, &self.model, &self.target].into_iter().flatten()
    }

    /// The model's name without its provider.
    pub(crate) fn model_name(&self) -> Option<&str> {
        let (model, provider) = (self.model.as_ref()?, self.provider.as_ref()?);
        model.name().strip_prefix(provider.name())?.strip_prefix('/')
    }

    /// An order in which equal ones are adjacent.
    pub(crate) fn order(&self) -> [&Option<ScopeKey>; 6] {
        [&self.provider, &self.model, &self.target, &self.account, &self.key, &self.limits]
    }

    /// Whether knowledge about the target may be stored under this key.
    pub(crate) fn has(&self, key: &ScopeKey) -> bool {
        self.cooldown_keys().chain(&self.limits).any(|known| known == key)
    }

    /// The key for a fault of this scope.
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
        let price = plan.models.price(&provider.name, model);
        let price = price.and_then(|price| price.times(plan.config.spend.per_dollar));
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
            price,
            // Its API refuses unknown fields, and reports usage anyway.
            asks_usage: !provider.is_mistral(),
            refuses_prefill: AtomicBool::new(false),
            absent_until: AtomicU64::new(0),
            learned: AtomicU64::new(0),
            hinted: AtomicI64::new(i64::MIN),
            ordered: AtomicI64::new(kept.ordered),
            causes: kept.causes,
            rescued: RepeatedEvent::default(),
            prober: Prober::default(),
        }
    }

    /// The same target with the client's own key.
    pub(crate) fn borrowed(mut self) -> Self {
        self.is_borrowed = true;
        self
    }

    /// Whether the config names it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// When it was last used, as nanoseconds of the monotonic clock.
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// The dialect for a client of this dialect: the client's own if the provider speaks it, else what the provider speaks best.
    pub(crate) fn dialect_for(&self, client: Dialect) -> Dialect {
        self.provider.dialect_for(client, self.best)
    }

    /// How a request of such a client is written.
    pub(crate) fn traits_for(&self, client: Dialect) -> TargetTraits {
        TargetTraits {
            dialect: self.dialect_for(client),
            openai: self.provider.is_openai(),
            mistral: self.provider.is_mistral(),
            vertex: self.provider.kind == ProviderKind::Vertex,
            prefill: self.prefills(),
            facts: self.facts,
        }
    }

    /// The endpoint in its own dialect, and its path; no path where it has no such endpoint, or needs none.
    pub(crate) fn interface_and_path(
        &self,
        interface: Interface,
        streams: bool,
    ) -> (Interface, Option<&PathAndQuery>) {
        let spoken = match interface {
            Interface::Generate(client) => Interface::Generate(self.dialect_for(client)),
            Interface::Count(client) => Interface::Count(self.dialect_for(client)),
            Interface::Embeddings => Interface::Embeddings,
        };
        (spoken, self.paths.path(spoken, streams))
    }

    /// What a rehearsal calls it.
    pub(crate) fn rehearsed(&self) -> RehearsedTarget {
        let provider = &self.provider;
        RehearsedTarget {
            name: Arc::clone(&self.name),
            provider: if provider.kind == ProviderKind::Sim {
                self.name.to_string()
            } else {
                provider.name.to_string()
            },
            key: self.scopes.key.clone(),
            account: self.scopes.account.clone(),
        }
    }

    /// Whether the simulated provider answers.
    pub(crate) fn is_simulated(&self) -> bool {
        self.provider.origin.is_none()
    }

    /// Whether it makes embeddings.
    pub(crate) fn embeds(&self) -> bool {
        self.provider.origin.is_none() || self.paths.path(Interface::Embeddings, false).is_some()
    }

    /// Records that it is used now. Not with every request, so that the cores do not take the same cache line from each other.
    pub(crate) fn mark_used(&self, now: Moment) {
        if now.since(Moment::from_nanos(self.last_used())) >= USED_EVERY {
            self.last_used.store(now.nanos(), Ordering::Relaxed);
        }
    }

    /// Records that the provider has no such model: it is not asked for a while, and is the first to be forgotten.
    pub(crate) fn mark_absent_until(&self, until: Moment) {
        self.absent_until.store(until.nanos(), Ordering::Relaxed);
        self.last_used.store(0, Ordering::Relaxed);
    }

    /// Records that it may be asked again at once.
    pub(crate) fn mark_present(&self) {
        self.absent_until.store(0, Ordering::Relaxed);
    }

    /// Whether rate-limit headers should be evaluated again: under load every answer repeats them, and the gate itself counts what was
    /// sent since.
    pub(crate) fn may_learn(&self, now: Moment) -> bool {
        let last = self.learned.load(Ordering::Relaxed);
        if last != 0 && now.since(Moment::from_nanos(last)) < LEARN_EVERY {
            return false;
        }
        self.learned.store(now.nanos().max(1), Ordering::Relaxed);
        true
    }

    /// Whether it continues a given text.
    pub(crate) fn prefills(&self) -> bool {
        self.facts.prefill == Some(true) && !self.refuses_prefill.load(Ordering::Relaxed)
    }

    /// Another node's breaker for this target has opened: here one failure is enough now. Each opening counts once, so that one success here
    /// ends its effect.
    pub(crate) fn hint(&self, remote: &BreakerSnapshot) {
        let since = remote.since.as_millisecond();
        if self.hinted.fetch_max(since, Ordering::Relaxed) < since {
            self.breaker.hint(remote);
        }
    }

    /// Carries out an operator's order for its breaker, once.
    pub(crate) fn obey_order(&self, order: BreakerOrder, now: Moment) {
        let at = order.at.as_millisecond();
        if self.ordered.fetch_max(at, Ordering::Relaxed) < at {
            obey(&self.breaker, order.mode, now);
        }
    }

    /// When the last order that its breaker obeys was given.
    pub(crate) fn ordered(&self) -> i64 {
        self.ordered.load(Ordering::Relaxed)
    }

    /// Records that it refused to continue the beginning of an answer.
    pub(crate) fn mark_prefill_refused(&self) {
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

/// Orders a chain's targets for one conversation: the one that served it before comes first if it is in the chain, because
/// its prompt cache is warm; in a tool loop before all others, else before the other keys of its model. It is only a preference: that target
/// is skipped like any other when it cannot answer.
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

/// Carries out an operator's order for a breaker.
pub(crate) fn obey(breaker: &Breaker, mode: OrderedMode, now: Moment) {
    match mode {
        OrderedMode::Open => breaker.force(ForcedMode::Open, now),
        OrderedMode::Close => breaker.force(ForcedMode::Closed, now),
        OrderedMode::Disable => breaker.force(ForcedMode::Disabled, now),
        OrderedMode::Release => breaker.release(now),
        OrderedMode::Reset => breaker.reset(now),
    }
}

/// A seed for a target's breaker. The node is part of it, so that the nodes of a fleet do not probe a target in step.
pub(crate) fn seed_of(name: &str, node: &str) -> Seed {
    let hash = name.bytes().chain([0]).chain(node.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Seed::new(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_fleet_have_seeds_of_their_own() {
        assert_eq!(seed_of("one/m", "a"), seed_of("one/m", "a"));
        assert_ne!(seed_of("one/m", "a"), seed_of("one/m", "b"));
        assert_ne!(seed_of("one/m", "a"), seed_of("two/m", "a"));
    }
}
