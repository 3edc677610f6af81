//! The sessions that this process has in memory: those with a connection here, and those whose turn runs here.
//!
//! A session is a log under a lock, a number that changes with it, and the way to the task that owns it. Connections on any core read the
//! log; only the owner changes it. When the last connection and the owner are gone, nothing of the session is left here but what the store has.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::session::{ClientFrame, Log};
use koboshi_config::sessions::SessionKeep;
use koboshi_report::phrase::Lang;
use koboshi_store::{MemoryStore, Retention, Store};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::shared::stored_part::{RestoredSession, StoredPart};
use crate::shared::worker::{Bounds, Worker};

/// Writes and reads of sessions that may wait for the store.
const SESSION_CALLS: Bounds = Bounds { max_calls: 1024, max_bytes: 16 << 20, max_asks: 20_000 };

/// All sessions of this process.
pub(crate) struct Sessions {
    live: Mutex<HashMap<String, Weak<LiveSession>>>,
    /// The way to the store.
    pub(crate) calls: Worker,
    /// Where sessions are kept that may not be stored.
    memory: Arc<MemoryStore>,
    /// The name by which this process owns sessions.
    pub(crate) process: String,
    numbers: AtomicU64,
    /// Tasks of this process that own a session.
    owners: Arc<AtomicUsize>,
}

/// A task that owns a session, counted while it does.
pub(crate) struct OwnerCount(Arc<AtomicUsize>);

impl Drop for OwnerCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection or another process wants of a session's owner.
pub(crate) struct Command {
    /// The tab.
    pub(crate) client: String,
    pub(crate) lang: Lang,
    /// It can take text back.
    pub(crate) can_rewind: bool,
    /// The key of the one who asks, where keys are needed.
    pub(crate) key: Option<String>,
    pub(crate) order: Order,
    pub(crate) reply: ReplyTo,
    /// What it takes of the room for orders; given back when it was obeyed or handed on.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// Bytes of orders that may wait for the owner of a session. While a store is away each of them takes its patience.
const MAX_WAITING: usize = 8 * 1024 * 1024;

impl Command {
    /// It has no owner: the last one was lost, or the store has lost something.
    pub(crate) fn recover() -> Self {
        Self {
            client: String::new(),
            lang: Lang::En,
            can_rewind: true,
            key: None,
            order: Order::Recover,
            reply: ReplyTo::Nowhere,
            room: None,
        }
    }
}

/// What is wanted.
pub(crate) enum Order {
    Frame(ClientFrame),
    /// These tabs are connected to the process that says so.
    Present(Vec<String>),
    /// The last owner was lost.
    Recover,
}

/// Where an answer goes that only the sender gets.
pub(crate) enum ReplyTo {
    /// A connection of this process.
    Here(mpsc::UnboundedSender<Value>),
    /// A connection of another one.
    Elsewhere(String),
    Nowhere,
}

/// A session in memory.
pub(crate) struct LiveSession {
    pub(crate) id: String,
    pub(crate) tenant: String,
    log: Mutex<Log>,
    changed: watch::Sender<u64>,
    /// The task that owns it, where one of this process does.
    pub(crate) owner: Mutex<Option<mpsc::UnboundedSender<Command>>>,
    readers: Mutex<Vec<Reader>>,
    /// For orders that wait.
    room: Arc<Semaphore>,
    /// The process that owned it when the store was read last.
    holder: Mutex<Option<String>>,
    /// The last report to the holder about the tabs here.
    told: Mutex<Option<TabReport>>,
    /// Orders of clients here that were handed to another process, and to which.
    forwarded: Mutex<VecDeque<ForwardedOrder>>,
    /// What the store has of it.
    pub(crate) stored: StoredPart,
    /// The memory has more than the store.
    pub(crate) is_ahead: AtomicBool,
    /// It was deleted.
    pub(crate) is_deleted: AtomicBool,
    /// Where it is kept if it is for one connection of a client that knows no sessions: no client comes back to it, so nothing of it is left when that
    /// connection and its turn are over.
    own_store: Option<Arc<dyn Store>>,
}

/// Which tabs of a turn's session are here, as this process reported it to another one.
struct TabReport {
    holder: String,
    turn: u64,
    clients: Vec<String>,
    at: Instant,
}

/// How often the owner of a session gets a report of the tabs here.
const TELL_AGAIN: Duration = Duration::from_secs(2);

struct ForwardedOrder {
    to: String,
    at: Instant,
    command: Command,
}

/// How long an order is kept that was handed to another process.
const KEEP_FORWARDED: Duration = Duration::from_secs(30);
/// The maximum of one session.
const MAX_FORWARDED: usize = 64;

struct Reader {
    number: u64,
    client: String,
    /// Answers for this connection alone, and the word that another connection took its place.
    sender: mpsc::UnboundedSender<Value>,
    superseded: watch::Sender<bool>,
}

/// A connection's place at a session; given back on drop.
pub(crate) struct Seat {
    live: Arc<LiveSession>,
    number: u64,
    /// Another connection of the same tab took its place.
    pub(crate) superseded: watch::Receiver<bool>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.live.readers).retain(|reader| reader.number != self.number);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(crate) fn new(process: String) -> Self {
        Self {
            live: Mutex::default(),
            calls: Worker::new("koboshi-sessions", SESSION_CALLS),
            memory: Arc::default(),
            process,
            numbers: AtomicU64::new(0),
            owners: Arc::default(),
        }
    }

