//! Every choice of providers gives a file that can be used.

use std::collections::BTreeMap;

use super::*;
use crate::config::Config;
use crate::load::{Environment, LoadedConfig, load_located};

/// Everything that a variable of the table may hold.
fn value(name: &str) -> String {
    match name {
        "AZURE_OPENAI_ENDPOINT" => "https://my-resource.openai.azure.com",
        "OLLAMA_HOST" => "localhost",
        "GOOGLE_CLOUD_PROJECT" => "my-project-1",
        _ => "key-1",
    }
    .to_owned()
}

fn environment(names: &[&str]) -> impl Fn(&str) -> Option<String> {
    let set: BTreeMap<String, String> = names.iter().map(|name| ((*name).to_owned(), value(name))).collect();
    move |name| set.get(name).cloned()
}

fn loaded(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> LoadedConfig {
    let loaded = load_located("koboshi.yaml", text, Environment::new(lookup));
    loaded.unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

fn written(names: &[&str]) -> (String, LoadedConfig) {
    let lookup = environment(names);
    let text = text(&found(&lookup), Language::En);
    let loaded = loaded(&text, &lookup);
    (text, loaded)
}

#[test]
fn whichever_keys_are_there_the_file_can_be_used_in_both_languages() {
    // Every one, every two, and all of them.
    let all = (1_u32 << OFFERS.len()) - 1;
    for chosen in (0..=all).filter(|chosen| chosen.count_ones() <= 2 || *chosen == all) {
        let offers: Vec<&'static Offer> = OFFERS
            .iter()
            .enumerate()
            .filter(|(at, _)| chosen & (1 << at) != 0)
            .map(|(_, offer)| offer)
            .collect();
        let telling = |offer: &&'static Offer| offer.keys.first().copied().or(offer.address);
        let also = offers.iter().flat_map(|offer| offer.also).copied();
        let names: Vec<&str> = offers.iter().filter_map(telling).chain(also).collect();
        let lookup = environment(&names);
        let choices = found(&lookup);
        assert_eq!(choices.len(), offers.len());
        let en = loaded(&text(&choices, Language::En), &lookup);
        assert!(en.warnings.is_empty(), "{:?}", en.warnings);
        let ja = loaded(&text(&choices, Language::Ja), &lookup).config;
        assert_eq!(ja.language, Some(Language::Ja), "who chose it for the file wants it for the messages");
        assert_eq!(en.config, Config { language: None, ..ja }, "comments change nothing else");
        assert_eq!(en.config.providers.len(), offers.len());
        assert!(!en.config.routes.is_empty());
    }
}

#[test]
fn without_a_key_there_is_a_route_that_answers() {
    let (_, loaded) = written(&[]);
    assert!(loaded.config.providers.is_empty());
    assert_eq!(loaded.config.routes["demo"].chain, ["sim/fail-503", "sim/ok"]);
}

#[test]
fn two_vendors_stand_in_for_each_other() {
    let (_, LoadedConfig { config, .. }) = written(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]);
    assert_eq!(config.routes["gpt-*"].chain, ["openai/{model}", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(config.routes["claude-*"].chain, ["anthropic/{model}", "openai/gpt-4o"]);
    assert!(!config.routes.contains_key("demo"));
    let (_, LoadedConfig { config, .. }) = written(&["ANTHROPIC_API_KEY"]);
    assert_eq!(config.routes["claude-*"].chain, ["anthropic/{model}", "anthropic/claude-haiku-4-5"]);
    assert_eq!(config.providers.len(), 1, "no provider without a key");
    let (_, LoadedConfig { config, .. }) =
        written(&["OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"]);
    assert_eq!(config.routes["gpt-*"].chain, ["openai/{model}", "azure/{model}", "openai/gpt-4o-mini"]);
}

#[test]
fn what_stands_in_comments_is_good_too() {
    let lookup = |name: &str| Some(value(name));
    let choices: Vec<Choice> =
        OFFERS.iter().map(|offer| Choice { offer, variable: None, base_url: None }).collect();
    for choices in [choices, Vec::new()] {
        for language in [Language::En, Language::Ja] {
            let uncommented: String = text(&choices, language)
                .lines()
                .map(|line| match line.trim_start().strip_prefix("# ").filter(|rest| is_yaml(rest)) {
                    Some(rest) => format!("{}{rest}\n", &line[..line.len() - line.trim_start().len()]),
                    None => format!("{line}\n"),
                })
                .collect();
            let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
            let config = loaded(
                &uncommented.replace("put-the-64-digits-here", hash).replace("ここに64桁のハッシュ", hash),
                &lookup,
            )
            .config;
            assert!(config.keys.contains_key("alice") && config.routes.contains_key("demo"), "{uncommented}");
            assert!(config.providers.len() >= 4, "{uncommented}");
        }
    }
}

/// Whether a comment is a key that was commented out.
fn is_yaml(comment: &str) -> bool {
    let key = comment.trim_start().split(':').next().unwrap();
    comment.contains(':') && !key.contains(' ') && key.is_ascii() && !key.contains('.')
}

#[test]
fn other_addresses_are_taken_over_and_our_own_is_not() {
    let with = |name: &str, address: &str| {
        let (key, address, name) = (
            format!("{}_API_KEY", name.to_uppercase()),
            address.to_owned(),
            format!("{}_BASE_URL", name.to_uppercase()),
        );
        let lookup = move |asked: &str| match asked {
            asked if asked == key => Some("k".to_owned()),
            asked if asked == name => Some(address.clone()),
            _ => None,
        };
        let config = loaded(&text(&found(&lookup), Language::En), &lookup).config;
        config.providers.values().next().unwrap().base_url.clone()
    };
    assert_eq!(with("openai", "https://llm.example/v1/").as_deref(), Some("https://llm.example/v1"));
    assert_eq!(with("anthropic", "https://llm.example").as_deref(), Some("https://llm.example/v1"));
    assert_eq!(
        with("openai", "https://llm.example").as_deref(),
        Some("https://llm.example"),
        "as it was written"
    );
    assert_eq!(with("openai", "http://127.0.0.1:4141/v1"), None);
    assert_eq!(with("openai", "http://user:pw@host/v1"), None, "a password is no part of a file");
}

#[test]
fn a_provider_without_keys_is_used_when_it_is_chosen_and_offered_when_it_has_an_address() {
    let ollama = OFFERS.iter().find(|offer| offer.name == "ollama").unwrap();
    let chosen = detect(ollama, &|_| None);
    assert!(chosen.is_ready() && !chosen.is_found(), "it needs no key, and nothing tells that it is there");
    let config = loaded(&text(&[chosen], Language::En), &|_| None).config;
    assert_eq!(config.providers["ollama"].base_url, None, "at its usual address");
    let (text, LoadedConfig { config, .. }) = written(&["OLLAMA_HOST"]);
    assert_eq!(config.providers["ollama"].base_url.as_deref(), Some("http://localhost:11434/v1"));
    assert!(!text.contains("OLLAMA_HOST"), "an address is no key: {text}");
}

#[test]
fn a_key_that_cannot_be_sent_is_none() {
    let lookup = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-1\n".to_owned());
    assert!(found(&lookup).is_empty());
}
