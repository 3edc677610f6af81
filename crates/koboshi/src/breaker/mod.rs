//! Stops sending to a target that keeps failing, and finds out when it is back.
//!
//! A breaker is a state machine that gets the time as an argument. Admission gives a [`Permit`]; what became of the call is
//! recorded on it. Shape: the closed breaker lives in one atomic word (`word`), everything rarer (`state`: opening,
//! probing, forcing) under a lock. Every change of mode starts a new generation, and outcomes count only in the
//! generation that admitted their call.
//!
//! *Not here*: which target is asked instead, waiting, and what a fault is. A breaker is local to its process: other nodes'
//! breakers are hints ([`Breaker::hint`]).
#![doc = include_str!("../docs/breaker.md")]

mod event;
mod permit;
mod policy;
mod snapshot;
mod state;
mod window;
mod word;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::time::Moment;

pub use event::{BreakerRefusal, Transition, Why};
pub use permit::{Outcome, Permit};
pub use policy::{
    BreakerPolicy, BreakerPolicyError, MAX_STREAK, MAX_WINDOW_CALLS, MAX_WINDOW_TIME, OpenPolicy,
    ProbePolicy, QUICK_FAILURE, SlowPolicy, Span, WindowPolicy,
};
pub use snapshot::{BreakerSnapshot, Mode};

use permit::Pass;
use state::State;
use word::{CallResult, Cost, SMALL_WINDOW, Tally, Word, WordMode};

/// `retry_at` of a breaker that an operator forced open.
const FORCED: u64 = u64::MAX;

/// What an operator may force a breaker to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForcedMode {
    /// Refuse everything, also for the last target.
    Open,
    /// Let everything through and keep counting, so that the breaker may open as soon as the operator's order ends.
    Closed,
    /// Let everything through and count nothing.
    Disabled,
}

/// On what terms a call wants to go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Another target may be left.
    Ordinary,
    /// No other target is left.
    LastTarget,
    /// A probe of the caller's own, for which no one waits.
    Beside,
}

/// The watcher that hears of every change of mode.
pub type Watcher = Arc<dyn Fn(&Transition) + Send + Sync>;

/// Stops sending to a target that keeps failing.
pub struct Breaker {
    policy: BreakerPolicy,
    /// Calls of the window that lives in the word; 0 where there is none.
    small_window: u32,
    /// The window does not fit the word.
    large: bool,
    /// A call that takes longer is slow, in nanoseconds.
    slow_after: u64,
    word: AtomicU64,
    /// When an open breaker begins to probe, in nanoseconds: refusing needs no lock.
    retry_at: AtomicU64,
    state: Mutex<State>,
    watcher: Option<Watcher>,
}

impl Breaker {
    /// A closed breaker.
    ///
    /// # Errors
    /// The policy makes no sense.
    pub fn new(policy: BreakerPolicy, seed: Seed, now: Moment) -> Result<Self, BreakerPolicyError> {
        policy.validate()?;
        Ok(Self::of_valid(policy, seed, now))
    }

    /// A closed breaker with the default policy, which always makes sense.
    #[must_use]
    pub fn with_default_policy(seed: Seed, now: Moment) -> Self {
        Self::of_valid(BreakerPolicy::default(), seed, now)
    }

    fn of_valid(policy: BreakerPolicy, seed: Seed, now: Moment) -> Self {
        let small_window = match policy.window.map(|window| window.span) {
            Some(Span::Calls(calls)) if calls <= SMALL_WINDOW => calls,
            _ => 0,
        };
        let large = policy.window.is_some() && small_window == 0;
        let slow = policy.window.and_then(|window| window.slow);
        let slow_after =
            slow.and_then(|slow| u64::try_from(slow.longer_than.as_nanos()).ok()).unwrap_or(u64::MAX);
        Self {
            small_window,
            large,
            slow_after,
            word: AtomicU64::new(Word::new(WordMode::Closed, 0).bits()),
            retry_at: AtomicU64::new(0),
            state: Mutex::new(State::new(&policy, large, seed, now)),
            watcher: None,
            policy,
        }
    }

