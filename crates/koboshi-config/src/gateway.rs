//! Settings of the gateway: its address, clients, providers, routes and lesser answers.
//!
//! Plain data, like the rest of [`Config`](crate::Config). Users choose the names of providers, routes, keys and tools; each is a
//! named entry of the file. `check` reports whether they fit together (such as a route to a provider that does not exist).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use koboshi::guard::GuardPolicy;
use koboshi::models::Facts;
use koboshi::spend::Budget;

pub use crate::provider::{ProviderConfig, ProviderDialect, ProviderKind, Timeouts};
use crate::words::{Text, text, words};

/// The built-in provider that fails on command. It always exists.
pub const SIM: &str = "sim";

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

/// The address of the gateway, and the limits of its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// The certificate for TLS towards clients; none means plain HTTP.
    pub tls: TlsConfig,
    /// Peers that may say who the client is.
    pub trusted_proxies: Vec<IpNet>,
    /// Allowed names in `Host`, besides `localhost` and the address itself.
    pub hosts: Vec<String>,
    /// Web pages that may call, such as `https://app.example`; none by default.
    pub origins: Vec<String>,
    /// The chat page is served at `/chat`.
    pub chat: bool,
    /// The largest request body, in bytes.
    pub body_bytes: u64,
    /// How many bytes the bodies of all requests may take together; none means a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// How long a client may take to send a request's head.
    pub head_time: Duration,
    /// How long a client may take to send a request's body.
    pub body_time: Duration,
    /// How long a client may read nothing of its answer before it is closed.
    pub send_time: Duration,
    /// How many connections may be open; further ones wait.
    pub connections: u32,
    /// How long streams may continue after a signal to stop.
    pub drain: Duration,
    /// How long a request may be tried; a client may ask for less.
    pub deadline: Duration,
    /// A client's own vendor key is sent to that vendor, and to no other.
    pub passthrough: bool,
    /// Whether metrics and the details of readiness are public.
    pub public_metrics: bool,
    /// What keeps a silent stream open.
    pub keep_alive: KeepAlive,
    /// Interval of keep-alive frames.
    pub keep_alive_every: Duration,
    /// How long response headers are withheld while waiting for the first content; then headers and keep-alive frames are sent.
    pub first_byte_hold: Duration,
    /// Number of serving threads; none means one per core.
    pub threads: Option<u32>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4141)),
            tls: TlsConfig::default(),
            trusted_proxies: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            chat: false,
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
            first_byte_hold: Duration::from_secs(10),
            threads: None,
        }
    }
}

/// The files of `serve.tls`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate and those of its authorities (PEM).
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
}

impl TlsConfig {
    /// Certificate and key, where clients are to use TLS.
    #[must_use]
    pub fn files(&self) -> Option<(&Path, &Path)> {
        Some((self.certificate.as_deref()?, self.key.as_deref()?))
    }
}

impl ServeConfig {
    /// The scheme of the gateway's own address.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.files().is_some() { "https" } else { "http" }
    }

    /// Whether only programs of this machine can reach it. On other addresses a gateway without keys refuses to start.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }
}

/// Why a gateway without `keys` does not start at an address that others can reach, and what to do. `check` reports it for the
/// file and `serve` for `--listen`, in the same words.
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
    /// A comment line, which clients ignore by the standard.
    Comment,
    /// A frame of the dialect without content, for clients that do not accept comments.
    Frame,
    /// Nothing.
    Off,
}

/// A key that a client may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientKey {
    /// SHA-256 of the key, 64 hexadecimal digits, small letters. The key itself is not stored.
    pub sha256: String,
    /// Its owner; by default the key's name.
    pub tenant: Option<String>,
    /// What it may spend.
    pub budget: Budget,
    /// How many requests it may make in a minute.
    pub rate: Option<u32>,
    /// The routes and models that it may ask for, with `*`; none means all.
    pub routes: Option<Vec<String>>,
}

