//! Where requests come in: who may call, what may be asked, how large and how slow it may be.
//!
//! Pages of elsewhere are refused ([`page`]), and only JSON is taken, which no page can send without asking first.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use koboshi::fault::Kind;
use koboshi::gate::Tenant;
use koboshi_wire::chat::models;
use koboshi_wire::http1::head::Head;
use koboshi_wire::{Dialect, gemini, messages};
use serde_json::json;

use crate::auth::Caller;
use crate::core::Core;
use crate::count;
use crate::degrade::Hints;
use crate::door::{Door, called, door, model_in, wants_list};
use crate::embeddings;
use crate::flow::Flow;
use crate::h1::Request;
use crate::h1::body::{self, Unread};
use crate::page;
use crate::plan::Plan;
use crate::program::Program;
use crate::reply::{self, Disclosure, Told};
use crate::story::{RequestId, Story, client_deadline, language, own_id};
use crate::talk::{self, Intake};
use crate::trace::Trace;
use koboshi_wire::http1::Fields;

/// Serves one request.
pub(crate) async fn handle(core: Rc<Core>, peer: SocketAddr, request: Request) -> Response<Flow> {
    let plan = core.world.plan();
    let page = page::allowed(&plan, &request.head.fields);
    let stranger = page::check(&plan, &request.head.fields, page.is_some());
    let mut response = answer(core, plan, peer, request, stranger).await;
    if let Some(page) = page {
        page::admit(response.headers_mut(), page);
    }
    response
}

async fn answer(
    core: Rc<Core>,
    plan: Arc<Plan>,
    peer: SocketAddr,
    request: Request,
    stranger: Option<&'static str>,
) -> Response<Flow> {
    let door = door(&request.head.method, request.head.path(), &request.head.fields);
    let mut story = story(&core, &plan, &request.head.fields);
    story.dialect = door.dialect();
    story.list = wants_list(door, &request.head);
    if story.dialect != Dialect::Chat {
        story.program = Program::of(&request.head.fields);
    }
    core.world.meters.open.inc();
    let open = Opened(Rc::clone(&core));
    let refused = match stranger {
        Some(message) => Some((Kind::PermissionDenied, 403, Some(message))),
        None => match door {
            Door::Nothing => Some((Kind::InvalidRequest, 404, Some("nothing is served at this path"))),
            Door::WrongMethod => {
                Some((Kind::InvalidRequest, 405, Some("this path is not served for this method")))
            }
            _ => None,
        },
    };
    if let Some((kind, status, message)) = refused {
        return say(reply::refuse(&core.world, &plan, &story, kind, status, message, None)).await;
    }
    match door {
        // What is rarely asked for is kept apart: every request would carry the room for it.
        Door::Health => say_json(&story, 200, &json!({"status": "ok"})).await,
        Door::Ready => ready(&core, &story).await,
        Door::Metrics => {
            say_text(
                &story,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                core.world.meters.text(),
            )
            .await
        }
        Door::Admin => Box::pin(crate::admin::handle(&core, &plan, &story, peer, request)).await,
        Door::Models(_) | Door::Model(_) | Door::Talk(_) | Door::Count(_) | Door::Embeddings => {
            serve(core, plan, story, door, request, open).await
        }
        Door::Preflight => at_once(page::preflight(&request.head.fields), Bytes::new()).await,
        Door::WrongMethod | Door::Nothing => say_json(&story, 404, &json!({})).await,
    }
}

/// Counts a request for as long as it is served.
struct Opened(Rc<Core>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.world.meters.open.dec();
    }
}

async fn serve(
    core: Rc<Core>,
    plan: Arc<Plan>,
    mut story: Story,
    door: Door,
    request: Request,
    open: Opened,
) -> Response<Flow> {
    let refuse = |story: &Story, kind, status, message: Option<&str>| {
        reply::refuse(&core.world, &plan, story, kind, status, message, None)
    };
    let mut own_key = None;
    match plan.keys.caller(&request.head.fields, key_in_query(&request.head).as_deref()) {
        Caller::Tenant(tenant) => {
            story.tenant = tenant;
            if plan.config.serve.passthrough && !plan.keys.are_needed() {
                own_key = vendor_key(&request.head);
            }
        }
        Caller::Stranger if plan.config.serve.passthrough => {
            own_key = vendor_key(&request.head);
            story.tenant = Tenant::new("passthrough");
        }
        Caller::Nobody => {
            return say(refuse(
                &story,
                Kind::Unauthorized,
                401,
                Some("a key is needed: send it as a bearer token"),
            ))
            .await;
        }
        Caller::Stranger => {
            return say(refuse(&story, Kind::Unauthorized, 401, Some("this key is not known here"))).await;
        }
    }
    if let Door::Models(dialect) | Door::Model(dialect) = door {
        let one = matches!(door, Door::Model(_)).then(|| model_in(request.head.path())).flatten();
        return match listed(&plan, dialect, one.as_deref()) {
            Some(body) => say_bytes(&story, 200, body).await,
            None => say(refuse(&story, Kind::ModelNotFound, 404, None)).await,
        };
    }
    story.trace = core.world.trace(&request.head.fields, &story, door.operation());
    if !is_json(&request.head.fields) {
        return say(refuse(
            &story,
            Kind::InvalidRequest,
            415,
            Some("the body must be sent as application/json"),
        ))
        .await;
    }
    let hints = Hints::of(&request.head.fields);
    let named = called(request.head.path());
    if door.dialect() == Dialect::Gemini && named.is_none() {
        return say(refuse(
            &story,
            Kind::InvalidRequest,
            404,
            Some("the path must name a model and what to do"),
        ))
        .await;
    }
    let named = named.map(|(model, verb)| (model, verb == "streamGenerateContent"));
    let most = usize::try_from(plan.config.serve.body_bytes).unwrap_or(usize::MAX);
    let body = match read_body(&plan, request, most).await {
        Ok(body) => body,
        Err(unread) => {
            return say(refuse(&story, unread.kind(), unread.status(), unread.said())).await;
        }
    };
    give(Flow::of(move |tap| async move {
        let _open = open;
        let trace = story.trace.clone();
        let intake = Intake { story, plan, body, own_key, hints, named };
        match door {
            Door::Embeddings => Box::pin(embeddings::serve(core, intake, tap)).await,
            Door::Count(_) => Box::pin(count::serve(core, intake, tap)).await,
            _ => talk::serve(core, intake, tap).await,
        }
        // A client that goes away never comes here.
        trace.finish();
    }))
    .await
}

