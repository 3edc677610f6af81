//! HTTP for the MCP client, on the stack that the rest of the program uses.
//!
//! One connection for each request: a server is asked every few seconds, and a pool would only hold connections that die meanwhile. The stream
//! of messages that a server may send by itself is not opened, because nothing waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use sse_stream::{Error as SseError, Sse, SseStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// No answer is longer.
const MAX_ANSWER: usize = 1 << 20;
/// Both forms of an answer.
const ACCEPTED: &str = "text/event-stream, application/json";

type Failure = StreamableHttpError<HttpError>;

/// Why a request could not be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("its address is not one of http or https")]
    Address,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Hyper(#[from] hyper::Error),
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error("its answer is cut or too long")]
    Body,
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// Sends requests.
#[derive(Clone)]
pub(super) struct HttpClient {
    tls: Arc<ClientConfig>,
}

/// What a request carries besides its body.
struct Head {
    session: Option<Arc<str>>,
    token: Option<String>,
    more: HashMap<HeaderName, HeaderValue>,
}

impl HttpClient {
    /// One that trusts what the machine trusts.
    pub(super) fn new() -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_platform_verifier())
            .map_err(|error| error.to_string())?;
        Ok(Self { tls: Arc::new(config.with_no_client_auth()) })
    }

    async fn send(
        &self,
        method: Method,
        address: &str,
        head: Head,
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpError> {
        let uri: Uri = address.parse().map_err(|_| HttpError::Address)?;
        let authority = uri.authority().ok_or(HttpError::Address)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(method).uri(path).header(HOST, authority.as_str());
        request = request.header(ACCEPT, ACCEPTED).header(CONTENT_TYPE, "application/json");
        if let Some(token) = head.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(session) = head.session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        for (name, value) in head.more {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body))?;
        let host = authority.host().trim_matches(['[', ']']);
        match uri.scheme_str() {
            Some("http") => {
                let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
                exchange(stream, request).await
            }
            Some("https") => {
                let name = ServerName::try_from(host.to_owned()).map_err(|_| HttpError::Address)?;
                let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(443))).await?;
                let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
                exchange(stream, request).await
            }
            _ => Err(HttpError::Address),
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, HttpError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // A failure of the connection is an error of the request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender.send_request(request).await?)
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let in_session = session.is_some();
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let answer = self.send(Method::POST, &uri, Head { session, token, more }, body).await?;
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if in_session => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => {
                // What it says may hold what it was asked with.
                let said = format!("status {}", status.as_u16());
                return Err(StreamableHttpError::UnexpectedServerResponse(said.into()));
            }
            _ => {}
        }
        let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let session = text(HEADER_SESSION_ID).map(str::to_owned);
        let form = text("content-type").unwrap_or_default().to_owned();
        let body = Limited::new(answer.into_body(), MAX_ANSWER);
        if form.starts_with("text/event-stream") {
            let data = body.into_data_stream().map(|part| part.map_err(std::io::Error::other));
            let events: BoxStream<'static, Result<Sse, SseError>> =
                Box::pin(SseStream::from_bytes_stream(data));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = body.collect().await.map_err(|_| HttpError::Body)?.to_bytes();
        if body.is_empty() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let message: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let head = Head { session: Some(session), token, more };
        self.send(Method::DELETE, &uri, head, Bytes::new()).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session: Option<Arc<str>>,
        _last_event: Option<String>,
        _token: Option<String>,
        _more: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}
