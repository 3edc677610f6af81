//! One protected call, from the first attempt to the last word.
//!
//! This puts the parts together for programs that want to protect a call in a few lines: breakers decide who may be
//! asked, [`remedy`](fn@remedy) what to do about a fault, the budget what it may cost. It is a state
//! machine that is told the time and never sleeps, so the same ten lines serve threads, every async runtime and
//! tests on a clock of their own:
//!
//! ```
//! use koboshi::breaker::{Breaker, BreakerPolicy};
//! use koboshi::budget::{RetryShare, SharePolicy};
//! use koboshi::call::{Call, Next};
//! use koboshi::chance::Seed;
//! use koboshi::fault::{Fault, Kind};
//! use koboshi::remedy::RemedyPolicy;
//! use koboshi::time::Moment;
//!
//! # let now = || Moment::START;
//! # let sleep = |_| {};
//! # let mut answers = vec![Ok("hello"), Err(Fault::of(Kind::Unavailable, "example"))];
//! # let mut send = |_target: usize| answers.pop().unwrap();
//! // Once, for all calls:
//! let breakers = [Breaker::new(BreakerPolicy::BOTH, Seed::new(1), now())?];
//! let share = RetryShare::new(SharePolicy::default(), now());
//! let policy = RemedyPolicy::default();
//!
//! // For each call. In async code `send` and `sleep` are awaited; nothing else changes.
//! let mut call = Call::new(&breakers, &share, &policy, Seed::new(2));
//! let answer = loop {
//!     match call.next(now()) {
//!         Next::Try(attempt) => match send(attempt.target()) {
//!             Ok(answer) => {
//!                 attempt.succeeded(now());
//!                 break Ok(answer);
//!             }
//!             Err(fault) => drop(call.failed(attempt, fault, now())),
//!         },
//!         Next::Pause(length) => sleep(length),
//!         Next::Over(end) => break Err(end),
//!     }
//! };
//! assert_eq!(answer.unwrap(), "hello", "the second attempt succeeded");
//! # Ok::<(), koboshi::breaker::BreakerPolicyError>(())
//! ```
//!
//! Where no target may be asked it says so at once and does not wait:
//!
//! ```
//! # use koboshi::breaker::{Breaker, BreakerPolicy, Forced, Mode};
//! # use koboshi::budget::{RetryShare, SharePolicy};
//! # use koboshi::call::{Call, End};
//! # use koboshi::chance::Seed;
//! # use koboshi::fault::Fault;
//! # use koboshi::remedy::RemedyPolicy;
//! # use koboshi::time::Moment;
//! # let breakers = [Breaker::new(BreakerPolicy::BOTH, Seed::new(1), Moment::START)?];
//! # let share = RetryShare::new(SharePolicy::default(), Moment::START);
//! # let policy = RemedyPolicy::default();
//! breakers[0].force(Forced::Open, Moment::START);
//! let call = Call::new(&breakers, &share, &policy, Seed::new(2));
//! let end = call.run(|| Moment::START, |_pause| {}, |_target| Ok::<_, Fault>("never asked")).unwrap_err();
//! assert!(matches!(end, End::Refused(refused) if refused.mode == Mode::ForcedOpen));
//! # Ok::<(), koboshi::breaker::BreakerPolicyError>(())
//! ```
//!
//! *Not here*: cooldowns and gates, which a gateway asks before this; trimming, re-asking and degrading, which only
//! the caller can do: [`Call::failed`] returns the remedy, and the call is over.
//!
//! # Defaults
//!
//! Those of [`RemedyPolicy`](crate::remedy) and of the breakers; no deadline unless [`Call::until`] sets one.
//!
//! # Events
//!
//! The remedy that [`Call::failed`] returns, and what the breakers tell their watchers.
//!
//! # Anti-patterns
//!
//! - A client library that retries below this: three times three is nine.
//! - A new [`RetryShare`] per call.
//! - Sending twice what may be done once only: tools and payments are not repeated by anyone but their owner.

use std::time::Duration;

use crate::breaker::{Breaker, Outcome, Permit, Refused};
use crate::budget::{RetryShare, Spent};
use crate::chance::Seed;
use crate::fault::Fault;
use crate::remedy::{History, Left, Remedy, RemedyPolicy, remedy};
use crate::time::Moment;

/// One protected call over an ordered list of targets.
#[derive(Debug)]
pub struct Call<'a> {
    targets: &'a [Breaker],
    share: &'a RetryShare,
    policy: &'a RemedyPolicy,
    seed: Seed,
    deadline: Option<Moment>,
    /// The target whose turn it is.
    current: usize,
    spent: Spent,
    /// The pause before the last attempt.
    paused: Option<Duration>,
    /// The pause before the next one.
    pause: Option<Duration>,
    fault: Option<Box<Fault>>,
    over: bool,
}