fn story(core: &Core, plan: &Plan, headers: &Fields) -> Story {
    let world = &core.world;
    let (began, wall) = (world.now(), world.wall());
    let most = plan.config.serve.deadline;
    let deadline = client_deadline(headers).map_or(most, |asked| asked.min(most));
    Story {
        id: RequestId::of_client(headers).unwrap_or_else(own_id),
        tenant: plan.keys.local(),
        lang: language(headers, plan.config.language),
        began,
        wall,
        deadline: began.after(deadline),
        trace: Trace::default(),
        dialect: Dialect::Chat,
        program: Program::default(),
        list: false,
        betas: crate::story::betas(headers),
    }
}

/// Google's clients may send their key in the address.
fn key_in_query(head: &Head) -> Option<String> {
    let mut pairs = form_urlencoded::parse(head.query().as_bytes());
    pairs.find(|(name, _)| name == "key").map(|(_, key)| key.into_owned()).filter(|key| !key.is_empty())
}

/// The models that can be asked for, or one of them, as the dialect lists them.
fn listed(plan: &Plan, dialect: Dialect, one: Option<&str>) -> Option<Bytes> {
    let names = plan.listed_models();
    if let Some(one) = one {
        // One that a wildcard leads to is not in the list, and can be asked for.
        plan.route(one)?;
        return Some(match dialect {
            Dialect::Gemini => gemini::models::one(one),
            Dialect::Messages => messages::models::one(one).into(),
            _ => models::one(one).into(),
        });
    }
    let names = names.iter().map(String::as_str);
    Some(match dialect {
        Dialect::Gemini => gemini::models::list(names),
        Dialect::Messages => messages::models::list(names).into(),
        _ => models::list(names).into(),
    })
}

pub(crate) fn is_json(headers: &Fields) -> bool {
    let kind = headers.text(CONTENT_TYPE).unwrap_or_default();
    // As nearly everybody writes it.
    if kind == "application/json" {
        return true;
    }
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The client's own key, as its vendor wants it.
fn vendor_key(head: &Head) -> Option<HeaderValue> {
    let in_query = key_in_query(head);
    let key = crate::auth::presented(&head.fields).or(in_query.as_deref())?;
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl Unread {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Large => Kind::MessageTooLarge,
            Self::Slow => Kind::Timeout,
            Self::Broken => Kind::InvalidRequest,
        }
    }

    pub(crate) const fn status(&self) -> u16 {
        match self {
            Self::Large => 413,
            Self::Slow => 408,
            Self::Broken => 400,
        }
    }

    /// What is said besides what is said of the kind.
    pub(crate) const fn said(&self) -> Option<&'static str> {
        match self {
            Self::Large => None,
            Self::Slow => Some("the body did not come in time"),
            Self::Broken => Some("the body ended before it was whole"),
        }
    }
}

/// The body of a request, if it is there in time and not larger than that.
pub(crate) async fn read_body(plan: &Plan, request: Request, most: usize) -> Result<Bytes, Unread> {
    body::read(&request.line, most, plan.config.serve.body_time).await
}

async fn ready(core: &Core, story: &Story) -> Response<Flow> {
    let health = core.world.ledger.health();
    let status = if health.loaded { 200 } else { 503 };
    let body = json!({
        "ready": health.loaded,
        "store": {"connected": health.connected, "journal_dropped": health.journal_dropped},
        "simulated": core.world.plan().simulated,
    });
    say_json(story, status, &body).await
}

/// An answer that is there at once.
pub(crate) async fn say(told: Told) -> Response<Flow> {
    let body = told.body();
    at_once(told.parts, body).await
}

async fn say_json(story: &Story, status: u16, body: &serde_json::Value) -> Response<Flow> {
    say_bytes(story, status, body.to_string().into()).await
}

pub(crate) async fn say_bytes(story: &Story, status: u16, body: Bytes) -> Response<Flow> {
    at_once(reply::head(status, "application/json", story, &Disclosure::default()), body).await
}

async fn say_text(story: &Story, content: &'static str, text: String) -> Response<Flow> {
    at_once(reply::head(200, content, story, &Disclosure::default()), text.into()).await
}

async fn at_once(parts: http::response::Parts, body: Bytes) -> Response<Flow> {
    give(Flow::of(move |tap| async move {
        tap.head(parts);
        tap.send(body).await;
    }))
    .await
}

/// A flow as a response, as soon as it has a head.
pub(crate) async fn give(mut flow: Flow) -> Response<Flow> {
    match flow.head().await {
        Some(parts) => Response::from_parts(parts, flow),
        None => internal(),
    }
}

fn internal() -> Response<Flow> {
    let mut response = Response::new(Flow::of(|_| async {}));
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}
