//! What is known of a target's model, and whether that suffices for a request.
//!
//! The facts come from the config, then from the user's models file, then from the built-in one. They are for preflight and for writing
//! requests: a target that surely cannot serve a request is skipped. Unknown abilities count as present, because a wrong no is worse than a
//! refusal by the provider, which is handled anyway. Only prefill counts as absent unless known: a model without it begins another answer
//! silently, and its text does not differ from a continuation. So the built-in facts about prefill
//! apply at Anthropic's own address alone; for every other provider, also the simulated one, only the user can state it.

use koboshi::models::{Entry, Facts, Models};
use koboshi_config::Config;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::chat::{JsonNeed, Needs};

use crate::http::upstream::Origin as UpstreamOrigin;

/// Why a target cannot serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The conversation is longer than its window: tokens needed, size of the window.
    Context(u64, u64),
    Tools,
    Images,
    Json,
}

/// Where a fact of a model comes from.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'m> {
    /// The entry of `models` in the config with this name.
    Config(&'m str),
    /// An entry of a models file.
    File(&'m Entry),
}

/// The facts stated of a model, the strongest first.
pub fn stated<'m, 'n>(
    provider: &'n str,
    kind: ProviderKind,
    model: &'n str,
    models: &'m Models,
    config: &'m Config,
) -> impl Iterator<Item = (Facts, Origin<'m>)> + use<'m, 'n> {
    let by_config = config.model(provider, model).map(|(name, said)| (said.facts, Origin::Config(name)));
    let is_simulated = kind == ProviderKind::Sim;
    let continues = kind == ProviderKind::Anthropic && is_at_anthropic(provider, config);
    let entries = models.entries(provider, model).filter(move |entry| !is_simulated || entry.file.is_some());
    let by_files = entries.map(move |entry| {
        let mut facts = entry.facts;
        if entry.file.is_none() && !continues {
            facts.prefill = None;
        }
        (facts, Origin::File(entry))
    });
    by_config.into_iter().chain(by_files)
}

/// Whether a provider of Anthropic's kind is Anthropic itself. It is not known whether a relay forwards the beginning of an answer as intended.
fn is_at_anthropic(provider: &str, config: &Config) -> bool {
    let address = config.providers.get(provider).and_then(|one| one.base_url.as_deref());
    address.is_none_or(|address| {
        UpstreamOrigin::parse(address).is_ok_and(|origin| origin.host() == "api.anthropic.com")
    })
}

/// What is known of a model.
pub(crate) fn facts_of(
    provider: &str,
    kind: ProviderKind,
    model: &str,
    models: &Models,
    config: &Config,
) -> Facts {
    stated(provider, kind, model, models, config).fold(Facts::default(), |known, (said, _)| known.or(said))
}

/// What a model lacks for a request, if it surely lacks something.
pub(crate) fn lack(facts: &Facts, needs: &Needs) -> Option<Lack> {
    if needs.tools && facts.tools == Some(false) {
        return Some(Lack::Tools);
    }
    if needs.images && facts.images == Some(false) {
        return Some(Lack::Images);
    }
    if needs.json != JsonNeed::None && facts.json == Some(false) {
        return Some(Lack::Json);
    }
    // The estimate is rough, so only what is far above the window is refused without asking.
    let window = facts.context_window?;
    let max_output = facts.max_output_tokens.unwrap_or(u64::MAX);
    let asked = needs.input_tokens.saturating_add(needs.output.unwrap_or(0).min(max_output));
    (asked > window.saturating_add(window / 4)).then_some(Lack::Context(asked, window))
}

#[cfg(test)]
mod tests {
    use koboshi::models::ModelSource;
    use koboshi_config::gateway::{ModelConfig, ProviderConfig};

    use super::*;

    fn of(kind: ProviderKind, model: &str) -> Facts {
        facts_of("openai", kind, model, &Models::builtin().unwrap(), &Config::default())
    }

    #[test]
    fn the_config_knows_better_than_the_file_than_the_built_in_table() {
        let mut config = Config::default();
        let mut say = |name: &str, change: fn(&mut Facts)| {
            let facts = Facts::default().with(change);
            config.models.insert(name.to_owned(), ModelConfig { facts, ..ModelConfig::default() });
        };
        say("openai/gpt-4o*", |facts| facts.context_window = Some(10));
        say("openai/gpt-4o-mini", |facts| facts.prefill = Some(true));
        let text =
            "models: [{match: gpt-4o*, context_window: 20, images: false}, {match: relayed, prefill: true}]";
        let models = Models::with_user(&[ModelSource { name: "models.yaml", text }]).unwrap();
        let of = |model: &str| facts_of("openai", ProviderKind::Openai, model, &models, &config);
        let large = of("gpt-4o");
        assert_eq!(
            (large.context_window, large.images, large.max_output_tokens),
            (Some(10), Some(false), Some(16_384))
        );
        let mini = of("gpt-4o-mini");
        assert_eq!(
            (mini.context_window, mini.prefill),
            (Some(20), Some(true)),
            "one entry of the config holds"
        );
        assert_eq!(of("relayed").prefill, Some(true), "what the user says holds for relays too");
        assert_eq!(of("never-heard-of"), Facts::default());
    }

    #[test]
    fn of_a_relay_it_is_not_known_that_it_continues_answers() {
        assert_eq!(of(ProviderKind::Anthropic, "claude-3-5-haiku-latest").prefill, Some(true));
        assert_eq!(of(ProviderKind::Openai, "claude-3-5-haiku-latest").prefill, None);
        assert_eq!(
            of(ProviderKind::Sim, "ok").prefill,
            None,
            "it begins another answer than a real provider"
        );
        let at = |address: &str| {
            let mut config = Config::default();
            let mut provider = ProviderConfig::new(ProviderKind::Anthropic);
            provider.base_url = Some(address.to_owned());
            config.providers.insert("p".to_owned(), provider);
            let models = Models::builtin().unwrap();
            facts_of("p", ProviderKind::Anthropic, "claude-3-5-haiku-latest", &models, &config).prefill
        };
        assert_eq!(at("https://api.anthropic.com/v1"), Some(true));
        for relay in ["http://127.0.0.1:1/v1", "https://api.anthropic.com.relay.example/v1"] {
            assert_eq!(at(relay), None, "{relay}");
        }
        assert_eq!(of(ProviderKind::Sim, "gpt-4").context_window, None, "a name of the simulated provider");
    }

    #[test]
    fn only_what_is_surely_impossible_is_refused() {
        let small = of(ProviderKind::Openai, "gpt-4");
        let needs = Needs { input_tokens: 9000, images: true, ..Needs::default() };
        assert_eq!(lack(&small, &needs), Some(Lack::Images));
        let long = Needs { input_tokens: 20_000, ..Needs::default() };
        assert_eq!(lack(&small, &long), Some(Lack::Context(20_000, 8192)));
        let near = Needs { input_tokens: 9000, ..Needs::default() };
        assert_eq!(lack(&small, &near), None, "an estimate is no proof");
        assert_eq!(lack(&Facts::default(), &long), None);
    }
}
