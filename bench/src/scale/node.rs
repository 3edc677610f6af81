//! One gateway: what it knows, and what it lets through. Every decision is the core's.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::{Breaker, BreakerPolicy, BreakerSnapshot, Mode, Permit};
use koboshi::chance::Seed;
use koboshi::cooldown::{
    Class, Cooldown, CooldownPolicy, Failure, FleetPlace, Reopening, ReopeningPolicy, RestPhase, Standing,
    Turn,
};
use koboshi::time::Moment;
use koboshi::wait::{Form, Wait, WaitZone};

/// Who knows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Gateways with one store.
    Together,
    /// The same gateways, each with a store of its own.
    ByItself,
    /// Agents without a gateway that wait as long as `Retry-After` says.
    RetryAfter,
    /// Gateways with a breaker each, and nothing else.
    Breaker,
}

impl Policy {
    pub const ALL: [Self; 4] = [Self::Together, Self::ByItself, Self::RetryAfter, Self::Breaker];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Together => "Koboshi, one store",
            Self::ByItself => "each by itself",
            Self::RetryAfter => "Retry-After only",
            Self::Breaker => "breaker per node",
        }
    }

    const fn rests(self) -> bool {
        matches!(self, Self::Together | Self::ByItself)
    }
}

/// How long news is on its way to the other gateways.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
/// How often a request asks whether the one that goes first has found out.
const POLL: Duration = Duration::from_millis(100);
/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(3);
/// A gateway that died does not keep the right to go first for longer.
const LEASE: Duration = Duration::from_secs(2);

const REOPENING: ReopeningPolicy = ReopeningPolicy {
    stagger: Duration::from_millis(50),
    release: Duration::from_secs(60),
    max_probe_time: Duration::from_secs(10),
};

/// What one store has: the news in their order, and who may go first.
#[derive(Default)]
pub struct Store {
    cooldowns: Vec<(Moment, Cooldown)>,
    openings: Vec<(Moment, BreakerSnapshot)>,
    first: Option<(usize, Moment)>,
    /// How often it was written.
    pub writes: u64,
}

impl Store {
    fn lease(&mut self, node: usize, now: Moment) -> bool {
        let is_free = self.first.is_none_or(|(holder, until)| holder == node || now >= until);
        if is_free {
            self.first = Some((node, now.after(LEASE)));
        }
        is_free
    }
}

/// What a request may do.
pub enum Admission {
    /// It goes; `blind`: the gateway knew nothing of a failure.
    Go { permit: Option<Permit<Arc<Breaker>>>, blind: bool },
    /// It goes at this moment, which is its own.
    Later(Moment),
    /// Another one goes first: it asks again at this moment.
    Wait(Moment),
    /// The client may come again then; none: when it likes.
    Refused(Option<Moment>),
}

pub struct Node {
    number: usize,
    place: FleetPlace,
    policy: Policy,
    cooldown: Cooldown,
    read: (usize, usize),
    reopening: Option<Reopening>,
    breaker: Arc<Breaker>,
    shown: Mode,
}

/// The wall time of a moment.
pub fn wall(moment: Moment) -> Timestamp {
    Timestamp::UNIX_EPOCH + moment.since(Moment::START)
}