    /// Where sessions are kept.
    pub(crate) fn store(&self, keep: SessionKeep, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        match keep {
            SessionKeep::Memory => Arc::clone(&self.memory) as Arc<dyn Store>,
            _ => Arc::clone(store),
        }
    }

    /// The session with this id, if it is in memory.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveSession>> {
        lock(&self.live).get(id).and_then(Weak::upgrade)
    }

    /// Puts a session into memory; the one that is there wins.
    pub(crate) fn put(&self, id: &str, restored: RestoredSession) -> Arc<LiveSession> {
        self.put_with(id, restored, None)
    }

    /// Puts a session into memory that is for one connection of a client that knows no sessions.
    pub(crate) fn put_plain(&self, id: &str, restored: RestoredSession) -> Arc<LiveSession> {
        self.put_with(id, restored, Some(Arc::new(MemoryStore::default())))
    }

    fn put_with(
        &self,
        id: &str,
        restored: RestoredSession,
        own_store: Option<Arc<dyn Store>>,
    ) -> Arc<LiveSession> {
        let RestoredSession { tenant, log, whole } = restored;
        let mut live = lock(&self.live);
        if let Some(known) = live.get(id).and_then(Weak::upgrade) {
            return known;
        }
        // Those that are gone leave their names behind.
        if live.len() > 64 && live.len().is_power_of_two() {
            live.retain(|_, known| known.strong_count() > 0);
        }
        let session = Arc::new(LiveSession {
            id: id.to_owned(),
            tenant,
            log: Mutex::new(log),
            changed: watch::Sender::new(0),
            owner: Mutex::default(),
            readers: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_WAITING)),
            holder: Mutex::default(),
            told: Mutex::default(),
            forwarded: Mutex::default(),
            stored: StoredPart::new(whole),
            is_ahead: AtomicBool::new(false),
            is_deleted: AtomicBool::new(false),
            own_store,
        });
        live.insert(id.to_owned(), Arc::downgrade(&session));
        session
    }

    /// Whether any is in memory.
    pub(crate) fn are_any(&self) -> bool {
        lock(&self.live).values().any(|known| known.strong_count() > 0)
    }

    /// Forgets what is kept in this process alone and was not used for too long.
    pub(crate) fn prune_memory(&self, now: Timestamp) {
        let memory = Arc::clone(&self.memory);
        self.calls.push(0, move || drop(memory.prune(&Retention::default(), now)));
    }

    /// All that are in memory.
    pub(crate) fn all(&self) -> Vec<Arc<LiveSession>> {
        let mut live = lock(&self.live);
        live.retain(|_, known| known.strong_count() > 0);
        live.values().filter_map(Weak::upgrade).collect()
    }

    /// Counts a task that owns a session.
    pub(crate) fn count_owner(&self) -> OwnerCount {
        self.owners.fetch_add(1, Ordering::Relaxed);
        OwnerCount(Arc::clone(&self.owners))
    }

    /// Whether a task of this process owns a session.
    pub(crate) fn are_owned(&self) -> bool {
        self.owners.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl LiveSession {
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// The log is another one now, or has more.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log());
        self.changed.send_modify(|version| *version += 1);
    }

    /// How many connections of this process read it.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.readers).len()
    }

    /// It was deleted: its tabs are let go.
    pub(crate) fn be_forgotten(&self) {
        self.is_deleted.store(true, Ordering::Relaxed);
        self.change(|_| {});
    }

    /// It is for one connection of a client that knows no sessions.
    pub(crate) fn is_plain(&self) -> bool {
        self.own_store.is_some()
    }

    /// Its own store, where it is kept in none that others see.
    pub(crate) fn own_store(&self) -> Option<Arc<dyn Store>> {
        self.own_store.clone()
    }

    /// Says when the log changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// A place for a connection; none where the maximum is reached. An older connection of the same tab loses its place.
    pub(crate) fn sit(
        self: &Arc<Self>,
        number: u64,
        client: &str,
        max: usize,
        sender: mpsc::UnboundedSender<Value>,
    ) -> Option<Seat> {
        let mut readers = lock(&self.readers);
        readers.retain(|reader| {
            let stays = reader.client != client;
            if !stays {
                reader.superseded.send_replace(true);
            }
            stays
        });
        if readers.len() >= max {
            return None;
        }
        let (superseded, seen) = watch::channel(false);
        readers.push(Reader { number, client: client.to_owned(), sender, superseded });
        Some(Seat { live: Arc::clone(self), number, superseded: seen })
    }

    pub(crate) fn has_reader(&self, client: &str) -> bool {
        lock(&self.readers).iter().any(|reader| reader.client == client)
    }

    pub(crate) fn has_readers(&self) -> bool {
        !lock(&self.readers).is_empty()
    }

    /// The store says that this process owns it, or none.
    pub(crate) fn held_by(&self, process: Option<String>) {
        *lock(&self.holder) = process;
    }

    /// The process that answers its turn, and the tabs here that it must know of: they keep its turn and their claims alive. None where it knows.
    pub(crate) fn presence(&self) -> Option<(String, Vec<String>)> {
        let holder = lock(&self.holder).clone()?;
        let turn = self.log().transcript().open.as_ref().map(|open| open.turn)?;
        let clients: Vec<String> = lock(&self.readers).iter().map(|reader| reader.client.clone()).collect();
        let mut told = lock(&self.told);
        let known = told.as_ref().filter(|told| told.holder == holder && told.turn == turn);
        let is_known = match known {
            Some(told) => told.clients == clients && (clients.is_empty() || told.at.elapsed() < TELL_AGAIN),
            None => clients.is_empty(),
        };
        if is_known {
            return None;
        }
        *told =
            Some(TabReport { holder: holder.clone(), turn, clients: clients.clone(), at: Instant::now() });
        Some((holder, clients))
    }

    /// Sends a frame to one tab.
    pub(crate) fn tell(&self, client: &str, frame: Value) {
        if let Some(reader) = lock(&self.readers).iter().find(|reader| reader.client == client) {
            let _ = reader.sender.send(frame);
        }
    }

    /// Room for an order of this size in bytes, as soon as there is some.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(MAX_WAITING)).unwrap_or(0);
        Arc::clone(&self.room).acquire_many_owned(bytes).await.ok()
    }

    /// Keeps an order that was handed to another process.
    pub(crate) fn keep_forwarded(&self, to: &str, mut command: Command) {
        command.room = None;
        let mut forwarded = lock(&self.forwarded);
        forwarded.push_back(ForwardedOrder { to: to.to_owned(), at: Instant::now(), command });
        while forwarded.len() > MAX_FORWARDED {
            forwarded.pop_front();
        }
    }

    pub(crate) fn has_forwarded(&self) -> bool {
        !lock(&self.forwarded).is_empty()
    }

    /// Takes the orders out that were handed to another process than this owner. Old ones are forgotten: their owner has acted on them.
    pub(crate) fn take_forwarded(&self, owner: Option<&str>) -> Vec<Command> {
        let mut forwarded = lock(&self.forwarded);
        let all = std::mem::take(&mut *forwarded).into_iter();
        let (stay, again): (VecDeque<_>, Vec<_>) = all.filter(|one| one.at.elapsed() < KEEP_FORWARDED).fold(
            (VecDeque::new(), Vec::new()),
            |(mut stay, mut again), one| {
                if Some(one.to.as_str()) == owner {
                    stay.push_back(one);
                } else {
                    again.push(one.command);
                }
                (stay, again)
            },
        );
        *forwarded = stay;
        again
    }

    /// Whether a task of this process owns it.
    pub(crate) fn is_owned(&self) -> bool {
        lock(&self.owner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_store::{SessionWrite, Sessions as _};

    #[test]
    fn what_is_kept_in_memory_alone_is_forgotten_when_its_time_is_over() {
        let (sessions, now) = (Sessions::new("p".to_owned()), Timestamp::UNIX_EPOCH);
        let ttl = Duration::from_secs(60);
        let write = SessionWrite { ttl, ..SessionWrite::default() };
        sessions.memory.create("s", "p", &write, now).unwrap();
        sessions.memory.note_put("resume:s", b"x", ttl, now).unwrap();
        let later = now.saturating_add(ttl * 2).unwrap();
        let has_forgotten = sessions.memory.prune(&Retention::default(), now).unwrap();
        assert_eq!(has_forgotten, 0, "not yet");
        sessions.prune_memory(later);
        sessions.calls.finish(Duration::from_secs(60));
        assert_eq!(sessions.memory.prune(&Retention::default(), later).unwrap(), 0, "nothing is left");
    }
}
