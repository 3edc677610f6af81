//! The ledger: the working copy that all callers read, and the thread that keeps it in step with a store.
//!
//! Callers read and change it in memory; none of these calls waits for a store. One background thread writes what changed,
//! merges what others changed and writes the journal. If the store is away, the ledger works on with what it knows, and
//! both sides merge when it is back. Records of keys that are not shared stay in the working copy.
//!
//! It deliberately does not decide: it hands records to the core's functions and keeps what they return.

mod claim;
mod copy;
mod health;
mod keeper;
mod outbox;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use koboshi::breaker::BreakerSnapshot;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;

use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention};
use crate::record::{Node, Slot};
use crate::store::Store;

use claim::Claims;
use copy::WorkingCopy;
use health::State;
use keeper::Keeper;
use outbox::Outbox;

pub use claim::ClaimState;
pub use health::Health;

/// How long a ledger waits for its store when it is dropped: longer than the connection timeout of a server that is away.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of a ledger.
#[derive(Debug, Clone)]
pub struct LedgerOptions {
    /// The name of this process. Two processes must not use one name at the same time.
    pub node: Node,
    /// How often the store is asked for changes by others.
    pub poll_interval: Duration,
    /// Entries of the journal that may wait to be written; more are dropped and counted.
    pub journal_room: usize,
    /// How long things are remembered.
    pub keep: Retention,
    /// How often old entries are pruned.
    pub prune_every: Duration,
}

impl LedgerOptions {
    /// The usual values: reads the store every 200 ms, 65,536 waiting entries, prunes every minute.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self {
            node,
            poll_interval: Duration::from_millis(200),
            journal_room: 65_536,
            keep: Retention::default(),
            prune_every: Duration::from_secs(60),
        }
    }
}

type Listener = Arc<dyn Fn(&Slot) + Send + Sync>;

/// What callers and keeper share.
struct LedgerState {
    store: Arc<dyn Store>,
    options: LedgerOptions,
    clock: Arc<dyn Clock>,
    copy: WorkingCopy,
    outbox: Outbox,
    claims: Claims,
    listeners: RwLock<Vec<Listener>>,
    state: Mutex<State>,
}

impl LedgerState {
    /// Whether this node may write a slot: facts belong to all nodes, a breaker to its own node.
    fn may_report(&self, slot: &Slot) -> bool {
        slot.node().is_none_or(|node| *node == self.options.node)
    }

    fn notify_listeners(&self, slot: &Slot) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            // A panic of a listener must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(slot)));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, slot: Slot) {
        if slot.is_shared() {
            self.outbox.changed(slot);
        }
    }
}

/// The working copy and its keeper.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use jiff::Timestamp;
/// use koboshi::gate::Limit;
/// use koboshi_store::{Ledger, LedgerOptions, MemoryStore};
///
/// let store = Arc::new(MemoryStore::default());
/// let here = Ledger::open(store.clone(), LedgerOptions::new("gateway-1".parse()?))?;
/// let there = Ledger::open(store, LedgerOptions::new("gateway-2".parse()?))?;
///
/// // One gateway learns that the account's quota is used up; the request continues at once.
/// let account = "account:main".parse()?;
/// here.update_holds(&account, |holds| holds.hold(Limit::Quota, Timestamp::MAX));
///
/// // In the background it reaches the store, and from there the other gateway.
/// let timeout = Duration::from_secs(10);
/// assert!(here.flush(timeout) && there.flush(timeout));
/// assert_eq!(there.holds(&account), here.holds(&account));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropping it writes what waits, as far as the store lets it within a few seconds, and ends the thread.
pub struct Ledger {
    shared: Arc<LedgerState>,
    /// None once a caller waited for its end.
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Ledger {
    /// Begins to keep a working copy of this store. Returns at once; see [`Ledger::wait_loaded`].
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn open(store: Arc<dyn Store>, options: LedgerOptions) -> Result<Self, StoreError> {
        Self::open_with(store, options, Arc::new(SystemClock))
    }

    /// The same, with a clock of one's own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn open_with(
        store: Arc<dyn Store>,
        options: LedgerOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let outbox = Outbox::new(options.journal_room);
        let shared = Arc::new(LedgerState {
            store,
            options,
            clock,
            copy: WorkingCopy::new(),
            outbox,
            claims: Claims::default(),
            listeners: RwLock::default(),
            state: Mutex::default(),
        });
        let keeper = Keeper::new(Arc::clone(&shared));
        let started = std::thread::Builder::new().name("koboshi-ledger".to_owned()).spawn(|| keeper.work());
        let keeper = started.map_err(|error| StoreError::Failed {
            place: shared.store.place().to_owned(),
            doing: "start the ledger's thread",
            why: error.to_string(),
        })?;
        Ok(Self { shared, keeper: Mutex::new(Some(keeper)) })
    }

