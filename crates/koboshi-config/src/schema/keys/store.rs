//! `store`: where state is stored.

use super::super::{Field, Form, Key, Placeholder, Range, Shape};
use super::build::{NONE, at, count, count_at, section};
use crate::config::StorePlace;
use crate::words::{Words, words};

/// The form of a shared server's address: over the network, or through a socket of this machine.
const ADDRESS: &str = concat!(
    r"^((rediss?|valkeys?)://([^/?#\u0000-\u001f]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:<>\[\]^|\\]+)",
    r"(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})?)?",
    r"(/[0-9]{0,9}/?)?([?#][^\u0000-\u001f]*)?",
    r"|(rediss?|valkeys?)\+(sentinel|cluster)://([^/?#\u0000-\u001f]*@)?[^\s/?#@<>^|\\]+(/[^\u0000-\u001f]*)?",
    r"|(unix|redis\+unix|valkey\+unix):///[^\u0000-\u001f]+)$",
);

/// What an address over the network begins with; the last two are with TLS.
const SCHEMES: [&str; 4] = ["redis://", "valkey://", "rediss://", "valkeys://"];

/// The same as code.
fn is_address(text: &str) -> bool {
    let over = |scheme: &str| text.strip_prefix(scheme);
    if text.chars().any(|c| c < ' ') {
        return false;
    }
    if let Some(path) = ["unix://", "redis+unix://", "valkey+unix://"].into_iter().find_map(over) {
        return path.starts_with('/') && path.len() > 1;
    }
    if let Some((_, rest)) = text.split_once("+sentinel://").filter(|(base, _)| is_base(base)) {
        return is_of_several(rest, false);
    }
    if let Some((_, rest)) = text.split_once("+cluster://").filter(|(base, _)| is_base(base)) {
        return is_of_several(rest, true);
    }
    let Some(rest) = SCHEMES.into_iter().find_map(over) else { return false };
    let (server, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let database = rest.split(['?', '#']).next().unwrap_or_default();
    is_server(server.rsplit_once('@').map_or(server, |(_, server)| server)) && is_database(database)
}

fn is_base(base: &str) -> bool {
    SCHEMES.iter().any(|scheme| scheme.strip_suffix("://") == Some(base))
}

/// Several hosts; then, for Sentinels, the name of the server and its database.
fn is_of_several(rest: &str, is_cluster: bool) -> bool {
    let (servers, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let servers = servers.rsplit_once('@').map_or(servers, |(_, servers)| servers);
    let path = rest.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    let is_path = if is_cluster {
        path.is_empty() || path == "0"
    } else {
        let (name, database) = path.split_once('/').unwrap_or((path, ""));
        !name.is_empty() && !name.contains(char::is_whitespace) && is_database(&format!("/{database}"))
    };
    is_path && servers.split(',').count() <= 16 && servers.split(',').all(is_server)
}

/// A host, and a port if there is one.
fn is_server(server: &str) -> bool {
    if let Some((host, port)) = server.strip_prefix('[').and_then(|server| server.split_once(']')) {
        let is_sixth = !host.is_empty() && host.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c));
        return is_sixth && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = server.split_once(':').unwrap_or((server, ""));
    let strange = |c: char| c.is_whitespace() || "<>[]^|\\@".contains(c);
    !host.is_empty() && !host.contains(strange) && is_port(port)
}

/// Whether a text is a port; an empty one means the default.
fn is_port(text: &str) -> bool {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok();
    text.is_empty() || is_number && (text.len() < 5 || !text.starts_with('0'))
}

fn is_database(text: &str) -> bool {
    let number = text.strip_prefix('/').unwrap_or_default();
    let number = number.strip_suffix('/').unwrap_or(number);
    number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Why an address cannot be used, without repeating it: it may hold a password.
fn about_address(text: &str) -> Option<Words> {
    let begins = |schemes: &[&str]| schemes.iter().any(|scheme| text.starts_with(scheme));
    if begins(&SCHEMES) {
        return Some(words(
            "host, port and database are written `host:6379/0`, the last two as numbers; in a password, write \
             `%2F` for `/`, `%3F` for `?`, `%23` for `#` and `%40` for `@`",
            "`host:6379/0` の形で書いてください（ポートとデータベースは数字）。パスワードの中では `/` を `%2F`、`?` を `%3F`、\
             `#` を `%23`、`@` を `%40` と書きます",
        ));
    }
    if text.contains("+sentinel://") || text.contains("+cluster://") {
        return Some(words(
            "Sentinels are written `redis+sentinel://host:26379,host:26379/name`, a Cluster `redis+cluster://host:6379,host:6379`, with at most 16 hosts",
            "Sentinel は `redis+sentinel://host:26379,host:26379/名前`、Cluster は `redis+cluster://host:6379,host:6379` の形で、ホストは 16 個までです",
        ));
    }
    begins(&["unix://", "redis+unix://", "valkey+unix://"]).then_some(words(
        "write the whole path: `unix:///run/redis.sock`",
        "絶対パスで書いてください: `unix:///run/redis.sock`",
    ))
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        Key {
            path: "store",
            shape: Shape::Section {
                word: Some(Placeholder {
                    word: StorePlace::MEMORY,
                    set: |c, _| c.store.place = StorePlace::Memory,
                }),
                short: None,
            },
            meaning: "Where cooldowns, breakers, journal and cache are kept: in a file that the processes of one user share, unless `path` or `redis` is set",
            unset: words("the file of this user", "このユーザーのファイル"),
        },
        Key {
            path: "store.path",
            shape: Shape::Path {
                field: Field {
                    get: |c, _| match &c.store.place {
                        StorePlace::File(path) => Some(path.clone()),
                        _ => None,
                    },
                    set: |c, _, path| {
                        if let Some(path) = path {
                            c.store.place = StorePlace::File(path);
                        }
                    },
                },
            },
            meaning: "A SQLite file that the processes of one machine share; set this or `redis`",
            unset: NONE,
        },
        Key {
            path: "store.redis",
            shape: Shape::Secret {
                form: Form {
                    description: words(
                        "an address such as `redis://host:6379/0`", "`redis://host:6379/0` のようなアドレス",
                    ),
                    pattern: ADDRESS,
                    holds: is_address,
                    hint: about_address,
                },
                field: Field {
                    get: |c, _| match &c.store.place {
                        StorePlace::Redis { url, .. } => Some(url.clone()),
                        _ => None,
                    },
                    set: |c, _, url| {
                        if let Some(url) = url {
                            let prefix = StorePlace::DEFAULT_PREFIX.to_owned();
                            c.store.place = StorePlace::Redis { url, prefix };
                        }
                    },
                },
            },
            meaning: "Address of a Redis or Valkey server that several machines share, `rediss://` with TLS, `redis+sentinel://host,host/name` or \
             `redis+cluster://host,host` for several servers; take the password from an environment variable",
            unset: NONE,
        },
        Key {
            path: "store.prefix",
            shape: Shape::Text {
                form: Form {
                    description: words("1 to 100 characters without spaces", "空白を含まない 1〜100 文字"),
                    pattern: r"^[^\s\u0000-\u001f\u007f]{1,100}$",
                    holds: |text| {
                        (1..=100).contains(&text.chars().count())
                            && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                    },
                    hint: |_| None,
                },
                field: Field {
                    get: |c, _| Some(c.store.place.prefix().unwrap_or(StorePlace::DEFAULT_PREFIX).to_owned()),
                    set: |c, _, text| {
                        if let (StorePlace::Redis { prefix, .. }, Some(text)) = (&mut c.store.place, text) {
                            *prefix = text;
                        }
                    },
                },
            },
            meaning: "Prefix of all keys in Redis; only with `redis`",
            unset: NONE,
        },
        section("store.journal", "How much of the journal is kept; the limit that is reached first applies"),
        count(
            "store.journal.keep_days",
            Range::of(1, 36_500),
            count_at!(store.journal.keep_days),
            "Number of days that are kept",
        ),
        count(
            "store.journal.keep_entries",
            Range::of(1, i64::MAX.cast_unsigned()),
            at!(store.journal.keep_entries),
            "Number of entries that are kept",
        ),
        section("store.cache", "Size of the response cache"),
        count(
            "store.cache.max_bytes",
            Range::of(0, u64::MAX),
            at!(store.cache.max_bytes),
            "Maximum size of all cached responses, in bytes; 0 caches none",
        ),
    ]
}
