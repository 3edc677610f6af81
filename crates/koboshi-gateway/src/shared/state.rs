//! What all cores share: the plan, what was learned, and what tells of it.
//!
//! Everything here can be read by every core at any time without waiting: the plan is swapped whole, breakers and gates are the
//! core's lock-free ones, and the ledger's working copy is memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};
use koboshi::args::Schemas;
use koboshi::breaker::{Breaker, BreakerSnapshot, Forced, Mode, Transition};
use koboshi::budget::RetryShare;
use koboshi::chance::Seed;
use koboshi::gate::Gate;
use koboshi::key::ScopeKey;
use koboshi::time::Moment;
use koboshi_report::phrase::Phrases;
use koboshi_store::{Clock, Entry, EntryKind, Health, Ledger, Store, SystemClock};
use serde_json::json;

use crate::http::memory::{MemoryBudget, default_limit};
use crate::observe::feed::Feed;
use crate::observe::log::Level;
use crate::observe::meters::Meters;
use crate::observe::transition;
use crate::route::affinity::Affinity;
use crate::route::plan::Plan;
use crate::route::target::{Scopes, Target, seed_of};
use crate::shared::cache::Cache;
use crate::shared::context::RequestContext;
use crate::shared::targets::Targets;
use crate::shared::trace::{Sink, Trace};
use crate::shared::worker::{Bounds, Worker};
use koboshi_wire::http1::Fields;

/// Schemas of tools that are kept compiled.
const MOST_SCHEMAS: usize = 2000;

/// What may wait for the store's cache: more answers are not kept, more readers go without.
const CACHE_CALLS: Bounds = Bounds { max_calls: 256, max_bytes: 16 << 20, max_asks: 64 };
/// Operators who may wait for the store.
const ADMIN_CALLS: Bounds = Bounds { max_calls: 0, max_bytes: 0, max_asks: 64 };

