//! One request as one future: it yields the head of the answer first, then the body, piece by piece.
//!
//! Everything that happens to a request (attempts, pauses, relaying, recovery after a cut) is written as one async
//! function that writes to a [`ResponseSender`]. The [`ResponseFuture`] around it is the body of the response: the connection polls it, and it
//! polls the function. So there is no task and no channel per request, backpressure reaches the upstream by itself,
//! and a client that disconnects drops the whole future with all its guards.
//!
//! The function runs only while it is polled. That is intended: nothing has to happen for a client that does not read.
//!
//! **Layout.** Such a future is as large as the largest of its branches, and lives as long as its stream is open: there may be thousands of
//! them. So every `Box::pin` of the gateway has one reason: what is awaited there is rare or comes last, and boxed it takes memory only while
//! it runs. Futures that every request awaits are pinned in place, because passing one by value stores it twice, and what
//! goes from function to function by value (an attempt that has begun, a connection) is boxed once for the same reason
//! (decision 8).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use koboshi_wire::http1::Heading;

/// What the function has written and the connection has not taken yet.
#[derive(Default)]
struct Slot {
    head: RefCell<Option<Heading>>,
    piece: RefCell<Option<Bytes>>,
}

/// Where the function writes head and body.
pub(crate) struct ResponseSender {
    slot: Rc<Slot>,
    has_head: Cell<bool>,
}

impl ResponseSender {
    /// Writes the head. Only the first one counts.
    pub(crate) fn head(&self, heading: Heading) {
        if !self.has_head.replace(true) {
            *self.slot.head.borrow_mut() = Some(heading);
        }
    }

    /// Whether the head was written.
    pub(crate) fn has_head(&self) -> bool {
        self.has_head.get()
    }

    /// Writes a piece of the body, when the one before was taken.
    pub(crate) async fn send(&self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.wait_for_space().await;
        *self.slot.piece.borrow_mut() = Some(piece);
    }

    /// Writes a piece if the one before was taken; else it is not even made.
    pub(crate) fn offer_with(&self, make: impl Fn() -> Bytes) {
        let mut slot = self.slot.piece.borrow_mut();
        if slot.is_none() {
            *slot = Some(make()).filter(|piece| !piece.is_empty());
        }
    }

    /// Waits until everything that was given was taken.
    pub(crate) async fn drained(&self) {
        self.wait_for_space().await;
    }

    /// Waits until the piece before was taken. No waker is needed: the connection that takes a piece polls again when it wants more.
    async fn wait_for_space(&self) {
        poll_fn(|_| if self.slot.piece.borrow().is_some() { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

/// The body of a response, and the function that makes it.
pub(crate) struct ResponseFuture {
    handler: Option<Pin<Box<dyn Future<Output = ()>>>>,
    slot: Rc<Slot>,
}

impl ResponseFuture {
    /// Wraps a function.
    pub(crate) fn of<F: Future<Output = ()> + 'static>(handler: impl FnOnce(ResponseSender) -> F) -> Self {
        let slot = Rc::new(Slot::default());
        let sender = ResponseSender { slot: Rc::clone(&slot), has_head: Cell::new(false) };
        Self { handler: Some(Box::pin(handler(sender))), slot }
    }

    /// A complete answer.
    pub(crate) fn at_once(heading: Heading, body: Bytes) -> Self {
        let piece = Some(body).filter(|body| !body.is_empty());
        let slot = Slot { head: RefCell::new(Some(heading)), piece: RefCell::new(piece) };
        Self { handler: None, slot: Rc::new(slot) }
    }

    /// Runs until there is a head; none if the function ends without one.
    pub(crate) async fn head(&mut self) -> Option<Heading> {
        poll_fn(|context| {
            self.run(context);
            match self.slot.head.borrow_mut().take() {
                None if self.handler.is_some() => Poll::Pending,
                head => Poll::Ready(head),
            }
        })
        .await
    }

    /// Runs without taking anything. False once the function has ended and all was taken.
    pub(crate) fn poll_run(&mut self, context: &mut Context<'_>) -> bool {
        if self.slot.piece.borrow().is_none() {
            self.run(context);
        }
        self.handler.is_some() || self.slot.piece.borrow().is_some()
    }

    /// The head, once it was given; only once.
    pub(crate) fn take_head(&mut self) -> Option<Heading> {
        self.slot.head.borrow_mut().take()
    }

    /// The piece that waits.
    pub(crate) fn take_piece(&mut self) -> Option<Bytes> {
        self.slot.piece.borrow_mut().take()
    }

    fn run(&mut self, context: &mut Context<'_>) {
        if let Some(handler) = &mut self.handler
            && handler.as_mut().poll(context).is_ready()
        {
            self.handler = None;
        }
    }
}

impl ResponseFuture {
    /// The next piece of the body; none at its end.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.slot.piece.borrow().is_none() {
            self.run(context);
        }
        let piece = self.slot.piece.borrow_mut().take();
        match piece {
            None if self.handler.is_some() => Poll::Pending,
            piece => Poll::Ready(piece),
        }
    }

    /// The length of the body: known once the function has ended.
    pub(crate) fn length(&self) -> Option<u64> {
        let piece = self.slot.piece.borrow();
        self.handler.is_none().then(|| piece.as_ref().map_or(0, |piece| piece.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16) -> Heading {
        Heading::of(status)
    }

    async fn text(mut future: ResponseFuture) -> String {
        let mut text = Vec::new();
        while let Some(piece) = poll_fn(|context| future.poll_piece(context)).await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn head_first_then_every_piece_in_order() {
        let mut future = ResponseFuture::of(|sender| async move {
            sender.head(head(201));
            for piece in ["a", "", "b", "c"] {
                sender.send(Bytes::from_static(piece.as_bytes())).await;
            }
        });
        assert_eq!(future.head().await.unwrap().status, 201);
        assert_eq!(text(future).await, "abc");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_piece_at_the_end_has_a_length() {
        let mut future = ResponseFuture::of(|sender| async move {
            sender.head(head(200));
            sender.send(Bytes::from_static(b"whole")).await;
        });
        assert!(future.head().await.is_some());
        assert_eq!(future.length(), Some(5));
        assert_eq!(text(future).await, "whole");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_complete_answer_has_its_length_and_ends() {
        let mut future = ResponseFuture::at_once(head(200), Bytes::from_static(b"all"));
        assert!(future.head().await.is_some());
        assert_eq!(future.length(), Some(3));
        assert_eq!(text(future).await, "all");
        let nothing = ResponseFuture::at_once(head(204), Bytes::new());
        assert_eq!((nothing.length(), text(nothing).await.as_str()), (Some(0), ""));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_goes_away_drops_everything() {
        let guard = Rc::new(());
        let held = Rc::clone(&guard);
        let mut future = ResponseFuture::of(|sender| async move {
            let _held = held;
            sender.head(head(200));
            std::future::pending::<()>().await;
        });
        assert!(future.head().await.is_some());
        assert_eq!(Rc::strong_count(&guard), 2);
        drop(future);
        assert_eq!(Rc::strong_count(&guard), 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_function_without_a_head_is_noticed() {
        assert!(ResponseFuture::of(|_sender| async {}).head().await.is_none());
    }
}
