//! Providers that are known by their names: the one table of their addresses and of the variables that hold their keys.
//!
//! The gateway takes them from the environment, [`init`](crate::init) offers them, the import of LiteLLM's files translates to them, and the
//! hints of `check` name their addresses.

use std::net::{IpAddr, SocketAddr};

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

/// An address of the environment as a `base_url`. Vendors' own programs append a path to what such a variable holds, which a `base_url` has
/// already; those of OpenAI append none.
#[must_use]
pub fn base_url(kind: ProviderKind, written: &str) -> String {
    let bare = written.trim().trim_end_matches('/');
    match kind {
        ProviderKind::Ollama => ollama_url(bare),
        ProviderKind::Anthropic if !bare.ends_with("/v1") => format!("{bare}/v1"),
        ProviderKind::Gemini if !bare.ends_with("/v1beta") && !bare.ends_with("/v1") => {
            format!("{bare}/v1beta")
        }
        ProviderKind::Azure => {
            let bare = bare.strip_suffix("/v1").unwrap_or(bare);
            bare.strip_suffix("/openai").unwrap_or(bare).to_owned()
        }
        _ => bare.to_owned(),
    }
}

/// `OLLAMA_HOST` may be a bare host, a host with a port or a URL.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.replace("0.0.0.0", "127.0.0.1");
    let port = if rest.contains(':') { "" } else { ":11434" };
    format!("{scheme}://{rest}{port}/v1")
}

/// Whether a `base_url` is this listen address: variables that point programs at the gateway may be set for the gateway too.
#[must_use]
pub fn leads_to(base_url: &str, listen: SocketAddr) -> bool {
    let Some((host, port)) = host_and_port(base_url) else { return false };
    let ip: Option<IpAddr> = host.parse().ok();
    let is_loopback = host == "localhost" || ip.is_some_and(|ip| ip.is_loopback());
    let is_local = is_loopback && (listen.ip().is_loopback() || listen.ip().is_unspecified());
    port == listen.port() && (is_local || ip == Some(listen.ip()))
}

fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    Some((host, port.map_or(Some(usual), |port| port.parse().ok())?))
}

impl WellKnown {
    /// Its address, where a file must write it.
    pub(crate) const fn written_address(&self) -> Option<&'static str> {
        if self.is_implied { None } else { Some(self.base_url) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::OFFERS;
    use crate::litellm;

    /// The part of a page between two texts.
    fn part<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
        let (_, rest) = page.split_once(from).unwrap();
        rest.split_once(to).unwrap().0
    }

    #[test]
    fn every_provider_is_offered_translated_and_on_the_pages() {
        let example = include_str!("../../../examples/koboshi.yaml");
        let example = part(example, "# LLM providers. Without any:", "as far as their keys");
        let example: Vec<_> = example.split(|letter: char| !letter.is_alphanumeric()).collect();
        let config = include_str!("../../../docs/config.md");
        let config = part(config, "Without `providers`, chains may name", "`sim`");
        let gateway = include_str!("../../../docs/gateway.md");
        let gateway = part(gateway, "**Without a config file**", "\n\n");
        for known in WELL_KNOWN {
            let name = known.name;
            assert!(
                OFFERS.iter().any(|offer| offer.name == name),
                "{name}: `koboshi init` does not offer it"
            );
            assert!(litellm::names().any(|one| one == name), "{name}: LiteLLM's name for it is missing");
            assert!(example.contains(&name), "{name} is not in examples/koboshi.yaml");
            assert!(config.contains(&format!("`{name}`")), "{name} is not in docs/config.md");
            let variables: Vec<_> = known.keys.iter().chain(known.addresses).collect();
            let is_shown = variables.iter().all(|variable| gateway.contains(&format!("`{variable}`")));
            assert!(is_shown, "{variables:?} are not in docs/gateway.md");
            let has_variables = !variables.is_empty() || known.kind == ProviderKind::Vertex;
            assert!(has_variables, "{name} cannot be in the environment");
        }
    }

    #[test]
    fn addresses_are_read_as_their_vendors_write_them() {
        for (kind, written, wanted) in [
            (ProviderKind::Openai, " https://h ", "https://h"),
            (ProviderKind::Openai, "https://h/v1/", "https://h/v1"),
            (ProviderKind::Anthropic, "https://h/", "https://h/v1"),
            (ProviderKind::Anthropic, "https://h/x", "https://h/x/v1"),
            (ProviderKind::Anthropic, "https://h/x/v1", "https://h/x/v1"),
            (ProviderKind::Gemini, "https://h", "https://h/v1beta"),
            (ProviderKind::Gemini, "https://h/v1beta/", "https://h/v1beta"),
            (ProviderKind::Azure, "https://r.x/", "https://r.x"),
            (ProviderKind::Azure, "https://r.x/openai/v1/", "https://r.x"),
            (ProviderKind::Ollama, "localhost", "http://localhost:11434/v1"),
            (ProviderKind::Ollama, "0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            (ProviderKind::Ollama, "https://box.example:443/", "https://box.example:443/v1"),
        ] {
            assert_eq!(base_url(kind, written), wanted, "{kind:?} {written}");
        }
    }

    #[test]
    fn our_own_address_is_known_in_every_spelling() {
        let listen = |text: &str| text.parse::<SocketAddr>().unwrap();
        for own in [
            "http://127.0.0.1:4141", "http://localhost:4141/v1", "http://[::1]:4141/",
            "https://127.0.0.1:4141",
        ] {
            assert!(
                leads_to(own, listen("127.0.0.1:4141")) && leads_to(own, listen("0.0.0.0:4141")),
                "{own}"
            );
            assert!(!leads_to(own, listen("127.0.0.1:4142")), "{own}");
        }
        assert!(leads_to("https://10.0.0.7/v1", listen("10.0.0.7:443")));
        for other in
            ["http://10.0.0.7:4141", "http://llm.example:4141", "http://127.0.0.1", "127.0.0.1:4141", ""]
        {
            assert!(!leads_to(other, listen("127.0.0.1:4141")), "{other}");
        }
    }
}
