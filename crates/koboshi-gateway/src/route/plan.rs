//! The compiled config: every request looks up here what would otherwise be computed each time.
//!
//! A plan never changes; a reload makes a new one. Requests that have begun keep theirs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use koboshi::guard::{DigestCache, Guard};
use koboshi::models::{Models, fits};
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, Commit, GuardMode, Named, ProviderKind, RouteConfig};

use crate::http::upstream::OriginError;
use crate::route::auth::{KeyLimits, Keys};
use crate::route::classifier::PlanClassifier;
pub(crate) use crate::route::provider::{KeyUse, Provider};
use crate::route::shown::MAX_MODEL;
use crate::route::token::account::Account;
use crate::route::well_known;

/// How many tool calls the guard remembers: a long turn sends all of them with every request.
const MAX_DIGESTS: usize = 20_000;
/// Longer chains are cut.
const MAX_CHAIN: usize = 16;

/// The compiled config.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) classifier: PlanClassifier,
    /// What is known of models besides the config.
    pub(crate) models: Models,
    pub(crate) answers: crate::route::answers::Answers,
    /// None if its policy is invalid, which the config has refused.
    pub(crate) guard: Option<Guard>,
    /// Tool calls that the guard has already read.
    pub(crate) digests: DigestCache,
    /// The config names no provider at all: the simulated one stands in wherever it is asked.
    pub(crate) stands_in: bool,
    /// The simulated provider answers everything, and no other is ever asked.
    pub(crate) demo: bool,
    /// The config itself lists providers, so none was taken from the environment.
    pub(crate) is_described: bool,
    providers: Named<Arc<Provider>>,
    routes: Vec<(String, Arc<RouteConfig>)>,
}

/// What answers the requests of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Real providers.
    Providers,
    /// The simulated provider answers everything, by request.
    Demo,
    /// Only the simulated provider, where the config names it.
    Simulated,
    /// No provider is configured: only models named `sim/…` are answered.
    Nothing,
}

/// Why a config cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("providers.{0}.base_url: {1}")]
    Address(String, OriginError),
    #[error("providers.{0}.keys: a key must be printable text without blanks")]
    Key(String),
    #[error("providers.{0}.ca_file: {1}")]
    Trust(String, String),
    #[error("providers.{0}.credentials_file: {1}")]
    Credentials(String, String),
    #[error("providers.{0}.{1} is missing: a provider of this kind cannot do without")]
    Lacks(String, &'static str),
    #[error("{0}: {1:?} names no provider that is known here: add it under `providers`")]
    Unknown(String, String),
    #[error("{0}: {1:?} names a provider whose environment variables are not set")]
    Unset(String, String, Vec<&'static str>),
}

/// What one request may do, according to its route.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Its name in the config; none for a model without a route.
    pub(crate) name: Option<Arc<str>>,
    /// Provider and model, best first.
    pub(crate) links: Vec<(Arc<Provider>, String)>,
    pub(crate) commit: Commit,
    pub(crate) guard: GuardMode,
    pub(crate) cache: CacheMode,
    pub(crate) simple: Option<(Arc<Provider>, String)>,
}

impl Plan {
    /// Compiles a config. Without providers, those of the environment are used. Without those too, only models of the simulated provider are
    /// answered: a gateway that lost its keys must not answer with made-up text. A demo has only the simulated provider. Tokens that
    /// the previous plan has fetched for a provider are kept.
    pub(crate) fn compile(
        mut config: Config,
        classifier: PlanClassifier,
        models: Models,
        answers: crate::route::answers::Answers,
        lookup: &dyn Fn(&str) -> Option<String>,
        demo: bool,
        before: Option<&Self>,
    ) -> Result<Self, PlanError> {
        let is_described = !config.providers.is_empty();
        if demo {
            config.providers.retain(|_, one| one.kind == ProviderKind::Sim);
        } else if config.providers.is_empty() {
            config.providers = well_known::from_environment(lookup, config.serve.listen);
            // All of Google's programs use that variable: credentials of another kind are no mistake.
            config.providers.retain(|_, one| one.credentials_file.as_deref().is_none_or(is_service_account));
        }
        let stands_in = config.providers.is_empty();
        let mut providers = Named::new();
        for (name, provider) in &config.providers {
            let before = before.and_then(|before| before.providers.get(name)).map(|before| &**before);
            providers.insert(name.clone(), Arc::new(Provider::compile(name, provider, before)?));
        }
        providers.entry("sim".to_owned()).or_insert_with(|| Arc::new(Provider::built_in("sim", "sim")));
        let mut routes: Vec<_> =
            config.routes.iter().map(|(pattern, route)| (pattern.clone(), Arc::new(route.clone()))).collect();
        // The most specific pattern first: the one with the most letters besides the star.
        routes.sort_by_key(|(pattern, _)| std::cmp::Reverse((!pattern.contains('*'), pattern.len())));
        let keys = Keys::of(&config.keys);
        // Each route decides whether it only observes.
        let guard = Guard::new(config.guard.policy.clone().with(|policy| {
            policy.observe = false;
        }))
        .ok();
        let digests = DigestCache::new(MAX_DIGESTS);
        let plan = Self {
            keys,
            classifier,
            models,
            answers,
            guard,
            digests,
            stands_in,
            demo,
            is_described,
            providers,
            routes,
            config,
        };
        plan.check_links(lookup)?;
        Ok(plan)
    }

