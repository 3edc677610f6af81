//! Web pages: which may call, and what their browsers are told.
//!
//! On the loopback address the danger is not a stranger but the user's own browser: a web page must not spend the user's keys. So the name in
//! `Host` must be this machine's, and a page of elsewhere is refused unless the config names it. One that is named is told so, or its browser
//! would keep the answer from it.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::plan::Plan;
use koboshi_wire::http1::Fields;

/// What a page may read of an answer besides its body.
const READABLE: &str = "x-request-id, retry-after, x-should-retry, x-koboshi-attempts, x-koboshi-target, x-koboshi-degraded, x-koboshi-cache, \
                        x-koboshi-fault, x-koboshi-guard, x-koboshi-reask, x-koboshi-repaired, x-koboshi-translated, x-koboshi-trimmed, request-id";

/// What is wrong with the page or name that a request comes from, if anything.
pub(crate) fn check(plan: &Plan, headers: &Fields, is_allowed: bool) -> Option<&'static str> {
    let serve = &plan.config.serve;
    if !is_allowed && headers.has(ORIGIN) {
        return Some("web pages of this origin may not call; add it to serve.origins");
    }
    if !serve.listen.ip().is_loopback() {
        return None;
    }
    // HTTP/1.0 and bare clients may leave the name out; a browser never does.
    headers.get(HOST)?;
    let host = headers.text(HOST).map(host_name);
    let known = host.is_some_and(|host| {
        matches!(host, "localhost" | "127.0.0.1")
            || host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            || serve.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    });
    (!known).then_some("this name is not served here; add it to serve.hosts")
}

/// The name without its port.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// The page that a request comes from, if it may call.
pub(crate) fn allowed(plan: &Plan, headers: &Fields) -> Option<HeaderValue> {
    let origin = headers.text(ORIGIN)?;
    let known = plan.config.serve.origins.iter().find(|known| *known == origin)?;
    HeaderValue::from_str(known).ok()
}

/// Tells the browser that this page may read the answer.
pub(crate) fn admit(headers: &mut HeaderMap, page: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READABLE));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The answer to a browser that asks what a page may send. Whether the page itself may is said by [`admit`].
pub(crate) fn preflight(asked: &Fields) -> Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::NO_CONTENT;
    parts.headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    parts.headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let asked = asked.get(ACCESS_CONTROL_REQUEST_HEADERS);
    if let Some(headers) = asked.and_then(|asked| HeaderValue::from_bytes(asked).ok()) {
        parts.headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_without_their_port() {
        assert_eq!(host_name("localhost:4141"), "localhost");
        assert_eq!(host_name("[::1]:4141"), "::1");
        assert_eq!(host_name("evil.example"), "evil.example");
    }
}
