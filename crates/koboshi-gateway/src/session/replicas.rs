//! Several processes, one log: what others write comes in, orders go to the owner, and lost owners are replaced.
//!
//! One task per process looks at the store: which sessions that are read here have changed, and what is in the inbox. A store that announces
//! such things wakes it; one that does not is asked every few milliseconds while there is a session in memory. Once a second it looks for sessions whose owner is lost.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use koboshi::session::{ClientFrame, Entry};
use koboshi_report::phrase::Lang;
use koboshi_store::{KnownPart, Listening, News, StoredSession};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::storage::LEASE;
use super::{owner, storage};
use crate::shared::core_state::CoreState;
use crate::shared::sessions::{Command, LiveSession, Order, ReplyTo};
use crate::shared::state::SharedState;

/// How often the store is looked at that announces what happens in it: announcements may be lost.
const LOOK: Duration = Duration::from_millis(100);
/// How often one is asked that announces nothing: a file, whose answer is a read of shared memory.
const ASK: Duration = Duration::from_millis(20);
/// The pause between two looks, however much is announced.
const BREATH: Duration = Duration::from_millis(5);
/// How often what is kept in this process alone is looked through for sessions whose time is over.
const PRUNE: Duration = Duration::from_secs(60);
/// How often lost owners are looked for.
const SCAN: Duration = Duration::from_secs(1);
/// How often the worker checks whether an owner elsewhere needs a report of tabs that came or went.
const TELL: Duration = Duration::from_millis(500);
/// A session is taken over so soon after its owner was lost: the lease, the look for lost ones, and the store's patience for it.
const _: () = assert!(LEASE.as_millis() + SCAN.as_millis() + LOOK.as_millis() < 12_000);
/// Sessions that are taken over at a time.
const MAX_AT_ONCE: usize = 32;

/// What one process sends to another.
#[derive(Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Letter {
    /// An order of a client, for the owner.
    Order {
        session: String,
        client: String,
        lang: String,
        can_rewind: bool,
        #[serde(default)]
        key: Option<String>,
        from: String,
        frame: Box<ClientFrame>,
    },
    /// The clients that this process has of a session.
    Presence { session: String, from: String, clients: Vec<String> },
    /// An answer for one client.
    Reply { session: String, client: String, frame: Value },
}

fn post(state: &SharedState, to: &str, letter: &Letter) {
    let (Ok(bytes), to, wall) = (serde_json::to_vec(letter), to.to_owned(), state.wall()) else { return };
    let store = storage::store(state);
    // A letter that is lost is sent again by its client: orders have ids.
    state.sessions.calls.push(bytes.len(), move || drop(store.sessions().send(&to, &bytes, wall)));
}

/// What the owner of a session says to the processes that have readers of it, without waiting for the store.
#[derive(Serialize, Deserialize)]
struct ShownEntries {
    session: String,
    epoch: String,
    entries: Vec<Entry>,
}

/// Says what was shown here to processes that have readers of it. What comes while the way is taken goes with the next message.
pub(crate) fn tell(state: &SharedState, live: &Arc<LiveSession>, processes: Vec<String>, entries: &[Entry]) {
    if !live.stored.keep_untold(entries) {
        return;
    }
    let (store, told) = (storage::store(state), Arc::clone(live));
    let is_on_its_way = state.sessions.calls.push(0, move || {
        let entries = told.stored.take_untold();
        let epoch = told.log().epoch().to_owned();
        let Ok(message) = serde_json::to_vec(&ShownEntries { session: told.id.clone(), epoch, entries })
        else {
            return;
        };
        for process in processes {
            // What is lost comes from the store soon.
            let _ = store.sessions().tell(&process, &message);
        }
    });
    if !is_on_its_way {
        live.stored.take_untold();
    }
}

/// What another process says about one of its sessions.
fn hear(state: &SharedState, message: &[u8]) {
    let Ok(ShownEntries { session, epoch, entries }) = serde_json::from_slice(message) else { return };
    if let Some(live) = state.sessions.get(&session) {
        let limits = storage::limits(&state.plan().config.sessions);
        storage::hear(&live, &epoch, entries, message.len(), &limits);
    }
}

