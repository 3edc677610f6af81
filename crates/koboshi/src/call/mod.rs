//! One protected call, from the first attempt to its end.
//!
//! This puts the parts together for programs that want to protect a call in a few lines: breakers decide which target may be
//! asked, [`remedy`](fn@remedy) what to do about a fault, the budget what it may cost. It is a state
//! machine that gets the time as an argument and never sleeps, so the same ten lines serve threads, every async runtime and
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
//! use std::sync::Arc;
//!
//! # let now = || Moment::START;
//! # let sleep = |_: std::time::Duration| {};
//! # let mut answers = vec![Ok("hello"), Err(Fault::of(Kind::Unavailable, "example"))];
//! # let mut send = |_target: usize| answers.pop().unwrap();
//! // Once, for all calls:
//! let breakers = [Arc::new(Breaker::new(BreakerPolicy::BOTH, Seed::new(1), now())?)];
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
//!         Next::Pause(pause) => sleep(pause.length),
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
//! # use koboshi::breaker::{Breaker, BreakerPolicy, ForcedMode, Mode};
//! # use koboshi::budget::{RetryShare, SharePolicy};
//! # use koboshi::call::{Call, End};
//! # use koboshi::chance::Seed;
//! # use koboshi::fault::Fault;
//! # use koboshi::remedy::RemedyPolicy;
//! # use koboshi::time::Moment;
//! # let breakers = [std::sync::Arc::new(Breaker::new(BreakerPolicy::BOTH, Seed::new(1), Moment::START)?)];
//! # let share = RetryShare::new(SharePolicy::default(), Moment::START);
//! # let policy = RemedyPolicy::default();
//! breakers[0].force(ForcedMode::Open, Moment::START);
//! let call = Call::new(&breakers, &share, &policy, Seed::new(2));
//! let end = call.run(|| Moment::START, |_pause| {}, |_target| Ok::<_, Fault>("never asked")).unwrap_err();
//! assert!(matches!(end, End::Refused(refused) if refused.mode == Mode::ForcedOpen));
//! # Ok::<(), koboshi::breaker::BreakerPolicyError>(())
//! ```
//!
//! *Not here*: cooldowns and gates. A caller that knows of them excludes those targets ([`Call::bar`]). A caller that must wait for
//! something else before it may send, such as room at a gate, takes two steps in place of [`Call::next`]: [`Call::choose`] names the
//! target and takes nothing, [`Call::admit`] takes the permit of its breaker when everything else is there. So no probe is held up by a wait.
//! Trimming, re-asking and degrading only the caller can do: [`Call::failed`] returns the remedy, and the call is over,
//! unless the caller has changed the request and says so ([`Call::go_on`]).
//!
//! # Defaults
//!
//! Those of [`RemedyPolicy`](crate::remedy) and of the breakers; no deadline unless [`Call::until`] sets one.
//!
//! # Events
//!
//! The remedy that [`Call::failed`] returns, and what the breakers report to their watchers.
//!
//! # Anti-patterns
//!
//! - A client library that retries below this: three times three is nine.
//! - A new [`RetryShare`] per call.
//! - Sending twice what may be done only once: whether a tool call or a payment may be repeated is for its owner to
//!   decide.

#[cfg(feature = "clock")]
mod calls;
mod run;
mod step;

use std::ops::Deref;
use std::time::Duration;

use crate::breaker::{Admission, Breaker, BreakerRefusal, Mode, Outcome};
use crate::budget::{AttemptCount, RetryShare};
use crate::chance::Seed;
use crate::fault::{Fault, IntoFault};
use crate::remedy::{History, Remaining, Remedy, RemedyPolicy, remedy};
use crate::time::Moment;

#[cfg(feature = "clock")]
pub use calls::Calls;
pub use step::{Attempt, Candidate, Choice, End, FailedAttempt, Next, Pause};