    /// Calls this watcher on every change of mode. It is called after the change, outside the lock; if it panics,
    /// the call that it watched continues.
    #[must_use]
    pub fn watched(mut self, watcher: impl Fn(&Transition) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    /// May a call go out?
    ///
    /// # Errors
    /// The target is not to be asked now.
    #[inline]
    pub fn admit(&self, now: Moment) -> Result<Permit<&Self>, BreakerRefusal> {
        let (generation, pass) = self.let_through(now, Admission::Ordinary)?;
        Ok(Permit::new(self, generation, pass, now))
    }

    /// May a call go out, when no other target is left? An open breaker then lets calls through at the pace of
    /// [`ProbePolicy::last_target_every`]: a slow answer is better than none.
    ///
    /// # Errors
    /// Not yet, or an operator forced it open.
    pub fn admit_last(&self, now: Moment) -> Result<Permit<&Self>, BreakerRefusal> {
        let (generation, pass) = self.let_through(now, Admission::LastTarget)?;
        Ok(Permit::new(self, generation, pass, now))
    }

    /// Like [`Breaker::admit`], with a permit that can be moved to another thread or task.
    ///
    /// # Errors
    /// The target is not to be asked now.
    pub fn admit_owned(self: &Arc<Self>, now: Moment) -> Result<Permit<Arc<Self>>, BreakerRefusal> {
        Self::admit_by(self, Admission::Ordinary, now)
    }

    /// Like [`Breaker::admit_last`], with a permit that can be moved to another thread or task.
    ///
    /// # Errors
    /// Not yet, or an operator forced it open.
    pub fn admit_last_owned(self: &Arc<Self>, now: Moment) -> Result<Permit<Arc<Self>>, BreakerRefusal> {
        Self::admit_by(self, Admission::LastTarget, now)
    }

    /// May a probe of the caller's own go out, beside the calls that other targets serve? No caller waits for it, so it goes at
    /// the pace of [`ProbePolicy::beside_every`] however long the breaker stays open, and more than one may be out: a target
    /// that was silent is found again soon after it is back, and not only when a probe of before has given up. Only its
    /// success counts.
    ///
    /// # Errors
    /// Not yet, or an operator forced it open.
    pub fn admit_beside(&self, now: Moment) -> Result<Permit<&Self>, BreakerRefusal> {
        let (generation, pass) = self.let_through(now, Admission::Beside)?;
        Ok(Permit::new(self, generation, pass, now))
    }

    /// The same for any way to hold a breaker.
    pub(crate) fn admit_by<B>(
        breaker: &B,
        admission: Admission,
        now: Moment,
    ) -> Result<Permit<B>, BreakerRefusal>
    where
        B: Deref<Target = Self> + Clone,
    {
        let (generation, pass) = breaker.let_through(now, admission)?;
        Ok(Permit::new(breaker.clone(), generation, pass, now))
    }

    /// Whether a call would be let through at that moment, as far as is known now. Takes nothing.
    #[must_use]
    pub fn would_admit(&self, at: Moment) -> bool {
        self.refusal(at).is_none()
    }

    /// The same where no other target is left.
    #[must_use]
    pub fn would_admit_last(&self, at: Moment) -> bool {
        self.refusal_last(at).is_none()
    }

    /// Why a call would be refused at that moment, if it would be. Takes nothing.
    #[must_use]
    pub fn refusal(&self, at: Moment) -> Option<BreakerRefusal> {
        self.refusal_of(at, Admission::Ordinary)
    }

    /// Why a call would be refused at that moment where no other target is left, if it would be. Takes nothing.
    #[must_use]
    pub fn refusal_last(&self, at: Moment) -> Option<BreakerRefusal> {
        self.refusal_of(at, Admission::LastTarget)
    }

    /// Why a probe of the caller's own would be refused at that moment, see [`Breaker::admit_beside`]. Takes nothing.
    #[must_use]
    pub fn refusal_beside(&self, at: Moment) -> Option<BreakerRefusal> {
        self.refusal_of(at, Admission::Beside)
    }

    pub(crate) fn refusal_of(&self, at: Moment, admission: Admission) -> Option<BreakerRefusal> {
        match self.word().mode() {
            WordMode::Closed | WordMode::Disabled => None,
            WordMode::Open | WordMode::Probing => lock(&self.state).refusal(self, at, admission),
        }
    }

    #[inline]
    fn let_through(&self, now: Moment, admission: Admission) -> Result<(u64, Pass), BreakerRefusal> {
        let word = self.word();
        match word.mode() {
            WordMode::Closed | WordMode::Disabled => Ok((word.generation(), Pass::Ordinary)),
            WordMode::Open if admission == Admission::Ordinary => self.refuse_or_ask(now),
            WordMode::Open | WordMode::Probing => self.ask(now, admission),
        }
    }

    /// While it is open, most callers are refused by one more load.
    fn refuse_or_ask(&self, now: Moment) -> Result<(u64, Pass), BreakerRefusal> {
        let retry_at = self.retry_at.load(Ordering::Acquire);
        if now.nanos() < retry_at && retry_at != FORCED {
            return Err(BreakerRefusal { mode: Mode::Open, until: Some(Moment::from_nanos(retry_at)) });
        }
        self.ask(now, Admission::Ordinary)
    }

    /// The rarer half of admission.
    #[cold]
    fn ask(&self, now: Moment, admission: Admission) -> Result<(u64, Pass), BreakerRefusal> {
        self.change(|breaker, state| state.admit(breaker, now, admission))
    }

    #[inline]
    fn record_ordinary(&self, generation: u64, outcome: Outcome, since: Moment, now: Moment) {
        if outcome == Outcome::Ignored {
            return;
        }
        let failed = outcome.is_failure();
        let seen = CallResult { failed, slow: self.is_slow(since, now) };
        let mut word = self.word();
        if self.large {
            let nothing_new = word.is_spotless() && !failed && !seen.slow;
            if nothing_new && word.mode() == WordMode::Closed && word.is_of(generation) {
                return;
            }
            let cost = Cost::of(outcome, since, now);
            return self.change(|breaker, state| state.count_large(breaker, generation, (seen, cost), now));
        }
        loop {
            if word.mode() != WordMode::Closed || !word.is_of(generation) {
                return;
            }
            let next = word.with(seen, self.small_window);
            if next == word && !failed {
                return;
            }
            // A good call in a full window only makes it better.
            let worse = failed || seen.slow || !word.is_full(self.small_window);
            if worse && self.verdict(next, failed).is_some() {
                let cost = Cost::of(outcome, since, now);
                return self
                    .change(|breaker, state| state.count_and_open(breaker, generation, (seen, cost), now));
            }
            match self.exchange(word, next) {
                Ok(()) => return,
                Err(current) => word = current,
            }
        }
    }

    fn record_probe(&self, generation: u64, pass: Pass, outcome: Outcome, since: Moment, now: Moment) {
        // A target that answers its probes too slowly is not back.
        let outcome =
            if outcome == Outcome::Success && self.is_slow(since, now) { Outcome::Failure } else { outcome };
        let cost = Cost::of(outcome, since, now);
        self.change(|breaker, state| state.probed(breaker, generation, pass, (outcome, cost), now));
    }

    fn return_probe(&self, generation: u64, number: u32) {
        let mut state = lock(&self.state);
        if self.word().is_of(generation) {
            state.give_back(number);
        }
    }

    /// Another node's breaker for the same target opened: one failure here is enough now, one success dispels it. One
    /// that opened because its node could not reach the target says nothing here.
    pub fn hint(&self, remote: &BreakerSnapshot) {
        if remote.is_local || !matches!(remote.mode, Mode::Open | Mode::Probing) {
            return;
        }
        if self.large {
            lock(&self.state).warn(self);
            return;
        }
        let mut word = self.word();
        while word.mode() == WordMode::Closed {
            match self.exchange(word, word.warned()) {
                Ok(()) => return,
                Err(current) => word = current,
            }
        }
    }

    /// An operator takes over.
    pub fn force(&self, forced: ForcedMode, now: Moment) {
        self.change(|breaker, state| state.force(breaker, forced, Why::Forced, now));
    }

    /// The operator lets go: the breaker is closed. What was counted while it was forced closed still counts; after the
    /// other modes it starts from the beginning.
    pub fn release(&self, now: Moment) {
        self.change(|breaker, state| state.release(breaker, now));
    }

    /// An operator closes it in whatever mode it is. Everything that was counted is dropped.
    pub fn reset(&self, now: Moment) {
        self.change(|breaker, state| state.reset(breaker, now));
    }

    /// What it does with calls, at this moment.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let state = lock(&self.state);
        state.mode(self.word())
    }

