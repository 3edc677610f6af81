//! The request to try, as a gateway prints it when it starts: a command for the shell, with a model that this gateway answers.
//!
//! A route of the file is what its writer wants to see at work, so the first one with a plain name is asked for. A pattern needs a name
//! that fits it and that its targets have; where none is known, the simulated provider answers.

use koboshi_config::Config;
use koboshi_config::gateway::SIM;
use koboshi_config::init::OFFERS;
use serde_json::json;

use crate::shell;

/// The model that always answers.
const ALWAYS: &str = "sim/ok";
/// A route with such a name answers no chat.
const NO_CHAT: &str = "embed";

/// The command: a chat request for a model of this config, whose routes are named in the order of the file.
pub(super) fn command(url: &str, config: &Config, routes: &[String]) -> String {
    // A gateway with keys wants one of them.
    let key = if config.keys.is_empty() { "" } else { " -H 'authorization: Bearer YOUR_KEY'" };
    let model = json!(model(config, routes));
    let body = format!("{{\"model\":{model},\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}");
    format!(
        "curl -s {url}/chat/completions -H 'content-type: application/json'{key} \\\n    -d {}",
        shell::word(&body)
    )
}

/// The model to ask for.
fn model(config: &Config, routes: &[String]) -> String {
    let chats = || routes.iter().filter(|route| !route.contains(NO_CHAT));
    let named = chats().find(|route| !route.contains('*'));
    let fitting = || chats().find_map(|pattern| name_for(pattern, &config.routes.get(pattern)?.chain));
    named.cloned().or_else(fitting).unwrap_or_else(|| ALWAYS.to_owned())
}

/// A name that fits a pattern and that its first target can answer.
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
    // Whatever the name is, a target without `{model}` is asked for its own.
    fitting.or_else(|| (!is_open).then(|| pattern.replace('*', "test")))
}

/// Whether a name fits a pattern, in which `*` stands for anything.
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
    use koboshi_config::load::{Outside, load_located};

    use super::*;

    fn asked(text: &str) -> String {
        let loaded = load_located("koboshi.yaml", text, Outside::new(&|_| None)).unwrap();
        model(&loaded.config, &loaded.routes)
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
