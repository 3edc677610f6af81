//! The episodes that are known, and which notices of them each channel got.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::queue::{ChannelState, Queue};
use super::{Damage, Fact, Notice, Severity, Stage, Trigger};
use crate::fault::Kind;

/// The most episodes at a time; further ones begin when others have ended.
pub const MAX_EPISODES: usize = 1000;
/// How long a rest that is over may go untried before its episode ends.
const MAX_UNTRIED: Duration = Duration::from_secs(60 * 60);
/// How long before an episode the failures may be that began it: an attempt is noted before the rest that it causes, and a breaker opens
/// after several.
const LEAD: Duration = Duration::from_secs(10);
/// How long notices are kept for a channel that the process which sends does not know: another one may have a newer config.
const MAX_UNKNOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// Which notices a channel wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interest {
    /// This severity and worse.
    pub severity: Severity,
    /// Only these; empty for all.
    pub triggers: Vec<Trigger>,
    /// Only these kinds; empty for all. What has no kind is not filtered.
    pub kinds: Vec<Kind>,
    /// Only subjects of these levels (the word before the colon); empty for all.
    pub scopes: Vec<String>,
}

impl Default for Interest {
    fn default() -> Self {
        Self { severity: Severity::Warning, triggers: Vec::new(), kinds: Vec::new(), scopes: Vec::new() }
    }
}

impl Interest {
    /// Whether the channel wants to hear of an episode as it is now.
    #[must_use]
    pub fn wants(&self, episode: &Episode) -> bool {
        let scope = episode.subject.split(':').next().unwrap_or_default();
        let kind = episode.kind.as_deref().and_then(Kind::from_name);
        episode.severity >= self.severity
            && (self.triggers.is_empty() || self.triggers.contains(&episode.trigger))
            && (self.kinds.is_empty() || kind.is_none_or(|kind| self.kinds.contains(&kind)))
            && (self.scopes.is_empty() || self.scopes.iter().any(|one| one == scope))
    }
}

/// Something that fails, from its begin until it is well again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// What it is about.
    pub subject: String,
    /// What it is now, or was at its worst.
    pub trigger: Trigger,
    /// The worst that it was.
    pub severity: Severity,
    /// The name of the fault's kind.
    #[serde(default)]
    pub kind: Option<String>,
    /// The name of the finer reason.
    #[serde(default)]
    pub sub: Option<String>,
    /// The HTTP status, where nothing else is known of the fault.
    #[serde(default)]
    pub bare_status: Option<u16>,
    /// Since when; with the subject its name.
    pub since: Timestamp,
    /// Until when it lasts, as far as that is known.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// What is known besides.
    #[serde(default)]
    pub detail: String,
    /// Since when nothing is the matter any more.
    #[serde(default)]
    pub well_since: Option<Timestamp>,
    /// The severity of the last notice that each channel got.
    #[serde(default)]
    pub told: BTreeMap<String, Severity>,
    /// Channels that have the notice that it got worse.
    #[serde(default)]
    pub escalated: BTreeSet<String>,
    /// From when on failures belong to it: from a little before its begin, and not before the end of the one before.
    pub counted_from: Timestamp,
    /// What was counted when it began; none where it could not be counted.
    #[serde(default)]
    pub before: Option<Damage>,
}

impl Episode {
    fn new(fact: &Fact, since: Timestamp, ended: Option<Timestamp>) -> Self {
        let lead = since.saturating_sub(LEAD).unwrap_or(since);
        Self {
            subject: fact.subject.clone(),
            trigger: fact.trigger,
            severity: fact.severity,
            kind: fact.kind.map(|kind| kind.name().to_owned()),
            sub: fact.sub.map(|sub| sub.name().to_owned()),
            bare_status: fact.bare_status,
            counted_from: ended.map_or(lead, |ended| lead.max(ended)),
            since,
            until: fact.until,
            detail: fact.detail.clone(),
            well_since: None,
            told: BTreeMap::new(),
            escalated: BTreeSet::new(),
            before: None,
        }
    }

