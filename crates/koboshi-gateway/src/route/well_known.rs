//! Well-known providers, as the environment has them. Their table is in the config crate; the models file knows the names of their models.
//!
//! Without a config file that table and the environment are the config.

use std::net::SocketAddr;

use koboshi::models::Models;
use koboshi_config::gateway::{Named, ProviderConfig, ProviderKind};
use koboshi_config::secret::Secret;
use koboshi_config::well_known::{self, WELL_KNOWN};

/// The address of the provider of this name, if it is known and of this kind. So its key goes to no other server.
pub(crate) fn address(name: &str, kind: ProviderKind) -> Option<&'static str> {
    let known = well_known::find(name)?;
    let address = if known.kind == kind { Some(known.base_url) } else { known.chat_url };
    let speaks_so = known.kind == kind || kind == ProviderKind::Openai;
    address.filter(|address| speaks_so && !address.is_empty())
}

/// The usual address of a kind.
pub(crate) fn address_of_kind(kind: ProviderKind) -> Option<&'static str> {
    WELL_KNOWN.iter().find(|known| known.is_implied && known.kind == kind).map(|known| known.base_url)
}

/// The kind of a provider that needs no description.
#[must_use]
pub fn kind_of(name: &str) -> Option<ProviderKind> {
    well_known::find(name).map(|known| known.kind)
}

/// The variable that holds the key of a provider of this name.
pub(crate) fn key_variable(name: &str) -> Option<&'static str> {
    well_known::find(name)?.keys.first().copied()
}

/// The unset variables that a provider of this name needs to be taken from the environment.
#[must_use]
pub fn unset_variables(name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let Some(known) = well_known::find(name) else { return Vec::new() };
    let is_set = |name: &&str| lookup(name).is_some_and(|value| !value.trim().is_empty());
    let needed: &[&[&'static str]] = match known.kind {
        ProviderKind::Ollama => &[known.addresses],
        ProviderKind::Azure => &[known.keys, known.addresses],
        ProviderKind::Vertex => &[&["GOOGLE_APPLICATION_CREDENTIALS"], &["GOOGLE_CLOUD_PROJECT"]],
        _ => &[known.keys],
    };
    needed
        .iter()
        .filter(|names| !names.iter().any(is_set))
        .filter_map(|names| names.first().copied())
        .collect()
}

/// The providers that have a model of this name, its maker first.
pub fn owners_of(models: &Models, model: &str) -> impl Iterator<Item = &'static str> {
    well_known::names().filter(move |name| models.belongs_to(name, model))
}

