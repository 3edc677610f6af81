//! What the client gets besides the answer itself: heads, disclosure headers, errors in its dialect and language.
//!
//! A provider's message is forwarded, redacted and bounded, where the client caused the fault or can fix it; for every other kind our own
//! sentence says more. The `koboshi` object lists all attempts, as kinds and codes.
//!
//! The official SDKs retry twice by default and obey `retry-after`, so that header is only sent where two such waits are short. A longer wait
//! is in the sentence and in the `koboshi` object, and the error is final.

pub(crate) mod endpoints;
pub(crate) mod immediate;
pub(crate) mod refusal;
pub(crate) mod sentence;
pub(crate) mod simulated;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use jiff::Timestamp;
use koboshi::call::FailedAttempt;
use koboshi::fault::{Fault, Kind, Origin, Scope, Sub};
use koboshi_report::phrase::Lang;
use koboshi_wire::Dialect;
use koboshi_wire::any::answer;
use koboshi_wire::failure::Failure;
use koboshi_wire::http1::Heading;
use serde_json::{Value, json};

use crate::attempt::journey::{Journey, JourneyEnd};
use crate::observe::names;
use crate::reply::refusal::Refusal;
use crate::reply::sentence::{joined, sentences};
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::disclosure::{DegradeSource, Disclosure, Lack};
use crate::shared::program::{Program, Reply, Situation};
use crate::shared::state::SharedState;

/// The longest wait that is sent to a library as `retry-after`: its defaults wait twice.
const MAX_LIBRARY_WAIT: Duration = Duration::from_secs(5);
/// The same for agent programs, which show that they wait.
const MAX_PROGRAM_WAIT: Duration = Duration::from_secs(60);

impl Disclosure {
    /// Records the last fault until now.
    pub(crate) fn note_last_fault(&mut self, journey: &Journey<'_>) {
        self.fault = journey.last_fault().or(self.fault);
    }
}

/// The head of an answer.
pub(crate) fn head(status: u16, content: &str, context: &RequestContext, facts: &Disclosure) -> Heading {
    context.trace.answers(status, facts);
    let mut heading = Heading::of(status);
    heading.add(CONTENT_TYPE, content);
    heading.add(&names::REQUEST_ID, &*context.id);
    if context.dialect.has_vendor_headers() {
        heading.add(&names::ANTHROPIC_REQUEST_ID, &*context.id);
    }
    heading.lines.extend(&facts.limits);
    let attempts = context.attempts.get();
    count(&mut heading, &names::ATTEMPTS, attempts);
    if context.sends.count() != attempts {
        count(&mut heading, &names::SENDS, context.sends.count());
    }
    let mut text = |name: &HeaderName, value: Option<&str>| {
        if let Some(value) = value {
            heading.add(name, value);
        }
    };
    text(&names::TARGET, facts.target.as_deref());
    text(&names::SIMULATED, facts.simulated.then_some("true"));
    text(&names::DEGRADED, facts.degraded.map(DegradeSource::name));
    text(&names::CACHE, facts.hit.then_some("hit"));
    text(&names::FAULT, facts.fault);
    text(&names::GUARD, facts.guard.as_deref());
    text(&names::TRANSLATED, facts.translated);
    if let Some((before, after)) = facts.trimmed {
        heading.add(&names::TRIMMED, format!("{before} to {after} tokens"));
    }
    if facts.reasks > 0 {
        count(&mut heading, &names::REASK, facts.reasks);
    }
    if facts.repaired > 0 {
        count(&mut heading, &names::REPAIRED, facts.repaired);
    }
    heading
}

/// The head of a prepared answer. With an error status it says that a retry does not help, as every final error does.
pub(crate) fn head_with(status: u16, content: &str, context: &RequestContext, facts: &Disclosure) -> Heading {
    let mut heading = head(status, content, context, facts);
    if status >= 400 {
        heading.add(&names::SHOULD_RETRY, "false");
    }
    heading
}

