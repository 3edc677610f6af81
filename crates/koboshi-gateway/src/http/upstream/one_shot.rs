//! Sends one request to one server over a connection of its own and reads the whole answer: for batches of traces, for operators and for notices.
//!
//! The connection is made like those to providers: TLS, proxies and time limits are the same. HTTP/1.1 only: one request needs no streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use koboshi::fault::{Fault, Kind, Sub};
use rustls::ClientConfig;

use super::USER_AGENT_VALUE;
use super::connect::Connector;
use super::origin::{Origin, OriginError};
use super::trust::tls_config;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no answer, in words.
pub(crate) type OneShotError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.detail)]
pub(crate) struct ConnectFailure(pub(crate) Box<Fault>);

impl ConnectFailure {
    /// Whether the connection was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.0.kind == Kind::ConnectionRefused
    }

    /// Whether the server did not speak TLS at all.
    pub(crate) fn is_plain(&self) -> bool {
        // rustls reports an answer that is no TLS record in this way.
        self.0.sub == Some(Sub::Handshake) && self.0.detail.contains("corrupt message")
    }
}

/// A server that gets a request now and then.
pub(crate) struct OneShotClient {
    pub(crate) origin: Origin,
    connector: Connector,
    /// Longer answers are refused.
    max_bytes: usize,
}

impl OneShotClient {
    /// The server at this address.
    pub(crate) fn at(address: &str, max_bytes: usize) -> Result<Self, OriginError> {
        let origin = Origin::parse(address)?;
        let tls = if origin.is_secure() { tls_config([]).ok().map(|tls| http1_only(&tls)) } else { None };
        Ok(Self { origin, connector: Connector::new(tls, Arc::new(Matcher::from_env())), max_bytes })
    }

    /// Sends a request with an absolute address, and reads the answer.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OneShotError> {
        let connected =
            self.connector.connect(&self.origin, CONNECT_TIMEOUT).await.map_err(ConnectFailure)?;
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
        // The task ends when the sender is dropped and the answer was read.
        tokio::spawn(connection);
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, self.max_bytes).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

/// What came back for a posted body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostReply {
    /// The status; one that wants to redirect is an answer like any other.
    pub status: u16,
    /// What `Retry-After` says, as a number of seconds.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

/// Posts JSON to an address, on the way on which providers are reached, and follows no redirect. The caller limits the time and runs a
/// runtime; an error does not show the address, which may be a secret.
///
/// # Errors
/// The address or a header cannot be used, or there is no answer.
pub async fn post_json(
    address: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    max_bytes: usize,
) -> Result<PostReply, String> {
    let client = OneShotClient::at(&address, max_bytes).map_err(|_| "this is no address of a web server")?;
    let mut request = Request::post(&address).header(USER_AGENT, USER_AGENT_VALUE.clone());
    request = request.header(CONTENT_TYPE, "application/json").header(CONTENT_LENGTH, body.len());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Bytes::from(body)).map_err(|_| "the address or a header cannot be sent")?;
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    let seconds =
        answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Ok(PostReply {
        status: answer.status().as_u16(),
        retry_after: seconds.map(Duration::from_secs),
        body: answer.into_body().to_vec(),
    })
}

/// The usual TLS settings, for HTTP/1.1 only.
fn http1_only(tls: &ClientConfig) -> Arc<ClientConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(tls)
}
