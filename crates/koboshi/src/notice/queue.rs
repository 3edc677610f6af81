//! What waits for one channel: which notices go out together, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Notice, Severity, Stage};

/// The most notices that wait; of more, the oldest go and are counted.
pub const MAX_WAITING: usize = 500;
/// The most notices in one message.
pub const MAX_IN_MESSAGE: usize = 100;
/// The pause after a first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(5 * 60);
/// After this many refusals a message lets later ones pass.
const MAX_REFUSALS: u32 = 5;
/// The most refused messages that are kept; of more, the oldest go and are counted.
const MAX_ASIDE: usize = 20;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// When a channel may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePolicy {
    /// How long the first notice waits for others.
    pub group_wait: Duration,
    /// The most messages in an hour.
    pub max_per_hour: u32,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self { group_wait: Duration::from_secs(5), max_per_hour: 30 }
    }
}

/// What happens to a message that its receiver refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is sent again.
    Again,
    /// Later messages pass it, and it is sent again after them.
    Aside,
    /// It is given up, and its notices are counted as lost.
    Lost,
}

/// What is sent at once. It is never changed once it was made: each time it is sent it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Message {
    /// The id of its first notice and how many there are: the same notices have the same id.
    pub id: String,
    /// Its notices, in the order in which they were decided.
    pub notices: Vec<Notice>,
    /// How many older ones did not fit and are lost.
    #[serde(default)]
    pub dropped: u64,
    /// How often it was sent without success.
    #[serde(default)]
    pub failures: u32,
    /// How often the receiver refused it, in words that say that it will never take it.
    #[serde(default)]
    pub refusals: u32,
    /// Since it was refused, the receiver took another one: so this one is at fault, and its next refusal is the last.
    #[serde(default)]
    pub is_last_try: bool,
    /// The name of the process that made it.
    #[serde(default)]
    pub node: String,
    /// Not before this.
    pub next: Timestamp,
}

/// What waits for one channel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Notices in the order in which they were decided.
    #[serde(default)]
    pub waiting: Vec<Notice>,
    /// How many did not fit.
    #[serde(default)]
    pub dropped: u64,
    /// The message that is on its way.
    #[serde(default)]
    pub sending: Option<Message>,
    /// Messages that the receiver refused: later ones pass them. They are tried again, because it may be the receiver that is wrong.
    #[serde(default)]
    pub aside: Vec<Message>,
    /// Since when the process that sends does not know the channel.
    #[serde(default)]
    pub unknown_since: Option<Timestamp>,
    /// When messages of the last hour were made.
    #[serde(default)]
    pub made: Vec<Timestamp>,
    /// How many messages the receiver took.
    #[serde(default)]
    pub sent: u64,
    /// How often it did not take one.
    #[serde(default)]
    pub failed: u64,
    /// When it took one last.
    #[serde(default)]
    pub last_sent: Option<Timestamp>,
    /// Why it did not take the last one, in words without secrets.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// How a channel fares, for those who run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelState {
    /// Its name.
    pub channel: String,
    /// Notices that did not arrive yet.
    pub waiting: usize,
    /// Messages that it took.
    pub sent: u64,
    /// How often it did not take one.
    pub failed: u64,
    /// Notices that were lost, and that no message has told of yet.
    pub dropped: u64,
    /// When it took one last.
    pub last_sent: Option<Timestamp>,
    /// When it is tried again, where it did not take the last one.
    pub next: Option<Timestamp>,
    /// Why it did not take the last one.
    pub trouble: Option<String>,
}

