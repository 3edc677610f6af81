//! A compiled provider: its address, dialects, paths and credentials.

use std::sync::Arc;

use koboshi::models::Facts;
use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind, Timeouts};
use koboshi_wire::Dialect;

use crate::http::upstream::interface::{Layout, Paths};
use crate::http::upstream::{Origin, Trust};
use crate::route::auth::fingerprint;
use crate::route::credential::Credential;
use crate::route::plan::PlanError;
use crate::route::token::account::Account;
use crate::route::token::command::Command;
use crate::route::token::{Source, Token};
use crate::route::well_known;

/// The default location of Vertex.
const DEFAULT_LOCATION: &str = "global";

/// A provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: Arc<str>,
    pub(crate) kind: ProviderKind,
    /// None for the built-in one.
    pub(crate) origin: Option<Origin>,
    /// The dialects that it speaks, best first.
    dialects: Vec<Dialect>,
    layout: Layout,
    pub(crate) keys: Vec<KeyUse>,
    pub(crate) timeouts: Timeouts,
}

/// A key of ours at a provider.
#[derive(Debug, Clone)]
pub(crate) struct KeyUse {
    pub(crate) credential: Credential,
    pub(crate) fingerprint: String,
    pub(crate) account: String,
}

impl Provider {
    /// Compiles a provider. State from before a reload is kept where possible.
    pub(crate) fn compile(
        name: &str,
        config: &ProviderConfig,
        before: Option<&Self>,
    ) -> Result<Self, PlanError> {
        if config.kind == ProviderKind::Sim {
            let account = config.account.as_deref().unwrap_or(name);
            let sim = Self::built_in(name, account);
            let dialects =
                if config.dialects.is_empty() { sim.dialects } else { dialects_of(&config.dialects) };
            return Ok(Self { timeouts: config.timeouts, dialects, ..sim });
        }
        let account = match &config.credentials_file {
            Some(path) => {
                let read = Account::read(path);
                Some(read.map_err(|error| PlanError::Credentials(name.to_owned(), error))?)
            }
            None => None,
        };
        let layout = layout(name, config, account.as_ref())?;
        let address =
            config.base_url.clone().or_else(|| usual(name, config)).ok_or_else(|| lacks(name, "base_url"))?;
        let origin = Origin::parse(&address).map_err(|error| PlanError::Address(name.to_owned(), error))?;
        let origin = match &config.ca_file {
            Some(path) => {
                let trust = Trust::read(path).map_err(|error| PlanError::Trust(name.to_owned(), error))?;
                origin.trusting(trust)
            }
            None => origin,
        };
        let dialects = match config.dialects.as_slice() {
            [] => default_dialects(config.kind, &origin),
            words => dialects_of(words),
        };
        let source =
            account.map(Source::Account).or(Command::new(&config.token_command).map(Source::Command));
        let keys = match source {
            Some(source) => vec![with_token(name, config, source, before)],
            None if config.kind == ProviderKind::Vertex => return Err(lacks(name, "credentials_file")),
            None => with_keys(name, config)?,
        };
        let (kind, timeouts) = (config.kind, config.timeouts);
        Ok(Self { name: name.into(), kind, origin: Some(origin), dialects, layout, keys, timeouts })
    }

    /// The built-in provider. Under several names it is several providers: a cooldown of one does not affect the others.
    pub(crate) fn built_in(name: &str, account: &str) -> Self {
        let key = KeyUse {
            credential: Credential::None,
            fingerprint: "none".to_owned(),
            account: account.to_owned(),
        };
        Self {
            name: name.into(),
            kind: ProviderKind::Sim,
            origin: None,
            dialects: Dialect::ALL.to_vec(),
            layout: Layout::Plain,
            keys: vec![key],
            timeouts: Timeouts::default(),
        }
    }

    /// The paths for one of its models.
    pub(crate) fn paths(&self, model: &str) -> Paths {
        match &self.origin {
            Some(origin) => Paths::of(origin, &self.layout, &self.dialects, model),
            None => Paths::default(),
        }
    }

    /// The client's own dialect if it speaks that, else this one.
    pub(crate) fn dialect_for(&self, client: Dialect, best: Option<Dialect>) -> Dialect {
        if self.dialects.contains(&client) { client } else { best.unwrap_or(client) }
    }

