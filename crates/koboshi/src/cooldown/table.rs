//! All keys of one process: which rest, and which may start.
//!
//! Beside each record it keeps what is not shared: the probe that is out, the order in which the others
//! follow it, and the recent starts. Asking about one key is one hash lookup, however many there are.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::fault::Fault;
use crate::key::ScopeKey;

use super::{
    Class, Cooldown, CooldownChange, CooldownEvent, CooldownPolicy, CooldownPolicyError, Failure, Rest,
    Standing,
};

/// A key that has been quiet for this long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// Exit status; none where it ended by a signal.
    pub exit_code: Option<i32>,
    /// How long it ran, if known.
    pub ran: Option<Duration>,
    /// What was read from it.
    pub fault: Option<&'a Fault>,
}

/// A start that may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPermit {
    /// It is the first one after a rest: the others wait for its outcome.
    pub probe: bool,
    /// The cooldown that is over by this start.
    pub ended: Option<CooldownEvent>,
}

/// Why a start must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartRefusalReason {
    /// The key is in cooldown.
    Rest,
    /// A person must resume it.
    Parked,
    /// The cooldown is over and one probe is under way: the others wait for its end.
    Probe,
    /// The probe succeeded, and the others follow one by one.
    Turn,
}

/// A start that must wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event}")]
pub struct StartRefusal {
    /// Why.
    pub why: StartRefusalReason,
    /// Until when; none where a person must resume it.
    pub until: Option<Timestamp>,
    /// The line for the log.
    pub event: CooldownEvent,
}

#[derive(Debug, Default)]
struct KeyState {
    record: Cooldown,
    /// Until when the probe that is out is waited for.
    probe: Option<Timestamp>,
    /// After a probe's success: when the next one may follow, and when all may.
    release: Option<(Timestamp, Timestamp)>,
    /// The latest starts, oldest first.
    starts: VecDeque<Timestamp>,
}

/// All keys of one process.
#[derive(Debug)]
pub struct Cooldowns {
    policy: CooldownPolicy,
    keys: HashMap<ScopeKey, KeyState>,
}

impl Cooldowns {
    /// No key is in cooldown.
    ///
    /// # Errors
    /// The policy makes no sense.
    pub fn new(policy: CooldownPolicy) -> Result<Self, CooldownPolicyError> {
        policy.validate()?;
        Ok(Self { policy, keys: HashMap::new() })
    }

