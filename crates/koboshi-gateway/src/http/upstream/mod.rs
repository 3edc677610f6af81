//! Sends requests to providers: one call that sends a request and returns the head of the answer.
//!
//! It knows sockets, TLS, proxies and the built-in provider, and only the faults of the connection itself: the classifier interprets
//! answers, and the attempt decides what follows.

pub(crate) mod interface;

mod body;
mod connect;
pub(crate) mod connection_fault;
mod form_client;
mod http1_connection;
mod http2_connection;
pub(crate) mod mark;
pub(crate) mod one_shot;
mod origin;
mod peek;
mod pool;
mod race;
pub(crate) mod rehearsal;
mod sends;
mod server_request;
pub(crate) mod sim;
mod stale;
mod trust;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, StatusCode};
use hyper_util::client::proxy::matcher::Matcher;
use koboshi::fault::Fault;
use rustls::ClientConfig;
use tokio::time::Instant;

pub(crate) use body::Body;
pub(crate) use form_client::FormClient;
pub(crate) use one_shot::OneShotClient;
pub(crate) use origin::{Origin, OriginError};
pub(crate) use rehearsal::RehearsedTarget;
pub(crate) use sends::Sends;
pub(crate) use trust::{Trust, tls_config};

pub(crate) use connect::Connector;
use pool::Pool;
use server_request::ServerRequest;

use crate::http::upstream::interface::Interface;
use koboshi_wire::http1::Fields;

/// Our user agent.
pub(crate) static USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("koboshi/", env!("CARGO_PKG_VERSION")));

/// Where a request goes.
#[derive(Clone, Copy)]
pub(crate) enum Destination<'a> {
    /// To a server, under this path.
    Server(&'a Origin, &'a PathAndQuery),
    /// To the built-in provider, with this model; perhaps only because no other provider is configured.
    Sim {
        model: &'a str,
        stands_in: bool,
        /// The dialect of the request.
        interface: Interface,
        /// Gemini's dialect does not state it in the body.
        streams: bool,
    },
    /// To the script of a rehearsal.
    Rehearsed { target: &'a RehearsedTarget, interface: Interface, streams: bool },
}

/// Writes one header.
pub(crate) type Writer<'w> = dyn FnMut(&HeaderName, &HeaderValue) + 'w;

/// The head of an answer, and its body to come.
pub(crate) struct UpstreamAnswer {
    pub(crate) status: StatusCode,
    pub(crate) head: Fields,
    pub(crate) body: Body,
}

/// A request to a provider.
pub(crate) struct ProviderRequest<'a> {
    pub(crate) destination: Destination<'a>,
    /// Writes the headers with a writer.
    pub(crate) headers: &'a dyn Fn(&mut Writer<'_>),
    pub(crate) body: &'a Bytes,
    pub(crate) connect_limit: Duration,
    /// When it began to be sent.
    pub(crate) began: Instant,
    /// Counts sends, for the client's request.
    pub(crate) sends: &'a Sends,
    /// Called when it is sent again because its connection was dead.
    pub(crate) on_resend: &'a dyn Fn(),
}

/// The upstream connections of one core.
pub(crate) struct Upstream {
    pool: Rc<Pool>,
    sim: Arc<sim::SimProvider>,
    form_client: Rc<FormClient>,
}

impl Upstream {
    pub(crate) fn new(
        tls: Option<Arc<ClientConfig>>,
        proxies: Arc<Matcher>,
        sim: Arc<sim::SimProvider>,
    ) -> Self {
        let pool = Pool::new(Connector::new(tls, proxies));
        let form_client = Rc::new(FormClient::new(Rc::clone(&pool)));
        Self { pool, sim, form_client }
    }

    /// The client for requests of our own.
    pub(crate) fn form_client(&self) -> &Rc<FormClient> {
        &self.form_client
    }

    /// Whether a script stands in for all providers.
    pub(crate) fn rehearses(&self) -> bool {
        self.sim.rehearses()
    }

    /// Closes connections that were idle for long.
    pub(crate) fn tidy(&self) {
        self.pool.tidy();
    }

    /// Sends, and waits for the head of the answer. The caller limits the time.
    pub(crate) async fn send(&self, request: &ProviderRequest<'_>) -> Result<UpstreamAnswer, Box<Fault>> {
        let (origin, path) = match request.destination {
            Destination::Server(origin, path) => (origin, path),
            Destination::Sim { model, stands_in, interface, streams } => {
                request.sends.begin();
                return Box::pin(self.sim.play(model, stands_in, interface, streams, request.body)).await;
            }
            Destination::Rehearsed { target, interface, streams } => {
                request.sends.begin();
                return Box::pin(self.sim.rehearse(target, interface, streams, request.body)).await;
            }
        };
        let &ProviderRequest { headers, body, connect_limit, began, sends, on_resend, .. } = request;
        let request = ServerRequest { origin, path, headers, body, connect_limit, began, sends, on_resend };
        self.pool.send(&request).await
    }
}
