//! Requests that the gateway refuses by itself: no provider was asked.
//!
//! Every reason has a message and a suggestion of its own in both languages (`refused-…` in the phrase files). The phrases of a fault's
//! kind do not fit: they describe a provider and its answer. A [`Refusal`] holds the reason and the values to fill in; it becomes
//! text only when the language and the dialect of the client are known. What it repeats of a request (a path, a name) is the client's own,
//! bounded and redacted.

use std::sync::LazyLock;
use std::time::Duration;

use http::header::ALLOW;
use jiff::Zoned;
use koboshi::fault::Kind;
use koboshi::redact::Redactor;
use koboshi::spend::{BudgetUse, Period};
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_wire::{IntakeError, MAX_DEPTH};

use crate::http::body::BodyError;
use crate::reply::endpoints::{self, Vendor};
use crate::reply::{self, ErrorReply};
use crate::route::plan::Plan;
use crate::route::shown::MAX_MODEL;
use crate::shared::agents::AgentsError;
use crate::shared::context::RequestContext;
use crate::shared::state::SharedState;

/// Longer pieces of a request are cut.
const MAX_SHOWN: usize = 120;
/// How many names of agents are shown.
const MAX_AGENTS: usize = 20;
/// A misspelt name is compared with at most this number of routes.
const MAX_COMPARED: usize = 1000;
/// The reason where no route, no provider or no key exists.
const NO_PROVIDER: &str = "no-provider";
/// Limits of the client's key.
const BUDGET_DAY: &str = "budget-day";
const BUDGET_MONTH: &str = "budget-month";
const RATE: &str = "rate";
/// When to retry a request that met a full queue or a gateway that stops: another one may answer at once.
const RETRY_SOON: Duration = Duration::from_secs(1);

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: Kind,
    pub(crate) status: u16,
    /// The phrase: `refused-{reason}`.
    reason: &'static str,
    /// Values for the phrase.
    fills: Vec<(&'static str, PhraseValue)>,
    /// The field that is wrong.
    pub(crate) param: Option<String>,
    /// The allowed methods of a path, where another one was used.
    allow: Option<&'static str>,
    /// After this it may be sent again.
    pub(crate) retry_after: Option<Duration>,
}

/// A value for a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PhraseValue {
    /// This text, in every language.
    Text(String),
    /// These names.
    List(Vec<String>),
    /// Another phrase.
    Phrase(String),
    /// The endpoints for clients of this vendor; of all where it is unknown.
    Endpoints(Option<Vendor>),
}

/// The route that a misspelt name of a model probably means.
fn near_route<'p>(plan: &'p Plan, model: &str) -> Option<&'p str> {
    let model = model.get(..model.floor_char_boundary(MAX_SHOWN))?.to_lowercase();
    let routes = plan.config.routes.keys().map(String::as_str).filter(|name| !name.contains('*'));
    let far = |name: &str| strsim::damerau_levenshtein(&model, &name.to_lowercase());
    let near = routes.take(MAX_COMPARED).map(|name| (far(name), name));
    let near = near.filter(|(far, name)| *far <= (name.chars().count() / 3).max(1) && *far < model.len());
    near.min().map(|(_, name)| name)
}

impl Refusal {
    const fn of(kind: Kind, status: u16, reason: &'static str) -> Self {
        Self { kind, status, reason, fills: Vec::new(), param: None, allow: None, retry_after: None }
    }

    const fn bad(reason: &'static str) -> Self {
        Self::of(Kind::InvalidRequest, 400, reason)
    }

    fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.fills.push((name, PhraseValue::Text(text.into())));
        self
    }

    fn with_list(mut self, name: &'static str, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fills.push((name, PhraseValue::List(names.into_iter().map(Into::into).collect())));
        self
    }

    fn about(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// A refusal that names this field of the body.
    fn field(self, field: impl Into<String>) -> Self {
        let field = field.into();
        self.with("field", field.as_str()).about(field)
    }

    /// The path does not exist.
    pub(crate) fn path(method: &str, path: &str, vendor: Option<Vendor>) -> Self {
        let asked = |reason| {
            let refusal = Self::of(Kind::InvalidRequest, 404, reason);
            refusal.with("method", shown(method)).with("path", shown(path))
        };
        match endpoints::without_doubled_version(path) {
            Some(near) => asked("path-doubled").with("near", shown(&near)),
            None => {
                let mut refusal = asked("path");
                refusal.fills.push(("served", PhraseValue::Endpoints(vendor)));
                refusal
            }
        }
    }

    /// The chat page is served only where the operator wants it.
    pub(crate) const fn chat_off() -> Self {
        Self::of(Kind::InvalidRequest, 404, "chat-off")
    }

    /// The path does not exist in the admin API.
    pub(crate) fn admin_path(method: &str, path: &str) -> Self {
        let refusal = Self::of(Kind::InvalidRequest, 404, "admin-path");
        refusal.with("method", shown(method)).with("path", shown(path))
    }

    /// The path exists, but not with this method.
    pub(crate) fn method(method: &str, path: &str, allow: &'static str) -> Self {
        let refusal = Self::of(Kind::InvalidRequest, 405, "method");
        let refusal = refusal.with("method", shown(method)).with("path", shown(path)).with("allow", allow);
        Self { allow: Some(allow), ..refusal }
    }

    /// The body is not declared as JSON.
    pub(crate) const fn content_type() -> Self {
        Self::of(Kind::InvalidRequest, 415, "content-type")
    }

    /// The path is for WebSocket connections.
    pub(crate) const fn upgrade() -> Self {
        Self::of(Kind::InvalidRequest, 426, "upgrade")
    }

    /// The header with the client's deadline cannot be read.
    pub(crate) fn deadline() -> Self {
        Self::bad("deadline").about("x-koboshi-deadline")
    }

    /// The path of Gemini's API names no model.
    pub(crate) const fn no_model_in_path() -> Self {
        Self::of(Kind::InvalidRequest, 404, "model-path")
    }

    /// A key is needed and the client sent none.
    pub(crate) const fn key_missing() -> Self {
        Self::of(Kind::Unauthorized, 401, "key-missing")
    }

    /// The gateway does not know the key.
    pub(crate) const fn key_unknown() -> Self {
        Self::of(Kind::Unauthorized, 401, "key-unknown")
    }

    /// The admin key is missing or wrong; or none is set and the caller is on another machine, or clients need keys.
    pub(crate) const fn admin(is_key_set: bool, do_clients_need_keys: bool) -> Self {
        let reason = match (is_key_set, do_clients_need_keys) {
            (true, _) => "admin-key",
            (false, true) => "admin-unset",
            (false, false) => "admin-local",
        };
        Self::of(Kind::Unauthorized, 401, reason)
    }

    /// A change from a browser that the dashboard of this gateway did not send.
    pub(crate) const fn csrf() -> Self {
        Self::of(Kind::PermissionDenied, 403, "csrf")
    }

    /// Only the program around the gateway could do this, and it does not.
    pub(crate) const fn no_host() -> Self {
        Self::of(Kind::InvalidRequest, 501, "no-host")
    }

    /// The program around the gateway, or its supervisor, could not do this.
    pub(crate) fn host_failed(why: &str) -> Self {
        Self::of(Kind::Unavailable, 503, "host-failed").with("why", shown(why))
    }

    /// The key may not ask for this model.
    pub(crate) fn key_route(model: &str) -> Self {
        Self::of(Kind::PermissionDenied, 403, "key-route").with("model", shown(model))
    }

    /// The budget of the key is spent until then.
    pub(crate) fn budget(over: &BudgetUse, currency: &str, until: &Zoned, wait: Duration) -> Self {
        let reason = match over.period {
            Period::Day => BUDGET_DAY,
            Period::Month => BUDGET_MONTH,
        };
        let refusal = Self { retry_after: Some(wait), ..Self::of(Kind::QuotaExceeded, 429, reason) };
        refusal
            .with("limit", format!("{} {currency}", over.limit))
            .with("until", until.strftime("%Y-%m-%d %H:%M %Z").to_string())
    }

    /// The key made all requests that it may make in a minute.
    pub(crate) fn rate(rate: u32, wait: Duration) -> Self {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        let refusal = Self { retry_after: Some(wait), ..Self::of(Kind::RateLimited, 429, RATE) };
        refusal.with("rate", rate.to_string()).with("seconds", seconds.to_string())
    }

    /// A day of a query cannot be read.
    pub(crate) fn query_day(name: &'static str) -> Self {
        Self::bad("query-day").field(name)
    }

    /// The caller may not read metrics.
    pub(crate) const fn metrics() -> Self {
        Self::of(Kind::Unauthorized, 401, "metrics")
    }

    /// The request names no host, or several.
    pub(crate) const fn host_count() -> Self {
        Self::bad("host-count")
    }

    /// The body is compressed.
    pub(crate) fn content_encoding(encoding: &str) -> Self {
        Self::of(Kind::InvalidRequest, 415, "content-encoding").with("encoding", shown(encoding))
    }

    /// Web pages of this origin may not call.
    pub(crate) fn origin(origin: &str) -> Self {
        Self::of(Kind::PermissionDenied, 403, "origin").with("origin", shown(origin))
    }

    /// Whether the gateway itself is the reason, whatever the request asks for: it must be set up first, or a limit of the client's key is reached.
    pub(crate) fn is_of_gateway(&self) -> bool {
        [NO_PROVIDER, BUDGET_DAY, BUDGET_MONTH, RATE].contains(&self.reason)
    }

    /// The request names a host that is not the gateway's.
    pub(crate) fn host(host: &str) -> Self {
        Self::of(Kind::PermissionDenied, 403, "host").with("host", shown(host))
    }

    /// No route and no provider leads to this model.
    pub(crate) fn model(plan: &Plan, model: &str) -> Self {
        if model.len() > MAX_MODEL {
            let refusal = Self::of(Kind::ModelNotFound, 404, "model-long").about("model");
            return refusal.with("limit", MAX_MODEL.to_string());
        }
        // Where the config has routes, the name is more likely wrong than a provider missing.
        let lacks = plan.lacks_provider() && plan.config.routes.is_empty();
        let near = near_route(plan, model).filter(|_| !lacks);
        let reason = match (lacks, near) {
            (true, _) => plan.lack(),
            (false, Some(_)) => "model-near",
            (false, None) => "model",
        };
        let refusal = Self::of(Kind::ModelNotFound, 404, reason).with("model", shown(model)).about("model");
        match near {
            Some(near) => refusal.with("near", shown(near)),
            None => refusal,
        }
    }

    /// The body could not be read; it may have at most this many bytes.
    pub(crate) fn body_error(body_error: BodyError, max_bytes: usize) -> Self {
        match body_error {
            BodyError::Large => {
                Self::of(Kind::MessageTooLarge, 413, "body-large").with("limit", size(max_bytes))
            }
            BodyError::Slow => Self::of(Kind::Timeout, 408, "body-slow"),
            BodyError::Broken => Self::bad("body-broken"),
            BodyError::NoMemory => {
                Self { retry_after: Some(RETRY_SOON), ..Self::of(Kind::Overloaded, 503, "memory") }
            }
        }
    }

    /// The body is not a valid request.
    pub(crate) fn body(error: &IntakeError, body: &[u8]) -> Self {
        let at = |reason, line: usize, column: usize| {
            let column = in_characters(body, line, column);
            Self::bad(reason).with("line", line.to_string()).with("column", column.to_string())
        };
        match error {
            IntakeError::Cut { .. } if body.trim_ascii().is_empty() => Self::bad("body-empty"),
            IntakeError::Cut { line, column } => at("body-cut", *line, *column),
            IntakeError::NotJson { line, column } => at("body-not-json", *line, *column),
            IntakeError::NotUtf8 { at } => Self::bad("body-not-utf8").with("at", at.to_string()),
            IntakeError::NotAnObject => Self::bad("body-not-object"),
            IntakeError::TooDeep => Self::bad("body-too-deep").with("limit", MAX_DEPTH.to_string()),
            IntakeError::Twice(field) => Self::bad("field-twice").field(shown(field)),
            IntakeError::Missing(field) => Self::bad("field-missing").field(*field),
            IntakeError::NoRole { .. } => Self::bad("field-missing").field(param(error)),
            IntakeError::NotObject { .. } => Self::bad("item-type").field(param(error)),
            IntakeError::WrongType { param, expected } => {
                let mut refusal = Self::bad("field-type").field(*param);
                refusal
                    .fills
                    .push(("expected", PhraseValue::Phrase(format!("expected-{}", expected.name()))));
                refusal
            }
            // The error enum may grow; its own sentence is better than none.
            _ => Self::bad("body").with("why", error.to_string()),
        }
    }

    /// The body of an operator's order does not have the form of its path.
    pub(crate) fn order(error: &serde_json::Error, body: &[u8]) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Eof => Self::body(&IntakeError::Cut { line, column }, body),
            serde_json::error::Category::Data => {
                // Only the name is used: the rest of the text is English.
                let text = error.to_string();
                let named = |start: &str| Some(text.strip_prefix(start)?.split_once('`')?.0.to_owned());
                if let Some(field) = named("missing field `") {
                    return Self::bad("field-missing").field(field);
                }
                if let Some(field) = named("unknown field `") {
                    return Self::bad("field-unknown").field(shown(&field));
                }
                Self::bad("order")
                    .with("line", line.to_string())
                    .with("column", in_characters(body, line, column).to_string())
                    .about("body")
            }
            _ => Self::body(&IntakeError::NotJson { line, column }, body),
        }
    }

    /// An operator's order is too long.
    pub(crate) fn order_large(max_bytes: usize) -> Self {
        Self::of(Kind::MessageTooLarge, 413, "order-large").with("limit", size(max_bytes))
    }

    /// No target has this name or key.
    pub(crate) fn target(target: &str) -> Self {
        let refusal = Self::of(Kind::InvalidRequest, 404, "target");
        refusal.with("target", shown(target)).about("target")
    }

    /// This is not a valid key.
    pub(crate) fn scope_key(key: &str) -> Self {
        Self::bad("scope-key").with("key", shown(key)).about("key")
    }

    /// No target has this key; these are similar.
    pub(crate) fn scope_unknown(key: &str, near: &[String]) -> Self {
        let reason = if near.is_empty() { "scope-unknown" } else { "scope-near" };
        let refusal = Self::of(Kind::InvalidRequest, 404, reason).with("key", shown(key)).about("key");
        if near.is_empty() { refusal } else { refusal.with_list("near", near.iter().cloned()) }
    }

    /// The end of a cooldown is missing or in the past.
    pub(crate) fn until() -> Self {
        Self::bad("until").about("until")
    }

    /// A parameter of the address is unknown.
    pub(crate) fn query(name: &str, known: &str) -> Self {
        Self::bad("query").with("field", shown(name)).with_list("known", known.split(", ")).about("query")
    }

    /// A parameter of the address has none of the allowed values.
    pub(crate) fn query_choice(name: &'static str, known: &str) -> Self {
        Self::bad("query-choice").field(name).with_list("known", known.split(", "))
    }

    /// A parameter of the address must be a number up to this.
    pub(crate) fn query_number(name: &'static str, limit: usize) -> Self {
        Self::bad("query-number").field(name).with("limit", limit.to_string())
    }

    /// A parameter of the address must be a time or a length of time.
    pub(crate) fn query_time(name: &'static str) -> Self {
        Self::bad("query-time").field(name)
    }

    /// Too many clients watch the feed.
    pub(crate) const fn feed_full() -> Self {
        Self::of(Kind::Overloaded, 503, "feed-full")
    }

    /// The store cannot be read now.
    pub(crate) fn store(why: &str) -> Self {
        Self::of(Kind::Unavailable, 503, "store").with("why", shown(why))
    }

    /// This process keeps no agents.
    pub(crate) fn agents_none() -> Self {
        Self::of(Kind::InvalidRequest, 404, "agents-none").about("agents")
    }

    /// The name of an agent is missing, too long, or given where there is none.
    pub(crate) fn agent_name() -> Self {
        Self::bad("agent-name").about("agent")
    }

    /// Why the supervisor does not do what was asked about an agent.
    pub(crate) fn agents(agent: &str, error: &AgentsError) -> Self {
        let found = |reason, status| Self::of(Kind::InvalidRequest, status, reason);
        match error {
            AgentsError::Unknown(known) if known.is_empty() => {
                found("agent-unknown", 404).with("agent", shown(agent)).about("agent")
            }
            AgentsError::Unknown(known) => {
                let known = known.iter().take(MAX_AGENTS).map(String::as_str);
                found("agent-near", 404).with("agent", shown(agent)).with_list("known", known).about("agent")
            }
            AgentsError::Project(known) => {
                let known = known.iter().take(MAX_AGENTS).map(String::as_str);
                found("agent-project", 400)
                    .with("agent", shown(agent))
                    .with_list("known", known)
                    .about("agent")
            }
            AgentsError::Run(kept) => found("agent-run", 404)
                .with("agent", shown(agent))
                .with("count", kept.to_string())
                .about("run"),
            AgentsError::Parameter(name) => found("agent-place", 400).field(*name),
            AgentsError::Away(why) => Self::of(Kind::Unavailable, 503, "agents-away").with("why", shown(why)),
        }
    }

    /// The gateway stops before the request was answered.
    pub(crate) fn stopping() -> Self {
        Self { retry_after: Some(RETRY_SOON), ..Self::of(Kind::Unavailable, 503, "stopping") }
    }

    /// Too many large bodies wait to be read.
    pub(crate) fn busy() -> Self {
        Self { retry_after: Some(RETRY_SOON), ..Self::of(Kind::Overloaded, 503, "busy") }
    }

    /// An internal error.
    pub(crate) const fn internal() -> Self {
        Self::of(Kind::Internal, 500, "internal")
    }

    /// Its error for this client.
    pub(crate) fn reply(&self, state: &SharedState, plan: &Plan, context: &RequestContext) -> ErrorReply {
        let (message, suggestion) = self.texts(&state.phrases, context.lang);
        let mut reply = reply::refusal(plan, context, self, &message, &suggestion);
        if let Some(allow) = self.allow {
            reply.heading.add(ALLOW, allow);
        }
        reply
    }

    /// The message and the suggestion.
    fn texts(&self, phrases: &Phrases, lang: Lang) -> (String, String) {
        let fills: Vec<(&str, String)> =
            self.fills.iter().map(|(name, fill)| (*name, fill.text(phrases, lang))).collect();
        let fills: Vec<(&str, &str)> = fills.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let part = |part: &str| {
            let id = format!("refused-{}.{part}", self.reason);
            phrases.text(lang, &id, &fills).unwrap_or(id)
        };
        (part("message"), part("suggestion"))
    }
}

