//! What an episode cost: failed attempts that the journal has, and what the usage of the store says about lost attempts and lesser answers.
//!
//! Usage is counted by day, so the sums at the begin of an episode are taken from those at its end. It is counted by model and
//! agent: what belongs to an account or a key is that of its providers.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::notice::{Damage, Episode};
use koboshi_config::Config;
use koboshi_store::{Entry, EntryKind, Query, Store, StoreError, UsageRow};

/// How many entries of the journal are read at once.
const PAGE: usize = 5_000;
/// The most pages that are read for one episode: as many entries as a journal has by default.
const MAX_PAGES: usize = 20;

/// Which attempts belong to a subject.
struct Share<'s> {
    level: &'s str,
    name: &'s str,
    /// Of an account or a key: the names of its providers.
    providers: Vec<&'s str>,
}

impl<'s> Share<'s> {
    fn of(subject: &'s str, config: &'s Config) -> Self {
        let (level, name) = subject.split_once(':').unwrap_or((subject, ""));
        // Behind the sign is which of the keys it is; a key itself is written behind its provider.
        let sign = if level == "key" { '/' } else { '#' };
        let name = name.split(sign).next().unwrap_or(name);
        let owned = config.providers.iter().filter(|(provider, one)| {
            one.account.as_deref().unwrap_or(provider.as_str()) == name || *provider == name
        });
        let mut providers: Vec<&str> = owned.map(|(provider, _)| provider.as_str()).collect();
        if providers.is_empty() {
            providers.push(name);
        }
        Self { level, name, providers }
    }

    fn has_model(&self, model: &str) -> bool {
        let is_of = |provider: &str| model.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/'));
        match self.level {
            "target" | "model" => model == self.name,
            "provider" => is_of(self.name),
            "account" | "key" => self.providers.iter().any(|provider| is_of(provider)),
            _ => false,
        }
    }

    fn has_agent(&self, agent: &str) -> bool {
        let is_project = || self.name.strip_prefix(agent).is_some_and(|rest| rest.starts_with('/'));
        self.level == "agent" && !agent.is_empty() && (agent == self.name || is_project())
    }

    fn has_usage(&self, row: &UsageRow) -> bool {
        let is_client = || self.level == "client" && self.name.starts_with(&format!("{}/", row.of.key));
        self.has_model(&row.of.model) || self.has_agent(&row.of.agent) || is_client()
    }

    fn has_entry(&self, entry: &Entry) -> bool {
        let model = entry.key.as_ref().map(|key| key.name().split('#').next().unwrap_or_default());
        model.is_some_and(|model| self.has_model(model))
            || entry.agent.as_deref().is_some_and(|agent| self.has_agent(agent))
    }
}

/// What was counted until now since the begin of an episode; faults only once it is over.
pub(crate) fn count(
    store: &dyn Store,
    config: &Config,
    zone: &TimeZone,
    episode: &Episode,
    now: Timestamp,
) -> Result<Damage, StoreError> {
    let share = Share::of(&episode.subject, config);
    let day = |time: Timestamp| time.to_zoned(zone.clone()).date();
    let mut damage = Damage::default();
    for row in store.usage().totals(day(episode.since), day(now))?.iter().filter(|row| share.has_usage(row)) {
        damage.lost_attempts = damage.lost_attempts.saturating_add(row.counts.lost_attempts);
        damage.lost_cost = damage.lost_cost.saturating_add(row.counts.lost_cost);
        damage.lesser_cost = damage.lesser_cost.saturating_add(row.counts.lesser_cost);
    }
    if episode.well_since.is_some() {
        (damage.faults, damage.is_partial) = faults(store, &share, episode, now)?;
    }
    Ok(damage)
}

