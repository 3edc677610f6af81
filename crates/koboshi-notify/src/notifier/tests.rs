//! Who calls the notifications waits for no store.

use std::sync::mpsc;

use koboshi_store::{
    Entry, Lease, MemoryPolicy, MemoryStore, MergeResult, Named, Query, Retention, Sessions, StoreContents,
    StoreError, UsageStore, Wake, Watch,
};

use super::*;
use crate::http::{HttpAnswer, HttpRequest, LocalFuture};

/// A store that never answers when it is asked for a lease.
struct Hanging {
    inner: MemoryStore,
    asked: mpsc::Sender<()>,
    never: Mutex<mpsc::Receiver<()>>,
}

impl Hanging {
    fn hang(&self) {
        self.asked.send(()).unwrap();
        // No one sends.
        let _ = self.never.lock().unwrap().recv();
    }
}

impl Store for Hanging {
    fn place(&self) -> &str {
        self.inner.place()
    }

    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        self.inner.merge(changes)
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        self.inner.load()
    }

    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch(wake)
    }

    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.hang();
        self.inner.lease(name, holder, ttl, now)
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        Store::renew(&self.inner, lease, ttl, now)
    }

    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.release(lease, now)
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.cache_put(key, body, ttl, now)
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.cache_get(key, now)
    }

    fn note_put(&self, name: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.inner.note_put(name, body, ttl, now)
    }

    fn note_get(&self, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.note_get(name, now)
    }

    fn note_swap(
        &self,
        name: &str,
        expected: Option<&[u8]>,
        body: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.inner.note_swap(name, expected, body, ttl, now)
    }

    fn note_delete(&self, name: &str) -> Result<bool, StoreError> {
        self.inner.note_delete(name)
    }

    fn sessions(&self) -> &dyn Sessions {
        self.inner.sessions()
    }

    fn usage(&self) -> &dyn UsageStore {
        self.inner.usage()
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        Store::append(&self.inner, entries)
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.inner.query(query)
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        self.inner.prune(keep, now)
    }
}

struct NoWay;

impl Http for NoWay {
    fn post(&self, _: HttpRequest) -> LocalFuture<Result<HttpAnswer, String>> {
        Box::pin(async { Err("there is no way".to_owned()) })
    }
}

fn config(timeout: u64) -> Config {
    let text = format!(
        "notify: {{channels: {{pager: {{kind: webhook, url: 'https://pager.example/x', timeout: {timeout}s}}}}}}"
    );
    koboshi_config::load("koboshi.yaml", &text, &|_| None).unwrap()
}

#[test]
fn neither_a_reload_nor_a_stop_waits_for_a_store_that_hangs() {
    let (asked, was_asked) = mpsc::channel();
    let (_no_one, never) = mpsc::channel();
    let store = Hanging { inner: MemoryStore::new(MemoryPolicy::default()), asked, never: Mutex::new(never) };
    let around = Surroundings {
        store: Arc::new(store),
        node: "gateway/test".to_owned(),
        http: Arc::new(NoWay),
        resume: Arc::new(str::to_owned),
        routes: Arc::new(|_, _| None),
        log: Arc::new(|_, _| {}),
        zones: TimeZoneDatabase::bundled(),
        zone: TimeZone::UTC,
        lang: Lang::En,
    };
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let notices = Notifications::start(around, &config(1)).unwrap();
        was_asked.recv().unwrap();
        notices.adopt(&config(2)).unwrap();
        notices.adopt(&config(3)).unwrap();
        drop(notices);
        end.send(()).unwrap();
    });
    // Generous: it would hang for ever.
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(()));
}
