//! Everything that protected calls share, with defaults: for programs that want a call protected in three lines.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, End};
use crate::breaker::{Breaker, BreakerPolicy, BreakerPolicyError};
use crate::budget::{RetryShare, SharePolicy};
use crate::chance::Seed;
use crate::fault::IntoFault;
use crate::remedy::RemedyPolicy;
use crate::time::Moment;

/// A breaker for each target, the share of traffic that may be retries, and the policies. Make one for all calls of a program.
///
/// ```
/// use koboshi::call::Calls;
///
/// # async fn ask(_target: usize) -> Result<&'static str, std::io::Error> { Ok("hello") }
/// # async fn sleep(_: std::time::Duration) {}
/// # async fn example() -> Result<(), koboshi::call::End> {
/// let calls = Calls::new(2); // two targets; the second is asked where the first fails
/// let answer = calls.run(sleep, async |target| ask(target).await).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Calls {
    breakers: Vec<Arc<Breaker>>,
    share: RetryShare,
    policy: RemedyPolicy,
}

impl Calls {
    /// Calls over this many targets, with the default policies.
    #[must_use]
    pub fn new(targets: usize) -> Self {
        let now = Moment::now();
        let breaker = |_| Breaker::new(BreakerPolicy::default(), Seed::random(), now).map(Arc::new).ok();
        Self {
            // The defaults are sound: none is left out.
            breakers: (0..targets).filter_map(breaker).collect(),
            share: RetryShare::new(SharePolicy::default(), now),
            policy: RemedyPolicy::default(),
        }
    }

    /// The same with another policy for what is done about faults.
    #[must_use]
    pub fn remedies(mut self, policy: RemedyPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The same with another policy for the breakers.
    ///
    /// # Errors
    /// The policy makes no sense.
    pub fn breakers(mut self, policy: BreakerPolicy) -> Result<Self, BreakerPolicyError> {
        for breaker in &mut self.breakers {
            *breaker = Arc::new(Breaker::new(policy, Seed::random(), Moment::now())?);
        }
        Ok(self)
    }

    /// The breaker of a target.
    #[must_use]
    pub fn breaker(&self, target: usize) -> Option<&Arc<Breaker>> {
        self.breakers.get(target)
    }

    /// Sends until a target answers or none is left to try. `sleep` is that of your runtime, `send` gets the place of the target.
    ///
    /// # Errors
    /// No attempt succeeded.
    pub async fn run<T, F: IntoFault>(
        &self,
        mut sleep: impl AsyncFnMut(Duration),
        send: impl AsyncFnMut(usize) -> Result<T, F>,
    ) -> Result<T, End> {
        let call = Call::new(&self.breakers, &self.share, &self.policy, Seed::random());
        call.run_async(Moment::now, async |pause| sleep(pause.length).await, send).await
    }
}
