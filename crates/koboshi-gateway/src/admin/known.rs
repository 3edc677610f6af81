//! Resolves a key that an operator writes to the keys that exist.
//!
//! An operator writes `model:gpt-4o`, `account:openai` or `target:openai/gpt-4o`. Knowledge is stored under narrower names
//! (`model:openai/gpt-4o`, `account:openai#1`, `target:openai/gpt-4o#1f2e3d4c`), and a cooldown under a name that no target has would change
//! nothing. So gateway and command line both resolve every order here: to the keys of existing targets, or to a refusal with similar
//! names.
//!
//! Keys are known from a config (providers and the links of routes), from a running gateway (also models that clients asked for), and from
//! the records of the store. This module reads no file and calls no one.

use jiff::Timestamp;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi_config::Config;
use koboshi_store::{Ledger, Named, Record};
use serde::{Deserialize, Serialize};

use crate::route::auth::fingerprint;
use crate::route::plan::Plan;
use crate::route::target::Scopes;
use crate::shared::state::SharedState;

/// How many similar names are suggested.
const MAX_SUGGESTIONS: usize = 5;
/// How many targets are listed. Model names come from clients, so there is a bound.
const MAX_TARGETS: usize = 1000;

/// A target of a route: its name, and all keys that stop it.
type RouteTarget = (String, Vec<ScopeKey>);

/// The keys that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKeys {
    targets: Vec<Scopes>,
    /// Names that clients ask for, and where they lead.
    routes: Vec<(String, Vec<String>)>,
    /// Other keys that have records, such as agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learned: Vec<ScopeKey>,
}

/// What an operator means by a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// These keys of targets.
    Keys(Vec<ScopeKey>),
    /// No target has it. These are similar, best first.
    Unknown(Vec<String>),
    /// No target is known at all, so the key cannot be checked.
    Unknowable,
}

