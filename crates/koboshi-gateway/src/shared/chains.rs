//! Where a model name leads, cached by each core: clients ask for the same names again and again, and resolving one takes a dozen look-ups
//! in shared state.
//!
//! An entry is valid for one plan and one generation of targets; a reload clears all. Names come from clients, so there is a bound.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use http::HeaderValue;
use koboshi::breaker::Breaker;

use crate::route::plan::{Plan, Route};
use crate::route::target::Target;
use crate::shared::state::SharedState;

/// How many names one core caches; beyond that it clears all.
const MAX_NAMES: usize = 500;

/// Where a model name leads.
pub(crate) struct Chain {
    pub(crate) route: Route,
    /// The targets of each link, one per key.
    links: Vec<Vec<Arc<Target>>>,
    simple: Vec<Arc<Target>>,
    /// The candidates of every request, where there is only one target.
    only: Option<Rc<Candidates>>,
}

/// The targets to ask, best first.
pub(crate) struct Candidates {
    pub(crate) targets: Vec<Arc<Target>>,
    pub(crate) breakers: Vec<Arc<Breaker>>,
}

impl Candidates {
    pub(crate) fn of(targets: Vec<Arc<Target>>) -> Rc<Self> {
        let breakers = targets.iter().map(|target| Arc::clone(&target.breaker)).collect();
        Rc::new(Self { targets, breakers })
    }
}

impl Chain {
    fn of(state: &SharedState, plan: &Plan, model: &str) -> Option<Self> {
        let route = plan.route(model)?;
        let targets = |(provider, model): &(_, String)| state.targets.of(state, plan, provider, model);
        let links: Vec<Vec<_>> = route.links.iter().map(targets).collect();
        let simple = route.simple.as_ref().map(targets).unwrap_or_default();
        let all = links.concat();
        let only = (all.len() == 1).then(|| Candidates::of(all));
        Some(Self { route, links, simple, only })
    }

    /// The only candidates, where there is just one target.
    pub(crate) fn only(&self) -> Option<&Rc<Candidates>> {
        self.only.as_ref()
    }

    /// All targets, best first; the keys of one model rotate.
    pub(crate) fn targets(&self, state: &SharedState) -> Vec<Arc<Target>> {
        let mut all = Vec::with_capacity(self.links.iter().map(Vec::len).sum());
        for link in &self.links {
            all.extend_from_slice(link);
            rotate(state, &mut all, link.len());
        }
        all
    }

    /// The targets of the simpler model.
    pub(crate) fn simple(&self, state: &SharedState) -> Vec<Arc<Target>> {
        let mut simple = self.simple.clone();
        rotate(state, &mut simple, self.simple.len());
        simple
    }

    /// The first link with the client's own key: it is sent to the vendor it was meant for, and to no other.
    pub(crate) fn borrowed(
        &self,
        state: &SharedState,
        plan: &Plan,
        client_key: &HeaderValue,
    ) -> Vec<Arc<Target>> {
        let first = self.route.links.first();
        first
            .map(|(provider, model)| state.targets.borrowed(state, plan, provider, model, client_key))
            .into_iter()
            .collect()
    }
}

/// Rotates the last `count` of them.
fn rotate(state: &SharedState, targets: &mut [Arc<Target>], count: usize) {
    if count > 1
        && let Some(last) = targets.len().checked_sub(count).and_then(|from| targets.get_mut(from..))
    {
        last.rotate_left(state.next_number() % count);
    }
}

/// The cache of one core.
#[derive(Default)]
pub(crate) struct Chains {
    known: RefCell<RememberedChains>,
}

#[derive(Default)]
struct RememberedChains {
    plan: Option<Arc<Plan>>,
    generation: u64,
    by_model: HashMap<Box<str>, Rc<Chain>>,
}

impl Chains {
    /// Where this model name leads; none if no provider is known for it.
    pub(crate) fn of(&self, state: &SharedState, plan: &Arc<Plan>, model: &str) -> Option<Rc<Chain>> {
        let mut known = self.known.borrow_mut();
        let generation = state.targets.generation();
        let holds = known.generation == generation
            && known.plan.as_ref().is_some_and(|known| Arc::ptr_eq(known, plan));
        if !holds || known.by_model.len() >= MAX_NAMES {
            *known = RememberedChains { plan: Some(Arc::clone(plan)), generation, by_model: HashMap::new() };
        }
        if let Some(chain) = known.by_model.get(model) {
            return Some(Rc::clone(chain));
        }
        let chain = Rc::new(Chain::of(state, plan, model)?);
        known.by_model.insert(model.into(), Rc::clone(&chain));
        Some(chain)
    }
}