/// What all cores share.
pub(crate) struct SharedState {
    plan: ArcSwap<Plan>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) phrases: Phrases,
    pub(crate) targets: Targets,
    pub(crate) affinity: Affinity,
    pub(crate) cache: Cache,
    /// The way to the cache in the store.
    pub(crate) cache_calls: Worker,
    /// The way to the store for operators.
    pub(crate) admin_calls: Worker,
    pub(crate) share: RetryShare,
    /// What the bodies of requests take, and what they may where the config does not say.
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) default_memory: u64,
    pub(crate) meters: Meters,
    pub(crate) schemas: Schemas,
    pub(crate) log: crate::observe::log::Log,
    pub(crate) feed: Feed,
    /// Where traces go, if anywhere.
    sink: ArcSwapOption<Sink>,
    pub(crate) zones: TimeZoneDatabase,
    zone: TimeZone,
    clock: SystemClock,
    chance: AtomicU64,
    turns: AtomicUsize,
    /// The log tells that the store fails.
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
    ) -> Self {
        let clock = SystemClock;
        Self {
            share: RetryShare::new(plan.config.retry_share, clock.moment()),
            memory: Arc::default(),
            default_memory: default_limit(),
            plan: ArcSwap::from_pointee(plan),
            ledger,
            store,
            phrases,
            targets: Targets::default(),
            affinity: Affinity::default(),
            cache: Cache::default(),
            cache_calls: Worker::new("koboshi-cache", CACHE_CALLS),
            admin_calls: Worker::new("koboshi-admin", ADMIN_CALLS),
            meters: Meters::new(),
            schemas: Schemas::new(MOST_SCHEMAS),
            log,
            feed: Feed::new(),
            sink: ArcSwapOption::empty(),
            zones,
            zone,
            clock,
            chance: AtomicU64::new(seed),
            turns: AtomicUsize::new(0),
            store_fails: AtomicBool::new(false),
        }
    }

    /// The plan that holds now.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.load_full()
    }

    /// A new plan for the requests that come from now on. Policies of breakers and gates are part of it, so targets begin anew
    /// where those changed.
    pub(crate) fn adopt(&self, plan: Plan) {
        let before = self.plan();
        let same = before.config.breaker == plan.config.breaker && before.config.gate == plan.config.gate;
        self.plan.store(Arc::new(plan));
        if !same {
            self.targets.clear();
        }
        self.know_fixed_targets();
    }

    /// Makes the targets that the config names, so that they have their metrics and are listed before anybody asks for them.
    pub(crate) fn know_fixed_targets(&self) {
        let plan = self.plan();
        for link in plan.fixed_links() {
            if let Some((provider, model)) = plan.link(link, "") {
                drop(self.targets.of(self, &plan, &provider, &model));
            }
        }
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

    /// The zone of whoever reads an answer: that of this machine for a client on it, else nobody knows.
    pub(crate) fn zone_of(&self, context: &RequestContext) -> TimeZone {
        if context.is_local { self.zone.clone() } else { TimeZone::UTC }
    }

    /// Fresh chance for one request.
    pub(crate) fn seed(&self) -> Seed {
        Seed::new(self.chance.fetch_add(1, Ordering::Relaxed)).nth(1)
    }

    /// Whose turn it is among equals.
    pub(crate) fn turn(&self) -> usize {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes something in the journal.
    pub(crate) fn note(
        &self,
        what: EntryKind,
        kind: &str,
        key: Option<&ScopeKey>,
        text: String,
        data: serde_json::Value,
    ) {
        let mut entry = Entry::new(self.wall(), self.ledger.node(), what, text);
        entry.kind = Some(kind.to_owned().into());
        entry.key = key.cloned();
        entry.data = Some(data);
        self.feed.publish(&entry);
        self.ledger.journal(entry);
    }

    /// Sends traces where the plan says from now on.
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

    /// The trace of a request that begins.
    pub(crate) fn trace(&self, headers: &Fields, context: &RequestContext, operation: &'static str) -> Trace {
        match &*self.sink.load() {
            Some(sink) => Trace::begin(sink, headers, context, operation),
            None => Trace::default(),
        }
    }

    /// Sends what waits and sends no more.
    pub(crate) fn end_traces(&self) {
        if let Some(sink) = self.sink.swap(None).and_then(Arc::into_inner) {
            sink.finish();
        }
    }

    /// A breaker for a new target, as it was before a restart.
    pub(crate) fn breaker(&self, plan: &Plan, name: &Arc<str>, scopes: &Scopes) -> Arc<Breaker> {
        let now = self.now();
        let policy = plan.config.breaker;
        // The config was checked; if it was not, the default policy serves.
        let breaker = Breaker::new(policy, seed_of(name), now)
            .unwrap_or_else(|_| Breaker::with_default_policy(seed_of(name), now));
        let watcher = self.watcher(Arc::clone(name), scopes.target.clone());
        let breaker = Arc::new(breaker.watched(watcher));
        if let Some(key) = &scopes.target {
            let own = self.ledger.breakers(key).into_iter().find(|(node, _)| node == self.ledger.node());
            if let Some((_, snapshot)) = own {
                breaker.restore(&snapshot, now, self.wall());
            }
        }
        breaker
    }

    fn watcher(&self, name: Arc<str>, key: Option<ScopeKey>) -> impl Fn(&Transition) + Send + Sync + 'static {
        let (ledger, feed) = (Arc::clone(&self.ledger), self.feed.clone());
        let clock = self.clock;
        move |change: &Transition| {
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
                // At once: whoever looks at the store must not find an open breaker closed.
                if let Some(key) = &key {
                    ledger.show_breaker(key, &change.snapshot(clock.moment(), clock.wall()));
                }
            });
        }
    }

    /// A gate for a new target, with what the provider stated to anybody.
    pub(crate) fn gate(&self, plan: &Plan, scopes: &Scopes) -> Arc<Gate> {
        let now = self.now();
        let gate = Arc::new(Gate::new(plan.config.gate, now));
        if let Some(holds) = scopes.limits.as_ref().and_then(|key| self.ledger.holds(key)) {
            gate.adopt(&holds, now, self.wall());
        }
        gate
    }

    /// All metrics as Prometheus reads them. The gauges of breakers are set here: an open breaker lets probes through after a while
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
        self.meters.text()
    }

    /// Says in the log when the store begins to fail and when it works again, once each.
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

    /// Closes a breaker that an operator resumed, here or wherever the store is shared, after it had opened or been forced open.
    pub(crate) fn obey_resume(&self, target: &Target, key: &ScopeKey) {
        let Some(resumed) = self.ledger.cooldown(key).and_then(|cooldown| cooldown.resumed_at()) else {
            return;
        };
        let (now, wall) = (self.now(), self.wall());
        let snapshot = target.breaker.snapshot(now, wall);
        let is_shut = matches!(snapshot.mode, Mode::Open | Mode::Probing | Mode::ForcedOpen);
        if is_shut && snapshot.since <= resumed {
            target.breaker.force(Forced::Disabled, now);
            target.breaker.release(now);
        }
    }

    /// Takes in what others learned, and shows others how the breakers stand. Called a few times a second.
    pub(crate) fn keep_in_step(&self) {
        self.log_store_health();
        let (now, wall) = (self.now(), self.wall());
        for target in self.targets.all() {
            if let Some(holds) = target.scopes.limits.as_ref().and_then(|key| self.ledger.holds(key)) {
                target.gate.adopt(&holds, now, wall);
            }
            let Some(key) = &target.scopes.target else { continue };
            self.obey_resume(&target, key);
            let snapshot = target.breaker.snapshot(now, wall);
            let shown = self.ledger.breakers(key).into_iter().find(|(node, _)| node == self.ledger.node());
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

/// Whether two snapshots of a breaker show the same. Their instants were read from two clocks, so they differ by a little.
fn is_same(shown: &BreakerSnapshot, now: &BreakerSnapshot) -> bool {
    let near = match (shown.until, now.until) {
        (Some(shown), Some(now)) => shown.duration_since(now).abs() < SignedDuration::from_secs(1),
        (shown, now) => shown == now,
    };
    near && shown.mode == now.mode && shown.openings == now.openings
}
