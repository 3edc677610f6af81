//! `store`: where what was learned is kept.

use super::super::{Field, Form, Key, Range, Shape, Stand};
use super::build::{at, count, count_at, section};
use crate::config::StorePlace;

/// How the address of a shared server may begin.
const SCHEMES: [&str; 6] = ["redis://", "rediss://", "valkey://", "valkeys://", "unix://", "redis+unix://"];

pub(super) fn keys() -> Vec<Key> {
    vec![
        Key {
            path: "store",
            shape: Shape::Section {
                word: Some(Stand { word: "memory", set: |c| c.store.place = StorePlace::Memory }),
            },
            meaning: "Where what was learned is kept: in a file that the processes of one user share, unless `path` or `redis` is set",
        },
        Key {
            path: "store.path",
            shape: Shape::Path {
                field: Field {
                    get: |c| match &c.store.place {
                        StorePlace::File(path) => Some(path.clone()),
                        _ => None,
                    },
                    set: |c, path| {
                        if let Some(path) = path {
                            c.store.place = StorePlace::File(path);
                        }
                    },
                },
            },
            meaning: "A file that the processes of one machine share; this or `redis`",
        },
        Key {
            path: "store.redis",
            shape: Shape::Secret {
                form: Form {
                    said: "an address such as `redis://host:6379/0`",
                    pattern: r"^(rediss?|valkeys?|unix|redis\+unix)://.+$",
                    holds: |text| {
                        SCHEMES
                            .iter()
                            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
                    },
                },
                field: Field {
                    get: |c| match &c.store.place {
                        StorePlace::Redis { url, .. } => Some(url.clone()),
                        _ => None,
                    },
                    set: |c, url| {
                        if let Some(url) = url {
                            let prefix = StorePlace::DEFAULT_PREFIX.to_owned();
                            c.store.place = StorePlace::Redis { url, prefix };
                        }
                    },
                },
            },
            meaning: "A Redis or Valkey server that a fleet shares; take the password from a variable",
        },
        Key {
            path: "store.prefix",
            shape: Shape::Text {
                form: Form {
                    said: "1 to 100 characters without spaces",
                    pattern: r"^[^\s\u0000-\u001f\u007f]{1,100}$",
                    holds: |text| {
                        (1..=100).contains(&text.chars().count())
                            && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                    },
                },
                field: Field {
                    get: |c| match &c.store.place {
                        StorePlace::Redis { prefix, .. } => Some(prefix.clone()),
                        _ => Some(StorePlace::DEFAULT_PREFIX.to_owned()),
                    },
                    set: |c, text| {
                        if let (StorePlace::Redis { prefix, .. }, Some(text)) = (&mut c.store.place, text) {
                            *prefix = text;
                        }
                    },
                },
            },
            meaning: "What every key in the shared server begins with; only with `redis`",
        },
        section("store.journal", "How far the journal reaches back; the first limit that is reached holds"),
        count(
            "store.journal.keep_days",
            Range::of(1, 36_500),
            count_at!(store.journal.keep_days),
            "Days that are kept",
        ),
        count(
            "store.journal.keep_entries",
            Range::of(1, u64::MAX),
            at!(store.journal.keep_entries),
            "Entries that are kept",
        ),
        section("store.cache", "How large the response cache may grow"),
        count(
            "store.cache.most_bytes",
            Range::of(0, u64::MAX),
            at!(store.cache.most_bytes),
            "Bytes of answers; 0 keeps none",
        ),
    ]
}
