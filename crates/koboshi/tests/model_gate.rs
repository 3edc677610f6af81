//! The gate against a naive model, on random schedules.
//!
//! The model keeps plain lists. Levels and holds are recomputed from the whole history for every question, a
//! moment of readiness is searched for and not computed, and what of a reservation is still ours to give back is a list
//! of names. It shares no code with the gate, so an error must be made twice, in two ways, to stay unseen.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::gate::{
    Allowance, Cost, Entry, Gate, GateDelay, GateEvent, GatePolicy, Holds, Limit, Refill, Refusal,
    Reservation, Tenant, Ticket, TicketState,
};
use koboshi::time::Moment;
use proptest::collection::vec;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SEC: u64 = 1000 * MS;
const COUNTED: [Limit; 4] = [Limit::Requests, Limit::Tokens, Limit::InputTokens, Limit::OutputTokens];
const TENANTS: [&str; 3] = ["a", "b", "c"];

fn moment(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn nanos(length: Duration) -> u64 {
    length.as_nanos() as u64
}

fn units(limit: Limit, cost: Cost) -> i128 {
    i128::from(match limit {
        Limit::Requests => cost.requests,
        Limit::Tokens => cost.input_tokens + cost.output_tokens,
        Limit::InputTokens => cost.input_tokens,
        _ => cost.output_tokens,
    })
}

// ===== The model =====

#[derive(Debug, Clone)]
enum Fact {
    /// A caller handed in the time.
    Tick,
    Took(usize, Cost),
    Seen(usize),
    Returned(usize, Cost),
    Kept(usize),
    Settled(usize, Cost, Cost),
    Learned(Limit, Allowance),
    Held(Limit, i64, i64),
    Adopted(u64, Vec<(Limit, i64)>, i64),
    Cleared,
}

/// One level, replayed.
#[derive(Debug, Clone)]
struct Level {
    ceiling: i128,
    known: bool,
    /// In units times `per`.
    level: i128,
    gain: i128,
    per: i128,
    at: u64,
    reset: Option<u64>,
    forget: u64,
}

#[derive(Debug, Clone, Default)]
struct Past {
    levels: BTreeMap<Limit, Level>,
    unseen: BTreeMap<Limit, Vec<(usize, Cost)>>,
    ours: BTreeMap<Limit, Vec<usize>>,
    warned_until: BTreeMap<Limit, u64>,
    warnings: Vec<(Limit, u8)>,
    let_go: usize,
    in_flight: u32,
    epoch: u64,
    record: BTreeMap<Limit, i64>,
    ends: BTreeMap<Limit, u64>,
    news: Vec<bool>,
}

impl Level {
    fn full(&self) -> i128 {
        self.ceiling * self.per
    }

    fn at(&self, now: u64) -> i128 {
        (self.level + self.gain * i128::from(now.saturating_sub(self.at))).min(self.full())
    }

    /// Searched, not computed: the first moment at which there is enough.
    fn ready(&self, need: i128, now: u64) -> u64 {
        let need = if self.known { need.min(self.ceiling) } else { need };
        let enough = |moment: u64| self.at(moment) >= need * self.per;
        if enough(now) {
            return now;
        }
        let end = self.reset.unwrap_or(self.forget).min(self.forget);
        let (mut early, mut late) = (now, end);
        while early + 1 < late {
            let middle = early + (late - early) / 2;
            if enough(middle) { late = middle } else { early = middle }
        }
        late
    }
}

impl Past {
    fn replay(history: &[(u64, Fact)], policy: &GatePolicy) -> Self {
        let mut past = Self::default();
        for (now, fact) in history {
            past.apply(*now, fact, policy);
        }
        past
    }

    fn apply(&mut self, now: u64, fact: &Fact, policy: &GatePolicy) {
        match fact {
            Fact::Tick => self.refresh(now),
            Fact::Took(id, cost) => {
                self.in_flight += 1;
                for limit in COUNTED {
                    self.unseen.entry(limit).or_default().push((*id, *cost));
                    self.ours.entry(limit).or_default().push(*id);
                    self.change(limit, -units(limit, *cost));
                }
                self.warn(now);
            }
            Fact::Seen(id) => {
                for limit in COUNTED.into_iter().filter(|limit| *limit != Limit::OutputTokens) {
                    self.unseen.entry(limit).or_default().retain(|(other, _)| other != id);
                }
            }
            Fact::Returned(id, cost) => self.end(*id, |limit, _| units(limit, *cost)),
            Fact::Kept(id) => self.end(*id, |_, _| 0),
            Fact::Settled(id, cost, actual) => {
                self.end(*id, |limit, ours| {
                    let back = units(limit, *cost) - units(limit, *actual);
                    if ours { back } else { back.min(0) }
                });
                self.warn(now);
            }
            Fact::Learned(limit, allowance) => {
                self.learn(now, *limit, *allowance, policy);
                self.warn(now);
            }
            Fact::Held(reason, until, wall) => {
                let changed = self.hold(now, *reason, *until, *wall);
                if until > wall {
                    let known = self.record.entry(*reason).or_insert(*until);
                    *known = (*known).max(*until);
                }
                self.news.push(changed);
            }
            Fact::Adopted(epoch, holds, wall) => self.adopt(now, *epoch, holds, *wall),
            Fact::Cleared => {
                self.epoch += 1;
                self.record.clear();
                self.ends.clear();
                self.levels.clear();
            }
        }
    }

    fn change(&mut self, limit: Limit, units: i128) {
        if let Some(level) = self.levels.get_mut(&limit) {
            level.level = (level.level + units * level.per).min(level.full());
        }
    }

    fn end(&mut self, id: usize, back: impl Fn(Limit, bool) -> i128) {
        self.in_flight -= 1;
        for limit in COUNTED {
            let ours = self.ours.entry(limit).or_default().contains(&id);
            self.unseen.entry(limit).or_default().retain(|(other, _)| *other != id);
            self.change(limit, back(limit, ours));
        }
    }

    fn unseen_units(&self, limit: Limit) -> i128 {
        self.unseen.get(&limit).into_iter().flatten().map(|(_, cost)| units(limit, *cost)).sum()
    }

    /// Everything unseen is in the level from here on, and nothing else is.
    fn restart(&mut self, limit: Limit) {
        let unseen = self.unseen.get(&limit).into_iter().flatten().map(|(id, _)| *id).collect();
        self.ours.insert(limit, unseen);
    }

    fn refresh(&mut self, now: u64) {
        for limit in COUNTED {
            let unseen = self.unseen_units(limit);
            let Some(level) = self.levels.get_mut(&limit) else { continue };
            let resets = level.reset.is_some_and(|reset| now >= reset);
            if now >= level.forget || (resets && !level.known) {
                self.levels.remove(&limit);
                self.let_go += 1;
            } else if resets {
                level.level = level.full() - unseen * level.per;
                level.reset = None;
                level.at = now;
                self.let_go += 1;
                self.restart(limit);
            } else {
                level.level = level.at(now);
                level.at = now;
            }
        }
    }

    fn learn(&mut self, now: u64, limit: Limit, said: Allowance, policy: &GatePolicy) {
        if !COUNTED.contains(&limit) {
            return;
        }
        let stated = said.limit.map(|max| i128::from(max.max(1)));
        let remaining = i128::from(said.remaining).min(stated.unwrap_or(i128::MAX));
        let whole = stated.unwrap_or(remaining);
        let spared = (whole as f64 * policy.headroom) as i128;
        let ceiling = if stated.is_some() { (whole - spared).max(1) } else { whole - spared };
        let usable = remaining - (whole - ceiling);
        let earlier =
            self.levels.get(&limit).filter(|level| level.gain > 0).map(|level| (level.gain, level.per));
        let (mut gain, mut per, mut reset) = (0, 1, None);
        match said.resets_in.map(nanos) {
            Some(length) if stated.is_some() && said.refill == Refill::Steady => {
                (gain, per) = if whole > remaining && length > 0 {
                    (whole - remaining, i128::from(length))
                } else {
                    earlier.unwrap_or((ceiling, i128::from(60 * SEC)))
                };
            }
            Some(length) => reset = Some(now + length.max(SEC)),
            None => {}
        }
        let level = (usable - self.unseen_units(limit)) * per;
        let forget = now + nanos(policy.forget_after);
        let known = stated.is_some();
        self.levels.insert(limit, Level { ceiling, known, level, gain, per, at: now, reset, forget });
        self.restart(limit);
    }

    fn warn(&mut self, now: u64) {
        for (limit, level) in &self.levels {
            let warned = self.warned_until.entry(*limit).or_default();
            let used = level.full() - level.level;
            if now < *warned || !level.known || used * 100 < level.full() * 80 {
                continue;
            }
            self.warnings.push((*limit, (used * 100 / level.full()).min(100) as u8));
            *warned = match level.reset {
                Some(reset) => reset,
                None if level.gain > 0 => level.at + (used as u128).div_ceil(level.gain as u128) as u64,
                None => level.forget,
            };
        }
    }

    fn hold(&mut self, now: u64, reason: Limit, until: i64, wall: i64) -> bool {
        if until <= wall {
            return false;
        }
        let end = now + (until - wall) as u64 * SEC;
        let known = self.ends.entry(reason).or_default();
        let longer = end > *known;
        *known = end.max(*known);
        longer
    }

    fn adopt(&mut self, now: u64, epoch: u64, holds: &[(Limit, i64)], wall: i64) {
        let mut news = false;
        if epoch > self.epoch {
            (self.epoch, news) = (epoch, true);
            self.record.clear();
            self.ends.clear();
            self.levels.clear();
        }
        let is_current = epoch == self.epoch;
        for (reason, until) in holds.iter().filter(|_| is_current) {
            if self.record.get(reason).is_none_or(|known| until > known) {
                self.record.insert(*reason, *until);
                self.hold(now, *reason, *until, wall);
                news = true;
            }
        }
        self.news.push(news);
    }
}

#[derive(Debug, Clone)]
struct Waiting {
    id: usize,
    tenant: usize,
    cost: Cost,
    deadline: u64,
}

#[derive(Debug, PartialEq)]
enum Answer {
    In,
    Wait,
    Refused(Refusal),
    Expired,
}

struct Model {
    policy: GatePolicy,
    now: u64,
    history: Vec<(u64, Fact)>,
    waiting: Vec<Waiting>,
    /// Tenants in the order of their turns.
    turns: Vec<usize>,
    pace: Option<(u64, u64)>,
    called: Option<(usize, u64)>,
    reason: Limit,
    closed: bool,
    opened: usize,
    next: usize,
}

impl Model {
    fn new(policy: GatePolicy) -> Self {
        Self {
            policy,
            now: 0,
            history: Vec::new(),
            waiting: Vec::new(),
            turns: Vec::new(),
            pace: None,
            called: None,
            reason: Limit::Requests,
            closed: false,
            opened: 0,
            next: 0,
        }
    }

    fn past(&self) -> Past {
        Past::replay(&self.history, &self.policy)
    }

    fn note(&mut self, fact: Fact) {
        self.history.push((self.now, fact));
    }

    fn new_id(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn tick(&mut self) {
        let before = self.past().let_go;
        self.note(Fact::Tick);
        let past = self.past();
        let now = self.now;
        self.waiting.retain(|waiting| waiting.deadline >= now);
        self.forget_empty_lines();
        let opened = self.closed && past.ends.values().all(|end| now >= *end);
        if opened || past.let_go > before {
            let next = self.pace.map_or(now, |(next, _)| next.max(now));
            self.pace = Some((next, next + nanos(self.policy.stagger) * self.waiting.len() as u64));
        }
        if opened {
            self.closed = false;
            self.opened += usize::from(!past.ends.is_empty());
        }
        if self.waiting.is_empty() || self.pace.is_some_and(|(_, over)| now >= over) {
            self.pace = None;
        }
    }

    fn forget_empty_lines(&mut self) {
        let waiting = &self.waiting;
        self.turns.retain(|tenant| waiting.iter().any(|other| other.tenant == *tenant));
    }

    fn head(&self) -> Option<&Waiting> {
        let tenant = self.turns.first()?;
        self.waiting.iter().find(|waiting| waiting.tenant == *tenant)
    }

    fn blocked(&self, cost: Cost) -> Option<GateDelay> {
        let past = self.past();
        let holds = Limit::ALL.iter().filter_map(|reason| Some((*past.ends.get(reason)?, *reason)));
        let levels = COUNTED
            .iter()
            .filter_map(|limit| Some((past.levels.get(limit)?.ready(units(*limit, cost), self.now), *limit)));
        let timed =
            holds.chain(levels).filter(|(until, _)| *until > self.now).max_by_key(|(until, _)| *until);
        if let Some((until, reason)) = timed {
            return Some(GateDelay { until: Some(moment(until)), reason });
        }
        let full = self.policy.concurrency.is_some_and(|max| past.in_flight >= max);
        full.then_some(GateDelay { until: None, reason: Limit::Concurrency })
    }

    fn refused(&self, cost: Cost) -> Option<GateDelay> {
        match self.blocked(cost) {
            Some(held) if held.until.is_some() => Some(held),
            _ if !self.waiting.is_empty() => Some(GateDelay { until: None, reason: self.reason }),
            other => other,
        }
    }

    fn kept_back(&self, cost: Cost) -> Option<GateDelay> {
        let paced = self.pace.filter(|(next, _)| *next > self.now);
        let paced = paced.map(|(next, _)| GateDelay { until: Some(moment(next)), reason: self.reason });
        self.blocked(cost).or(paced)
    }

    fn call(&mut self, asking: Option<usize>) {
        let Some(head) = self.head().cloned() else { return };
        if let Some(held) = self.kept_back(head.cost) {
            (self.reason, self.called) = (held.reason, None);
            return;
        }
        match self.called {
            Some((id, since)) if id == head.id => {
                if asking != Some(id) && self.now >= since + SEC {
                    self.waiting.retain(|waiting| waiting.id != id);
                    self.waiting.push(head.clone());
                    self.turns.retain(|tenant| *tenant != head.tenant);
                    self.turns.push(head.tenant);
                    self.called = self.head().map(|next| (next.id, self.now));
                }
            }
            _ => self.called = Some((head.id, self.now)),
        }
    }

    fn reserve(&mut self, cost: Cost) -> Result<usize, GateDelay> {
        self.tick();
        self.call(None);
        self.refused(cost).map_or(Ok(()), Err)?;
        Ok(self.take(cost))
    }

    fn take(&mut self, cost: Cost) -> usize {
        let id = self.new_id();
        self.note(Fact::Took(id, cost));
        id
    }

    fn enter(&mut self, tenant: usize, cost: Cost, deadline: u64) -> (Answer, usize) {
        self.tick();
        self.call(None);
        let Some(held) = self.refused(cost) else { return (Answer::In, self.take(cost)) };
        let deadline = deadline.min(self.now + nanos(self.policy.max_wait));
        if let Some(until) = held.until.filter(|until| *until > moment(deadline)) {
            return (Answer::Refused(Refusal::TooLate { until }), 0);
        }
        if self.waiting.len() >= self.policy.queue as usize {
            return (Answer::Refused(Refusal::Full), 0);
        }
        if self.waiting.is_empty() {
            self.reason = held.reason;
        }
        let id = self.new_id();
        self.waiting.push(Waiting { id, tenant, cost, deadline });
        if !self.turns.contains(&tenant) {
            self.turns.push(tenant);
        }
        (Answer::Wait, id)
    }

    fn poll(&mut self, id: usize) -> (Answer, usize) {
        self.tick();
        self.call(Some(id));
        let Some(waiting) = self.waiting.iter().find(|waiting| waiting.id == id).cloned() else {
            return (Answer::Expired, 0);
        };
        let is_head = self.head().is_some_and(|head| head.id == id);
        if !is_head || self.kept_back(waiting.cost).is_some() {
            return (Answer::Wait, 0);
        }
        self.waiting.retain(|other| other.id != id);
        self.turns.retain(|tenant| *tenant != waiting.tenant);
        self.turns.push(waiting.tenant);
        self.forget_empty_lines();
        if let Some((next, _)) = &mut self.pace {
            *next = self.now + nanos(self.policy.stagger);
        }
        (Answer::In, self.take(waiting.cost))
    }

    fn leave(&mut self, id: usize) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.forget_empty_lines();
    }

    /// Whether a fact about holds was news.
    fn tell(&mut self, fact: Fact) -> bool {
        self.tick();
        let before = self.past();
        self.note(fact);
        let past = self.past();
        self.closed |= past.ends != before.ends || past.epoch > before.epoch;
        past.news.last().copied().unwrap_or(false)
    }
}

// ===== The schedules =====

#[derive(Debug, Clone, Copy)]
enum Op {
    Step(u64),
    JumpWall(i64),
    Reserve(Cost),
    Sent(usize),
    Seen(usize),
    Settle(usize, Cost),
    Drop(usize),
    Learn(Limit, Allowance),
    Hold(Limit, i64),
    Adopt(u64, Limit, i64),
    Clear,
    Enter(usize, Cost, u64),
    Poll(usize),
    DropTicket(usize),
}

fn any_cost() -> impl Strategy<Value = Cost> {
    (0..3_u64, 0..60_u64, 0..60_u64).prop_map(|(requests, input_tokens, output_tokens)| Cost {
        requests,
        input_tokens,
        output_tokens,
    })
}

fn any_allowance() -> impl Strategy<Value = Allowance> {
    let length = prop_oneof![Just(0), 1..30_000_u64].prop_map(Duration::from_millis);
    let refill = prop_oneof![Just(Refill::Steady), Just(Refill::AtReset)];
    (prop::option::weighted(0.8, 0..150_u64), 0..150_u64, prop::option::weighted(0.8, length), refill)
        .prop_map(|(limit, remaining, resets_in, refill)| Allowance { limit, remaining, resets_in, refill })
}

fn any_op() -> impl Strategy<Value = Op> {
    let reason = || prop::sample::select(Limit::ALL);
    prop_oneof![
        6 => (0..300_u64).prop_map(Op::Step),
        2 => (300..8000_u64).prop_map(Op::Step),
        1 => (-100_000..100_000_i64).prop_map(Op::JumpWall),
        6 => any_cost().prop_map(Op::Reserve),
        2 => (0..9_usize).prop_map(Op::Sent),
        3 => (0..9_usize).prop_map(Op::Seen),
        4 => (0..9_usize, any_cost()).prop_map(|(index, cost)| Op::Settle(index, cost)),
        4 => (0..9_usize).prop_map(Op::Drop),
        4 => (reason(), any_allowance()).prop_map(|(limit, allowance)| Op::Learn(limit, allowance)),
        2 => (reason(), -3..9_i64).prop_map(|(reason, seconds)| Op::Hold(reason, seconds)),
        1 => (0..2_u64, reason(), -3..9_i64).prop_map(|(epoch, reason, until)| Op::Adopt(epoch, reason, until)),
        1 => Just(Op::Clear),
        8 => (0..TENANTS.len(), any_cost(), 0..15_000_u64).prop_map(|(t, cost, wait)| Op::Enter(t, cost, wait)),
        9 => (0..9_usize).prop_map(Op::Poll),
        2 => (0..9_usize).prop_map(Op::DropTicket),
    ]
}

fn any_policy() -> impl Strategy<Value = GatePolicy> {
    let lengths = |list: &'static [u64]| prop::sample::select(list).prop_map(Duration::from_millis);
    (
        prop::option::of(1..4_u32),
        0..6_u32,
        lengths(&[0, 1000, 12_000]),
        lengths(&[0, 50, 300]),
        prop::sample::select(&[0.0, 0.25, 0.9][..]),
        lengths(&[0, 5000, 60_000]),
    )
        .prop_map(|(concurrency, queue, max_wait, stagger, headroom, forget_after)| {
            GatePolicy::default().with(|policy| {
                policy.concurrency = concurrency;
                policy.queue = queue;
                policy.max_wait = max_wait;
                policy.stagger = stagger;
                policy.headroom = headroom;
                policy.forget_after = forget_after;
            })
        })
}

struct Live<'g> {
    id: usize,
    reservation: Reservation<&'g Gate>,
    untouched: bool,
}