    fn check_links(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<(), PlanError> {
        let routes = self.routes.iter().flat_map(|(pattern, route)| {
            let links = route.chain.iter().chain(&route.simple_model);
            links.map(move |link| (format!("routes.{pattern}"), link))
        });
        let simple =
            self.config.degrade.simple_model.iter().map(|link| ("degrade.simple_model".to_owned(), link));
        match routes.chain(simple).find(|(_, link)| self.link(link, "x").is_none()) {
            Some((key, link)) => Err(self.unknown(key, link, lookup)),
            None => Ok(()),
        }
    }

    /// The error for an unknown provider. The environment counts only where the config lists no provider.
    fn unknown(&self, key: String, link: &str, lookup: &dyn Fn(&str) -> Option<String>) -> PlanError {
        let provider = link.split_once('/').map_or(link, |(provider, _)| provider);
        let unset = match self.is_described {
            true => Vec::new(),
            false => well_known::unset_variables(provider, lookup),
        };
        if unset.is_empty() {
            PlanError::Unknown(key, link.to_owned())
        } else {
            PlanError::Unset(key, link.to_owned(), unset)
        }
    }

    /// Every provider.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &Arc<Provider>> {
        self.providers.values()
    }

    /// What answers requests.
    pub(crate) fn backing(&self) -> Backing {
        if self.demo {
            Backing::Demo
        } else if !self.lacks_provider() {
            Backing::Providers
        } else if self.routes.is_empty() && self.config.providers.is_empty() {
            Backing::Nothing
        } else {
            Backing::Simulated
        }
    }

    /// Whether there is only the simulated provider, which answers only what names it.
    pub(crate) fn lacks_provider(&self) -> bool {
        !self.demo && self.providers.values().all(|provider| provider.kind == ProviderKind::Sim)
    }

