//! What all cores share: the plan, what was learned, and the sinks of journal, metrics, log and traces.
//!
//! Every core can read everything here at any time without waiting: the plan is swapped as a whole, breakers and gates are the
//! lock-free ones of the library (`koboshi`), and the ledger's working copy is in memory.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};
use koboshi::args::Schemas;
use koboshi::breaker::{Breaker, BreakerSnapshot, Mode, Transition};
use koboshi::budget::RetryShare;
use koboshi::chance::Seed;
use koboshi::cooldown::{BreakerOrder, OrderedMode};
use koboshi::gate::Gate;
use koboshi::key::ScopeKey;
use koboshi::time::Moment;
use koboshi_report::phrase::Phrases;
use koboshi_store::{Clock, Entry, EntryKind, Health, Ledger, RecordKind, Store, SystemClock};
use serde_json::json;

use crate::http::memory::{MemoryBudget, default_limit};
use crate::observe::feed::Feed;
use crate::observe::log::Level;
use crate::observe::meters::Meters;
use crate::observe::otlp::logs::LogSink;
use crate::observe::transition;
use crate::route::affinity::Affinity;
use crate::route::auth::AgentsKey;
use crate::route::plan::Plan;
use crate::route::target::{Scopes, Target, obey, seed_of};
use crate::shared::agents::KeptAgents;
use crate::shared::cache::Cache;
use crate::shared::context::RequestContext;
use crate::shared::host::{Host, Reloading};
use crate::shared::reopenings::{self, Reopenings};
use crate::shared::sessions::Sessions;
use crate::shared::spend::Spending;
use crate::shared::targets::Targets;
use crate::shared::trace::{Sink, Trace};
use crate::shared::visitors::Visitors;
use crate::shared::worker::{Bounds, Worker};
use koboshi_wire::http1::Fields;

/// How many compiled tool schemas are kept.
const MAX_SCHEMAS: usize = 2000;

/// What may wait for the store's cache: further answers are not cached, further readers get nothing.
const CACHE_CALLS: Bounds = Bounds { max_calls: 256, max_bytes: 16 << 20, max_asks: 64 };
/// How many operators may wait for the store.
const ADMIN_CALLS: Bounds = Bounds { max_calls: 0, max_bytes: 0, max_asks: 64 };

/// What texts for an operator name.
#[derive(Debug)]
pub(crate) struct OperatorTexts {
    /// What a command needs to reach this gateway's store, with a space before it.
    pub(crate) flags: String,
    /// The config.
    pub(crate) config: String,
}

/// What all cores share.
pub(crate) struct SharedState {
    plan: ArcSwap<Plan>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) phrases: Phrases,
    pub(crate) targets: Targets,
    /// Keys that are about to be used again after a rest.
    pub(crate) reopenings: Arc<Reopenings>,
    pub(crate) affinity: Affinity,
    pub(crate) cache: Cache,
    /// The worker for the cache in the store.
    pub(crate) cache_calls: Worker,
    /// The worker for operators' queries of the store and of agents.
    pub(crate) admin_calls: Worker,
    /// The agents that the same process keeps, if it does.
    pub(crate) agents: OnceLock<Arc<dyn KeptAgents>>,
    /// What other parts of the program count, in Prometheus' text format without its mark of the end.
    pub(crate) more_metrics: OnceLock<Box<dyn Fn() -> String + Send + Sync>>,
    /// The key that they ask with, where clients need keys.
    pub(crate) agents_key: AgentsKey,
    pub(crate) sessions: Sessions,
    pub(crate) spending: Arc<Spending>,
    pub(crate) share: RetryShare,
    /// The memory that bodies of requests take, and its default limit.
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) default_memory: u64,
    pub(crate) meters: Meters,
    pub(crate) schemas: Schemas,
    pub(crate) log: crate::observe::log::Log,
    pub(crate) feed: Feed,
    /// Where traces are sent, if anywhere.
    sink: ArcSwapOption<Sink>,
    pub(crate) zones: TimeZoneDatabase,
    zone: TimeZone,
    pub(crate) operator: OperatorTexts,
    /// People who are signed in at the dashboard.
    pub(crate) visitors: Visitors,
    /// The program around the gateway, where it does something for operators.
    pub(crate) host: OnceLock<Arc<dyn Host>>,
    /// Where the gateway listens.
    pub(crate) address: OnceLock<SocketAddr>,
    pub(crate) started: Timestamp,
    /// How often the config was read again, and how that ended last.
    reloading: Mutex<(u64, Option<(Timestamp, Reloading)>)>,
    clock: SystemClock,
    chance: AtomicU64,
    turns: AtomicUsize,
    /// Whether the log has reported that the store fails.
    store_fails: AtomicBool,
}

