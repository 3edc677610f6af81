//! What an episode cost: failed attempts that the journal has, and what the usage of the store says about lost attempts and lesser answers.
//!
//! Usage is counted by day, so the sums at the begin of an episode are taken from those at its end. It is counted by model and
//! agent: what belongs to an account or a key is that of its providers.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::notice::{Damage, Episode};
use koboshi_config::Config;
use koboshi_store::{Entry, EntryKind, Query, Store, StoreError, UsageRow};

/// The most entries of the journal that are counted.
const MAX_FAULTS: usize = 10_000;

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
        let faults = Query {
            from: Some(episode.since),
            to: Some(now),
            what: Some(EntryKind::Fault),
            limit: MAX_FAULTS,
            ..Query::default()
        };
        let count = store.query(&faults)?.iter().filter(|entry| share.has_entry(entry)).count();
        damage.faults = u64::try_from(count).unwrap_or(u64::MAX);
    }
    Ok(damage)
}

#[cfg(test)]
mod tests {
    use super::*;

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
