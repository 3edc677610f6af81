//! The source of the commands: a store, or a running gateway. Their output does not depend on it.

use std::io::Write;

use jiff::Timestamp;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use koboshi::notice::ChannelState;
use koboshi_config::Config;
use koboshi_config::config::Language;
use koboshi_config::words::Text;
use koboshi_gateway::{
    KnownKeys, Presence, SpendQuery, SpendReport, gateways, is_in_force, known, known_now, known_to,
    retention,
};
use koboshi_store::supervisors::{Supervisor, supervisors};
use koboshi_store::{
    Entry, EntryKind, Named, Query, Record, Row, Slot, Store, Unreadable, notices, standing,
};

use super::{Where, exists, open, remote};
use crate::settings::UNSET;
use crate::{Failure, clock};

/// How often a write is tried again while other processes write too.
const MAX_TRIES: u32 = 10;

/// The source of a command.
pub(super) enum Source {
    Store(Box<StoreSource>),
    Remote(remote::Gateway),
}

/// What cannot be used now.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) rows: Vec<Row>,
    pub(super) unreadable: Vec<Unreadable>,
    pub(super) gateways: Vec<Presence>,
    pub(super) supervisors: Vec<Supervisor>,
    /// How the channels of notices fare.
    pub(super) channels: Vec<ChannelState>,
    /// The store of the gateway.
    pub(super) kept_in: Option<String>,
    /// Why the store of a gateway cannot be read.
    pub(super) trouble: Option<String>,
}

impl Source {
    /// Its name.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Store(shared) => &shared.name,
            Self::Remote(gateway) => gateway.address(),
        }
    }

    /// Whether there is anything to read.
    pub(super) fn exists(&self) -> bool {
        !matches!(self, Self::Store(shared) if shared.store.is_none())
    }

    /// Whether a config says which agents there are.
    pub(super) fn names_agents(&self) -> bool {
        matches!(self, Self::Store(shared) if shared.has_config && !shared.config.agents.is_empty())
    }

    pub(super) fn status(&self, now: Timestamp) -> Result<Status, Failure> {
        match self {
            Self::Store(shared) => shared.status(now),
            Self::Remote(gateway) => gateway.status(),
        }
    }

    /// The keys that exist.
    pub(super) fn known(&self, now: Timestamp) -> Result<KnownKeys, Failure> {
        match self {
            Self::Store(shared) => shared.known(now),
            Self::Remote(gateway) => gateway.known(),
        }
    }

    pub(super) fn entries(&self, query: &Query) -> Result<Vec<Entry>, Failure> {
        match self {
            Self::Store(shared) => {
                Ok(shared.store.as_ref().map_or_else(|| Ok(Vec::new()), |store| store.query(query))?)
            }
            Self::Remote(gateway) => gateway.entries(query),
        }
    }

    /// What answers cost.
    pub(super) fn spend(&self, query: SpendQuery, now: Timestamp) -> Result<SpendReport, Failure> {
        match self {
            Self::Store(shared) => shared.spend(query, now),
            Self::Remote(gateway) => gateway.spend(query),
        }
    }

    /// Deletes old entries of the journal; returns how many.
    pub(super) fn prune(&self, now: Timestamp) -> Result<u64, Failure> {
        match self {
            Self::Store(shared) => {
                let keep = retention(&shared.config.store);
                Ok(shared.store.as_ref().map_or(Ok(0), |store| store.prune(&keep, now))?)
            }
            Self::Remote(gateway) => gateway.prune(),
        }
    }

    /// Puts keys into cooldown. A missing store is created.
    pub(super) fn cool(
        &mut self,
        keys: &[ScopeKey],
        until: Timestamp,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(shared) => shared.cool(keys, until, reason, now),
            Self::Remote(gateway) => gateway.cool(keys, until, reason),
        }
    }

    /// Ends what only a running gateway knows about a key, where one is asked; returns the keys that were held by it.
    pub(super) fn release(&self, asked: &ScopeKey, resumed: &[ScopeKey]) -> Result<Vec<ScopeKey>, Failure> {
        match self {
            Self::Remote(gateway) if resumed.is_empty() => gateway.release(asked),
            _ => Ok(Vec::new()),
        }
    }

    /// Ends cooldowns and limits of these keys.
    pub(super) fn resume(&self, keys: &[ScopeKey], now: Timestamp) -> Result<(), Failure> {
        match self {
            _ if keys.is_empty() => Ok(()),
            Self::Store(shared) => shared.resume(keys, now),
            Self::Remote(gateway) => gateway.resume(keys),
        }
    }
}

