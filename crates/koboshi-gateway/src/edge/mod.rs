//! Admits requests: who may call, which endpoint, how large and how slow a request may be.
//!
//! Requests of foreign web pages are refused ([`page`]), and only JSON is accepted, which no page can send without a preflight.

pub(crate) mod chat;
pub(crate) mod dashboard;
pub(crate) mod endpoint;
pub(crate) mod large;
pub(crate) mod page;
pub(crate) mod root;

use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;
use koboshi::gate::Tenant;
use koboshi_wire::chat::models;
use koboshi_wire::http1::head::Head;
use koboshi_wire::{Dialect, gemini, messages};
use serde_json::json;

use crate::edge::endpoint::{Endpoint, endpoint, model_and_verb, model_in, wants_list};
use crate::http::exchange::{Request, Response};
use crate::http::pace::LARGE;
use crate::http::response_future::ResponseFuture;
use crate::reply::endpoints::Vendor;
use crate::reply::immediate::{immediate_bytes, immediate_error, immediate_json};
use crate::reply::refusal::Refusal;
use crate::reply::{self};
use crate::request::body::{is_json, read_body};
use crate::request::count;
use crate::request::embeddings;
use crate::request::generate::{self, Intake, OpenRequest};
use crate::route::answers::Hints;
use crate::route::auth::{Caller, PASSTHROUGH, borrowed_tenant};
use crate::route::plan::{Backing, Plan};
use crate::session::storage;
use crate::session::ticket::{Grant, Ticket};
use crate::session::upgrade::Upgrade;
use crate::shared::context::{RequestContext, RequestId, client_deadline, language, new_request_id};
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;
use crate::shared::locality::{self, Client};
use crate::shared::program::Program;
use crate::shared::state::store_error;
use crate::shared::trace::Trace;
use koboshi_wire::http1::{Fields, Heading};

/// The response to a request, independent of the request itself.
pub(crate) struct PendingResponse {
    future: ResponseFuture,
    /// The origin of the page that asks, where it may.
    allowed_origin: Option<String>,
    /// The connection becomes a session's.
    upgrade: Option<Box<Upgrade>>,
}

/// Reads a request and prepares its response.
///
/// The request is borrowed: passing it by value from function to function would copy it each time.
pub(crate) async fn accept(core: &Rc<CoreState>, peer: IpAddr, request: &Request) -> PendingResponse {
    let plan = core.state.plan();
    let allowed_origin = page::allowed(&plan, &request.head);
    let origin_refusal = page::check(&plan, &request.head, allowed_origin.is_some());
    let endpoint = endpoint(&request.head.method, request.head.path(), &request.head.fields);
    if endpoint == Endpoint::Session
        && origin_refusal.is_none()
        && let Some(upgrade) = upgrade(&plan, &request.head)
    {
        let future = ResponseFuture::at_once(Heading::of(101), Bytes::new());
        return PendingResponse { future, allowed_origin, upgrade: Some(upgrade) };
    }
    let future = answer(core, plan, peer, request, endpoint, origin_refusal).await;
    PendingResponse { future, allowed_origin, upgrade: None }
}

/// The handshake of a session's connection, if a request to its endpoint is one.
fn upgrade(plan: &Plan, head: &Head) -> Option<Box<Upgrade>> {
    let caller = plan.keys.caller(&head.fields, None);
    let lang = language(&head.fields, plan.config.language);
    Upgrade::of(head, caller, lang).map(Box::new)
}

impl PendingResponse {
    /// The handshake that this is, where it is one.
    pub(crate) fn take_upgrade(&mut self) -> Option<Box<Upgrade>> {
        self.upgrade.take()
    }

    /// The response, as soon as it has a head.
    pub(crate) async fn response(self) -> Response {
        let Self { mut future, allowed_origin, .. } = self;
        let mut heading = future.head().await.unwrap_or_else(|| Heading::of(500));
        if let Some(origin) = allowed_origin {
            page::allow_reading(&mut heading.lines, &origin);
        }
        Response { heading, future }
    }
}