/// What to do next.
#[derive(Debug)]
#[must_use]
pub enum Next<'a> {
    /// Send to the target, and tell how it ended.
    Try(Attempt<'a>),
    /// Pause, and ask again. An attempt follows for sure.
    Pause(Duration),
    /// Give up.
    Over(End),
}

/// How a call ended that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The last fault.
    Failed(Box<Fault>),
    /// Nobody was asked: every breaker refused. This one lets calls through first.
    Refused(Refused),
}

/// One attempt on one target. Dropped without a word, it says nothing about the target.
#[derive(Debug)]
#[must_use]
pub struct Attempt<'a> {
    target: usize,
    permit: Permit<&'a Breaker>,
}

impl Attempt<'_> {
    /// Which target to send to: its place in the list.
    #[must_use]
    pub const fn target(&self) -> usize {
        self.target
    }

    /// It succeeded. For a stream: when it ends, not when it begins.
    pub fn succeeded(self, now: Moment) {
        self.permit.succeed(now);
    }
}

impl<'a> Call<'a> {
    /// A call over these targets, best first.
    #[must_use]
    pub const fn new(
        targets: &'a [Breaker],
        share: &'a RetryShare,
        policy: &'a RemedyPolicy,
        seed: Seed,
    ) -> Self {
        Self {
            targets,
            share,
            policy,
            seed,
            deadline: None,
            current: 0,
            spent: Spent { on_target: 0, in_all: 0 },
            paused: None,
            pause: None,
            fault: None,
            over: false,
        }
    }

    /// Nothing is tried after this moment.
    #[must_use]
    pub const fn until(mut self, deadline: Moment) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What to do next.
    pub fn next(&mut self, now: Moment) -> Next<'a> {
        if let Some(pause) = self.pause.take() {
            self.paused = Some(pause);
            return Next::Pause(pause);
        }
        if self.over {
            return self.end(None);
        }
        match self.admit(now) {
            Ok(attempt) => {
                if self.spent.in_all == 0 {
                    self.share.deposit();
                }
                Next::Try(attempt)
            }
            Err(refused) => self.end(refused),
        }
    }

    /// The attempt failed like this. Says what is done about it; where that is `Trim`, `Reask`, `Degrade` or `Stop`,
    /// the call is over and the rest is the caller's.
    pub fn failed(&mut self, attempt: Attempt<'_>, fault: impl Into<Box<Fault>>, now: Moment) -> Remedy {
        let fault = fault.into();
        attempt.permit.record(Outcome::of(&fault), now);
        self.spent.on_target = self.spent.on_target.saturating_add(1);
        self.spent.in_all = self.spent.in_all.saturating_add(1);
        let history = History {
            spent: self.spent,
            pause: self.paused.take(),
            reasks: 0,
            trims: 0,
            deadline: self.deadline,
            retry_paid: self.share.withdraw(now),
        };
        let left = Left { others: self.current + 1 < self.targets.len(), lesser: false };
        let seed = self.seed.nth(u64::from(self.spent.in_all));
        let chosen = remedy(&fault, &history, left, self.policy, now, seed);
        let same_target = matches!(chosen, Remedy::Again { .. } | Remedy::Wait { .. });
        if history.retry_paid && !same_target {
            self.share.refund();
        }
        match chosen {
            Remedy::Again { after } | Remedy::Wait { after, .. } => self.pause = Some(after),
            Remedy::Elsewhere => {
                self.current += 1;
                self.spent.on_target = 0;
            }
            _ => self.over = true,
        }
        self.fault = Some(fault);
        chosen
    }

    /// The whole call for programs without async: `send` gets the place of the target.
    ///
    /// # Errors
    /// No attempt succeeded.
    pub fn run<T, F: Into<Box<Fault>>>(
        mut self,
        now: impl Fn() -> Moment,
        sleep: impl Fn(Duration),
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
                Next::Pause(length) => sleep(length),
                Next::Over(end) => return Err(end),
            }
        }
    }

    /// The first target that lets a call through; if none does, the first that lets a last one through.
    fn admit(&mut self, now: Moment) -> Result<Attempt<'a>, Option<Refused>> {
        let mut soonest: Option<Refused> = None;
        let before = self.current;
        for last_target in [false, true] {
            for (target, breaker) in self.targets.iter().enumerate().skip(before) {
                let answer = if last_target { breaker.admit_last(now) } else { breaker.admit(now) };
                match answer {
                    Ok(permit) => {
                        if target != before {
                            (self.current, self.spent.on_target) = (target, 0);
                        }
                        return Ok(Attempt { target, permit });
                    }
                    Err(refused) => soonest = Some(sooner(soonest, refused)),
                }
            }
        }
        Err(soonest)
    }

    fn end(&mut self, refused: Option<Refused>) -> Next<'a> {
        self.over = true;
        let end = match (self.fault.clone(), refused) {
            (Some(fault), _) => End::Failed(fault),
            (None, Some(refused)) => End::Refused(refused),
            (None, None) => End::Failed(Box::new(Fault::of(crate::fault::Kind::Internal, "call.no_target"))),
        };
        Next::Over(end)
    }
}

