//! The whole configuration as plain data: the core's policies, and what the shells need besides.
//!
//! All code reads settings here; only this crate knows the form of the file. Every field can be
//! set by a key of the file (a test sets each key and checks that it arrives here).

use std::path::PathBuf;

use koboshi::args::ArgsPolicy;
use koboshi::breaker::BreakerPolicy;
use koboshi::budget::SharePolicy;
use koboshi::cooldown::CooldownPolicy;
use koboshi::gate::GatePolicy;
use koboshi::models::fits;
use koboshi::reask::ReaskPolicy;
use koboshi::remedy::RemedyPolicy;

use crate::agents::{AccountConfig, AgentConfig};
use crate::gateway::{
    AdminConfig, ClientKey, DegradeConfig, ErrorsConfig, GuardConfig, LogConfig, ModelConfig, Named,
    ProviderConfig, RouteConfig, ServeConfig, SpendConfig, TraceConfig,
};
use crate::notify::{ChannelConfig, NotifyConfig};
use crate::secret::Secret;
use crate::sessions::SessionsConfig;

/// All settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What one request may try, and the pauses between attempts: `retry` and `request`.
    pub remedy: RemedyPolicy,
    /// Turns of a conversation with one of these texts are kept when it is shortened: `request.pinned`.
    pub pinned: Vec<String>,
    /// How much of the traffic may be retries.
    pub retry_share: SharePolicy,
    /// When a target is no longer asked.
    pub breaker: BreakerPolicy,
    /// How close to a limit traffic may go.
    pub gate: GatePolicy,
    /// How long keys cool down: `cooldown` and `error_protection`.
    pub cooldown: CooldownPolicy,
    /// Where state is stored.
    pub store: StoreConfig,
    /// Rule files of the user, in order.
    pub rules: Vec<PathBuf>,
    /// Language of texts for people; by default the environment decides.
    pub language: Option<Language>,
    /// Prefix of the fault codes.
    pub code_prefix: String,
    /// Where the gateway listens.
    pub serve: ServeConfig,
    /// Keys that clients may use, by name.
    pub keys: Named<ClientKey>,
    /// The admin API.
    pub admin: AdminConfig,
    /// How spending is counted.
    pub spend: SpendConfig,
    /// The providers, by name.
    pub providers: Named<ProviderConfig>,
    /// The routes, by model name; `*` matches anything.
    pub routes: Named<RouteConfig>,
    /// What models can do, by `provider/model`; `*` matches anything.
    pub models: Named<ModelConfig>,
    /// A file of the user with facts of models.
    pub models_file: Option<PathBuf>,
    /// How the arguments of tool calls are read: `tool_calls`.
    pub args: ArgsPolicy,
    /// How often broken tool calls are tried again: `tool_calls.attempts`.
    pub reask: ReaskPolicy,
    /// The loop guard.
    pub guard: GuardConfig,
    /// Lesser answers when no target can answer.
    pub degrade: DegradeConfig,
    /// Conversations over WebSocket.
    pub sessions: SessionsConfig,
    /// Errors as clients get them.
    pub errors: ErrorsConfig,
    /// What is written to the log.
    pub log: LogConfig,
    /// Where traces go.
    pub trace: TraceConfig,
    /// What all channels of notices have in common.
    pub notify: NotifyConfig,
    /// Where notices go, by name: `notify.channels`.
    pub channels: Named<ChannelConfig>,
    /// Agents of a supervisor, by name.
    pub agents: Named<AgentConfig>,
    /// Accounts of agents, by name.
    pub accounts: Named<AccountConfig>,
    /// Files of the user with what is known of agent programs, in order.
    pub kinds: Vec<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            remedy: RemedyPolicy::default(),
            pinned: Vec::new(),
            retry_share: SharePolicy::default(),
            breaker: BreakerPolicy::default(),
            gate: GatePolicy::default(),
            cooldown: CooldownPolicy::default(),
            store: StoreConfig::default(),
            rules: Vec::new(),
            language: None,
            code_prefix: koboshi::fault::DEFAULT_PREFIX.to_owned(),
            serve: ServeConfig::default(),
            keys: Named::new(),
            admin: AdminConfig::default(),
            spend: SpendConfig::default(),
            providers: Named::new(),
            routes: Named::new(),
            models: Named::new(),
            models_file: None,
            args: ArgsPolicy::default(),
            reask: ReaskPolicy::default(),
            guard: GuardConfig::default(),
            degrade: DegradeConfig::default(),
            sessions: SessionsConfig::default(),
            errors: ErrorsConfig::default(),
            log: LogConfig::default(),
            trace: TraceConfig::default(),
            notify: NotifyConfig::default(),
            channels: Named::new(),
            agents: Named::new(),
            accounts: Named::new(),
            kinds: Vec::new(),
        }
    }
}

