//! Web pages: which may call, and the headers for their browsers.
//!
//! On the loopback address the danger is not a stranger but the user's own browser: a web page must not spend the user's keys. So the name in
//! `Host` must be this machine's, and a page from elsewhere is refused unless the config allows it. An allowed page gets CORS headers, or
//! its browser would withhold the answer.

use http::Version;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use koboshi_wire::http1::head::Head;
use koboshi_wire::http1::{Fields, HeaderLines, Heading};

use crate::edge::endpoint;
use crate::reply::refusal::Refusal;
use crate::route::plan::Plan;
use crate::shared::locality::is_own_page;

/// The headers of an answer that a page may read.
const READABLE: &str = "x-request-id, retry-after, x-should-retry, x-koboshi-attempts, x-koboshi-target, x-koboshi-degraded, x-koboshi-cache, \
                        x-koboshi-fault, x-koboshi-guard, x-koboshi-reask, x-koboshi-repaired, x-koboshi-sends, x-koboshi-simulated, x-koboshi-translated, x-koboshi-trimmed, request-id";

/// Why the origin or host of a request is refused, if it is.
pub(crate) fn check(plan: &Plan, head: &Head, is_allowed: bool) -> Option<Refusal> {
    let (serve, headers) = (&plan.config.serve, &head.fields);
    if !names_one_host(head) {
        return Some(Refusal::host_count());
    }
    if !is_allowed && headers.has(ORIGIN) {
        return Some(Refusal::origin(headers.text(ORIGIN).unwrap_or_default()));
    }
    if !serve.listen.ip().is_loopback() {
        return None;
    }
    // HTTP/1.0 may leave the host out; a browser never does.
    headers.get(HOST)?;
    let said = headers.text(HOST);
    let known = said.and_then(host_name).is_some_and(|host| {
        matches!(host, "localhost" | "127.0.0.1")
            || host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            || serve.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    });
    (!known).then(|| Refusal::host(said.unwrap_or_default()))
}

/// Whether a request names exactly one host. A proxy and we could interpret two hosts, or an address that differs from the header,
/// differently.
fn names_one_host(head: &Head) -> bool {
    let mut hosts = head.fields.all(HOST.as_str());
    let (first, second) = (hosts.next(), hosts.next());
    let fits = head
        .authority()
        .is_none_or(|authority| first.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_bytes())));
    second.is_none() && fits && (first.is_some() || head.version == Version::HTTP_10)
}

/// The host without its port; none if it is not valid.
fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.split_at(memchr::memchr(b':', host.as_bytes()).unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// The page that a request comes from, if it may call.
///
/// The dashboard calls the admin API beside it, and the chat page everything.
pub(crate) fn allowed(plan: &Plan, head: &Head) -> Option<String> {
    let headers = &head.fields;
    let origin = headers.text(ORIGIN)?;
    let known = plan.config.serve.origins.iter().any(|known| known == origin);
    let has_page = plan.config.serve.chat || endpoint::is_operators(head.path());
    (known || has_page && is_own_page(origin, headers)).then(|| origin.to_owned())
}

/// Adds the headers that let this page read the answer.
pub(crate) fn allow_reading(lines: &mut HeaderLines, page: &str) {
    lines.add(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    lines.add(ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
    lines.add(VARY, "origin");
}

/// The answer to a preflight request: what a page may send. [`allow_reading`] says whether the page itself may.
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

    /// A header of ours that a client sends is no header of an answer.
    const OF_REQUESTS: [&str; 4] =
        ["x-koboshi-agent", "x-koboshi-deadline", "x-koboshi-mode", "x-koboshi-screen"];

    #[test]
    fn a_page_may_read_every_header_of_ours_that_answers_have() {
        let is_ours = |text: &&str| text.starts_with("x-koboshi-") || *text == "x-should-retry";
        let names = include_str!("../observe/names.rs").split('"').filter(is_ours);
        let mut ours: Vec<_> = names.filter(|name| !OF_REQUESTS.contains(name)).collect();
        let mut readable: Vec<_> = READABLE.split(", ").filter(is_ours).collect();
        ours.sort_unstable();
        readable.sort_unstable();
        assert!(ours.len() >= 13, "{ours:?}");
        assert_eq!(readable, ours);
    }

    #[test]
    fn names_are_read_without_their_port() {
        assert_eq!(host_name("localhost:4141"), Some("localhost"));
        assert_eq!(host_name("[::1]:4141"), Some("::1"));
        assert_eq!(host_name("evil.example"), Some("evil.example"));
        for none in ["[::1].evil.example", "localhost:evil.example", "[::1", "localhost:1:2"] {
            assert_eq!(host_name(none), None, "{none}");
        }
    }
}