fn moment(wall: Timestamp) -> Moment {
    let passed = Duration::try_from(wall.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
    Moment::START.after(passed)
}

impl Node {
    pub fn new(number: usize, nodes: usize, policy: Policy, now: Moment) -> Self {
        let place = match policy {
            Policy::Together => FleetPlace {
                rank: u32::try_from(number).unwrap_or(u32::MAX),
                nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            },
            _ => FleetPlace::ALONE,
        };
        let seed = Seed::new(1).nth(number as u64);
        Self {
            number,
            place,
            policy,
            cooldown: Cooldown::default(),
            read: (0, 0),
            reopening: None,
            breaker: Arc::new(Breaker::new(BreakerPolicy::BOTH, seed, now).expect("a preset")),
            shown: Mode::Closed,
        }
    }

    /// Everything that it had in memory is gone.
    pub fn restart(&mut self, nodes: usize, now: Moment) {
        *self = Self::new(self.number, nodes, self.policy, now);
    }

    fn read(&mut self, store: &Store, now: Moment) {
        for (at, news) in store.cooldowns.iter().skip(self.read.0) {
            if now < at.after(ON_ITS_WAY) {
                break;
            }
            self.cooldown = self.cooldown.merge(news);
            self.read.0 += 1;
        }
        for (at, opening) in store.openings.iter().skip(self.read.1) {
            if now < at.after(ON_ITS_WAY) {
                break;
            }
            self.breaker.hint(opening);
            self.read.1 += 1;
        }
    }

    fn publish(&self, store: &mut Store, now: Moment) {
        if store.cooldowns.last().is_none_or(|(_, last)| last.merge(&self.cooldown) != *last) {
            store.cooldowns.push((now, self.cooldown.clone()));
            store.writes += 1;
        }
    }

    pub fn admit(&mut self, store: &mut Store, arrived: Moment, now: Moment, paced: bool) -> Admission {
        if self.policy == Policy::RetryAfter {
            return Admission::Go { permit: None, blind: false };
        }
        self.read(store, now);
        let mut blind = self.breaker.mode() == Mode::Closed;
        if self.policy.rests() && !paced {
            let (phase, until) = match self.cooldown.standing(wall(now)) {
                Standing::Free => (RestPhase::Over, None),
                Standing::Due(_) => (RestPhase::Due, None),
                Standing::Cooling { until, .. } => (RestPhase::Resting, Some(until)),
                _ => (RestPhase::Resting, None),
            };
            if phase != RestPhase::Over && self.reopening.is_none() {
                self.reopening = Some(Reopening::resting());
            }
            if let Some(reopening) = &mut self.reopening {
                blind = false;
                reopening.observe(phase, &REOPENING, self.place, now);
                if phase == RestPhase::Resting {
                    return Admission::Refused(until.map(moment));
                }
                let may_be_first = reopening.is_due() && store.lease(self.number, now);
                match reopening.take(may_be_first, arrived.after(PATIENCE), &REOPENING, self.place, now) {
                    Turn::Free | Turn::First => {}
                    Turn::At(time) => return Admission::Later(time),
                    Turn::Wait if now.since(arrived) < PATIENCE => {
                        return Admission::Wait(now.after(POLL));
                    }
                    Turn::Wait | Turn::TooLate => {
                        return Admission::Refused(Some(now.after(Duration::from_secs(1))));
                    }
                }
                if reopening.is_over() {
                    self.reopening = None;
                }
            }
        }
        match self.breaker.admit_last_owned(now) {
            Ok(permit) => Admission::Go { permit: Some(permit), blind },
            Err(refused) => Admission::Refused(refused.until.filter(|_| self.policy.rests())),
        }
    }

    pub fn succeeded(
        &mut self,
        store: &mut Store,
        permit: Option<Permit<Arc<Breaker>>>,
        sent: Moment,
        now: Moment,
    ) {
        if let Some(permit) = permit {
            permit.succeed(now);
        }
        if self.policy.rests()
            && self.cooldown.standing(wall(now)) != Standing::Free
            && self.cooldown.succeed(Some(wall(sent)), wall(now))
        {
            self.publish(store, now);
        }
    }

    pub fn failed(
        &mut self,
        store: &mut Store,
        permit: Option<Permit<Arc<Breaker>>>,
        until: Option<Moment>,
        (sent, now): (Moment, Moment),
    ) {
        match (until, permit) {
            (Some(until), permit) if self.policy.rests() => {
                drop(permit);
                let after = until.since(now);
                let wait =
                    Wait { after, until: wall(until), form: Form::Countdown, zone: WaitZone::Unneeded };
                let failure = Failure {
                    wait: Some(wait),
                    started: Some(wall(sent)),
                    ..Failure::of_class(Class::Quota)
                };
                let policy = CooldownPolicy::default();
                self.cooldown.fail(&failure, &policy, wall(now), Seed::new(now.nanos()));
                self.publish(store, now);
            }
            (_, Some(permit)) => permit.fail(now),
            (_, None) => {}
        }
        let mode = self.breaker.mode();
        if self.policy == Policy::Together && mode == Mode::Open && self.shown != Mode::Open {
            store.openings.push((now, self.breaker.snapshot(now, wall(now))));
            store.writes += 1;
        }
        self.shown = mode;
    }
}
