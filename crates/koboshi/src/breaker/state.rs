//! The rarer half of a breaker: opening, probing, closing, forcing. Only touched under its lock.
//!
//! ```text
//!            evidence                 open time over
//!  closed ─────────────► open ─────────────────────────► probing
//!    ▲                    ▲  └─ last target: a paced call ──┐ │ │
//!    │                    └──────── a probe failed ─────────┼─┘ │
//!    └───────────────────────────── enough successes ───────┴───┘
//! ```
//!
//! An operator may force it open, closed or disabled from anywhere, and release it to closed. Only the holder of the
//! lock changes the mode; a closed word may be exchanged by anyone meanwhile, so leaving `closed` is an exchange too.

use std::time::Duration;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::sync::Ordering;
use crate::time::{Moment, grown, scaled};

use super::permit::Pass;
use super::snapshot::on_wall;
use super::window::Window;
use super::word::{CallResult, Cost, Word, WordMode};
use super::{
    Admission, Breaker, BreakerPolicy, BreakerRefusal, BreakerSnapshot, FORCED, ForcedMode, Mode, Outcome,
    ProbePolicy, Span, Transition, Why,
};

/// Evidence that does not fit the word.
#[derive(Debug)]
struct WindowState {
    window: Window,
    streak: u32,
    warned: bool,
}

#[derive(Debug)]
pub(super) struct State {
    generation: u64,
    since: Moment,
    /// The same, where that was before this process began.
    before: Option<Timestamp>,
    /// Why it is in this mode.
    why: Option<Why>,
    /// Openings in a row without a closing in between.
    openings: u32,
    /// Those of them that were not by a quick failure: they make the open time grow.
    long_openings: u32,
    /// What the failure that opened it last was like.
    cost: Cost,
    /// When an open breaker begins to probe.
    until: Moment,
    /// Probes that have not come back: their numbers, and when they went out.
    probes: Vec<(u32, Moment)>,
    /// Number of the next probe.
    next_probe: u32,
    /// Probes that succeeded in this generation.
    good: u32,
    /// When the last target may be asked again while open.
    next_paced: Moment,
    /// When the next probe beside calls may go out.
    next_beside: Moment,
    /// Probes beside calls that went out.
    besides: u64,
    forced: Option<ForcedMode>,
    large: Option<WindowState>,
    seed: Seed,
    /// Changes that the watcher has not got yet.
    unreported: Vec<Transition>,
}

impl State {
    pub(super) fn new(policy: &BreakerPolicy, large: bool, seed: Seed, now: Moment) -> Self {
        let window = policy.window.filter(|_| large).map(|window| match window.span {
            Span::Calls(calls) => Window::of_calls(calls),
            Span::Time(length) => Window::of_time(length),
        });
        Self {
            generation: 0,
            since: now,
            before: None,
            why: None,
            openings: 0,
            long_openings: 0,
            cost: Cost::default(),
            until: now,
            probes: Vec::new(),
            next_probe: 0,
            good: 0,
            next_paced: now,
            next_beside: now,
            besides: 0,
            forced: None,
            large: window.map(|window| WindowState { window, streak: 0, warned: false }),
            seed,
            unreported: Vec::new(),
        }
    }

