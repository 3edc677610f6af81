//! What the gateway is told: where it listens, who may call, whom it asks, and what it answers when nobody can.
//!
//! Plain data, like the rest of [`Config`](crate::Config). Names of providers, routes, keys and tools are the user's; each is a
//! named entry of the file. Whether they fit together (a route that names a provider that is not there) is said by `check`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use koboshi::guard::GuardPolicy;
use koboshi::models::Facts;

pub use crate::provider::{ProviderConfig, ProviderDialect, ProviderKind, Timeouts};
use crate::words::{Text, text, words};

/// The built-in provider that falls on command. It is always there.
pub const SIM: &str = "sim";

/// Providers that are taken from the environment when the file names none. Then chains may name any of them.
pub const WELL_KNOWN: &[&str] = &[
    "openai", "anthropic", "gemini", "azure", "vertex", "deepseek", "groq", "mistral", "openrouter", "xai",
    "together", "ollama",
];

/// Stable names of the values of an enum, as the file writes them.
macro_rules! names {
    ($type:ident: $($variant:ident $name:literal),+) => {
        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// Their names.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}
pub(crate) use names;

names!(KeepAlive: Comment "comment", Frame "frame", Off "off");
names!(Commit: First "first", Complete "complete");
names!(GuardMode: Stop "stop", Note "note", Observe "observe", Off "off");
names!(CacheMode: Off "off", Fallback "fallback", Serve "serve");
names!(LogFormat: Pretty "pretty", Json "json");
names!(ErrorDetail: Always "always", Loopback "loopback", Never "never");

/// Where the gateway listens, and what one client may ask of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// Names besides `localhost` and the address itself that may stand in `Host`.
    pub hosts: Vec<String>,
    /// Web pages that may call, such as `https://app.example`; none by default.
    pub origins: Vec<String>,
    /// The largest request body, in bytes.
    pub body_bytes: u64,
    /// Memory that the bodies of all requests may take together, in bytes; none means a quarter of the machine's.
    pub memory: Option<u64>,
    /// A request's head must be there after this.
    pub head_time: Duration,
    /// A request's body must be there after this.
    pub body_time: Duration,
    /// A client that takes nothing of its answer for so long is let go.
    pub send_time: Duration,
    /// Connections at the same time; more wait.
    pub connections: u32,
    /// How long streams may go on after a signal to stop.
    pub drain: Duration,
    /// Nothing is tried for a request after this; a client may ask for less.
    pub deadline: Duration,
    /// A client's own vendor key goes to that vendor, and to nobody else.
    pub passthrough: bool,
    /// Metrics and the details of readiness are given to everybody who can reach the gateway.
    pub public_metrics: bool,
    /// What keeps a silent stream open.
    pub keep_alive: KeepAlive,
    /// How often.
    pub keep_alive_every: Duration,
    /// So long nothing at all is sent while no content has come; then the head and keep-alives go out.
    pub hold: Duration,
    /// Threads that serve; none means one per core.
    pub threads: Option<u32>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4141)),
            hosts: Vec::new(),
            origins: Vec::new(),
            body_bytes: 32 * 1024 * 1024,
            memory: None,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            send_time: Duration::from_secs(300),
            connections: 20_000,
            drain: Duration::from_secs(30),
            deadline: Duration::from_secs(600),
            passthrough: false,
            public_metrics: false,
            keep_alive: KeepAlive::Comment,
            keep_alive_every: Duration::from_secs(5),
            hold: Duration::from_secs(10),
            threads: None,
        }
    }
}

impl ServeConfig {
    /// Whether only programs of this machine can reach it. Elsewhere a gateway without keys refuses to start.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }
}

/// Why a gateway does not start at an address that others can reach while it has no `keys`, and what to do. `check` says it of the
/// file and `serve` of `--listen`, in the same words.
#[must_use]
pub fn open_to_others(address: SocketAddr) -> (Text, Text) {
    let message = text!(
        "{address} can be reached from other machines, and there are no `keys`: the gateway does not start",
        "{address} にはほかのマシンからも接続できますが、`keys` がありません。このままではゲートウェイは起動しません"
    );
    let hint = words(
        "add a client's key to `keys`, or listen on `127.0.0.1`",
        "`keys` にクライアントのキーを追加するか、`127.0.0.1` で待ち受けてください",
    );
    (message, hint.into())
}

