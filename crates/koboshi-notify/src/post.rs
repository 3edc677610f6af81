//! What the thread of the notifications does in each turn: reads what is the matter, decides with the core, and hands out what is to be sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::fault::Kind;
use koboshi::notice::{Fact, Interest, QueuePolicy, Refused, Severity, Trigger, is_quiet};
use koboshi_config::Config;
use koboshi_config::notify::{ChannelConfig, quiet_minutes};
use koboshi_report::notice::NoticeWords;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_store::standing::rows;
use koboshi_store::store::Named;
use koboshi_store::{Clock, Record, Slot, StoreChanges, SystemClock, Watch};

use crate::channel::{Letter, SendError, Taken, redactor, send};
use crate::damage::count;
use crate::facts;
use crate::http::LocalFuture;
use crate::kept::Kept;
use crate::meters::Meters;
use crate::notifier::{Surroundings, Tone};
use crate::routes::{Outages, RouteKeys};

/// In how many turns the budgets are read once.
const TURNS_PER_BUDGETS: u32 = 4;

/// In how many turns the routes are read once: they change with a config.
const TURNS_PER_ROUTES: u32 = 10;

/// How a message fared.
pub(crate) struct Outcome {
    channel: String,
    /// The id of the message in the book.
    message: String,
    result: Result<Taken, SendError>,
}

/// The state of the thread.
pub(crate) struct Post {
    around: Surroundings,
    config: Config,
    phrases: Phrases,
    interests: BTreeMap<String, Interest>,
    spend_zone: TimeZone,
    kept: Kept,
    watch: Option<Box<dyn Watch>>,
    records: HashMap<Slot, Record>,
    named: Vec<Named>,
    budgets: Vec<Fact>,
    routes: Vec<RouteKeys>,
    outages: Outages,
    turns: u32,
    in_flight: BTreeSet<String>,
    failing: BTreeSet<String>,
    meters: Arc<Meters>,
    clock: SystemClock,
}

impl Post {
    pub(crate) fn new(around: Surroundings, config: Config, phrases: Phrases, meters: Arc<Meters>) -> Self {
        let interests = config.channels.iter().map(|(name, one)| (name.clone(), interest(one))).collect();
        let spend_zone = around.zones.get(&config.spend.zone).unwrap_or(TimeZone::UTC);
        let kept = Kept::new(Arc::clone(&around.store), around.node.clone());
        Self {
            around,
            config,
            phrases,
            interests,
            spend_zone,
            kept,
            watch: None,
            records: HashMap::new(),
            named: Vec::new(),
            budgets: Vec::new(),
            routes: Vec::new(),
            outages: Outages::default(),
            turns: 0,
            in_flight: BTreeSet::new(),
            failing: BTreeSet::new(),
            meters,
            clock: SystemClock,
        }
    }

    /// One turn. Returns what is to be sent now, or none where another process sends.
    pub(crate) fn turn(&mut self) -> Option<Vec<LocalFuture<Outcome>>> {
        if !self.kept.is_ours() {
            self.watch = None;
            self.in_flight.clear();
            self.meters.clear();
            return None;
        }
        let now = self.clock.wall();
        // Where the state is not known, nothing begins and nothing ends.
        if self.read(now) {
            self.observe(now);
        }
        self.compose(now);
        self.meters.show(self.kept.book.as_ref());
        // Only what the store has is sent: a kill after this loses nothing.
        Some(if self.kept.write() { self.due(now) } else { Vec::new() })
    }

    /// Reads what changed. Returns whether the state is known.
    fn read(&mut self, now: Timestamp) -> bool {
        if self.watch.is_none() {
            self.watch = self.around.store.watch(Arc::new(|| {})).ok();
        }
        let Some(watch) = &mut self.watch else { return false };
        match watch.changes(self.clock.moment()) {
            Ok(StoreChanges::Quiet) => {}
            Ok(StoreChanges::Changed(contents)) => {
                self.records.extend(contents.records);
                self.named =
                    self.records.iter().map(|(slot, record)| (slot.clone(), record.clone())).collect();
            }
            Ok(StoreChanges::All(contents)) => {
                self.records = contents.records.iter().cloned().collect();
                self.named = contents.records;
            }
            Ok(_) | Err(_) => return false,
        }
        self.turns = self.turns.wrapping_add(1);
        if self.turns % TURNS_PER_ROUTES == 1
            && let Some(routes) = (self.around.routes)(&*self.around.store, now)
        {
            self.routes = routes;
        }
        let has_budgets = self.config.keys.values().any(|key| key.budget.is_limited());
        if has_budgets && self.turns % TURNS_PER_BUDGETS == 1 {
            let (first, today) = facts::days(&self.spend_zone, now);
            let Ok(spent) = self.around.store.usage().spent(first, today) else { return false };
            self.budgets = facts::of_budgets(&self.config, &spent, &self.spend_zone, now);
        }
        true
    }

