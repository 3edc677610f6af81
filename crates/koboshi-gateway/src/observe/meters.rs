//! Metrics, under the names of OpenTelemetry's GenAI conventions where they have one.
//!
//! Labels are bounded: model names come from clients, so only the first few hundred targets get a series of their own and all others are
//! `other`. Tenants, request ids and sessions are never labels. Handles are looked up once per target and kept in it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// How many targets get a series of their own.
const MAX_TARGETS: usize = 300;

/// Buckets in seconds: from a cached token to a model that thinks.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];
/// Buckets in seconds for the time that the gateway itself adds.
const ADDED: [f64; 10] = [0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 1.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TargetLabels {
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FaultLabels {
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
    error_type: Word,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
    gen_ai_token_type: Word,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OneWord {
    kind: Word,
}

/// A label value that is known at build time.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Word(&'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// All metrics.
pub(crate) struct Meters {
    registry: Registry,
    named: Mutex<HashSet<(String, String)>>,
    attempts: Family<TargetLabels, Counter>,
    resends: Family<TargetLabels, Counter>,
    faults: Family<FaultLabels, Counter>,
    duration: Family<TargetLabels, Histogram>,
    first_content: Family<TargetLabels, Histogram>,
    tokens: Family<TokenLabels, Counter>,
    breaker: Family<TargetLabels, Gauge>,
    remedies: Family<OneWord, Counter>,
    answers: Family<OneWord, Counter>,
    /// Whole answers, which are most of them.
    pub(crate) whole: Counter,
    /// Failed attempts on all targets together.
    pub(crate) fallen: Counter,
    /// Whole answers although something had failed or was out of use.
    pub(crate) survived: Counter,
    degraded: Family<OneWord, Counter>,
    tool_calls: Family<OneWord, Counter>,
    guard: Family<OneWord, Counter>,
    recoveries: Family<OneWord, Counter>,
    /// Requests in progress.
    pub(crate) open: Gauge,
    /// Connections of clients.
    pub(crate) connections: Gauge,
    pub(crate) sessions: Gauge,
    /// Time that the gateway itself added before a request left it.
    pub(crate) added: Histogram,
    /// Whether the last exchange with the store went well.
    pub(crate) store_connected: Gauge,
    /// Gateways that share the store, this one included.
    pub(crate) gateways: Gauge,
    /// Answers that the store's cache did not get.
    pub(crate) cache_dropped: Counter,
    /// Spans that did not reach the collector.
    pub(crate) spans_dropped: Counter,
    /// Lines of the log that did not reach the collector.
    pub(crate) log_lines_dropped: Counter,
}

/// The metrics of one target.
#[derive(Clone)]
pub(crate) struct TargetMeters {
    pub(crate) attempts: Counter,
    /// The attempts at this target alone: beyond the bound of labels the series above is shared.
    pub(crate) own_attempts: Counter,
    pub(crate) resends: Counter,
    pub(crate) duration: Histogram,
    pub(crate) first_content: Histogram,
    pub(crate) input: Counter,
    pub(crate) output: Counter,
    breaker: Gauge,
    labels: TargetLabels,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let answers = Family::<OneWord, Counter>::default();
        let mut registry = Registry::default();
        let duration = Family::new_with_constructor(seconds as fn() -> Histogram);
        let first_content = Family::new_with_constructor(seconds as fn() -> Histogram);
        let added = Histogram::new(ADDED);
        let meters = Self {
            attempts: Family::default(),
            resends: Family::default(),
            faults: Family::default(),
            tokens: Family::default(),
            breaker: Family::default(),
            remedies: Family::default(),
            whole: answers.get_or_create_owned(&OneWord { kind: Word("whole") }),
            answers,
            fallen: Counter::default(),
            survived: Counter::default(),
            degraded: Family::default(),
            tool_calls: Family::default(),
            guard: Family::default(),
            recoveries: Family::default(),
            open: Gauge::default(),
            connections: Gauge::default(),
            sessions: Gauge::default(),
            registry: Registry::default(),
            named: Mutex::default(),
            duration,
            first_content,
            added,
            store_connected: Gauge::default(),
            gateways: Gauge::default(),
            cache_dropped: Counter::default(),
            spans_dropped: Counter::default(),
            log_lines_dropped: Counter::default(),
        };
        macro_rules! register {
            ($($field:ident $name:literal $help:literal $(in $unit:expr)?,)+) => {
                $(register!(@one $field $name $help $($unit)?);)+
            };
            (@one $field:ident $name:literal $help:literal) => {
                registry.register($name, $help, meters.$field.clone());
            };
            (@one $field:ident $name:literal $help:literal $unit:expr) => {
                registry.register_with_unit($name, $help, $unit, meters.$field.clone());
            };
        }
        register! {
            duration "gen_ai_server_request_duration" "Length of an attempt" in Unit::Seconds,
            first_content "gen_ai_server_time_to_first_token" "Until the first content of an attempt" in Unit::Seconds,
            added "koboshi_added" "Time added before a request left the gateway" in Unit::Seconds,
            tokens "gen_ai_client_token_usage" "Tokens",
            attempts "koboshi_attempts" "Attempts on targets",
            resends "koboshi_resends" "Requests that met a dead connection and were sent again within their attempt",
            faults "koboshi_faults" "Faults of targets",
            breaker "koboshi_breaker_state" "0 closed, 1 probing, 2 open",
            remedies "koboshi_remedies" "What was done about faults",
            answers "koboshi_answers" "Answers to clients, by how they ended",
            survived "koboshi_survived_falls" "Whole answers although an attempt had failed or the first target was out of use",
            degraded "koboshi_degraded_answers" "Lesser answers, by source",
            tool_calls "koboshi_tool_calls" "Tool calls: valid, repaired, reasked, refused",
            guard "koboshi_guard" "What the loop guard did or would have done",
            recoveries "koboshi_recoveries" "Streams that broke after their first content, by how they went on",
            open "koboshi_open_requests" "Requests that are being served",
            sessions "koboshi_session_connections" "Connections of sessions",
            connections "koboshi_connections" "Connections of clients",
            store_connected "koboshi_store_connected" "1 if the last exchange with the store went well, else 0",
            gateways "koboshi_gateways" "Running gateways that share the store, this one included",
            cache_dropped "koboshi_cache_dropped" "Answers that were not kept in the store: too many waited for it, or it failed",
            spans_dropped "koboshi_trace_spans_dropped" "Spans that no collector got: the queue was full or the collector away",
            log_lines_dropped "koboshi_log_lines_dropped" "Lines of the log that no collector got: the queue was full or the collector away",
        }
        Self { registry, ..meters }
    }

    /// The handles of a target.
    pub(crate) fn target(&self, provider: &str, model: &str) -> TargetMeters {
        let labels = self.labels(provider, model);
        let token = |kind| TokenLabels {
            gen_ai_provider_name: labels.gen_ai_provider_name.clone(),
            gen_ai_request_model: labels.gen_ai_request_model.clone(),
            gen_ai_token_type: Word(kind),
        };
        TargetMeters {
            attempts: self.attempts.get_or_create_owned(&labels),
            own_attempts: Counter::default(),
            resends: self.resends.get_or_create_owned(&labels),
            duration: self.duration.get_or_create_owned(&labels),
            first_content: self.first_content.get_or_create_owned(&labels),
            input: self.tokens.get_or_create_owned(&token("input")),
            output: self.tokens.get_or_create_owned(&token("output")),
            breaker: self.breaker.get_or_create_owned(&labels),
            labels,
        }
    }

    fn labels(&self, provider: &str, model: &str) -> TargetLabels {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (provider.to_owned(), model.to_owned());
        let own = named.contains(&id) || named.len() < MAX_TARGETS;
        if own {
            named.insert(id);
        }
        let model = if own { model } else { "other" };
        TargetLabels { gen_ai_provider_name: provider.to_owned(), gen_ai_request_model: model.to_owned() }
    }

    pub(crate) fn fault(&self, target: &TargetMeters, kind: &'static str) {
        let labels = FaultLabels {
            gen_ai_provider_name: target.labels.gen_ai_provider_name.clone(),
            gen_ai_request_model: target.labels.gen_ai_request_model.clone(),
            error_type: Word(kind),
        };
        self.faults.get_or_create(&labels).inc();
        self.fallen.inc();
    }

    /// Sets the gauges of breaker states. Several keys of a provider are several targets with one gauge: it shows the worst of them.
    pub(crate) fn show_breakers<'a>(&self, states: impl Iterator<Item = (&'a TargetMeters, i64)>) {
        let mut worst: HashMap<&TargetLabels, (&Gauge, i64)> = HashMap::new();
        for (target, state) in states {
            let (_, known) = worst.entry(&target.labels).or_insert((&target.breaker, state));
            *known = state.max(*known);
        }
        for (gauge, state) in worst.into_values() {
            gauge.set(state);
        }
    }

    pub(crate) fn remedy(&self, kind: &'static str) {
        self.remedies.get_or_create(&OneWord { kind: Word(kind) }).inc();
    }

    pub(crate) fn answer(&self, kind: &'static str) {
        self.answers.get_or_create(&OneWord { kind: Word(kind) }).inc();
    }

    /// How many answers ended like this.
    pub(crate) fn answered(&self, kind: &'static str) -> u64 {
        self.answers.get_or_create(&OneWord { kind: Word(kind) }).get()
    }

    /// How many lesser answers there were, from all sources.
    pub(crate) fn all_degraded(&self) -> u64 {
        ["cache", "simple", "static"]
            .into_iter()
            .map(|kind| self.degraded.get_or_create(&OneWord { kind: Word(kind) }).get())
            .sum()
    }

    pub(crate) fn degraded(&self, source: &'static str) {
        self.degraded.get_or_create(&OneWord { kind: Word(source) }).inc();
    }

    pub(crate) fn tool_call(&self, kind: &'static str) {
        self.tool_calls.get_or_create(&OneWord { kind: Word(kind) }).inc();
    }

    pub(crate) fn guard(&self, kind: &'static str) {
        self.guard.get_or_create(&OneWord { kind: Word(kind) }).inc();
    }

    pub(crate) fn recovery(&self, kind: &'static str) {
        self.recoveries.get_or_create(&OneWord { kind: Word(kind) }).inc();
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_dashboards_know() {
        let meters = Meters::new();
        let target = meters.target("openai", "gpt-4o");
        target.attempts.inc();
        target.duration.observe(0.2);
        meters.fault(&target, "rate_limited");
        let text = meters.text();
        for line in [
            "koboshi_attempts_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"gpt-4o\"} 1",
            "gen_ai_server_request_duration_seconds_count",
            "error_type=\"rate_limited\"} 1",
        ] {
            assert!(text.contains(line), "{line} not in\n{text}");
        }
    }

    #[test]
    fn clients_cannot_make_labels_without_end() {
        let meters = Meters::new();
        for number in 0..2 * MAX_TARGETS {
            meters.target("openai", &format!("m{number}")).attempts.inc();
        }
        let lines = meters.text().lines().filter(|line| line.starts_with("koboshi_attempts_total")).count();
        let (one, other) = (meters.target("openai", "beyond"), meters.target("openai", "as well"));
        one.own_attempts.inc();
        assert_eq!((one.own_attempts.get(), other.own_attempts.get()), (1, 0), "not shared beyond the bound");
        assert_eq!(lines, MAX_TARGETS + 1);
        assert!(meters.text().contains("gen_ai_request_model=\"other\"} 300"));
    }
}
