//! A provider as the file describes it: which interface it has, where it is, and what tells it who asks.
//!
//! Plain data. What a kind needs and what it does not read is said by `check`.

use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::names;
use crate::secret::Secret;

names!(ProviderKind: Openai "openai", Azure "azure", Anthropic "anthropic", Gemini "gemini", Vertex "vertex",
    Ollama "ollama", Deepseek "deepseek", Sim "sim");
names!(ProviderDialect: Chat "chat", Responses "responses", Messages "messages", Gemini "gemini");

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Which interface it has.
    pub kind: ProviderKind,
    /// Where it is; none is the vendor's usual address.
    pub base_url: Option<String>,
    /// What it speaks at that address, best first; empty is what its kind speaks.
    pub dialects: Vec<ProviderDialect>,
    /// Its keys, used in turn.
    pub keys: Vec<Secret>,
    /// A program and its arguments that print a bearer token, in place of keys; empty is none.
    pub token_command: Vec<String>,
    /// Azure: the dated version of its interface; none is the one without dates.
    pub api_version: Option<String>,
    /// Vertex: the project; none is that of the credentials.
    pub project: Option<String>,
    /// Vertex: the region; none is `global`.
    pub location: Option<String>,
    /// Vertex: the key file of a service account (JSON).
    pub credentials_file: Option<PathBuf>,
    /// The account that the keys belong to, for what the store remembers; the provider's name where nothing is said.
    pub account: Option<String>,
    /// Certificates of the authority that vouches for it, if the machine does not know that one (PEM).
    pub ca_file: Option<PathBuf>,
    /// How long it may take.
    pub timeouts: Timeouts,
}

impl ProviderConfig {
    /// A provider of this kind at its usual address, without keys.
    #[must_use]
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            dialects: Vec::new(),
            keys: Vec::new(),
            token_command: Vec::new(),
            api_version: None,
            project: None,
            location: None,
            credentials_file: None,
            account: None,
            ca_file: None,
            timeouts: Timeouts::default(),
        }
    }
}

/// Which interface a provider has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProviderKind {
    /// OpenAI itself, and everybody who copies its chat completions.
    Openai,
    /// OpenAI's models at Microsoft: other paths, another header for the key.
    Azure,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini with a key of AI Studio.
    Gemini,
    /// Google's Gemini in a project of its cloud, with tokens that run out.
    Vertex,
    /// Ollama: OpenAI's dialect on the own machine, loads models first.
    Ollama,
    /// DeepSeek: OpenAI's dialect, slow to begin.
    Deepseek,
    /// The built-in provider that falls on command.
    Sim,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProviderDialect {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Google's `generateContent`.
    Gemini,
}

/// How long things may take; what is not said comes from the kind of provider and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    /// Until a connection stands.
    pub connect: Option<Duration>,
    /// Until a stream's first content.
    pub first: Option<Duration>,
    /// Between two pieces of a stream.
    pub idle: Option<Duration>,
    /// Until an answer that is not streamed begins.
    pub whole: Option<Duration>,
    /// Until the end.
    pub total: Option<Duration>,
}
