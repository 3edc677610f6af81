//! Whether a request comes from this machine.
//!
//! The peer address is not enough: behind a reverse proxy on the same machine every client of the world has it. So a request
//! with a header that proxies add counts as remote. A proxy that adds none looks like a local program; where
//! `keys` are set, an operator therefore needs a separate key, wherever the request comes from.

use std::net::SocketAddr;

use http::header::HOST;
use koboshi_wire::http1::Fields;

use crate::route::auth::{is_key, presented};
use crate::route::plan::Plan;

/// Whether the client is probably a program on this machine.
pub(crate) fn is_local(peer: SocketAddr, headers: &Fields) -> bool {
    peer.ip().to_canonical().is_loopback() && headers.pairs_of(is_of_a_proxy).next().is_none()
}

/// Whether the caller may use the admin API.
pub(crate) fn is_operator(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    match &plan.config.admin.sha256 {
        Some(hash) => presented(headers).is_some_and(|key| is_key(hash, key)),
        None => !plan.keys.are_needed() && is_at_this_machine(plan, peer, headers),
    }
}

/// Whether the caller may read metrics and the details of readiness.
pub(crate) fn may_see_metrics(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    plan.config.serve.public_metrics
        || is_at_this_machine(plan, peer, headers)
        || is_operator(plan, peer, headers)
}

/// Whether a local caller can be trusted. Anyone may reach the loopback address of a public gateway through a tunnel: so only a gateway
/// that listens there trusts it.
fn is_at_this_machine(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    plan.config.serve.is_loopback() && is_local(peer, headers)
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