impl SharedState {
    #[expect(clippy::too_many_arguments, reason = "made once, from everything that there is")]
    pub(crate) fn new(
        plan: Plan,
        ledger: Arc<Ledger>,
        store: Arc<dyn Store>,
        phrases: Phrases,
        log: crate::observe::log::Log,
        zones: TimeZoneDatabase,
        zone: TimeZone,
        seed: u64,
        operator: OperatorTexts,
    ) -> Self {
        let clock = SystemClock;
        let ledger_name = ledger.node().to_string();
        Self {
            share: RetryShare::new(plan.config.retry_share, clock.moment()),
            memory: Arc::default(),
            default_memory: default_limit(),
            plan: ArcSwap::from_pointee(plan),
            reopenings: Reopenings::new(Arc::clone(&ledger)),
            ledger,
            store,
            phrases,
            targets: Targets::default(),
            affinity: Affinity::default(),
            cache: Cache::default(),
            cache_calls: Worker::new("koboshi-cache", CACHE_CALLS),
            admin_calls: Worker::new("koboshi-admin", ADMIN_CALLS),
            agents: OnceLock::new(),
            more_metrics: OnceLock::new(),
            agents_key: AgentsKey::default(),
            sessions: Sessions::new(format!("{}-{}", ledger_name, crate::shared::context::new_request_id())),
            spending: Arc::new(Spending::new(format!(
                "{}-{}",
                ledger_name,
                crate::shared::context::new_request_id()
            ))),
            meters: Meters::new(),
            schemas: Schemas::new(MAX_SCHEMAS),
            log,
            feed: Feed::new(),
            sink: ArcSwapOption::empty(),
            zones,
            zone,
            operator,
            visitors: Visitors::default(),
            host: OnceLock::new(),
            address: OnceLock::new(),
            started: clock.wall(),
            reloading: Mutex::default(),
            clock,
            chance: AtomicU64::new(seed),
            turns: AtomicUsize::new(0),
            store_fails: AtomicBool::new(false),
        }
    }

