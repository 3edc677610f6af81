//! Metrics of the agents of a supervisor: starts, ends by their reasons, time that was run and held, output.
//!
//! Agents come from the config and outcomes from a closed list, so the number of series is bounded. One agent's series stay when the config
//! loses it, as a counter must not go back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// What an agent can be doing.
pub(super) const STATES: [&str; 7] = ["running", "stopping", "waiting", "held", "parked", "aside", "stopped"];

/// In which of these there is a process.
const RUNNING: [&str; 2] = ["running", "stopping"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AgentLabels {
    agent: String,
    project: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndLabels {
    agent: String,
    project: String,
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    state: String,
}

type Seconds = Counter<f64, AtomicU64>;

/// The metrics of all agents of a supervisor.
pub struct AgentMeters {
    registry: Registry,
    starts: Family<AgentLabels, Counter>,
    ends: Family<EndLabels, Counter>,
    ran: Family<AgentLabels, Seconds>,
    held: Family<AgentLabels, Seconds>,
    written: Family<AgentLabels, Counter>,
    dropped: Family<AgentLabels, Counter>,
    states: Family<StateLabels, Gauge>,
    /// All agents, and those that run.
    counts: [AtomicU64; 2],
}

impl std::fmt::Debug for AgentMeters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AgentMeters").finish_non_exhaustive()
    }
}

impl Default for AgentMeters {
    fn default() -> Self {
        let mut registry = Registry::default();
        let starts = Family::<AgentLabels, Counter>::default();
        let ends = Family::<EndLabels, Counter>::default();
        let (ran, held) =
            (Family::<AgentLabels, Seconds>::default(), Family::<AgentLabels, Seconds>::default());
        let (written, dropped) =
            (Family::<AgentLabels, Counter>::default(), Family::<AgentLabels, Counter>::default());
        let states = Family::<StateLabels, Gauge>::default();
        registry.register("koboshi_agent_starts", "Starts of an agent", starts.clone());
        registry.register("koboshi_agent_ends", "Ends of an agent, by what they meant", ends.clone());
        registry.register_with_unit("koboshi_agent_run", "Time that runs took", Unit::Seconds, ran.clone());
        let help =
            "Time in which an agent was wanted and could not be started: cooldowns, places, other machines";
        registry.register_with_unit("koboshi_agent_held", help, Unit::Seconds, held.clone());
        registry.register_with_unit(
            "koboshi_agent_output",
            "Output of runs that ended",
            Unit::Bytes,
            written.clone(),
        );
        let help = "Output of runs that ended which is not in their logs";
        registry.register_with_unit("koboshi_agent_output_dropped", help, Unit::Bytes, dropped.clone());
        registry.register("koboshi_agents", "Agents, by what they are doing", states.clone());
        let counts = [0, 0].map(AtomicU64::new);
        Self { registry, starts, ends, ran, held, written, dropped, states, counts }
    }
}

impl AgentMeters {
    /// An agent was started.
    pub(super) fn started(&self, agent: &str) {
        self.starts.get_or_create(&labels(agent)).inc();
    }

    /// A run is over.
    pub(super) fn ended(&self, agent: &str, outcome: &str, ran: Duration, written: u64, dropped: u64) {
        let AgentLabels { agent, project } = labels(agent);
        let of_agent = AgentLabels { agent: agent.clone(), project: project.clone() };
        self.ends.get_or_create(&EndLabels { agent, project, outcome: outcome.to_owned() }).inc();
        self.ran.get_or_create(&of_agent).inc_by(ran.as_secs_f64());
        self.written.get_or_create(&of_agent).inc_by(written);
        self.dropped.get_or_create(&of_agent).inc_by(dropped);
    }

    /// For how long an agent could not be started.
    pub(super) fn held(&self, agent: &str, length: Duration) {
        self.held.get_or_create(&labels(agent)).inc_by(length.as_secs_f64());
    }

    /// What the agents are doing now.
    pub(super) fn states(&self, now: impl Iterator<Item = &'static str>) {
        let mut counts = [0_i64; STATES.len()];
        for state in now {
            let counted = STATES.iter().zip(&mut counts).find(|(name, _)| **name == state);
            if let Some((_, count)) = counted {
                *count += 1;
            }
        }
        let [mut all, mut running] = [0, 0];
        for (state, count) in STATES.iter().zip(counts) {
            self.states.get_or_create(&StateLabels { state: (*state).to_owned() }).set(count);
            all += count.unsigned_abs();
            if RUNNING.contains(state) {
                running += count.unsigned_abs();
            }
        }
        for (kept, count) in self.counts.iter().zip([all, running]) {
            kept.store(count, Ordering::Relaxed);
        }
    }

    /// How many agents there are, and how many of them run.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let [all, running] = &self.counts;
        (all.load(Ordering::Relaxed), running.load(Ordering::Relaxed))
    }

    /// All of them in Prometheus' text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn labels(agent: &str) -> AgentLabels {
    let (agent, project) = agent.split_once('/').unwrap_or((agent, ""));
    AgentLabels { agent: agent.to_owned(), project: project.to_owned() }
}
