//! What the upstream knows of its clients: counted exactly, read by tests.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use koboshi_sim::{Ask, Endpoint, Play, Tally};
use koboshi_wire::Dialect;
use serde_json::Value;

use super::http::Request;

/// Requests that are kept.
const KEPT: usize = 100_000;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The model in the path or the body, parameters included; empty if there is none.
    pub model: String,
    /// The path that was asked for, without its query.
    pub path: String,
    /// The query, without its question mark; empty if there is none.
    pub query: String,
    /// The dialect that is spoken at this path.
    pub dialect: Dialect,
    /// The `authorization` header.
    pub authorization: Option<String>,
    /// All headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is no JSON.
    pub body: Value,
    /// Its place among all requests, from 0.
    pub nth: u64,
    /// Since the upstream began.
    pub at: Duration,
    /// The connection it came on: the first has 0.
    pub connection: u64,
}

impl ReceivedRequest {
    /// A header by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

type Override = Arc<dyn Fn(&Ask<'_>) -> Play + Send + Sync>;

/// Everything that is counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) calls: BTreeMap<String, u64>,
    pub(super) requests: VecDeque<ReceivedRequest>,
    pub(super) plays: HashMap<String, Override>,
    pub(super) cancelled: u64,
    seen: u64,
    connections: u64,
    open: BTreeSet<u64>,
    /// Connections that wait for a request.
    idle: BTreeSet<u64>,
    /// Those of them that are reset when one arrives.
    doomed: BTreeSet<u64>,
    /// The number of connections that have sent their unsolicited bytes.
    spoke: BTreeSet<u64>,
}

/// Shared by the upstream's thread and the test.
pub(super) struct SharedState {
    counts: Mutex<Counts>,
    begun: tokio::time::Instant,
}

impl fmt::Debug for SharedState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("calls", &self.lock().calls).finish_non_exhaustive()
    }
}

impl SharedState {
    pub(super) fn new() -> Self {
        Self { counts: Mutex::default(), begun: tokio::time::Instant::now() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap()
    }

    pub(super) fn reset(&self) {
        let mut counts = self.lock();
        counts.calls.clear();
        counts.requests.clear();
        (counts.cancelled, counts.seen) = (0, 0);
    }

    /// Counts a request, and returns what happened before it.
    pub(super) fn count(
        &self,
        request: &Request,
        endpoint: &Endpoint<'_>,
        connection: u64,
    ) -> (String, Tally, Option<Override>) {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let named = || body.get("model").and_then(Value::as_str).unwrap_or_default();
        let model = endpoint.model.as_deref().unwrap_or_else(named).to_owned();
        let (path, query) = split(&request.path);
        // The real time: a provider on a real socket has no other.
        let wall = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let elapsed = self.begun.elapsed();
        let mut counts = self.lock();
        let calls = counts.calls.entry(model.clone()).or_default();
        let tally = Tally { nth: *calls, elapsed, wall: i64::try_from(wall).unwrap_or(0) };
        *calls += 1;
        let nth = counts.seen;
        counts.seen += 1;
        if counts.requests.len() >= KEPT {
            counts.requests.pop_front();
        }
        counts.requests.push_back(ReceivedRequest {
            model: model.clone(),
            path: path.to_owned(),
            query: query.to_owned(),
            dialect: endpoint.dialect,
            authorization: request.header("authorization").map(str::to_owned),
            headers: request.headers.clone(),
            body,
            nth,
            at: elapsed,
            connection,
        });
        let play = counts.plays.get(&model).cloned();
        (model, tally, play)
    }

    pub(super) fn cancel(&self) {
        self.lock().cancelled += 1;
    }

    pub(super) fn open(&self) -> u64 {
        self.lock().open.len() as u64
    }

    /// A connection begins; it is open until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Connection {
        let mut counts = self.lock();
        let id = counts.connections;
        counts.connections += 1;
        counts.open.insert(id);
        Connection { shared: Arc::clone(self), id }
    }

    pub(super) fn idle(&self) -> BTreeSet<u64> {
        self.lock().idle.clone()
    }

    /// Chooses the connections that must send unsolicited bytes.
    pub(super) fn start_unsolicited(&self) -> BTreeSet<u64> {
        let mut counts = self.lock();
        counts.spoke.clear();
        counts.idle.clone()
    }

    /// Whether one of them has not sent them yet and still waits for a request.
    pub(super) fn awaits_unsolicited(&self, waiting: &BTreeSet<u64>) -> bool {
        let counts = self.lock();
        waiting.iter().any(|id| counts.idle.contains(id) && !counts.spoke.contains(id))
    }

    pub(super) fn doom(&self) {
        let mut counts = self.lock();
        let idle = counts.idle.clone();
        counts.doomed.extend(idle);
    }
}

/// Path and query. A model in the path may have a question mark of its own: the query is what comes last.
fn split(path: &str) -> (&str, &str) {
    let verb = path.rfind(':').filter(|at| path.get(*at..).is_some_and(|verb| !verb.contains('/')));
    let from = verb.unwrap_or(0);
    match path.get(from..).and_then(|rest| rest.find('?')) {
        Some(at) => (&path[..from + at], &path[from + at + 1..]),
        None => (path, ""),
    }
}

/// An open connection.
pub(super) struct Connection {
    shared: Arc<SharedState>,
    pub(super) id: u64,
}

impl Connection {
    /// It waits for a request.
    pub(super) fn rests(&self) {
        self.shared.lock().idle.insert(self.id);
    }

    /// It has sent its unsolicited bytes.
    pub(super) fn spoke(&self) {
        self.shared.lock().spoke.insert(self.id);
    }

    /// A request arrived. Returns whether the connection may go on.
    pub(super) fn wakes(&self) -> bool {
        let mut counts = self.shared.lock();
        counts.idle.remove(&self.id);
        !counts.doomed.remove(&self.id)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A test that failed elsewhere must not hide behind a poisoned lock.
        if let Ok(mut counts) = self.shared.counts.lock() {
            counts.idle.remove(&self.id);
            counts.doomed.remove(&self.id);
            counts.open.remove(&self.id);
        }
    }
}