/// The one that lets calls through first; one that waits for an operator comes last.
fn sooner(known: Option<Refused>, new: Refused) -> Refused {
    let rank = |refused: &Refused| refused.until.map_or(u64::MAX, Moment::nanos);
    known.filter(|known| rank(known) <= rank(&new)).unwrap_or(new)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::breaker::{BreakerPolicy, Forced, Mode};
    use crate::budget::SharePolicy;
    use crate::fault::Kind;

    /// A world with a clock of its own: targets answer by script, pauses move the clock.
    struct World {
        breakers: Vec<Breaker>,
        share: RetryShare,
        policy: RemedyPolicy,
        now: Cell<Moment>,
        sent: RefCell<Vec<usize>>,
    }

    impl World {
        fn new(targets: usize) -> Self {
            let breaker = |_| Breaker::new(BreakerPolicy::CONSECUTIVE, Seed::new(1), Moment::START).unwrap();
            Self {
                breakers: (0..targets).map(breaker).collect(),
                share: RetryShare::new(SharePolicy::default(), Moment::START),
                policy: RemedyPolicy::default(),
                now: Cell::new(Moment::START),
                sent: RefCell::default(),
            }
        }

        fn run(&self, mut answer: impl FnMut(usize) -> Result<(), Kind>) -> Result<(), End> {
            let call = Call::new(&self.breakers, &self.share, &self.policy, Seed::new(3));
            call.run(
                || self.now.get(),
                |length| self.now.set(self.now.get().after(length)),
                |target| {
                    self.sent.borrow_mut().push(target);
                    answer(target).map_err(|kind| Box::new(Fault::of(kind, "test")))
                },
            )
        }
    }

    #[test]
    fn alone_a_transient_fault_gets_all_its_attempts() {
        let world = World::new(1);
        let end = world.run(|_| Err(Kind::Unavailable)).unwrap_err();
        assert!(matches!(end, End::Failed(fault) if fault.kind == Kind::Unavailable));
        assert_eq!(*world.sent.borrow(), [0, 0, 0]);
    }

    #[test]
    fn with_another_target_one_quick_retry_then_elsewhere() {
        let world = World::new(2);
        assert_eq!(world.run(|target| if target == 0 { Err(Kind::Unavailable) } else { Ok(()) }), Ok(()));
        assert_eq!(*world.sent.borrow(), [0, 0, 1]);
    }

    #[test]
    fn a_wrong_request_is_sent_once() {
        let world = World::new(3);
        assert!(world.run(|_| Err(Kind::InvalidRequest)).is_err());
        assert_eq!(*world.sent.borrow(), [0]);
    }

    #[test]
    fn open_targets_are_skipped_and_the_last_one_is_asked_at_a_pace() {
        let world = World::new(2);
        for _ in 0..5 {
            world.breakers[0].admit(Moment::START).unwrap().fail(Moment::START);
        }
        assert_eq!(world.run(|_| Ok(())), Ok(()));
        assert_eq!(*world.sent.borrow(), [1]);
        world.breakers[1].force(Forced::Open, Moment::START);
        let end = world.run(|_| Ok(())).unwrap_err();
        assert!(
            matches!(end, End::Refused(refused) if refused.mode == Mode::Open && refused.until.is_some())
        );
        world.now.set(Moment::START.after(Duration::from_secs(2)));
        assert_eq!(world.run(|_| Ok(())), Ok(()), "paced, because no other target is left");
    }

    #[test]
    fn hand_overs_are_free_and_only_retries_cost() {
        let world = World::new(3);
        let before = world.share.left(Moment::START);
        assert!(world.run(|_| Err(Kind::Unauthorized)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 1, 2]);
        assert_eq!(world.share.left(Moment::START), before);
    }

    #[test]
    fn without_a_target_it_says_so() {
        assert!(
            matches!(World::new(0).run(|_| Ok(())), Err(End::Failed(fault)) if fault.kind == Kind::Internal)
        );
    }

    #[test]
    fn a_deadline_ends_it_without_a_pause() {
        let world = World::new(1);
        let mut call =
            Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3)).until(Moment::START);
        let Next::Try(attempt) = call.next(Moment::START) else { panic!("an attempt") };
        assert_eq!(call.failed(attempt, Fault::of(Kind::Unavailable, "test"), Moment::START), Remedy::Stop);
        assert!(matches!(call.next(Moment::START), Next::Over(_)));
    }
}
