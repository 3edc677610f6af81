//! The queue of spans, with the ids of new ones.

use koboshi_store::Node;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanExporter as SpanExport};
use prometheus_client::metrics::counter::Counter;

use crate::observe::log::Log;
use crate::observe::otlp::{Export, Queue, Signal};

const TRACES: Signal = Signal {
    key: "trace.otlp",
    path: "/v1/traces",
    thread: "koboshi-traces",
    away: "traces do not reach the collector",
    back: "traces reach the collector again",
};

impl Export<SpanData> for SpanExporter {
    fn belong_to(&mut self, resource: &Resource) {
        SpanExport::set_resource(self, resource);
    }

    async fn send(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        SpanExport::export(self, batch).await
    }
}

/// The queue of spans.
pub(crate) struct Sink {
    queue: Queue<SpanData>,
    ids: RandomIdGenerator,
}

impl Sink {
    /// Begins to send to a collector.
    pub(crate) fn start(address: &str, node: &Node, dropped: Counter, log: Log) -> Result<Self, String> {
        let builder = SpanExporter::builder().with_http();
        let queue = Queue::start(address, &TRACES, (node, dropped, log), builder, |builder| builder.build())?;
        Ok(Self { queue, ids: RandomIdGenerator::default() })
    }

    /// The collector's address, as configured.
    pub(crate) fn address(&self) -> &str {
        self.queue.address()
    }

    /// Adds a span, or drops and counts it.
    pub(crate) fn put(&self, span: SpanData) {
        self.queue.put(span);
    }

    pub(crate) fn new_trace(&self) -> TraceId {
        self.ids.new_trace_id()
    }

    pub(crate) fn new_span(&self) -> SpanId {
        self.ids.new_span_id()
    }

    /// Sends the waiting spans, as far as a short time allows.
    pub(crate) fn finish(self) {
        self.queue.finish();
    }
}