async fn answer(
    core: &Rc<CoreState>,
    plan: Arc<Plan>,
    peer: IpAddr,
    request: &Request,
    endpoint: Endpoint,
    origin_refusal: Option<Refusal>,
) -> ResponseFuture {
    let mut context = context(core, &plan, &request.head.fields);
    let client = Client::of(&plan.config.serve, peer, &request.head);
    context.is_local = client.is_local;
    let vendor = || Vendor::of_client(request.head.path(), &request.head.fields);
    context.dialect = match endpoint {
        // In the error format of the client's dialect.
        Endpoint::Nothing | Endpoint::WrongMethod(_) => vendor().map_or(Dialect::Chat, Vendor::dialect),
        _ => endpoint.dialect(),
    };
    context.list = wants_list(endpoint, &request.head);
    if context.dialect.has_vendor_agent() {
        context.program = Program::of(&request.head.fields);
    }
    let open = OpenRequest::on(core);
    let (method, path) = (request.head.method.as_str(), request.head.path());
    if let Some(origin_refusal) = origin_refusal {
        return immediate_error(origin_refusal.reply(&core.state, &plan, &context));
    }
    match endpoint {
        Endpoint::Nothing => {
            immediate_error(Refusal::path(method, path, vendor()).reply(&core.state, &plan, &context))
        }
        Endpoint::WrongMethod(allow) => {
            immediate_error(Refusal::method(method, path, allow).reply(&core.state, &plan, &context))
        }
        Endpoint::ChatPage if !plan.config.serve.chat => {
            immediate_error(Refusal::chat_off().reply(&core.state, &plan, &context))
        }
        Endpoint::ChatPage => chat::answer(&context, path),
        Endpoint::Dashboard => dashboard::answer(&context, path),
        Endpoint::Session => immediate_error(Refusal::upgrade().reply(&core.state, &plan, &context)),
        Endpoint::Root => root::answer(core, &context, &request.head.fields),
        Endpoint::Health => immediate_json(&context, 200, &json!({"status": "ok"})),
        Endpoint::Ready => {
            let is_trusted = locality::may_see_metrics(&plan, client, &request.head.fields);
            ready(core, &context, is_trusted)
        }
        Endpoint::Metrics if !locality::may_see_metrics(&plan, client, &request.head.fields) => {
            immediate_error(Refusal::metrics().reply(&core.state, &plan, &context))
        }
        Endpoint::Metrics => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let heading = reply::head(200, kind, &context, &Disclosure::default());
            ResponseFuture::at_once(heading, core.state.metrics().into())
        }
        Endpoint::Admin => Box::pin(crate::admin::handle(core, &plan, &context, client, request)).await,
        Endpoint::Models(_)
        | Endpoint::Model(_)
        | Endpoint::Generate(_)
        | Endpoint::Count(_)
        | Endpoint::SessionTicket
        | Endpoint::Embeddings => match admit(core, &plan, &mut context, endpoint, request) {
            Ok(Admission { client_key, hints, path_model }) => {
                let max_bytes = usize::try_from(plan.config.serve.body_bytes).unwrap_or(usize::MAX);
                let mut share = core.state.memory.share();
                let read = core.until_end(pin!(read_body(core, &plan, request, max_bytes, &mut share))).await;
                let Some(read) = read else {
                    return immediate_error(Refusal::stopping().reply(&core.state, &plan, &context));
                };
                match read {
                    Ok(body) if endpoint == Endpoint::SessionTicket => {
                        Box::pin(issue_ticket(core, &plan, &context, &body)).await
                    }
                    Ok(body) => {
                        let intake =
                            Intake { context, plan, body, client_key, hints, path_model, _memory: share };
                        match &core.large {
                            Some(large) if intake.body.len() > LARGE => {
                                large::serve(core, large, intake, endpoint, open)
                            }
                            _ => serve_on(Rc::clone(core), intake, endpoint, Some(open)),
                        }
                    }
                    Err(body_error) => immediate_error(
                        Refusal::body_error(body_error, max_bytes).reply(&core.state, &plan, &context),
                    ),
                }
            }
            Err(future) => future,
        },
        Endpoint::Preflight => ResponseFuture::at_once(page::preflight(&request.head.fields), Bytes::new()),
    }
}

/// How a request is served, according to its head.
struct Admission {
    client_key: Option<HeaderValue>,
    hints: Hints,
    path_model: Option<(String, bool)>,
}

