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
use koboshi_wire::http1::{Fields, Heading, Lines};

use crate::plan::Plan;
use crate::refusal::Refusal;

/// What a page may read of an answer besides its body.
const READABLE: &str = "x-request-id, retry-after, x-should-retry, x-koboshi-attempts, x-koboshi-target, x-koboshi-degraded, x-koboshi-cache, \
                        x-koboshi-fault, x-koboshi-guard, x-koboshi-reask, x-koboshi-repaired, x-koboshi-sends, x-koboshi-simulated, x-koboshi-translated, x-koboshi-trimmed, request-id";

/// What is wrong with the page or name that a request comes from, if anything.
pub(crate) fn check(plan: &Plan, headers: &Fields, is_allowed: bool) -> Option<Refusal> {
    let serve = &plan.config.serve;
    if !is_allowed && headers.has(ORIGIN) {
        return Some(Refusal::origin(headers.text(ORIGIN).unwrap_or_default()));
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
    (!known).then(|| Refusal::host(host.unwrap_or_default()))
}

/// The name without its port.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    let colon = memchr::memrchr(b':', host.as_bytes());
    colon.and_then(|colon| host.get(..colon)).unwrap_or(host)
}

/// The page that a request comes from, if it may call.
pub(crate) fn allowed(plan: &Plan, headers: &Fields) -> Option<String> {
    let origin = headers.text(ORIGIN)?;
    plan.config.serve.origins.iter().find(|known| *known == origin).cloned()
}

/// Tells the browser that this page may read the answer.
pub(crate) fn admit(lines: &mut Lines, page: &str) {
    lines.add(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    lines.add(ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
    lines.add(VARY, "origin");
}

/// The answer to a browser that asks what a page may send. Whether the page itself may is said by [`admit`].
pub(crate) fn preflight(asked: &Fields) -> Heading {
    let mut heading = Heading::of(204);
    heading.add(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST");
    heading.add(ACCESS_CONTROL_MAX_AGE, "600");
    if let Some(headers) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        heading.add(ACCESS_CONTROL_ALLOW_HEADERS, headers);
    }
    heading
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
