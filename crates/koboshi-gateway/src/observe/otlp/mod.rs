//! Sends to an OpenTelemetry collector: a bounded queue, and a thread that sends its content in batches. Traces and logs are two queues.
//!
//! Adding never waits. A full queue drops what is added, and so does an unreachable collector; both are counted. Format and
//! retries are OpenTelemetry's own; only queue and client are ours, because theirs do not expose their counts and bring another HTTP stack
//! along.

mod client;
pub(crate) mod logs;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use koboshi_store::{Clock, Node, SystemClock};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::observe::log::{Level, Log};
use client::Collector;

/// How many may wait.
const MAX_WAITING: usize = 8192;
/// How many one batch has.
const MAX_BATCH: usize = 512;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_secs(1);
/// How long sending one batch may take, with its retries.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a gateway that stops waits for the last batch.
const FINAL_SEND_TIMEOUT: Duration = Duration::from_millis(1500);

/// What is sent, and the words for it.
pub(crate) struct Signal {
    /// The key of the config.
    pub(crate) key: &'static str,
    /// The path of collectors.
    pub(crate) path: &'static str,
    pub(crate) thread: &'static str,
    pub(crate) away: &'static str,
    pub(crate) back: &'static str,
}

/// Writes a batch in the form of OpenTelemetry and sends it.
pub(crate) trait Export<T>: Send + 'static {
    /// Says who sends.
    fn belong_to(&mut self, resource: &Resource);
    /// Sends a batch.
    fn send(&self, batch: Vec<T>) -> impl Future<Output = OTelSdkResult>;
}

/// A queue.
pub(crate) struct Queue<T> {
    address: String,
    queue: SyncSender<T>,
    dropped: Counter,
    /// Receives when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl<T: Send + 'static> Queue<T> {
    /// Begins to send to a collector. `builder` leads to the exporter that `finish` makes of it.
    pub(crate) fn start<B: WithExportConfig + WithHttpConfig, E: Export<T>, X: ToString>(
        address: &str,
        signal: &'static Signal,
        (node, dropped, log): (&Node, Counter, Log),
        builder: B,
        finish: impl FnOnce(B) -> Result<E, X>,
    ) -> Result<Self, String> {
        let wrong = |error: String| format!("{}: {error}", signal.key);
        let collector = Collector::at(address).map_err(|error| wrong(error.to_string()))?;
        let full = address.trim_end_matches('/');
        let endpoint =
            if full.ends_with(signal.path) { full.to_owned() } else { format!("{full}{}", signal.path) };
        let builder = builder.with_http_client(collector).with_endpoint(endpoint).with_timeout(SEND_TIMEOUT);
        let mut exporter = finish(builder).map_err(|error| wrong(error.to_string()))?;
        exporter.belong_to(&resource(node));
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| wrong(error.to_string()))?;
        let (queue, waiting) = sync_channel(MAX_WAITING);
        let (end, ended) = sync_channel(1);
        let counted = dropped.clone();
        let thread = std::thread::Builder::new().name(signal.thread.to_owned()).spawn(move || {
            send(&waiting, &exporter, &runtime, (&counted, &log, signal));
            // The gateway may have stopped waiting.
            let _ = end.try_send(());
        });
        thread.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { address: address.to_owned(), queue, dropped, ended: Mutex::new(ended) })
    }

    /// The collector's address, as configured.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Adds one, or drops and counts it.
    pub(crate) fn put(&self, one: T) {
        if self.queue.try_send(one).is_err() {
            self.dropped.inc();
        }
    }

    /// Sends what waits, as far as a short time allows.
    pub(crate) fn finish(self) {
        let Self { queue, ended, .. } = self;
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FINAL_SEND_TIMEOUT);
    }
}

/// Sends batches until the queue is closed.
fn send<T>(
    waiting: &Receiver<T>,
    exporter: &impl Export<T>,
    runtime: &Runtime,
    (dropped, log, signal): (&Counter, &Log, &Signal),
) {
    let mut away = false;
    while let Ok(first) = waiting.recv() {
        let batch = gather(first, waiting);
        let count = batch.len() as u64;
        match runtime.block_on(exporter.send(batch)) {
            Ok(()) if away => log.line(Level::Info, signal.back, &json!({})),
            Err(error) => {
                dropped.inc_by(count);
                if !away {
                    let facts = json!({"why": error.to_string(), "dropped": count});
                    log.line(Level::Warn, signal.away, &facts);
                }
                away = true;
                continue;
            }
            Ok(()) => {}
        }
        away = false;
    }
}

/// A batch: what waits, and what comes within a moment.
fn gather<T>(first: T, waiting: &Receiver<T>) -> Vec<T> {
    let until = SystemClock.moment().after(LINGER);
    let mut batch = vec![first];
    while batch.len() < MAX_BATCH {
        match waiting.recv_timeout(until.since(SystemClock.moment())) {
            Ok(one) => batch.push(one),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    batch
}

/// The resource: this process.
fn resource(node: &Node) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "koboshi"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.to_string()),
        ])
        .build()
}

/// The instrumentation scope.
pub(crate) fn scope() -> InstrumentationScope {
    static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
        InstrumentationScope::builder("koboshi").with_version(env!("CARGO_PKG_VERSION")).build()
    });
    SCOPE.clone()
}
