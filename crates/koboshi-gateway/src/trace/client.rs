//! The way to a collector of traces: one connection a batch, made like those to providers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::ClientConfig;
use tokio::time::timeout;

use crate::upstream::{Connector, Origin, OriginError, tls_config};

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(5);
/// Until the collector has answered.
const ANSWER: Duration = Duration::from_secs(8);
/// No answer of a collector is longer.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// A collector.
pub(super) struct Collector {
    origin: Origin,
    connector: Connector,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collector({:?})", self.origin)
    }
}

impl Collector {
    /// The collector at this address.
    pub(super) fn at(address: &str) -> Result<Self, OriginError> {
        let origin = Origin::parse(address)?;
        let tls = if origin.is_secure() { tls_config([]).ok().map(|tls| one_dialect(&tls)) } else { None };
        Ok(Self { origin, connector: Connector::new(tls, Arc::new(Matcher::from_env())) })
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let connected = self.connector.connect(&self.origin, CONNECT).await.map_err(|fault| fault.detail)?;
        let (parts, body) = request.into_parts();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method;
        *request.headers_mut() = parts.headers;
        request.headers_mut().insert(HOST, self.origin.authority().clone());
        let path = parts.uri.path_and_query().cloned();
        *request.uri_mut() =
            if connected.via.is_some() { parts.uri } else { path.map(Uri::from).unwrap_or_default() };
        if let Some(auth) = connected.via.as_ref().and_then(|via| via.auth()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
        }
        let (mut sender, connection) = http1::handshake(TokioIo::new(connected.wire)).await?;
        // It ends when the sender is dropped and the answer was read.
        tokio::spawn(connection);
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        timeout(ANSWER, self.post(request)).await?
    }
}

/// The usual TLS settings, for HTTP/1.1 only: a batch a second needs no streams.
fn one_dialect(tls: &ClientConfig) -> Arc<ClientConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(tls)
}
