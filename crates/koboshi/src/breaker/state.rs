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
use super::word::{Basic, CallResult, Word};
use super::{
    Breaker, BreakerPolicy, BreakerSnapshot, FORCED, Forced, Mode, Outcome, ProbePolicy, Refused, Span,
    Transition, Why,
};

/// Evidence that does not fit the word.
#[derive(Debug)]
struct Large {
    window: Window,
    streak: u32,
    wary: bool,
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
    forced: Option<Forced>,
    large: Option<Large>,
    seed: Seed,
    /// Changes that the watcher has not heard of.
    told: Vec<Transition>,
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
            until: now,
            probes: Vec::new(),
            next_probe: 0,
            good: 0,
            next_paced: now,
            forced: None,
            large: window.map(|window| Large { window, streak: 0, wary: false }),
            seed,
            told: Vec::new(),
        }
    }

    pub(super) fn take_told(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.told)
    }

    pub(super) const fn mode(&self, word: Word) -> Mode {
        match (self.forced, word.mode()) {
            (Some(Forced::Open), _) => Mode::ForcedOpen,
            (Some(Forced::Closed), _) => Mode::ForcedClosed,
            (Some(Forced::Disabled), _) | (None, Basic::Disabled) => Mode::Disabled,
            (None, Basic::Closed) => Mode::Closed,
            (None, Basic::Open) => Mode::Open,
            (None, Basic::Probing) => Mode::Probing,
        }
    }

    // ===== admission =====

    pub(super) fn admit(
        &mut self,
        breaker: &Breaker,
        now: Moment,
        last_target: bool,
    ) -> Result<(u64, Pass), Refused> {
        let word = breaker.word();
        match word.mode() {
            // It changed while we waited for the lock.
            Basic::Closed | Basic::Disabled => return Ok((word.generation(), Pass::Ordinary)),
            Basic::Open if self.forced.is_some() => {
                return Err(Refused { mode: Mode::ForcedOpen, until: None });
            }
            Basic::Open if now >= self.until => self.enter(breaker, Basic::Probing, Why::WaitOver, now),
            Basic::Open => return self.paced(breaker, now, last_target, false, self.until),
            Basic::Probing => {}
        }
        self.probe(breaker, now, last_target)
    }

    fn probe(&mut self, breaker: &Breaker, now: Moment, last_target: bool) -> Result<(u64, Pass), Refused> {
        let policy = breaker.policy.probe;
        // Callers that hang or lost their permit must not keep the others out. What such a probe reports later still
        // counts: a good answer may take long.
        self.probes.retain(|(_, since)| now < since.after(policy.longest));
        match self.probes.first() {
            Some((_, oldest)) if self.is_full(&policy) => {
                let until = oldest.after(policy.longest);
                self.paced(breaker, now, last_target, true, until)
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

    /// Whether a call would be let through at that moment.
    pub(super) fn would_admit(&self, breaker: &Breaker, at: Moment, last_target: bool) -> bool {
        let policy = &breaker.policy.probe;
        if self.forced == Some(Forced::Open) {
            return false;
        }
        if last_target && policy.last_target_every.is_some() && at >= self.next_paced {
            return true;
        }
        match breaker.word().mode() {
            Basic::Closed | Basic::Disabled => true,
            Basic::Open => at >= self.until,
            Basic::Probing => {
                let out = self.probes.iter().filter(|(_, since)| at < since.after(policy.longest)).count();
                u32::try_from(out).unwrap_or(u32::MAX) < policy.permits
            }
        }
    }

    /// No other target is left: one call in each stretch goes through all the same.
    fn paced(
        &mut self,
        breaker: &Breaker,
        now: Moment,
        last_target: bool,
        probing: bool,
        until: Moment,
    ) -> Result<(u64, Pass), Refused> {
        let mode = self.mode(breaker.word());
        let Some(pace) = breaker.policy.probe.last_target_every.filter(|_| last_target) else {
            return Err(Refused { mode, until: Some(until) });
        };
        if now < self.next_paced {
            return Err(Refused { mode, until: Some(self.next_paced.min(until)) });
        }
        self.next_paced = now.after(pace);
        Ok((self.generation, if probing { self.launch(now) } else { Pass::Paced }))
    }

    // ===== outcomes =====

    /// The small window says open, as far as was seen outside the lock.
    pub(super) fn count_and_open(
        &mut self,
        breaker: &Breaker,
        generation: u64,
        seen: CallResult,
        now: Moment,
    ) {
        loop {
            let word = breaker.word();
            if word.mode() != Basic::Closed || !word.is_of(generation) {
                return;
            }
            let next = word.with(seen, breaker.small_window);
            if let Some(why) = breaker.verdict(next, seen.failed).filter(|_| self.forced.is_none()) {
                return self.open(breaker, why, now);
            }
            // Another call changed the picture, or an operator keeps it closed: only count.
            if breaker.exchange(word, next).is_ok() {
                return;
            }
        }
    }

    /// A window that lives here.
    pub(super) fn count_large(&mut self, breaker: &Breaker, generation: u64, seen: CallResult, now: Moment) {
        let word = breaker.word();
        if word.mode() != Basic::Closed || !word.is_of(generation) {
            return;
        }
        let Some(large) = &mut self.large else { return };
        let warned = seen.failed && large.wary;
        large.wary &= seen.failed;
        large.streak = if seen.failed { large.streak.saturating_add(1) } else { 0 };
        let tally = large.window.push(seen, now);
        let why = if warned { Some(Why::Warned) } else { breaker.judge(large.streak, tally) };
        let spotless = large.window.is_spotless();
        match why.filter(|_| self.forced.is_none()) {
            Some(why) => self.open(breaker, why, now),
            None if spotless != word.is_spotless() => breaker.mark(word.spotless(spotless)),
            None => {}
        }
    }

    pub(super) fn probed(
        &mut self,
        breaker: &Breaker,
        generation: u64,
        pass: Pass,
        outcome: Outcome,
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
            (Outcome::Success, Basic::Open) if breaker.policy.probe.successes > 1 => {
                self.enter(breaker, Basic::Probing, Why::ProbesSucceeded, now);
                self.good = 1;
            }
            (Outcome::Success, Basic::Open | Basic::Probing) => {
                self.good = self.good.saturating_add(1);
                if self.good >= breaker.policy.probe.successes {
                    self.close(breaker, Why::ProbesSucceeded, now);
                }
            }
            (Outcome::Failure, Basic::Probing) => self.open(breaker, Why::ProbeFailed, now),
            // A paced call that failed tells nothing new of an open target; a 429 on a probe tells nothing at all.
            _ => {}
        }
    }

    /// Whether what was counted so far opens the breaker. Another node's warning alone does not.
    fn verdict(&mut self, breaker: &Breaker, now: Moment) -> Option<Why> {
        match &mut self.large {
            Some(large) => breaker.judge(if large.wary { 0 } else { large.streak }, large.window.tally(now)),
            None => {
                let word = breaker.word();
                let streak = if word.is_wary() { 0 } else { word.streak() };
                breaker.judge(u32::try_from(streak).unwrap_or(u32::MAX), word.tally())
            }
        }
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.probes.retain(|(known, _)| *known != number);
    }

    pub(super) fn warn(&mut self, breaker: &Breaker) {
        if let Some(large) = &mut self.large {
            large.wary = true;
            breaker.mark(breaker.word().spotless(false));
        }
    }

    // ===== changes of mode =====

    fn open(&mut self, breaker: &Breaker, why: Why, now: Moment) {
        self.openings = self.openings.saturating_add(1);
        let from = self.mode(breaker.word());
        self.open_until(breaker, from, why, now, now.after(self.open_time(&breaker.policy)));
    }

    fn open_until(&mut self, breaker: &Breaker, from: Mode, why: Why, now: Moment, until: Moment) {
        self.until = until;
        breaker.retry_at.store(until.nanos(), Ordering::Release);
        self.enter_from(breaker, from, Basic::Open, why, now);
    }

    /// Grows with each opening up to the cap; chance only shortens it.
    fn open_time(&self, policy: &BreakerPolicy) -> Duration {
        let open = &policy.open;
        let most = grown(open.first, open.growth, self.openings.saturating_sub(1)).min(open.cap);
        self.seed.nth(self.generation).between(scaled(most, 1.0 - open.jitter), most)
    }

    fn close(&mut self, breaker: &Breaker, why: Why, now: Moment) {
        self.openings = 0;
        self.enter(breaker, Basic::Closed, why, now);
    }

    pub(super) fn force(&mut self, breaker: &Breaker, forced: Forced, why: Why, now: Moment) {
        let from = self.mode(breaker.word());
        self.forced = Some(forced);
        match forced {
            Forced::Open => {
                breaker.retry_at.store(FORCED, Ordering::Release);
                self.enter_from(breaker, from, Basic::Open, why, now);
            }
            Forced::Closed => self.enter_from(breaker, from, Basic::Closed, why, now),
            Forced::Disabled => self.enter_from(breaker, from, Basic::Disabled, why, now),
        }
    }

    pub(super) fn release(&mut self, breaker: &Breaker, now: Moment) {
        let from = self.mode(breaker.word());
        match self.forced.take() {
            None => {}
            Some(Forced::Closed) => {
                self.generation = self.generation.wrapping_add(1);
                // Others may be counting into the word at this moment.
                let renumber = |word: Word| breaker.exchange(word, word.renumbered(self.generation));
                while renumber(breaker.word()).is_err() {}
                self.tell(breaker, from, Mode::Closed, Why::Released, now);
                if let Some(why) = self.verdict(breaker, now) {
                    self.open(breaker, why, now);
                }
            }
            Some(_) => {
                self.openings = 0;
                self.enter_from(breaker, from, Basic::Closed, Why::Released, now);
            }
        }
    }

    fn enter(&mut self, breaker: &Breaker, mode: Basic, why: Why, now: Moment) {
        let from = self.mode(breaker.word());
        self.enter_from(breaker, from, mode, why, now);
    }

    /// Starts a new generation: no evidence, no probes out, and no outcome of before counts any more.
    fn enter_from(&mut self, breaker: &Breaker, from: Mode, mode: Basic, why: Why, now: Moment) {
        self.generation = self.generation.wrapping_add(1);
        self.probes.clear();
        self.good = 0;
        // The first paced call waits its turn: the call that opened the breaker has just been there.
        self.next_paced = now.after(breaker.policy.probe.last_target_every.unwrap_or(Duration::MAX));
        if let Some(large) = &mut self.large {
            large.window.clear();
            (large.streak, large.wary) = (0, false);
        }
        let word = Word::new(mode, self.generation);
        breaker.mark(word);
        self.tell(breaker, from, self.mode(word), why, now);
    }

    fn tell(&mut self, breaker: &Breaker, from: Mode, to: Mode, why: Why, now: Moment) {
        (self.since, self.before) = (now, None);
        self.why = Some(why);
        if breaker.watcher.is_some() {
            let until = matches!(to, Mode::Open).then_some(self.until);
            let (generation, openings) = (self.generation, self.openings);
            self.told.push(Transition { from, to, why, generation, at: now, until, openings });
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
                let left = snapshot.until.map(|until| until.duration_since(wall));
                let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(Duration::ZERO);
                let until = now.after(left.min(breaker.policy.open.cap));
                let from = self.mode(breaker.word());
                self.forced = None;
                self.open_until(breaker, from, Why::Restored, now, until);
            }
            Mode::ForcedOpen => self.force(breaker, Forced::Open, Why::Restored, now),
            Mode::ForcedClosed => self.force(breaker, Forced::Closed, Why::Restored, now),
            Mode::Disabled => self.force(breaker, Forced::Disabled, Why::Restored, now),
        }
        // What was so before the restart is so for the same reason and since the same time. A clock that went back knows of no time to come.
        self.why = snapshot.why.or(self.why);
        self.before = Some(snapshot.since.min(wall));
    }
}