impl Config {
    /// The entry of `models` for a model of this provider: the one with this very name, else the longest pattern that matches.
    #[must_use]
    pub fn model(&self, provider: &str, model: &str) -> Option<(&str, &ModelConfig)> {
        if self.models.is_empty() {
            return None;
        }
        let name = format!("{provider}/{model}");
        let exact = self.models.get_key_value(&name);
        let fitting = || {
            let fitting = self.models.iter().filter(|(pattern, _)| fits(pattern, &name));
            fitting.max_by_key(|(pattern, _)| pattern.len())
        };
        exact.or_else(fitting).map(|(pattern, said)| (pattern.as_str(), said))
    }
}

/// Language of texts for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// English.
    En,
    /// Japanese.
    Ja,
}

impl Language {
    /// What stands between the parts of a list.
    #[must_use]
    pub const fn comma(self) -> &'static str {
        match self {
            Self::En => ", ",
            Self::Ja => "、",
        }
    }

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }
}

/// Where state is stored, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where.
    pub place: StorePlace,
    /// How much of the journal is kept.
    pub journal: JournalConfig,
    /// How large the response cache may grow.
    pub cache: CacheConfig,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            place: StorePlace::Usual,
            journal: JournalConfig { keep_days: 30, keep_entries: 100_000 },
            cache: CacheConfig { max_bytes: 64 * 1024 * 1024 },
        }
    }
}

/// Where state is stored. The command line matches all of them too: a place that it forgets must not become another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// In the file that the processes of one user share: `koboshi/koboshi.db` in `$XDG_STATE_HOME` or `~/.local/state`.
    Usual,
    /// In this process only.
    Memory,
    /// In a file that the processes of one machine share.
    File(PathBuf),
    /// In a server that a fleet shares.
    Redis {
        /// Its address, which may hold a password.
        url: Secret,
        /// The prefix of our keys.
        prefix: String,
    },
}

impl StorePlace {
    /// The text for the place in this process only.
    pub const MEMORY: &str = "memory";
    /// The default prefix of keys in a shared server.
    pub const DEFAULT_PREFIX: &str = "koboshi:";

    /// Whether several machines can share it.
    #[must_use]
    pub const fn is_shared_by_machines(&self) -> bool {
        match self {
            Self::Redis { .. } => true,
            Self::Usual | Self::Memory | Self::File(_) => false,
        }
    }

    /// The prefix of its keys, if it has any.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Redis { prefix, .. } => Some(prefix.as_str()),
            Self::Usual | Self::Memory | Self::File(_) => None,
        }
    }

    /// The place that `--store` names: `memory`, an address with `://`, or a file. A text like an address is no file name, so that a mistyped
    /// address does not create a file. None for the address of a server that is no store.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        if text == Self::MEMORY {
            return Some(Self::Memory);
        }
        let Some((scheme, _)) = text.split_once("://") else { return Some(Self::File(text.into())) };
        let base = scheme.split_once('+').map_or(scheme, |(base, _)| base);
        let (url, prefix) = (Secret::new(text.to_owned()), Self::DEFAULT_PREFIX.to_owned());
        ["redis", "rediss", "valkey", "valkeys", "unix"]
            .contains(&base)
            .then_some(Self::Redis { url, prefix })
    }
}

/// How much of the journal is kept; the limit that is reached first applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalConfig {
    /// Days.
    pub keep_days: u32,
    /// Entries.
    pub keep_entries: u64,
}

/// How large the response cache may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of answers; zero caches none.
    pub max_bytes: u64,
}