    /// The current plan.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.load_full()
    }

    /// Uses a new plan for future requests. It contains the policies of breakers and gates, so targets are made again where those
    /// changed.
    pub(crate) fn adopt(&self, plan: Plan) {
        let before = self.plan();
        let same = before.config.breaker == plan.config.breaker && before.config.gate == plan.config.gate;
        self.plan.store(Arc::new(plan));
        if same {
            self.targets.keep_configured(&self.plan());
        } else {
            self.targets.clear();
        }
        self.adopt_limits();
        self.know_fixed_targets();
    }

    /// Records how an attempt to read the config again ended.
    pub(crate) fn note_reloading(&self, how: Reloading) {
        let now = self.wall();
        let mut known = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (known.0.wrapping_add(1), Some((now, how)));
    }

    /// How often the config was read again.
    pub(crate) fn reloadings(&self) -> u64 {
        self.reloading.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// How that ended last.
    pub(crate) fn last_reloading(&self) -> Option<(Timestamp, Reloading)> {
        self.reloading.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Makes the targets that the config names, so that they have metrics and are listed before their first request.
    pub(crate) fn know_fixed_targets(&self) {
        let plan = self.plan();
        for link in plan.fixed_links() {
            if let Some((provider, model)) = plan.link(link, "") {
                drop(self.targets.of(self, &plan, &provider, &model));
            }
        }
    }

    /// Goes by the limits of the current plan's keys.
    pub(crate) fn adopt_limits(&self) {
        let plan = self.plan();
        self.spending.adopt(plan.key_limits(), self.spend_zone(&plan));
    }

    /// The zone in which days of spending begin; a start or a reload refuses one that does not exist.
    pub(crate) fn spend_zone(&self, plan: &Plan) -> TimeZone {
        self.zones.get(&plan.config.spend.zone).unwrap_or(TimeZone::UTC)
    }

    /// What all bodies together may take.
    pub(crate) fn memory_limit(&self, plan: &Plan) -> u64 {
        plan.config.serve.memory.unwrap_or(self.default_memory)
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.moment()
    }

    pub(crate) fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    pub(crate) fn zoned(&self) -> Zoned {
        self.wall().to_zoned(self.zone.clone())
    }

    /// The time zone for an answer: that of this machine for a local client, else unknown.
    pub(crate) fn zone_of(&self, context: &RequestContext) -> TimeZone {
        if context.is_local { self.zone.clone() } else { TimeZone::UTC }
    }

    /// A fresh seed for one request.
    pub(crate) fn seed(&self) -> Seed {
        Seed::new(self.chance.fetch_add(1, Ordering::Relaxed)).nth(1)
    }

    /// A round-robin counter.
    pub(crate) fn next_number(&self) -> usize {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a journal entry.
    pub(crate) fn note(
        &self,
        kind: EntryKind,
        name: &str,
        key: Option<&ScopeKey>,
        text: String,
        data: serde_json::Value,
    ) {
        self.write_note(None, kind, name, key, text, data);
    }

    /// Writes a journal entry about a request, with the agent that sent it.
    pub(crate) fn note_for(
        &self,
        context: &RequestContext,
        kind: EntryKind,
        name: &str,
        key: Option<&ScopeKey>,
        text: String,
        data: serde_json::Value,
    ) {
        self.write_note(context.agent.as_deref(), kind, name, key, text, data);
    }

    fn write_note(
        &self,
        agent: Option<&str>,
        kind: EntryKind,
        name: &str,
        key: Option<&ScopeKey>,
        text: String,
        data: serde_json::Value,
    ) {
        let mut entry = Entry::new(self.wall(), self.ledger.node(), kind, text);
        entry.kind = Some(name.to_owned().into());
        entry.key = key.cloned();
        entry.agent = agent.map(str::to_owned);
        entry.data = Some(data);
        self.feed.publish(&entry);
        self.ledger.journal(entry);
    }

    /// Sends traces to the collector of the current plan from now on.
    pub(crate) fn trace_to(&self) -> Result<(), String> {
        let asked = self.plan().config.trace.otlp.clone();
        let known = self.sink.load();
        if known.as_ref().map(|sink| sink.address()) == asked.as_deref() {
            return Ok(());
        }
        let made = asked.map(|address| {
            Sink::start(&address, self.ledger.node(), self.meters.spans_dropped.clone(), self.log.clone())
        });
        self.sink.store(made.transpose()?.map(Arc::new));
        Ok(())
    }

    /// Sends the log to the collector of the current plan from now on.
    pub(crate) fn log_to(&self) -> Result<(), String> {
        let plan = self.plan();
        let (asked, level) = (plan.config.log.otlp.as_deref(), Level::from_name(plan.config.log.level));
        let known = self.log.collector();
        if known.as_ref().map(|sink| (sink.address(), sink.max_level())) == asked.map(|asked| (asked, level))
        {
            return Ok(());
        }
        let dropped = self.meters.log_lines_dropped.clone();
        let made = asked.map(|address| {
            LogSink::start(address, self.ledger.node(), dropped, self.log.without_collector(), level)
        });
        drop(self.log.collect_by(made.transpose()?));
        Ok(())
    }

    /// The trace of a request that begins.
    pub(crate) fn trace(&self, headers: &Fields, context: &RequestContext, operation: &'static str) -> Trace {
        match &*self.sink.load() {
            Some(sink) => Trace::begin(sink, headers, context, operation),
            None => Trace::default(),
        }
    }

    /// Sends the waiting lines of the log to their collector, and no more.
    pub(crate) fn end_log(&self) {
        if let Some(sink) = self.log.collect_by(None) {
            sink.finish();
        }
    }

    /// Sends the waiting spans, and no more.
    pub(crate) fn end_traces(&self) {
        if let Some(sink) = self.sink.swap(None).and_then(Arc::into_inner) {
            sink.finish();
        }
    }

    /// A breaker for a new target, in its state from before a restart.
    pub(crate) fn breaker(&self, plan: &Plan, name: &Arc<str>, scopes: &Scopes) -> Arc<Breaker> {
        let now = self.now();
        let policy = plan.config.breaker;
        // The config was checked; if it was not, the default policy is used.
        let seed = seed_of(name, &self.ledger.node().to_string());
        let breaker =
            Breaker::new(policy, seed, now).unwrap_or_else(|_| Breaker::with_default_policy(seed, now));
        let watcher = self.watcher(Arc::clone(name), scopes.target.clone());
        let breaker = Arc::new(breaker.watched(watcher));
        if let Some(key) = &scopes.target {
            let own = self.ledger.breakers(key).into_iter().find(|(node, _)| node == self.ledger.node());
            if let Some((_, snapshot)) = own {
                breaker.restore(&snapshot, now, self.wall());
            }
            // An order that was carried out before this breaker was made is not carried out again; one that lasts is.
            let order = self.ledger.cooldown(key).and_then(|cooldown| cooldown.breaker_order());
            if let Some(order) = order.filter(|order| order.mode.is_lasting()) {
                obey(&breaker, order.mode, now);
            }
        }
        breaker
    }

    fn watcher(&self, name: Arc<str>, key: Option<ScopeKey>) -> impl Fn(&Transition) + Send + Sync + 'static {
        let (ledger, feed) = (Arc::clone(&self.ledger), self.feed.clone());
        let clock = self.clock;
        move |change: &Transition| {
            // An operator resets a closed breaker: the order itself is in the journal.
            if change.from == change.to {
                return;
            }
            let (ledger, feed) = (Arc::clone(&ledger), feed.clone());
            let (name, key, change) = (Arc::clone(&name), key.clone(), *change);
            transition::report_or_hold(move || {
                let (from, to, why) = (change.from.name(), change.to.name(), change.why.name());
                let text = format!("{name}: breaker {from} → {to} ({why})");
                let mut entry = Entry::new(clock.wall(), ledger.node(), EntryKind::Breaker, text);
                entry.kind = Some(to.into());
                entry.key.clone_from(&key);
                entry.data = Some(json!({"target": &*name, "from": from, "to": to, "why": why}));
                feed.publish(&entry);
                ledger.journal(entry);
                // At once: a reader of the store must not find an open breaker closed.
                if let Some(key) = &key {
                    ledger.show_breaker(key, &change.snapshot(clock.moment(), clock.wall()));
                }
            });
        }
    }

    /// A gate for a new target, with the limits that the provider stated to any node.
    pub(crate) fn gate(&self, plan: &Plan, scopes: &Scopes) -> Arc<Gate> {
        let now = self.now();
        let gate = Arc::new(Gate::new(plan.config.gate, now));
        if let Some(holds) = scopes.limits.as_ref().and_then(|key| self.ledger.holds(key)) {
            gate.adopt(&holds, now, self.wall());
        }
        gate
    }

    /// All metrics in Prometheus' text format. The gauges of breakers are set here: an open breaker admits probes after a while
    /// without any event that could set them.
    pub(crate) fn metrics(&self) -> String {
        let (now, wall) = (self.now(), self.wall());
        let targets = self.targets.all();
        let states = targets.iter().map(|target| {
            let state = match target.breaker.snapshot(now, wall).mode_at(wall) {
                Mode::Closed | Mode::ForcedClosed | Mode::Disabled => 0,
                Mode::Probing => 1,
                _ => 2,
            };
            (&target.meters, state)
        });
        self.meters.show_breakers(states);
        self.meters.store_connected.set(i64::from(self.ledger.health().connected));
        self.meters.gateways.set(i64::from(self.reopenings.place().nodes));
        let text = self.meters.text();
        let more = self.more_metrics.get().map(|more| more()).unwrap_or_default();
        let end = self.agents.get().map_or_else(|| "# EOF\n".to_owned(), |agents| agents.metrics());
        // Several expositions become one: only the last has the mark of the end.
        text.trim_end_matches("# EOF\n").to_owned() + &more + &end
    }

    /// Logs when the store begins to fail and when it works again, once each.
    pub(crate) fn log_store_health(&self) {
        let health = self.ledger.health();
        let why = store_error(&health);
        if self.store_fails.swap(why.is_some(), Ordering::Relaxed) == why.is_some() {
            return;
        }
        let facts = json!({"store": health.place, "why": why});
        match why {
            Some(_) => {
                let message = "the store fails: what is learned is kept in memory until it works again";
                self.log.line(Level::Warn, message, &facts);
            }
            None => self.log.line(Level::Info, "the store works again: it gets what was learned", &facts),
        }
    }

    /// Carries out an operator's order for a breaker, here and on every node that shares the store.
    pub(crate) fn order_breaker(&self, target: &Target, mode: OrderedMode) {
        let wall = self.wall();
        match &target.scopes.target {
            Some(key) => {
                let order = self.ledger.update_cooldown(key, |cooldown| cooldown.order_breaker(mode, wall));
                target.obey_order(order, self.now());
            }
            None => target.obey_order(BreakerOrder { at: wall, mode }, self.now()),
        }
    }

    /// Obeys orders that an operator gave on any node: for the breaker itself, and to resume the key. Closes a breaker that was resumed, on any node that shares the store, after it had opened or been forced open.
    pub(crate) fn obey_resume(&self, target: &Target, key: &ScopeKey) {
        let Some(cooldown) = self.ledger.cooldown(key) else { return };
        if let Some(order) = cooldown.breaker_order() {
            target.obey_order(order, self.now());
        }
        let Some(resumed) = cooldown.resumed_at() else { return };
        let (now, wall) = (self.now(), self.wall());
        let snapshot = target.breaker.snapshot(now, wall);
        let is_shut = matches!(snapshot.mode, Mode::Open | Mode::Probing | Mode::ForcedOpen);
        if is_shut && snapshot.since <= resumed {
            target.breaker.reset(now);
        }
    }

    /// Takes in at once what another gateway stated; [`SharedState::sync_with_store`] would find it later.
    pub(crate) fn listen(self: &Arc<Self>) {
        let state = Arc::downgrade(self);
        self.ledger.on_change(move |slot| {
            let Some(state) = state.upgrade() else { return };
            state.reopenings.watch_slot(slot);
            if slot.kind() != RecordKind::Holds {
                return;
            }
            let Some(holds) = state.ledger.holds(slot.key()) else { return };
            let (now, wall) = (state.now(), state.wall());
            for target in
                state.targets.all().iter().filter(|one| one.scopes.limits.as_ref() == Some(slot.key()))
            {
                target.gate.adopt(&holds, now, wall);
            }
        });
    }

    /// Reads what other nodes learned, and reports the breakers of this one. Called a few times a second.
    pub(crate) fn sync_with_store(&self) {
        self.log_store_health();
        self.reopenings.tick(&reopenings::policy(&self.plan().config));
        let (now, wall) = (self.now(), self.wall());
        for target in self.targets.all() {
            if let Some(holds) = target.scopes.limits.as_ref().and_then(|key| self.ledger.holds(key)) {
                target.gate.adopt(&holds, now, wall);
            }
            let Some(key) = &target.scopes.target else { continue };
            self.obey_resume(&target, key);
            let snapshot = target.breaker.snapshot(now, wall);
            let (own, others): (Vec<_>, Vec<_>) =
                self.ledger.breakers(key).into_iter().partition(|(node, _)| node == self.ledger.node());
            let is_open = |remote: &BreakerSnapshot| {
                remote.mode == Mode::Open && remote.until.is_some_and(|until| until > wall)
            };
            for (_, remote) in others.iter().filter(|(_, remote)| is_open(remote)) {
                target.hint(remote);
            }
            let shown = own.into_iter().next();
            let fresh = snapshot.mode == Mode::Closed && shown.is_none();
            if !fresh && !shown.is_some_and(|(_, shown)| is_same(&shown, &snapshot)) {
                self.ledger.show_breaker(key, &snapshot);
            }
        }
    }
}

/// Why the store cannot be used now.
pub(crate) fn store_error(health: &Health) -> Option<String> {
    let body_error = || format!("{} has not answered yet", health.place);
    health.trouble.as_ref().map(ToString::to_string).or_else(|| (!health.loaded).then(body_error))
}

/// Whether two snapshots of a breaker are equal, but for small differences of their instants, which two clocks measured.
fn is_same(shown: &BreakerSnapshot, now: &BreakerSnapshot) -> bool {
    let near = match (shown.until, now.until) {
        (Some(shown), Some(now)) => shown.duration_since(now).abs() < SignedDuration::from_secs(1),
        (shown, now) => shown == now,
    };
    near && shown.mode == now.mode && shown.openings == now.openings
}
