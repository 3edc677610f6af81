//! A provider as the file describes it: its API, its address and its credentials.
//!
//! Plain data. `check` reports what a kind needs and what it does not read.

use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::names;
use crate::secret::Secret;

names!(ProviderKind: Openai "openai", Azure "azure", Anthropic "anthropic", Gemini "gemini", Vertex "vertex",
    Ollama "ollama", Deepseek "deepseek", Sim "sim");
names!(ProviderDialect: Chat "chat", Responses "responses", Messages "messages", Gemini "gemini");

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Its API.
    pub kind: ProviderKind,
    /// Its address; by default the vendor's own.
    pub base_url: Option<String>,
    /// The dialects at that address, best first; empty means those of its kind.
    pub dialects: Vec<ProviderDialect>,
    /// Its keys, which rotate.
    pub keys: Vec<Secret>,
    /// A program and its arguments that print a bearer token, in place of keys; may be empty.
    pub token_command: Vec<String>,
    /// Azure: the dated version of its API; none means the undated one.
    pub api_version: Option<String>,
    /// Vertex: the project; by default that of the credentials.
    pub project: Option<String>,
    /// Vertex: the region; by default `global`.
    pub location: Option<String>,
    /// Vertex: the key file of a service account (JSON).
    pub credentials_file: Option<PathBuf>,
    /// The account of the keys, for the store; by default the provider's name.
    pub account: Option<String>,
    /// Certificates of its authority, if the machine does not trust it (PEM).
    pub ca_file: Option<PathBuf>,
    /// How long it may take.
    pub timeouts: Timeouts,
}

impl ProviderConfig {
    /// A provider of this kind at its default address, without keys.
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

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProviderKind {
    /// OpenAI itself, and every server with compatible chat completions.
    Openai,
    /// OpenAI's models at Microsoft: other paths, another header for the key.
    Azure,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini with a key of AI Studio.
    Gemini,
    /// Google's Gemini in a project of its cloud, with tokens that expire.
    Vertex,
    /// Ollama: OpenAI's dialect on this machine; it loads models first.
    Ollama,
    /// DeepSeek: OpenAI's dialect, slow to begin.
    Deepseek,
    /// The built-in provider that fails on command.
    Sim,
}

/// A dialect of a provider.
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

/// Time limits; missing ones come from the kind of provider and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    /// Until a connection is established.
    pub connect: Option<Duration>,
    /// Until a stream's first content.
    pub first_token: Option<Duration>,
    /// Between two pieces of a stream.
    pub idle: Option<Duration>,
    /// Until an answer that is not streamed begins.
    pub unary: Option<Duration>,
    /// Until the end.
    pub total: Option<Duration>,
}