/// One protected call over an ordered list of targets. `B` is how the breakers are held: by reference, or by `Arc`
/// where an attempt must outlive the caller, as a stream does.
#[derive(Debug)]
pub struct Call<'a, B> {
    targets: &'a [B],
    share: &'a RetryShare,
    policy: &'a RemedyPolicy,
    seed: Seed,
    deadline: Option<Moment>,
    /// The target whose turn it is.
    current: usize,
    spent: AttemptCount,
    /// The pause before the last attempt.
    paused: Option<Duration>,
    /// The pause before the next one.
    pause: Option<Pause>,
    /// Every attempt that failed, in order.
    failed: Vec<FailedAttempt>,
    /// Targets that the caller excluded.
    barred: Vec<usize>,
    /// Targets that are asked after all others.
    deferred: Vec<usize>,
    /// It is a probe for which no one waits.
    is_beside: bool,
    lesser: bool,
    reasks: u32,
    trims: u32,
    paid: bool,
    over: bool,
}

impl<'a, B: Deref<Target = Breaker> + Clone> Call<'a, B> {
    /// A call over these targets, best first.
    #[must_use]
    pub const fn new(targets: &'a [B], share: &'a RetryShare, policy: &'a RemedyPolicy, seed: Seed) -> Self {
        Self {
            targets,
            share,
            policy,
            seed,
            deadline: None,
            current: 0,
            spent: AttemptCount { on_target: 0, in_all: 0 },
            paused: None,
            pause: None,
            failed: Vec::new(),
            barred: Vec::new(),
            deferred: Vec::new(),
            is_beside: false,
            lesser: false,
            reasks: 0,
            trims: 0,
            paid: false,
            over: false,
        }
    }

    /// A lesser answer than the chain's can still be given: [`Remedy::Degrade`] is possible.
    #[must_use]
    pub const fn or_lesser(mut self) -> Self {
        self.lesser = true;
        self
    }

    /// This target is excluded: it is in cooldown, or its limits are used up.
    pub fn bar(&mut self, target: usize) {
        if !self.barred.contains(&target) {
            self.barred.push(target);
        }
    }

    /// Whether a target was excluded.
    #[must_use]
    pub fn is_barred(&self, target: usize) -> bool {
        self.barred.contains(&target)
    }

    /// This target probably fails as another one did, for example because it is another key of the same provider: it is asked when
    /// no other target is left.
    pub fn defer(&mut self, target: usize) {
        if !self.deferred.contains(&target) {
            self.deferred.push(target);
        }
    }

    /// The caller did what the remedy asked for, `Reask` or `Trim`: one more attempt on the same target.
    pub fn go_on(&mut self, remedy: Remedy) {
        match remedy {
            Remedy::Reask => self.reasks = self.reasks.saturating_add(1),
            Remedy::Trim => self.trims = self.trims.saturating_add(1),
            _ => return,
        }
        self.over = false;
    }

    /// The attempts that have failed, in order.
    #[must_use]
    pub fn failures(&self) -> &[FailedAttempt] {
        &self.failed
    }

    /// Nothing is tried after this moment.
    #[must_use]
    pub const fn until(mut self, deadline: Moment) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// This call is a probe for which no one waits, see [`Breaker::admit_beside`].
    #[must_use]
    pub const fn beside(mut self) -> Self {
        self.is_beside = true;
        self
    }

    /// What to do next.
    pub fn next(&mut self, now: Moment) -> Next<B> {
        loop {
            match self.choose(now) {
                Choice::Target(candidate) => {
                    // Refused only where another call was faster: then the choice is made again.
                    if let Ok(attempt) = self.admit(candidate, now) {
                        return Next::Try(attempt);
                    }
                }
                Choice::Pause(pause) => return Next::Pause(pause),
                Choice::Over(end) => return Next::Over(end),
            }
        }
    }

    /// What to do next, where something must be waited for before the permit is taken. Takes nothing itself.
    pub fn choose(&mut self, now: Moment) -> Choice {
        if self.over || self.deadline.is_some_and(|deadline| now >= deadline) {
            return Choice::Over(self.end(None));
        }
        if let Some(pause) = self.pause.take() {
            self.paused = Some(pause.length);
            return Choice::Pause(pause);
        }
        let would_admit =
            |(breaker, candidate): &(&B, Candidate)| breaker.refusal_of(now, candidate.admission).is_none();
        if let Some((_, candidate)) = self.candidates().find(would_admit) {
            return Choice::Target(candidate);
        }
        let mut soonest: Option<BreakerRefusal> = None;
        for (breaker, candidate) in self.candidates() {
            match Breaker::admit_by(breaker, candidate.admission, now) {
                // Free again since it was asked for.
                Ok(permit) => {
                    drop(permit);
                    return Choice::Target(candidate);
                }
                Err(refused) => soonest = Some(sooner(soonest, refused)),
            }
        }
        Choice::Over(self.end(soonest))
    }

