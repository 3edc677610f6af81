//! Whether a request comes from this machine.
//!
//! The address of the other end is not enough: behind a reverse proxy on the same machine every client of the world has it. So whatever
//! carries a header that proxies add counts as coming from elsewhere. A proxy that adds none cannot be told from a local program; where
//! `keys` are set, an operator therefore needs a key of their own, wherever the request comes from.

use std::net::SocketAddr;

use koboshi_wire::http1::Fields;

use crate::route::auth::{is_key, presented};
use crate::route::plan::Plan;

/// Whether the client is a program on this machine, as far as can be told.
pub(crate) fn is_local(peer: SocketAddr, headers: &Fields) -> bool {
    peer.ip().to_canonical().is_loopback() && headers.pairs_of(is_of_a_proxy).next().is_none()
}

/// Whether the caller may see and change what operators see and change.
pub(crate) fn is_operator(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    match &plan.config.admin.sha256 {
        Some(hash) => presented(headers).is_some_and(|key| is_key(hash, key)),
        None => !plan.keys.are_needed() && is_at_this_machine(plan, peer, headers),
    }
}

/// Whether the caller may see metrics and the details of readiness.
pub(crate) fn may_see_metrics(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    plan.config.serve.public_metrics
        || is_at_this_machine(plan, peer, headers)
        || is_operator(plan, peer, headers)
}

/// A gateway that others can reach may be reached by anybody through a tunnel to its loopback address: only one that listens there
/// trusts it.
fn is_at_this_machine(plan: &Plan, peer: SocketAddr, headers: &Fields) -> bool {
    plan.config.serve.is_loopback() && is_local(peer, headers)
}

/// Whether a proxy adds a header of this name.
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