    /// The state of a key. Every request asks this: one lookup, nothing is changed.
    #[must_use]
    pub fn standing(&self, key: &ScopeKey, now: Timestamp) -> Standing<'_> {
        self.keys.get(key).map_or(Standing::Free, |kept| kept.record.standing(now))
    }

    /// The cooldown of a key that is in cooldown or parked now.
    #[must_use]
    pub fn check(&self, key: &ScopeKey, now: Timestamp) -> Option<&Rest> {
        match self.standing(key, now) {
            Standing::Cooling { rest, .. } | Standing::Parked(rest) => Some(rest),
            Standing::Free | Standing::Due(_) => None,
        }
    }

    // ===== what happened =====

    /// Something failed.
    pub fn fail(
        &mut self,
        key: &ScopeKey,
        failure: &Failure,
        now: Timestamp,
        seed: Seed,
    ) -> Option<CooldownEvent> {
        if !self.policy.enabled {
            return None;
        }
        let policy = self.policy;
        let kept = self.kept(key);
        kept.record.fail(failure, &policy, now, seed);
        (kept.probe, kept.release) = (None, None);
        kept.record.rest.as_ref().map(|rest| CooldownEvent::set(key, rest, now))
    }

    /// Something succeeded that began then, if known. If it was the first after a rest, the others follow one by one.
    pub fn succeed(
        &mut self,
        key: &ScopeKey,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<CooldownEvent> {
        let policy = self.policy;
        let kept = self.keys.get_mut(key)?;
        // The end of a cooldown is reported when the probe starts; a success before that ends it early.
        let early = matches!(kept.record.standing(now), Standing::Cooling { .. });
        if !kept.record.succeed(started, now) {
            return None;
        }
        kept.follow(&policy, now);
        let what = if early { CooldownChange::Ended } else { CooldownChange::Recovered };
        Some(CooldownEvent { key: key.clone(), what })
    }

    /// A run ended. Exit 0 is a success only if it lasted: "nothing to do" in a second would be started for ever.
    /// A fault that was read counts whatever the exit status.
    pub fn run_ended(
        &mut self,
        key: &ScopeKey,
        end: &RunEnd<'_>,
        now: Timestamp,
        seed: Seed,
    ) -> Option<CooldownEvent> {
        let started = end.ran.and_then(|ran| now.checked_sub(ran).ok());
        if let Some(fault) = end.fault {
            return self.fail(key, &Failure { ran: end.ran, started, ..Failure::of(fault) }, now, seed);
        }
        if end.exit_code != Some(0) {
            let failure = Failure { ran: end.ran, started, ..Failure::of_class(Class::Error) };
            return self.fail(key, &failure, now, seed);
        }
        if end.ran.is_some_and(|ran| ran < self.policy.min_run) {
            self.give_up_probe(key);
            return None;
        }
        self.succeed(key, started, now)
    }

    /// The probe was called off: the next one may go.
    pub fn give_up_probe(&mut self, key: &ScopeKey) {
        if let Some(kept) = self.keys.get_mut(key) {
            kept.probe = None;
        }
    }

    // ===== who may start =====

    /// May something start now? Nothing is changed. Says whether it would be the one that goes first after a rest.
    ///
    /// # Errors
    /// Not now: the key is in cooldown or parked, or waits for the probe or its turn.
    pub fn check_start(&self, key: &ScopeKey, may_probe: bool, now: Timestamp) -> Result<bool, StartRefusal> {
        let Some(kept) = self.keys.get(key) else { return Ok(false) };
        let policy = &self.policy;
        let held = |why, class: Class, until| {
            let event = CooldownEvent::skipped(key, class, until, now);
            Err(StartRefusal { why, until: Some(until), event })
        };
        match kept.record.standing(now) {
            Standing::Parked(rest) => Err(StartRefusal::parked(key, rest)),
            Standing::Cooling { rest, until } => held(StartRefusalReason::Rest, rest.class, until),
            Standing::Due(rest) => match kept.probe_at(policy, now) {
                Some(until) => held(StartRefusalReason::Probe, rest.class, until),
                None if !may_probe => held(StartRefusalReason::Probe, rest.class, later(now, policy.stagger)),
                None => Ok(true),
            },
            Standing::Free => kept.turn(policy, now).map_or(Ok(false), |until| {
                let what = CooldownChange::Turn { seconds: super::event::seconds_until(until, now) };
                let event = CooldownEvent { key: key.clone(), what };
                Err(StartRefusal { why: StartRefusalReason::Turn, until: Some(until), event })
            }),
        }
    }

    /// Notes a start that was allowed: the others wait for the outcome of a probe, or follow it one by one.
    pub fn take(&mut self, key: &ScopeKey, probe: bool, now: Timestamp) -> StartPermit {
        let policy = self.policy;
        if let Some(kept) = self.keys.get_mut(key) {
            kept.follow_clock(&policy, now);
            if probe {
                kept.probe = Some(later(now, policy.max_probe_time));
            } else {
                kept.take_turn(&policy, now);
            }
        }
        let ended = probe.then(|| CooldownEvent { key: key.clone(), what: CooldownChange::Ended });
        StartPermit { probe, ended }
    }

    /// May something start now? Counts the start if so. `may_probe` is false where another caller (another process of a
    /// fleet) holds the right to go first.
    ///
    /// # Errors
    /// Not now: the key is in cooldown or parked, waits for the probe or its turn, or was started too often.
    pub fn start(
        &mut self,
        key: &ScopeKey,
        may_probe: bool,
        now: Timestamp,
        seed: Seed,
    ) -> Result<StartPermit, StartRefusal> {
        self.follow_clock(key, now);
        let probe = self.check_start(key, may_probe, now)?;
        self.count(key, now, seed)?;
        Ok(self.take(key, probe, now))
    }

    /// A clock that was set back must not make any caller wait longer than the policy says, counted from the first that
    /// asks.
    pub(crate) fn follow_clock(&mut self, key: &ScopeKey, now: Timestamp) {
        let policy = self.policy;
        if let Some(kept) = self.keys.get_mut(key) {
            kept.follow_clock(&policy, now);
        }
    }

    /// Counts a start.
    ///
    /// # Errors
    /// There were too many of late: the key is in cooldown from now on.
    pub fn count(&mut self, key: &ScopeKey, now: Timestamp, seed: Seed) -> Result<(), StartRefusal> {
        let policy = self.policy;
        let kept = self.kept(key);
        if policy.enabled && kept.started_too_often(&policy, now) {
            let failure = Failure {
                detail: format!(
                    "started {} times within {} s",
                    policy.starts,
                    policy.starts_within.as_secs()
                ),
                ..Failure::of_class(Class::Error)
            };
            kept.record.fail(&failure, &policy, now, seed);
            kept.starts.clear();
            if let Standing::Parked(rest) | Standing::Cooling { rest, .. } = kept.record.standing(now) {
                return Err(StartRefusal::set(key, rest, now));
            }
        }
        kept.starts.push_back(now);
        Ok(())
    }

    // ===== what people and others say =====

    /// A person resumes a key.
    pub fn resume(&mut self, key: &ScopeKey, now: Timestamp) -> Option<CooldownEvent> {
        let kept = self.kept(key);
        let rested = kept.record.resume(now);
        (kept.probe, kept.release) = (None, None);
        kept.starts.clear();
        rested.then(|| CooldownEvent { key: key.clone(), what: CooldownChange::Resumed })
    }

    /// A person lets a key rest.
    pub fn cool(
        &mut self,
        key: &ScopeKey,
        until: Timestamp,
        detail: &str,
        now: Timestamp,
    ) -> Option<CooldownEvent> {
        let kept = self.kept(key);
        kept.record.cool(until, detail, now);
        (kept.probe, kept.release) = (None, None);
        kept.record.by_operator.as_ref().map(|rest| CooldownEvent::set(key, rest, now))
    }

    /// What is known about a key, to be stored and shared.
    #[must_use]
    pub fn record(&self, key: &ScopeKey) -> Option<&Cooldown> {
        self.keys.get(key).map(|kept| &kept.record)
    }

    /// Merges what another process knows. Returns whether this one knows more and must send it.
    pub fn adopt(&mut self, key: &ScopeKey, other: &Cooldown, now: Timestamp) -> bool {
        let policy = self.policy;
        let kept = self.kept(key);
        let (epoch, rested) = (kept.record.epoch, kept.record.rest.is_some());
        let tell = kept.record.reconcile(other);
        if kept.record.epoch != epoch {
            (kept.probe, kept.release) = (None, None);
            let by_success = kept.record.cleared.is_some_and(|cleared| !cleared.by_person);
            if rested && by_success && kept.record.rest.is_none() {
                kept.follow(&policy, now);
            }
        }
        tell
    }

    /// Everything that is known, to be stored and shared.
    pub fn records(&self) -> impl Iterator<Item = (&ScopeKey, &Cooldown)> {
        self.keys.iter().map(|(key, kept)| (key, &kept.record))
    }

    /// Forgets keys that have been quiet for a week, so that the table does not grow for ever.
    pub fn forget_quiet(&mut self, now: Timestamp) {
        self.keys.retain(|_, kept| !kept.is_quiet(now));
    }

    /// How many keys are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn kept(&mut self, key: &ScopeKey) -> &mut KeyState {
        self.keys.entry(key.clone()).or_default()
    }
}

