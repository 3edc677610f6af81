//! One attempt: a request goes out in time, and what is no answer is read for what it means.
//!
//! What is done about it is the [`Journey`]'s; here are the limits, the headers and the reading.

pub(crate) mod exhausted;
pub(crate) mod journey;
pub(crate) mod learn;
pub(crate) mod queue;
pub(crate) mod rescue;
pub(crate) mod unavailable;

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use jiff::Timestamp;
use koboshi::classify::Answer;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::time::Moment;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::Dialect;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

use crate::attempt::journey::{Journey, Open};
use crate::http::upstream::connection_fault::{not_served, timed_out};
use crate::http::upstream::interface::Interface;
use crate::http::upstream::{Destination, ProviderRequest, USER_AGENT_VALUE, UpstreamAnswer, Writer};
use crate::observe::names;
use crate::route::credential::Credential;
use crate::route::target::Target;
use crate::route::token::Issued;
use crate::shared::attempt_guard::AttemptGuard;
use crate::shared::context::RequestContext;
use koboshi_wire::http1::Fields;

/// How much of an error's body is read.
const LONGEST_ERROR: usize = 64 * 1024;

/// How much of an answer's text may tell why it ended.
const LONGEST_REASON: usize = 2048;

/// The version of Anthropic's interface that is spoken.
static VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// Without it Anthropic takes no token of a login.
static LOGIN: HeaderValue = HeaderValue::from_static("oauth-2025-04-20");

/// How a request is put to a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// What is asked for, in the client's dialect.
    pub(crate) interface: Interface,
    pub(crate) streams: bool,
    /// Tokens that the answer may have.
    pub(crate) most_output: u64,
}

/// When an attempt has taken too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Until the first content, or until an answer that is not streamed begins.
    pub(crate) first: Instant,
    /// Between two pieces.
    pub(crate) idle: Duration,
    /// Until the end.
    pub(crate) total: Instant,
}

/// An attempt whose answer has begun.
pub(crate) struct BegunAttempt {
    pub(crate) answer: UpstreamAnswer,
    pub(crate) limits: Limits,
    pub(crate) began: Moment,
    pub(crate) wall: Timestamp,
    /// The token that it was sent with, where the provider wants one.
    pub(crate) token: Option<Arc<Issued>>,
}

impl Journey<'_> {
    /// Sends, and waits for the head of the answer.
    pub(crate) async fn send(
        &mut self,
        target: &Target,
        shape: &Shape,
        body: &Bytes,
        attempt_guard: &mut AttemptGuard,
    ) -> Result<BegunAttempt, (Box<Fault>, Timestamp)> {
        let state = &self.core.state;
        let began = state.now();
        // The first one follows so soon that the clock on the wall need not be read again; later the machine may have slept.
        let is_first = self.context.attempts.get() == 0;
        let wall = if is_first { self.context.wall_at(began) } else { state.wall() };
        if is_first {
            state.meters.added.observe(began.since(self.context.began).as_secs_f64());
        }
        target.is_used(began);
        let start = Instant::now();
        let left = self.context.deadline.since(began);
        let total = start + target.timers.total.min(left);
        let first = if shape.streams { target.timers.first } else { target.timers.whole };
        let limits = Limits { first: (start + first).min(total), idle: target.timers.idle, total };
        let (interface, path) = target.asks(shape.interface, shape.streams);
        let destination = match (&target.provider.origin, path) {
            (Some(origin), Some(path)) => Destination::Server(origin, path),
            (Some(_), None) => return Err((not_served(), wall)),
            (None, _) => {
                let (stands_in, streams) = (self.plan.stands_in, shape.streams);
                Destination::Sim { model: &target.model, stands_in, interface, streams }
            }
        };
        let token = match self.token(target, &limits, shape).await {
            Ok(token) => token,
            Err(fault) => return Err((fault, wall)),
        };
        let request = ProviderRequest {
            destination,
            headers: &|write_header| {
                headers(target, interface, shape, token.as_deref(), self.context, write_header);
            },
            body,
            connect_limit: target.timers.connect,
            sends: &self.context.sends,
            on_resend: &|| {
                target.meters.resends.inc();
                self.context.trace.resent();
            },
        };
        self.context.attempt();
        target.meters.attempts.inc();
        attempt_guard.mark_sent(wall);
        match timeout_at(limits.first, self.core.upstream.send(&request)).await {
            Ok(Ok(answer)) => Ok(BegunAttempt { answer, limits, began, wall, token }),
            Ok(Err(fault)) => Err((fault, wall)),
            Err(_) => Err((timed_out(too_late(&limits, shape)), wall)),
        }
    }

    /// The token that a target wants, if it wants one. Nearly always it is there.
    async fn token(
        &self,
        target: &Target,
        limits: &Limits,
        shape: &Shape,
    ) -> Result<Option<Arc<Issued>>, Box<Fault>> {
        let Credential::Token(token) = &target.credential else { return Ok(None) };
        if let Some(ready) = token.ready() {
            return Ok(Some(ready));
        }
        let (form_client, log) = (self.core.upstream.form_client(), &self.core.state.log);
        match timeout_at(limits.first, Box::pin(token.get(form_client, log))).await {
            Ok(fetched) => fetched.map(Some),
            Err(_) => Err(timed_out(too_late(limits, shape))),
        }
    }

    /// What an answer that is no success means.
    pub(crate) async fn refusal(&self, mut open: Box<Open>, status: u16) -> (Box<Open>, Box<Fault>) {
        let text = read_error(&mut open, Bytes::new()).await;
        let fault = self.classify(&open.head, status, &text, false);
        (open, fault.unwrap_or_else(|| unknown(status)))
    }

    /// What the classifier says of an answer.
    pub(crate) fn classify(
        &self,
        head: &Fields,
        status: u16,
        body: &str,
        stream: bool,
    ) -> Option<Box<Fault>> {
        let headers: Vec<(&str, &str)> = head.pairs().collect();
        let answer = Answer { status: Some(status), headers: &headers, body, stream, transport: None };
        self.plan.classifier.answer(&answer, &self.core.state.zoned()).map(Box::new)
    }

    /// An answer says that it ended for an error: what this word means, or what a relay wrote where the text should be.
    pub(crate) fn ended_for_error(&self, head: &Fields, text: &str, reason: &str) -> Box<Fault> {
        let text = if is_error_object(text) { text } else { "" };
        let body = json!({"choices": [{"message": {"content": text}, "finish_reason": reason}]});
        let fault = self.classify(head, 200, &body.to_string(), false);
        fault.unwrap_or_else(|| Box::new(Fault::of(Kind::ResponseInvalid, "gateway.ended_for_error")))
    }

    /// What came is no stream, though one was asked for: a page or a list, which may say why.
    pub(crate) async fn no_stream(&self, open: &mut Open, begun: Bytes) -> Box<Fault> {
        let text = read_error(open, begun).await;
        self.classify(&open.head, 200, &text, false).unwrap_or_else(not_an_answer)
    }

    /// What a body that is no answer says of itself.
    pub(crate) fn fault_in(&self, open: &Open, body: &[u8]) -> Option<Box<Fault>> {
        let begin = body.get(..LONGEST_ERROR).unwrap_or(body);
        self.classify(&open.head, 200, &String::from_utf8_lossy(begin), false)
    }
}

