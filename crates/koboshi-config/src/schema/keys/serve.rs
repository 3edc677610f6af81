//! `serve`, `keys`, `admin`, `log` and `trace`: the gateway's own side.

use super::super::{Field, Key, Range, Shape};
use super::build::{
    AT_MOST_A_DAY, SOME_COUNT, UP_TO_A_DAY, at, count, count_at, entries, flag, length, of_entry,
    optional_count_at, secret, section, text, texts, word, word_at,
};
use super::forms::{HOST, LISTEN, NAME, ORIGIN, SHA256, URL};
use crate::gateway::{ClientKey, ErrorDetail, KeepAlive, LogFormat};
use crate::secret::Secret;

const LEVELS: &[&str] = &["error", "warn", "info", "debug"];
const UP_TO_100: Range<u64> = Range::of(0, 100);

pub(super) fn serve() -> Vec<Key> {
    vec![
        section("serve", "Where the gateway listens, and what one client may ask of it"),
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
            "Address and port; beyond this machine only with `keys`",
        ),
        texts(
            "serve.hosts",
            HOST,
            UP_TO_100,
            Field {
                get: |c, _| Some(c.serve.hosts.clone()),
                set: |c, _, hosts| c.serve.hosts = small(hosts),
            },
            "Names besides `localhost` and the address itself that may stand in `Host`",
        ),
        texts(
            "serve.origins",
            ORIGIN,
            UP_TO_100,
            Field {
                get: |c, _| Some(c.serve.origins.clone()),
                set: |c, _, origins| c.serve.origins = small(origins),
            },
            "Web pages that may call",
        ),
        count(
            "serve.body_bytes",
            Range::of(1024, u32::MAX as u64),
            at!(serve.body_bytes),
            "The largest request body, in bytes",
        ),
        length(
            "serve.head_time",
            UP_TO_A_DAY,
            at!(serve.head_time),
            "A request's head must be there after this",
        ),
        length(
            "serve.body_time",
            UP_TO_A_DAY,
            at!(serve.body_time),
            "A request's body must be there after this",
        ),
        length(
            "serve.send_time",
            UP_TO_A_DAY,
            at!(serve.send_time),
            "A client that takes nothing of its answer for so long is let go",
        ),
        count(
            "serve.connections",
            SOME_COUNT,
            count_at!(serve.connections),
            "Connections at the same time; more wait",
        ),
        length(
            "serve.drain",
            AT_MOST_A_DAY,
            at!(serve.drain),
            "How long streams may go on after a signal to stop",
        ),
        length(
            "serve.deadline",
            UP_TO_A_DAY,
            at!(serve.deadline),
            "Nothing is tried for a request after this; a client may ask for less",
        ),
        flag(
            "serve.passthrough",
            at!(serve.passthrough),
            "A client's own vendor key goes to that vendor, and to nobody else",
        ),
        section("serve.keep_alive", "What keeps a silent stream open"),
        word(
            "serve.keep_alive.style",
            KeepAlive::NAMES,
            word_at!(KeepAlive, serve.keep_alive),
            "`comment` is passed over by the standard, `frame` is for clients that stumble over comments",
        ),
        length("serve.keep_alive.every", UP_TO_A_DAY, at!(serve.keep_alive_every), "How often"),
        length(
            "serve.hold",
            AT_MOST_A_DAY,
            at!(serve.hold),
            "So long nothing at all is sent while no content has come; then the head and keep-alives go out",
        ),
        count("serve.threads", Range::of(1, 1024), optional_count_at!(serve.threads), "Threads that serve")
            .unset("one per core"),
    ]
}

/// Names of hosts have no capitals.
fn small(texts: Option<Vec<String>>) -> Vec<String> {
    texts.unwrap_or_default().iter().map(|text| text.to_ascii_lowercase()).collect()
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        section("keys", "Keys that clients may use, each under a name of your choice"),
        Key {
            path: "keys.*",
            shape: entries!(
                keys,
                ClientKey { sha256: String::new(), tenant: None },
                NAME,
                required: &["sha256"],
                short: None
            ),
            meaning: "One key",
            unset: "none",
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
            "SHA-256 of the key; the key itself is nowhere",
        ),
        text("keys.*.tenant", NAME, of_entry!(keys, tenant), "Whose it is").unset("the key's name"),
        section("admin", "Who may ask and change what the gateway knows"),
        secret(
            "admin.sha256",
            SHA256,
            Field {
                get: |c, _| c.admin.sha256.as_deref().map(Secret::new),
                set: |c, _, hash| c.admin.sha256 = hash.map(|hash| hash.expose().to_ascii_lowercase()),
            },
            "SHA-256 of the key; without one, only callers on the loopback address are let in",
        ),
    ]
}

pub(super) fn telling() -> Vec<Key> {
    vec![
        section("errors", "What clients are told of errors"),
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
            "Who gets the provider's own message, redacted, where the client can mend the request (invalid request, unknown model, context \
             too large, content filter): every client, only clients on this machine, or none",
        ),
        section("log", "What is written to the log"),
        word(
            "log.format",
            LogFormat::NAMES,
            Field {
                get: |c, _| c.log.format.map(LogFormat::name),
                set: |c, _, word| c.log.format = word.and_then(LogFormat::from_name),
            },
            "For people, or one JSON object a line",
        )
        .unset("`pretty` on a terminal, else `json`"),
        word("log.level", LEVELS, at!(log.level), "The least grave that is written"),
        section("trace", "Where traces go"),
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
            unset: "none",
        },
    ]
}