/// The providers for which the environment has a key or an address. Our own address does not count: variables that point programs at
/// this gateway may be set for the gateway too.
pub(crate) fn from_environment(
    lookup: &dyn Fn(&str) -> Option<String>,
    own: SocketAddr,
) -> Named<ProviderConfig> {
    let one =
        |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let set = |names: &[&str]| names.iter().find_map(|name| one(name));
    let mut found = Named::new();
    for known in WELL_KNOWN {
        let key = set(known.keys);
        let address = set(known.addresses).map(|written| well_known::base_url(known.kind, &written));
        let address = address.filter(|address| !well_known::leads_to(address, own));
        let mut provider = ProviderConfig::new(known.kind);
        let is_there = match known.kind {
            ProviderKind::Ollama => address.is_some(),
            ProviderKind::Azure => {
                provider.api_version = one("OPENAI_API_VERSION");
                key.is_some() && address.is_some()
            }
            ProviderKind::Vertex => {
                provider.credentials_file = one("GOOGLE_APPLICATION_CREDENTIALS").map(Into::into);
                provider.project = one("GOOGLE_CLOUD_PROJECT");
                provider.location = one("GOOGLE_CLOUD_LOCATION");
                provider.credentials_file.is_some() && provider.project.is_some()
            }
            _ => key.is_some(),
        };
        if is_there {
            provider.base_url = address;
            provider.keys = key.map(Secret::new).into_iter().collect();
            found.insert(known.name.to_owned(), provider);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use koboshi_config::init::{OFFERS, detect};

    use super::*;
    use crate::http::upstream::Origin;

    fn found(variables: &[(&str, &str)]) -> Named<ProviderConfig> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        from_environment(&lookup, "127.0.0.1:4141".parse().unwrap())
    }

    #[test]
    fn keys_in_the_environment_make_providers() {
        assert!(found(&[]).is_empty());
        assert!(found(&[("OPENAI_API_KEY", " ")]).is_empty(), "a blank key is none");
        let both = found(&[
            ("OPENAI_API_KEY", "sk-1\n"),
            ("GOOGLE_API_KEY", "g"),
            ("OPENAI_BASE_URL", "http://x/v1"),
        ]);
        assert_eq!(both.keys().collect::<Vec<_>>(), ["gemini", "openai"]);
        assert_eq!(both["openai"].base_url.as_deref(), Some("http://x/v1"));
        assert_eq!(both["openai"].keys[0].expose(), "sk-1");
        assert!(found(&[("OPENAI_BASE_URL", "http://x/v1")]).is_empty(), "an address alone is not enough");
    }

    #[test]
    fn ollama_needs_an_address_only() {
        let found = found(&[("OLLAMA_HOST", "localhost")]);
        assert_eq!(found["ollama"].base_url.as_deref(), Some("http://localhost:11434/v1"));
    }

    /// The file of `koboshi init` leads where the gateway sends without one.
    #[test]
    fn a_variable_means_the_same_with_and_without_a_file() {
        for (variable, key, name, written) in [
            ("OPENAI_BASE_URL", "OPENAI_API_KEY", "openai", "https://h"),
            ("OPENAI_BASE_URL", "OPENAI_API_KEY", "openai", "https://h/v1/"),
            ("OPENAI_BASE_URL", "OPENAI_API_KEY", "openai", "http://127.0.0.1:4141/v1"),
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "anthropic", "https://h/"),
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "anthropic", "https://h/x"),
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "anthropic", "http://localhost:4141"),
            ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "gemini", "https://h/x"),
            ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "azure", "https://r.x/openai/v1/"),
            ("OLLAMA_HOST", "OLLAMA_HOST", "ollama", "0.0.0.0:8080"),
        ] {
            let variables = [(variable, written), (key, "k")];
            let without_file = found(&variables)[name].base_url.clone();
            let lookup = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let offer = OFFERS.iter().find(|offer| offer.name == name).unwrap();
            assert_eq!(detect(offer, &lookup).base_url, without_file, "{variable}={written}");
        }
        assert!(found(&[("AZURE_OPENAI_API_KEY", "k")]).is_empty(), "every user has another endpoint");
    }

    #[test]
    fn clouds_are_found_by_the_variables_that_they_need() {
        let azure = found(&[
            ("AZURE_OPENAI_API_KEY", "k"),
            ("AZURE_OPENAI_ENDPOINT", "https://r.x"),
            ("OPENAI_API_VERSION", "2024-10-21"),
        ]);
        assert_eq!(azure["azure"].api_version.as_deref(), Some("2024-10-21"));
        let credentials = ("GOOGLE_APPLICATION_CREDENTIALS", "/k.json");
        assert!(found(&[credentials]).is_empty(), "other programs use this file too");
        let vertex =
            found(&[credentials, ("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "us-east1")]);
        let vertex = &vertex["vertex"];
        assert_eq!(vertex.credentials_file.as_deref(), Some(std::path::Path::new("/k.json")));
        assert_eq!((vertex.project.as_deref(), vertex.location.as_deref()), (Some("p"), Some("us-east1")));
    }

    #[test]
    fn setting_the_missing_variables_yields_the_provider() {
        assert_eq!(
            unset_variables("gemini", &|name| (name == "GOOGLE_API_KEY").then(|| "k".to_owned())),
            [""; 0]
        );
        assert_eq!(unset_variables("openai", &|_| Some(" ".to_owned())), ["OPENAI_API_KEY"]);
        for known in WELL_KNOWN {
            let missing = unset_variables(known.name, &|_| None);
            let set: Vec<_> = missing.iter().map(|name| (*name, "http://x")).collect();
            assert!(!set.is_empty() && found(&set).contains_key(known.name), "{}: {missing:?}", known.name);
        }
    }

    #[test]
    fn our_own_address_is_no_provider() {
        for address in ["http://127.0.0.1:4141", "http://localhost:4141/v1", "http://[::1]:4141/"] {
            let found = found(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", address)]);
            assert_eq!(found["anthropic"].base_url, None, "{address}");
        }
        let other = found(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]);
        assert!(other["anthropic"].base_url.is_some());
    }

    #[test]
    fn models_have_owners() {
        let models = Models::builtin().unwrap();
        let owners = |model| owners_of(&models, model).collect::<Vec<_>>();
        assert_eq!(owners("gpt-4o"), ["openai", "azure"]);
        assert_eq!(owners("claude-sonnet-4"), ["anthropic"]);
        assert_eq!(owners("gemini-3"), ["gemini", "vertex"]);
        assert!(owners("llama-3").is_empty());
        for known in WELL_KNOWN.iter().filter(|known| !known.base_url.is_empty()) {
            assert!(Origin::parse(known.base_url).is_ok(), "{}", known.name);
        }
    }
}
