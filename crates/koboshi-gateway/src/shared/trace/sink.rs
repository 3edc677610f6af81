//! Sends spans: a bounded queue, and a thread that sends its content in batches.
//!
//! Adding a span never waits. A full queue drops the span, and so does an unreachable collector; both are counted. Format and
//! retries are OpenTelemetry's own; only queue and client are ours, because theirs do not expose their counts and bring another HTTP stack
//! along.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use koboshi_store::{Clock, Node, SystemClock};
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanExporter as _};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::client::Collector;
use crate::observe::log::{Level, Log};

/// How many spans may wait.
const MAX_WAITING: usize = 8192;
/// How many spans one batch has.
const MAX_BATCH: usize = 512;
/// How long a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);
/// How long sending one batch may take, with its retries.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a gateway that stops waits for the last batch.
const FINAL_SEND_TIMEOUT: Duration = Duration::from_millis(1500);
/// The path of collectors.
const PATH: &str = "/v1/traces";

/// The queue of spans.
pub(crate) struct Sink {
    address: String,
    queue: SyncSender<SpanData>,
    dropped: Counter,
    /// Receives when the thread has ended.
    ended: Mutex<Receiver<()>>,
    ids: RandomIdGenerator,
}

impl Sink {
    /// Begins to send to a collector.
    pub(crate) fn start(address: &str, node: &Node, dropped: Counter, log: Log) -> Result<Self, String> {
        let wrong = |error: String| format!("trace.otlp: {error}");
        let collector = Collector::at(address).map_err(|error| wrong(error.to_string()))?;
        let full = address.trim_end_matches('/');
        let endpoint = if full.ends_with(PATH) { full.to_owned() } else { format!("{full}{PATH}") };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_endpoint(endpoint)
            .with_timeout(SEND_TIMEOUT)
            .build();
        let mut exporter = exporter.map_err(|error| wrong(error.to_string()))?;
        exporter.set_resource(&resource(node));
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| wrong(error.to_string()))?;
        let (queue, spans) = sync_channel(MAX_WAITING);
        let (end, ended) = sync_channel(1);
        let counted = dropped.clone();
        let thread = std::thread::Builder::new().name("koboshi-traces".to_owned()).spawn(move || {
            send(&spans, &exporter, &runtime, &counted, &log);
            // The gateway may have stopped waiting.
            let _ = end.try_send(());
        });
        thread.map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            address: address.to_owned(),
            queue,
            dropped,
            ended: Mutex::new(ended),
            ids: RandomIdGenerator::default(),
        })
    }

    /// The collector's address, as configured.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Adds a span, or drops and counts it.
    pub(crate) fn put(&self, span: SpanData) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(span) {
            self.dropped.inc();
        }
    }

    pub(crate) fn new_trace(&self) -> TraceId {
        self.ids.new_trace_id()
    }

    pub(crate) fn new_span(&self) -> SpanId {
        self.ids.new_span_id()
    }

    /// Sends the waiting spans, as far as a short time allows.
    pub(crate) fn finish(self) {
        let Self { queue, ended, .. } = self;
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FINAL_SEND_TIMEOUT);
    }
}

/// Sends batches until the queue is closed.
fn send(
    spans: &Receiver<SpanData>,
    exporter: &SpanExporter,
    runtime: &Runtime,
    dropped: &Counter,
    log: &Log,
) {
    let mut away = false;
    while let Ok(first) = spans.recv() {
        let batch = gather(first, spans);
        let count = batch.len() as u64;
        let sent = runtime.block_on(exporter.export(batch));
        match sent {
            Ok(()) if away => log.line(Level::Info, "traces reach the collector again", &json!({})),
            Err(error) => {
                dropped.inc_by(count);
                if !away {
                    let facts = json!({"why": error.to_string(), "dropped": count});
                    log.line(Level::Warn, "traces do not reach the collector", &facts);
                }
                away = true;
                continue;
            }
            Ok(()) => {}
        }
        away = false;
    }
}

/// A batch: the waiting spans, and those that come within a moment.
fn gather(first: SpanData, spans: &Receiver<SpanData>) -> Vec<SpanData> {
    let until = SystemClock.moment().after(LINGER);
    let mut batch = vec![first];
    while batch.len() < MAX_BATCH {
        match spans.recv_timeout(until.since(SystemClock.moment())) {
            Ok(span) => batch.push(span),
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
pub(super) fn scope() -> InstrumentationScope {
    static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
        InstrumentationScope::builder("koboshi").with_version(env!("CARGO_PKG_VERSION")).build()
    });
    SCOPE.clone()
}
