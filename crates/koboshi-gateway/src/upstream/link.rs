//! A connection for one stream at a time, moved along by the request that uses it.
//!
//! hyper's connection is a future that somebody must poll. In a task of its own it gives out one piece of an answer at a time, and task and
//! request wake each other for every one; measured, that is a third of what a piece costs. Here the request polls it in its own task, each time it looks for something. Whoever waits for a word from the
//! connection waits with the connection's own [`Ear`], so that what the request causes by itself wakes nobody: it looks right
//! afterwards anyway. Only the socket is heard from outside.
//!
//! While nobody uses it a connection is not polled: that its server has closed it is seen when it is used next, before anything is sent.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;

use super::connect::Wire;
use super::pool::Payload;

/// What must be polled for a connection to go on.
type Motion = http1::Connection<TokioIo<Wire>, Payload>;

/// A connection and what moves it.
pub(crate) struct Link {
    line: http1::SendRequest<Payload>,
    /// None when it has ended.
    motion: Option<Pin<Box<Motion>>>,
    ear: Arc<Ear>,
    /// The same as a waker.
    heard: Waker,
}

/// Hears for the request that uses a connection.
#[derive(Default)]
struct Ear {
    /// The request looks by itself now.
    looks: AtomicBool,
    /// Something was heard meanwhile.
    heard: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Ear {
    /// From now on it hears for this task.
    fn listens_for(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// It hears for nobody.
    fn rests(&self) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Wake for Ear {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.looks.load(Ordering::Acquire) {
            self.heard.store(true, Ordering::Release);
        } else if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

impl Link {
    pub(super) async fn begin(wire: Wire) -> Result<Self, hyper::Error> {
        let (line, motion) = http1::handshake(TokioIo::new(wire)).await?;
        let ear = Arc::new(Ear::default());
        let heard = Waker::from(Arc::clone(&ear));
        Ok(Self { line, motion: Some(Box::pin(motion)), ear, heard })
    }

    /// Looks for something while the connection is moved along.
    fn look<T>(
        &mut self,
        context: &Context<'_>,
        mut wanted: impl FnMut(&mut http1::SendRequest<Payload>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self { line, motion, ear, heard } = self;
        ear.listens_for(context.waker());
        ear.looks.store(true, Ordering::Release);
        let mut inner = Context::from_waker(heard);
        let mut found = wanted(line, &mut inner);
        if found.is_pending() {
            ear.heard.store(false, Ordering::Release);
            if motion.as_mut().is_some_and(|motion| motion.as_mut().poll(&mut inner).is_ready()) {
                // How it ended, whoever waited for a word from it has heard.
                *motion = None;
            }
            found = wanted(line, &mut inner);
        }
        ear.looks.store(false, Ordering::Release);
        // The connection gave way to others though it had more to do; and what was found may not be all.
        if found.is_pending() && ear.heard.swap(false, Ordering::AcqRel) {
            context.waker().wake_by_ref();
        }
        found
    }

    /// Whether a request can be sent now. What cannot be told at once is a no.
    pub(super) async fn is_ready(&mut self) -> bool {
        let looked = poll_fn(|context| Poll::Ready(self.look(context, |line, inner| line.poll_ready(inner))));
        matches!(looked.await, Poll::Ready(Ok(())))
    }

    /// Sends, and waits for the head of the answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Payload>>> {
        self.ear.looks.store(true, Ordering::Release);
        let mut sent = pin!(self.line.try_send_request(request));
        poll_fn(|context| self.look(context, |_, inner| sent.as_mut().poll(inner))).await
    }

    /// The next piece of an answer.
    pub(super) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        context: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.look(context, |_, inner| Pin::new(&mut *incoming).poll_frame(inner))
    }

    /// Nobody uses it for now.
    pub(super) fn rest(&self) {
        self.ear.rests();
    }
}
