//! Who may use the admin API, and how a person signs in at the dashboard.
//!
//! Programs send the admin key with each request. A person types it once: the answer sets a cookie that holds a random session, which scripts
//! cannot read and other sites cannot send. A change that a browser sends, by such a session or on this machine without any key, must come
//! from the gateway's own page and carry the token that only this page can read.

use http::Method;
use http::header::{CACHE_CONTROL, COOKIE, HeaderName, ORIGIN, SET_COOKIE};
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::head::Head;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use utoipa::ToSchema;

use super::AdminRequest;
use crate::http::exchange::Request;
use crate::http::response_future::ResponseFuture;
use crate::reply;
use crate::reply::refusal::Refusal;
use crate::route::auth::is_key;
use crate::route::plan::Plan;
use crate::shared::disclosure::Disclosure;
use crate::shared::locality::{Client, is_operator, is_own_page};
use crate::shared::state::SharedState;
use crate::shared::visitors::{MAX_AGE, is_token};

/// The header with the token of a change.
static TOKEN: HeaderName = HeaderName::from_static("x-koboshi-csrf");
/// A header that browsers send and that pages cannot set.
const OF_BROWSER: &str = "sec-fetch-site";

/// How a caller is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// By the admin key, in a header.
    Key,
    /// By a session, whose changes need this token.
    Session(String),
    /// Without a key, on this machine; changes that a browser sends need the token.
    Local(String),
    /// Not at all.
    No,
}

/// How this caller is let in.
pub(super) fn of(state: &SharedState, plan: &Plan, client: Client, headers: &Fields) -> Access {
    if let Some(key) = plan.config.admin.sha256.as_deref() {
        if is_operator(plan, client, headers) {
            return Access::Key;
        }
        let token = cookie(plan, headers).and_then(|cookie| state.visitors.token(&cookie, key, state.now()));
        return token.map_or(Access::No, Access::Session);
    }
    if is_operator(plan, client, headers) {
        Access::Local(state.visitors.local_token().unwrap_or_default().to_owned())
    } else {
        Access::No
    }
}

/// Why this caller may not do this, if it may not.
pub(super) fn check(access: &Access, plan: &Plan, head: &Head) -> Option<Refusal> {
    let is_browser = head.fields.has(ORIGIN) || head.fields.has(OF_BROWSER);
    let token = match access {
        Access::No => {
            let is_key_set = plan.config.admin.sha256.is_some();
            return Some(Refusal::admin(is_key_set, plan.keys.are_needed()));
        }
        Access::Key => return None,
        Access::Local(_) if !is_browser => return None,
        Access::Session(token) | Access::Local(token) => token,
    };
    if matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let is_own = head.fields.text(ORIGIN).is_none_or(|origin| is_own_page(origin, &head.fields));
    let given = head.fields.text(&TOKEN).unwrap_or_default();
    (!is_own || token.is_empty() || !is_token(token, given)).then(Refusal::csrf)
}

/// The session that lets a caller in, where one does.
pub(super) fn session_of(access: &Access, plan: &Plan, headers: &Fields) -> Option<String> {
    matches!(access, Access::Session(_)).then(|| cookie(plan, headers)).flatten()
}

/// Whether a session has neither ended nor lost its key.
pub(super) fn is_live(state: &SharedState, session: &str) -> bool {
    let plan = state.plan();
    let key = plan.config.admin.sha256.as_deref();
    key.is_some_and(|key| state.visitors.token(session, key, state.now()).is_some())
}

/// Who looks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Visitor {
    /// Whether the admin API answers this caller.
    signed_in: bool,
    /// Whether it can sign in with the admin key; if not, none is set.
    can_sign_in: bool,
    /// Whether there is a session to end.
    can_sign_out: bool,
    /// What a change must carry in the header `x-koboshi-csrf`.
    csrf: Option<String>,
}

/// Whether the caller is let in, and the token of its changes. It needs no key.
#[cfg_attr(test, utoipa::path(get, path = super::paths::SESSION, tag = "access",
    responses((status = 200, description = "Whether the caller is signed in", body = Visitor))))]
