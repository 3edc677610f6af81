//! What operators ask and change, under `/koboshi/`.
//!
//! It has a key of its own, which is none of the clients' keys. Without an admin key only callers on the loopback address of a
//! gateway that listens there are let in. What the edge demands of everybody (name, origin, JSON) was demanded before. Every change is
//! noted in the journal with where it came from.
//!
//! [`targets`] shows how everybody fares, [`change`] is a person's word, [`journal`] and [`feed`] tell what happened and what happens.

pub(crate) mod known;
pub(crate) mod presence;
pub(crate) mod remote;

mod change;
mod feed;
mod journal;
mod openapi;
mod paths;
mod status;
mod targets;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use koboshi::redact::Redactor;
use koboshi_config::schema::in_effect;
use koboshi_store::{Ledger, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::admin::paths::{Lookup, Operation};
use crate::http::body::BodyError;
use crate::http::exchange::Request;
use crate::http::response_future::ResponseFuture;
use crate::reply::immediate::{immediate_bytes, immediate_error};
use crate::reply::refusal::Refusal;
use crate::request::body::{is_json, read_body};
use crate::route::plan::Plan;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::locality::is_operator;

/// No order of an operator is longer.
const MAX_ORDER_BYTES: usize = 64 * 1024;

/// So long an operator waits for the store: longer than a server that is away takes to say so.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Compiled once: it holds no state.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// One request of an operator.
struct AdminRequest<'d> {
    core: &'d CoreState,
    plan: &'d Plan,
    context: &'d RequestContext,
    peer: SocketAddr,
}

/// Serves a request of an operator.
pub(crate) async fn handle(
    core: &CoreState,
    plan: &Plan,
    context: &RequestContext,
    peer: SocketAddr,
    request: &Request,
) -> ResponseFuture {
    let admin = AdminRequest { core, plan, context, peer };
    let answered = if is_operator(plan, peer, &request.head.fields) {
        answer(&admin, request).await
    } else {
        Err(Refusal::admin(plan.config.admin.sha256.is_some(), plan.keys.are_needed()))
    };
    answered.unwrap_or_else(|refusal| immediate_error(refusal.reply(&core.state, plan, context)))
}

async fn answer(admin: &AdminRequest<'_>, request: &Request) -> Result<ResponseFuture, Refusal> {
    let head = &request.head;
    let path = head.path().trim_end_matches('/');
    let operation = match paths::find(path, &head.method) {
        Lookup::Operation(operation) => operation,
        Lookup::WrongMethod(allow) => return Err(Refusal::method(head.method.as_str(), path, allow)),
        Lookup::UnknownPath => return Err(Refusal::admin_path(head.method.as_str(), head.path())),
    };
    match operation {
        Operation::Targets => admin.reply_json(&targets::list(admin)),
        Operation::ChangeBreakers => {
            let order = admin.order(request).await?;
            admin.reply_json(&change::breakers(admin, &order)?)
        }
        Operation::ChangeCooldowns => {
            let order = admin.order(request).await?;
            admin.reply_json(&change::cooldowns(admin, &order)?)
        }
        Operation::Status => admin.reply_json(&status::read(admin).await?),
        Operation::Keys => admin.reply_json(&status::keys(admin)),
        Operation::Journal => admin.reply_json(&journal::read(admin, head.query()).await?),
        Operation::PruneJournal => {
            let order = admin.order(request).await?;
            admin.reply_json(&journal::prune(admin, &order).await?)
        }
        Operation::Feed => feed::watch(admin, head.query()),
        Operation::Config => admin.reply_json(&config(admin.plan)),
        Operation::OpenApi => admin.reply_json(&openapi::document()),
    }
}

/// What is said where the store did not answer in time.
fn no_answer(store: &dyn Store) -> String {
    format!("{} did not answer within {} s", store.place(), STORE_TIMEOUT.as_secs())
}

impl AdminRequest<'_> {
    /// Asks the store, beside the way of requests.
    async fn ask_store<R: Send + 'static>(
        &self,
        call: impl FnOnce(&Ledger, &dyn Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, Refusal> {
        let state = &self.core.state;
        let (ledger, store) = (Arc::clone(&state.ledger), Arc::clone(&state.store));
        match state.admin_calls.ask(STORE_TIMEOUT, move || call(&ledger, &*store)).await {
            Some(answered) => answered.map_err(|error| Refusal::store(&error.to_string())),
            None => Err(Refusal::store(&no_answer(&*state.store))),
        }
    }

    /// Answers with JSON.
    fn reply_json(&self, what: &impl Serialize) -> Result<ResponseFuture, Refusal> {
        let body = serde_json::to_vec(what).map_err(|_| Refusal::internal())?;
        Ok(immediate_bytes(self.context, 200, body.into()))
    }

    /// The order in a request's body.
    async fn order<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Refusal> {
        if !is_json(&request.head.fields) {
            return Err(Refusal::content_type());
        }
        let mut share = self.core.state.memory.share();
        let body: Bytes = read_body(self.core, self.plan, request, MAX_ORDER_BYTES, &mut share)
            .await
            .map_err(|body_error| match body_error {
                BodyError::Large => Refusal::order_large(MAX_ORDER_BYTES),
                body_error => Refusal::body_error(body_error, MAX_ORDER_BYTES),
            })?;
        serde_json::from_slice(&body).map_err(|error| Refusal::order(&error, &body))
    }
}

/// The config that holds, defaults and all, without secrets.
#[utoipa::path(get, path = paths::CONFIG, tag = "config",
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