/// How many failed attempts the journal has, and whether there may be more. In a storm most of its entries are about other things, so it is
/// read page by page, the newest first.
fn faults(
    store: &dyn Store,
    share: &Share<'_>,
    episode: &Episode,
    now: Timestamp,
) -> Result<(u64, bool), StoreError> {
    let mut query = Query {
        from: Some(episode.counted_from),
        to: Some(now),
        what: Some(EntryKind::Fault),
        key: episode.subject.parse().ok().filter(|_| share.level == "target"),
        limit: PAGE,
        ..Query::default()
    };
    let mut count = 0_usize;
    for _ in 0..MAX_PAGES {
        let page = store.query(&query)?;
        let oldest = page.iter().map(|entry| entry.at).min().filter(|_| page.len() >= PAGE);
        let newer =
            page.iter().filter(|entry| oldest.is_none_or(|oldest| entry.at > oldest)).collect::<Vec<_>>();
        let is_one_instant = newer.is_empty() && !page.is_empty();
        // The rest of the oldest instant may be on the next page: all of it is counted there.
        let counted = if is_one_instant { page.iter().collect() } else { newer };
        count += counted.into_iter().filter(|entry| share.has_entry(entry)).count();
        let Some(oldest) = oldest else { return Ok((u64::try_from(count).unwrap_or(u64::MAX), false)) };
        let behind = oldest.saturating_add(Duration::from_micros(1)).unwrap_or(oldest);
        query.to = Some(if is_one_instant { oldest } else { behind });
    }
    Ok((u64::try_from(count).unwrap_or(u64::MAX), true))
}

#[cfg(test)]
mod tests {
    use koboshi_store::{MemoryPolicy, MemoryStore};

    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_microsecond(1_000_000_000 + micros).unwrap()
    }

    /// An episode that began at the instant zero and is well again.
    fn episode(subject: &str) -> Episode {
        let text = serde_json::json!({
            "subject": subject, "trigger": "cooldown", "severity": "warning", "since": at(0), "counted_from": at(-10),
            "well_since": at(100_000),
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn failures_of_a_quiet_subject_are_counted_in_the_storm_of_another_one() {
        let store = MemoryStore::new(MemoryPolicy::default());
        let node = "n1".parse().unwrap();
        let fault = |micros: i64, key: &str| Entry {
            key: Some(key.parse().unwrap()),
            ..Entry::new(at(micros), &node, EntryKind::Fault, "it failed")
        };
        // The one that began it is noted just before it; one of yesterday is not meant.
        let mut entries = vec![
            fault(-90_000_000, "target:one/m#1"),
            fault(-5, "target:one/m#1"),
            fault(3, "target:one/m#1"),
        ];
        // Three of them in each instant, so that pages end within one.
        let storm = 2 * i64::try_from(PAGE).unwrap();
        entries.extend((10..storm + 10).map(|n| fault(n / 3 + 10, "target:two/m#1")));
        store.append(&entries).unwrap();
        let config = Config::default();
        let count =
            |subject: &str| count(&store, &config, &TimeZone::UTC, &episode(subject), at(200_000)).unwrap();
        for subject in ["target:one/m#1", "model:one/m", "provider:one"] {
            assert_eq!((count(subject).faults, count(subject).is_partial), (2, false), "{subject}");
        }
        assert_eq!(count("model:two/m").faults, u64::try_from(storm).unwrap(), "none twice, none left out");
    }

    #[test]
    fn attempts_belong_to_what_they_were_sent_to() {
        let text =
            "providers: {one: {kind: openai, base_url: 'https://one.example/v1', keys: [k], account: main}}";
        let config = koboshi_config::load("koboshi.yaml", text, &|_| None).unwrap();
        let has = |subject: &str, model: &str| Share::of(subject, &config).has_model(model);
        assert!(has("target:one/m#1f2e", "one/m") && !has("target:one/m#1f2e", "one/m2"));
        assert!(has("account:main", "one/m") && !has("account:main", "two/m"));
        assert!(has("provider:one", "one/m") && !has("provider:one", "onetwo/m"));
        assert!(has("key:one/ab12", "one/m") && has("model:one/m", "one/m"));
        let of_agent = Share::of("agent:reviewer/website", &config);
        assert!(of_agent.has_agent("reviewer/website") && of_agent.has_agent("reviewer"));
        assert!(!of_agent.has_agent("") && !of_agent.has_agent("review") && !of_agent.has_model("one/m"));
    }
}
