//! The breaker as a `tower` layer (feature `tower`).
//!
//! A thin shell: it asks the breaker before a call, passes the call on, and records how it ended when its future ends.
//! A future that is dropped gives its permit back. The clock is handed in, and so is the judgement what counts against
//! the target's health: a service knows its own errors.
//!
//! ```
//! use std::sync::Arc;
//! use koboshi::breaker::{Breaker, BreakerPolicy, Outcome};
//! use koboshi::chance::Seed;
//! use koboshi::time::Moment;
//! use koboshi::tower::BreakerLayer;
//!
//! let start = std::time::Instant::now();
//! let now = move || Moment::START.after(start.elapsed());
//! let breaker = Arc::new(Breaker::new(BreakerPolicy::BOTH, Seed::new(1), now())?);
//! let layer = BreakerLayer::new(breaker, now, |result: &Result<u16, std::io::Error>| match result {
//!     Ok(status) if *status < 500 => Outcome::Success,
//!     _ => Outcome::Failure,
//! });
//! # let _ = layer;
//! # Ok::<(), koboshi::breaker::BreakerPolicyError>(())
//! ```
//!
//! *Not here*: retries and hand-overs. A request that is tried again on another target is not one call of one
//! service; use [`crate::call`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::breaker::{Breaker, BreakerRefusal, Outcome, Permit};
use crate::time::Moment;

/// Puts a breaker in front of a service.
#[derive(Debug, Clone)]
pub struct BreakerLayer<C, J> {
    breaker: Arc<Breaker>,
    clock: C,
    judge: J,
}

impl<C, J> BreakerLayer<C, J> {
    /// A layer with this breaker, clock and judgement of results.
    pub const fn new(breaker: Arc<Breaker>, clock: C, judge: J) -> Self {
        Self { breaker, clock, judge }
    }
}

impl<S, C: Clone, J: Clone> Layer<S> for BreakerLayer<C, J> {
    type Service = BreakerService<S, C, J>;

    fn layer(&self, inner: S) -> Self::Service {
        BreakerService {
            inner,
            breaker: Arc::clone(&self.breaker),
            clock: self.clock.clone(),
            judge: self.judge.clone(),
        }
    }
}

/// A service behind a breaker.
#[derive(Debug, Clone)]
pub struct BreakerService<S, C, J> {
    inner: S,
    breaker: Arc<Breaker>,
    clock: C,
    judge: J,
}

/// Why a call through a breaker failed.
#[derive(Debug, thiserror::Error)]
pub enum BreakerError<E> {
    /// The breaker did not let it through.
    #[error(transparent)]
    Refused(BreakerRefusal),
    /// The service failed.
    #[error(transparent)]
    Inner(E),
}

impl<S, C, J, R> Service<R> for BreakerService<S, C, J>
where
    S: Service<R>,
    C: Fn() -> Moment + Clone,
    J: Fn(&Result<S::Response, S::Error>) -> Outcome + Clone,
{
    type Response = S::Response;
    type Error = BreakerError<S::Error>;
    type Future = BreakerFuture<S::Future, C, J>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(BreakerError::Inner)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The inner service is called only with a permit: a refused request costs the target nothing.
        let state = match self.breaker.admit_owned((self.clock)()) {
            Ok(permit) => {
                BreakerFutureState::Admitted { inner: self.inner.call(request), permit: Some(permit) }
            }
            Err(refused) => BreakerFutureState::Refused { refused },
        };
        BreakerFuture { state, clock: self.clock.clone(), judge: self.judge.clone() }
    }
}

pin_project! {
    /// A call through a breaker.
    #[must_use = "futures do nothing unless polled"]
    pub struct BreakerFuture<F, C, J> {
        #[pin]
        state: BreakerFutureState<F>,
        clock: C,
        judge: J,
    }
}

pin_project! {
    #[project = StateProjection]
    enum BreakerFutureState<F> {
        Admitted { #[pin] inner: F, permit: Option<Permit<Arc<Breaker>>> },
        Refused { refused: BreakerRefusal },
    }
}

impl<F, C, J, T, E> Future for BreakerFuture<F, C, J>
where
    F: Future<Output = Result<T, E>>,
    C: Fn() -> Moment,
    J: Fn(&Result<T, E>) -> Outcome,
{
    type Output = Result<T, BreakerError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.project();
        match call.state.project() {
            StateProjection::Refused { refused } => Poll::Ready(Err(BreakerError::Refused(*refused))),
            StateProjection::Admitted { inner, permit } => {
                let result = ready!(inner.poll(context));
                if let Some(permit) = permit.take() {
                    permit.record((call.judge)(&result), (call.clock)());
                }
                Poll::Ready(result.map_err(BreakerError::Inner))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Pending, Ready, pending, ready};
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;
    use crate::breaker::{BreakerPolicy, Mode};
    use crate::chance::Seed;

    #[derive(Clone, Default)]
    struct Scripted {
        calls: Rc<Cell<u32>>,
    }

    impl Service<Result<(), ()>> for Scripted {
        type Response = ();
        type Error = ();
        type Future = Ready<Result<(), ()>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, answer: Result<(), ()>) -> Self::Future {
            self.calls.set(self.calls.get() + 1);
            ready(answer)
        }
    }

    #[derive(Clone)]
    struct Silent;

    impl Service<()> for Silent {
        type Response = ();
        type Error = ();
        type Future = Pending<Result<(), ()>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            pending()
        }
    }

    fn judge(result: &Result<(), ()>) -> Outcome {
        if result.is_ok() { Outcome::Success } else { Outcome::Failure }
    }

    fn breaker() -> Arc<Breaker> {
        Arc::new(Breaker::new(BreakerPolicy::CONSECUTIVE, Seed::new(1), Moment::START).unwrap())
    }

    fn finished<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn failures_open_it_and_then_the_service_is_not_called() {
        let (breaker, service) = (breaker(), Scripted::default());
        let calls = Rc::clone(&service.calls);
        let mut service = BreakerLayer::new(Arc::clone(&breaker), || Moment::START, judge).layer(service);
        for _ in 0..5 {
            assert!(matches!(finished(service.call(Err(()))), Some(Err(BreakerError::Inner(())))));
        }
        assert_eq!(breaker.mode(), Mode::Open);
        assert!(matches!(finished(service.call(Ok(()))), Some(Err(BreakerError::Refused(_)))));
        assert_eq!(calls.get(), 5);
    }

    #[test]
    fn a_dropped_future_gives_its_probe_back() {
        let breaker = breaker();
        for _ in 0..5 {
            breaker.admit(Moment::START).unwrap().fail(Moment::START);
        }
        let later = Moment::from_nanos(40_000_000_000);
        let mut service = BreakerLayer::new(Arc::clone(&breaker), move || later, judge).layer(Silent);
        let probe = service.call(());
        assert!(
            matches!(finished(service.call(())), Some(Err(BreakerError::Refused(_)))),
            "one probe is out"
        );
        drop(probe);
        assert!(finished(service.call(())).is_none(), "it is back");
    }
}