impl KeyState {
    /// Until when the probe that is out is waited for. A clock that was set back must not make any caller wait longer than the policy says.
    fn probe_at(&self, policy: &CooldownPolicy, now: Timestamp) -> Option<Timestamp> {
        self.probe.map(|until| until.min(later(now, policy.max_probe_time))).filter(|until| now < *until)
    }

    /// After a probe's success: when this one may follow, if not now.
    fn turn(&self, policy: &CooldownPolicy, now: Timestamp) -> Option<Timestamp> {
        let (next, all) = self.release?;
        let next = next.min(later(now, policy.stagger));
        (now < all && now < next).then_some(next)
    }

    fn take_turn(&mut self, policy: &CooldownPolicy, now: Timestamp) {
        if let Some((_, all)) = self.release.filter(|(_, all)| now < *all) {
            self.release = Some((later(now, policy.stagger), all));
        }
    }

    /// One succeeded: the others follow one by one.
    fn follow(&mut self, policy: &CooldownPolicy, now: Timestamp) {
        self.probe = None;
        self.release = Some((later(now, policy.stagger), later(now, policy.release)));
    }

    /// A clock that was set back must not keep a key resting longer than the policy says.
    fn follow_clock(&mut self, policy: &CooldownPolicy, now: Timestamp) {
        self.probe = self.probe.map(|until| until.min(later(now, policy.max_probe_time)));
        let (stagger, release) = (later(now, policy.stagger), later(now, policy.release));
        self.release = self.release.map(|(next, all)| (next.min(stagger), all.min(release)));
    }

    fn started_too_often(&mut self, policy: &CooldownPolicy, now: Timestamp) -> bool {
        // Starts from the future are left over from before the clock was set back.
        self.starts.retain(|start| *start <= now && later(*start, policy.starts_within) > now);
        self.starts.len() >= usize::try_from(policy.starts).unwrap_or(usize::MAX)
    }

    fn is_quiet(&self, now: Timestamp) -> bool {
        let last = match self.record.standing(now) {
            Standing::Parked(_) | Standing::Cooling { .. } => return false,
            Standing::Due(rest) => rest.ends(now),
            Standing::Free => self.record.cleared.map_or(Timestamp::MIN, |cleared| cleared.at),
        };
        let last = self.starts.back().map_or(last, |start| last.max(*start));
        later(last, FORGET_AFTER) <= now
    }
}

impl StartRefusal {
    /// The key is in cooldown or parked from now on.
    fn set(key: &ScopeKey, rest: &Rest, now: Timestamp) -> Self {
        let (why, until) = if rest.parked {
            (StartRefusalReason::Parked, None)
        } else {
            (StartRefusalReason::Rest, Some(rest.ends(now)))
        };
        Self { why, until, event: CooldownEvent::set(key, rest, now) }
    }

    fn parked(key: &ScopeKey, rest: &Rest) -> Self {
        let what = CooldownChange::SkippedParked { class: rest.class };
        Self { why: StartRefusalReason::Parked, until: None, event: CooldownEvent { key: key.clone(), what } }
    }
}

fn later(from: Timestamp, length: Duration) -> Timestamp {
    from.saturating_add(length).unwrap_or(Timestamp::MAX)
}