/// A store, and the config of its users.
pub(super) struct StoreSource {
    /// None where nothing was stored yet: reading must not create a file.
    store: Option<Box<dyn Store>>,
    place: Where,
    name: String,
    config: Config,
    /// Whether there is a config file, and not only the defaults.
    has_config: bool,
}

impl StoreSource {
    pub(super) fn open(place: Where, config: Config, has_config: bool) -> Result<Self, Failure> {
        let store = match &place {
            Where::File(path) if !exists(path)? => None,
            place => Some(open(place, &config.store)?),
        };
        let name = match (&store, &place) {
            (_, Where::File(path)) => path.display().to_string(),
            (Some(store), Where::Redis { .. }) => store.place().to_owned(),
            (None, Where::Redis { .. }) => "Redis".to_owned(),
        };
        Ok(Self { store, place, name, config, has_config })
    }

    fn status(&self, now: Timestamp) -> Result<Status, Failure> {
        let Some(store) = &self.store else { return Ok(Status::default()) };
        let loaded = store.load()?;
        let mut rows = standing::rows(&loaded.records, now);
        standing::explain(&**store, &mut rows)?;
        let gateways = gateways(&**store, now)?;
        let known = self.known_now(&**store, &gateways, now)?;
        rows.retain(|row| is_in_force(row, &gateways, &known));
        let channels = notices::channels(&**store, now)?;
        let supervisors = supervisors(&**store, now)?;
        Ok(Status {
            rows,
            unreadable: loaded.unreadable,
            gateways,
            supervisors,
            channels,
            ..Status::default()
        })
    }

    fn spend(&self, query: SpendQuery, now: Timestamp) -> Result<SpendReport, Failure> {
        let name = &self.config.spend.zone;
        let no_zone = || Failure::new(format!("spend.zone: there is no time zone {name:?}"));
        let zone = clock::zones().get(name).map_err(|_| no_zone())?;
        let empty = koboshi_store::MemoryStore::default();
        let store = self.store.as_deref().unwrap_or(&empty);
        Ok(SpendReport::read(store, &self.config, &zone, query, now)?)
    }

    /// The keys in use: of the running gateways, else of the config, else of the gateway that ran last.
    fn known_now(
        &self,
        store: &dyn Store,
        gateways: &[Presence],
        now: Timestamp,
    ) -> Result<KnownKeys, Failure> {
        if self.has_config && !gateways.iter().any(|gateway| gateway.is_running(now)) {
            // Whatever is wrong with the config is said by the commands that need it.
            return Ok(self.configured().unwrap_or_default());
        }
        Ok(known_now(store, gateways, now)?)
    }

