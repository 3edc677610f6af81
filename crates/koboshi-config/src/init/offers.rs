//! Providers that a first file may have: which variable holds their key, and which of their models stands in for others.

use crate::gateway::ProviderKind;

/// A provider for a first file.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Its name in the file.
    pub name: &'static str,
    /// Which API it has.
    pub kind: ProviderKind,
    /// Variables that may hold its key; the first one that is set counts. None where no key is needed.
    pub keys: &'static [&'static str],
    /// Variables that must be set besides.
    pub also: &'static [&'static str],
    /// The variable with another address. Where no key is needed, it tells that the provider is there.
    pub address: Option<&'static str>,
    /// Its address, where it is not known from the kind.
    pub(super) base_url: Option<&'static str>,
    /// Names of its own models, as patterns; none means that it has those of many vendors.
    pub patterns: &'static [&'static str],
    /// The model that answers when another provider has failed; empty where names are the user's own.
    pub stand_in: &'static str,
    /// A smaller model of the same provider, for when there is no other provider.
    pub(super) smaller: Option<&'static str>,
    /// Whether it is shown to those who have not chosen it.
    pub(super) is_common: bool,
}

impl Offer {
    /// Whether it cannot be used without a key.
    #[must_use]
    pub const fn needs_key(&self) -> bool {
        !self.keys.is_empty()
    }
}

const fn openai_like(
    name: &'static str,
    keys: &'static [&'static str],
    base_url: &'static str,
    patterns: &'static [&'static str],
    stand_in: &'static str,
) -> Offer {
    Offer {
        name,
        kind: ProviderKind::Openai,
        keys,
        also: &[],
        address: None,
        base_url: Some(base_url),
        patterns,
        stand_in,
        smaller: None,
        is_common: false,
    }
}

/// Every provider that a first file may have, the best known first.
pub const OFFERS: &[Offer] = &[
    Offer {
        address: Some("OPENAI_BASE_URL"),
        base_url: None,
        smaller: Some("gpt-4o-mini"),
        is_common: true,
        ..openai_like("openai", &["OPENAI_API_KEY"], "", &["gpt-*"], "gpt-4o")
    },
    Offer {
        kind: ProviderKind::Anthropic,
        address: Some("ANTHROPIC_BASE_URL"),
        base_url: None,
        smaller: Some("claude-haiku-4-5"),
        is_common: true,
        ..openai_like("anthropic", &["ANTHROPIC_API_KEY"], "", &["claude-*"], "claude-sonnet-4-5")
    },
    Offer {
        kind: ProviderKind::Gemini,
        address: Some("GOOGLE_GEMINI_BASE_URL"),
        base_url: None,
        smaller: Some("gemini-2.5-flash-lite"),
        is_common: true,
        ..openai_like("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], "", &["gemini-*"], "gemini-2.5-flash")
    },
    Offer {
        kind: ProviderKind::Azure,
        also: &["AZURE_OPENAI_ENDPOINT"],
        address: Some("AZURE_OPENAI_ENDPOINT"),
        base_url: None,
        ..openai_like("azure", &["AZURE_OPENAI_API_KEY"], "", &["gpt-*"], "")
    },
    Offer {
        kind: ProviderKind::Vertex,
        also: &["GOOGLE_CLOUD_PROJECT"],
        base_url: None,
        ..openai_like("vertex", &["GOOGLE_APPLICATION_CREDENTIALS"], "", &["gemini-*"], "gemini-2.5-flash")
    },
    Offer {
        kind: ProviderKind::Deepseek,
        base_url: None,
        ..openai_like("deepseek", &["DEEPSEEK_API_KEY"], "", &["deepseek-*"], "deepseek-chat")
    },
    openai_like(
        "mistral",
        &["MISTRAL_API_KEY"],
        "https://api.mistral.ai/v1",
        &["mistral-*", "codestral-*"],
        "mistral-large-latest",
    ),
    openai_like("xai", &["XAI_API_KEY"], "https://api.x.ai/v1", &["grok-*"], "grok-4"),
    openai_like("groq", &["GROQ_API_KEY"], "https://api.groq.com/openai/v1", &[], "llama-3.3-70b-versatile"),
    openai_like(
        "openrouter",
        &["OPENROUTER_API_KEY"],
        "https://openrouter.ai/api/v1",
        &[],
        "openrouter/auto",
    ),
    openai_like(
        "together",
        &["TOGETHER_API_KEY"],
        "https://api.together.xyz/v1",
        &[],
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    ),
    Offer {
        kind: ProviderKind::Ollama,
        address: Some("OLLAMA_HOST"),
        base_url: None,
        is_common: true,
        ..openai_like("ollama", &[], "", &[], "llama3.2")
    },
];

/// An address of the environment as the file writes it; none if it is the usual one, leads back to the gateway, or cannot be used.
pub(super) fn address(kind: ProviderKind, written: &str) -> Option<String> {
    let bare = written.trim().trim_end_matches('/');
    let (scheme, rest) = bare.split_once("://").unwrap_or(("http", bare));
    let own = ["127.0.0.1:4141", "localhost:4141", "[::1]:4141"].iter().any(|own| rest.starts_with(own));
    let usable =
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || "._~:/-[]".contains(c));
    if own || !usable || !(scheme == "http" || scheme == "https") {
        return None;
    }
    let has_path = rest.contains('/');
    let address = match kind {
        ProviderKind::Ollama => {
            let rest = rest.replace("0.0.0.0", "127.0.0.1");
            let port = if rest.contains(':') { "" } else { ":11434" };
            format!("{scheme}://{rest}{port}/v1")
        }
        ProviderKind::Anthropic | ProviderKind::Openai if !has_path => format!("{scheme}://{rest}/v1"),
        ProviderKind::Gemini if !has_path => format!("{scheme}://{rest}/v1beta"),
        // It is taken from the variable: everybody has another one.
        ProviderKind::Azure => {
            let bare = rest.strip_suffix("/v1").unwrap_or(rest);
            let bare = bare.strip_suffix("/openai").unwrap_or(bare);
            return (bare != rest).then(|| format!("{scheme}://{bare}"));
        }
        _ => format!("{scheme}://{rest}"),
    };
    Some(address)
}
