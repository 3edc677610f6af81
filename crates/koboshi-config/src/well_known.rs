//! Providers that are known by their names: the one table of their addresses and of the variables that hold their keys.
//!
//! The gateway takes them from the environment, [`init`](crate::init) offers them, the import of LiteLLM's files translates to them, and the
//! hints of `check` name their addresses.

use crate::provider::ProviderKind;

/// A provider that needs no description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WellKnown {
    /// Its name in files and targets.
    pub name: &'static str,
    /// Its API.
    pub kind: ProviderKind,
    /// Its address; empty where every user has another one.
    pub base_url: &'static str,
    /// Its OpenAI-compatible address, where its API is another one.
    pub chat_url: Option<&'static str>,
    /// Variables that may hold its key; the first one that is set counts.
    pub keys: &'static [&'static str],
    /// Variables that may hold another address.
    pub addresses: &'static [&'static str],
    /// Whether its kind implies the address, so that a file need not write it.
    pub is_implied: bool,
    /// Whether its API is at the top of its host too.
    is_at_top: bool,
}

/// A provider with OpenAI's API at an address of its own.
const fn compatible(name: &'static str, base_url: &'static str, keys: &'static [&'static str]) -> WellKnown {
    let kind = ProviderKind::Openai;
    let (chat_url, is_implied, is_at_top) = (None, false, false);
    WellKnown { name, kind, base_url, chat_url, keys, addresses: &[], is_implied, is_at_top }
}

/// A provider with an API of its own, or the one that a kind is named after.
const fn native(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    keys: &'static [&'static str],
) -> WellKnown {
    WellKnown { kind, is_implied: true, ..compatible(name, base_url, keys) }
}

/// A constant for each provider, and the list of them.
macro_rules! providers {
    ($(#[$doc:meta])* $seen:vis $list:ident: $($name:ident = $known:expr $(, $change:ident: $to:expr)*;)+) => {
        $(pub(crate) const $name: WellKnown = WellKnown { $($change: $to,)* ..$known };)+
        $(#[$doc])*
        $seen const $list: &[WellKnown] = &[$($name),+];
    };
}

providers! {
    /// Providers that are taken from the environment when the file lists none. Then chains may name any of them.
    pub WELL_KNOWN:
    OPENAI = native("openai", ProviderKind::Openai, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
        addresses: &["OPENAI_BASE_URL"];
    ANTHROPIC = native("anthropic", ProviderKind::Anthropic, "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"]),
        addresses: &["ANTHROPIC_BASE_URL"], chat_url: Some("https://api.anthropic.com/v1");
    GEMINI = native("gemini", ProviderKind::Gemini, "https://generativelanguage.googleapis.com/v1beta", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        addresses: &["GOOGLE_GEMINI_BASE_URL"], chat_url: Some("https://generativelanguage.googleapis.com/v1beta/openai");
    AZURE = native("azure", ProviderKind::Azure, "", &["AZURE_OPENAI_API_KEY"]), addresses: &["AZURE_OPENAI_ENDPOINT"];
    // Its credentials are a file, and not a key.
    VERTEX = native("vertex", ProviderKind::Vertex, "", &[]);
    DEEPSEEK = native("deepseek", ProviderKind::Deepseek, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]), is_at_top: true;
    GROQ = compatible("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]);
    MISTRAL = compatible("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]);
    OPENROUTER = compatible("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]);
    XAI = compatible("xai", "https://api.x.ai/v1", &["XAI_API_KEY"]);
    TOGETHER = compatible("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"]);
    OLLAMA = native("ollama", ProviderKind::Ollama, "http://127.0.0.1:11434/v1", &[]), addresses: &["OLLAMA_HOST"];
}

providers! {
    /// Providers whose addresses are known, but that a file must describe.
    DESCRIBED:
    FIREWORKS = compatible("fireworks", "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"]);
    PERPLEXITY = compatible("perplexity", "https://api.perplexity.ai", &["PERPLEXITYAI_API_KEY"]);
    CEREBRAS = compatible("cerebras", "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"]);
    NVIDIA = compatible("nvidia", "https://integrate.api.nvidia.com/v1", &["NVIDIA_NIM_API_KEY"]);
    SAMBANOVA = compatible("sambanova", "https://api.sambanova.ai/v1", &["SAMBANOVA_API_KEY"]);
    DEEPINFRA = compatible("deepinfra", "https://api.deepinfra.com/v1/openai", &["DEEPINFRA_API_KEY"]);
    MOONSHOT = compatible("moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"]);
    GITHUB = compatible("github", "https://models.github.ai/inference", &["GITHUB_TOKEN"]);
}

/// The names of [`WELL_KNOWN`].
pub fn names<'n>() -> impl Iterator<Item = &'n str> + Clone {
    WELL_KNOWN.iter().map(|known| known.name)
}

/// The provider of this name that needs no description.
#[must_use]
pub fn find(name: &str) -> Option<&'static WellKnown> {
    WELL_KNOWN.iter().find(|known| known.name == name)
}

/// The address that a file must write for the provider of this name.
pub(crate) fn written_address(name: &str) -> Option<&'static str> {
    let mut all = WELL_KNOWN.iter().chain(DESCRIBED);
    all.find(|known| known.name == name)?.written_address()
}

/// The path of the OpenAI-compatible API at this host, if the host is known; empty where none is needed.
pub(crate) fn path_at(host: &str) -> Option<&'static str> {
    WELL_KNOWN.iter().chain(DESCRIBED).find_map(|known| {
        let (_, rest) = known.chat_url.unwrap_or(known.base_url).split_once("://")?;
        let path = rest.strip_prefix(host)?;
        (path.is_empty() || path.starts_with('/')).then_some(if known.is_at_top { "" } else { path })
    })
}

impl WellKnown {
    /// Its address, where a file must write it.
    pub(crate) const fn written_address(&self) -> Option<&'static str> {
        if self.is_implied { None } else { Some(self.base_url) }
    }
}
