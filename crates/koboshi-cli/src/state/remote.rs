//! A running gateway as a source: the same queries and orders as for a store.

use std::path::Path;

use jiff::Timestamp;
use koboshi::key::ScopeKey;
use koboshi::notice::ChannelState;
use koboshi_config::words::Text;
use koboshi_gateway::{KnownKeys, LogPiece, Presence, Remote, SpendQuery, SpendReport, paths};
use koboshi_report::phrase::Lang;
use koboshi_store::supervisors::Supervisor;
use koboshi_store::{Entry, Query, Row, Unreadable};
use koboshi_supervisor::keep::Action;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::source::Status;
use super::variable;
use crate::Failure;

/// Longer key files are refused.
const MAX_KEY_FILE: u64 = 64 * 1024;

pub(crate) struct Gateway {
    remote: Remote,
}

#[derive(Deserialize)]
struct StatusAnswer {
    store: String,
    rows: Vec<Row>,
    unreadable: Vec<UnreadableAnswer>,
    gateways: Vec<Presence>,
    #[serde(default)]
    supervisors: Vec<Supervisor>,
    /// An older gateway does not say it.
    #[serde(default)]
    channels: Vec<ChannelState>,
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
struct LogAnswer {
    agent: String,
    run: String,
    text: String,
    next: Option<String>,
    more: bool,
    ended: bool,
    over: bool,
}

#[derive(Deserialize)]
struct PruneAnswer {
    forgotten: u64,
}

impl Gateway {
    /// The gateway at this address, with the admin key of a file or of the environment. A key is never an argument: every user of a machine
    /// can read those.
    pub(crate) fn at(url: &str, key_file: Option<&Path>, lang: Lang) -> Result<Self, Failure> {
        let key = match key_file {
            Some(path) => Some(key_of(path)?),
            None => variable("KOBOSHI_ADMIN_KEY"),
        };
        let remote = Remote::new(url, key.as_deref().map(str::trim))?;
        Ok(Self { remote: remote.in_language(lang.name()) })
    }

    /// What stands at a path of its admin API.
    pub(super) fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        Ok(self.remote.get(path)?)
    }

    /// What the agents of its process do, if it keeps any.
    pub(super) fn agents(&self) -> Option<Value> {
        let mut answer = self.remote.get::<Value>(paths::AGENTS).ok()?;
        answer.get_mut("agents").map(Value::take)
    }

    /// Gives an order about agents.
    pub(crate) fn order_agents(&self, action: Action, agent: Option<&str>) -> Result<Value, Failure> {
        Ok(self.remote.post(paths::AGENTS, &json!({"action": action, "agent": agent}))?)
    }

    /// A piece of the log of a run.
    pub(crate) fn log_of_agent(
        &self,
        agent: &str,
        run: &str,
        from: Option<&str>,
    ) -> Result<LogPiece, Failure> {
        let mut address = format!("{}?agent={}&run={}", paths::LOGS, escaped(agent), escaped(run));
        if let Some(from) = from {
            address.push_str(&format!("&from={}", escaped(from)));
        }
        let LogAnswer { agent, run, text, next, more, ended, over } = self.remote.get(&address)?;
        Ok(LogPiece { agent, run, text, next, more, ended, over })
    }

    pub(super) fn address(&self) -> &str {
        self.remote.address()
    }

    pub(super) fn status(&self) -> Result<Status, Failure> {
        let answer: StatusAnswer = self.remote.get(paths::STATUS)?;
        let unreadable = answer.unreadable.into_iter();
        Ok(Status {
            rows: answer.rows,
            unreadable: unreadable.map(|one| Unreadable { slot: one.slot, why: one.why }).collect(),
            gateways: answer.gateways,
            supervisors: answer.supervisors,
            channels: answer.channels,
            kept_in: Some(answer.store),
            trouble: answer.trouble,
        })
    }

    pub(super) fn known(&self) -> Result<KnownKeys, Failure> {
        Ok(self.remote.get(paths::KEYS)?)
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
        let mut address = format!("{}?", paths::JOURNAL);
        for (name, value) in asked.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            address.push_str(&format!("{name}={}&", escaped(value)));
        }
        let answer: JournalAnswer = self.remote.get(address.trim_end_matches('&'))?;
        Ok(answer.entries)
    }

    pub(super) fn spend(&self, query: SpendQuery) -> Result<SpendReport, Failure> {
        let by = serde_json::to_value(query.by).ok();
        let by = by.as_ref().and_then(Value::as_str).unwrap_or_default();
        let mut address = format!("{}?by={by}", paths::SPEND);
        for (name, day) in [("from", query.from), ("to", query.to)] {
            if let Some(day) = day {
                address.push_str(&format!("&{name}={day}"));
            }
        }
        Ok(self.remote.get(&address)?)
    }

    pub(super) fn prune(&self) -> Result<u64, Failure> {
        let answer: PruneAnswer = self.remote.post(paths::JOURNAL, &json!({"action": "prune"}))?;
        Ok(answer.forgotten)
    }

    pub(super) fn cool(&self, keys: &[ScopeKey], until: Timestamp, reason: &str) -> Result<(), Failure> {
        for key in keys {
            // The key was checked before.
            let order =
                json!({"key": key, "action": "cool", "until": until, "reason": reason, "force": true});
            self.remote.post::<Value>(paths::COOLDOWNS, &order)?;
        }
        Ok(())
    }

    /// Ends whatever holds this key; returns the keys that were held.
    pub(super) fn release(&self, asked: &ScopeKey) -> Result<Vec<ScopeKey>, Failure> {
        let order = json!({"key": asked, "action": "clear", "force": true});
        let answer: ChangedAnswer = self.remote.post(paths::COOLDOWNS, &order)?;
        Ok(answer.keys.into_iter().filter(|one| one.changed).map(|one| one.key).collect())
    }

    pub(super) fn resume(&self, keys: &[ScopeKey]) -> Result<(), Failure> {
        for key in keys {
            let order = json!({"key": key, "action": "clear", "force": true});
            self.remote.post::<Value>(paths::COOLDOWNS, &order)?;
        }
        Ok(())
    }
}

fn key_of(path: &Path) -> Result<String, Failure> {
    let cannot = |en: &str, ja: &str| {
        let path = path.display();
        Failure::of(Text::new(
            format!("cannot read the admin key from {path}: {en}"),
            format!("{path} から管理用キーを読み取れません: {ja}"),
        ))
    };
    let failed = |error: std::io::Error| cannot(&error.to_string(), &error.to_string());
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > MAX_KEY_FILE {
        return Err(cannot("the file is too long for a key", "キーのファイルとしては長すぎます"));
    }
    let key = std::fs::read_to_string(path).map_err(failed)?;
    if key.trim().is_empty() {
        return Err(cannot("the file is empty", "ファイルが空です"));
    }
    Ok(key)
}

/// A value encoded for an address.
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