    /// Which refusal fits a missing provider: where the file lists providers, keys of the environment are not used.
    pub(crate) fn lack(&self) -> &'static str {
        if self.config.providers.is_empty() { "no-provider" } else { "only-simulated" }
    }

    /// Whether a client's key may ask for this model. What a key may do is the same for the route's name and for the model's.
    pub(crate) fn allows(&self, key: &str, route: Option<&str>, model: &str) -> bool {
        let Some(allowed) = self.config.keys.get(key).and_then(|key| key.routes.as_ref()) else {
            return true;
        };
        allowed.iter().any(|one| route == Some(one) || fits(one, model))
    }

    /// The limits of clients' keys, by name; keys without any are not listed.
    pub(crate) fn key_limits(&self) -> HashMap<Arc<str>, KeyLimits> {
        let limits = self
            .config
            .keys
            .iter()
            .map(|(name, key)| (name.as_str().into(), KeyLimits { budget: key.budget, rate: key.rate }));
        limits
            .filter(|(_, limits): &(_, KeyLimits)| limits.budget.is_limited() || limits.rate.is_some())
            .collect()
    }

    /// The model names that can be listed.
    pub(crate) fn listed_models(&self) -> Vec<String> {
        let routes =
            self.routes.iter().filter(|(pattern, _)| !pattern.contains('*')).map(|(name, _)| name.clone());
        let chains = self.config.routes.values().flat_map(|route| route.chain.iter());
        let targets = chains.filter(|link| !link.contains("{model}")).cloned();
        // Beside real providers the simulated ones would only disturb, and a name with a placeholder is no model.
        let has_sim = self.backing() != Backing::Providers;
        let sim = koboshi_sim::names().iter().filter(|_| has_sim).map(|name| format!("sim/{}", name.name));
        let sim = sim.filter(|name| !name.contains(|letter: char| letter.is_ascii_uppercase()));
        let mut all: Vec<String> = routes.chain(targets).chain(sim).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The route for this model; none if no provider is known for it, or no model has a name of this length.
    pub(crate) fn route(&self, model: &str) -> Option<Route> {
        if model.len() > MAX_MODEL {
            return None;
        }
        // A target that a chain names is that target: what is listed must be what is served. A pattern without a slash matches model names.
        let is_target = model.split_once('/').is_some_and(|(provider, model)| self.names(provider, model));
        let is_for = |pattern: &str| {
            fits(pattern, model) && !(is_target && pattern.contains('*') && !pattern.contains('/'))
        };
        let found = self.routes.iter().find(|(pattern, _)| is_for(pattern));
        if let Some((name, route)) = found {
            let links =
                route.chain.iter().take(MAX_CHAIN).filter_map(|link| self.link(link, model)).collect();
            return Some(self.of(
                Some(name.as_str().into()),
                links,
                route.commit,
                route.guard,
                route.cache,
                route.simple_model.as_deref(),
                model,
            ));
        }
        let link = self.addressed(model).or_else(|| self.guessed(model))?;
        Some(self.of(None, vec![link], Commit::First, None, None, None, model))
    }

    #[expect(clippy::too_many_arguments, reason = "what a route states")]
    fn of(
        &self,
        name: Option<Arc<str>>,
        links: Vec<(Arc<Provider>, String)>,
        commit: Commit,
        guard: Option<GuardMode>,
        cache: Option<CacheMode>,
        simple: Option<&str>,
        model: &str,
    ) -> Route {
        let simple = simple.or(self.config.degrade.simple_model.as_deref());
        Route {
            name,
            links,
            commit,
            guard: guard.unwrap_or(self.config.guard.mode),
            cache: cache.unwrap_or(self.config.degrade.cache),
            simple: simple.and_then(|simple| self.link(simple, model)),
        }
    }

    /// `provider/model` as the client wrote it.
    fn addressed(&self, model: &str) -> Option<(Arc<Provider>, String)> {
        let (provider, model) = model.split_once('/')?;
        Some((Arc::clone(self.providers.get(provider)?), model.to_owned()))
    }

    /// What a demo uses in place of another provider.
    fn made_up(&self) -> Option<(Arc<Provider>, String)> {
        let sim = self.providers.get("sim").filter(|_| self.demo)?;
        Some((Arc::clone(sim), "ok".to_owned()))
    }

    /// A bare model name: its owner, or the only provider that exists.
    fn guessed(&self, model: &str) -> Option<(Arc<Provider>, String)> {
        if self.demo {
            return self.made_up();
        }
        let owner = well_known::owners_of(&self.models, model).find_map(|name| self.providers.get(name));
        let mut real = self.providers.values().filter(|provider| provider.kind != ProviderKind::Sim);
        let mut only = || real.next().filter(|_| real.next().is_none());
        let provider = match owner {
            Some(owner) => owner,
            None => only()?,
        };
        Some((Arc::clone(provider), model.to_owned()))
    }

    /// Links of the config that always name the same model.
    pub(crate) fn fixed_links(&self) -> impl Iterator<Item = &String> {
        let routes = self.config.routes.values();
        let links = routes.flat_map(|route| route.chain.iter().chain(&route.simple_model));
        links.chain(&self.config.degrade.simple_model).filter(|link| !link.contains("{model}"))
    }

    /// Whether the config names this model of this provider.
    pub(crate) fn names(&self, provider: &str, model: &str) -> bool {
        self.fixed_links().any(|link| link.split_once('/') == Some((provider, model)))
    }

    /// A link of a chain, with the client's model filled in.
    pub(crate) fn link(&self, link: &str, model: &str) -> Option<(Arc<Provider>, String)> {
        let (provider, wanted) = link.split_once('/')?;
        match self.providers.get(provider) {
            Some(provider) => Some((Arc::clone(provider), wanted.replace("{model}", model))),
            None => self.made_up(),
        }
    }
}

fn is_service_account(path: &Path) -> bool {
    Account::read(path).is_ok()
}