/// Adds a count header: nearly always a small number, which need not be formatted.
fn count(heading: &mut Heading, name: &HeaderName, count: u32) {
    const SMALL: [&str; 4] = ["0", "1", "2", "3"];
    match usize::try_from(count).ok().and_then(|count| SMALL.get(count)) {
        Some(small) => heading.add(name, small),
        None => heading.add(name, count.to_string()),
    }
}

/// The head of a stream.
pub(crate) fn stream_head(context: &RequestContext, facts: &Disclosure) -> Heading {
    stream_head_with(200, context, facts)
}

/// The head of a stream of a prepared answer.
pub(crate) fn stream_head_with(status: u16, context: &RequestContext, facts: &Disclosure) -> Heading {
    let content = if context.list { "application/json" } else { "text/event-stream" };
    let mut heading = head_with(status, content, context, facts);
    heading.add(CACHE_CONTROL, "no-cache");
    // Proxies that buffer would hold back the keep-alive frames too.
    heading.add(&names::BUFFERING, "no");
    heading
}

/// An error, ready to be sent as a body or inside a stream.
pub(crate) struct ErrorReply {
    pub(crate) status: u16,
    pub(crate) heading: Heading,
    dialect: Dialect,
    kind: Kind,
    code: String,
    message: String,
    param: Option<String>,
    request: String,
    /// Seconds, as the body states them.
    retry_after: Option<u64>,
    resets_at: Option<i64>,
    is_final: bool,
    koboshi: Value,
}

impl ErrorReply {
    /// The failure, for trace and log.
    pub(crate) fn failure(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            status: self.status,
            message: &self.message,
            code: Some(&self.code),
            param: self.param.as_deref(),
            request_id: Some(&self.request),
            retry_after: self.retry_after,
            resets_at: self.resets_at,
            is_final: self.is_final,
            koboshi: Some(&self.koboshi),
        }
    }

    /// As the body of an answer.
    pub(crate) fn body(&self) -> Bytes {
        answer::error(self.dialect, &self.failure())
    }
}

/// The error for a journey without an answer.
pub(crate) fn failure_reply(
    state: &SharedState,
    plan: &Plan,
    context: &RequestContext,
    targets: &[std::sync::Arc<Target>],
    ended: &JourneyEnd,
    facts: &Disclosure,
) -> ErrorReply {
    let trail: Vec<Value> = ended.failed.iter().map(|failed| tried(plan, targets, failed)).collect();
    let own_credential = !targets.iter().any(|target| target.is_borrowed);
    let fault = &*ended.fault;
    let status = status_of(fault, own_credential);
    let wall = state.wall();
    let passing = |until: Option<Timestamp>| until.filter(|_| fault.advice.later).map(|until| (until, wall));
    let until = passing(ended.until);
    let chain = ended.chain.as_deref();
    let all: Vec<(&str, Kind)> = chain
        .iter()
        .flat_map(|chain| &chain.all)
        .filter_map(|(place, kind)| Some((&*targets.get(*place)?.name, *kind)))
        .collect();
    let lacks: &[Lack] = if fault.sub == Some(Sub::Capability) { &facts.lacks } else { &[] };
    let differs = ended.failed.iter().any(|failed| failed.fault.sub == Some(Sub::Differs));
    let provider = ended.target().and_then(|place| targets.get(place)).map(|target| &*target.provider.name);
    let texts = sentences(state, plan, context, fault, status, until, provider)
        .naming(state, context, if ended.untried { lacks } else { &[] })
        .after_other_answer(state, context, differs)
        .after_all(state, context, &all)
        .and_resume(state, plan, context, ended.parked.as_ref());
    let until = until.or(passing(chain.and_then(|chain| chain.next_probe)));
    // Who may not know the provider's words may not know its fields either.
    let fields = ended.fields.as_deref().filter(|_| texts.detail.is_some());
    let words = Words {
        sentence: &texts.whole,
        message: &texts.message,
        suggestion: &texts.suggestion,
        detail: texts.detail.as_deref(),
        code: fields.and_then(|fields| fields.code.as_deref()),
        param: lacks
            .first()
            .map(|lack| lack.at.as_str())
            .or(fields.and_then(|fields| fields.param.as_deref())),
        user: texts.user.as_deref(),
    };
    let mut facts = facts.clone();
    facts.fault = Some(fault.kind.name());
    // An agent program that obeys a wait gets it with the error that begins it, too: its retry comes when the wait is over. A library's
    // retries are counted from the first error on, so a library gets the wait with the next error.
    let is_program = context.program != Program::Other;
    let untried = ended.untried || is_program && ended.rests;
    let outcome = Outcome { fault, status, until, untried, trail: &trail };
    write(plan, context, &outcome, &words, &facts)
}

