//! The config, compiled: what is asked on every request is looked up here and not worked out again.
//!
//! A plan never changes; a reload makes a new one. Requests that have begun keep theirs.

use std::path::Path;
use std::sync::Arc;

use koboshi::guard::{DigestCache, Guard};
use koboshi::models::{Models, fits};
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, Commit, GuardMode, Named, ProviderKind, RouteConfig};

use crate::http::upstream::OriginError;
use crate::route::auth::Keys;
use crate::route::classifier::PlanClassifier;
pub(crate) use crate::route::provider::{KeyUse, Provider};
use crate::route::token::account::Account;
use crate::route::well_known;

/// Tool calls that the guard need not read again: a long turn sends all of them with every request.
const MOST_DIGESTS: usize = 20_000;
/// The longest chain.
const LONGEST_CHAIN: usize = 16;

/// The compiled config.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) classifier: PlanClassifier,
    /// What is known of models besides what the config says.
    pub(crate) models: Models,
    pub(crate) answers: crate::route::answers::Answers,
    /// None if its policy makes no sense, which the config has refused.
    pub(crate) guard: Option<Guard>,
    /// Tool calls that the guard has read, by these rules.
    pub(crate) digests: DigestCache,
    /// The config names no provider of any kind: the simulated one stands in wherever it is asked.
    pub(crate) stands_in: bool,
    /// The simulated provider answers everything, and no other is ever asked.
    pub(crate) demo: bool,
    /// The config itself describes providers, so none was taken from the environment.
    is_described: bool,
    providers: Named<Arc<Provider>>,
    routes: Vec<(String, Arc<RouteConfig>)>,
}

/// What answers the requests of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Real providers.
    Providers,
    /// The simulated provider answers everything, because that was asked for.
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

/// What one request may do, as its route says.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Provider and model, best first.
    pub(crate) links: Vec<(Arc<Provider>, String)>,
    pub(crate) commit: Commit,
    pub(crate) guard: GuardMode,
    pub(crate) cache: CacheMode,
    pub(crate) simple: Option<(Arc<Provider>, String)>,
}

impl Plan {
    /// Compiles a config. Without providers those of the environment are taken. Without those too only what names the simulated provider is
    /// answered: a gateway that lost its keys must not answer with made-up text. A demo has no other provider than the simulated one. What
    /// the plan before it has fetched for a provider is kept.
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
            // That variable is for all of Google's programs: credentials of another kind are no mistake of anybody's.
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
        // The most specific pattern first: the one with the most letters that are no star.
        routes.sort_by_key(|(pattern, _)| std::cmp::Reverse((!pattern.contains('*'), pattern.len())));
        let keys = Keys::of(&config.keys);
        // Whether it only observes is for each route to say.
        let guard = Guard::new(config.guard.policy.clone().with(|policy| {
            policy.observe = false;
        }))
        .ok();
        let digests = DigestCache::new(MOST_DIGESTS);
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
            let links = route.chain.iter().chain(&route.simple);
            links.map(move |link| (format!("routes.{pattern}"), link))
        });
        let simple = self.config.degrade.simple.iter().map(|link| ("degrade.simple_model".to_owned(), link));
        match routes.chain(simple).find(|(_, link)| self.link(link, "x").is_none()) {
            Some((key, link)) => Err(self.unknown(key, link, lookup)),
            None => Ok(()),
        }
    }

    /// Only where the config describes no provider the environment counts.
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

    /// There is no provider but the simulated one, and that answers only what names it.
    pub(crate) fn lacks_provider(&self) -> bool {
        !self.demo && self.providers.values().all(|provider| provider.kind == ProviderKind::Sim)
    }

    /// Which refusal says that there is no provider: beside those that the file lists, no key of the environment is read.
    pub(crate) fn lack(&self) -> &'static str {
        if self.config.providers.is_empty() { "no-provider" } else { "only-simulated" }
    }

    /// Names that clients may ask for, as far as they can be listed.
    pub(crate) fn listed_models(&self) -> Vec<String> {
        let routes =
            self.routes.iter().filter(|(pattern, _)| !pattern.contains('*')).map(|(name, _)| name.clone());
        let chains = self.config.routes.values().flat_map(|route| route.chain.iter());
        let targets = chains.filter(|link| !link.contains("{model}")).cloned();
        // Beside real providers the simulated ones would only be in the way, and a name with a blank to fill in is none.
        let has_sim = self.backing() != Backing::Providers;
        let sim = koboshi_sim::names().iter().filter(|_| has_sim).map(|name| format!("sim/{}", name.name));
        let sim = sim.filter(|name| !name.contains(|letter: char| letter.is_ascii_uppercase()));
        let mut all: Vec<String> = routes.chain(targets).chain(sim).collect();
        all.sort();
        all.dedup();
        all
    }

    /// What happens to requests for this model; none if nobody is known for it.
    pub(crate) fn route(&self, model: &str) -> Option<Route> {
        let found = self.routes.iter().find(|(pattern, _)| fits(pattern, model)).map(|(_, route)| route);
        if let Some(route) = found {
            let links =
                route.chain.iter().take(LONGEST_CHAIN).filter_map(|link| self.link(link, model)).collect();
            return Some(self.of(
                links,
                route.commit,
                route.guard,
                route.cache,
                route.simple.as_deref(),
                model,
            ));
        }
        let link = self.addressed(model).or_else(|| self.guessed(model))?;
        Some(self.of(vec![link], Commit::First, None, None, None, model))
    }

    fn of(
        &self,
        links: Vec<(Arc<Provider>, String)>,
        commit: Commit,
        guard: Option<GuardMode>,
        cache: Option<CacheMode>,
        simple: Option<&str>,
        model: &str,
    ) -> Route {
        let simple = simple.or(self.config.degrade.simple.as_deref());
        Route {
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

    /// What a demo answers with where another provider is meant.
    fn made_up(&self) -> Option<(Arc<Provider>, String)> {
        let sim = self.providers.get("sim").filter(|_| self.demo)?;
        Some((Arc::clone(sim), "ok".to_owned()))
    }

    /// A bare model name: its owner, or the only provider there is.
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
        let links = routes.flat_map(|route| route.chain.iter().chain(&route.simple));
        links.chain(&self.config.degrade.simple).filter(|link| !link.contains("{model}"))
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