impl Queue {
    /// Adds a notice. What has ended before it was sent, and what got worse, needs only the later notice.
    pub fn push(&mut self, notice: Notice) {
        let episode = notice.episode().to_owned();
        self.waiting.retain(|one| one.episode() != episode);
        self.waiting.push(notice);
        if self.waiting.len() > MAX_WAITING {
            self.waiting.remove(0);
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Makes a message of what waits, if it is time, or takes one up again that was refused. Returns whether there is one now.
    pub fn compose(&mut self, policy: QueuePolicy, is_quiet: bool, now: Timestamp) -> bool {
        self.make(policy, is_quiet, now) || self.take_up(now)
    }

    fn make(&mut self, policy: QueuePolicy, is_quiet: bool, now: Timestamp) -> bool {
        self.made
            .retain(|at| now.duration_since(*at) < jiff::SignedDuration::try_from(HOUR).unwrap_or_default());
        if self.sending.is_some() || self.made.len() >= policy.max_per_hour as usize {
            return false;
        }
        let may_go = |notice: &Notice| !is_quiet || notice.severity == Severity::Critical;
        let oldest = self.waiting.iter().filter(|one| may_go(one)).map(|one| one.at).min();
        let Some(oldest) = oldest else { return false };
        // A clock that was set back must not hold notices for long.
        let waited = now.duration_since(oldest).unsigned_abs();
        if waited < policy.group_wait {
            return false;
        }
        let (mut notices, mut kept) = (Vec::new(), Vec::new());
        for notice in self.waiting.drain(..) {
            if may_go(&notice) && notices.len() < MAX_IN_MESSAGE {
                notices.push(notice);
            } else {
                kept.push(notice);
            }
        }
        self.waiting = kept;
        let Some(first) = notices.first() else { return false };
        let id = format!("{}+{}", first.id, notices.len().saturating_sub(1));
        let dropped = std::mem::take(&mut self.dropped);
        self.sending = Some(Message { id, notices, dropped, next: now, ..Message::default() });
        self.made.push(now);
        true
    }

    /// The message that is to be sent now.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<&Message> {
        self.sending.as_ref().filter(|message| message.next <= now)
    }

    /// Tries a refused message again.
    fn take_up(&mut self, now: Timestamp) -> bool {
        let due = self.aside.iter().position(|message| message.is_last_try || message.next <= now);
        let Some(place) = due.filter(|_| self.sending.is_none()) else { return false };
        self.sending = Some(Message { next: now, ..self.aside.remove(place) });
        true
    }

    /// The message with this id arrived: the receiver is well, so what it refused before is at fault itself.
    pub fn sent(&mut self, id: &str, now: Timestamp) {
        if self.sending.as_ref().is_some_and(|message| message.id == id) {
            self.sending = None;
            self.sent = self.sent.saturating_add(1);
            self.last_sent = Some(now);
            self.trouble = None;
            self.aside.iter_mut().for_each(|message| message.is_last_try = true);
        }
    }

    /// The receiver will not take the message with this id, however often it is sent. Returns what happens to it.
    pub fn refused(&mut self, id: &str, now: Timestamp) -> Refused {
        let Some(message) = self.sending.as_mut().filter(|message| message.id == id) else {
            return Refused::Again;
        };
        message.refusals = message.refusals.saturating_add(1);
        let (refusals, is_last_try) = (message.refusals, message.is_last_try);
        self.failed(id, None, now);
        if refusals < MAX_REFUSALS && !is_last_try {
            return Refused::Again;
        }
        let Some(mut message) = self.sending.take() else { return Refused::Again };
        if is_last_try {
            self.count_lost(&message);
            return Refused::Lost;
        }
        message.next = now.saturating_add(MAX_PAUSE).unwrap_or(Timestamp::MAX);
        self.aside.push(message);
        if self.aside.len() > MAX_ASIDE {
            let oldest = self.aside.remove(0);
            self.count_lost(&oldest);
        }
        Refused::Aside
    }

    /// How the channel with this name fares.
    #[must_use]
    pub fn state(&self, channel: &str) -> ChannelState {
        let made = self.sending.iter().chain(&self.aside);
        ChannelState {
            channel: channel.to_owned(),
            waiting: self.waiting.len() + made.clone().map(|message| message.notices.len()).sum::<usize>(),
            sent: self.sent,
            failed: self.failed,
            dropped: self.dropped,
            last_sent: self.last_sent,
            next: made.filter(|message| message.failures > 0).map(|message| message.next).min(),
            trouble: self.trouble.clone(),
        }
    }

    fn count_lost(&mut self, message: &Message) {
        let notices = u64::try_from(message.notices.len()).unwrap_or(u64::MAX);
        self.dropped = self.dropped.saturating_add(notices).saturating_add(message.dropped);
    }

    /// The message with this id did not arrive; the receiver may have said how long to wait.
    pub fn failed(&mut self, id: &str, wait: Option<Duration>, now: Timestamp) {
        let Some(message) = self.sending.as_mut().filter(|message| message.id == id) else { return };
        let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(message.failures).unwrap_or(u32::MAX));
        let pause = doubled.min(MAX_PAUSE).max(wait.unwrap_or_default().min(HOUR));
        message.failures = message.failures.saturating_add(1).min(30);
        self.failed = self.failed.saturating_add(1);
        message.next = now.saturating_add(pause).unwrap_or(Timestamp::MAX);
    }
}

impl Message {
    /// The worst severity in it.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.notices.iter().map(|one| one.severity).max().unwrap_or(Severity::Info)
    }

    /// How many notices of each stage it has.
    #[must_use]
    pub fn stages(&self) -> BTreeMap<Stage, usize> {
        let mut stages = BTreeMap::new();
        for notice in &self.notices {
            *stages.entry(notice.stage).or_insert(0) += 1;
        }
        stages
    }
}

/// Whether it is within these minutes of the day; a night goes over midnight. Equal times are the whole day.
#[must_use]
pub fn is_quiet((from, to): (u16, u16), now: Timestamp, zone: &TimeZone) -> bool {
    let time = now.to_zoned(zone.clone()).time();
    let minute = u16::try_from(time.hour()).unwrap_or(0) * 60 + u16::try_from(time.minute()).unwrap_or(0);
    if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
}