/// Hands an order to the process that owns the session. It is kept until that process has had the time to act on it: where it is lost before,
/// the next owner gets the order. Orders are executed once, however often they come.
pub(crate) fn forward(state: &SharedState, live: &LiveSession, process: &str, command: Command) {
    let (session, client, from) = (live.id.clone(), command.client.clone(), state.sessions.process.clone());
    let letter = match &command.order {
        Order::Frame(frame) => Letter::Order {
            session,
            client,
            lang: command.lang.name().to_owned(),
            can_rewind: command.can_rewind,
            key: command.key.clone(),
            from,
            frame: Box::new(frame.clone()),
        },
        Order::Present(_) | Order::Recover => return,
    };
    post(state, process, &letter);
    live.keep_forwarded(process, command);
}

/// Orders that were handed to a process which owns the session no more are given again.
async fn forward_again(core: &Rc<CoreState>, live: &Arc<LiveSession>) {
    let (session, (epoch, seq), wall) = (live.id.clone(), live.known(), core.state.wall());
    let stored = storage::ask(&core.state, move |store| {
        store.sessions().read(&session, KnownPart { epoch: &epoch, seq }, wall)
    })
    .await;
    let Some(stored) = stored else { return };
    let owner = stored.filter(|stored| stored.is_held).and_then(|stored| stored.owner);
    for command in live.take_forwarded(owner.as_deref()) {
        owner::order(core, live, command);
    }
}

/// Sends an answer to a client of another process.
pub(crate) fn send_back(state: &SharedState, live: &LiveSession, process: &str, client: &str, frame: Value) {
    post(state, process, &Letter::Reply { session: live.id.clone(), client: client.to_owned(), frame });
}

/// Looks after the sessions of this process, until it ends.
pub(crate) async fn run(core: Rc<CoreState>) {
    let state = &core.state;
    let (mut mark, mut scanned, mut told, mut pruned) =
        (None, Instant::now(), Instant::now(), Instant::now());
    let mut watch = StoreWatch::default();
    loop {
        watch.wait().await;
        if scanned.elapsed() >= SCAN {
            scanned = Instant::now();
            take_over(&core).await;
            for live in state.sessions.all().iter().filter(|live| live.has_forwarded()) {
                forward_again(&core, live).await;
            }
        }
        if !state.sessions.are_any() {
            mark = None;
            continue;
        }
        watch.listen(state);
        if pruned.elapsed() >= PRUNE {
            pruned = Instant::now();
            state.sessions.prune_memory(state.wall());
        }
        read_letters(&core).await;
        if told.elapsed() >= TELL {
            told = Instant::now();
            tell_presence(state, &state.sessions.all());
        }
        let (since, wall) = (mark, state.wall());
        let changed = storage::ask(state, move |store| store.sessions().changed(since, wall)).await;
        let Some((now, changed)) = changed else { continue };
        mark = Some(now);
        // Without a mark before, anything may have changed since these sessions were read.
        let due = match since {
            None => state.sessions.all(),
            Some(_) => changed.iter().filter_map(|id| state.sessions.get(id)).collect(),
        };
        for session in due.iter().filter(|live| !live.is_owned() && !live.is_plain()) {
            storage::refresh(state, session).await;
        }
        // Whose owner was found just now gets to know of the readers here: from then on it tells them what it shows.
        tell_presence(state, &due);
    }
}

/// When to look at the store: as soon as it announces something that matters here, else from time to time.
#[derive(Default)]
struct StoreWatch {
    announced: Arc<Notify>,
    listening: Option<Box<dyn Listening>>,
    /// There is something to look for; not yet where no session is in memory.
    is_needed: bool,
}

