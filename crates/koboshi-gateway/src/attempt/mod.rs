//! One attempt: sends a request within its time limits, and classifies what is no answer.
//!
//! The [`Journey`] decides what follows; this module has the limits, the headers and the classification.

pub(crate) mod exhausted;
pub(crate) mod journey;
pub(crate) mod learn;
pub(crate) mod probe;
pub(crate) mod queue;
pub(crate) mod rescue;
pub(crate) mod unavailable;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use jiff::Timestamp;
use koboshi::classify::Answer;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::redact::{Redactor, without_prompt};
use koboshi::time::Moment;
use koboshi_config::gateway::ProviderKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::Request;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};
use tokio::time::{Instant, timeout_at};

use crate::attempt::journey::{Journey, OpenAttempt};
use crate::http::upstream::connection_fault::{not_served, timed_out};
use crate::http::upstream::interface::Interface;
use crate::http::upstream::{Destination, ProviderRequest, USER_AGENT_VALUE, UpstreamAnswer, Writer};
use crate::observe::names;
use crate::route::credential::Credential;
use crate::route::target::Target;
use crate::route::token::IssuedToken;
use crate::shared::attempt_guard::AttemptGuard;
use crate::shared::context::RequestContext;
use koboshi_wire::http1::Fields;

/// How much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Longer errors are not compared with the prompt before they are classified.
const MAX_COMPARED: usize = 16 * 1024;

/// Longer answers are not searched for an error.
const MAX_REASON: usize = 2048;

/// The longest code or name of a field that an error has.
const MAX_FIELD: usize = 200;
/// Compiled when the first error of a provider is read.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// The version of Anthropic's API that we speak.
static VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// Anthropic accepts the token of a login only with this.
static LOGIN: HeaderValue = HeaderValue::from_static("oauth-2025-04-20");

/// How a request is sent to a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// What is asked for, in the client's dialect.
    pub(crate) interface: Interface,
    pub(crate) streams: bool,
    /// How many tokens the answer may have.
    pub(crate) max_output: u64,
}

/// The time limits of an attempt.
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
    pub(crate) wall: Timestamp,
    /// The token that it was sent with, where the provider needs one.
    pub(crate) token: Option<Arc<IssuedToken>>,
}