impl PhraseValue {
    fn text(&self, phrases: &Phrases, lang: Lang) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(names) => names.join(lang.comma()),
            Self::Phrase(id) => phrases.text(lang, id, &[]).unwrap_or_else(|| id.clone()),
            Self::Endpoints(vendor) => endpoints::sentence(*vendor, lang),
        }
    }
}

fn param(error: &IntakeError) -> String {
    error.param().unwrap_or_default().into_owned()
}

/// A piece of a request as it may be repeated.
fn shown(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    REDACTOR.excerpt(&plain, MAX_SHOWN)
}

/// A number of bytes for people.
fn size(bytes: usize) -> String {
    const STEP: usize = 1024;
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(STEP * STEP) => format!("{} MiB", bytes / STEP / STEP),
        _ if bytes > 0 && bytes.is_multiple_of(STEP) => format!("{} KiB", bytes / STEP),
        _ => format!("{bytes} B"),
    }
}

/// The column of a place in characters, as an editor counts it. The parser counts bytes, and a Japanese character has three.
fn in_characters(body: &[u8], line: usize, bytes: usize) -> usize {
    let text = body.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let inside_character = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    bytes - text.iter().take(bytes).filter(|byte| inside_character(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Refusal> {
        let order = |text: &str| {
            #[derive(Debug, serde::Deserialize)]
            #[serde(deny_unknown_fields)]
            #[allow(dead_code, reason = "only its form is needed")]
            struct Order {
                target: String,
            }
            Refusal::order(&serde_json::from_str::<Order>(text).unwrap_err(), text.as_bytes())
        };
        let budget = |period| {
            let limit = koboshi::spend::Amount::of(5.0).unwrap();
            let until = "2026-11-19T00:00:00+09:00[Asia/Tokyo]".parse().unwrap();
            Refusal::budget(
                &BudgetUse { period, limit, spent: limit },
                "USD",
                &until,
                Duration::from_secs(60),
            )
        };
        let mut all = vec![
            Refusal::path("POST", "/v1/images", None),
            Refusal::path("GET", "/v1/messages/batches", Some(Vendor::Anthropic)),
            Refusal::path("POST", "/v1/v1/messages", Some(Vendor::Anthropic)),
            Refusal::method("GET", "/v1/messages", "POST"),
            Refusal::content_type(),
            Refusal::no_model_in_path(),
            Refusal::key_missing(),
            Refusal::key_unknown(),
            Refusal::admin_path("GET", "/koboshi/ui"),
            Refusal::admin(true, true),
            Refusal::admin(false, true),
            Refusal::admin(false, false),
            Refusal::metrics(),
            Refusal::key_route("gpt"),
            budget(Period::Day),
            budget(Period::Month),
            Refusal::rate(60, Duration::from_millis(1500)),
            Refusal::stopping(),
            Refusal::busy(),
            Refusal::host_count(),
            Refusal::content_encoding("gzip"),
            Refusal::origin("https://evil.example"),
            Refusal::host("evil.example"),
            Refusal::of(Kind::ModelNotFound, 404, "model").with("model", "gpt"),
            Refusal::of(Kind::ModelNotFound, 404, "no-provider").with("model", "gpt"),
            Refusal::of(Kind::ModelNotFound, 404, "only-simulated").with("model", "gpt"),
            Refusal::body_error(BodyError::Large, 1024),
            Refusal::body_error(BodyError::Slow, 1024),
            Refusal::body_error(BodyError::Broken, 1024),
            Refusal::bad("body").with("why", "X"),
            Refusal::order_large(1024),
            order("{\"target\""),
            order("{}"),
            order("{\"target\": \"x\", \"wat\": 1}"),
            order("{\"target\": 5}"),
            order("nonsense"),
            Refusal::target("x/y"),
            Refusal::scope_key("nonsense"),
            Refusal::scope_unknown("target:x", &[]),
            Refusal::scope_unknown("target:x", &["target:y".to_owned()]),
            Refusal::until(),
            Refusal::query("wat", "a, b"),
            Refusal::query_choice("what", "a, b"),
            Refusal::query_number("limit", 10),
            Refusal::query_time("since"),
            Refusal::query_day("from"),
            Refusal::feed_full(),
            Refusal::store("gone"),
            Refusal::internal(),
        ];
        for (text, body) in [
            (IntakeError::Cut { line: 1, column: 0 }, ""),
            (IntakeError::Cut { line: 1, column: 9 }, "{"),
            (IntakeError::NotJson { line: 1, column: 9 }, "x"),
            (IntakeError::NotUtf8 { at: 3 }, "x"),
            (IntakeError::NotAnObject, "[]"),
            (IntakeError::TooDeep, "{"),
            (IntakeError::Twice("a".to_owned()), "{}"),
            (IntakeError::Missing("model"), "{}"),
            (IntakeError::NoRole { list: "messages", index: 0 }, "{}"),
            (IntakeError::NotObject { list: "messages", index: 0 }, "{}"),
            (
                IntakeError::WrongType { param: "stream", expected: koboshi_wire::FieldForm::TrueOrFalse },
                "{}",
            ),
            (IntakeError::WrongType { param: "n", expected: koboshi_wire::FieldForm::Count }, "{}"),
            (IntakeError::WrongType { param: "top_p", expected: koboshi_wire::FieldForm::Level }, "{}"),
        ] {
            all.push(Refusal::body(&text, body.as_bytes()));
        }
        all
    }

    /// A sentence is complete: nothing is left to fill in, it has an end, and the Japanese contains no English sentence.
    #[test]
    fn every_reason_has_phrases_in_both_languages() {
        let phrases = Phrases::new().unwrap();
        for refusal in all() {
            for (lang, end) in [(Lang::En, '.'), (Lang::Ja, '。')] {
                let (message, suggestion) = refusal.texts(&phrases, lang);
                for text in [&message, &suggestion] {
                    assert!(text.ends_with(end) && !text.contains("{$"), "{refusal:?}: {text}");
                    assert!(!text.starts_with("refused-"), "{refusal:?}: {text}");
                    assert!(!text.contains("expected-"), "{refusal:?}: {text}");
                    assert!(lang == Lang::En || !text.contains(". "), "{refusal:?}: {text}");
                }
                assert_ne!(message, suggestion);
            }
        }
    }

    #[test]
    fn what_is_repeated_is_bounded_and_holds_no_key() {
        let secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
        let refusal = Refusal::path("GET", &format!("/v1/{secret}/{}", "x".repeat(1000)), None);
        let (message, _) = refusal.texts(&Phrases::new().unwrap(), Lang::En);
        assert!(!message.contains(secret) && message.len() < 300, "{message}");
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!(
            [33_554_432, 65_536, 1000, 0].map(size),
            ["32 MiB", "64 KiB", "1000 B", "0 B"].map(str::to_owned)
        );
    }
}
