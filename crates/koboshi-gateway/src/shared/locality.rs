//! Whether a request comes from this machine.
//!
//! The peer address is not enough: behind a reverse proxy on the same machine every client of the world has it. So a request
//! with a header that proxies add counts as remote, and so does one of HTTP/1.0, which nginx speaks
//! by default. Another proxy that adds no header looks like a local program; where `keys` are set, operators and readers of metrics
//! therefore need a separate key, wherever the request comes from.

use std::net::SocketAddr;

use http::Version;
use http::header::HOST;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::head::Head;

use crate::route::auth::{is_key, presented};
use crate::route::plan::Plan;

/// Whether the client is probably a program on this machine.
pub(crate) fn is_local(peer: SocketAddr, head: &Head) -> bool {
    peer.ip().to_canonical().is_loopback()
        && head.version != Version::HTTP_10
        && head.fields.pairs_of(is_of_a_proxy).next().is_none()
}

/// Whether the caller may use the admin API.
pub(crate) fn is_operator(plan: &Plan, peer: SocketAddr, head: &Head) -> bool {
    match &plan.config.admin.sha256 {
        Some(hash) => presented(&head.fields).is_some_and(|key| is_key(hash, key)),
        None => is_trusted_here(plan, peer, head),
    }
}

/// Whether the caller may read metrics and the details of readiness.
pub(crate) fn may_see_metrics(plan: &Plan, peer: SocketAddr, head: &Head) -> bool {
    plan.config.serve.public_metrics || is_trusted_here(plan, peer, head) || is_operator(plan, peer, head)
}

/// Whether a local caller is trusted without a key. Anyone may reach the loopback address of a public gateway through a tunnel: so only
/// a gateway that listens there trusts it. And one with `keys` is open to others, who may come through a proxy.
fn is_trusted_here(plan: &Plan, peer: SocketAddr, head: &Head) -> bool {
    !plan.keys.are_needed() && plan.config.serve.is_loopback() && is_local(peer, head)
}

/// Whether a page comes from this gateway itself: from the host that is asked. What may be a host is checked at the edge.
pub(crate) fn is_own_page(origin: &str, headers: &Fields) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some() && host == headers.text(HOST)
}

/// Whether proxies add a header of this name.
fn is_of_a_proxy(name: &[u8]) -> bool {
    match name.first() {
        Some(b'x') => name.starts_with(b"x-forwarded") || name == b"x-real-ip",
        Some(b'f') => name == b"forwarded",
        Some(b'v') => name == b"via",
        Some(b'c') => name == b"cf-connecting-ip",
        Some(b't') => name == b"true-client-ip",
        _ => false,
    }
}
