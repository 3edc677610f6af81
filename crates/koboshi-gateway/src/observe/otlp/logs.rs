//! The lines of the log as OpenTelemetry's log records, for a collector that has the traces too.
//!
//! What the log and a span both say has one name: `koboshi.request.id` leads from a line to its request. A line is redacted before it comes
//! here, as for every other place that it goes to.

use std::time::SystemTime;

use jiff::Timestamp;
use koboshi_store::Node;
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry_otlp::LogExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{
    LogBatch, LogExporter as LogExport, SdkLogRecord, SdkLogger, SdkLoggerProvider,
};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;

use super::{Export, Queue, Signal, scope};
use crate::observe::log::{Level, Log};

const LOGS: Signal = Signal {
    key: "log.otlp",
    path: "/v1/logs",
    thread: "koboshi-otlp-logs",
    away: "the log does not reach the collector",
    back: "the log reaches the collector again",
};

/// Names of fields that a span has too.
const SAME: &[(&str, &str)] = &[
    ("request", "koboshi.request.id"),
    ("target", "koboshi.target"),
    ("remedy", "koboshi.remedy"),
    ("errorType", "error.type"),
    ("status", "http.response.status_code"),
];

impl Export<SdkLogRecord> for LogExporter {
    fn belong_to(&mut self, resource: &Resource) {
        LogExport::set_resource(self, resource);
    }

    async fn send(&self, batch: Vec<SdkLogRecord>) -> OTelSdkResult {
        let scope = scope();
        let batch: Vec<_> = batch.iter().map(|record| (record, &scope)).collect();
        LogExport::export(self, LogBatch::new(&batch)).await
    }
}

/// Sends lines to a collector.
pub(crate) struct LogSink {
    queue: Queue<SdkLogRecord>,
    /// Makes records; it emits none.
    logger: SdkLogger,
    max_level: Level,
}

impl LogSink {
    /// Begins to send. `log` gets what is wrong with the collector, and must not lead back to it.
    pub(crate) fn start(
        address: &str,
        node: &Node,
        dropped: Counter,
        log: Log,
        max_level: Level,
    ) -> Result<Self, String> {
        let builder = LogExporter::builder().with_http();
        let queue = Queue::start(address, &LOGS, (node, dropped, log), builder, |builder| builder.build())?;
        let logger = SdkLoggerProvider::builder().build().logger("koboshi");
        Ok(Self { queue, logger, max_level })
    }

    pub(crate) fn address(&self) -> &str {
        self.queue.address()
    }

    pub(crate) fn takes(&self, level: Level) -> bool {
        level <= self.max_level
    }

    pub(crate) const fn max_level(&self) -> Level {
        self.max_level
    }

    /// Adds a line.
    pub(crate) fn put(&self, at: Timestamp, level: Level, message: &str, facts: &Value) {
        let mut record = self.logger.create_log_record();
        record.set_timestamp(SystemTime::from(at));
        record.set_observed_timestamp(SystemTime::from(at));
        record.set_severity_number(match level {
            Level::Error => Severity::Error,
            Level::Warn => Severity::Warn,
            Level::Info => Severity::Info,
            Level::Debug => Severity::Debug,
        });
        record.set_severity_text(level.name());
        record.set_body(AnyValue::from(message.to_owned()));
        for (name, value) in facts.as_object().into_iter().flatten() {
            let same = SAME.iter().find(|(field, _)| field == name);
            let name = same.map_or_else(|| name.clone(), |(_, name)| (*name).to_owned());
            if let Some(value) = any(value) {
                record.add_attribute(name, value);
            }
        }
        self.queue.put(record);
    }

    pub(crate) fn finish(self) {
        self.queue.finish();
    }
}

/// A value of a field; none for one that is not there.
fn any(value: &Value) -> Option<AnyValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(is) => AnyValue::from(*is),
        Value::String(text) => AnyValue::from(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => AnyValue::from(whole),
            (None, Some(part)) => AnyValue::from(part),
            (None, None) => return None,
        },
        other => AnyValue::from(other.to_string()),
    })
}
