//! Providers that a first file may have: the variable that holds their key, and the model that stands in for others.

use crate::config::Config;
use crate::gateway::ProviderKind;
use crate::well_known::{self, WellKnown};

/// A provider for a first file.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Its name in the file.
    pub name: &'static str,
    /// Which API it has.
    pub kind: ProviderKind,
    /// Variables that may hold its key; the first one that is set counts. Empty where no key is needed.
    pub keys: &'static [&'static str],
    /// Variables that must be set besides.
    pub also: &'static [&'static str],
    /// The variable with another address. Where no key is needed, it shows that the provider is available.
    pub address: Option<&'static str>,
    /// Its address, where the kind does not imply it.
    pub(super) base_url: Option<&'static str>,
    /// Names of its own models, as patterns; empty where it has those of many vendors.
    pub patterns: &'static [&'static str],
    /// The model that answers when another provider has failed; empty where the user chooses the names.
    pub stand_in: &'static str,
    /// A smaller model of the same provider, for when there is no other provider.
    pub(super) smaller: Option<&'static str>,
    /// Whether it is listed although the user has not chosen it.
    pub(super) is_common: bool,
}

impl Offer {
    /// Whether it cannot be used without a key.
    #[must_use]
    pub const fn needs_key(&self) -> bool {
        !self.keys.is_empty()
    }
}

const fn offer(known: &WellKnown, patterns: &'static [&'static str], stand_in: &'static str) -> Offer {
    Offer {
        name: known.name,
        kind: known.kind,
        keys: known.keys,
        also: &[],
        address: match known.addresses {
            [first, ..] => Some(first),
            [] => None,
        },
        base_url: known.written_address(),
        patterns,
        stand_in,
        smaller: None,
        is_common: false,
    }
}

/// Every provider that a first file may have, the best known first.
pub const OFFERS: &[Offer] = &[
    Offer {
        smaller: Some("gpt-4o-mini"),
        is_common: true,
        ..offer(&well_known::OPENAI, &["gpt-*"], "gpt-4o")
    },
    Offer {
        smaller: Some("claude-haiku-4-5"),
        is_common: true,
        ..offer(&well_known::ANTHROPIC, &["claude-*"], "claude-sonnet-4-5")
    },
    Offer {
        smaller: Some("gemini-2.5-flash-lite"),
        is_common: true,
        ..offer(&well_known::GEMINI, &["gemini-*"], "gemini-2.5-flash")
    },
    Offer { also: &["AZURE_OPENAI_ENDPOINT"], ..offer(&well_known::AZURE, &["gpt-*"], "") },
    Offer {
        keys: &["GOOGLE_APPLICATION_CREDENTIALS"],
        also: &["GOOGLE_CLOUD_PROJECT"],
        ..offer(&well_known::VERTEX, &["gemini-*"], "gemini-2.5-flash")
    },
    offer(&well_known::DEEPSEEK, &["deepseek-*"], "deepseek-chat"),
    offer(&well_known::MISTRAL, &["mistral-*", "codestral-*"], "mistral-large-latest"),
    offer(&well_known::XAI, &["grok-*"], "grok-4"),
    offer(&well_known::GROQ, &[], "llama-3.3-70b-versatile"),
    offer(&well_known::OPENROUTER, &[], "openrouter/auto"),
    offer(&well_known::TOGETHER, &[], "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    Offer { is_common: true, ..offer(&well_known::OLLAMA, &[], "llama3.2") },
];

/// An address of the environment as the file writes it; none if it is the default, leads back to the gateway, or cannot be used.
pub(super) fn address(kind: ProviderKind, written: &str) -> Option<String> {
    let address = well_known::base_url(kind, written);
    let (scheme, rest) = address.split_once("://")?;
    let is_plain = rest.chars().all(|c| c.is_ascii_alphanumeric() || "._~:/-[]".contains(c));
    let is_usable = !rest.is_empty() && is_plain && matches!(scheme, "http" | "https");
    // The variable is used where it is an address already: every user has another one.
    let is_variable = kind == ProviderKind::Azure && address == written.trim().trim_end_matches('/');
    let leads_back = well_known::leads_to(&address, Config::default().serve.listen);
    (is_usable && !is_variable && !leads_back).then_some(address)
}