    /// From reports of gateways, from the config, and from records.
    fn known(&self, now: Timestamp) -> Result<KnownKeys, Failure> {
        let mut all = KnownKeys::default();
        if let Some(store) = &self.store {
            all.add(known(&**store, now)?);
            all.add_records(&store.load()?.records, now);
        }
        if self.has_config {
            all.add_agents(&self.config);
            match self.configured() {
                Ok(known) => all.add(known),
                // A gateway has already reported its keys: its environment may differ from ours.
                Err(_) if !all.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// What the config names. An API key whose variable is not set here is the gateway's to know: it makes no target.
    fn configured(&self) -> Result<KnownKeys, Failure> {
        let lookup = |name: &str| std::env::var(name).ok();
        let known = known_to(self.config.clone(), &clock::zones(), &lookup);
        known.map(|known| known.without_key(UNSET)).map_err(|error| Failure::new(error.to_string()))
    }

    fn cool(
        &mut self,
        keys: &[ScopeKey],
        until: Timestamp,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let store = match self.store.take() {
            Some(store) => store,
            None => open(&self.place, &self.config.store)?,
        };
        let store = &**self.store.insert(store);
        let detail = koboshi::redact::Redactor::new().excerpt(reason, 200);
        let slots: Vec<Slot> = keys.iter().cloned().map(Slot::cooldown).collect();
        let mut known = store.load()?.records;
        known.retain(|(slot, _)| slots.contains(slot));
        for slot in slots {
            if !known.iter().any(|(known, _)| *known == slot) {
                known.push((slot, Record::Cooldown(Cooldown::default())));
            }
        }
        insist(store, known, &|record| {
            if let Record::Cooldown(cooldown) = record {
                cooldown.cool(until, &detail, now);
            }
        })?;
        let why = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let until = until.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        let words = |key: &ScopeKey| format!("{key} was put into cooldown until {until} by an operator{why}");
        note(store, keys, "cool", words, now);
        Ok(())
    }

    fn resume(&self, keys: &[ScopeKey], now: Timestamp) -> Result<(), Failure> {
        let Some(store) = self.store.as_deref() else { return Ok(()) };
        let mut known = store.load()?.records;
        // An order about a target also reaches its breaker: the gateways that have one read it.
        let breakers: Vec<Slot> = known
            .iter()
            .filter(|(slot, _)| slot.node().is_some() && keys.contains(slot.key()))
            .map(|(slot, _)| Slot::cooldown(slot.key().clone()))
            .collect();
        known.retain(|(slot, _)| slot.node().is_none() && keys.contains(slot.key()));
        for slot in breakers {
            if !known.iter().any(|(known, _)| *known == slot) {
                known.push((slot, Record::Cooldown(Cooldown::default())));
            }
        }
        insist(store, known, &|record| match record {
            Record::Cooldown(cooldown) => {
                cooldown.resume(now);
            }
            Record::Holds(holds) if *holds != Holds::default() => holds.clear(),
            _ => {}
        })?;
        note(store, keys, "resume", |key| format!("{key} was resumed by an operator"), now);
        Ok(())
    }
}

/// Changes records in the store. If another process writes at the same time, the change is repeated on top of its records, so
/// that the operator's order is the last.
fn insist(store: &dyn Store, mut known: Vec<Named>, decide: &dyn Fn(&mut Record)) -> Result<(), Failure> {
    for _ in 0..MAX_TRIES {
        known.iter_mut().for_each(|(_, record)| decide(record));
        let merged = store.merge(&known)?;
        if let Some(one) = merged.unreadable.first() {
            let slot: String = one.slot.chars().filter(|c| !c.is_control()).collect();
            return Err(Failure::of(Text::new(
                format!("{slot} was written by a newer Koboshi and was left as it is: update this one"),
                format!(
                    "{slot} は新しいバージョンの Koboshi で書かれているため、変更していません。この Koboshi を更新してください"
                ),
            )));
        }
        known = merged.beyond;
        if known.is_empty() {
            return Ok(());
        }
    }
    let keys: Vec<String> = known.iter().map(|(slot, _)| slot.key().to_string()).collect();
    let (en, keys) = (keys.join(", "), keys.join("、"));
    Err(Failure::of(Text::new(
        format!("{en} changed {MAX_TRIES} times while it was being written: try again"),
        format!("{keys} が書き込み中に {MAX_TRIES} 回変更されました。もう一度お試しください"),
    )))
}

/// Writes an operator's order to the journal. It is done already, so a journal that cannot be written is only reported.
fn note(
    store: &dyn Store,
    keys: &[ScopeKey],
    kind: &'static str,
    words: impl Fn(&ScopeKey) -> String,
    now: Timestamp,
) {
    let noted = super::node().and_then(|node| {
        let entry = |key: &ScopeKey| Entry {
            kind: Some(kind.into()),
            key: Some(key.clone()),
            ..Entry::new(now, &node, EntryKind::Operator, words(key))
        };
        Ok(store.append(&keys.iter().map(entry).collect::<Vec<_>>())?)
    });
    if let Err(failure) = noted {
        // If standard error is gone too, no one reads it.
        let _ = writeln!(
            anstream::stderr().lock(),
            "koboshi: done, but not noted in the journal: {}",
            failure.text(Language::En)
        );
    }
}
