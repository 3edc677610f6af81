//! `serve`, `keys`, `admin`, `log` and `trace`: the gateway itself.

use super::super::{Field, Key, Range, Shape};
use super::build::{
    AT_MOST_A_DAY, NONE, SOME_COUNT, UP_TO_A_DAY, at, count, count_at, entries, flag, length, of_entry,
    optional_count_at, path, secret, section, text, texts, word, word_at,
};
use super::forms::{HOST, LISTEN, NAME, NETWORK, ORIGIN, SHA256, SIZE, URL, network};
use crate::gateway::{ClientKey, ErrorDetail, KeepAlive, LogFormat};
use crate::secret::Secret;
use crate::size;

const LEVELS: &[&str] = &["error", "warn", "info", "debug"];
const UP_TO_100: Range<u64> = Range::of(0, 100);

pub(super) fn serve() -> Vec<Key> {
    vec![
        section("serve", "Where the gateway listens, and limits for its clients"),
        text(
            "serve.listen",
            LISTEN,
            Field {
                get: |c, _| Some(c.serve.listen.to_string()),
                set: |c, _, text| {
                    if let Some(address) = text.and_then(|text| text.parse().ok()) {
                        c.serve.listen = address;
                    }
                },
            },
            "Address and port to listen on; an address that other machines can reach needs `keys`",
        ),
        section("serve.tls", "TLS towards clients, on the same address; with it, plain HTTP is not served"),
        path(
            "serve.tls.certificate",
            Field {
                get: |c, _| c.serve.tls.certificate.clone(),
                set: |c, _, path| c.serve.tls.certificate = path,
            },
            "File with the certificate and those of its authorities (PEM), reread when it changes; turning TLS on or off needs a restart",
        ),
        path(
            "serve.tls.key",
            Field { get: |c, _| c.serve.tls.key.clone(), set: |c, _, path| c.serve.tls.key = path },
            "File with the private key of that certificate (PEM), reread when it changes",
        ),
        texts(
            "serve.trusted_proxies",
            NETWORK,
            UP_TO_100,
            Field {
                get: |c, _| Some(c.serve.trusted_proxies.iter().map(ToString::to_string).collect()),
                set: |c, _, networks| {
                    let networks = networks.unwrap_or_default();
                    c.serve.trusted_proxies = networks.iter().filter_map(|text| network(text)).collect();
                },
            },
            "Addresses and networks of proxies that may say who the client is, in `X-Forwarded-For` or `Forwarded`; a request with such headers \
             from any other peer counts as remote",
        ),
        texts(
            "serve.allowed_hosts",
            HOST,
            UP_TO_100,
            Field {
                get: |c, _| Some(c.serve.hosts.clone()),
                set: |c, _, hosts| c.serve.hosts = small(hosts),
            },
            "Host names that requests may use in `Host`, besides `localhost` and the listen address",
        ),
        texts(
            "serve.allowed_origins",
            ORIGIN,
            UP_TO_100,
            Field {
                get: |c, _| Some(c.serve.origins.clone()),
                set: |c, _, origins| c.serve.origins = small(origins),
            },
            "Origins of web pages that may call the gateway",
        ),
        flag(
            "serve.chat",
            at!(serve.chat),
            "Whether a small chat page is served at `/chat`; its own origin may then call the gateway",
        ),
        count(
            "serve.max_body_bytes",
            Range::of(1024, u32::MAX as u64),
            at!(serve.body_bytes),
            "Maximum size of a request body, in bytes",
        ),
        text(
            "serve.memory",
            SIZE,
            Field {
                get: |c, _| c.serve.memory.map(size::text),
                set: |c, _, text| c.serve.memory = text.as_deref().and_then(size::bytes),
            },
            "Memory that the bodies of all requests and the large answers of providers may take together, each counted three times; what is beyond it is a 503. Bodies up to 64 KiB have an eighth more",
        )
        .unset("a quarter of the memory of the machine, or of the container or service", "マシン（コンテナやサービスに上限があればその値）のメモリの 4 分の 1"),
        length(
            "serve.header_timeout",
            UP_TO_A_DAY,
            at!(serve.head_time),
            "How long a client may take to send the request headers",
        ),
        length(
            "serve.body_timeout",
            UP_TO_A_DAY,
            at!(serve.body_time),
            "How long a client may take to send the request body",
        ),
        length(
            "serve.write_timeout",
            UP_TO_A_DAY,
            at!(serve.send_time),
            "How long a client may stop reading its response before the connection is closed",
        ),
        count(
            "serve.max_connections",
            SOME_COUNT,
            count_at!(serve.connections),
            "Maximum number of open client connections; further clients wait",
        ),
        length(
            "serve.drain_timeout",
            AT_MOST_A_DAY,
            at!(serve.drain),
            "How long open streams may continue after a signal to stop; `0s` stops them at once",
        ),
        length(
            "serve.deadline",
            UP_TO_A_DAY,
            at!(serve.deadline),
            "Time limit for one request over all attempts; a client may ask for less",
        ),
        flag(
            "serve.passthrough",
            at!(serve.passthrough),
            "Whether a vendor key that a client sends is passed on, to that vendor only",
        ),
        flag(
            "serve.public_metrics",
            at!(serve.public_metrics),
            "Whether `/metrics` and the details of `/ready` are given to every caller, and not only to those with the admin key, or on the loopback address where no `keys` are set",
        ),
        section("serve.keep_alive", "Keep-alives for streams that are waiting for content"),
        word(
            "serve.keep_alive.style",
            KeepAlive::NAMES,
            word_at!(KeepAlive, serve.keep_alive),
            "`comment` sends SSE comments, which clients ignore by the standard; `frame` sends empty chunks, for clients that cannot read comments",
        ),
        length(
            "serve.keep_alive.interval",
            UP_TO_A_DAY,
            at!(serve.keep_alive_every),
            "Time between two keep-alives",
        ),
        length(
            "serve.first_byte_hold",
            AT_MOST_A_DAY,
            at!(serve.first_byte_hold),
            "How long to wait for the first token before sending response headers and keep-alives. Until then, failures are invisible to the client; `0s` sends them at once",
        ),
        count(
            "serve.threads",
            Range::of(1, 1024),
            optional_count_at!(serve.threads),
            "Number of worker threads",
        )
        .unset("one per core", "コアごとに 1 つ"),
    ]
}