/// Whether a text is what relays write in place of an answer: an error in JSON. Words of a model are nothing to learn from, whatever they are about.
fn is_error_object(text: &str) -> bool {
    let text = text.trim();
    let named = |text: Map<String, Value>| {
        ["error", "errors", "message", "code", "detail"].iter().any(|name| text.contains_key(*name))
    };
    text.len() <= LONGEST_REASON && text.starts_with('{') && serde_json::from_str(text).is_ok_and(named)
}

/// Which limit it is that passes first.
fn too_late(limits: &Limits, shape: &Shape) -> Sub {
    match shape.streams {
        _ if limits.first >= limits.total => Sub::Total,
        true => Sub::FirstContent,
        false => Sub::Unary,
    }
}

/// The beginning of a body that is no answer. Whether it comes to its end does not matter.
async fn read_error(open: &mut Open, begun: Bytes) -> String {
    let mut text = begun.to_vec();
    let limit = open.limits.total.min(Instant::now() + open.limits.idle);
    while text.len() < LONGEST_ERROR
        && let Ok(Some(Ok(block))) = timeout_at(limit, open.body.next()).await
    {
        text.extend_from_slice(&block);
    }
    text.truncate(LONGEST_ERROR);
    String::from_utf8_lossy(&text).into_owned()
}

fn unknown(status: u16) -> Box<Fault> {
    let mut fault = Box::new(Fault::of(Kind::ResponseInvalid, "gateway.status"));
    fault.status = Some(status);
    fault
}

/// The headers of a request to a provider: nothing of the client's but what it must know.
fn headers(
    target: &Target,
    interface: Interface,
    shape: &Shape,
    token: Option<&Issued>,
    context: &RequestContext,
    write_header: &mut Writer<'_>,
) {
    let json = HeaderValue::from_static("application/json");
    let events = HeaderValue::from_static("text/event-stream");
    write_header(&CONTENT_TYPE, &json);
    write_header(&ACCEPT, if shape.streams { &events } else { &json });
    write_header(&USER_AGENT, &USER_AGENT_VALUE);
    target.credential.write_header(interface, token, write_header);
    if interface.dialect().is_some_and(Dialect::has_vendor_headers) {
        write_header(&names::ANTHROPIC_VERSION, &VERSION);
        let login = target.provider.kind == ProviderKind::Anthropic && target.credential.is_bearer();
        if let Some(betas) = betas(context.betas.as_ref(), interface == shape.interface, login) {
            write_header(&names::ANTHROPIC_BETA, betas);
        }
    }
    write_header(&names::REQUEST_ID, context.id.as_header());
}

/// Newer parts of Anthropic's dialect: those that the client uses, if it speaks it and its body goes out as it came.
fn betas(of_client: Option<&HeaderValue>, speaks_it: bool, login: bool) -> Option<&HeaderValue> {
    of_client.filter(|_| speaks_it).or(login.then_some(&LOGIN))
}

/// Nothing that a client could use.
pub(crate) fn not_an_answer() -> Box<Fault> {
    let mut fault = Box::new(Fault::of(Kind::ResponseInvalid, "gateway.no_answer"));
    fault.sub = Some(Sub::Empty);
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_the_dialect_is_heard_on_its_newer_parts() {
        let asked = HeaderValue::from_static("context-1m-2025-08-07,oauth-2025-04-20");
        assert_eq!(betas(Some(&asked), true, false), Some(&asked));
        assert_eq!(betas(Some(&asked), true, true), Some(&asked), "who logs in says so itself");
        assert_eq!(betas(Some(&asked), false, false), None, "the body was written by us");
        assert_eq!(betas(None, true, true), Some(&LOGIN));
        assert_eq!(betas(None, true, false), None);
    }
}