    pub(super) fn take_unreported(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.unreported)
    }

    pub(super) const fn mode(&self, word: Word) -> Mode {
        match (self.forced, word.mode()) {
            (Some(ForcedMode::Open), _) => Mode::ForcedOpen,
            (Some(ForcedMode::Closed), _) => Mode::ForcedClosed,
            (Some(ForcedMode::Disabled), _) | (None, WordMode::Disabled) => Mode::Disabled,
            (None, WordMode::Closed) => Mode::Closed,
            (None, WordMode::Open) => Mode::Open,
            (None, WordMode::Probing) => Mode::Probing,
        }
    }

    // ===== admission =====

    pub(super) fn admit(
        &mut self,
        breaker: &Breaker,
        now: Moment,
        admission: Admission,
    ) -> Result<(u64, Pass), BreakerRefusal> {
        let word = breaker.word();
        match word.mode() {
            // It changed while we waited for the lock.
            WordMode::Closed | WordMode::Disabled => return Ok((word.generation(), Pass::Ordinary)),
            WordMode::Open if self.forced.is_some() => {
                return Err(BreakerRefusal { mode: Mode::ForcedOpen, until: None });
            }
            WordMode::Open | WordMode::Probing if admission == Admission::Beside => {
                return self.beside(breaker, now);
            }
            WordMode::Open if now >= self.until => self.enter(breaker, WordMode::Probing, Why::WaitOver, now),
            WordMode::Open => return self.paced(breaker, now, admission, false, self.until),
            WordMode::Probing => {}
        }
        self.probe(breaker, now, admission)
    }

    fn probe(
        &mut self,
        breaker: &Breaker,
        now: Moment,
        admission: Admission,
    ) -> Result<(u64, Pass), BreakerRefusal> {
        let policy = breaker.policy.probe;
        // Callers that hang or lost their permit must not keep the others out. What such a probe reports later still
        // counts: a good answer may take long.
        self.probes.retain(|(_, since)| now < since.after(policy.timeout));
        match self.probes.first() {
            Some((_, oldest)) if self.is_full(&policy) => {
                let until = oldest.after(policy.timeout);
                self.paced(breaker, now, admission, true, until)
            }
            _ => Ok((self.generation, self.launch(now))),
        }
    }

    fn is_full(&self, policy: &ProbePolicy) -> bool {
        u32::try_from(self.probes.len()).unwrap_or(u32::MAX) >= policy.permits
    }

    fn launch(&mut self, now: Moment) -> Pass {
        let number = self.next_probe;
        self.next_probe = self.next_probe.wrapping_add(1);
        self.probes.push((number, now));
        Pass::Probe { number }
    }

    /// Why a call would be refused at that moment, if it would be.
    pub(super) fn refusal(
        &self,
        breaker: &Breaker,
        at: Moment,
        admission: Admission,
    ) -> Option<BreakerRefusal> {
        let policy = &breaker.policy.probe;
        let mode = self.mode(breaker.word());
        if self.forced == Some(ForcedMode::Open) {
            return Some(BreakerRefusal { mode, until: None });
        }
        if admission == Admission::Beside {
            let until = Some(self.next_beside);
            return (at < self.next_beside).then_some(BreakerRefusal { mode, until });
        }
        let is_paced = admission == Admission::LastTarget && policy.last_target_every.is_some();
        if is_paced && at >= self.next_paced {
            return None;
        }
        let until = match breaker.word().mode() {
            WordMode::Closed | WordMode::Disabled => return None,
            WordMode::Open => self.until,
            WordMode::Probing => {
                let ends = self.probes.iter().map(|(_, since)| since.after(policy.timeout));
                let ends = ends.filter(|end| at < *end);
                if u32::try_from(ends.clone().count()).unwrap_or(u32::MAX) < policy.permits {
                    return None;
                }
                ends.min()?
            }
        };
        let until = if is_paced { self.next_paced.min(until) } else { until };
        (at < until).then_some(BreakerRefusal { mode, until: Some(until) })
    }

    /// No other target is left: one call in each stretch goes through all the same.
    fn paced(
        &mut self,
        breaker: &Breaker,
        now: Moment,
        admission: Admission,
        probing: bool,
        until: Moment,
    ) -> Result<(u64, Pass), BreakerRefusal> {
        let mode = self.mode(breaker.word());
        let is_last = admission == Admission::LastTarget;
        let Some(pace) = breaker.policy.probe.last_target_every.filter(|_| is_last) else {
            return Err(BreakerRefusal { mode, until: Some(until) });
        };
        if now < self.next_paced {
            return Err(BreakerRefusal { mode, until: Some(self.next_paced.min(until)) });
        }
        self.next_paced = now.after(pace);
        Ok((self.generation, if probing { self.launch(now) } else { Pass::Paced }))
    }

    /// No one waits for it, so a failure costs nothing but the call.
    fn beside(&mut self, breaker: &Breaker, now: Moment) -> Result<(u64, Pass), BreakerRefusal> {
        if now < self.next_beside {
            return Err(BreakerRefusal { mode: self.mode(breaker.word()), until: Some(self.next_beside) });
        }
        self.besides = self.besides.wrapping_add(1);
        self.next_beside = now.after(self.beside_pause(&breaker.policy));
        Ok((self.generation, Pass::Paced))
    }

    /// Chance only shortens it, so that the nodes of a fleet do not probe in step.
    fn beside_pause(&self, policy: &BreakerPolicy) -> Duration {
        let max = policy.probe.beside_every;
        self.seed.nth(self.besides).between(scaled(max, 1.0 - policy.open.jitter), max)
    }

    // ===== outcomes =====

    /// The small window says open, as far as was seen outside the lock.
    pub(super) fn count_and_open(
        &mut self,
        breaker: &Breaker,
        generation: u64,
        (seen, cost): (CallResult, Cost),
        now: Moment,
    ) {
        loop {
            let word = breaker.word();
            if word.mode() != WordMode::Closed || !word.is_of(generation) {
                return;
            }
            let next = word.with(seen, breaker.small_window);
            if let Some(why) = breaker.verdict(next, seen.failed).filter(|_| self.forced.is_none()) {
                return self.open(breaker, why, cost, now);
            }
            // Another call changed the picture, or an operator keeps it closed: only count.
            if breaker.exchange(word, next).is_ok() {
                return;
            }
        }
    }

    /// A window that lives here.
    pub(super) fn count_large(
        &mut self,
        breaker: &Breaker,
        generation: u64,
        (seen, cost): (CallResult, Cost),
        now: Moment,
    ) {
        let word = breaker.word();
        if word.mode() != WordMode::Closed || !word.is_of(generation) {
            return;
        }
        let Some(large) = &mut self.large else { return };
        let warned = seen.failed && large.warned;
        large.warned &= seen.failed;
        large.streak = if seen.failed { large.streak.saturating_add(1) } else { 0 };
        let tally = large.window.push(seen, now);
        let why = if warned { Some(Why::Warned) } else { breaker.judge(large.streak, tally) };
        let spotless = large.window.is_spotless();
        match why.filter(|_| self.forced.is_none()) {
            Some(why) => self.open(breaker, why, cost, now),
            None if spotless != word.is_spotless() => breaker.mark(word.spotless(spotless)),
            None => {}
        }
    }

    pub(super) fn probed(
        &mut self,
        breaker: &Breaker,
        generation: u64,
        pass: Pass,
        (outcome, cost): (Outcome, Cost),
        now: Moment,
    ) {
        let word = breaker.word();
        if !word.is_of(generation) {
            return;
        }
        if let Pass::Probe { number } = pass {
            self.give_back(number);
        }
        match (outcome, word.mode()) {
            (Outcome::Success, WordMode::Open) if breaker.policy.probe.successes > 1 => {
                self.enter(breaker, WordMode::Probing, Why::ProbesSucceeded, now);
                self.good = 1;
            }
            (Outcome::Success, WordMode::Open | WordMode::Probing) => {
                self.good = self.good.saturating_add(1);
                if self.good >= breaker.policy.probe.successes {
                    self.close(breaker, Why::ProbesSucceeded, now);
                }
            }
            (Outcome::Failure | Outcome::Unreachable, WordMode::Probing) if pass != Pass::Paced => {
                self.open(breaker, Why::ProbeFailed, cost, now);
            }
            // A paced call that failed says nothing new about a target that is not back; a 429 on a probe says nothing about its
            // health.
            _ => {}
        }
    }

    /// Whether what has been counted opens the breaker. Another node's warning alone does not.
    fn verdict(&mut self, breaker: &Breaker, now: Moment) -> Option<Why> {
        match &mut self.large {
            Some(large) => {
                breaker.judge(if large.warned { 0 } else { large.streak }, large.window.tally(now))
            }
            None => {
                let word = breaker.word();
                let streak = if word.is_warned() { 0 } else { word.streak() };
                breaker.judge(u32::try_from(streak).unwrap_or(u32::MAX), word.tally())
            }
        }
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.probes.retain(|(known, _)| *known != number);
    }

    pub(super) fn warn(&mut self, breaker: &Breaker) {
        if let Some(large) = &mut self.large {
            large.warned = true;
            breaker.mark(breaker.word().spotless(false));
        }
    }

    // ===== changes of mode =====

    fn open(&mut self, breaker: &Breaker, why: Why, cost: Cost, now: Moment) {
        self.openings = self.openings.saturating_add(1);
        self.long_openings = self.long_openings.saturating_add(u32::from(!cost.is_quick));
        self.cost = cost;
        let from = self.mode(breaker.word());
        self.open_until(breaker, from, why, now, now.after(self.open_time(&breaker.policy)));
    }

    fn open_until(&mut self, breaker: &Breaker, from: Mode, why: Why, now: Moment, until: Moment) {
        if from == Mode::Closed {
            self.next_beside = now.after(self.beside_pause(&breaker.policy));
        }
        self.until = until;
        breaker.retry_at.store(until.nanos(), Ordering::Release);
        self.enter_from(breaker, from, WordMode::Open, why, now);
    }

    /// Grows with each opening up to the cap, but not after a quick failure; chance only shortens it.
    fn open_time(&self, policy: &BreakerPolicy) -> Duration {
        let open = &policy.open;
        let steps = if self.cost.is_quick { 0 } else { self.long_openings.saturating_sub(1) };
        let max = grown(open.first, open.growth, steps).min(open.cap);
        self.seed.nth(self.generation).between(scaled(max, 1.0 - open.jitter), max)
    }

    /// Whether a probe may cost its caller a long wait. One that succeeded shows that it does not.
    pub(super) const fn is_dear(&self) -> bool {
        !self.cost.is_quick && self.good == 0
    }

    fn forget_openings(&mut self) {
        (self.openings, self.long_openings, self.cost) = (0, 0, Cost::default());
    }

    fn close(&mut self, breaker: &Breaker, why: Why, now: Moment) {
        self.forget_openings();
        self.enter(breaker, WordMode::Closed, why, now);
    }

    pub(super) fn force(&mut self, breaker: &Breaker, forced: ForcedMode, why: Why, now: Moment) {
        let from = self.mode(breaker.word());
        self.forced = Some(forced);
        match forced {
            ForcedMode::Open => {
                breaker.retry_at.store(FORCED, Ordering::Release);
                self.enter_from(breaker, from, WordMode::Open, why, now);
            }
            ForcedMode::Closed => self.enter_from(breaker, from, WordMode::Closed, why, now),
            ForcedMode::Disabled => self.enter_from(breaker, from, WordMode::Disabled, why, now),
        }
    }

    pub(super) fn release(&mut self, breaker: &Breaker, now: Moment) {
        let from = self.mode(breaker.word());
        match self.forced.take() {
            None => {}
            Some(ForcedMode::Closed) => {
                self.generation = self.generation.wrapping_add(1);
                // Others may be counting into the word at this moment.
                let renumber = |word: Word| breaker.exchange(word, word.renumbered(self.generation));
                while renumber(breaker.word()).is_err() {}
                self.report(breaker, from, Mode::Closed, Why::Released, now);
                if let Some(why) = self.verdict(breaker, now) {
                    self.open(breaker, why, Cost::default(), now);
                }
            }
            Some(_) => {
                self.forget_openings();
                self.enter_from(breaker, from, WordMode::Closed, Why::Released, now);
            }
        }
    }

    /// Closed, with everything forgotten.
    pub(super) fn reset(&mut self, breaker: &Breaker, now: Moment) {
        let from = self.mode(breaker.word());
        self.forced = None;
        self.forget_openings();
        self.enter_from(breaker, from, WordMode::Closed, Why::Released, now);
    }

    fn enter(&mut self, breaker: &Breaker, mode: WordMode, why: Why, now: Moment) {
        let from = self.mode(breaker.word());
        self.enter_from(breaker, from, mode, why, now);
    }

    /// Starts a new generation: no evidence, no probes out, and no outcome of before counts any more.
    fn enter_from(&mut self, breaker: &Breaker, from: Mode, mode: WordMode, why: Why, now: Moment) {
        self.generation = self.generation.wrapping_add(1);
        self.probes.clear();
        self.good = 0;
        // The first paced call waits its turn: the call that opened the breaker has just been there.
        self.next_paced = now.after(breaker.policy.probe.last_target_every.unwrap_or(Duration::MAX));
        if let Some(large) = &mut self.large {
            large.window.clear();
            (large.streak, large.warned) = (0, false);
        }
        let word = Word::new(mode, self.generation);
        breaker.mark(word);
        self.report(breaker, from, self.mode(word), why, now);
    }

    fn report(&mut self, breaker: &Breaker, from: Mode, to: Mode, why: Why, now: Moment) {
        (self.since, self.before) = (now, None);
        self.why = Some(why);
        if breaker.watcher.is_some() {
            let until = matches!(to, Mode::Open).then_some(self.until);
            let (generation, openings) = (self.generation, self.openings);
            let (cause, since, is_local) = (why, None, self.cost.is_local);
            self.unreported.push(Transition {
                from,
                to,
                why,
                cause,
                since,
                generation,
                at: now,
                until,
                openings,
                is_local,
            });
        }
    }

    // ===== snapshots =====

    pub(super) fn snapshot(&self, breaker: &Breaker, now: Moment, wall: Timestamp) -> BreakerSnapshot {
        let mode = self.mode(breaker.word());
        let ago = now.since(self.since);
        let until = (mode == Mode::Open).then(|| on_wall(self.until, now, wall));
        BreakerSnapshot {
            at: wall,
            mode,
            since: self.before.unwrap_or_else(|| wall.saturating_sub(ago).unwrap_or(Timestamp::MIN)),
            until,
            openings: self.openings,
            why: self.why,
            is_local: self.cost.is_local,
        }
    }

    pub(super) fn restore(
        &mut self,
        breaker: &Breaker,
        snapshot: &BreakerSnapshot,
        now: Moment,
        wall: Timestamp,
    ) {
        match snapshot.mode {
            Mode::Closed => return,
            Mode::Open | Mode::Probing => {
                self.openings = snapshot.openings.max(1);
                self.long_openings = self.openings;
                self.cost = Cost { is_quick: false, is_local: snapshot.is_local };
                let left = snapshot.until.map(|until| until.duration_since(wall));
                let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(Duration::ZERO);
                let until = now.after(left.min(breaker.policy.open.cap));
                let from = self.mode(breaker.word());
                self.forced = None;
                self.open_until(breaker, from, Why::Restored, now, until);
            }
            Mode::ForcedOpen => self.force(breaker, ForcedMode::Open, Why::Restored, now),
            Mode::ForcedClosed => self.force(breaker, ForcedMode::Closed, Why::Restored, now),
            Mode::Disabled => self.force(breaker, ForcedMode::Disabled, Why::Restored, now),
        }
        // A mode from before the restart keeps its reason and its start. If the clock went back, a start in the future
        // is dropped.
        self.why = snapshot.why.or(self.why);
        self.before = Some(snapshot.since.min(wall));
        if let Some(restored) = self.unreported.last_mut() {
            (restored.cause, restored.since) = (self.why.unwrap_or(restored.cause), self.before);
        }
    }
}
