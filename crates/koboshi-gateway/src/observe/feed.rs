//! The live feed: the journal entries of this process, for watchers.
//!
//! A broadcast in memory, so watching does not poll the store. It is bounded: a slow watcher loses the oldest entries and learns how many,
//! and writers never wait for a watcher. Without watchers an entry costs one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use koboshi_store::Entry;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// How many entries a slow watcher may lag.
const CAPACITY: usize = 1024;
/// How many watchers there may be.
const MAX_WATCHERS: usize = 64;

/// Where entries are published.
#[derive(Clone)]
pub(crate) struct Feed {
    channel: Sender<FeedMessage>,
    closed: Arc<AtomicBool>,
}

#[derive(Clone)]
enum FeedMessage {
    Entry(Arc<Entry>),
    End,
}

/// A subscriber of the feed.
pub(crate) struct Watcher {
    channel: Receiver<FeedMessage>,
    closed: Arc<AtomicBool>,
}

/// What a watcher receives.
#[derive(Debug, PartialEq)]
pub(crate) enum FeedEvent {
    Entry(Arc<Entry>),
    /// This many entries were lost, because they were not read in time.
    Lost(u64),
    /// The gateway stops.
    End,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self { channel: Sender::new(CAPACITY), closed: Arc::default() }
    }

    /// Publishes an entry to all watchers.
    pub(crate) fn publish(&self, entry: &Entry) {
        if self.channel.receiver_count() > 0 {
            // The last watcher may have just gone.
            let _ = self.channel.send(FeedMessage::Entry(Arc::new(entry.clone())));
        }
    }

    /// Begins to watch; none if there are too many watchers.
    pub(crate) fn watch(&self) -> Option<Watcher> {
        (self.channel.receiver_count() < MAX_WATCHERS)
            .then(|| Watcher { channel: self.channel.subscribe(), closed: Arc::clone(&self.closed) })
    }

    /// Ends every watch: a stream without an end would keep the gateway from stopping.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let _ = self.channel.send(FeedMessage::End);
    }
}

impl Watcher {
    /// The next event.
    pub(crate) async fn next(&mut self) -> FeedEvent {
        if self.closed.load(Ordering::Acquire) {
            return FeedEvent::End;
        }
        match self.channel.recv().await {
            Ok(FeedMessage::Entry(entry)) => FeedEvent::Entry(entry),
            Ok(FeedMessage::End) | Err(RecvError::Closed) => FeedEvent::End,
            Err(RecvError::Lagged(count)) => FeedEvent::Lost(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use koboshi_store::EntryKind;

    fn entry(number: usize) -> Entry {
        Entry::new(
            Timestamp::UNIX_EPOCH,
            &"test".parse().unwrap(),
            EntryKind::Fault,
            format!("entry {number}"),
        )
    }

    fn text(news: FeedEvent) -> String {
        match news {
            FeedEvent::Entry(entry) => entry.text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_slow_watcher_learns_how_much_it_lost() {
        let feed = Feed::new();
        let mut watcher = feed.watch().unwrap();
        for number in 0..CAPACITY + 7 {
            feed.publish(&entry(number));
        }
        assert_eq!(watcher.next().await, FeedEvent::Lost(7));
        assert_eq!(text(watcher.next().await), "entry 7", "the oldest that is left");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn every_watch_ends_with_the_gateway() {
        let feed = Feed::new();
        let mut behind = feed.watch().unwrap();
        feed.publish(&entry(1));
        feed.close();
        assert_eq!(behind.next().await, FeedEvent::End);
        assert_eq!(feed.watch().unwrap().next().await, FeedEvent::End);
    }

    #[test]
    fn watchers_are_bounded() {
        let feed = Feed::new();
        let watchers: Vec<_> = (0..MAX_WATCHERS).filter_map(|_| feed.watch()).collect();
        assert_eq!(watchers.len(), MAX_WATCHERS);
        assert!(feed.watch().is_none());
        drop(watchers);
        assert!(feed.watch().is_some());
    }
}