/// The error of a request that the gateway refused by itself.
pub(crate) fn refusal(
    plan: &Plan,
    context: &RequestContext,
    refusal: &Refusal,
    message: &str,
    suggestion: &str,
) -> ErrorReply {
    let Refusal { kind, status, ref param, retry_after, .. } = *refusal;
    let until = retry_after.and_then(|after| Some((context.wall.checked_add(after).ok()?, context.wall)));
    let mut fault = Fault::of(kind, "gateway.edge");
    // No target was asked, so none can help, and nothing but this request is affected.
    fault.advice.other = false;
    fault.scope = Scope::Request;
    if refusal.is_of_gateway() {
        fault.origin = Origin::Koboshi;
    }
    let sentence = joined(context.lang, [message, suggestion]);
    let words = Words {
        sentence: &sentence,
        message,
        suggestion,
        detail: None,
        code: None,
        param: param.as_deref(),
        user: None,
    };
    let facts = Disclosure { fault: Some(kind.name()), ..Disclosure::default() };
    let outcome = Outcome { fault: &fault, status, until, untried: true, trail: &[] };
    write(plan, context, &outcome, &words, &facts)
}

struct Words<'a> {
    /// The message in the dialect's envelope.
    sentence: &'a str,
    /// What failed.
    message: &'a str,
    suggestion: &'a str,
    /// The provider's message, where the client may see it.
    detail: Option<&'a str>,
    /// The code of the provider, where it names what the client can mend.
    code: Option<&'a str>,
    param: Option<&'a str>,
    user: Option<&'a str>,
}

/// The end of a request without an answer.
struct Outcome<'a> {
    fault: &'a Fault,
    status: u16,
    /// When another try may help, and the current time.
    until: Option<(Timestamp, Timestamp)>,
    /// No target was asked, or none would be before that time.
    untried: bool,
    trail: &'a [Value],
}

