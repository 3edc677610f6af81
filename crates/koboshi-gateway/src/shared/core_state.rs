//! The state of one core: its connections to providers, and the state that all cores share.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;

use crate::http::client::Connections;
use crate::http::upstream::Upstream;
use crate::shared::chains::Chains;
use crate::shared::large::LargeCores;
use crate::shared::state::SharedState;

/// One core's part of the gateway. It never leaves its thread.
pub(crate) struct CoreState {
    /// Itself, for tasks that outlive a request.
    pub(crate) weak: Weak<Self>,
    pub(crate) state: Arc<SharedState>,
    pub(crate) upstream: Upstream,
    pub(crate) chains: Chains,
    pub(crate) connections: Connections,
    /// The cores for large requests; none where this core is one.
    pub(crate) large: Option<Arc<LargeCores>>,
}

impl CoreState {
    /// Runs to its end; none where the drain time is over before. Needs no registration: every connection is woken then.
    pub(crate) async fn until_end<T>(&self, mut served: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        poll_fn(|context| match served.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.connections.are_ending() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    pub(crate) fn new(
        state: Arc<SharedState>,
        upstream: Upstream,
        large: Option<Arc<LargeCores>>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            state,
            upstream,
            chains: Chains::default(),
            connections: Connections::default(),
            large,
        })
    }
}
