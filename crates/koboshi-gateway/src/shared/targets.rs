//! Every target that was used, made when it is first needed.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;

use crate::route::credential::Credential;
use crate::route::plan::Plan;
use crate::route::provider::{KeyUse, Provider};
use crate::route::target::{LearnedState, Scopes, Target};
use crate::shared::state::SharedState;

/// How many targets are kept besides those that the config names.
const MAX_TARGETS: usize = 4096;
/// How many are evicted at a time: finding the least used ones means checking all of them.
const EVICTION_BATCH: usize = 256;

type Id = (Arc<str>, Arc<str>, String);

/// Every target that was used.
#[derive(Default)]
pub(crate) struct Targets {
    known: RwLock<HashMap<Id, Arc<Target>>>,
    /// How often all were cleared.
    generation: AtomicU64,
}

impl Targets {
    /// The targets of a provider's model: one per key.
    pub(crate) fn of(
        &self,
        state: &SharedState,
        plan: &Plan,
        provider: &Arc<Provider>,
        model: &str,
    ) -> Vec<Arc<Target>> {
        provider.keys.iter().map(|key| self.one(state, plan, provider, model, key)).collect()
    }

    /// A target with the client's own key, which lives as long as the request.
    pub(crate) fn borrowed(
        &self,
        state: &SharedState,
        plan: &Plan,
        provider: &Arc<Provider>,
        model: &str,
        client_key: &HeaderValue,
    ) -> Arc<Target> {
        let scopes = Scopes::borrowed(&provider.name, model);
        let credential = Credential::borrowed(provider.kind, client_key);
        let target = make(state, plan, provider, model, credential, scopes, None);
        Arc::new(target.borrowed())
    }

    /// Clears all: their policies have changed.
    pub(crate) fn clear(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Forgets the targets of providers and keys that the config no longer has: a rejected key that was replaced is out of use for good.
    pub(crate) fn keep_configured(&self, plan: &Plan) {
        let configured: HashSet<(&str, &str)> = plan
            .providers()
            .flat_map(|provider| provider.keys.iter().map(|key| (&*provider.name, key.fingerprint.as_str())))
            .collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        known.retain(|(provider, _, fingerprint), _| configured.contains(&(&**provider, fingerprint)));
        if known.len() < before {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Targets that are cached elsewhere are valid while this stays the same.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Every target.
    pub(crate) fn all(&self) -> Vec<Arc<Target>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known.values().cloned().collect();
        all.sort_by(|left, right| left.name.cmp(&right.name));
        all
    }

    fn one(
        &self,
        state: &SharedState,
        plan: &Plan,
        provider: &Arc<Provider>,
        model: &str,
        key: &KeyUse,
    ) -> Arc<Target> {
        let id: Id = (Arc::clone(&provider.name), model.into(), key.fingerprint.clone());
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&id)
            && Arc::ptr_eq(&known.provider, provider)
        {
            return Arc::clone(known);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // A reload made a new provider of the same name: its address and limits are new, what was learned stays.
        let before = known.get(&id).cloned();
        if let Some(before) = &before
            && Arc::ptr_eq(&before.provider, provider)
        {
            return Arc::clone(before);
        }
        let scopes = Scopes::of_target(provider, model, key);
        let made = make(state, plan, provider, model, key.credential.clone(), scopes, before.as_deref());
        let target = Arc::new(made);
        known.insert(id, Arc::clone(&target));
        if before.is_none()
            && !target.is_fixed()
            && known.values().filter(|one| !one.is_fixed()).count() > MAX_TARGETS
        {
            evict(&mut known);
            // Cores must not continue with targets that others make again.
            self.generation.fetch_add(1, Ordering::Release);
        }
        target
    }
}

/// Removes the least recently used targets that no config names.
fn evict(known: &mut HashMap<Id, Arc<Target>>) {
    let mut oldest: Vec<(u64, Id)> = known
        .iter()
        .filter(|(_, target)| !target.is_fixed())
        .map(|(id, target)| (target.last_used(), id.clone()))
        .collect();
    oldest.sort_unstable();
    for (_, id) in oldest.into_iter().take(EVICTION_BATCH) {
        known.remove(&id);
    }
}

fn make(
    state: &SharedState,
    plan: &Plan,
    provider: &Arc<Provider>,
    model: &str,
    credential: Credential,
    scopes: Scopes,
    before: Option<&Target>,
) -> Target {
    let (shown_model, name) = Target::names(provider, model);
    let known = scopes.target.as_ref().and_then(|key| state.ledger.cooldown(key));
    let order = known.and_then(|known| known.breaker_order());
    let kept = LearnedState {
        breaker: before
            .map_or_else(|| state.breaker(plan, &name, &scopes), |before| Arc::clone(&before.breaker)),
        gate: before.map_or_else(|| state.gate(plan, &scopes), |before| Arc::clone(&before.gate)),
        meters: state.meters.target(&provider.name, &shown_model),
        ordered: before
            .map_or_else(|| order.map_or(i64::MIN, |order| order.at.as_millisecond()), Target::ordered),
        causes: before.map(|before| before.causes.taken_over()).unwrap_or_default(),
    };
    Target::new(plan, provider, model, credential, scopes, kept, state.now())
}
