//! The trace of a request: one span for the request, one beneath it for every attempt.
//!
//! Names are those of the GenAI conventions; others are under `koboshi.`. A span contains nothing of a prompt or an answer,
//! and no text of a provider: only names, numbers and kinds. A client's `traceparent` is continued, and one that is not
//! sampled stays so; it is *not* sent to providers. Spans go to a bounded queue ([`sink`]); a request never waits for it.

mod sink;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use koboshi::fault::Fault;
use koboshi::remedy::Remedy;
use koboshi_store::{Clock, SystemClock};
use koboshi_wire::step::Usage;
use opentelemetry::propagation::Extractor;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::observe::names::remedy_name;
use crate::observe::otlp::scope;
use crate::route::shown;
use crate::route::target::Target;
use crate::shared::attempt_guard::WithdrawReason;
use crate::shared::context::RequestContext;
use crate::shared::disclosure::{DegradeSource, Disclosure};
use koboshi_wire::http1::Fields;

pub(crate) use sink::Sink;

/// Model names come from clients; a longer one is cut.
const MAX_NAME: usize = 100;

/// The trace of one request, or none. Dropping the last copy ends the request's span.
#[derive(Clone, Default)]
pub(crate) struct Trace(Option<Arc<RequestSpan>>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Trace(on)" } else { "Trace(off)" })
    }
}

/// A request that is being served.
struct RequestSpan {
    sink: Arc<Sink>,
    own: SpanContext,
    parent: SpanContext,
    began: Timestamp,
    operation: &'static str,
    tenant: String,
    request: String,
    progress: Mutex<Progress>,
}

/// What is known of it until now.
#[derive(Default)]
struct Progress {
    model: String,
    attempts: u32,
    /// How often it was sent again within an attempt.
    resends: u32,
    served_by: Option<(Arc<str>, Arc<str>)>,
    usage: Option<Usage>,
    status: Option<u16>,
    degraded: Option<DegradeSource>,
    hit: bool,
    fault: Option<&'static str>,
    /// When the client had the whole answer.
    finished: Option<Timestamp>,
}

impl Trace {
    /// Begins the trace of a request.
    pub(crate) fn begin(
        sink: &Arc<Sink>,
        headers: &Fields,
        context: &RequestContext,
        operation: &'static str,
    ) -> Self {
        let parent = client_span(headers);
        if parent.is_valid() && !parent.is_sampled() {
            return Self::default();
        }
        let trace = if parent.is_valid() { parent.trace_id() } else { sink.new_trace() };
        Self(Some(Arc::new(RequestSpan {
            own: sampled_context(trace, sink.new_span(), parent.trace_state().clone()),
            sink: Arc::clone(sink),
            parent,
            began: context.wall,
            operation,
            tenant: context.tenant.name().to_owned(),
            request: context.id.to_string(),
            progress: Mutex::default(),
        })))
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        if let Some(root) = &self.0 {
            change(&mut root.progress());
        }
    }

    /// Records that a request met a dead connection and was sent again.
    pub(crate) fn resent(&self) {
        self.update(|progress| progress.resends = progress.resends.saturating_add(1));
    }

    /// Records the model that the client asks for.
    pub(crate) fn asks_for(&self, model: &str) {
        self.update(|progress| progress.model = shown::model(model).chars().take(MAX_NAME).collect());
    }

    /// Records the head of an answer; the last one counts.
    pub(crate) fn answers(&self, status: u16, facts: &Disclosure) {
        self.update(|progress| {
            progress.status = Some(status);
            progress.degraded = facts.degraded;
            progress.hit = facts.hit;
            progress.fault = facts.fault;
        });
    }

    /// Records that the client has the whole answer.
    pub(crate) fn finish(&self) {
        self.update(|progress| progress.finished = Some(SystemClock.wall()));
    }

    /// Ends the span of an attempt that was answered to its end.
    pub(crate) fn succeeded(&self, target: &Target, began: Timestamp, usage: Option<Usage>) {
        let Some(root) = &self.0 else { return };
        let mut more = Vec::new();
        if let Some(usage) = usage {
            more.extend(tokens(&usage));
        }
        self.update(|progress| {
            progress.served_by = Some((Arc::clone(&target.provider.name), Arc::clone(&target.shown_model)));
            if let Some(usage) = usage {
                progress.usage = Some(progress.usage.unwrap_or_default().plus(usage));
            }
        });
        root.attempt(target, began, more, Status::Unset);
    }

    /// Ends the span of an attempt that failed.
    pub(crate) fn failed(&self, target: &Target, began: Timestamp, fault: &Fault, remedy: Remedy) {
        let Some(root) = &self.0 else { return };
        let mut more = vec![
            KeyValue::new("error.type", fault.kind.name()),
            KeyValue::new("koboshi.remedy", remedy_name(remedy)),
        ];
        more.extend(fault.sub.map(|sub| KeyValue::new("koboshi.fault.sub", sub.name())));
        more.extend(fault.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status))));
        root.attempt(target, began, more, Status::error(fault.kind.name()));
    }
}

impl Trace {
    /// Ends the span of an attempt that was given up without counting against its target.
    pub(crate) fn withdrawn(
        &self,
        target: &Target,
        began: Timestamp,
        why: WithdrawReason,
        fault: Option<&Fault>,
    ) {
        let Some(root) = &self.0 else { return };
        let kind = fault.map_or("cancelled", |fault| fault.kind.name());
        let mut more =
            vec![KeyValue::new("error.type", kind), KeyValue::new("koboshi.withdrawn", why.name())];
        let status = fault.and_then(|fault| fault.status);
        more.extend(status.map(|status| KeyValue::new("http.response.status_code", i64::from(status))));
        root.attempt(target, began, more, Status::error(kind));
    }
}

