//! Providers that everybody knows: where they are, which variable holds their key, what their models are called.
//!
//! Without a config file this table and the environment are the config. All of them speak the chat dialect at the address given
//! here.

use koboshi_config::gateway::{Named, ProviderConfig, ProviderKind, Timeouts};
use koboshi_config::secret::Secret;

/// A provider that needs no description.
pub(crate) struct WellKnown {
    pub(crate) name: &'static str,
    pub(crate) kind: ProviderKind,
    pub(crate) base_url: &'static str,
    /// Variables that may hold its key, the first one that is set counts.
    keys: &'static [&'static str],
    /// Variables that may hold another address.
    addresses: &'static [&'static str],
    /// How its models' names begin.
    models: &'static [&'static str],
}

const fn openai(
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    models: &'static [&'static str],
) -> WellKnown {
    WellKnown { name, kind: ProviderKind::Openai, base_url, keys, addresses: &[], models }
}

pub(crate) const WELL_KNOWN: &[WellKnown] = &[
    WellKnown {
        addresses: &["OPENAI_BASE_URL"],
        ..openai(
            "openai",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            &["gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-", "codex-"],
        )
    },
    openai("anthropic", "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"], &["claude-"]),
    openai(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &["gemini-", "gemma-"],
    ),
    WellKnown {
        kind: ProviderKind::Deepseek,
        ..openai("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &["deepseek-"])
    },
    openai("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], &[]),
    openai(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        &["mistral-", "codestral-", "ministral-"],
    ),
    openai("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], &[]),
    openai("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], &["grok-"]),
    openai("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], &[]),
    WellKnown {
        kind: ProviderKind::Ollama,
        addresses: &["OLLAMA_HOST"],
        ..openai("ollama", "http://127.0.0.1:11434/v1", &[], &[])
    },
];

/// The well-known provider of this name.
pub(crate) fn find(name: &str) -> Option<&'static WellKnown> {
    WELL_KNOWN.iter().find(|known| known.name == name)
}

/// The provider whose models are called like this.
pub(crate) fn of_model(model: &str) -> Option<&'static str> {
    let owner = |known: &&WellKnown| known.models.iter().any(|prefix| model.starts_with(prefix));
    WELL_KNOWN.iter().find(owner).map(|known| known.name)
}

/// The providers that the environment has a key or an address for.
pub(crate) fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Named<ProviderConfig> {
    let set =
        |names: &[&str]| names.iter().find_map(|name| lookup(name).filter(|value| !value.trim().is_empty()));
    let mut found = Named::new();
    for known in WELL_KNOWN {
        let (key, address) = (set(known.keys), set(known.addresses));
        if key.is_none() && (address.is_none() || !known.keys.is_empty()) {
            continue;
        }
        let base_url = match (known.kind, address) {
            (ProviderKind::Ollama, Some(host)) => Some(ollama_address(&host)),
            (_, address) => address,
        };
        let provider = ProviderConfig {
            kind: known.kind,
            base_url,
            keys: key.map(|key| Secret::new(key.trim())).into_iter().collect(),
            account: None,
            ca_file: None,
            timeouts: Timeouts::default(),
        };
        found.insert(known.name.to_owned(), provider);
    }
    found
}

/// `OLLAMA_HOST` may be a bare host, a host with a port or a URL.
fn ollama_address(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.replace("0.0.0.0", "127.0.0.1");
    let port = if rest.contains(':') { "" } else { ":11434" };
    format!("{scheme}://{rest}{port}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Named<ProviderConfig> {
        from_environment(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
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
        for (host, address) in [
            ("localhost", "http://localhost:11434/v1"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            ("https://box.example:443/", "https://box.example:443/v1"),
        ] {
            assert_eq!(found(&[("OLLAMA_HOST", host)])["ollama"].base_url.as_deref(), Some(address));
        }
    }

    #[test]
    fn models_have_owners() {
        assert_eq!(of_model("gpt-4o"), Some("openai"));
        assert_eq!(of_model("claude-sonnet-4"), Some("anthropic"));
        assert_eq!(of_model("llama-3"), None);
        for known in WELL_KNOWN {
            assert!(crate::upstream::Origin::parse(known.base_url).is_ok(), "{}", known.name);
        }
    }
}