    /// Waits until the store has been read, at most this long. Returns whether it was; if not, the ledger works on with
    /// what it knows.
    #[must_use]
    pub fn wait_loaded(&self, timeout: Duration) -> bool {
        self.shared.outbox.wait_loaded(timeout)
    }

    /// The name of this process.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.shared.options.node
    }

    // ===== what is known =====

    /// The cooldown of a key.
    #[must_use]
    pub fn cooldown(&self, key: &ScopeKey) -> Option<Arc<Cooldown>> {
        self.shared.copy.cooldown(key)
    }

    /// Whether any key has a cooldown: where none has, callers need not ask for that of a single key.
    #[must_use]
    pub fn has_cooldowns(&self) -> bool {
        self.shared.copy.has_cooldowns()
    }

    /// The holds of a key.
    #[must_use]
    pub fn holds(&self, key: &ScopeKey) -> Option<Arc<Holds>> {
        self.shared.copy.read(key, |known| known.holds.clone()).flatten()
    }

    /// The breakers that nodes have for a key; those of others are hints.
    #[must_use]
    pub fn breakers(&self, key: &ScopeKey) -> Vec<(Node, Arc<BreakerSnapshot>)> {
        self.shared.copy.read(key, |known| known.breakers.clone()).unwrap_or_default()
    }

    /// Every key of which something is known, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<ScopeKey> {
        self.shared.copy.keys()
    }

    // ===== what changes =====

    /// Changes the cooldown of a key, atomically for all callers; others learn of it in the background.
    /// The change must be short: it keeps other callers away from the key.
    pub fn update_cooldown<R>(&self, key: &ScopeKey, change: impl FnOnce(&mut Cooldown) -> R) -> R {
        let (result, changed) = self.shared.copy.write(key, |known| update(&mut known.cooldown, change));
        if changed {
            self.shared.changed(Slot::cooldown(key.clone()));
        }
        result
    }

    /// Changes the holds of a key, atomically for all callers; others learn of it in the background.
    /// The change must be short: it keeps other callers away from the key.
    pub fn update_holds<R>(&self, key: &ScopeKey, change: impl FnOnce(&mut Holds) -> R) -> R {
        let (result, changed) = self.shared.copy.write(key, |known| update(&mut known.holds, change));
        if changed {
            self.shared.changed(Slot::holds(key.clone()));
        }
        result
    }

    /// Publishes the state of this node's breaker for a key.
    pub fn show_breaker(&self, key: &ScopeKey, snapshot: &BreakerSnapshot) {
        let node = self.node();
        let taken = self.shared.copy.write(key, |known| known.take_in_breaker(node, snapshot));
        if taken.learned {
            self.shared.changed(Slot::breaker(key.clone(), node.clone()));
        }
    }

    /// Calls this for every slot that another node changed. It runs on the ledger's thread and must return at once.
    pub fn on_change(&self, listener: impl Fn(&Slot) + Send + Sync + 'static) {
        self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(listener));
    }

    /// Notes what happened. Never waits: a full queue drops the entry and counts it.
    pub fn journal(&self, entry: Entry) {
        self.shared.outbox.note(entry);
    }

    // ===== leases =====

    /// Claims a lease, to be the only one of the fleet to do this. See [`Ledger::held`].
    pub fn claim(&self, name: &str, ttl: Duration) {
        self.shared.claims.claim(name, ttl, self.shared.clock.moment());
        self.shared.outbox.wake_keeper();
    }

    /// Gives the claim up.
    pub fn give_up(&self, name: &str) {
        self.shared.claims.give_up(name, self.shared.clock.moment());
        self.shared.outbox.wake_keeper();
    }

    /// Wants a lease again that an earlier process took and did not give back: it is held once the store has confirmed this fence.
    pub fn resume_claim(&self, name: &str, fence: u64, ttl: Duration) {
        self.shared.claims.resume(name, fence, ttl, self.shared.clock.moment());
        self.shared.outbox.wake_keeper();
    }

    /// No longer looks after a lease, and does not give it back: it ends by itself, or another process resumes it.
    pub fn leave(&self, name: &str) {
        self.shared.claims.leave(name);
    }

    /// The fence of a claimed lease, while this node holds it.
    #[must_use]
    pub fn held(&self, name: &str) -> Option<u64> {
        self.held_for(name).map(|(fence, _)| fence)
    }

    /// The fence of a claimed lease, and for how long this node holds it if the store does not answer again.
    #[must_use]
    pub fn held_for(&self, name: &str) -> Option<(u64, Duration)> {
        let now = self.shared.clock.moment();
        self.shared.claims.held(name, now).map(|(fence, until)| (fence, until.since(now)))
    }

    /// What is known of a claimed lease; none where it is not claimed.
    #[must_use]
    pub fn claim_state(&self, name: &str) -> Option<ClaimState> {
        self.shared.claims.state(name, self.shared.clock.moment())
    }

    /// Whether the last exchange with the store went well.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.state().connected
    }

    /// The newest entries of the journal that match, from the store. Waits for it; not for request paths.
    ///
    /// # Errors
    /// The store cannot be read now.
    pub fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.shared.store.query(query)
    }

    // ===== the keeper =====

    /// Waits until every earlier change is in the store, at most this long. Returns whether it is. Not for request paths.
    #[must_use]
    pub fn flush(&self, timeout: Duration) -> bool {
        self.shared.outbox.flush(timeout)
    }

    /// The health of the ledger and its store.
    #[must_use]
    pub fn health(&self) -> Health {
        let shared = &self.shared;
        let (journal_waiting, journal_dropped) = shared.outbox.journal();
        let state = shared.state();
        let trouble = state.trouble_at(shared.clock.moment(), shared.store.place());
        Health {
            place: shared.store.place().to_owned(),
            connected: state.connected && trouble.is_none(),
            loaded: shared.outbox.is_loaded(),
            trouble,
            pending: shared.outbox.pending(),
            journal_waiting,
            journal_dropped,
            unreadable: state.unreadable,
        }
    }

    /// Writes what waits, as far as the store lets it within a few seconds, ends the thread, and returns the health.
    #[must_use]
    pub fn close(self) -> Health {
        self.finish(SHUTDOWN_TIMEOUT)
    }

    /// Writes what waits, as far as the store lets it within this time, and returns the health. The thread ends; one whose store hangs is left
    /// to itself and ends when the store answers. What changes after this is not written.
    pub fn finish(&self, timeout: Duration) -> Health {
        self.shared.outbox.close();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper
            && self.shared.outbox.wait_gone(timeout)
        {
            // The thread has nothing left to do, so this returns at once.
            drop(keeper.join());
        }
        self.health()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let _ = self.finish(SHUTDOWN_TIMEOUT);
    }
}

/// Changes a shared record; returns whether it changed.
fn update<T: Clone + Default + PartialEq, R>(
    place: &mut Option<Arc<T>>,
    change: impl FnOnce(&mut T) -> R,
) -> (R, bool) {
    let mut record = place.as_deref().cloned().unwrap_or_default();
    let result = change(&mut record);
    let changed = place.as_deref().map_or(record != T::default(), |known| *known != record);
    if changed {
        *place = Some(Arc::new(record));
    }
    (result, changed)
}