impl RequestSpan {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the span of one attempt.
    fn attempt(&self, target: &Target, began: Timestamp, more: Vec<KeyValue>, status: Status) {
        let number = {
            let mut progress = self.progress();
            progress.attempts = progress.attempts.saturating_add(1);
            progress.attempts
        };
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", self.operation),
            KeyValue::new("gen_ai.provider.name", Arc::clone(&target.provider.name)),
            KeyValue::new("gen_ai.request.model", Arc::clone(&target.shown_model)),
            KeyValue::new("koboshi.target", Arc::clone(&target.name)),
        ];
        if number > 1 {
            attributes.push(KeyValue::new("http.request.resend_count", i64::from(number - 1)));
        }
        if let Some(origin) = &target.provider.origin {
            attributes.push(KeyValue::new("server.address", origin.host().to_owned()));
            attributes.push(KeyValue::new("server.port", i64::from(origin.port())));
        }
        attributes.extend(more);
        let name = format!("{} {}", self.operation, target.shown_model);
        let own = sampled_context(self.own.trace_id(), self.sink.new_span(), self.own.trace_state().clone());
        self.sink.put(span(own, &self.own, SpanKind::Client, name, began, attributes, status, None));
    }

    /// The span of the request itself.
    fn request_span(&self) -> SpanData {
        let progress = self.progress();
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", self.operation),
            KeyValue::new("koboshi.attempts", i64::from(progress.attempts)),
            KeyValue::new("koboshi.tenant", self.tenant.clone()),
            KeyValue::new("koboshi.request.id", self.request.clone()),
        ];
        if progress.resends > 0 {
            attributes.push(KeyValue::new("koboshi.resends", i64::from(progress.resends)));
        }
        if !progress.model.is_empty() {
            attributes.push(KeyValue::new("gen_ai.request.model", progress.model.clone()));
        }
        if let Some((provider, model)) = &progress.served_by {
            attributes.push(KeyValue::new("gen_ai.provider.name", Arc::clone(provider)));
            attributes.push(KeyValue::new("gen_ai.response.model", Arc::clone(model)));
        }
        attributes.extend(progress.usage.as_ref().into_iter().flat_map(tokens));
        attributes.extend(progress.degraded.map(|source| KeyValue::new("koboshi.degraded", source.name())));
        attributes.extend(progress.hit.then(|| KeyValue::new("koboshi.cache", "hit")));
        attributes.extend(
            progress.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status))),
        );
        let failed = match (progress.finished.is_some(), progress.status) {
            (false, None | Some(..400)) => Some("cancelled"),
            (_, Some(400..)) => Some(progress.fault.unwrap_or("internal")),
            _ => None,
        };
        attributes.extend(failed.map(|kind| KeyValue::new("error.type", kind)));
        let status = failed.map_or(Status::Unset, Status::error);
        let name = format!("{} {}", self.operation, progress.model);
        span(
            self.own.clone(),
            &self.parent,
            SpanKind::Server,
            name.trim().to_owned(),
            self.began,
            attributes,
            status,
            progress.finished,
        )
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        self.sink.put(self.request_span());
    }
}

/// The headers, as the propagator reads them.
struct Carrier<'h>(&'h Fields);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.text(key)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.pairs().map(|(name, _)| name).collect()
    }
}

/// The client's span, from W3C's `traceparent`.
fn client_span(headers: &Fields) -> SpanContext {
    if !headers.has("traceparent") {
        return SpanContext::NONE;
    }
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Carrier(headers));
    context.span().span_context().clone()
}

fn sampled_context(trace: TraceId, span: SpanId, state: TraceState) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state)
}

/// A span that ended then, or ends now.
#[expect(clippy::too_many_arguments, reason = "one place where a span is made")]
fn span(
    own: SpanContext,
    parent: &SpanContext,
    kind: SpanKind,
    name: String,
    began: Timestamp,
    attributes: Vec<KeyValue>,
    status: Status,
    ended: Option<Timestamp>,
) -> SpanData {
    SpanData {
        span_context: own,
        parent_span_id: parent.span_id(),
        parent_span_is_remote: parent.is_remote(),
        span_kind: kind,
        name: name.into(),
        start_time: SystemTime::from(began),
        end_time: SystemTime::from(ended.unwrap_or_else(|| SystemClock.wall())),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: scope(),
    }
}

fn tokens(usage: &Usage) -> [KeyValue; 2] {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    [
        KeyValue::new("gen_ai.usage.input_tokens", count(usage.input)),
        KeyValue::new("gen_ai.usage.output_tokens", count(usage.output)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(traceparent: &str) -> SpanContext {
        client_span(&Fields::of([("traceparent", traceparent.as_bytes())]))
    }

    #[test]
    fn only_a_valid_span_of_the_client_is_continued() {
        let good = with("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert!(good.is_valid() && good.is_sampled() && good.is_remote());
        assert_eq!(good.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let unsampled = with("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
        assert!(unsampled.is_valid() && !unsampled.is_sampled());
        for bad in [
            "", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-xyz-00f067aa0ba902b7-01",
        ] {
            assert!(!with(bad).is_valid(), "{bad}");
        }
    }
}