    fn observe(&mut self, now: Timestamp) {
        let rows = rows(&self.named, now);
        let mut facts = facts::of_records(&self.records, &rows, now);
        facts.extend_from_slice(&self.budgets);
        let episodes = self.kept.book.as_ref().map(|book| &book.episodes);
        let told = |subject: &str| Some(episodes?.get(subject)?.since);
        facts.extend(self.outages.facts(&self.routes, &rows, told, now));
        let (store, config, zone) = (&self.around.store, &self.config, &self.spend_zone);
        let Some(book) = &mut self.kept.book else { return };
        let counted = |episode: &_| count(&**store, config, zone, episode, now).ok();
        self.kept.is_changed |= book.observe(&facts, &self.interests, config.notify.settle, now, counted);
    }

    fn compose(&mut self, now: Timestamp) {
        let Some(book) = &mut self.kept.book else { return };
        for (name, queue) in &mut book.queues {
            let Some(channel) = self.config.channels.get(name) else { continue };
            let policy = QueuePolicy::default().with(|policy| {
                policy.group_wait = self.config.notify.group_wait;
                policy.max_per_hour = channel.max_per_hour;
            });
            let hours = channel.quiet_hours.as_deref().and_then(quiet_minutes);
            let quiet = hours.is_some_and(|hours| is_quiet(hours, now, &self.around.zone_of(channel)));
            if queue.compose(policy, quiet, now) {
                self.kept.is_changed = true;
                // One that is taken up again keeps the name of the process that made it: it stays the same message.
                let made = queue.sending.as_mut().filter(|message| message.node.is_empty());
                if let Some(message) = made {
                    message.node.clone_from(&self.around.node);
                }
            }
        }
    }

    /// The messages whose time has come, of channels with none on its way.
    fn due(&mut self, now: Timestamp) -> Vec<LocalFuture<Outcome>> {
        let Some(book) = &self.kept.book else { return Vec::new() };
        let mut sends: Vec<LocalFuture<Outcome>> = Vec::new();
        for (name, queue) in &book.queues {
            let Some(channel) = self.config.channels.get(name) else { continue };
            let Some(message) = queue.due(now) else { continue };
            if !self.in_flight.insert(name.clone()) {
                continue;
            }
            let words = words(&self.phrases, &self.around, &self.config, channel);
            let sending = send(channel, &Letter::of(message, &words), &self.around.http, now);
            let (channel, message) = (name.clone(), message.id.clone());
            sends.push(Box::pin(async move { Outcome { channel, message, result: sending.await } }));
        }
        sends
    }

    /// Takes in how a message fared.
    pub(crate) fn arrived(&mut self, outcome: Outcome) {
        let Outcome { channel, message, result } = outcome;
        self.in_flight.remove(&channel);
        let now = self.clock.wall();
        let Some(queue) = self.kept.book.as_mut().and_then(|book| book.queues.get_mut(&channel)) else {
            return;
        };
        self.kept.is_changed = true;
        match result {
            Ok(taken) => {
                queue.sent(&message, now);
                if let Some(except) = taken.except {
                    let text = format!("notices: {channel} took a message, but not for everyone: {except}");
                    (self.around.log)(Tone::Warning, &text);
                }
                if self.failing.remove(&channel) {
                    (self.around.log)(Tone::Info, &format!("notices to {channel} arrive again"));
                }
            }
            Err(error) => {
                let fate = if error.is_final {
                    queue.refused(&message, now)
                } else {
                    queue.failed(&message, error.wait, now);
                    Refused::Again
                };
                queue.trouble = Some(error.why.clone());
                let is_news = self.failing.insert(channel.clone());
                let said = match fate {
                    Refused::Lost => Some("refused a message for good while it takes others, it is given up"),
                    Refused::Aside => {
                        Some("refused a message again and again, later ones are sent before it")
                    }
                    Refused::Again if is_news => Some("did not take a message, it is kept and sent later"),
                    Refused::Again => None,
                };
                if let Some(said) = said {
                    (self.around.log)(Tone::Warning, &format!("notices: {channel} {said}: {}", error.why));
                }
            }
        }
        // At once: a kill now must not send it again.
        let _ = self.kept.write();
    }

    pub(crate) fn close(&mut self) {
        self.meters.clear();
        self.kept.close();
    }
}

/// Which notices a channel wants.
fn interest(channel: &ChannelConfig) -> Interest {
    Interest {
        severity: Severity::from_name(channel.severity).unwrap_or(Severity::Warning),
        triggers: channel.triggers.iter().filter_map(|name| Trigger::from_name(name)).collect(),
        kinds: channel.kinds.iter().filter_map(|name| Kind::from_name(name)).collect(),
        scopes: channel.scopes.clone(),
    }
}

/// The words of a channel.
pub(crate) fn words<'w>(
    phrases: &'w Phrases,
    around: &'w Surroundings,
    config: &'w Config,
    channel: &ChannelConfig,
) -> NoticeWords<'w> {
    let named = channel.language.or_else(|| config.language.map(koboshi_config::config::Language::name));
    NoticeWords {
        phrases,
        lang: named.and_then(Lang::from_tag).unwrap_or(around.lang),
        zone: around.zone_of(channel),
        prefix: &config.code_prefix,
        currency: &config.spend.currency,
        redactor: redactor(),
        resume: &*around.resume,
    }
}