    /// Takes the permit of a target that was chosen: it is sent to now.
    ///
    /// # Errors
    /// Another call took it, or the target has failed since: [`Call::choose`] again.
    pub fn admit(&mut self, candidate: Candidate, now: Moment) -> Result<Attempt<B>, BreakerRefusal> {
        let Candidate { target, admission } = candidate;
        let Some(breaker) = self.targets.get(target) else {
            return Err(BreakerRefusal { mode: Mode::Closed, until: None });
        };
        let permit = Breaker::admit_by(breaker, admission, now)?;
        self.turn_to(target);
        if !self.paid {
            self.paid = true;
            self.share.deposit();
        }
        Ok(Attempt { target, permit, has_content: false, pause: None })
    }

    /// The attempt failed like this. Says what is done about it; where that is `Trim`, `Reask`, `Degrade` or `Stop`,
    /// the call is over and the rest is the caller's.
    pub fn failed(&mut self, attempt: Attempt<B>, fault: impl IntoFault, now: Moment) -> Remedy {
        let (target, fault) = (attempt.target, fault.into_fault());
        let silence = attempt.silence(now);
        attempt.permit.record(Outcome::of(&fault), now);
        self.spent.on_target = self.spent.on_target.saturating_add(1);
        self.spent.in_all = self.spent.in_all.saturating_add(1);
        let chosen = self.decide(&fault, silence, now);
        match chosen {
            Remedy::Again { after } | Remedy::Wait { after, .. } => {
                let (attempt, max_attempts) =
                    (self.spent.on_target.saturating_add(1), self.policy.backoff.attempts);
                self.pause = Some(Pause { length: after, attempt, max_attempts, why: fault.kind });
            }
            Remedy::Elsewhere => self.turn_to(target.saturating_add(1)),
            _ => self.over = true,
        }
        self.failed.push(FailedAttempt { target, fault });
        chosen
    }

    fn decide(&self, fault: &Fault, silence: Option<Duration>, now: Moment) -> Remedy {
        let left =
            Remaining { attempts: self.attempts_left(), others: self.others_left(now), lesser: self.lesser };
        let others = left.others > 0;
        let history = History {
            spent: self.spent,
            pause: self.paused,
            reasks: self.reasks,
            trims: self.trims,
            deadline: self.deadline,
            retry_paid: self.share.withdraw(now),
            silence,
        };
        let seed = self.seed.nth(u64::from(self.spent.in_all));
        let chosen = remedy(fault, &history, left, self.policy, now, seed);
        let follows = match chosen {
            Remedy::Again { after } | Remedy::Wait { after, .. } => {
                let would = |target: &B| match others {
                    true => target.would_admit(now.after(after)),
                    false => target.would_admit_last(now.after(after)),
                };
                !self.is_barred(self.current) && self.targets.get(self.current).is_some_and(would)
            }
            _ => false,
        };
        if history.retry_paid && !follows {
            self.share.refund();
        }
        match chosen {
            // The failure that opened the breaker: no attempt would follow the pause.
            Remedy::Again { .. } | Remedy::Wait { .. } if !follows => {
                if others && fault.advice.other {
                    Remedy::Elsewhere
                } else if self.lesser {
                    Remedy::Degrade
                } else {
                    Remedy::Stop
                }
            }
            chosen => chosen,
        }
    }

    /// Whether another target could be asked if the attempt under way fails: one is left, and time and an attempt for it.
    #[must_use]
    pub fn could_turn(&self, now: Moment) -> bool {
        let has_attempts = self.attempts_left() > 1;
        has_attempts && self.deadline.is_none_or(|deadline| now < deadline) && self.others_left(now) > 0
    }

    /// Attempts that may still be made.
    fn attempts_left(&self) -> u32 {
        self.policy.request.attempts_over(self.targets.len()).saturating_sub(self.spent.in_all)
    }