    /// The dialect for this model where it does not speak the client's. OpenAI's later models are complete only in Responses.
    /// Azure is excluded: there a model may have any name, and the older versions of its API have no Responses.
    pub(crate) fn speaks_best(&self, facts: &Facts) -> Option<Dialect> {
        let has_both = [Dialect::Chat, Dialect::Responses].iter().all(|one| self.dialects.contains(one));
        let is_better =
            has_both && self.origin.as_ref().is_some_and(is_openais) && facts.responses_api == Some(true);
        if is_better { Some(Dialect::Responses) } else { self.dialects.first().copied() }
    }

    /// Whether it is OpenAI itself, with its own rules, and not a compatible server.
    pub(crate) fn is_openai(&self) -> bool {
        self.kind == ProviderKind::Azure || self.origin.as_ref().is_some_and(is_openais)
    }

    /// Whether it is Mistral itself, which refuses unknown fields.
    pub(crate) fn is_mistral(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.host() == "api.mistral.ai")
    }
}

/// OpenAI's own address, or one of its regions.
fn is_openais(origin: &Origin) -> bool {
    let host = origin.host();
    host == "api.openai.com" || host.ends_with(".api.openai.com")
}

fn lacks(name: &str, key: &'static str) -> PlanError {
    PlanError::Lacks(name.to_owned(), key)
}

/// How the kind arranges its paths.
fn layout(name: &str, config: &ProviderConfig, account: Option<&Account>) -> Result<Layout, PlanError> {
    Ok(match config.kind {
        ProviderKind::Anthropic => Layout::Anthropic,
        ProviderKind::Gemini => Layout::Gemini,
        ProviderKind::Azure => Layout::Azure { version: config.api_version.clone() },
        ProviderKind::Vertex => {
            let project = config.project.as_deref().or_else(|| account?.project());
            let project = project.ok_or_else(|| lacks(name, "project"))?.to_owned();
            Layout::Vertex { project, location: location(config).to_owned() }
        }
        _ => Layout::Plain,
    })
}

fn location(config: &ProviderConfig) -> &str {
    config.location.as_deref().unwrap_or(DEFAULT_LOCATION)
}

/// The address of a provider if the config does not name one; none where there is no default.
fn usual(name: &str, config: &ProviderConfig) -> Option<String> {
    if let Some(known) = well_known::address(name, config.kind) {
        return Some(known.to_owned());
    }
    Some(match config.kind {
        ProviderKind::Vertex => match location(config) {
            DEFAULT_LOCATION => "https://aiplatform.googleapis.com/v1".to_owned(),
            // For a continent the host has another name.
            place @ ("us" | "eu") => format!("https://aiplatform.{place}.rep.googleapis.com/v1"),
            place => format!("https://{place}-aiplatform.googleapis.com/v1"),
        },
        ProviderKind::Azure => return None,
        kind => well_known::address_of_kind(kind)?.to_owned(),
    })
}

/// The dialects of a kind if the config does not name them.
fn default_dialects(kind: ProviderKind, origin: &Origin) -> Vec<Dialect> {
    match kind {
        ProviderKind::Azure => vec![Dialect::Chat, Dialect::Responses],
        ProviderKind::Anthropic => vec![Dialect::Messages],
        ProviderKind::Gemini | ProviderKind::Vertex => vec![Dialect::Gemini],
        // Few OpenAI-compatible servers have more than this.
        ProviderKind::Openai if is_openais(origin) => vec![Dialect::Chat, Dialect::Responses],
        _ => vec![Dialect::Chat],
    }
}

fn dialects_of(dialects: &[ProviderDialect]) -> Vec<Dialect> {
    let by_name =
        |one: &ProviderDialect| Dialect::ALL.into_iter().find(|dialect| dialect.name() == one.name());
    dialects.iter().filter_map(by_name).collect()
}

fn with_token(name: &str, config: &ProviderConfig, source: Source, before: Option<&Provider>) -> KeyUse {
    let known = before.and_then(|before| before.keys.first()).and_then(|key| match &key.credential {
        Credential::Token(token) if token.is_from(&source) => Some(Arc::clone(token)),
        _ => None,
    });
    let token = known.unwrap_or_else(|| Token::new(name.into(), source));
    KeyUse {
        fingerprint: token.id().to_owned(),
        credential: Credential::Token(token),
        account: config.account.clone().unwrap_or_else(|| name.to_owned()),
    }
}

