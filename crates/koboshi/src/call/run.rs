//! The loop around a [`Call`], for programs that need nothing between its steps.

use std::ops::Deref;

use super::{Call, End, Next, Pause};
use crate::breaker::Breaker;
use crate::fault::IntoFault;
use crate::time::Moment;

impl<B: Deref<Target = Breaker> + Clone> Call<'_, B> {
    /// The whole call for programs without async: `send` gets the place of the target.
    ///
    /// # Errors
    /// No attempt succeeded.
    pub fn run<T, F: IntoFault>(
        mut self,
        now: impl Fn() -> Moment,
        sleep: impl Fn(&Pause),
        mut send: impl FnMut(usize) -> Result<T, F>,
    ) -> Result<T, End> {
        loop {
            match self.next(now()) {
                Next::Try(attempt) => match send(attempt.target()) {
                    Ok(answer) => {
                        attempt.succeeded(now());
                        return Ok(answer);
                    }
                    Err(fault) => drop(self.failed(attempt, fault, now())),
                },
                Next::Pause(pause) => sleep(&pause),
                Next::Over(end) => return Err(end),
            }
        }
    }

    /// The whole call for programs with async, on any runtime: `now` and `sleep` are the caller's, `send` gets the place of the
    /// target. Dropping the future gives up the call.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use koboshi::breaker::{Breaker, BreakerPolicy};
    /// # use koboshi::budget::{RetryShare, SharePolicy};
    /// # use koboshi::call::{Call, End};
    /// # use koboshi::chance::Seed;
    /// # use koboshi::remedy::RemedyPolicy;
    /// # use koboshi::time::Moment;
    /// # struct Client;
    /// # impl Client { async fn ask(&self, _: usize) -> Result<String, std::io::Error> { Ok("hello".to_owned()) } }
    /// # async fn sleep(_: std::time::Duration) {}
    /// # async fn example(client: Client, breakers: &[Arc<Breaker>], share: &RetryShare, policy: &RemedyPolicy) -> Result<String, End> {
    /// # let (now, seed) = (|| Moment::START, Seed::new(1));
    /// let call = Call::new(breakers, share, policy, seed);
    /// call.run_async(now, async |pause| sleep(pause.length).await, async |target| client.ask(target).await).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// No attempt succeeded.
    pub async fn run_async<T, F: IntoFault>(
        mut self,
        now: impl Fn() -> Moment,
        mut sleep: impl AsyncFnMut(Pause),
        mut send: impl AsyncFnMut(usize) -> Result<T, F>,
    ) -> Result<T, End> {
        loop {
            match self.next(now()) {
                Next::Try(attempt) => match send(attempt.target()).await {
                    Ok(answer) => {
                        attempt.succeeded(now());
                        return Ok(answer);
                    }
                    Err(fault) => drop(self.failed(attempt, fault, now())),
                },
                Next::Pause(pause) => sleep(pause).await,
                Next::Over(end) => return Err(end),
            }
        }
    }
}
