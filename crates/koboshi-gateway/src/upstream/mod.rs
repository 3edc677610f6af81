//! The way to the providers: one call that sends a request and returns the head of the answer.
//!
//! It knows sockets, TLS, proxies and the built-in provider, and nothing of faults beyond the way itself: what an answer
//! means is the classifier's business, what to do about it the attempt's.

mod body;
mod connect;
mod link;
mod origin;
mod pool;
mod shared;
pub(crate) mod sim;
pub(crate) mod trouble;
mod trust;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use hyper_util::client::proxy::matcher::Matcher;
use koboshi::fault::Fault;
use rustls::ClientConfig;

pub(crate) use body::Body;
pub(crate) use origin::{Origin, OriginError};
pub(crate) use trust::{Trust, tls_config};

pub(crate) use connect::Connector;
use pool::{Ask, Pool};

use koboshi_wire::http1::Fields;

/// Where a request goes.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    /// To a server.
    Server(&'a Origin),
    /// To the built-in provider, with this model; perhaps because no other is known, and nobody has asked for it.
    Sim { model: &'a str, stands_in: bool },
}

/// Writes down a header that it is told.
pub(crate) type Writer<'w> = dyn FnMut(&HeaderName, &HeaderValue) + 'w;

/// The head of an answer, and its body to come.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) head: Fields,
    pub(crate) body: Body,
}

/// A request to a provider.
pub(crate) struct Post<'a> {
    pub(crate) way: Way<'a>,
    /// Such as `/chat/completions`.
    pub(crate) interface: &'static str,
    /// Tells the headers to whoever writes them down.
    pub(crate) headers: &'a dyn Fn(&mut Writer<'_>),
    pub(crate) body: Bytes,
    pub(crate) connect_limit: Duration,
}

/// The way to the providers, from one core.
pub(crate) struct Upstream {
    pool: Rc<Pool>,
    sim: Arc<sim::Stage>,
}

impl Upstream {
    pub(crate) fn new(tls: Option<Arc<ClientConfig>>, proxies: Arc<Matcher>, sim: Arc<sim::Stage>) -> Self {
        Self { pool: Pool::new(Connector::new(tls, proxies)), sim }
    }

    /// Lets go of connections that nobody has used for long.
    pub(crate) fn tidy(&self) {
        self.pool.tidy();
    }

    /// Sends, and waits for the head of the answer. How long that may take is for the caller to say.
    pub(crate) async fn send(&self, post: Post<'_>) -> Result<Answered, Box<Fault>> {
        let origin = match post.way {
            Way::Server(origin) => origin,
            Way::Sim { model, stands_in } => {
                return self.sim.play(model, stands_in, post.interface, &post.body).await;
            }
        };
        let Some(path) = origin.path(post.interface) else {
            return Err(trouble::cut("the address of the provider makes no path"));
        };
        let Post { headers, body, connect_limit, .. } = post;
        self.pool.send(&Ask { origin, path: &path, headers, body, connect_limit }).await
    }
}