    /// Takes in what is the matter now. An episode never gets better before it ends.
    fn renew(&mut self, fact: &Fact) -> bool {
        let before = self.clone();
        self.well_since = None;
        if fact.is_untried {
            return *self != before;
        }
        self.until = fact.until;
        if fact.severity > self.severity || fact.severity == self.severity && fact.trigger >= self.trigger {
            self.severity = fact.severity;
            self.trigger = fact.trigger;
            if let Some(kind) = fact.kind {
                self.kind = Some(kind.name().to_owned());
                self.sub = fact.sub.map(|sub| sub.name().to_owned());
                self.bare_status = fact.bare_status;
            }
            if !fact.detail.is_empty() {
                self.detail.clone_from(&fact.detail);
            }
        }
        *self != before
    }

    /// The notice of a stage.
    fn notice(&self, stage: Stage, now: Timestamp) -> Notice {
        Notice {
            id: format!("{}/{}/{}", self.subject, self.since, stage.name()),
            stage,
            subject: self.subject.clone(),
            trigger: self.trigger,
            severity: self.severity,
            kind: self.kind.clone(),
            sub: self.sub.clone(),
            bare_status: self.bare_status,
            since: self.since,
            until: self.until.filter(|_| stage != Stage::End),
            ended: self.well_since.filter(|_| stage == Stage::End),
            detail: self.detail.clone(),
            damage: None,
            at: now,
        }
    }

    /// The notice that this channel must get now, if any.
    fn next_stage(&self, channel: &str, interest: &Interest) -> Option<Stage> {
        if self.well_since.is_some() || !interest.wants(self) {
            return None;
        }
        match self.told.get(channel) {
            None => Some(Stage::Start),
            Some(told) if self.severity > *told && !self.escalated.contains(channel) => {
                Some(Stage::Escalation)
            }
            Some(_) => None,
        }
    }
}

/// All episodes, and what waits for each channel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Book {
    /// By subject.
    #[serde(default)]
    pub episodes: BTreeMap<String, Episode>,
    /// When the last episode of a subject ended: the next one must have another name.
    #[serde(default)]
    pub ended: BTreeMap<String, Timestamp>,
    /// What waits for each channel, and what is on its way.
    #[serde(default)]
    pub queues: BTreeMap<String, Queue>,
}

impl Book {
    /// Takes in all that is the matter now, and decides what each channel gets. `count` says what was counted until now for
    /// an episode, if that can be counted: it is asked when an episode begins and when it ends. Returns whether anything changed.
    pub fn observe(
        &mut self,
        facts: &[Fact],
        channels: &BTreeMap<String, Interest>,
        settle: Duration,
        now: Timestamp,
        mut count: impl FnMut(&Episode) -> Option<Damage>,
    ) -> bool {
        let mut changed = self.keep_queues(channels, now);
        let worst = worst(facts, now);
        for (subject, fact) in &worst {
            changed |= self.take(subject, fact, channels, now, &mut count);
        }
        for episode in self.episodes.values_mut().filter(|one| !worst.contains_key(one.subject.as_str())) {
            changed |= episode.well_since.is_none();
            episode.well_since.get_or_insert(now);
        }
        changed |= self.tell(channels, now);
        changed | self.end(settle, now, &mut count)
    }