/// How spending is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct SpendConfig {
    /// The currency of budgets and costs, as three letters.
    pub currency: String,
    /// How much of it a US dollar is worth: prices are in dollars.
    pub per_dollar: f64,
    /// The zone in which days and months begin.
    pub zone: String,
}

impl Default for SpendConfig {
    fn default() -> Self {
        Self { currency: "USD".to_owned(), per_dollar: 1.0, zone: "UTC".to_owned() }
    }
}

/// The admin API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdminConfig {
    /// SHA-256 of the key, 64 hexadecimal digits, small letters. Without one, only callers on the loopback address are allowed.
    pub sha256: Option<String>,
}

/// The route of requests for a model name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteConfig {
    /// `provider/model`, best first; `{model}` is what the client asked for.
    pub chain: Vec<String>,
    /// When the client sees the first byte.
    pub commit: Commit,
    /// What the loop guard may do here; by default `guard.mode` decides.
    pub guard: Option<GuardMode>,
    /// `provider/model` of a simpler model that answers when the chain cannot; by default `degrade` decides.
    pub simple_model: Option<String>,
    /// What the cache does here; by default `degrade` decides.
    pub cache: Option<CacheMode>,
}

/// When the client sees the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Commit {
    /// With the first content.
    #[default]
    First,
    /// When the answer is complete: the client never sees a fault of a stream, and nothing before the end.
    Complete,
}

/// What is known of a model; missing facts come from the models file, then from the built-in table.
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
    /// What it may do where a route does not say otherwise. Always consistent with `policy.observe`.
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
    /// Report in headers and metrics what it would do.
    Observe,
    /// Nothing.
    Off,
}

/// Lesser answers when the chain is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegradeConfig {
    /// The response cache.
    pub cache: CacheMode,
    /// How long an answer is fresh.
    pub cache_ttl: Duration,
    /// How much longer it may be used when no target answers.
    pub cache_stale: Duration,
    /// Whether answers to requests with tools are cached.
    pub cache_tools: bool,
    /// `provider/model` of a simpler model.
    pub simple_model: Option<String>,
    /// The file of static answers.
    pub answers_file: Option<PathBuf>,
    /// The status of a static answer: 200, or 503 for clients that check it.
    pub status: u16,
}

impl Default for DegradeConfig {
    fn default() -> Self {
        Self {
            cache: CacheMode::Off,
            cache_ttl: Duration::from_secs(3600),
            cache_stale: Duration::from_secs(24 * 3600),
            cache_tools: false,
            simple_model: None,
            answers_file: None,
            status: 200,
        }
    }
}

/// What the response cache does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// Caches nothing.
    Off,
    /// Answers when the chain cannot.
    Fallback,
    /// Answers before a target is asked, and when the chain cannot.
    Serve,
}

/// Errors as clients get them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorsConfig {
    /// Which clients get the provider's own message where they can correct the request.
    pub detail: ErrorDetail,
}

/// Which clients get the provider's own message.
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
    /// The format; by default for people on a terminal, else for machines.
    pub format: Option<LogFormat>,
    /// The lowest severity that is written: `error`, `warn`, `info`, `debug`.
    pub level: &'static str,
    /// A file that gets warnings and errors as JSON lines, besides.
    pub errors: Option<PathBuf>,
    /// How large it may become before it is renamed.
    pub errors_max_bytes: u64,
    /// How many renamed files are kept.
    pub errors_kept: u32,
    /// Address of an OTLP collector (HTTP) that gets every line too.
    pub otlp: Option<String>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: None,
            level: "info",
            errors: None,
            errors_max_bytes: 10 * 1024 * 1024,
            errors_kept: 5,
            otlp: None,
        }
    }
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object per line.
    Json,
}

/// Where traces are sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceConfig {
    /// Address of an OTLP collector (HTTP); none sends nothing.
    pub otlp: Option<String>,
}

/// Named entries of the file.
pub type Named<T> = BTreeMap<String, T>;
