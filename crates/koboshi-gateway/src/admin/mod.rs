//! The admin API under `/koboshi/`: what operators query and change.
//!
//! It has a key of its own, which is none of the clients' keys. Without an admin key it only serves callers on the loopback address of a
//! gateway that listens there. The edge has already checked what it checks for every request (host, origin, JSON). Every change is written to
//! the journal with its origin.
//!
//! [`access`] says who is let in and how a person signs in. [`targets`] shows the health of every target and [`overview`] the whole at a glance, [`change`] carries out orders, [`hosted`] asks the program around the
//! gateway, [`agents`] reaches the supervisor of the same process, [`journal`] and [`feed`] show what happened and what happens.

pub(crate) mod known;
pub(crate) mod presence;
pub(crate) mod remote;
pub(crate) mod report_thread;

mod access;
mod agents;
mod change;
mod feed;
mod hosted;
mod journal;
mod openapi;
mod overview;
pub mod paths;
pub(crate) mod spend;
pub(crate) mod spend_reports;
mod status;
mod targets;

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
use crate::shared::locality::Client;

/// Longer orders are refused.
const MAX_ORDER_BYTES: usize = 64 * 1024;

/// How long an operator waits for the store: longer than an unreachable server takes to fail.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Compiled once: it holds no state.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// One request of an operator.
struct AdminRequest<'d> {
    core: &'d CoreState,
    plan: &'d Plan,
    context: &'d RequestContext,
    client: Client,
    access: access::Access,
    /// The session of the dashboard that lets the caller in.
    session: Option<String>,
}

/// Serves a request of an operator.
pub(crate) async fn handle(
    core: &CoreState,
    plan: &Plan,
    context: &RequestContext,
    client: Client,
    request: &Request,
) -> ResponseFuture {
    let access = access::of(&core.state, plan, client, &request.head.fields);
    let session = access::session_of(&access, plan, &request.head.fields);
    let admin = AdminRequest { core, plan, context, client, access, session };
    let answered = answer(&admin, request).await;
    answered.unwrap_or_else(|refusal| immediate_error(refusal.reply(&core.state, plan, context)))
}

async fn answer(admin: &AdminRequest<'_>, request: &Request) -> Result<ResponseFuture, Refusal> {
    let head = &request.head;
    let path = head.path().trim_end_matches('/');
    let found = paths::find(path, &head.method);
    if !matches!(found, Lookup::Operation(Operation::Session | Operation::ChangeSession))
        && let Some(refusal) = access::check(&admin.access, admin.plan, head)
    {
        return Err(refusal);
    }
    let operation = match found {
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
        Operation::Spend => admin.reply_json(&spend::read(admin, head.query()).await?),
        Operation::Journal => admin.reply_json(&journal::read(admin, head.query()).await?),
        Operation::PruneJournal => {
            let order = admin.order(request).await?;
            admin.reply_json(&journal::prune(admin, &order).await?)
        }
        Operation::Feed => feed::watch(admin, head.query()),
        Operation::Agents => admin.reply_json(&agents::list(admin).await?),
        Operation::ChangeAgents => {
            let order = admin.order(request).await?;
            admin.reply_json(&agents::order(admin, order).await?)
        }
        Operation::Logs => admin.reply_json(&agents::log(admin, head.query()).await?),
        Operation::Config => admin.reply_json(&config(admin.plan)),
        Operation::OpenApi => Ok(immediate_bytes(admin.context, 200, openapi::document())),
        Operation::Session => admin.reply_json(&access::visitor(admin)),
        Operation::ChangeSession => access::change(admin, request).await,
        Operation::Overview => admin.reply_json(&overview::overview(admin)),
        Operation::Sessions => admin.reply_json(&overview::sessions(admin)),
        Operation::Check => admin.reply_json(&hosted::check(admin).await?),
        Operation::Reload => admin.reply_json(&hosted::reload(admin).await?),
        Operation::Process => {
            let order = admin.order(request).await?;
            admin.reply_json(&hosted::process(admin, &order).await?)
        }
    }
}

/// The error message where the store did not answer in time.
fn no_answer(store: &dyn Store) -> String {
    format!("{} did not answer within {} s", store.place(), STORE_TIMEOUT.as_secs())
}

impl AdminRequest<'_> {
    /// Asks the store, on the worker thread.
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

/// The effective config, with defaults and without secrets.
#[cfg_attr(test, utoipa::path(get, path = paths::CONFIG, tag = "config",
    responses((status = 200, description = "Every key of koboshi.yaml with its value; secrets are masked", body = Value))))]
fn config(plan: &Plan) -> Value {
    let mut shown = in_effect(&plan.config);
    hide(&mut shown);
    shown
}

/// Masks what looks like a secret although its key is none, such as a password in an address.
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