impl StoreWatch {
    /// Begins to listen, once.
    fn listen(&mut self, state: &Arc<SharedState>) {
        if std::mem::replace(&mut self.is_needed, true) {
            return;
        }
        let (announced, here) = (Arc::clone(&self.announced), Arc::downgrade(state));
        let handler = move |news: News<'_>| {
            let Some(state) = here.upgrade() else { return };
            match news {
                News::Told(message) => hear(&state, message),
                News::Begun => announced.notify_one(),
                News::Written(name) if matters(&state, name) => announced.notify_one(),
                News::Written(_) => {}
            }
        };
        let process = &state.sessions.process;
        self.listening = storage::store(state).sessions().listen(process, Arc::new(handler)).ok().flatten();
    }

    async fn wait(&self) {
        sleep(BREATH).await;
        let look = if self.is_needed && self.listening.is_none() { ASK } else { LOOK };
        let _ = timeout(look.saturating_sub(BREATH), self.announced.notified()).await;
    }
}

/// Whether something is to be done here about a session or an inbox that was written.
fn matters(state: &SharedState, name: &str) -> bool {
    let is_read_here = |id| state.sessions.get(id).is_some_and(|live| !live.is_owned());
    name == state.sessions.process || is_read_here(name)
}

/// Tells owners elsewhere which tabs of their sessions are here.
fn tell_presence(state: &SharedState, live: &[Arc<LiveSession>]) {
    for session in live.iter().filter(|live| !live.is_owned()) {
        if let Some((holder, clients)) = session.presence() {
            let from = state.sessions.process.clone();
            post(state, &holder, &Letter::Presence { session: session.id.clone(), from, clients });
        }
    }
}

async fn read_letters(core: &Rc<CoreState>) {
    let state = &core.state;
    let (inbox, wall) = (state.sessions.process.clone(), state.wall());
    let letters = storage::ask(state, move |store| store.sessions().receive(&inbox, wall)).await;
    for letter in letters.unwrap_or_default() {
        match serde_json::from_slice(&letter) {
            Ok(Letter::Reply { session, client, frame }) => {
                if let Some(live) = state.sessions.get(&session) {
                    live.tell(&client, frame);
                }
            }
            Ok(Letter::Order { session, client, lang, can_rewind, key, from, frame }) => {
                let lang = Lang::from_tag(&lang).unwrap_or(Lang::En);
                let (order, reply) = (Order::Frame(*frame), ReplyTo::Elsewhere(from));
                give(core, &session, Command { client, lang, can_rewind, key, order, reply, room: None })
                    .await;
            }
            // Who owns it no more needs not know.
            Ok(Letter::Presence { session, from, clients }) => {
                if let Some(live) = state.sessions.get(&session) {
                    let (order, reply) = (Order::Present(clients), ReplyTo::Elsewhere(from));
                    let command = Command { order, reply, ..Command::recover() };
                    owner::order(core, &live, command);
                }
            }
            Err(_) => {}
        }
    }
}

async fn give(core: &Rc<CoreState>, session: &str, command: Command) {
    let known = core.state.sessions.get(session);
    let live = match known {
        Some(live) => live,
        None => match load(core, session).await {
            Some(live) => live,
            None => return,
        },
    };
    owner::order(core, &live, command);
}

/// Brings a stored session into memory.
async fn load(core: &CoreState, id: &str) -> Option<Arc<LiveSession>> {
    let state = &core.state;
    let (session, wall) = (id.to_owned(), state.wall());
    let stored: StoredSession =
        storage::ask(state, move |store| store.sessions().read(&session, KnownPart::NOTHING, wall))
            .await
            .flatten()?;
    let restored = storage::restore(&stored, &storage::limits(&state.plan().config.sessions))?;
    Some(state.sessions.put(id, restored))
}

/// Takes sessions over whose owner is lost.
async fn take_over(core: &Rc<CoreState>) {
    let state = &core.state;
    if core.connections.are_stopping() {
        return;
    }
    let wall = state.wall();
    let lost = storage::ask(state, move |store| store.sessions().orphans(MAX_AT_ONCE, wall)).await;
    for id in lost.unwrap_or_default() {
        let Some(live) = load(core, &id).await else { continue };
        owner::order(core, &live, Command::recover());
    }
}