/// Converts host names to lower case.
fn small(texts: Option<Vec<String>>) -> Vec<String> {
    texts.unwrap_or_default().iter().map(|text| text.to_ascii_lowercase()).collect()
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        section("keys", "API keys of your clients, each under a name of your choice"),
        Key {
            path: "keys.*",
            shape: entries!(
                keys,
                ClientKey::default(),
                NAME,
                required: &["sha256"],
                short: None
            ),
            meaning: "One client key",
            unset: NONE,
        },
        secret(
            "keys.*.sha256",
            SHA256,
            Field {
                get: |c, name| c.keys.get(name).map(|key| Secret::new(key.sha256.as_str())),
                set: |c, name, hash| {
                    if let (Some(key), Some(hash)) = (c.keys.get_mut(name), hash) {
                        key.sha256 = hash.expose().to_ascii_lowercase();
                    }
                },
            },
            "SHA-256 hash of the key; the key itself is not stored",
        ),
        text(
            "keys.*.tenant",
            NAME,
            of_entry!(keys, tenant),
            "The tenant that requests with this key belong to",
        )
        .unset("the key's name", "キーの名前"),
    ]
}

pub(super) fn admin() -> Vec<Key> {
    vec![
        section("admin", "Access to the admin API under `/koboshi`"),
        secret(
            "admin.sha256",
            SHA256,
            Field {
                get: |c, _| c.admin.sha256.as_deref().map(Secret::new),
                set: |c, _, hash| c.admin.sha256 = hash.map(|hash| hash.expose().to_ascii_lowercase()),
            },
            "SHA-256 hash of the admin key; without one, the admin API only answers callers on the loopback address, and no one where `keys` are set",
        ),
    ]
}

pub(super) fn telling() -> Vec<Key> {
    vec![
        section("errors", "Errors as clients get them"),
        word(
            "errors.detail",
            ErrorDetail::NAMES,
            Field {
                get: |c, _| Some(c.errors.detail.name()),
                set: |c, _, word| {
                    if let Some(detail) = word.and_then(ErrorDetail::from_name) {
                        c.errors.detail = detail;
                    }
                },
            },
            "Who gets the provider's own message, redacted, where the client can correct the request (invalid request, unknown model, context \
             too large, content filter): every client, only clients on this machine, or none",
        ),
        section("log", "The log of the gateway"),
        word(
            "log.format",
            LogFormat::NAMES,
            Field {
                get: |c, _| c.log.format.map(LogFormat::name),
                set: |c, _, word| c.log.format = word.and_then(LogFormat::from_name),
            },
            "`pretty` is for people, `json` writes one JSON object per line",
        )
        .unset("`pretty` on a terminal, else `json`", "端末では `pretty`、それ以外は `json`"),
        word("log.level", LEVELS, at!(log.level), "Lowest level that is written"),
        section("log.errors", "A file for errors, besides the log"),
        Key {
            path: "log.errors.file",
            shape: Shape::Path {
                field: Field { get: |c, _| c.log.errors.clone(), set: |c, _, path| c.log.errors = path },
            },
            meaning: "A file that gets warnings and errors as JSON lines; a change needs a restart",
            unset: NONE,
        },
        count(
            "log.errors.max_bytes",
            Range::of(4096, 1 << 40),
            at!(log.errors_max_bytes),
            "Size of the file at which it is renamed and a new one begins",
        ),
        count(
            "log.errors.keep_files",
            Range::of(0, 1000),
            count_at!(log.errors_kept),
            "Number of renamed files that are kept",
        ),
        Key {
            path: "log.otlp",
            shape: Shape::Text {
                form: URL,
                field: Field { get: |c, _| c.log.otlp.clone(), set: |c, _, address| c.log.otlp = address },
            },
            meaning: "Address of an OTLP collector (HTTP) that gets the lines of the log too",
            unset: NONE,
        },
        section("trace", "Export of OpenTelemetry traces"),
        Key {
            path: "trace.otlp",
            shape: Shape::Text {
                form: URL,
                field: Field {
                    get: |c, _| c.trace.otlp.clone(),
                    set: |c, _, address| c.trace.otlp = address,
                },
            },
            meaning: "Address of an OTLP collector (HTTP)",
            unset: NONE,
        },
    ]
}