fn with_keys(name: &str, config: &ProviderConfig) -> Result<Vec<KeyUse>, PlanError> {
    let many = config.keys.len() > 1;
    let mut keys = Vec::new();
    for (number, key) in (1..).zip(&config.keys) {
        let credential =
            Credential::key(config.kind, key.expose()).ok_or_else(|| PlanError::Key(name.to_owned()))?;
        // Several keys of one provider are several accounts unless the config says that they share one.
        let account = match &config.account {
            Some(account) => account.clone(),
            None if many => format!("{name}#{number}"),
            None => name.to_owned(),
        };
        keys.push(KeyUse { credential, fingerprint: fingerprint(key.expose()), account });
    }
    if keys.is_empty() {
        let account = config.account.clone().unwrap_or_else(|| name.to_owned());
        keys.push(KeyUse { credential: Credential::None, fingerprint: "none".to_owned(), account });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::upstream::interface::Interface;
    use koboshi::models::Models;
    use koboshi_config::secret::Secret;

    fn of(name: &str, kind: ProviderKind, change: impl FnOnce(&mut ProviderConfig)) -> Provider {
        let mut config = ProviderConfig::new(kind);
        change(&mut config);
        Provider::compile(name, &config, None).unwrap()
    }

    fn address(provider: &Provider) -> String {
        provider.origin.as_ref().unwrap().to_string()
    }

    #[test]
    fn every_kind_has_its_address_and_dialects() {
        use Dialect::{Chat, Gemini, Messages, Responses};
        let vertex = |place: &'static str| {
            of("v", ProviderKind::Vertex, |config| {
                config.project = Some("p".to_owned());
                config.token_command = vec!["t".to_owned()];
                config.location = Some(place.to_owned()).filter(|place| !place.is_empty());
            })
        };
        for (provider, url, dialects) in [
            (of("o", ProviderKind::Openai, |_| {}), "https://api.openai.com/v1", &[Chat, Responses][..]),
            (of("groq", ProviderKind::Openai, |_| {}), "https://api.groq.com/openai/v1", &[Chat]),
            (of("a", ProviderKind::Anthropic, |_| {}), "https://api.anthropic.com/v1", &[Messages]),
            (
                of("g", ProviderKind::Gemini, |_| {}),
                "https://generativelanguage.googleapis.com/v1beta",
                &[Gemini],
            ),
            (of("l", ProviderKind::Ollama, |_| {}), "http://127.0.0.1:11434/v1", &[Chat]),
            (of("d", ProviderKind::Deepseek, |_| {}), "https://api.deepseek.com/v1", &[Chat]),
            (vertex(""), "https://aiplatform.googleapis.com/v1", &[Gemini]),
            (vertex("europe-west1"), "https://europe-west1-aiplatform.googleapis.com/v1", &[Gemini]),
            (vertex("eu"), "https://aiplatform.eu.rep.googleapis.com/v1", &[Gemini]),
        ] {
            assert_eq!((address(&provider).as_str(), provider.dialects.as_slice()), (url, dialects));
        }
        let azure = of("z", ProviderKind::Azure, |config| config.base_url = Some("https://r.x".to_owned()));
        assert_eq!(azure.dialects, [Chat, Responses]);
        assert_eq!(of("s", ProviderKind::Sim, |_| {}).dialects, Dialect::ALL);
        let only = |config: &mut ProviderConfig| config.dialects = vec![ProviderDialect::Messages];
        assert_eq!(of("s", ProviderKind::Sim, only).dialects, [Messages]);
        assert_eq!(of("o", ProviderKind::Openai, only).dialects, [Messages]);
    }

    #[test]
    fn the_clients_own_dialect_is_used_where_the_provider_speaks_it() {
        use Dialect::{Chat, Gemini, Messages, Responses};
        let default_dialects = |provider: &Provider, model: &str| {
            let facts = Models::builtin().unwrap().facts("", model);
            Dialect::ALL.map(|client| provider.dialect_for(client, provider.speaks_best(&facts)))
        };
        let both = of("o", ProviderKind::Openai, |_| {});
        assert_eq!(default_dialects(&both, "gpt-4o"), [Chat, Responses, Chat, Chat]);
        for model in ["gpt-5.4", "gpt-5.6-terra", "gpt-5.1-codex", "o3-pro"] {
            assert_eq!(default_dialects(&both, model), [Chat, Responses, Responses, Responses], "{model}");
        }
        let claude = of("a", ProviderKind::Anthropic, |_| {});
        assert_eq!(default_dialects(&claude, "gpt-5.4"), [Messages; 4]);
        let sim = of("s", ProviderKind::Sim, |_| {});
        assert_eq!(default_dialects(&sim, "ok"), Dialect::ALL);
        let only = of("o", ProviderKind::Openai, |config| config.dialects = vec![ProviderDialect::Chat]);
        assert_eq!(default_dialects(&only, "gpt-5.4"), [Chat; 4], "the config knows better");
        let turned = of("o", ProviderKind::Openai, |config| {
            config.dialects = vec![ProviderDialect::Gemini, ProviderDialect::Chat];
        });
        assert_eq!(
            default_dialects(&turned, "m"),
            [Chat, Gemini, Gemini, Gemini],
            "the first one is the best"
        );
    }

    #[test]
    fn a_key_goes_to_the_vendor_that_the_name_means() {
        let gemini = of("gemini", ProviderKind::Openai, |_| {});
        assert_eq!(address(&gemini), "https://generativelanguage.googleapis.com/v1beta/openai");
        let claude = of("anthropic", ProviderKind::Openai, |_| {});
        assert_eq!(address(&claude), "https://api.anthropic.com/v1");
        assert_eq!(claude.dialects, [Dialect::Chat]);
    }

    #[test]
    fn only_openai_and_azure_are_openai() {
        let at = |url: &str| of("x", ProviderKind::Openai, |config| config.base_url = Some(url.to_owned()));
        assert!(
            at("https://api.openai.com/v1").is_openai() && at("https://eu.api.openai.com/v1").is_openai()
        );
        assert!(!at("https://notapi.openai.com.example/v1").is_openai() && !at("http://h/v1").is_openai());
        let azure = of("z", ProviderKind::Azure, |config| config.base_url = Some("https://r.x".to_owned()));
        assert!(azure.is_openai());
        assert!(!of("s", ProviderKind::Sim, |_| {}).is_openai());
        assert!(at("https://api.mistral.ai/v1").is_mistral() && !azure.is_mistral());
    }

    #[test]
    fn what_a_kind_lacks_is_named() {
        let error = |kind, change: fn(&mut ProviderConfig)| {
            let mut config = ProviderConfig::new(kind);
            change(&mut config);
            Provider::compile("x", &config, None).unwrap_err().to_string()
        };
        assert!(error(ProviderKind::Azure, |_| {}).contains("providers.x.base_url"));
        assert!(error(ProviderKind::Vertex, |_| {}).contains("providers.x.project"));
        let message = error(ProviderKind::Vertex, |config| config.project = Some("p".to_owned()));
        assert!(message.contains("providers.x.credentials_file"), "{message}");
        let message = error(ProviderKind::Vertex, |config| config.credentials_file = Some("/no/file".into()));
        assert!(message.contains("providers.x.credentials_file: /no/file"), "{message}");
        let message = error(ProviderKind::Openai, |config| config.keys = vec![Secret::new("hunter\n2")]);
        assert!(message.contains("providers.x.keys") && !message.contains("hunter"), "{message}");
    }

    #[test]
    fn a_reload_keeps_the_token_of_the_same_source() {
        let config = |word: &str| {
            let mut config = ProviderConfig::new(ProviderKind::Openai);
            config.token_command = vec![word.to_owned()];
            config
        };
        let token = |provider: &Provider| match &provider.keys[0].credential {
            Credential::Token(token) => Arc::clone(token),
            other => panic!("{other:?}"),
        };
        let before = Provider::compile("x", &config("a"), None).unwrap();
        let same = Provider::compile("x", &config("a"), Some(&before)).unwrap();
        let other = Provider::compile("x", &config("b"), Some(&before)).unwrap();
        assert!(Arc::ptr_eq(&token(&before), &token(&same)));
        assert!(!Arc::ptr_eq(&token(&before), &token(&other)));
        assert_ne!(before.keys[0].fingerprint, other.keys[0].fingerprint);
    }

    #[test]
    fn paths_follow_from_kind_and_address() {
        let azure = of("z", ProviderKind::Azure, |config| config.base_url = Some("https://r.x/".to_owned()));
        let path = azure.paths("m").path(Interface::Generate(Dialect::Chat), true).map(ToString::to_string);
        assert_eq!(path.as_deref(), Some("/openai/v1/chat/completions"));
        assert!(of("s", ProviderKind::Sim, |_| {}).paths("ok").path(Interface::Embeddings, false).is_none());
    }
}
