//! Whether a request comes from this machine.
//!
//! The peer address is not enough: behind a reverse proxy on the same machine every client of the world has it. So a request
//! with a header that proxies add counts as remote, and so does one of HTTP/1.0, which nginx speaks by default. Another proxy that adds
//! no header looks like a local program; where `keys` are set, operators and readers of metrics therefore need a separate key, wherever
//! the request comes from. What a proxy says of its client counts only where the config trusts that proxy ([`forwarded`]).

use std::net::IpAddr;

use http::Version;
use http::header::HOST;
use koboshi_config::gateway::ServeConfig;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::head::Head;

use crate::route::auth::{is_key, presented};
use crate::route::plan::Plan;
use crate::shared::forwarded;

/// Who asks: by the address of the connection, or by what a trusted proxy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its address; that of the connection where no trusted proxy states another.
    pub(crate) address: IpAddr,
    /// Whether it is probably a program on this machine.
    pub(crate) is_local: bool,
    /// Whether it uses TLS, towards this gateway or a trusted proxy.
    pub(crate) is_secure: bool,
}

impl Client {
    /// The client of a request that came from this address.
    pub(crate) fn of(serve: &ServeConfig, peer: IpAddr, head: &Head) -> Self {
        let headers = &head.fields;
        let peer = peer.to_canonical();
        let is_secure = serve.tls.files().is_some();
        if headers.pairs_of(is_of_a_proxy).next().is_none() {
            let is_local = peer.is_loopback() && head.version != Version::HTTP_10;
            return Self { address: peer, is_local, is_secure };
        }
        if !forwarded::is_trusted(&serve.trusted_proxies, peer) {
            return Self { address: peer, is_local: false, is_secure };
        }
        let stated = forwarded::client(&serve.trusted_proxies, headers);
        Self {
            address: stated.unwrap_or(peer),
            is_local: stated.is_some_and(|address| address.is_loopback()),
            is_secure: is_secure || forwarded::is_https(headers),
        }
    }
}

/// Whether the caller may use the admin API.
pub(crate) fn is_operator(plan: &Plan, client: Client, headers: &Fields) -> bool {
    match &plan.config.admin.sha256 {
        Some(hash) => presented(headers).is_some_and(|key| is_key(hash, key)),
        None => is_trusted_here(plan, client),
    }
}

/// Whether the caller may read metrics and the details of readiness.
pub(crate) fn may_see_metrics(plan: &Plan, client: Client, headers: &Fields) -> bool {
    plan.config.serve.public_metrics || is_trusted_here(plan, client) || is_operator(plan, client, headers)
}

/// Whether a local caller is trusted without a key. Anyone may reach the loopback address of a public gateway through a tunnel: so only
/// a gateway that listens there trusts it. And one with `keys` is open to others, who may come through a proxy.
fn is_trusted_here(plan: &Plan, client: Client) -> bool {
    !plan.keys.are_needed() && plan.config.serve.is_loopback() && client.is_local
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