/// What keeps a silent stream open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeepAlive {
    /// A comment line, which the standard tells clients to pass over.
    Comment,
    /// A frame of the dialect without content, for clients that stumble over comments.
    Frame,
    /// Nothing.
    Off,
}

/// A key that a client may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKey {
    /// SHA-256 of the key, 64 hexadecimal digits, small letters. The key itself is nowhere.
    pub sha256: String,
    /// Whose it is; the key's name where nothing is said.
    pub tenant: Option<String>,
}

/// Who may ask and change what the gateway knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdminConfig {
    /// SHA-256 of the key, 64 hexadecimal digits, small letters. Without one, only callers on the loopback address are let in.
    pub sha256: Option<String>,
}

/// What happens to requests for a model name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteConfig {
    /// `provider/model`, best first; `{model}` is what the client asked for.
    pub chain: Vec<String>,
    /// When the client sees the first byte.
    pub commit: Commit,
    /// What the loop guard may do here; none is what `guard.mode` says.
    pub guard: Option<GuardMode>,
    /// `provider/model` of a simpler model that answers when the chain cannot; none is what `degrade` says.
    pub simple: Option<String>,
    /// What the cache does here; none is what `degrade` says.
    pub cache: Option<CacheMode>,
}

/// When the client sees the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Commit {
    /// With the first content.
    #[default]
    First,
    /// When the answer is whole: no fault of a stream is ever seen, and nothing is seen before.
    Complete,
}

/// What is known of a model; what is not said comes from the models file, then from the built-in table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelConfig {
    /// What it can do, and which parameters it takes.
    pub facts: Facts,
    /// How long it may take.
    pub timeouts: Timeouts,
}

/// The loop guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardConfig {
    /// What it may do where a route does not say otherwise. `policy.observe` always agrees with it.
    pub mode: GuardMode,
    /// Whether depth may stop a turn in the gateway; coding agents make far more than twenty calls.
    pub enforce_depth: bool,
    /// Its rules.
    pub policy: GuardPolicy,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self { mode: GuardMode::Stop, enforce_depth: false, policy: GuardPolicy::default() }
    }
}

/// What the loop guard may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardMode {
    /// Tell the model what repeats, and at the limit forbid it: the same call first, then the tool, then all tools.
    Stop,
    /// Only tell the model what repeats.
    Note,
    /// Say in headers and metrics what it would do.
    Observe,
    /// Nothing.
    Off,
}

/// What is answered when the chain is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegradeConfig {
    /// The response cache.
    pub cache: CacheMode,
    /// How long an answer counts as fresh.
    pub cache_ttl: Duration,
    /// How much longer it may serve when nobody answers.
    pub cache_stale: Duration,
    /// Whether answers to requests with tools are kept.
    pub cache_tools: bool,
    /// `provider/model` of a simpler model.
    pub simple: Option<String>,
    /// The file of static answers.
    pub answers: Option<PathBuf>,
    /// The status of a static answer: 200, or 503 for clients that look at it.
    pub status: u16,
}

impl Default for DegradeConfig {
    fn default() -> Self {
        Self {
            cache: CacheMode::Off,
            cache_ttl: Duration::from_secs(3600),
            cache_stale: Duration::from_secs(24 * 3600),
            cache_tools: false,
            simple: None,
            answers: None,
            status: 200,
        }
    }
}

/// What the response cache does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// Keeps nothing.
    Off,
    /// Answers when the chain cannot.
    Fallback,
    /// Answers before anybody is asked, and when the chain cannot.
    Serve,
}

/// Errors as clients get them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorsConfig {
    /// Who gets the provider's own message where the client can correct the request.
    pub detail: ErrorDetail,
}

/// Who gets the provider's own message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ErrorDetail {
    /// Every client.
    #[default]
    Always,
    /// Clients on this machine.
    Loopback,
    /// None.
    Never,
}

/// What is written to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// For people or for machines; none is for people on a terminal, else for machines.
    pub format: Option<LogFormat>,
    /// The least grave that is written: `error`, `warn`, `info`, `debug`.
    pub level: &'static str,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: None, level: "info" }
    }
}

/// For people or for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceConfig {
    /// Address of an OTLP collector (HTTP); none sends nothing.
    pub otlp: Option<String>,
}

/// Named entries of the file.
pub type Named<T> = BTreeMap<String, T>;