    fn has_failed(&self, target: usize) -> bool {
        self.failed.iter().any(|failed| failed.target == target)
    }

    /// How many targets that were not asked yet may be asked now: the next ones, and at last those that were passed over.
    fn others_left(&self, now: Moment) -> u32 {
        let may_be_asked = self.targets.iter().enumerate().filter(|(target, breaker)| {
            let asked = *target == self.current || self.has_failed(*target);
            !asked
                && !self.is_barred(*target)
                && if *target > self.current || self.deferred.contains(target) {
                    breaker.would_admit(now)
                } else {
                    breaker.would_admit_last(now)
                }
        });
        u32::try_from(may_be_asked.count()).unwrap_or(u32::MAX)
    }

    /// The targets that may be asked, in order: the next ones, then those that were deferred. If none of them lets a call through, one that
    /// was not asked yet is asked as the last that is left.
    fn candidates(&self) -> impl Iterator<Item = (&'a B, Candidate)> {
        let targets = self.targets;
        let all = move || targets.iter().enumerate();
        let is_retried = |target: usize| target == self.current && self.spent.on_target > 0;
        let may_follow = move |target: usize| is_retried(target) || !self.has_failed(target);
        let is_deferred = move |target: usize| !is_retried(target) && self.deferred.contains(&target);
        let ahead =
            all().skip(self.current).filter(move |(target, _)| may_follow(*target) && !is_deferred(*target));
        let deferred = all().filter(move |(target, _)| may_follow(*target) && is_deferred(*target));
        let unasked = all().filter(move |(target, _)| may_follow(*target));
        let first = if self.is_beside { Admission::Beside } else { Admission::Ordinary };
        let ordered = ahead.chain(deferred).map(move |found| (found, first));
        let last = unasked.filter(|_| !self.is_beside).map(|found| (found, Admission::LastTarget));
        ordered
            .chain(last)
            .filter(|((target, _), _)| !self.is_barred(*target))
            .map(|((target, breaker), admission)| (breaker, Candidate { target, admission }))
    }

    fn turn_to(&mut self, target: usize) {
        if target != self.current {
            (self.current, self.spent.on_target, self.paused) = (target, 0, None);
        }
    }

    fn end(&mut self, refused: Option<BreakerRefusal>) -> End {
        self.over = true;
        let failed = std::mem::take(&mut self.failed);
        match refused {
            _ if !failed.is_empty() => End::Failed(failed),
            Some(refused) => End::Refused(refused),
            None => End::Nothing,
        }
    }
}