struct Run<'g> {
    gate: &'g Gate,
    model: Model,
    wall: i64,
    live: Vec<Live<'g>>,
    tickets: Vec<(usize, Ticket<&'g Gate>)>,
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pick<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(index % list.len()))
}

impl<'g> Run<'g> {
    fn now(&self) -> Moment {
        moment(self.model.now)
    }

    fn let_in(&mut self, id: usize, reservation: Reservation<&'g Gate>) {
        self.live.push(Live { id, reservation, untouched: true });
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Step(millis) => self.model.now += millis * MS,
            Op::JumpWall(seconds) => self.wall += seconds,
            Op::Reserve(cost) => match (self.gate.reserve(cost, self.now()), self.model.reserve(cost)) {
                (Ok(reservation), Ok(id)) => self.let_in(id, reservation),
                (Err(held), Err(expected)) => assert_eq!(held, expected),
                (answer, expected) => panic!("{answer:?}, but the model says {expected:?}"),
            },
            Op::Sent(index) => {
                let count = self.live.len().max(1);
                if let Some(live) = self.live.get_mut(index % count) {
                    live.reservation.sent();
                    live.untouched = false;
                }
            }
            Op::Seen(index) => {
                if let Some(mut live) = pick(&mut self.live, index) {
                    live.reservation.seen();
                    live.untouched = false;
                    self.model.note(Fact::Seen(live.id));
                    self.live.push(live);
                }
            }
            Op::Settle(index, actual) => {
                if let Some(live) = pick(&mut self.live, index) {
                    let cost = live.reservation.cost();
                    live.reservation.settle(actual, self.now());
                    self.model.tick();
                    self.model.note(Fact::Settled(live.id, cost, actual));
                }
            }
            Op::Drop(index) => {
                if let Some(live) = pick(&mut self.live, index) {
                    let (id, cost) = (live.id, live.reservation.cost());
                    self.model.note(if live.untouched { Fact::Returned(id, cost) } else { Fact::Kept(id) });
                }
            }
            Op::Learn(limit, allowance) => {
                self.gate.learn(limit, allowance, self.now());
                self.model.tick();
                self.model.note(Fact::Learned(limit, allowance));
            }
            Op::Hold(reason, seconds) => {
                let until = self.wall + seconds;
                let told = self.gate.hold(reason, timestamp(until), self.now(), timestamp(self.wall));
                assert_eq!(told, self.model.tell(Fact::Held(reason, until, self.wall)));
            }
            Op::Adopt(raised, reason, seconds) => {
                let epoch = self.model.past().epoch + raised;
                let until = self.wall + seconds;
                let holds =
                    Holds { epoch, until: BTreeMap::from([(reason, timestamp(until))]), passed: None };
                let told = self.gate.adopt(&holds, self.now(), timestamp(self.wall));
                assert_eq!(told, self.model.tell(Fact::Adopted(epoch, vec![(reason, until)], self.wall)));
            }
            Op::Clear => {
                self.gate.clear();
                self.model.note(Fact::Cleared);
                self.model.closed = true;
            }
            Op::Enter(tenant, cost, wait) => self.enter(tenant, cost, wait),
            Op::Poll(index) => self.poll(index),
            Op::DropTicket(index) => {
                if let Some((id, ticket)) = pick(&mut self.tickets, index) {
                    drop(ticket);
                    self.model.leave(id);
                }
            }
        }
    }

    fn enter(&mut self, tenant: usize, cost: Cost, wait: u64) {
        let deadline = self.model.now + wait * MS;
        let entry = self.gate.enter(&Tenant::new(TENANTS[tenant]), cost, moment(deadline), self.now());
        let (expected, id) = self.model.enter(tenant, cost, deadline);
        match entry {
            Entry::In(reservation) => {
                assert_eq!(expected, Answer::In);
                self.let_in(id, reservation);
            }
            Entry::Wait(ticket) => {
                assert_eq!(expected, Answer::Wait);
                self.tickets.push((id, ticket));
            }
            Entry::Refused(refusal) => assert_eq!(expected, Answer::Refused(refusal)),
        }
    }

    fn poll(&mut self, index: usize) {
        let Some((id, mut ticket)) = pick(&mut self.tickets, index) else { return };
        let now = self.now();
        let deadline = self.model.waiting.iter().find(|waiting| waiting.id == id).map(|found| found.deadline);
        let (expected, reserved) = self.model.poll(id);
        match ticket.poll(now) {
            TicketState::In(reservation) => {
                assert_eq!(expected, Answer::In);
                self.let_in(reserved, reservation);
            }
            TicketState::Wait { poll_at } => {
                assert_eq!(expected, Answer::Wait);
                assert!(poll_at > now && poll_at <= moment(deadline.unwrap() + 1), "{poll_at:?}");
                self.tickets.push((id, ticket));
            }
            TicketState::Expired => assert_eq!(expected, Answer::Expired),
        }
    }

    /// What is seen from outside, after every step.
    fn compare(&mut self) {
        let now = self.now();
        let snapshot = self.gate.snapshot(now);
        self.model.tick();
        let past = self.model.past();
        assert_eq!(snapshot.in_flight, past.in_flight);
        assert!(
            self.model.policy.concurrency.is_none_or(|max| snapshot.in_flight <= max),
            "too many at once"
        );
        assert_eq!(snapshot.waiting, self.model.waiting.len());
        assert!(snapshot.waiting <= self.model.policy.queue as usize, "more wait than may");
        let levels: Vec<_> =
            snapshot.levels.iter().map(|level| (level.limit, i128::from(level.left))).collect();
        let expected: Vec<_> =
            past.levels.iter().map(|(limit, level)| (*limit, level.level.div_euclid(level.per))).collect();
        assert_eq!(levels, expected);
        assert_eq!(snapshot.holds.epoch, past.epoch);
        let record: BTreeMap<Limit, i64> =
            snapshot.holds.until.iter().map(|(reason, until)| (*reason, until.as_second())).collect();
        assert_eq!(record, past.record);
        self.compare_check(&past);
    }

    /// The fast check says what a reservation of one bare request would hear, to eight nanoseconds.
    fn compare_check(&self, past: &Past) {
        let (now, max) = (self.now(), self.model.policy.concurrency);
        let last = self.model.waiting.iter().map(|waiting| waiting.deadline).max();
        if last == Some(self.model.now) && max.is_none_or(|max| past.in_flight < max) {
            // In the very last moment of the last waiter the check is already open.
            return;
        }
        match (self.gate.check(now), self.model.refused(Cost::of(0, 0))) {
            (Ok(()), None) => {}
            (Err(held), Some(expected)) => {
                assert_eq!(held.reason, expected.reason);
                assert_eq!(held.until.is_some(), expected.until.is_some());
                let late = held.until.unwrap_or(now).since(expected.until.unwrap_or(now));
                assert!(held.until >= expected.until && late < Duration::from_nanos(8));
            }
            (answer, expected) => panic!("check: {answer:?}, but the model says {expected:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_gate_answers_as_the_model_does(policy in any_policy(), ops in vec(any_op(), 1..70)) {
        let gate = Gate::new(policy, Moment::START);
        let mut run =
            Run { gate: &gate, model: Model::new(policy), wall: 1_800_000_000, live: vec![], tickets: vec![] };
        let mut events = Vec::new();
        for op in ops {
            run.step(op);
            // After a step in time the snapshot is not compared at once: the next call must notice by itself what has changed.
            if !matches!(op, Op::Step(_)) {
                run.compare();
            }
            events.extend(gate.drain_events());
        }
        let warnings: Vec<_> = events.iter().filter_map(|event| match event {
            GateEvent::Nearly { limit, used_percent } => Some((*limit, *used_percent)),
            _ => None,
        }).collect();
        prop_assert_eq!(warnings, run.model.past().warnings);
        let opened = events.iter().filter(|event| **event == GateEvent::Opened).count();
        prop_assert_eq!(opened, run.model.opened);
    }

    /// Without a reset and without news, what passes is never more than what was left.
    #[test]
    fn never_more_passes_than_was_left(
        remaining in 0..20_u64,
        refill in prop_oneof![Just(Refill::Steady), Just(Refill::AtReset)],
        limit in prop::option::of(20..100_u64),
        steps in vec((0..900_u64, 0..4_u8), 1..60),
    ) {
        // Windows that begin again after a minute, and counts without a limit.
        let refill = if limit.is_some() { Refill::AtReset } else { refill };
        let gate = Gate::new(GatePolicy::default(), Moment::START);
        let resets_in = Some(Duration::from_secs(60));
        gate.learn(Limit::Requests, Allowance { limit, remaining, resets_in, refill }, Moment::START);
        let (mut now, mut passed) = (0, 0);
        let mut tickets = Vec::new();
        for (millis, how) in steps {
            now += millis * MS;
            let mut let_in = Vec::new();
            match how {
                0 => let_in.extend(gate.reserve(Cost::of(1, 1), moment(now))),
                1 | 2 => match gate.enter(&Tenant::new("a"), Cost::of(1, 1), moment(now + 25 * SEC), moment(now)) {
                    Entry::In(reservation) => let_in.push(reservation),
                    Entry::Wait(ticket) => tickets.push(ticket),
                    Entry::Refused(_) => {}
                },
                _ => for ticket in &mut tickets {
                    if let TicketState::In(reservation) = ticket.poll(moment(now)) {
                        let_in.push(reservation);
                    }
                },
            }
            for mut reservation in let_in {
                passed += 1;
                reservation.sent();
                if how != 0 {
                    reservation.settle(Cost::of(1, 0), moment(now));
                }
            }
        }
        prop_assert!(now >= 60 * SEC || passed <= remaining, "{} of {} passed", passed, remaining);
    }

    /// A tenant is never served twice while another one waits all that time, and each line keeps its order.
    #[test]
    fn no_tenant_starves(
        crowd in vec(0..TENANTS.len(), 1..40),
        concurrency in 1..4_u32,
        shuffles in vec(any::<u16>(), 40),
    ) {
        let policy = GatePolicy::default().with(|policy| { policy.concurrency = Some(concurrency); policy.queue = 64; });
        let gate = Gate::new(policy, Moment::START);
        let mut inside: Vec<_> =
            (0..concurrency).map(|_| gate.reserve(Cost::of(1, 1), Moment::START).unwrap()).collect();
        let mut tickets: Vec<_> = crowd.iter().enumerate().map(|(number, tenant)| {
            match gate.enter(&Tenant::new(TENANTS[*tenant]), Cost::of(1, 1), moment(20 * SEC), Moment::START) {
                Entry::Wait(ticket) => (number, *tenant, ticket),
                other => panic!("{other:?}"),
            }
        }).collect();
        let mut served: Vec<(usize, usize)> = Vec::new();
        for round in 0..crowd.len() {
            inside.remove(0).settle(Cost::of(1, 1), moment(MS));
            let shift = usize::from(shuffles[round % shuffles.len()]) % tickets.len();
            tickets.rotate_left(shift);
            let found = tickets.iter_mut().position(|(_, _, ticket)| match ticket.poll(moment(MS)) {
                TicketState::In(reservation) => { inside.push(reservation); true }
                _ => false,
            });
            let found = found.expect("a place is free, so one waiter gets it, in whatever order they poll");
            let (number, tenant, _ticket) = tickets.remove(found);
            served.push((number, tenant));
        }
        let mut left: Vec<usize> = (0..TENANTS.len()).map(|t| crowd.iter().filter(|c| **c == t).count()).collect();
        let mut since: Vec<Vec<usize>> = vec![Vec::new(); TENANTS.len()];
        for (_, tenant) in &served {
            for (other, seen) in since.iter_mut().enumerate() {
                let twice = other != *tenant && left[other] > 0 && seen.contains(tenant);
                prop_assert!(!twice, "{} was passed over twice", other);
                if other == *tenant { seen.clear() } else { seen.push(*tenant) }
            }
            left[*tenant] -= 1;
        }
        for tenant in 0..TENANTS.len() {
            let line: Vec<_> = served.iter().filter(|(_, t)| *t == tenant).map(|(number, _)| *number).collect();
            prop_assert!(line.is_sorted(), "a line keeps its order");
        }
    }

    /// A waiter that polls at the named moments comes to an end, and does not have to poll often.
    #[test]
    fn every_ticket_ends(
        policy in any_policy(),
        hold in 0..9_i64,
        allowance in any_allowance(),
        crowd in vec((0..TENANTS.len(), any_cost(), 0..12_000_u64), 1..6),
    ) {
        let gate = Gate::new(policy.with(|policy| { policy.queue = 6; }), Moment::START);
        let wall = timestamp(1_800_000_000);
        let _slow = gate.reserve(Cost::of(1, 1), Moment::START);
        gate.learn(Limit::Tokens, allowance, Moment::START);
        gate.hold(Limit::Requests, timestamp(1_800_000_000 + hold), Moment::START, wall);
        let mut waiting = Vec::new();
        for (tenant, cost, wait) in crowd {
            let deadline = moment(wait * MS);
            if let Entry::Wait(ticket) = gate.enter(&Tenant::new(TENANTS[tenant]), cost, deadline, Moment::START) {
                waiting.push((Moment::START, deadline, ticket));
            }
        }
        let mut looks = 0;
        while let Some(next) = waiting.iter().map(|(look, _, _)| *look).min() {
            waiting.retain_mut(|(look, deadline, ticket)| {
                if *look > next {
                    return true;
                }
                looks += 1;
                match ticket.poll(next) {
                    TicketState::In(_) => {
                        assert!(next <= *deadline, "let in after its deadline");
                        false
                    }
                    TicketState::Wait { poll_at } => {
                        assert!(poll_at > next);
                        *look = poll_at;
                        true
                    }
                    TicketState::Expired => {
                        assert!(next > *deadline || next > moment(nanos(policy.max_wait)));
                        false
                    }
                }
            });
            prop_assert!(looks < 100_000, "they look again and again");
        }
        prop_assert_eq!(gate.snapshot(moment(60 * SEC)).waiting, 0);
    }
}

#[test]
fn four_threads_pass_exactly_what_was_left() {
    let gate = Gate::new(GatePolicy::default(), Moment::START);
    let allowance = Allowance { limit: None, remaining: 100, resets_in: None, refill: Refill::Steady };
    gate.learn(Limit::Requests, allowance, Moment::START);
    let passed: usize = std::thread::scope(|scope| {
        let pass = || {
            let passes = (0..1000).filter_map(|_| gate.reserve(Cost::of(1, 1), moment(MS)).ok());
            passes.map(|mut reservation| reservation.sent()).count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(pass)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 100);
    assert_eq!(gate.snapshot(moment(MS)).in_flight, 0);
}
