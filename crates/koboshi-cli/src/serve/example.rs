//! The example request that a gateway prints when it starts: a command for the shell, with a model that this gateway answers.
//!
//! The user probably wants to see a route of the file at work, so the first one with a plain name is used. A pattern needs a name
//! that matches it and that its targets have; where none is known, the simulated provider is used.

use koboshi_config::Config;
use koboshi_config::gateway::SIM;
use koboshi_config::init::OFFERS;
use serde_json::json;

use crate::shell;

/// The model that always answers.
const ALWAYS: &str = "sim/ok";
/// A route with such a name answers no chat.
const NO_CHAT: &str = "embed";

/// The command: a chat request for a model of this config, whose routes are named in the order of the file, else for one of these providers.
/// With it, whether a simulated model stands in for theirs.
pub(super) fn command(url: &str, config: &Config, routes: &[String], providers: &[String]) -> (String, bool) {
    // A gateway with keys needs one of them.
    let key = if config.keys.is_empty() { "" } else { " -H 'authorization: Bearer YOUR_KEY'" };
    let model = model(config, routes, providers);
    let stands_in = model == ALWAYS && providers.iter().any(|name| name != SIM);
    let model = json!(model);
    let body = format!("{{\"model\":{model},\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}");
    let command = format!(
        "curl -s {url}/chat/completions -H 'content-type: application/json'{key} \\\n    -d {}",
        shell::word(&body)
    );
    (command, stands_in)
}

/// The model of the request.
fn model(config: &Config, routes: &[String], providers: &[String]) -> String {
    let chats = || routes.iter().filter(|route| !route.contains(NO_CHAT));
    let named = chats().find(|route| !route.contains('*'));
    let fitting = || chats().find_map(|pattern| name_for(pattern, &config.routes.get(pattern)?.chain));
    // Without routes every model of a provider can be asked for by its whole name.
    let own = || providers.iter().filter(|_| routes.is_empty()).find_map(|name| usual_model(name));
    named.cloned().or_else(fitting).or_else(own).unwrap_or_else(|| ALWAYS.to_owned())
}

/// A model that a provider of this name has.
fn usual_model(provider: &str) -> Option<String> {
    let offer = OFFERS.iter().find(|offer| offer.name == provider && !offer.stand_in.is_empty())?;
    Some(format!("{provider}/{}", offer.stand_in))
}

/// A name that matches a pattern and that its first target can answer.
fn name_for(pattern: &str, chain: &[String]) -> Option<String> {
    let (provider, model) = chain.first()?.split_once('/')?;
    if provider == SIM {
        return None;
    }
    let is_open = model.contains("{model}");
    let usual = OFFERS.iter().filter(|offer| offer.patterns.contains(&pattern) || offer.name == provider);
    let usual = usual.map(|offer| offer.stand_in).filter(|model| !model.is_empty());
    let own = Some(model).filter(|_| !is_open);
    let fitting = own.into_iter().chain(usual).find(|name| fits(pattern, name)).map(str::to_owned);
    // A target without `{model}` is asked for its own model, whatever the name is.
    fitting.or_else(|| (!is_open).then(|| pattern.replace('*', "test")))
}

/// Whether a name matches a pattern, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use koboshi_config::load::{Environment, load_located};

    use super::*;

    fn asked(text: &str) -> String {
        let loaded = load_located("koboshi.yaml", text, Environment::new(&|_| None)).unwrap();
        model(&loaded.config, &loaded.routes, &[])
    }

    #[test]
    fn without_routes_a_model_of_the_first_provider_is_asked_for() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of = |providers: &[&str]| command("http://x/v1", &Config::default(), &[], &names(providers));
        let (command, stands_in) = of(&["openai", "sim"]);
        assert!(command.contains("\"model\":\"openai/gpt-") && !stands_in, "{command}");
        let (command, stands_in) = of(&["my-own", "sim"]);
        assert!(command.contains("sim/ok") && stands_in, "what stands in is said: {command}");
        assert!(!of(&["sim"]).1, "nothing else is there that it could stand in for");
    }

    #[test]
    fn the_first_route_of_the_file_that_is_no_pattern_is_asked_for() {
        assert_eq!(asked("routes: {'*': [openai/gpt-4o], talk: [sim/ok], brief: [sim/ok]}"), "talk");
        assert_eq!(asked("routes: {text-embedding-3: [openai/x], talk: [sim/ok]}"), "talk", "no chat");
        assert_eq!(asked(""), "sim/ok");
    }

    #[test]
    fn a_pattern_is_asked_for_a_name_that_fits_it() {
        for (route, name) in [
            ("'*': [openai/gpt-4o-mini]", "gpt-4o-mini"),
            ("'*': ['ollama/{model}', openai/gpt-4o]", "llama3.2"),
            ("'gpt-*': ['azure/{model}']", "gpt-4o"),
            ("'claude-*': [openai/gpt-4o]", "claude-sonnet-4-5"),
            ("'team-*-large': [openai/gpt-4o]", "team-test-large"),
            ("'team-*': ['openai/{model}']", "sim/ok"),
            ("'*': [sim/fail-503, sim/ok]", "sim/ok"),
        ] {
            assert_eq!(asked(&format!("routes: {{{route}}}")), name, "{route}");
        }
    }

    #[test]
    fn names_fit_as_the_gateway_reads_patterns() {
        assert!(fits("*", "") && fits("a*b*c", "a-b-c") && fits("gpt-*", "gpt-") && fits("m", "m"));
        assert!(!fits("a*b*c", "a-c") && !fits("gpt-*", "claude") && !fits("m", "mm") && !fits("*-x", "x"));
    }
}