/// The one that lets calls through first; one that waits for an operator comes last.
fn sooner(known: Option<BreakerRefusal>, new: BreakerRefusal) -> BreakerRefusal {
    let rank = |refused: &BreakerRefusal| refused.until.map_or(u64::MAX, Moment::nanos);
    known.filter(|known| rank(known) <= rank(&new)).unwrap_or(new)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;

    use super::*;
    use crate::backoff::Jitter;
    use crate::breaker::{BreakerPolicy, ForcedMode};
    use crate::budget::SharePolicy;
    use crate::fault::Kind;

    /// A world with a clock of its own: targets answer by script, pauses move the clock.
    struct World {
        breakers: Vec<Arc<Breaker>>,
        share: RetryShare,
        policy: RemedyPolicy,
        now: Cell<Moment>,
        sent: RefCell<Vec<usize>>,
        pauses: RefCell<Vec<Pause>>,
    }

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    impl World {
        fn new(targets: usize) -> Self {
            Self::with(targets, BreakerPolicy::CONSECUTIVE)
        }

        fn with(targets: usize, policy: BreakerPolicy) -> Self {
            let breaker = |_| Arc::new(Breaker::new(policy, Seed::new(1), Moment::START).unwrap());
            Self {
                breakers: (0..targets).map(breaker).collect(),
                share: RetryShare::new(SharePolicy { share: 0.5, per_second: 0.0 }, Moment::START),
                policy: RemedyPolicy::default(),
                now: Cell::new(Moment::START),
                sent: RefCell::default(),
                pauses: RefCell::default(),
            }
        }

        /// With enough in the account for many retries.
        fn rich(mut self) -> Self {
            self.share = RetryShare::new(SharePolicy { share: 0.0, per_second: 10.0 }, Moment::START);
            self
        }

        fn run(&self, answer: impl FnMut(usize) -> Result<(), Kind>) -> Result<(), End> {
            self.run_until(None, answer)
        }

        fn run_until(
            &self,
            deadline: Option<Moment>,
            mut answer: impl FnMut(usize) -> Result<(), Kind>,
        ) -> Result<(), End> {
            let mut call = Call::new(&self.breakers, &self.share, &self.policy, Seed::new(3));
            call.deadline = deadline;
            call.run(
                || self.now.get(),
                |pause| {
                    self.pauses.borrow_mut().push(*pause);
                    self.now.set(self.now.get().after(pause.length));
                },
                |target| {
                    self.sent.borrow_mut().push(target);
                    answer(target).map_err(|kind| Box::new(Fault::of(kind, "test")))
                },
            )
        }

        fn open(&self, target: usize) {
            for _ in 0..5 {
                self.breakers[target].admit(Moment::START).unwrap().fail(Moment::START);
            }
        }
    }

    #[test]
    fn alone_a_transient_fault_gets_all_its_attempts() {
        let world = World::new(1).rich();
        let end = world.run(|_| Err(Kind::Unavailable)).unwrap_err();
        assert_eq!(end.fault().map(|fault| fault.kind), Some(Kind::Unavailable));
        assert_eq!(*world.sent.borrow(), [0, 0, 0]);
        let pauses: Vec<_> = world
            .pauses
            .borrow()
            .iter()
            .map(|pause| (pause.attempt, pause.max_attempts, pause.why))
            .collect();
        assert_eq!(pauses, [(2, 3, Kind::Unavailable), (3, 3, Kind::Unavailable)]);
        assert!(matches!(end, End::Failed(all) if all.len() == 3), "every attempt's fault is kept");
    }

    #[test]
    fn with_another_target_one_quick_retry_then_elsewhere() {
        let world = World::new(2).rich();
        assert_eq!(world.run(|target| if target == 0 { Err(Kind::Unavailable) } else { Ok(()) }), Ok(()));
        assert_eq!(*world.sent.borrow(), [0, 0, 1]);
    }

    #[test]
    fn a_target_that_fails_after_a_long_silence_is_not_asked_again() {
        let world = World::new(2).rich();
        let answer = |target| {
            if target == 1 {
                return Ok(());
            }
            world.now.set(world.now.get().after(Duration::from_secs(30)));
            Err(Kind::ConnectionClosed)
        };
        assert_eq!(world.run(answer), Ok(()));
        assert_eq!(*world.sent.borrow(), [0, 1]);
    }

    #[test]
    fn a_target_that_pauses_for_long_in_its_answer_and_fails_is_not_asked_again() {
        for (pause, next) in [(1, 0), (30, 1)] {
            let world = World::new(2).rich();
            let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
            let Next::Try(mut attempt) = call.next(at(0)) else { panic!("an attempt") };
            attempt.content_began();
            attempt.paused_for(Duration::from_secs(pause));
            call.failed(attempt, Fault::of(Kind::ConnectionClosed, "test"), at(60));
            let following = loop {
                match call.next(at(60)) {
                    Next::Try(attempt) => break attempt.target(),
                    Next::Pause(_) => {}
                    Next::Over(end) => panic!("{end}"),
                }
            };
            assert_eq!(following, next, "after a pause of {pause} s");
        }
    }

    #[test]
    fn every_target_is_asked_before_attempts_are_spent_on_the_same_one_again() {
        let world = World::new(4).rich();
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 0, 1, 1, 2, 3], "six in all");
        let world = World::new(8).rich();
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 0, 1, 2, 3, 4, 5, 6, 7], "one more than there are targets");
        let mut world = World::new(4).rich();
        world.policy.request.in_all = Some(3);
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 1, 2], "a limit that is set is kept");
    }

    #[test]
    fn a_deferred_target_is_asked_after_all_others() {
        let world = World::new(3).rich();
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        let mut asked = Vec::new();
        loop {
            match call.next(at(0)) {
                Next::Try(attempt) => {
                    asked.push(attempt.target());
                    call.failed(attempt, Fault::of(Kind::Timeout, "test"), at(0));
                    call.defer(1);
                }
                Next::Pause(_) => {}
                Next::Over(_) => break,
            }
        }
        assert_eq!(asked, [0, 2, 1, 1, 1], "the last one has all its attempts");
    }

    #[test]
    fn a_wrong_request_is_sent_once_and_says_nothing_of_the_target() {
        let world = World::new(3);
        for _ in 0..10 {
            assert!(world.run(|_| Err(Kind::InvalidRequest)).is_err());
        }
        assert_eq!(world.sent.borrow().len(), 10);
        assert_eq!(world.breakers[0].mode(), Mode::Closed);
    }

    #[test]
    fn successes_and_failures_reach_the_breaker() {
        let world = World::new(1).rich();
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(world.run(|_| Ok(())), Ok(()));
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(world.breakers[0].mode(), Mode::Closed, "the success in between ended the row");
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(world.breakers[0].mode(), Mode::Open);
    }

    #[test]
    fn no_pause_that_no_attempt_follows() {
        let world =
            World::with(1, BreakerPolicy { consecutive: Some(2), ..BreakerPolicy::CONSECUTIVE }).rich();
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!((world.sent.borrow().len(), world.pauses.borrow().len()), (2, 1));
        let world = World::with(1, BreakerPolicy { consecutive: Some(1), ..BreakerPolicy::CONSECUTIVE });
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(world.share.left(Moment::START), 1, "and no retry is paid that was not made");
        let world =
            World::with(2, BreakerPolicy { consecutive: Some(1), ..BreakerPolicy::CONSECUTIVE }).rich();
        assert_eq!(world.run(|target| if target == 0 { Err(Kind::Unavailable) } else { Ok(()) }), Ok(()));
        assert_eq!((&*world.sent.borrow(), world.pauses.borrow().len()), (&vec![0, 1], 0));
    }

    #[test]
    fn nothing_is_tried_past_the_deadline() {
        let world = World::new(1).rich();
        assert_eq!(world.run_until(Some(Moment::START), |_| Ok(())), Err(End::Nothing));
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3)).until(at(60));
        let Next::Try(attempt) = call.next(at(0)) else { panic!("an attempt") };
        call.failed(attempt, Fault::of(Kind::Unavailable, "test"), at(1));
        assert!(matches!(call.next(at(1)), Next::Pause(_)));
        assert!(matches!(call.next(at(60)), Next::Over(End::Failed(_))), "it overslept");
    }

    #[test]
    fn open_targets_are_no_others() {
        let world = World::new(2).rich();
        world.breakers[1].force(ForcedMode::Open, Moment::START);
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 0, 0], "alone it gets all its attempts");
    }

    #[test]
    fn open_targets_are_skipped_and_asked_at_a_pace_when_no_other_is_left() {
        let world = World::new(2).rich();
        world.open(0);
        assert_eq!(world.run(|_| Ok(())), Ok(()));
        assert_eq!(*world.sent.borrow(), [1]);
        world.sent.borrow_mut().clear();
        world.now.set(at(2));
        let answer = world.run(|target| if target == 1 { Err(Kind::Unauthorized) } else { Ok(()) });
        assert_eq!(answer, Ok(()), "the one that was passed over is asked when the other is dead");
        assert_eq!(*world.sent.borrow(), [1, 0]);
    }

    #[test]
    fn where_every_breaker_refuses_the_soonest_is_named() {
        let world = World::new(2);
        world.breakers[0].force(ForcedMode::Open, Moment::START);
        world.open(1);
        let end = world.run(|_| Ok(())).unwrap_err();
        assert!(
            matches!(end, End::Refused(refused) if refused.mode == Mode::Open && refused.until == Some(at(1)))
        );
    }

    #[test]
    fn hand_overs_are_free_and_only_retries_cost() {
        let world = World::new(3).rich();
        let before = world.share.left(Moment::START);
        assert!(world.run(|_| Err(Kind::Unauthorized)).is_err());
        assert_eq!(*world.sent.borrow(), [0, 1, 2]);
        assert_eq!(world.share.left(Moment::START), before);
    }

    #[test]
    fn a_call_pays_into_the_account_once_and_an_empty_account_pays_no_retry() {
        let world = World::new(1);
        while world.share.withdraw(Moment::START) {}
        for _ in 0..2 {
            assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        }
        assert_eq!(world.sent.borrow().len(), 2 + 1, "two calls at a share of a half earn one retry");
    }

    #[test]
    fn a_barred_target_is_neither_asked_nor_counted_as_left() {
        let world = World::new(3).rich();
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        call.bar(0);
        call.bar(2);
        let Next::Try(attempt) = call.next(at(0)) else { panic!("an attempt") };
        assert_eq!(attempt.target(), 1);
        let remedy = call.failed(attempt, Fault::of(Kind::Unauthorized, "test"), at(0));
        assert_eq!(remedy, Remedy::Stop, "no other target is left");
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        (0..3).for_each(|target| call.bar(target));
        assert!(matches!(call.next(at(0)), Next::Over(End::Nothing)));
    }

    #[test]
    fn a_choice_takes_nothing_and_a_permit_that_another_call_took_is_refused() {
        let world = World::new(1).rich();
        world.open(0);
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        let mut other = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(4));
        let Choice::Target(first) = call.choose(at(60)) else { panic!("a target") };
        let Choice::Target(second) = other.choose(at(60)) else { panic!("both may be asked still") };
        assert_eq!((first.target(), world.breakers[0].mode()), (0, Mode::Open), "nothing was taken");
        let probe = call.admit(first, at(60)).unwrap();
        assert_eq!(other.admit(second, at(60)).unwrap_err().mode, Mode::Probing);
        assert!(matches!(other.choose(at(60)), Choice::Over(End::Refused(_))), "no other target is left");
        probe.succeeded(at(60));
    }

    #[test]
    fn a_target_that_is_barred_during_its_attempt_is_not_tried_again() {
        let world = World::new(1).rich();
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3)).or_lesser();
        let Next::Try(attempt) = call.next(at(0)) else { panic!("an attempt") };
        call.bar(0);
        assert_eq!(call.failed(attempt, Fault::of(Kind::Unavailable, "test"), at(0)), Remedy::Degrade);
    }

    #[test]
    fn a_changed_request_goes_on_where_it_was_within_its_own_budget() {
        let world = World::new(2).rich();
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        let mut asked = Vec::new();
        loop {
            match call.next(at(0)) {
                Next::Try(attempt) => {
                    asked.push(attempt.target());
                    let fault = Fault::of(Kind::ToolArgumentsInvalid, "test");
                    let remedy = call.failed(attempt, fault, at(0));
                    call.go_on(remedy);
                }
                Next::Pause(_) => panic!("a re-ask needs no pause"),
                Next::Over(_) => break,
            }
        }
        assert_eq!(asked, [0, 0, 0, 1], "two re-asks in all, then one attempt elsewhere");
        assert_eq!(call.failures().len(), 0, "the end took them along");
    }

    #[test]
    fn without_a_target_it_says_so() {
        assert_eq!(World::new(0).run(|_| Ok(())), Err(End::Nothing));
    }

    #[test]
    fn pauses_differ_from_attempt_to_attempt_and_follow_the_one_before() {
        let mut world = World::new(1).rich();
        world.policy.backoff.jitter = Jitter::Decorrelated;
        world.policy.backoff.attempts = 5;
        world.policy.backoff.first = Duration::from_millis(1);
        world.breakers = World::with(1, BreakerPolicy::WINDOW).breakers;
        assert!(world.run(|_| Err(Kind::Unavailable)).is_err());
        let pauses: Vec<_> = world.pauses.borrow().iter().map(|pause| pause.length).collect();
        assert!(pauses.windows(2).all(|pair| pair[0] != pair[1]), "{pauses:?}");
    }

    #[test]
    fn an_attempt_can_outlive_its_caller() {
        let world = World::new(1);
        let mut call = Call::new(&world.breakers, &world.share, &world.policy, Seed::new(3));
        let Next::Try(attempt) = call.next(at(0)) else { panic!("an attempt") };
        std::thread::spawn(move || attempt.succeeded(at(1))).join().unwrap();
    }
}