impl KnownKeys {
    /// What a config names: its providers with their keys and accounts, and the links of its routes.
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        let mut targets = Vec::new();
        for provider in plan.providers() {
            targets.extend(provider.keys.iter().map(|key| Scopes::of_key(provider, key)));
        }
        for link in plan.fixed_links() {
            if let Some((provider, model)) = plan.link(link, "") {
                targets.extend(provider.keys.iter().map(|key| Scopes::of_target(&provider, &model, key)));
            }
        }
        let routes = plan.config.routes.iter();
        let routes = routes.map(|(name, route)| (name.clone(), route.chain.clone())).collect();
        Self { targets, routes, learned: Vec::new() }.tidied()
    }

    /// What a running gateway knows: its config, and what clients asked for.
    pub(crate) fn of_state(state: &SharedState, plan: &Plan) -> Self {
        let mut known = Self::of_plan(plan);
        known.targets.extend(state.targets.all().iter().map(|target| target.scopes.clone()));
        known.tidied()
    }

    fn tidied(mut self) -> Self {
        self.targets.sort_by(|one, two| one.order().cmp(&two.order()));
        self.targets.dedup();
        self.targets.truncate(MAX_TARGETS);
        self
    }

    /// Adds what another one knows.
    pub fn add(&mut self, other: Self) {
        self.targets.extend(other.targets);
        self.routes.extend(other.routes);
        self.learned.extend(other.learned);
        self.targets.sort_by(|one, two| one.order().cmp(&two.order()));
        self.targets.dedup();
        // Two gateways with one config name the same routes.
        self.routes.sort();
        self.routes.dedup();
    }

    /// Each route whose targets are all known, with its targets: their names, and all keys that stop them. A link whose model a client
    /// names counts where the route itself is such a name.
    #[must_use]
    pub fn routes(&self) -> Vec<(String, Vec<RouteTarget>)> {
        let mut routes: Vec<_> = self
            .routes
            .iter()
            .filter_map(|(name, chain)| {
                let chain: Option<Vec<_>> =
                    chain.iter().map(|link| self.targets_of(&link.replace("{model}", name))).collect();
                Some((name.clone(), chain?.concat()))
            })
            .collect();
        routes.sort();
        routes.dedup();
        routes
    }

    /// The targets of a link, one for each API key; none where it is not known.
    fn targets_of(&self, link: &str) -> Option<Vec<RouteTarget>> {
        let of_link = |scopes: &&Scopes| {
            scopes.target.is_some() && scopes.model.as_ref().is_some_and(|model| model.name() == link)
        };
        let keys = |scopes: &Scopes| scopes.cooldown_keys().chain(&scopes.limits).cloned().collect();
        let found: Vec<_> =
            self.targets.iter().filter(of_link).map(|scopes| (link.to_owned(), keys(scopes))).collect();
        (!found.is_empty()).then_some(found)
    }

    /// Adds the keys of a store's records. A cooldown that only an operator wrote and that is over proves nothing: it may be a mistyped
    /// name.
    pub fn add_records(&mut self, records: &[Named], now: Timestamp) {
        let learned = |(slot, record): &&Named| match record {
            // The config of the one who asks may not name the agent: a record is evidence enough.
            _ if slot.key().level() == ScopeLevel::Agent => true,
            Record::Cooldown(cooldown) => is_learned(cooldown, now),
            Record::Holds(holds) => *holds != Holds::default(),
            _ => true,
        };
        self.learn(records.iter().filter(learned).map(|(slot, _)| slot.key().clone()));
    }

    /// Adds the keys of a ledger, which has them in memory.
    pub(crate) fn add_ledger(&mut self, ledger: &Ledger, now: Timestamp) {
        let learned = |key: &ScopeKey| {
            let agent = key.level() == ScopeLevel::Agent;
            ledger.cooldown(key).is_some_and(|cooldown| agent || is_learned(&cooldown, now))
                || ledger.holds(key).is_some_and(|holds| *holds != Holds::default())
                || !ledger.breakers(key).is_empty()
        };
        self.learn(ledger.keys().into_iter().filter(learned));
    }

    /// Adds the agents of a config, each in each of its projects, and the accounts that they use.
    pub fn add_agents(&mut self, config: &Config) {
        let agents = config.agents.iter();
        let agents = agents
            .flat_map(|(name, agent)| agent.projects.iter().map(move |project| (name, project)))
            .filter_map(|(name, project)| ScopeKey::agent(name, project).ok());
        let of_agents = config.agents.values().flat_map(|agent| &agent.account);
        let accounts = config.accounts.keys().chain(of_agents);
        let accounts = accounts.filter_map(|name| ScopeKey::new(ScopeLevel::Account, name).ok());
        self.learn(agents.chain(accounts));
    }

    /// Leaves out the API key with this value, which stands for one that is not known here, and its targets. What they share with others stays.
    #[must_use]
    pub fn without_key(mut self, value: &str) -> Self {
        let print = fingerprint(value);
        let is_of_it = |key: &ScopeKey| key.name().ends_with(&print);
        for scopes in &mut self.targets {
            scopes.target = scopes.target.take().filter(|key| !is_of_it(key));
            scopes.key = scopes.key.take().filter(|key| !is_of_it(key));
        }
        self.tidied()
    }

    fn learn(&mut self, keys: impl Iterator<Item = ScopeKey>) {
        self.learned.extend(keys);
        self.learned.sort();
        self.learned.dedup();
    }

    /// Whether nothing is known at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.learned.is_empty()
    }

    /// What an operator means by this key.
    #[must_use]
    pub fn meaning(&self, asked: &ScopeKey) -> Meaning {
        let mut keys: Vec<ScopeKey> = self.meant(asked).collect();
        keys.sort();
        keys.dedup();
        if !keys.is_empty() {
            return Meaning::Keys(keys);
        }
        if self.is_empty() { Meaning::Unknowable } else { Meaning::Unknown(self.near(asked)) }
    }

    fn meant<'k>(&'k self, asked: &'k ScopeKey) -> Box<dyn Iterator<Item = ScopeKey> + 'k> {
        if self.keys().any(|key| key == asked) {
            return Box::new(std::iter::once(asked.clone()));
        }
        let name = asked.name();
        let is_target = asked.level() == ScopeLevel::Target;
        // An agent without a project stands for all of its projects.
        let is_project = move |key: &ScopeKey| {
            asked.level() == ScopeLevel::Agent
                && key.level() == ScopeLevel::Agent
                && key.name().split_once('/').is_some_and(|(agent, _)| agent == name)
        };
        let learned = self
            .learned
            .iter()
            .filter(move |key| (is_target && asked.covers(key)) || is_project(key))
            .cloned();
        Box::new(
            self.targets
                .iter()
                .flat_map(move |scopes| {
                    let of_provider =
                        scopes.provider.as_ref().is_some_and(|provider| provider.name() == name);
                    let found = match asked.level() {
                        ScopeLevel::Target => scopes.target.as_ref().filter(|key| asked.covers(key)),
                        ScopeLevel::Model => {
                            scopes.model.as_ref().filter(|_| scopes.model_name() == Some(name))
                        }
                        ScopeLevel::Account => scopes.account.as_ref().filter(|_| of_provider),
                        ScopeLevel::Key => scopes.key.as_ref().filter(|_| of_provider),
                        _ => None,
                    };
                    found.cloned()
                })
                .chain(learned),
        )
    }

    /// Every key under which a cooldown has an effect.
    fn keys(&self) -> impl Iterator<Item = &ScopeKey> {
        self.targets.iter().flat_map(Scopes::cooldown_keys).chain(&self.learned)
    }

    /// Whether it belongs to an API key that its provider no longer has. All API keys of a provider are listed, whatever its models; where
    /// none is, the answer is no.
    #[must_use]
    pub fn has_replaced(&self, key: &ScopeKey) -> bool {
        let of_key = |provider: &str, print: &str| format!("{provider}/{print}");
        let (provider, name) = match key.level() {
            ScopeLevel::Key => match key.name().rsplit_once('/') {
                Some((provider, _)) => (provider, key.name().to_owned()),
                None => return false,
            },
            ScopeLevel::Target => match (key.name().split_once('/'), key.name().rsplit_once('#')) {
                (Some((provider, _)), Some((_, print))) => (provider, of_key(provider, print)),
                _ => return false,
            },
            _ => return false,
        };
        let is_of = |scopes: &&Scopes| {
            let own = scopes.provider.as_ref().is_some_and(|known| known.name() == provider);
            own && scopes.target.is_none()
        };
        let mut keys = self.targets.iter().filter(is_of).filter_map(|scopes| scopes.key.as_ref()).peekable();
        keys.peek().is_some() && !keys.any(|known| known.name() == name)
    }

    /// The keys of limits that apply to targets under these keys: a resume ends those too.
    #[must_use]
    pub fn limits_under(&self, keys: &[ScopeKey]) -> Vec<ScopeKey> {
        let under = |scopes: &&Scopes| scopes.cooldown_keys().any(|key| keys.contains(key));
        self.targets.iter().filter(under).filter_map(|scopes| scopes.limits.clone()).collect()
    }

    /// The keys of the targets under these keys: a resume also ends what is recorded against one target alone.
    #[must_use]
    pub fn targets_under(&self, keys: &[ScopeKey]) -> Vec<ScopeKey> {
        let under = |scopes: &&Scopes| scopes.cooldown_keys().any(|key| keys.contains(key));
        self.targets.iter().filter(under).filter_map(|scopes| scopes.target.clone()).collect()
    }

    /// The keys that keep a target with one of these keys from being used: its account, its provider and so on.
    #[must_use]
    pub fn above(&self, keys: &[ScopeKey]) -> Vec<ScopeKey> {
        let is_target = |scopes: &&Scopes| scopes.target.as_ref().is_some_and(|target| keys.contains(target));
        let targets = self.targets.iter().filter(is_target);
        let mut all: Vec<ScopeKey> =
            targets.flat_map(|scopes| scopes.cooldown_keys().chain(&scopes.limits).cloned()).collect();
        all.extend(keys.iter().cloned());
        all.sort();
        all.dedup();
        all
    }

    /// The keys that keep targets under these keys from being used: of the targets themselves, their accounts, models, providers and limits.
    #[must_use]
    pub fn stopping(&self, keys: &[ScopeKey]) -> Vec<ScopeKey> {
        fn stopped_by(scopes: &Scopes) -> impl Iterator<Item = &ScopeKey> {
            scopes.cooldown_keys().chain(&scopes.limits)
        }
        let is_under = |scopes: &&Scopes| stopped_by(scopes).any(|key| keys.contains(key));
        let under = self.targets.iter().filter(is_under);
        let mut all: Vec<ScopeKey> = under.flat_map(stopped_by).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Similar names, as an operator would write them.
    fn near(&self, asked: &ScopeKey) -> Vec<String> {
        if let Some((_, chain)) = self.routes.iter().find(|(name, _)| name == asked.name()) {
            let fixed = chain.iter().filter(|link| !link.contains("{model}"));
            return fixed.map(|link| format!("target:{link}")).take(MAX_SUGGESTIONS).collect();
        }
        let name = asked.name().to_lowercase();
        let mut all: Vec<(bool, usize, String)> = Vec::new();
        for key in self.keys() {
            let (text, bare) = (written(key), key.name().to_lowercase());
            let bare = bare.split('#').next().unwrap_or_default();
            let last = bare.rsplit('/').next().unwrap_or_default();
            let far = strsim::damerau_levenshtein(bare, &name).min(strsim::damerau_levenshtein(last, &name));
            let part = name.len() > 2 && last.len() > 2 && (bare.contains(&name) || name.contains(last));
            if part || far <= name.len() / 3 {
                all.push((key.level() != asked.level(), far, text));
            }
        }
        if all.is_empty() {
            let of_kind = self.keys().filter(|key| key.level() == asked.level());
            all.extend(of_kind.map(|key| (false, 0, written(key))));
        }
        all.sort();
        let mut near: Vec<String> = all.into_iter().map(|(_, _, key)| key).collect();
        near.dedup();
        near.truncate(MAX_SUGGESTIONS);
        near
    }
}