fn write(
    plan: &Plan,
    context: &RequestContext,
    outcome: &Outcome<'_>,
    words: &Words<'_>,
    facts: &Disclosure,
) -> ErrorReply {
    let Outcome { fault, status, until, untried, trail } = *outcome;
    let wait = until.map(|(until, now)| Duration::try_from(until.duration_since(now)).unwrap_or_default());
    let seconds = wait.map(|wait| wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)));
    let mut koboshi = json!({
        "errorCode": fault.kind.code(&plan.config.code_prefix),
        "kind": fault.kind.name(),
        "sub": fault.sub.map(Sub::name),
        "scope": fault.scope.name(),
        "message": words.message,
        "suggestion": words.suggestion,
        "detail": words.detail,
        "userMessage": words.user,
        "retryable": fault.advice.later,
        "advice": {"same": fault.advice.same, "other": fault.advice.other},
        "retryAfterSeconds": seconds,
        "attempts": trail,
        "requestId": &*context.id,
        "lang": if context.lang == Lang::Ja { "ja" } else { "en" },
    });
    if let Some(koboshi) = koboshi.as_object_mut().filter(|_| fault.origin != fault.kind.row().origin) {
        koboshi.insert("origin".to_owned(), json!(fault.origin.name()));
    }
    if let Some(koboshi) = koboshi.as_object_mut().filter(|_| !facts.lacks.is_empty()) {
        koboshi.insert("lacks".to_owned(), json!(&facts.lacks));
    }
    let max_wait = if context.program == Program::Other { MAX_LIBRARY_WAIT } else { MAX_PROGRAM_WAIT };
    let again = untried && wait.is_some_and(|wait| wait <= max_wait);
    let situation = Situation { kind: fault.kind, passes: fault.advice.later, again, untried };
    let short = wait.is_some_and(|wait| wait <= MAX_LIBRARY_WAIT);
    let usual = Reply {
        status,
        header: seconds.filter(|_| short || context.program != Program::Other),
        body: seconds,
    };
    let reply = context.program.reply(context.dialect, usual, situation);
    // For a client of `responses` a time to reset is the sign of Codex' own limit; libraries know the usual words of a limit.
    let shows_reset = !context.dialect.has_usage_limit_status()
        || context.program == Program::Codex && wait.is_some_and(|wait| wait > MAX_PROGRAM_WAIT);
    let mut heading = head(reply.status, "application/json", context, facts);
    // The SDKs retry by themselves, and each of their retries would try the whole chain again.
    heading.add(&names::SHOULD_RETRY, if again { "true" } else { "false" });
    if let Some(seconds) = reply.header {
        heading.add(RETRY_AFTER, seconds.to_string());
    }
    ErrorReply {
        status: reply.status,
        heading,
        dialect: context.dialect,
        // Codex gives up for good at the word for a quota, also where it would have been renewed within its own wait.
        kind: match fault.kind {
            Kind::QuotaExceeded if again && context.program == Program::Codex => Kind::RateLimited,
            kind => kind,
        },
        code: words.code.unwrap_or(fault.kind.name()).to_owned(),
        message: words.sentence.trim().to_owned(),
        param: words.param.map(str::to_owned),
        request: context.id.to_string(),
        retry_after: reply.body,
        resets_at: until.filter(|_| shows_reset).map(|(until, _)| until.as_second()),
        is_final: !again,
        koboshi,
    }
}

/// One attempt for the list: what failed where, without the provider's message.
fn tried(plan: &Plan, targets: &[std::sync::Arc<Target>], failed: &FailedAttempt) -> Value {
    let fault = &failed.fault;
    json!({
        "target": targets.get(failed.target).map(|target| &*target.name),
        "kind": fault.kind.name(),
        "sub": fault.sub.map(Sub::name),
        "errorCode": fault.kind.code(&plan.config.code_prefix),
        "status": fault.status,
    })
}

/// The status for the client. A rejected credential of the gateway gets another one, or the client would throw its own key away.
fn status_of(fault: &Fault, own_credential: bool) -> u16 {
    match fault.kind {
        Kind::Unauthorized | Kind::TokenExpired | Kind::PermissionDenied if own_credential => 502,
        kind => kind.row().http_status.unwrap_or(500),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_wire::http1::Fields;

    #[test]
    fn limits_are_handed_on_once_and_only_those_of_the_last_answer() {
        let mut facts = Disclosure::default();
        let head = |pairs: &[(&'static str, &'static str)]| {
            Fields::of(pairs.iter().map(|(name, value)| (*name, value.as_bytes())))
        };
        facts.limited(&head(&[("x-ratelimit-reset", "9s")]));
        facts.limited(&head(&[
            ("x-ratelimit-remaining-requests", "5"),
            ("x-request-id", "theirs"),
            ("x-ratelimit-remaining-requests", "5"),
            ("anthropic-ratelimit-tokens-limit", "100"),
        ]));
        let lines = "x-ratelimit-remaining-requests: 5\r\nanthropic-ratelimit-tokens-limit: 100\r\n";
        assert_eq!(facts.limits.as_bytes(), lines.as_bytes());
    }
}