/// Whether a request is admitted, according to its head; else the response that refuses it.
fn admit(
    core: &CoreState,
    plan: &Plan,
    context: &mut RequestContext,
    endpoint: Endpoint,
    request: &Request,
) -> Result<Admission, ResponseFuture> {
    let refuse = |context: &RequestContext, refusal: Refusal| {
        immediate_error(refusal.reply(&core.state, plan, context))
    };
    let head = &request.head;
    let mut client_key = None;
    let caller = plan.keys.caller(&head.fields, key_in_query(head).as_deref());
    match core.state.agents_key.recognise(caller, &head.fields) {
        Caller::Tenant(tenant, key) => {
            (context.tenant, context.key) = (tenant, key);
            if plan.config.serve.passthrough && !plan.keys.are_needed() {
                client_key = vendor_key(head);
            }
        }
        Caller::UnknownKey if plan.config.serve.passthrough => {
            client_key = vendor_key(head);
            // Without this check, a key that cannot be a header would be replaced by the gateway's own.
            if client_key.is_none() {
                return Err(refuse(context, Refusal::key_unknown()));
            }
        }
        Caller::NoKey => return Err(refuse(context, Refusal::key_missing())),
        Caller::UnknownKey => return Err(refuse(context, Refusal::key_unknown())),
    }
    if let Some((_, tenant)) = &client_key {
        context.tenant = tenant.clone();
        context.key = PASSTHROUGH.into();
    }
    let client_key = client_key.map(|(key, _)| key);
    if let Endpoint::Models(dialect) | Endpoint::Model(dialect) = endpoint {
        let one = matches!(endpoint, Endpoint::Model(_)).then(|| model_in(head.path())).flatten();
        return Err(match model_list(plan, &context.key, dialect, one.as_deref()) {
            Some(body) => immediate_bytes(context, 200, body),
            None => refuse(context, Refusal::model(plan, one.as_deref().unwrap_or_default())),
        });
    }
    context.trace = core.state.trace(&head.fields, context, endpoint.operation());
    context.method = endpoint.method();
    if !is_json(&head.fields) {
        return Err(refuse(context, Refusal::content_type()));
    }
    if let Some(encoding) = content_encoding(&head.fields) {
        return Err(refuse(context, Refusal::content_encoding(encoding)));
    }
    if client_deadline(&head.fields).is_err() {
        return Err(refuse(context, Refusal::deadline()));
    }
    let path_model = model_and_verb(head.path());
    if endpoint.dialect().has_model_in_path() && path_model.is_none() {
        return Err(refuse(context, Refusal::no_model_in_path()));
    }
    let path_model = path_model.map(|(model, verb)| (model, verb == "streamGenerateContent"));
    Ok(Admission { client_key, hints: Hints::of(&head.fields), path_model })
}

/// A ticket for a session, as the caller wants it.
async fn issue_ticket(
    core: &CoreState,
    plan: &Plan,
    context: &RequestContext,
    body: &[u8],
) -> ResponseFuture {
    let refuse = |refusal: Refusal| immediate_error(refusal.reply(&core.state, plan, context));
    let order: TicketOrder = match serde_json::from_slice(if body.is_empty() { b"{}" } else { body }) {
        Ok(order) => order,
        Err(error) => return refuse(Refusal::order(&error, body)),
    };
    let TicketOrder { origin, session, routes } = order;
    let session = session.filter(|session| session != "new");
    let key = plan.keys.are_needed().then(|| context.key.to_string());
    let grant = Grant { origin, routes, key };
    let ticket = Ticket { tenant: context.tenant.name().to_owned(), session, grant };
    let (ttl, wall) = (plan.config.sessions.ticket_ttl, core.state.wall());
    let issued = storage::ask(&core.state, move |store| ticket.issue(store, ttl, wall)).await;
    match issued {
        Some(Some(secret)) => {
            let length = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            immediate_json(context, 200, &json!({"ticket": secret, "expires_in_ms": length}))
        }
        Some(None) => refuse(Refusal::internal()),
        None => refuse(Refusal::store(core.state.store.place())),
    }
}

/// What a ticket is wanted for.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketOrder {
    #[serde(default)]
    origin: Option<String>,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    routes: Option<Vec<String>>,
}

/// The response to a request that was admitted. This only makes the future: [`PendingResponse::response`] runs it until it has a head, and the
/// connection runs it from there to the end. A large request is counted on the core of its connection.
pub(crate) fn serve_on(
    core: Rc<CoreState>,
    intake: Intake,
    endpoint: Endpoint,
    open: Option<OpenRequest>,
) -> ResponseFuture {
    ResponseFuture::of(move |sender| async move {
        let _open = open;
        let served = match endpoint {
            Endpoint::Embeddings => {
                core.until_end(Box::pin(embeddings::serve(&core, &intake, &sender)).as_mut()).await
            }
            Endpoint::Count(_) => {
                core.until_end(Box::pin(count::serve(&core, &intake, &sender)).as_mut()).await
            }
            _ => {
                generate::serve(&core, &intake, &sender).await;
                Some(())
            }
        };
        if served.is_none() && !sender.has_head() {
            let error_reply = Refusal::stopping().reply(&core.state, &intake.plan, &intake.context);
            Box::pin(generate::send_error(&core, &sender, error_reply)).await;
        }
        // Never reached for a client that disconnects.
        intake.context.trace.finish();
    })
}

/// The response to a request of a rehearsal: to chat completions, in a body that was read, of a client that may call.
pub(crate) fn rehearse(core: &Rc<CoreState>, body: Bytes) -> ResponseFuture {
    let (plan, headers) = (core.state.plan(), Fields::default());
    let mut context = context(core, &plan, &headers);
    context.is_local = true;
    let (hints, share) = (Hints::of(&headers), core.state.memory.share());
    let intake = Intake { context, plan, body, client_key: None, hints, path_model: None, _memory: share };
    serve_on(Rc::clone(core), intake, Endpoint::Generate(Dialect::Chat), Some(OpenRequest::on(core)))
}

