//! Where the commands look and act: a store, or a running gateway. What they print does not depend on it.

use std::io::Write;

use jiff::Timestamp;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use koboshi_config::Config;
use koboshi_config::config::Language;
use koboshi_config::words::Text;
use koboshi_gateway::{Known, Presence, gateways, is_in_force, known, known_now, known_to, retention};
use koboshi_store::{Entry, EntryKind, Named, Query, Record, Row, Slot, Store, Unreadable, standing};

use super::{Where, exists, open, remote};
use crate::{Failure, clock};

/// A store that keeps knowing more than it is told is asked so often, then the person is.
const TRIES: u32 = 10;

/// What a command works on.
pub(super) enum Source {
    Store(Box<Shared>),
    Remote(remote::Gateway),
}

/// What is known about what can be used.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) rows: Vec<Row>,
    pub(super) unreadable: Vec<Unreadable>,
    pub(super) gateways: Vec<Presence>,
    /// Where a gateway keeps it.
    pub(super) kept_in: Option<String>,
    /// Why the store of a gateway cannot be read.
    pub(super) trouble: Option<String>,
}

impl Source {
    /// What to call it.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Store(shared) => &shared.name,
            Self::Remote(gateway) => gateway.address(),
        }
    }

    /// Whether there is anything to look at.
    pub(super) fn exists(&self) -> bool {
        !matches!(self, Self::Store(shared) if shared.store.is_none())
    }

    pub(super) fn status(&self, now: Timestamp) -> Result<Status, Failure> {
        match self {
            Self::Store(shared) => shared.status(now),
            Self::Remote(gateway) => gateway.status(),
        }
    }

    /// The keys that exist.
    pub(super) fn known(&self, now: Timestamp) -> Result<Known, Failure> {
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

    /// Deletes entries of the journal that are too old; says how many.
    pub(super) fn prune(&self, now: Timestamp) -> Result<u64, Failure> {
        match self {
            Self::Store(shared) => {
                let keep = retention(&shared.config.store);
                Ok(shared.store.as_ref().map_or(Ok(0), |store| store.prune(&keep, now))?)
            }
            Self::Remote(gateway) => gateway.prune(),
        }
    }

    /// Puts keys into cooldown. A store that is not there yet is made.
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

    /// Ends what only a running gateway knows about a key, where one is asked; gives the keys that were held by it.
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

/// A store, and the config of those who use it.
pub(super) struct Shared {
    /// None where nothing has been remembered yet: looking must not create a file.
    store: Option<Box<dyn Store>>,
    place: Where,
    name: String,
    config: Config,
    /// The config is one that somebody wrote, and not the defaults.
    has_config: bool,
}

impl Shared {
    pub(super) fn look(place: Where, config: Config, has_config: bool) -> Result<Self, Failure> {
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
        Ok(Status { rows, unreadable: loaded.unreadable, gateways, ..Status::default() })
    }

    /// The keys that are in use: of the gateways that run, else of the config, else of the gateway that ran last.
    fn known_now(&self, store: &dyn Store, gateways: &[Presence], now: Timestamp) -> Result<Known, Failure> {
        if self.has_config && !gateways.iter().any(|gateway| gateway.is_running(now)) {
            let lookup = |name: &str| std::env::var(name).ok();
            // Whatever is wrong with the config is said by the commands that need it.
            return Ok(known_to(self.config.clone(), &clock::zones(), &lookup).unwrap_or_default());
        }
        Ok(known_now(store, gateways, now)?)
    }

    /// From what gateways reported, from the config, and from what was learned.
    fn known(&self, now: Timestamp) -> Result<Known, Failure> {
        let mut all = Known::default();
        if let Some(store) = &self.store {
            all.add(known(&**store, now)?);
            all.add_records(&store.load()?.records, now);
        }
        if self.has_config {
            let lookup = |name: &str| std::env::var(name).ok();
            match known_to(self.config.clone(), &clock::zones(), &lookup) {
                Ok(known) => all.add(known),
                // A gateway has told already what there is: its environment may be another one.
                Err(_) if !all.is_empty() => {}
                Err(error) => return Err(Failure::new(error.to_string())),
            }
        }
        Ok(all)
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
        // An operator's word about a target is also the way to its breaker: the gateways that have one look at it.
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

/// Changes records in the store. Somebody else may write at the same time: then it is done anew on top of theirs, so
/// that the operator's order is the last.
fn insist(store: &dyn Store, mut known: Vec<Named>, decide: &dyn Fn(&mut Record)) -> Result<(), Failure> {
    for _ in 0..TRIES {
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
    let keys = keys.join(", ");
    Err(Failure::of(Text::new(
        format!("{keys} changed {TRIES} times while it was being written: try again"),
        format!("{keys} が書き込み中に {TRIES} 回変更されました。もう一度お試しください"),
    )))
}

/// Notes what an operator did. It is done already, so a journal that cannot be written is only reported.
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
        // Standard error is the last resort: if it is gone too, nobody is left to tell.
        let _ = writeln!(
            anstream::stderr().lock(),
            "koboshi: done, but not noted in the journal: {}",
            failure.said(Language::En)
        );
    }
}
