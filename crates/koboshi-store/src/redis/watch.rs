//! Sees what other nodes change, by subscribing to their announcements.
//!
//! A thread listens on a connection of its own and notes which slots were announced; the ledger's thread fetches them.
//! Announcements are hints, not the truth: after every new subscription, after a failed read, and at a long interval for
//! safety, everything is read once more. A silent server is pinged, so that a dead one is noticed. A server that was
//! emptied (`FLUSHALL`) announces nothing and keeps its connections: the mark that is left on it is gone then.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use koboshi::time::Moment;
use redis::{RedisResult, Script};

use crate::error::StoreError;
use crate::store::{StoreChanges, Wake, Watch};

use super::RedisAccess;
use super::records::{load, load_some};
use super::time;

/// If more slots than this were announced, everything is read instead.
const MAX_SLOTS: usize = 10_000;
/// The first pause before the next try to subscribe, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

const DOING: &str = "listen for changes";

#[derive(Default)]
struct Inbox {
    /// The server confirmed the subscription, and it is still active.
    subscribed: bool,
    trouble: Option<StoreError>,
    slots: BTreeSet<String>,
    all: bool,
    closed: bool,
}

#[derive(Default)]
struct Subscription {
    inbox: Mutex<Inbox>,
    changed: Condvar,
}

impl Subscription {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct RedisWatch {
    shared: Arc<RedisAccess>,
    subscription: Arc<Subscription>,
    next_resync: Moment,
    make_mark: Script,
    /// The mark on the server at the last read.
    mark: Option<String>,
}

impl RedisWatch {
    /// Subscribes, and waits until that is done or has failed.
    pub(super) fn start(shared: Arc<RedisAccess>, wake: Wake) -> Result<Self, StoreError> {
        let subscription = Arc::new(Subscription::default());
        let listener =
            Listener { shared: Arc::clone(&shared), subscription: Arc::clone(&subscription), wake };
        let started =
            std::thread::Builder::new().name("koboshi-redis".to_owned()).spawn(|| listener.listen());
        started.map_err(|error| StoreError::Failed {
            place: shared.handle.place().to_owned(),
            doing: "start a thread",
            why: error.to_string(),
        })?;
        let make_mark = Script::new(include_str!("lua/mark.lua"));
        let watch = Self { shared, subscription, next_resync: Moment::START, make_mark, mark: None };
        let waiting = |inbox: &mut Inbox| !inbox.subscribed && inbox.trouble.is_none();
        let inbox = watch.subscription.changed.wait_while(watch.subscription.inbox(), waiting);
        let trouble = inbox.unwrap_or_else(PoisonError::into_inner).trouble.take();
        match trouble {
            Some(trouble) => Err(trouble),
            None => Ok(watch),
        }
    }

    fn poll(&mut self, now: Moment) -> Result<StoreChanges, StoreError> {
        // Without a subscription the server is away: it is not asked, and the caller does not wait for it.
        self.check_subscription()?;
        // Before anything is read: what is emptied after this is noticed by the next read.
        let was_emptied = self.was_emptied()?;
        let announced = self.announced(now);
        let (handle, names) = (&self.shared.handle, &self.shared.names);
        match announced.filter(|_| !was_emptied) {
            None => {
                // A clock may have been set since the connection was made.
                drop(handle.run("ask for the time", time::follow));
                load(handle, names).map(StoreChanges::All)
            }
            Some(slots) if slots.is_empty() => Ok(StoreChanges::Quiet),
            Some(slots) => load_some(handle, names, &slots).map(StoreChanges::Changed),
        }
    }

    /// Whether the server was emptied since the last read. It gets a mark, so that the next read can find out again.
    fn was_emptied(&mut self) -> Result<bool, StoreError> {
        let (handle, names) = (&self.shared.handle, &self.shared.names);
        let mut mark: Option<String> = handle
            .run("look for changes", |connection| redis::cmd("GET").arg(&names.mark).query(connection))?;
        if mark.is_none() {
            let make = self.make_mark.key(&names.mark);
            // One that cannot be written now can still be read.
            mark = handle.run("look for changes", |connection| make.invoke(connection)).ok();
        }
        let other = self.mark.is_some() && mark != self.mark;
        self.mark = mark;
        Ok(other)
    }

    fn check_subscription(&self) -> Result<(), StoreError> {
        let inbox = self.subscription.inbox();
        if inbox.subscribed {
            return Ok(());
        }
        let place = self.shared.handle.place().to_owned();
        let why = "the connection was lost".to_owned();
        Err(inbox.trouble.clone().unwrap_or(StoreError::Away { place, doing: DOING, why }))
    }

    /// What was announced since the last read: everything, or some slots.
    fn announced(&self, now: Moment) -> Option<Vec<String>> {
        let mut inbox = self.subscription.inbox();
        let slots = mem::take(&mut inbox.slots);
        let all = mem::take(&mut inbox.all) || now >= self.next_resync;
        (!all).then(|| slots.into_iter().collect())
    }
}

impl Watch for RedisWatch {
    fn changes(&mut self, now: Moment) -> Result<StoreChanges, StoreError> {
        let changes = self.poll(now);
        match &changes {
            Ok(StoreChanges::All(_)) => {
                self.next_resync = now.after(self.shared.policy.resync_every);
            }
            Ok(_) => {}
            // What was announced is no longer noted: read everything next time.
            Err(_) => self.subscription.inbox().all = true,
        }
        changes
    }
}

impl Drop for RedisWatch {
    fn drop(&mut self) {
        // The listener sees it in its next round; this call does not wait for that.
        self.subscription.inbox().closed = true;
        self.subscription.changed.notify_all();
    }
}

struct Listener {
    shared: Arc<RedisAccess>,
    subscription: Arc<Subscription>,
    wake: Wake,
}

impl Listener {
    /// Subscribes again and again until the watch is closed.
    fn listen(self) {
        let mut pause = PAUSE.0;
        while !self.subscription.inbox().closed {
            let heard = self.subscription();
            let mut inbox = self.subscription.inbox();
            if mem::replace(&mut inbox.subscribed, false) {
                pause = PAUSE.0;
            }
            inbox.trouble = heard.err().map(|error| self.shared.handle.trouble(&error, DOING));
            self.subscription.changed.notify_all();
            let waiting = |inbox: &mut Inbox| !inbox.closed;
            drop(self.subscription.changed.wait_timeout_while(inbox, pause, waiting));
            (self.wake)();
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// One subscription, until it breaks or the watch is closed.
    fn subscription(&self) -> RedisResult<()> {
        let mut connection = self.shared.handle.connect()?;
        let mut channel = connection.as_pubsub();
        channel.subscribe(&self.shared.names.channel)?;
        {
            let mut inbox = self.subscription.inbox();
            // What changed before this moment was not announced to us.
            inbox.all = true;
            inbox.subscribed = true;
            inbox.trouble = None;
            self.subscription.changed.notify_all();
        }
        (self.wake)();
        loop {
            match channel.get_message() {
                Ok(message) => self.note(String::from_utf8_lossy(message.get_payload_bytes()).into_owned()),
                // Silence: is it still there?
                Err(error) if error.is_timeout() => drop(channel.ping::<redis::Value>()?),
                Err(error) => return Err(error),
            }
            if self.subscription.inbox().closed {
                return Ok(());
            }
        }
    }

    fn note(&self, slot: String) {
        let mut inbox = self.subscription.inbox();
        if inbox.slots.len() >= MAX_SLOTS {
            inbox.slots.clear();
            inbox.all = true;
        }
        inbox.slots.insert(slot);
        drop(inbox);
        (self.wake)();
    }
}