    /// Whether the next probe may cost its caller a long wait: the failure that opened the breaker was not quick, or is
    /// not known. Then the probe is better sent beside a call that another target serves than in its place.
    #[must_use]
    pub fn probe_is_dear(&self) -> bool {
        match self.word().mode() {
            WordMode::Closed | WordMode::Disabled => false,
            WordMode::Open | WordMode::Probing => self.policy.probe.beside && lock(&self.state).is_dear(),
        }
    }

    /// The breaker as others may see it. `now` and `wall` are the same instant on both clocks.
    #[must_use]
    pub fn snapshot(&self, now: Moment, wall: Timestamp) -> BreakerSnapshot {
        lock(&self.state).snapshot(self, now, wall)
    }

    /// Takes over what the same breaker knew before a restart. Never stays open longer than the policy's cap,
    /// whatever the clocks say.
    pub fn restore(&self, snapshot: &BreakerSnapshot, now: Moment, wall: Timestamp) {
        self.change(|breaker, state| state.restore(breaker, snapshot, now, wall));
    }

    /// The settings.
    #[must_use]
    pub const fn policy(&self) -> &BreakerPolicy {
        &self.policy
    }

    /// Does something under the lock and calls the watcher afterwards.
    fn change<T>(&self, action: impl FnOnce(&Self, &mut State) -> T) -> T {
        let (answer, unreported) = {
            let mut state = lock(&self.state);
            let answer = action(self, &mut state);
            (answer, state.take_unreported())
        };
        if let Some(watcher) = &self.watcher {
            for transition in unreported {
                // A watcher's panic must not break the call.
                let _ = catch_unwind(AssertUnwindSafe(|| watcher(&transition)));
            }
        }
        answer
    }