/// A key as an operator writes it: a target without the name of its API key.
fn written(key: &ScopeKey) -> String {
    let text = key.to_string();
    match (key.level(), text.split_once('#')) {
        (ScopeLevel::Target, Some((target, _))) => target.to_owned(),
        _ => text,
    }
}

/// Whether more is recorded about a key than an operator's cooldown that is over.
fn is_learned(cooldown: &Cooldown, now: Timestamp) -> bool {
    let told = cooldown.by_operator.as_ref();
    cooldown.rest.is_some() || told.is_none_or(|told| now < told.ends(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::cooldown::{Class, CooldownPolicy, Failure};
    use koboshi_store::Slot;

    fn key(text: &str) -> ScopeKey {
        text.parse().unwrap()
    }

    fn scopes(provider: &str, account: &str, model: &str, print: &str) -> Scopes {
        Scopes {
            target: Some(key(&format!("target:{provider}/{model}#{print}"))),
            key: Some(key(&format!("key:{provider}/{print}"))),
            account: Some(key(&format!("account:{account}"))),
            model: Some(key(&format!("model:{provider}/{model}"))),
            provider: Some(key(&format!("provider:{provider}"))),
            limits: Some(key(&format!("model:{account}/{model}"))),
        }
    }

    fn known() -> KnownKeys {
        let targets = vec![
            scopes("openai", "openai#1", "gpt-4o", "aa"),
            scopes("openai", "openai#2", "gpt-4o", "bb"),
            scopes("azure", "work", "gpt-4o", "cc"),
            scopes("sim", "sim/ok", "ok", "none"),
        ];
        let routes = vec![("assistant".to_owned(), vec!["sim/ok".to_owned(), "openai/{model}".to_owned()])];
        KnownKeys { targets, routes, learned: Vec::new() }
    }

    fn meant(asked: &str) -> Vec<String> {
        match known().meaning(&key(asked)) {
            Meaning::Keys(keys) => keys.iter().map(ToString::to_string).collect(),
            other => panic!("{asked}: {other:?}"),
        }
    }

    #[test]
    fn a_key_means_what_a_person_expects() {
        for (asked, keys) in [
            ("target:sim/ok", vec!["target:sim/ok#none"]),
            ("target:openai/gpt-4o", vec!["target:openai/gpt-4o#aa", "target:openai/gpt-4o#bb"]),
            ("target:openai/gpt-4o#bb", vec!["target:openai/gpt-4o#bb"]),
            ("model:gpt-4o", vec!["model:azure/gpt-4o", "model:openai/gpt-4o"]),
            ("model:azure/gpt-4o", vec!["model:azure/gpt-4o"]),
            ("account:openai", vec!["account:openai#1", "account:openai#2"]),
            ("account:work", vec!["account:work"]),
            ("account:azure", vec!["account:work"]),
            ("account:sim", vec!["account:sim/ok"]),
            ("key:openai", vec!["key:openai/aa", "key:openai/bb"]),
            ("provider:azure", vec!["provider:azure"]),
        ] {
            assert_eq!(meant(asked), keys, "{asked}");
        }
    }

    #[test]
    fn what_two_gateways_with_one_config_know_is_known_once() {
        let [mut once, mut twice] = [known(), known()];
        once.add(KnownKeys::default());
        twice.add(known());
        assert_eq!(twice, once);
    }

    #[test]
    fn a_key_that_no_target_has_is_answered_with_near_ones() {
        for (asked, near) in [
            ("provider:opanai", "provider:openai"),
            ("model:gpt4o", "model:openai/gpt-4o"),
            ("target:gpt-4o", "target:openai/gpt-4o"),
            ("account:assistant", "target:sim/ok"),
            ("provider:zzzzzzzz", "provider:azure"),
        ] {
            let Meaning::Unknown(names) = known().meaning(&key(asked)) else { panic!("{asked}") };
            assert!(names.iter().any(|name| name == near), "{asked}: {names:?}");
            assert!(
                names.len() <= MAX_SUGGESTIONS && !names.iter().any(|name| name.contains("#aa")),
                "{names:?}"
            );
        }
        assert_eq!(KnownKeys::default().meaning(&key("provider:openai")), Meaning::Unknowable);
        assert_eq!(
            known().meaning(&key("agent:a/b")),
            Meaning::Unknown(Vec::new()),
            "a gateway knows no agents"
        );
    }

    #[test]
    fn what_an_operator_wrote_and_is_over_proves_nothing() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut told = Cooldown::default();
        told.cool(at(100), "", at(0));
        let (mut failed, seed) = (Cooldown::default(), koboshi::chance::Seed::new(1));
        failed.fail(&Failure::of_class(Class::Quota), &CooldownPolicy::default(), at(0), seed);
        let records = [
            (Slot::cooldown(key("account:told")), Record::Cooldown(told)),
            (Slot::cooldown(key("account:failed")), Record::Cooldown(failed)),
        ];
        let knows = |asked: &str, now| {
            let mut known = known();
            known.add_records(&records, at(now));
            known.meaning(&key(asked)) == Meaning::Keys(vec![key(asked)])
        };
        assert!(knows("account:failed", 1_000_000));
        assert!(knows("account:told", 50), "it may be made longer");
        assert!(!knows("account:told", 200));
    }

    #[test]
    fn limits_and_wider_keys_belong_to_a_target() {
        let known = known();
        let keys = vec![key("target:openai/gpt-4o#aa")];
        assert_eq!(known.limits_under(&keys), [key("model:openai#1/gpt-4o")]);
        let above = known.above(&keys);
        assert!(
            above.contains(&key("provider:openai")) && above.contains(&key("account:openai#1")),
            "{above:?}"
        );
        assert!(!above.contains(&key("account:openai#2")), "{above:?}");
        let stopping = known.stopping(&[key("provider:openai")]);
        assert!(stopping.contains(&key("key:openai/bb")) && stopping.contains(&key("account:openai#1")));
        assert!(!stopping.contains(&key("account:work")), "{stopping:?}");
    }
}
