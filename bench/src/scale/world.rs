//! Agents, gateways and one provider on a clock that jumps from one event to the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use koboshi::breaker::{Breaker, Permit};
use koboshi::chance::Seed;
use koboshi::time::Moment;

use crate::node::{Admission, Node, Policy, Store};
use crate::scenario::{Answer, BEGIN, Scenario};

/// How long an answer takes, and a refusal.
const ANSWER: Duration = Duration::from_secs(1);
const REFUSAL: Duration = Duration::from_millis(50);
/// How long the world is watched after the end of the failure.
const AFTER: Duration = Duration::from_secs(1200);

/// What a failure cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Toll {
    /// Calls that failed.
    pub wasted: u64,
    /// From the beginning of the failure to the last failed call of a sender that knew nothing of it.
    pub notice: Duration,
    /// From the end of the failure to the first good answer, and until nine in ten agents have had one.
    pub first_back: Duration,
    pub nine_in_ten: Duration,
    /// The highest number of calls in one second after the end.
    pub peak: u64,
    /// Writes of facts to the store.
    pub writes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask(u32),
    /// One that waits for another to go first asks again.
    Wait(u32),
    /// At a time that a gateway gave it.
    Paced(u32),
    End(u32),
    Restart(u32),
}

#[derive(Default)]
struct Agent {
    arrived: Moment,
    sent: Moment,
    answer: Option<Answer>,
    blind: bool,
    permit: Option<Permit<Arc<Breaker>>>,
    has_failed: bool,
    is_back: bool,
}

pub fn play(scenario: Scenario, policy: Policy, nodes: usize, agents: usize) -> Toll {
    let mut world = World::new(scenario, policy, nodes, agents);
    while let Some(Reverse((now, event))) = world.events.pop() {
        if now > scenario.end().after(AFTER) {
            break;
        }
        world.step(now, event);
    }
    world.toll.writes = world.stores.iter().map(|store| store.writes).sum();
    world.toll
}

struct World {
    scenario: Scenario,
    policy: Policy,
    nodes: Vec<Node>,
    stores: Vec<Store>,
    agents: Vec<Agent>,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    chance: Seed,
    drawn: u64,
    back: usize,
    /// The second after the end that is counted, and its calls.
    in_second: (u64, u64),
    toll: Toll,
}

impl World {
    fn new(scenario: Scenario, policy: Policy, nodes: usize, agents: usize) -> Self {
        let stores = if policy == Policy::ByItself { nodes } else { 1 };
        let mut world = Self {
            scenario,
            policy,
            nodes: (0..nodes).map(|number| Node::new(number, nodes, policy, Moment::START)).collect(),
            stores: (0..stores).map(|_| Store::default()).collect(),
            agents: (0..agents).map(|_| Agent::default()).collect(),
            events: BinaryHeap::new(),
            chance: Seed::new(23),
            drawn: 0,
            back: 0,
            in_second: (0, 0),
            toll: Toll::default(),
        };
        for agent in 0..u32::try_from(agents).unwrap_or(u32::MAX) {
            let at = world.within(Duration::ZERO, Duration::from_secs(60));
            world.put(Moment::START.after(at), Event::Ask(agent));
        }
        for node in 0..nodes {
            if let Some(at) = scenario.restart(node, nodes) {
                world.put(at, Event::Restart(u32::try_from(node).unwrap_or(u32::MAX)));
            }
        }
        world
    }

