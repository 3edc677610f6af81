//! A request to a provider, as HTTP/1.1 text or as an HTTP/2 message.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, Version};
use http_body_util::Full;
use koboshi_wire::http1::out::content_length;
use tokio::time::Instant;

use super::Writer;
use super::connect::ForwardProxy;
use super::origin::Origin;
use super::sends::Sends;

pub(super) type Payload = Full<Bytes>;

/// A request.
pub(crate) struct ServerRequest<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) path: &'a PathAndQuery,
    /// Writes the headers with a writer; called twice for a request that meets a dead connection.
    pub(crate) headers: &'a dyn Fn(&mut Writer<'_>),
    pub(crate) body: &'a Bytes,
    pub(crate) connect_limit: Duration,
    /// When it began to be sent.
    pub(crate) began: Instant,
    /// Counts sends, for the client's request.
    pub(crate) sends: &'a Sends,
    /// Called when it is sent again.
    pub(crate) on_resend: &'a dyn Fn(),
}

impl ServerRequest<'_> {
    /// Writes it as text. A proxy needs the absolute address, and may need credentials.
    pub(super) fn write(&self, out: &mut Vec<u8>, via: Option<&ForwardProxy>) {
        out.extend_from_slice(b"POST ");
        let whole = via.and_then(|_| self.origin.absolute(self.path));
        match whole {
            Some(address) => out.extend_from_slice(address.to_string().as_bytes()),
            None => out.extend_from_slice(self.path.as_str().as_bytes()),
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let mut put = |name: &HeaderName, value: &HeaderValue| {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        };
        put(&HOST, self.origin.authority());
        (self.headers)(&mut put);
        if let Some(auth) = via.and_then(ForwardProxy::auth) {
            put(&PROXY_AUTHORIZATION, auth);
        }
        content_length(out, self.body.len() as u64);
        out.extend_from_slice(b"\r\n");
    }

    /// As an HTTP/2 message: its address names the host.
    pub(super) fn message(&self) -> Request<Payload> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        if let Some(address) = self.origin.absolute(self.path) {
            *request.uri_mut() = address;
        }
        let headers = request.headers_mut();
        (self.headers)(&mut |name, value| {
            headers.insert(name, value.clone());
        });
        request
    }
}