pub(super) fn visitor(admin: &AdminRequest<'_>) -> Visitor {
    let (csrf, can_sign_out) = match &admin.access {
        Access::Session(token) => (Some(token.clone()), true),
        Access::Local(token) => (Some(token.clone()), false),
        Access::Key | Access::No => (None, false),
    };
    Visitor {
        signed_in: admin.access != Access::No,
        can_sign_in: admin.plan.config.admin.sha256.is_some(),
        can_sign_out,
        csrf,
    }
}

/// An order about the session of the dashboard.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SessionOrder {
    /// The admin key, to sign in; without it the session ends.
    key: Option<String>,
}

/// Signs in or out.
#[cfg_attr(test, utoipa::path(post, path = super::paths::SESSION, tag = "access", request_body = SessionOrder,
    responses((status = 200, description = "Signed in or out; the cookie is in `set-cookie`", body = Visitor),
              (status = 401, description = "Not the admin key, or none is set"),
              (status = 403, description = "Not from the dashboard of this gateway, or to sign out without its token"))))]
pub(super) async fn change(admin: &AdminRequest<'_>, request: &Request) -> Result<ResponseFuture, Refusal> {
    let headers = &request.head.fields;
    // Not even an allowed page of elsewhere signs a person in.
    if headers.text(ORIGIN).is_some_and(|origin| !is_own_page(origin, headers)) {
        return Err(Refusal::csrf());
    }
    let order: SessionOrder = admin.order(request).await?;
    let state = &admin.core.state;
    let can_sign_in = admin.plan.config.admin.sha256.is_some();
    let (visitor, cookie, max_age) = match order.key {
        Some(key) => {
            let hash = admin.plan.config.admin.sha256.as_deref().filter(|hash| is_key(hash, &key));
            let hash = hash.ok_or_else(|| Refusal::admin(can_sign_in, admin.plan.keys.are_needed()))?;
            let session = state.visitors.begin(hash, state.now()).ok_or_else(Refusal::internal)?;
            let csrf = Some(session.token);
            let visitor = Visitor { signed_in: true, can_sign_in, can_sign_out: true, csrf };
            (visitor, session.cookie, MAX_AGE.as_secs())
        }
        None => {
            if let Some(refusal) = check(&admin.access, admin.plan, &request.head) {
                return Err(refusal);
            }
            if let Some(cookie) = cookie(admin.plan, headers) {
                state.visitors.end(&cookie);
            }
            let visitor = Visitor { signed_in: false, can_sign_in, can_sign_out: false, csrf: None };
            (visitor, String::new(), 0)
        }
    };
    let body = serde_json::to_vec(&visitor).map_err(|_| Refusal::internal())?;
    let mut heading = reply::head(200, "application/json", admin.context, &Disclosure::default());
    // A proxy that the config does not name may still end TLS: the browser knows.
    let is_page_secure = headers.text(ORIGIN).is_some_and(|origin| origin.starts_with("https://"));
    let is_secure = admin.client.is_secure || is_page_secure;
    let secure = if is_secure { "; Secure" } else { "" };
    let name = cookie_name(admin.plan);
    let set = format!(
        "{name}={cookie}; Path={}; Max-Age={max_age}; HttpOnly; SameSite=Strict{secure}",
        super::paths::ROOT
    );
    heading.add(SET_COOKIE, set.as_str());
    heading.add(CACHE_CONTROL, "no-store");
    Ok(ResponseFuture::at_once(heading, body.into()))
}

/// The name of the cookie: two gateways on one machine share a host, and so a name.
fn cookie_name(plan: &Plan) -> String {
    format!("koboshi_{}", plan.config.serve.listen.port())
}

/// The session that a browser sent.
fn cookie(plan: &Plan, headers: &Fields) -> Option<String> {
    let name = cookie_name(plan);
    let pairs = headers.text(COOKIE)?.split(';');
    let mut own = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(known, _)| *known == name);
    own.next().map(|(_, value)| value.to_owned()).filter(|value| !value.is_empty())
}
