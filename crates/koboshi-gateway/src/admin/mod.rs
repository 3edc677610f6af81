//! What operators ask and change, under `/koboshi/`.
//!
//! It has a key of its own, which is none of the clients' keys. Without an admin key only callers on the loopback address of a
//! gateway that listens there are let in. What the edge demands of everybody (name, origin, JSON) was demanded before. Every change is
//! noted in the journal with where it came from.
//!
//! [`targets`] shows how everybody fares, [`change`] is a person's word, [`journal`] and [`feed`] tell what happened and what happens.

mod change;
mod feed;
mod journal;
mod openapi;
mod status;
mod targets;

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use bytes::Bytes;
use http::Method;
use koboshi::fault::Kind;
use koboshi::redact::Redactor;
use koboshi_config::schema::in_effect;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::auth::{is_key, presented};
use crate::core::Core;
use crate::edge::{is_json, read_body, say, say_bytes};
use crate::flow::Flow;
use crate::h1::Request;
use crate::plan::Plan;
use crate::reply;
use crate::story::Story;

/// No order of an operator is longer.
const LONGEST_ORDER: usize = 64 * 1024;

/// Compiled once: it holds no state.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// One request of an operator.
struct Desk<'d> {
    core: &'d Core,
    plan: &'d Plan,
    story: &'d Story,
    peer: SocketAddr,
}

/// Why an operator's request is not followed.
struct Refusal {
    kind: Kind,
    status: u16,
    message: String,
    param: Option<&'static str>,
}

impl Refusal {
    /// Something is wrong with what was asked.
    fn bad(param: &'static str, message: impl Into<String>) -> Self {
        Self { kind: Kind::InvalidRequest, status: 400, message: message.into(), param: Some(param) }
    }

    fn of(kind: Kind, status: u16, message: &str) -> Self {
        Self { kind, status, message: message.to_owned(), param: None }
    }
}

/// Serves a request of an operator.
pub(crate) async fn handle(
    core: &Core,
    plan: &Plan,
    story: &Story,
    peer: SocketAddr,
    request: &Request,
) -> Flow {
    let desk = Desk { core, plan, story, peer };
    let answered = if may(plan, peer, request) {
        answer(&desk, request).await
    } else {
        let said = "this needs the admin key: set admin.sha256 and send the key as a bearer token";
        Err(Refusal::of(Kind::Unauthorized, 401, said))
    };
    match answered {
        Ok(flow) => flow,
        Err(Refusal { kind, status, message, param }) => {
            say(reply::refuse(&core.world, plan, story, kind, status, Some(&message), param))
        }
    }
}

async fn answer(desk: &Desk<'_>, request: &Request) -> Result<Flow, Refusal> {
    let path = request.head.path().trim_end_matches('/').to_owned();
    let query = request.head.query().to_owned();
    let get = matches!(request.head.method, Method::GET | Method::HEAD);
    let post = request.head.method == Method::POST;
    match path.as_str() {
        "/koboshi/targets" if get => desk.say(&targets::list(desk)),
        "/koboshi/breakers" if post => {
            let order = desk.order(request).await?;
            desk.say(&change::breakers(desk, &order)?)
        }
        "/koboshi/cooldowns" if post => {
            let order = desk.order(request).await?;
            desk.say(&change::cooldowns(desk, &order)?)
        }
        "/koboshi/status" if get => desk.say(&status::read(desk).await?),
        "/koboshi/keys" if get => desk.say(&status::keys(desk)),
        "/koboshi/journal" if get => desk.say(&journal::read(desk, &query).await?),
        "/koboshi/journal" if post => {
            let order = desk.order(request).await?;
            desk.say(&journal::prune(desk, &order).await?)
        }
        "/koboshi/feed" if get => feed::watch(desk, &query),
        "/koboshi/config" if get => desk.say(&config(desk.plan)),
        "/koboshi/openapi.json" if get => desk.say(&openapi::document()),
        "/koboshi/targets"
        | "/koboshi/breakers"
        | "/koboshi/cooldowns"
        | "/koboshi/status"
        | "/koboshi/keys"
        | "/koboshi/journal"
        | "/koboshi/feed"
        | "/koboshi/config"
        | "/koboshi/openapi.json" => {
            Err(Refusal::of(Kind::InvalidRequest, 405, "this path is not served for this method"))
        }
        _ => Err(Refusal::of(
            Kind::InvalidRequest,
            404,
            "nothing is served at this path; GET /koboshi/openapi.json says what is",
        )),
    }
}

/// Whoever has the key, or sits at this machine where none is set.
fn may(plan: &Plan, peer: SocketAddr, request: &Request) -> bool {
    let local = |address: IpAddr| address.to_canonical().is_loopback();
    match &plan.config.admin.sha256 {
        Some(hash) => presented(&request.head.fields).is_some_and(|key| is_key(hash, key)),
        None => local(peer.ip()) && local(plan.config.serve.listen.ip()),
    }
}

impl Desk<'_> {
    /// Answers with JSON.
    fn say(&self, what: &impl Serialize) -> Result<Flow, Refusal> {
        let body = serde_json::to_vec(what).map_err(|error| {
            Refusal::of(Kind::Internal, 500, &format!("the answer cannot be written: {error}"))
        })?;
        Ok(say_bytes(self.story, 200, body.into()))
    }

    /// The order in a request's body.
    async fn order<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Refusal> {
        if !is_json(&request.head.fields) {
            let said = "the body must be sent as application/json";
            return Err(Refusal::of(Kind::InvalidRequest, 415, said));
        }
        let body: Bytes = read_body(self.plan, request, LONGEST_ORDER).await.map_err(|unread| {
            Refusal::of(unread.kind(), unread.status(), unread.said().unwrap_or("the order is too long"))
        })?;
        // What is wrong is told without the text around it, which is the caller's own.
        serde_json::from_slice(&body).map_err(|error| Refusal::bad("body", error.to_string()))
    }
}

/// The config that holds, defaults and all, without secrets.
#[utoipa::path(get, path = "/koboshi/config", tag = "config",
    responses((status = 200, description = "Every key of koboshi.yaml with its value; secrets are masked", body = Value)))]
fn config(plan: &Plan) -> Value {
    let mut shown = in_effect(&plan.config);
    hide(&mut shown);
    shown
}

/// Takes out what looks like a secret though its key is none, such as a password in an address.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(redacted) = REDACTOR.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(hide),
        Value::Object(fields) => fields.values_mut().for_each(hide),
        _ => {}
    }
}
