//! Every target that was asked for, made when it is first needed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;

use crate::route::credential::Credential;
use crate::route::plan::Plan;
use crate::route::provider::{KeyUse, Provider};
use crate::route::target::{LearnedState, Scopes, Target};
use crate::shared::state::SharedState;

/// Targets that are remembered besides those that the config names.
const MAX_TARGETS: usize = 4096;
/// So many make room for others at a time: finding the least used ones means looking at all of them.
const EVICTED_AT_ONCE: usize = 256;

type Id = (Arc<str>, Arc<str>, String);

/// Every target that was asked for.
#[derive(Default)]
pub(crate) struct Targets {
    known: RwLock<HashMap<Id, Arc<Target>>>,
    /// How often all were forgotten.
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

    /// A target with the client's own key, which is forgotten with the request.
    pub(crate) fn borrowed(
        &self,
        state: &SharedState,
        plan: &Plan,
        provider: &Arc<Provider>,
        model: &str,
        own_key: &HeaderValue,
    ) -> Arc<Target> {
        let scopes = Scopes::borrowed(&provider.name, model);
        let credential = Credential::borrowed(provider.kind, own_key);
        let target = make(state, plan, provider, model, credential, scopes, None);
        Arc::new(target.borrowed())
    }

    /// Forgets all: their policies have changed.
    pub(crate) fn clear(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// What was remembered of targets elsewhere holds as long as this stays the same.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many are remembered.
    pub(crate) fn count(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Every target that is remembered.
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
            // Cores must not go on with targets that others make anew.
            self.generation.fetch_add(1, Ordering::Release);
        }
        target
    }
}

/// Forgets the targets that no config names and that were not asked for longest.
fn evict(known: &mut HashMap<Id, Arc<Target>>) {
    let mut oldest: Vec<(u64, Id)> = known
        .iter()
        .filter(|(_, target)| !target.is_fixed())
        .map(|(id, target)| (target.last_used(), id.clone()))
        .collect();
    oldest.sort_unstable();
    for (_, id) in oldest.into_iter().take(EVICTED_AT_ONCE) {
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
    let kept = LearnedState {
        breaker: before
            .map_or_else(|| state.breaker(plan, &name, &scopes), |before| Arc::clone(&before.breaker)),
        gate: before.map_or_else(|| state.gate(plan, &scopes), |before| Arc::clone(&before.gate)),
        meters: state.meters.target(&provider.name, &shown_model),
        causes: before.map(|before| before.causes.taken_over()).unwrap_or_default(),
    };
    Target::new(plan, provider, model, credential, scopes, kept, state.now())
}