    /// How each channel fares, by name.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelState> {
        self.queues.iter().map(|(name, queue)| queue.state(name)).collect()
    }

    /// Forgets what waits for channels that are gone for good.
    fn keep_queues(&mut self, channels: &BTreeMap<String, Interest>, now: Timestamp) -> bool {
        let before = self.queues.len();
        let mut changed = false;
        for (name, queue) in &mut self.queues {
            let unknown = (!channels.contains_key(name)).then(|| queue.unknown_since.unwrap_or(now));
            changed |= queue.unknown_since != unknown;
            queue.unknown_since = unknown;
        }
        let is_gone =
            |queue: &Queue| queue.unknown_since.is_some_and(|since| is_past(since, MAX_UNKNOWN, now));
        self.queues.retain(|_, queue| !is_gone(queue));
        changed || self.queues.len() != before
    }

    fn take(
        &mut self,
        subject: &str,
        fact: &Fact,
        channels: &BTreeMap<String, Interest>,
        now: Timestamp,
        count: &mut impl FnMut(&Episode) -> Option<Damage>,
    ) -> bool {
        if let Some(episode) = self.episodes.get_mut(subject) {
            return episode.renew(fact);
        }
        let ended = self.ended.get(subject).copied();
        // A series of failures can go on behind the end that was reported: its name is taken.
        let is_new = ended.is_none_or(|ended| fact.since > ended);
        let mut episode = Episode::new(fact, if is_new { fact.since.min(now) } else { now }, ended);
        let is_wanted = channels.values().any(|interest| interest.wants(&episode));
        if fact.is_untried || !is_wanted || !self.has_room_for(&episode) {
            return false;
        }
        episode.before = count(&episode);
        self.episodes.insert(subject.to_owned(), episode);
        true
    }

    /// Whether one more episode can be kept; one that is less bad makes room for it.
    fn has_room_for(&mut self, episode: &Episode) -> bool {
        if self.episodes.len() < MAX_EPISODES {
            return true;
        }
        let least = self.episodes.values().min_by_key(|one| (one.severity, std::cmp::Reverse(one.since)));
        let least = least.filter(|one| one.severity < episode.severity).map(|one| one.subject.clone());
        least.is_some_and(|subject| self.episodes.remove(&subject).is_some())
    }

    /// Tells every channel what it does not know yet.
    fn tell(&mut self, channels: &BTreeMap<String, Interest>, now: Timestamp) -> bool {
        let mut changed = false;
        for episode in self.episodes.values_mut() {
            for (channel, interest) in channels {
                let Some(stage) = episode.next_stage(channel, interest) else { continue };
                episode.told.insert(channel.clone(), episode.severity);
                if stage == Stage::Escalation {
                    episode.escalated.insert(channel.clone());
                }
                self.queues.entry(channel.clone()).or_default().push(episode.notice(stage, now));
                changed = true;
            }
        }
        changed
    }

    /// Ends what has been well for long enough.
    fn end(
        &mut self,
        settle: Duration,
        now: Timestamp,
        count: &mut impl FnMut(&Episode) -> Option<Damage>,
    ) -> bool {
        let is_over = |episode: &Episode| episode.well_since.is_some_and(|well| is_past(well, settle, now));
        let over: Vec<String> =
            self.episodes.values().filter(|one| is_over(one)).map(|one| one.subject.clone()).collect();
        for subject in &over {
            let Some(episode) = self.episodes.remove(subject) else { continue };
            let after = if episode.told.is_empty() { None } else { count(&episode) };
            let damage = after.zip(episode.before).map(|(after, before)| after.since(&before));
            for channel in episode.told.keys() {
                // One that was removed meanwhile gets nothing.
                let Some(queue) = self.queues.get_mut(channel) else { continue };
                queue.push(Notice { damage, ..episode.notice(Stage::End, now) });
            }
            self.ended.insert(subject.clone(), now);
        }
        while self.ended.len() > MAX_EPISODES {
            let oldest = self.ended.iter().min_by_key(|(_, at)| **at).map(|(subject, _)| subject.clone());
            let Some(oldest) = oldest else { break };
            self.ended.remove(&oldest);
        }
        !over.is_empty()
    }
}

impl Damage {
    /// What was added since.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        let more = |now: i64, then: i64| now.saturating_sub(then).max(0);
        Self {
            faults: self.faults.saturating_sub(before.faults),
            is_partial: self.is_partial,
            lost_attempts: more(self.lost_attempts, before.lost_attempts),
            lost_cost: more(self.lost_cost, before.lost_cost),
            lesser_cost: more(self.lesser_cost, before.lesser_cost),
        }
    }
}

/// The worst fact of each subject. What was not tried for very long counts as over.
fn worst(facts: &[Fact], now: Timestamp) -> BTreeMap<&str, &Fact> {
    let mut worst: BTreeMap<&str, &Fact> = BTreeMap::new();
    let rank = |fact: &Fact| (!fact.is_untried, fact.severity, fact.trigger, fact.until, fact.kind);
    let is_stale =
        |fact: &Fact| fact.is_untried && fact.until.is_some_and(|until| is_past(until, MAX_UNTRIED, now));
    for fact in facts.iter().filter(|fact| !is_stale(fact)) {
        let known = worst.entry(fact.subject.as_str()).or_insert(fact);
        if rank(fact) > rank(known) {
            *known = fact;
        }
    }
    worst
}

/// Whether this length has passed since then.
fn is_past(then: Timestamp, length: Duration, now: Timestamp) -> bool {
    then.saturating_add(length).unwrap_or(Timestamp::MAX) <= now
}