impl Journey<'_> {
    /// Sends, and waits for the head of the answer.
    pub(crate) async fn send(
        &mut self,
        target: &Target,
        shape: &Shape,
        body: &Bytes,
        began: Moment,
        attempt_guard: &mut AttemptGuard,
    ) -> Result<BegunAttempt, (Box<Fault>, Timestamp)> {
        let state = &self.core.state;
        // The first attempt follows so soon that the wall clock need not be read again; later the machine may have slept.
        let is_first = self.context.attempts.get() == 0;
        let wall = if is_first { self.context.wall_at(began) } else { state.wall() };
        if is_first {
            state.meters.added.observe(began.since(self.context.began).as_secs_f64());
        }
        target.mark_used(began);
        let start = Instant::now();
        let left = self.context.deadline.since(began);
        let total = start + target.timers.total.min(left);
        let first = if shape.streams { target.timers.first_token } else { target.timers.unary };
        let limits = Limits { first: (start + first).min(total), idle: target.timers.idle, total };
        let (interface, path) = target.interface_and_path(shape.interface, shape.streams);
        let rehearsed = self.core.upstream.rehearses().then(|| Box::new(target.rehearsed()));
        let destination = match (&target.provider.origin, path, &rehearsed) {
            (Some(_), None, _) => return Err((not_served(), wall)),
            (_, _, Some(target)) => Destination::Rehearsed { target, interface, streams: shape.streams },
            (Some(origin), Some(path), None) => Destination::Server(origin, path),
            (None, _, None) => {
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
            began: start,
            sends: &self.context.sends,
            on_resend: &|| {
                target.meters.resends.inc();
                self.context.trace.resent();
            },
        };
        self.context.attempt();
        target.meters.attempts.inc();
        target.meters.own_attempts.inc();
        attempt_guard.mark_sent(wall);
        match timeout_at(limits.first, self.core.upstream.send(&request)).await {
            Ok(Ok(answer)) => Ok(BegunAttempt { answer, limits, wall, token }),
            Ok(Err(fault)) => Err((fault, wall)),
            Err(_) => Err((timed_out(too_late(&limits, shape)), wall)),
        }
    }

    /// The token that a target needs, if any; nearly always it is cached.
    async fn token(
        &self,
        target: &Target,
        limits: &Limits,
        shape: &Shape,
    ) -> Result<Option<Arc<IssuedToken>>, Box<Fault>> {
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

    /// Reads and classifies an answer that is no success.
    pub(crate) async fn classify_failed_answer(
        &mut self,
        mut open: Box<OpenAttempt>,
        status: u16,
    ) -> (Box<OpenAttempt>, Box<Fault>) {
        let text = read_error(&mut open, Bytes::new()).await;
        let client = self.context.dialect;
        let is_native = open.target.traits_for(client).dialect == client;
        self.fields = ErrorFields::of(&text, open.place).filter(|_| is_native).map(Box::new);
        let fault = self.classify(&open.head, status, &text, false);
        (open, fault.unwrap_or_else(|| unknown(status)))
    }

    /// Classifies an answer.
    pub(crate) fn classify(
        &self,
        head: &Fields,
        status: u16,
        body: &str,
        stream: bool,
    ) -> Option<Box<Fault>> {
        let headers: Vec<(&str, &str)> = head.pairs().collect();
        let classify = |body: &str| {
            let answer = Answer { status: Some(status), headers: &headers, body, stream, transport: None };
            self.plan.classifier.answer(&answer, &self.core.state.zoned()).map(Box::new)
        };
        let Some(prompt) = self.request.and_then(Request::last_user_text) else { return classify(body) };
        // A user's own words are never evidence: who writes of a wrong key must not have the provider's key rejected.
        let shown =
            if body.len() <= MAX_COMPARED { without_prompt(body, &prompt) } else { Cow::Borrowed(body) };
        let mut fault = classify(&shown)?;
        // Once more, because the text of an object can have been written with escapes.
        if let Cow::Owned(cut) = without_prompt(&fault.detail, &prompt) {
            fault.detail = cut;
        }
        Some(fault)
    }

    /// Classifies an answer that ended with an error: by its finish reason, or by what a relay wrote in place of the text.
    pub(crate) fn ended_for_error(&self, head: &Fields, text: &str, reason: &str) -> Box<Fault> {
        let text = if is_error_object(text) { text } else { "" };
        let body = json!({"choices": [{"message": {"content": text}, "finish_reason": reason}]});
        let fault = self.classify(head, 200, &body.to_string(), false);
        fault.unwrap_or_else(|| Box::new(Fault::of(Kind::ResponseInvalid, "gateway.ended_for_error")))
    }

    /// Classifies an answer that is no stream although one was requested: a page or a list, which may say why.
    pub(crate) async fn no_stream(&self, open: &mut OpenAttempt, begun: Bytes) -> Box<Fault> {
        let text = read_error(open, begun).await;
        self.classify(&open.head, 200, &text, false).unwrap_or_else(not_an_answer)
    }

    /// The fault that a body that is no answer describes.
    pub(crate) fn fault_in(&self, open: &OpenAttempt, body: &[u8]) -> Option<Box<Fault>> {
        let begin = body.get(..MAX_ERROR_BYTES).unwrap_or(body);
        self.classify(&open.head, 200, &String::from_utf8_lossy(begin), false)
    }
}

/// The fields in which OpenAI's dialects name what is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorFields {
    /// The place of the target that named them.
    pub(crate) place: usize,
    pub(crate) code: Option<String>,
    pub(crate) param: Option<String>,
}

