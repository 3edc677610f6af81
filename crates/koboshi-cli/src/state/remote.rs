//! A running gateway, asked over the network: the same questions and orders as to a store.

use std::path::Path;

use jiff::Timestamp;
use koboshi::key::ScopeKey;
use koboshi_config::words::Text;
use koboshi_gateway::{Known, Presence, Remote};
use koboshi_store::{Entry, Query, Row, Unreadable};
use serde::Deserialize;
use serde_json::{Value, json};

use super::source::Status;
use super::variable;
use crate::Failure;

/// No file with a key is longer.
const LONGEST_KEY_FILE: u64 = 64 * 1024;

pub(super) struct Gateway {
    remote: Remote,
}

#[derive(Deserialize)]
struct StatusAnswer {
    store: String,
    rows: Vec<Row>,
    unreadable: Vec<UnreadableAnswer>,
    gateways: Vec<Presence>,
    trouble: Option<String>,
}

#[derive(Deserialize)]
struct UnreadableAnswer {
    slot: String,
    why: String,
}

#[derive(Deserialize)]
struct JournalAnswer {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct ChangedAnswer {
    keys: Vec<ChangedKey>,
}

#[derive(Deserialize)]
struct ChangedKey {
    key: ScopeKey,
    changed: bool,
}

#[derive(Deserialize)]
struct PruneAnswer {
    forgotten: u64,
}

impl Gateway {
    /// The gateway at this address, with the admin key of a file or of the environment. A key is never an argument: every user of a machine
    /// can read those.
    pub(super) fn at(url: &str, key_file: Option<&Path>) -> Result<Self, Failure> {
        let key = match key_file {
            Some(path) => Some(key_of(path)?),
            None => variable("KOBOSHI_ADMIN_KEY"),
        };
        Ok(Self { remote: Remote::new(url, key.as_deref().map(str::trim))? })
    }

    pub(super) fn address(&self) -> &str {
        self.remote.address()
    }

    pub(super) fn status(&self) -> Result<Status, Failure> {
        let answer: StatusAnswer = self.remote.get("/koboshi/status")?;
        let unreadable = answer.unreadable.into_iter();
        Ok(Status {
            rows: answer.rows,
            unreadable: unreadable.map(|one| Unreadable { slot: one.slot, why: one.why }).collect(),
            gateways: answer.gateways,
            kept_in: Some(answer.store),
            trouble: answer.trouble,
        })
    }

    pub(super) fn known(&self) -> Result<Known, Failure> {
        Ok(self.remote.get("/koboshi/keys")?)
    }

    pub(super) fn entries(&self, query: &Query) -> Result<Vec<Entry>, Failure> {
        let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let asked = [
            ("what", query.what.map(|what| what.name().to_owned())),
            ("kind", query.kind.clone()),
            ("key", query.key.as_ref().map(ToString::to_string)),
            ("agent", query.agent.clone()),
            ("since", instant(query.from)),
            ("until", instant(query.to)),
            ("limit", Some(query.limit.to_string())),
        ];
        let mut address = String::from("/koboshi/journal?");
        for (name, value) in asked.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            address.push_str(&format!("{name}={}&", escaped(value)));
        }
        let answer: JournalAnswer = self.remote.get(address.trim_end_matches('&'))?;
        Ok(answer.entries)
    }

    pub(super) fn prune(&self) -> Result<u64, Failure> {
        let answer: PruneAnswer = self.remote.post("/koboshi/journal", &json!({"action": "prune"}))?;
        Ok(answer.forgotten)
    }

    pub(super) fn cool(&self, keys: &[ScopeKey], until: Timestamp, reason: &str) -> Result<(), Failure> {
        for key in keys {
            // Whether there is such a key was looked at before.
            let order =
                json!({"key": key, "action": "cool", "until": until, "reason": reason, "force": true});
            self.remote.post::<Value>("/koboshi/cooldowns", &order)?;
        }
        Ok(())
    }

    /// Ends whatever holds this key; gives the keys for which there was something.
    pub(super) fn release(&self, asked: &ScopeKey) -> Result<Vec<ScopeKey>, Failure> {
        let order = json!({"key": asked, "action": "clear", "force": true});
        let answer: ChangedAnswer = self.remote.post("/koboshi/cooldowns", &order)?;
        Ok(answer.keys.into_iter().filter(|one| one.changed).map(|one| one.key).collect())
    }

    pub(super) fn resume(&self, keys: &[ScopeKey]) -> Result<(), Failure> {
        for key in keys {
            let order = json!({"key": key, "action": "clear", "force": true});
            self.remote.post::<Value>("/koboshi/cooldowns", &order)?;
        }
        Ok(())
    }
}

fn key_of(path: &Path) -> Result<String, Failure> {
    let cannot = |en: &str, ja: &str| {
        let path = path.display();
        Failure::of(Text::new(
            format!("cannot read the admin key from {path}: {en}"),
            format!("{path} から管理者キーを読み取れません: {ja}"),
        ))
    };
    let failed = |error: std::io::Error| cannot(&error.to_string(), &error.to_string());
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > LONGEST_KEY_FILE {
        return Err(cannot("the file is too long for a key", "キーのファイルとしては長すぎます"));
    }
    let key = std::fs::read_to_string(path).map_err(failed)?;
    if key.trim().is_empty() {
        return Err(cannot("the file is empty", "ファイルが空です"));
    }
    Ok(key)
}

/// A value as it may stand in an address.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let mut text = String::new();
    for byte in value.bytes() {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