    fn put(&mut self, at: Moment, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn within(&mut self, min: Duration, max: Duration) -> Duration {
        self.drawn += 1;
        self.chance.nth(self.drawn).between(min, max)
    }

    fn step(&mut self, now: Moment, event: Event) {
        match event {
            Event::Restart(node) => {
                let nodes = self.nodes.len();
                if let Some(node) = self.nodes.get_mut(node as usize) {
                    node.restart(nodes, now);
                }
                if self.policy == Policy::ByItself {
                    self.stores[node as usize] = Store::default();
                }
            }
            Event::Ask(agent) => {
                self.agents[agent as usize].arrived = now;
                self.ask(agent, now, false);
            }
            Event::Wait(agent) => self.ask(agent, now, false),
            Event::Paced(agent) => self.ask(agent, now, true),
            Event::End(agent) => self.end(agent, now),
        }
    }

    fn ask(&mut self, agent: u32, now: Moment, paced: bool) {
        let number = agent as usize % self.nodes.len();
        let store = number % self.stores.len();
        let arrived = self.agents[agent as usize].arrived;
        let admission = self.nodes[number].admit(&mut self.stores[store], arrived, now, paced);
        match admission {
            Admission::Go { permit, blind } => self.send(agent, now, permit, blind),
            Admission::Wait(at) => self.put(at, Event::Wait(agent)),
            Admission::Later(at) => self.put(at, Event::Paced(agent)),
            Admission::Refused(until) => self.come_again(agent, until, now),
        }
    }

    fn send(&mut self, agent: u32, now: Moment, permit: Option<Permit<Arc<Breaker>>>, blind: bool) {
        let end = self.scenario.end();
        if now >= end {
            let second = now.since(end).as_secs();
            self.in_second =
                if second == self.in_second.0 { (second, self.in_second.1 + 1) } else { (second, 1) };
            self.toll.peak = self.toll.peak.max(self.in_second.1);
        }
        let answer = self.scenario.answer(now);
        let state = &mut self.agents[agent as usize];
        state.blind = if self.policy == Policy::RetryAfter { !state.has_failed } else { blind };
        (state.sent, state.answer, state.permit) = (now, Some(answer), permit);
        let takes = if answer == Answer::Good { ANSWER } else { REFUSAL };
        self.put(now.after(takes), Event::End(agent));
    }

    fn end(&mut self, agent: u32, now: Moment) {
        let number = agent as usize % self.nodes.len();
        let store = number % self.stores.len();
        let state = &mut self.agents[agent as usize];
        let (permit, answer, sent) = (state.permit.take(), state.answer.take(), state.sent);
        let (node, store) = (&mut self.nodes[number], &mut self.stores[store]);
        match answer {
            Some(Answer::Good) | None => {
                node.succeeded(store, permit, sent, now);
                self.count_good(agent, now);
                let pause = self.within(Duration::from_secs(30), Duration::from_secs(90));
                self.put(now.after(pause), Event::Ask(agent));
            }
            Some(failure) => {
                let until = if let Answer::Quota(until) = failure { Some(until) } else { None };
                node.failed(store, permit, until, (sent, now));
                self.toll.wasted += 1;
                if state.blind {
                    self.toll.notice = self.toll.notice.max(sent.since(Moment::START.after(BEGIN)));
                }
                state.has_failed = true;
                let heeds = self.policy != Policy::Breaker;
                self.come_again(agent, until.filter(|_| heeds), now);
            }
        }
    }

    fn count_good(&mut self, agent: u32, now: Moment) {
        let end = self.scenario.end();
        let state = &mut self.agents[agent as usize];
        if now <= end.after(ANSWER) || state.is_back {
            return;
        }
        state.is_back = true;
        self.back += 1;
        let passed = now.since(end);
        if self.back == 1 {
            self.toll.first_back = passed;
        }
        if self.back * 10 <= self.agents.len() * 9 {
            self.toll.nine_in_ten = passed;
        }
    }

    /// A client comes again when it was told to, within a second; else after ten seconds or so.
    fn come_again(&mut self, agent: u32, until: Option<Moment>, now: Moment) {
        let at = match until {
            Some(until) => {
                until.max(now).after(self.within(Duration::from_millis(1), Duration::from_secs(1)))
            }
            None => now.after(self.within(Duration::from_secs(5), Duration::from_secs(15))),
        };
        self.put(at, Event::Ask(agent));
    }
}