    #[inline]
    fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Puts a word in place of whatever is there; only under the lock. A swap, no store: others may be exchanging the
    /// closed word at this moment.
    fn mark(&self, word: Word) {
        self.word.swap(word.bits(), Ordering::AcqRel);
    }

    #[inline]
    fn exchange(&self, current: Word, next: Word) -> Result<(), Word> {
        self.word
            .compare_exchange_weak(current.bits(), next.bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(Word::from_bits)
    }

    #[inline]
    const fn is_slow(&self, since: Moment, now: Moment) -> bool {
        now.nanos().saturating_sub(since.nanos()) > self.slow_after
    }

    /// Whether this evidence opens the breaker.
    fn verdict(&self, word: Word, failed: bool) -> Option<Why> {
        if failed && word.is_warned() {
            return Some(Why::Warned);
        }
        self.judge(u32::try_from(word.streak()).unwrap_or(u32::MAX), word.tally())
    }

    fn judge(&self, streak: u32, tally: Tally) -> Option<Why> {
        if self.policy.consecutive.is_some_and(|max| streak >= max) {
            return Some(Why::Consecutive { failures: streak });
        }
        let window = self.policy.window?;
        if tally.calls < window.min_calls {
            return None;
        }
        let reaches = |count: u32, rate: f64| f64::from(count) + 1e-9 >= rate * f64::from(tally.calls);
        if reaches(tally.failed, window.failure_rate) {
            return Some(Why::FailureRate { failed: tally.failed, calls: tally.calls });
        }
        let slow = window.slow.filter(|slow| reaches(tally.slow, slow.rate));
        slow.map(|_| Why::SlowRate { slow: tally.slow, calls: tally.calls })
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Breaker").field("mode", &self.mode()).finish_non_exhaustive()
    }
}