fn context(core: &CoreState, plan: &Plan, headers: &Fields) -> RequestContext {
    let state = &core.state;
    let (began, wall) = (state.now(), state.wall());
    let max_time = plan.config.serve.deadline;
    // An unreadable deadline is refused by `admit`.
    let asked = client_deadline(headers).ok().flatten().filter(|asked| *asked < max_time);
    RequestContext {
        id: RequestId::of_client(headers).unwrap_or_else(new_request_id),
        tenant: plan.keys.local(),
        key: plan.keys.local_name(),
        lang: language(headers, plan.config.language),
        began,
        wall,
        deadline: began.after(asked.unwrap_or(max_time)),
        is_clients_deadline: asked.is_some(),
        agent: crate::shared::context::agent(headers),
        trace: Trace::default(),
        dialect: Dialect::Chat,
        method: Endpoint::Generate(Dialect::Chat).method(),
        program: Program::default(),
        is_local: false,
        list: false,
        betas: crate::shared::context::betas(headers),
        sends: crate::http::upstream::Sends::default(),
        attempts: std::cell::Cell::default(),
        route: std::cell::OnceCell::new(),
        is_lesser: std::cell::Cell::default(),
        notices: None,
    }
}

/// The key in the address, as Google's clients may send it.
fn key_in_query(head: &Head) -> Option<String> {
    let mut pairs = form_urlencoded::parse(head.query().as_bytes());
    pairs.find(|(name, _)| name == "key").map(|(_, key)| key.into_owned()).filter(|key| !key.is_empty())
}

/// The list of models, or one of them, in the format of the dialect.
fn model_list(plan: &Plan, key: &str, dialect: Dialect, one: Option<&str>) -> Option<Bytes> {
    let mut names = plan.listed_models();
    names.retain(|name| plan.allows(key, Some(name), name));
    if let Some(one) = one {
        // A model that only a wildcard matches is not in the list, but exists.
        let route = plan.route(one)?;
        if !plan.allows(key, route.name.as_deref(), one) {
            return None;
        }
        return Some(match dialect {
            Dialect::Gemini => gemini::models::one(one),
            Dialect::Messages => messages::models::one(one).into(),
            Dialect::Chat | Dialect::Responses => models::one(one).into(),
        });
    }
    let names = names.iter().map(String::as_str);
    Some(match dialect {
        Dialect::Gemini => gemini::models::list(names),
        Dialect::Messages => messages::models::list(names).into(),
        Dialect::Chat | Dialect::Responses => models::list(names).into(),
    })
}

/// The content encoding of the body, if any.
fn content_encoding(headers: &Fields) -> Option<&str> {
    let encoding = headers.get(CONTENT_ENCODING)?;
    let encoding = std::str::from_utf8(encoding).unwrap_or("?").trim();
    Some(encoding).filter(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}

/// The client's own key, in its vendor's header, and the tenant derived from it.
fn vendor_key(head: &Head) -> Option<(HeaderValue, Tenant)> {
    let in_query = key_in_query(head);
    let key = crate::route::auth::presented(&head.fields).or(in_query.as_deref())?;
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
    value.set_sensitive(true);
    Some((value, borrowed_tenant(key)))
}

/// Whether requests can be served; trusted callers get details, and the reason if not.
fn ready(core: &CoreState, context: &RequestContext, is_trusted: bool) -> ResponseFuture {
    let health = core.state.ledger.health();
    let backing = core.state.plan().backing();
    let why = match backing {
        _ if !health.loaded => Some("store"),
        Backing::Nothing => Some(core.state.plan().lack()),
        _ => None,
    };
    let status = if why.is_none() { 200 } else { 503 };
    if !is_trusted {
        return immediate_json(context, status, &json!({"ready": why.is_none()}));
    }
    let mut body = json!({
        "ready": why.is_none(),
        "store": {"connected": health.connected, "journal_dropped": health.journal_dropped},
        "simulated": backing != Backing::Providers,
        "demo": backing == Backing::Demo,
    });
    if let (Some(error), Some(store)) = (store_error(&health), body.pointer_mut("/store")) {
        store["error"] = error.into();
    }
    if let (Some(why), Some(body)) = (why, body.as_object_mut()) {
        let text = |part: &str| core.state.phrases.text(context.lang, &format!("ready-{why}.{part}"), &[]);
        body.insert("reason".to_owned(), why.replace('-', "_").into());
        body.insert("message".to_owned(), text("message").into());
        body.insert("suggestion".to_owned(), text("suggestion").into());
    }
    immediate_json(context, status, &body)
}
