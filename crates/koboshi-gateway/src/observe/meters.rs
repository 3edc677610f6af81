//! What is counted and measured, under the names of OpenTelemetry's GenAI conventions where they have one.
//!
//! Labels are bounded: model names come from clients, so only the first few hundred targets get a line of their own and the rest is
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

/// Targets with a line of their own.
const MOST_TARGETS: usize = 300;

/// Seconds; from a cached token to a model that thinks.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];
/// Seconds that the gateway itself adds.
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

/// One of the words that are known when the program is built.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Word(&'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// Everything that is counted.
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
    degraded: Family<OneWord, Counter>,
    tool_calls: Family<OneWord, Counter>,
    guard: Family<OneWord, Counter>,
    recoveries: Family<OneWord, Counter>,
    /// Requests that are being served.
    pub(crate) open: Gauge,
    /// Connections of clients.
    pub(crate) connections: Gauge,
    /// Time that the gateway itself added before a request left it.
    pub(crate) added: Histogram,
    /// Whether the last exchange with the store went well.
    pub(crate) store_connected: Gauge,
    /// Answers that the store's cache did not get.
    pub(crate) cache_dropped: Counter,
    /// Spans that no collector got.
    pub(crate) spans_dropped: Counter,
}

/// What is counted for one target.
#[derive(Clone)]
pub(crate) struct TargetMeters {
    pub(crate) attempts: Counter,
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
            degraded: Family::default(),
            tool_calls: Family::default(),
            guard: Family::default(),
            recoveries: Family::default(),
            open: Gauge::default(),
            connections: Gauge::default(),
            registry: Registry::default(),
            named: Mutex::default(),
            duration,
            first_content,
            added,
            store_connected: Gauge::default(),
            cache_dropped: Counter::default(),
            spans_dropped: Counter::default(),
        };
        let seconds = || Unit::Seconds;
        registry.register_with_unit(
            "gen_ai_server_request_duration",
            "Length of an attempt",
            seconds(),
            meters.duration.clone(),
        );
        registry.register_with_unit(
            "gen_ai_server_time_to_first_token",
            "Until the first content of an attempt",
            seconds(),
            meters.first_content.clone(),
        );
        registry.register_with_unit(
            "koboshi_added",
            "Time added before a request left the gateway",
            seconds(),
            meters.added.clone(),
        );
        registry.register("gen_ai_client_token_usage", "Tokens", meters.tokens.clone());
        registry.register("koboshi_attempts", "Attempts on targets", meters.attempts.clone());
        registry.register(
            "koboshi_resends",
            "Requests that met a dead connection and were sent again within their attempt",
            meters.resends.clone(),
        );
        registry.register("koboshi_faults", "Faults of targets", meters.faults.clone());
        registry.register("koboshi_breaker_state", "0 closed, 1 probing, 2 open", meters.breaker.clone());
        registry.register("koboshi_remedies", "What was done about faults", meters.remedies.clone());
        registry.register("koboshi_answers", "Answers to clients, by how they ended", meters.answers.clone());
        registry.register("koboshi_degraded_answers", "Lesser answers, by source", meters.degraded.clone());
        registry.register(
            "koboshi_tool_calls",
            "Tool calls: valid, repaired, reasked, refused",
            meters.tool_calls.clone(),
        );
        registry.register(
            "koboshi_guard",
            "What the loop guard did or would have done",
            meters.guard.clone(),
        );
        registry.register(
            "koboshi_recoveries",
            "Streams that broke after their first content, by how they went on",
            meters.recoveries.clone(),
        );
        registry.register("koboshi_open_requests", "Requests that are being served", meters.open.clone());
        registry.register("koboshi_connections", "Connections of clients", meters.connections.clone());
        registry.register(
            "koboshi_store_connected",
            "1 if the last exchange with the store went well, else 0",
            meters.store_connected.clone(),
        );
        registry.register(
            "koboshi_cache_dropped",
            "Answers that were not kept in the store: too many waited for it, or it failed",
            meters.cache_dropped.clone(),
        );
        registry.register(
            "koboshi_trace_spans_dropped",
            "Spans that no collector got: the queue was full or the collector away",
            meters.spans_dropped.clone(),
        );
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
        let own = named.contains(&id) || named.len() < MOST_TARGETS;
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
    }

    /// Shows how the breakers stand. Several keys of a provider are several targets with one gauge: it shows the worst of them.
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

    /// All of it as Prometheus reads it.
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
        for number in 0..2 * MOST_TARGETS {
            meters.target("openai", &format!("m{number}")).attempts.inc();
        }
        let lines = meters.text().lines().filter(|line| line.starts_with("koboshi_attempts_total")).count();
        assert_eq!(lines, MOST_TARGETS + 1);
        assert!(meters.text().contains("gen_ai_request_model=\"other\"} 300"));
    }
}
