//! What every store can do for sessions.
//!
//! A session in a store is its head (the whole state, as its owner wrote it last), the events after it, the number of the last event, its epoch, and its
//! owner. The head is large and is seldom written or read: a write adds events, and who reads says what it has already. One process owns a session while a turn runs: it holds a lease with a fence, and every append compares fence and number in
//! one step, so that an owner that was paused and replaced cannot write any more. Other processes read the same log and put what their
//! clients send into the owner's inbox.
//!
//! Stores that keep time themselves (Redis) go by their own clock; the others by the time that they are given.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::StoreError;

/// A session as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredSession {
    /// The number of the last event.
    pub seq: u64,
    /// The epoch of its head.
    pub epoch: String,
    /// The whole state, as of some number that it states itself; none where the events go on with what the caller has.
    pub head: Option<Vec<u8>>,
    /// The events after what the caller has, in order; with a head all that are kept.
    pub events: Vec<(u64, Vec<u8>)>,
    /// The process that owns it, where one does; its lease may be over.
    pub owner: Option<String>,
    /// The lease holds.
    pub is_held: bool,
    /// It was forgotten by order: there is nothing else of it, and it must not be made again from what a process still has.
    pub is_forgotten: bool,
}

/// What a caller has of a session already. It gets what comes after that, where that is possible: the epoch is the same, and the events reach
/// back so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPart<'k> {
    /// The epoch.
    pub epoch: &'k str,
    /// The number of the last event.
    pub seq: u64,
}

impl KnownPart<'_> {
    /// Nothing.
    pub const NOTHING: KnownPart<'static> = KnownPart { epoch: "", seq: 0 };

    /// Whether the caller has a part of this epoch.
    pub(crate) fn is_of(&self, epoch: &str) -> bool {
        !epoch.is_empty() && self.epoch == epoch
    }
}

/// The whole state of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionHead {
    /// The epoch that it is of.
    pub epoch: String,
    /// The state.
    pub body: Vec<u8>,
}

/// What came of taking a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is the caller's now. `was_lost` says that an owner had neither given it back nor handed it over.
    Owned {
        /// What every append must name.
        fence: u64,
        /// The session.
        session: StoredSession,
        /// Its last owner was lost.
        was_lost: bool,
        /// The server of the store was started again since the session was taken last, or another one is in its place: it may lack what was
        /// written last, and its numbers may have been used.
        was_restarted: bool,
    },
    /// Another process owns it.
    Held(String),
    /// There is no such session.
    Missing,
    /// It was forgotten by order.
    Forgotten,
}

/// What is written at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionWrite {
    /// The number that the store must have.
    pub after: u64,
    /// The number that it has then.
    pub seq: u64,
    /// The whole state, where it is written.
    pub head: Option<SessionHead>,
    /// New events.
    pub events: Vec<(u64, Vec<u8>)>,
    /// Events before this number are not needed any more.
    pub keep_from: u64,
    /// Whose the session is then.
    pub ownership: Ownership,
    /// It is waited for a moment until another machine has it too, where the store has one.
    pub is_confirmed: bool,
    /// How long the lease holds from now on.
    pub lease: Duration,
    /// How long the session is kept from now on.
    pub ttl: Duration,
}

/// What an owner does with a session when it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ownership {
    /// It goes on with it.
    #[default]
    Kept,
    /// It gives it back: nothing is left to do, and the next process that has an order takes it.
    GivenBack,
    /// It hands it over in the middle of its work: others find it with [`Sessions::orphans`] at once.
    HandedOver,
}

/// The owner of a session that was handed over: no process has this name.
pub(crate) const NOBODY: &str = "";

/// What came of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It was written.
    Written,
    /// The session is another one's, or has another number: nothing was written.
    Fenced,
    /// The store does not have the session any more.
    Missing,
    /// It was forgotten by order: nothing was written.
    Forgotten,
}

/// Sessions in a store.
pub trait Sessions: Send + Sync {
    /// Makes a session that the caller owns, and gives its fence; none if there is one of that name.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn create(
        &self,
        id: &str,
        owner: &str,
        write: &SessionWrite,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError>;

    /// Takes a session for its new owner, unless another one holds it.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn take(
        &self,
        id: &str,
        owner: &str,
        known: KnownPart<'_>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Taken, StoreError>;

    /// Writes to a session, if the fence is its newest and its number is the one that the write names. The lease begins again.
    ///
    /// # Errors
    /// The store cannot be written now. A store behind a network may have written all the same.
    fn append(
        &self,
        id: &str,
        fence: u64,
        write: &SessionWrite,
        now: Timestamp,
    ) -> Result<Appended, StoreError>;

    /// Whether what is written with [`SessionWrite::is_confirmed`] is there after a failure of the store's machine. A store that loses nothing with
    /// its process says yes.
    ///
    /// # Errors
    /// The store cannot be asked now.
    fn can_confirm(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Makes leases last longer; says of each whether it is still the caller's.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn renew(&self, held: &[(String, u64)], lease: Duration, now: Timestamp)
    -> Result<Vec<bool>, StoreError>;

    /// A session, after what the caller has of it.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn read(
        &self,
        id: &str,
        known: KnownPart<'_>,
        now: Timestamp,
    ) -> Result<Option<StoredSession>, StoreError>;

    /// Sessions that need an owner: those that were handed over, and those that were not given back and whose lease is over; at most this many.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn orphans(&self, max: usize, now: Timestamp) -> Result<Vec<String>, StoreError>;

    /// Sessions that were written after a mark, and the mark of now. Without a mark only that.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn changed(&self, since: Option<u64>, now: Timestamp) -> Result<(u64, Vec<String>), StoreError>;

    /// Forgets a session, also one that another process owns, and remembers for this long that it was forgotten: other processes have it in memory and would take it for lost.
    /// Says whether there was one.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn forget(&self, id: &str, ttl: Duration, now: Timestamp) -> Result<bool, StoreError>;

    /// Puts a message into the inbox of a process, for a minute.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn send(&self, to: &str, message: &[u8], now: Timestamp) -> Result<(), StoreError>;

    /// Takes the messages out of an inbox, oldest first.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn receive(&self, inbox: &str, now: Timestamp) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Says something to a process that listens, at once: it is kept nowhere, and lost where no one listens. A store that announces nothing does
    /// nothing.
    ///
    /// # Errors
    /// The store cannot be used now.
    fn tell(&self, _to: &str, _message: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Begins to listen to what others do, where the store announces it. It is a hint that may be lost. None where the store must be asked.
    ///
    /// # Errors
    /// No thread can be started.
    fn listen(&self, _process: &str, _heard: NewsHandler) -> Result<Option<Box<dyn Listening>>, StoreError> {
        Ok(None)
    }
}

/// What is heard of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'n> {
    /// The listening has begun: anything may have happened before.
    Begun,
    /// This session was written, or the inbox of this process has a message.
    Written(&'n str),
    /// What another process said with [`Sessions::tell`].
    Told(&'n [u8]),
}

/// Called with the news of a store. From a thread of the store: it must return at once.
pub type NewsHandler = Arc<dyn Fn(News<'_>) + Send + Sync>;

/// A store that is listened to, until this is dropped.
pub trait Listening: Send + Sync {}

/// How long a message waits in an inbox.
pub(crate) const INBOX_TTL: Duration = Duration::from_secs(60);
/// Messages that an inbox holds; the oldest go first.
pub(crate) const MAX_INBOX: usize = 10_000;