impl ErrorFields {
    /// Of an error object; none where it has neither. What may be a secret, or is longer than any name, is left out.
    fn of(body: &str, place: usize) -> Option<Self> {
        let body: Value = serde_json::from_str(body).ok()?;
        let text = |name: &str| {
            let text = body.get("error")?.get(name)?.as_str()?;
            let is_name = !text.is_empty() && text.len() <= MAX_FIELD && !text.contains(char::is_control);
            (is_name && REDACTOR.redact(text) == text).then(|| text.to_owned())
        };
        let fields = Self { place, code: text("code"), param: text("param") };
        (fields.code.is_some() || fields.param.is_some()).then_some(fields)
    }
}

/// Whether a text is what relays write in place of an answer: an error in JSON. A model's own words are never evidence, whatever they say.
fn is_error_object(text: &str) -> bool {
    let text = text.trim();
    let has_error_field = |fields: Map<String, Value>| {
        ["error", "errors", "message", "code", "detail"].iter().any(|name| fields.contains_key(*name))
    };
    text.len() <= MAX_REASON && text.starts_with('{') && serde_json::from_str(text).is_ok_and(has_error_field)
}

/// Which limit passes first.
fn too_late(limits: &Limits, shape: &Shape) -> Sub {
    match shape.streams {
        _ if limits.first >= limits.total => Sub::Total,
        true => Sub::FirstContent,
        false => Sub::Unary,
    }
}

/// The beginning of a body that is no answer, complete or not.
async fn read_error(open: &mut OpenAttempt, begun: Bytes) -> String {
    let mut text = begun.to_vec();
    let limit = open.limits.total.min(Instant::now() + open.limits.idle);
    while text.len() < MAX_ERROR_BYTES
        && let Ok(Some(Ok(block))) = timeout_at(limit, open.body.next()).await
    {
        text.extend_from_slice(&block);
    }
    text.truncate(MAX_ERROR_BYTES);
    String::from_utf8_lossy(&text).into_owned()
}

fn unknown(status: u16) -> Box<Fault> {
    let mut fault = Box::new(Fault::of(Kind::ResponseInvalid, "gateway.status"));
    fault.status = Some(status);
    fault
}

/// The headers of a request to a provider: of the client's headers only those that it needs.
fn headers(
    target: &Target,
    interface: Interface,
    shape: &Shape,
    token: Option<&IssuedToken>,
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

/// Beta features of Anthropic's API: those that the client names, if it speaks that dialect and its body is sent unchanged.
fn betas(of_client: Option<&HeaderValue>, speaks_it: bool, login: bool) -> Option<&HeaderValue> {
    of_client.filter(|_| speaks_it).or(login.then_some(&LOGIN))
}

/// An answer that no client could use.
pub(crate) fn not_an_answer() -> Box<Fault> {
    let mut fault = Box::new(Fault::of(Kind::ResponseInvalid, "gateway.no_answer"));
    fault.sub = Some(Sub::Empty);
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_an_error_are_names_and_nothing_else() {
        let of = |error: Value| ErrorFields::of(&json!({"error": error}).to_string(), 0);
        let (code, param) = (Some("unsupported_value".to_owned()), Some("messages[0].role".to_owned()));
        let both = json!({"code": "unsupported_value", "param": "messages[0].role", "message": "x"});
        assert_eq!(of(both), Some(ErrorFields { place: 0, code, param }));
        for none in [json!({"code": 400, "param": null}), json!("text"), json!({"param": "x".repeat(999)})] {
            assert_eq!(of(none), None);
        }
        assert_eq!(of(json!({"param": "sk-proj-Zq8Lw3vN0tYx1Kf6Rb2mZq8Lw3vN"})), None);
        assert_eq!(ErrorFields::of("no JSON", 0), None);
    }

    #[test]
    fn the_beta_header_of_a_client_of_the_dialect_is_forwarded() {
        let asked = HeaderValue::from_static("context-1m-2025-08-07,oauth-2025-04-20");
        assert_eq!(betas(Some(&asked), true, false), Some(&asked));
        assert_eq!(betas(Some(&asked), true, true), Some(&asked), "the client that logs in names it itself");
        assert_eq!(betas(Some(&asked), false, false), None, "the body was written by us");
        assert_eq!(betas(None, true, true), Some(&LOGIN));
        assert_eq!(betas(None, true, false), None);
    }
}
