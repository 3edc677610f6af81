//! Machines that sleep at random moments: supervisor, shims and agents stop together, another machine takes over, and what wakes does nothing more.
//!
//! `KOBOSHI_AGENT_CHAOS` is how often a machine sleeps (10).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::supervised::{Home, QUICK, Supervisor, mark};
use koboshi_testkit::{MARK, RedisServer, ScriptedAgent, signal, until};
use serde_json::{Value, json};

const AGENTS: [&str; 3] = ["a", "b", "c"];

fn sleeps() -> usize {
    std::env::var("KOBOSHI_AGENT_CHAOS").ok().and_then(|count| count.parse().ok()).unwrap_or(10)
}

/// The next of a row of numbers that look like chance and are the same every time.
fn random(seed: &mut u32) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    *seed as usize
}

/// Sends a signal to processes; those that are gone need none.
fn send(name: &str, pids: &[i32]) {
    let pids = pids.iter().map(ToString::to_string);
    let _ = Command::new("kill").arg(name).args(pids).stderr(std::process::Stdio::null()).status();
}

fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().split_whitespace().next().map(str::to_owned);
    state.is_none_or(|state| ["T", "Z", "X"].contains(&state.as_str()))
}

struct Machine {
    home: Home,
    supervisor: Supervisor,
    /// Finds its shims and agents: they have its mark.
    all: ScriptedAgent,
}

impl Machine {
    /// With agents that note their fence again and again for as long as they run.
    fn new(server: &RedisServer, work: &Path, name: &str) -> Self {
        let (mut home, mark) = (Home::sharing(&server.url(), QUICK), mark(&format!("sleep-{name}")));
        for agent in AGENTS {
            let script =
                format!("while :; do echo $KOBOSHI_FENCE >> {}/{agent}; sleep 0.1; done", work.display());
            home.agents[agent] = json!({
                "command": ["bash", "-c", script], "gateway": false, "env": [format!("{MARK}={mark}")],
                "run_on": "any", "takeover": "2s", "stop": {"grace": "200ms"},
            });
        }
        let supervisor = home.supervise();
        Self { home, supervisor, all: ScriptedAgent::new(&mark) }
    }

    /// The folders of runs that have not ended.
    fn runs(&self) -> Vec<PathBuf> {
        let folder = |agent: &str| self.home.path("state/koboshi/runs/agents").join(agent).join("default");
        let entries =
            AGENTS.iter().flat_map(|agent| fs::read_dir(folder(agent)).into_iter().flatten().flatten());
        let runs = entries.map(|entry| entry.path());
        runs.filter(|run| run.join("shim.json").exists() && !run.join("end.json").exists()).collect()
    }

    fn shims(&self) -> Vec<i32> {
        let shim = |run: &PathBuf| {
            let running: Value = serde_json::from_slice(&fs::read(run.join("shim.json")).ok()?).ok()?;
            i32::try_from(running["shim"]["pid"].as_i64()?).ok()
        };
        self.runs().iter().filter_map(shim).collect()
    }

    /// Everything of it stops: the supervisor first, so that nothing new begins.
    fn sleep(&self) {
        signal(&self.supervisor.0, "-STOP");
        until("all of it sleeps", || {
            let left = self.all.left();
            send("-STOP", &left);
            left.into_iter().all(is_stopped).then_some(())
        });
    }

    fn runs_all(&self) -> bool {
        AGENTS.iter().all(|agent| self.home.state_of(&format!("{agent}/default")) == "running")
    }
}

/// The fences that an agent noted, in order.
fn fences(work: &Path, agent: &str) -> Vec<u64> {
    let text = fs::read_to_string(work.join(agent)).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn machines_that_sleep_at_random_moments_never_run_an_agent_beside_another_one() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let machines = [Machine::new(&server, work.path(), "one"), Machine::new(&server, work.path(), "two")];
    let mut seed = 88_172_645;
    let (mut taken_over, mut late) = (0, [0; 3]);
    for round in 0..sleeps() {
        let noted = || AGENTS.map(|agent| fences(work.path(), agent).len());
        until("all agents work", || {
            AGENTS
                .iter()
                .all(|agent| {
                    machines.iter().any(|one| one.home.state_of(&format!("{agent}/default")) == "running")
                })
                .then_some(())
        });
        let more = noted().iter().sum::<usize>() + random(&mut seed) % 20;
        until("they go on", || (noted().iter().sum::<usize>() > more).then_some(()));
        // Mostly one that has agents.
        let which =
            (0..2).find(|one| !random(&mut seed).is_multiple_of(4) && !machines[*one].runs().is_empty());
        let which = which.unwrap_or(random(&mut seed) % 2);
        let (asleep, awake) = (&machines[which], &machines[1 - which]);
        asleep.sleep();
        let (left, begun) = (asleep.runs(), noted());
        taken_over += left.len();
        until("the other one runs all agents", || awake.runs_all().then_some(()));
        until("they work there", || noted().iter().zip(begun).all(|(now, begun)| *now > begun).then_some(()));
        // Shims and supervisor wake first: they must have stopped what they own before it can do anything. Every third time all wake at once.
        let supervisor = i32::try_from(asleep.supervisor.0.id()).unwrap();
        let (mut first, all) = (asleep.shims(), asleep.all.left());
        if random(&mut seed).is_multiple_of(2) {
            first.insert(0, supervisor);
        } else {
            first.push(supervisor);
        }
        let at_once = round % 3 == 2;
        if at_once {
            first.extend(all);
        }
        let before = AGENTS.map(|agent| fences(work.path(), agent));
        send("-CONT", &first);
        for run in &left {
            let end = until("it is stopped", || fs::read_to_string(run.join("end.json")).ok());
            assert!(end.contains("\"lease_ended\":true"), "{end}");
        }
        until("nothing of it is left", || asleep.all.left().is_empty().then_some(()));
        for ((agent, before), late) in AGENTS.iter().zip(before).zip(&mut late) {
            let (newest, now) = (before.iter().max().unwrap(), fences(work.path(), agent));
            let after = now[before.len()..].iter().filter(|fence| *fence < newest).count();
            assert!(at_once || after == 0, "round {round}: {agent} worked on after its machine slept");
            *late += after;
        }
        until("the one that woke waits", || {
            let held = |agent: &&str| asleep.home.state_of(&format!("{agent}/default")) == "held";
            AGENTS.iter().all(held).then_some(())
        });
    }
    // A later machine has a larger fence: where an earlier one was noted behind it, two worked at the same time.
    for (agent, late) in AGENTS.iter().zip(late) {
        let all = fences(work.path(), agent);
        let mut newest = 0;
        let behind = all
            .iter()
            .filter(|fence| {
                newest = newest.max(**fence);
                **fence < newest
            })
            .count();
        assert_eq!(behind, late, "{agent}");
    }
    println!(
        "{} sleeps, {taken_over} agents taken over, {late:?} late notes where all woke at once",
        sleeps()
    );
    assert!(taken_over > 0);
    for machine in machines {
        AGENTS.iter().for_each(|agent| machine.home.order_here("stop", agent));
        until("all are stopped", || machine.all.left().is_empty().then_some(()));
        machine.supervisor.end();
    }
}
