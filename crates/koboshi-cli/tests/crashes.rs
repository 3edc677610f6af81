//! `koboshi supervise` that is killed, and thousands of runs: no agent runs twice, none is forgotten, no end is lost, nothing is left behind.
//!
//! `KOBOSHI_AGENT_CHAOS` is how often the supervisor is killed (10), and a twentieth of the runs that are counted (200).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::supervised::{Home, QUICK, mark};
use koboshi_testkit::{MARK, ScriptedAgent, signal, until, zombies_of};
use serde_json::{Value, json};

const AGENTS: usize = 20;
/// Agents that end only when they are stopped; every second one survives the supervisor.
const LASTING: usize = 4;

/// How hard the machine is shaken: 10, or 100 in the long tier.
fn kills() -> usize {
    std::env::var("KOBOSHI_AGENT_CHAOS").ok().and_then(|count| count.parse().ok()).unwrap_or(10)
}

/// The next of a row of numbers that look like chance and are the same every time.
fn random(seed: &mut u32) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    *seed as usize
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// Agents that begin, work for a moment and end; a half of them survives the supervisor, the other half is stopped with it.
struct Crowd {
    home: Home,
    work: PathBuf,
    names: Vec<String>,
    all: ScriptedAgent,
}

impl Crowd {
    fn new(name: &str) -> Self {
        let mark = mark(name);
        let mut home = Home::new(QUICK);
        let work = home.path("work");
        fs::create_dir(&work).unwrap();
        let names: Vec<String> = (0..AGENTS).map(|number| format!("a{number:02}")).collect();
        for (number, name) in names.iter().enumerate() {
            // A folder is made by one only: who finds it there runs beside another one. One that is stopped clears up behind itself.
            let script = format!(
                "cd {}; trap 'rmdir {name}.lock; exit 9' TERM; \
                 mkdir {name}.lock 2>/dev/null || echo {name} >> twice; echo $$ >> {name}.starts; \
                 sleep 0.{}{} & wait $!; \
                 rmdir {name}.lock; echo $$ >> {name}.ends; exit {}",
                work.display(),
                number % 4,
                1 + number % 9,
                number % 2
            );
            home.agents[name] = json!({
                "command": ["bash", "-c", script], "gateway": false, "survives": number % 4 < 2,
                "env": [format!("{MARK}={mark}")],
            });
        }
        for (number, name) in lasting().iter().enumerate() {
            home.agents[name] = json!({
                "command": ["sleep", "3600"], "gateway": false, "survives": number % 2 == 0,
                "env": [format!("{MARK}={mark}")],
            });
        }
        Self { home, work, names, all: ScriptedAgent::new(&mark) }
    }

    /// The runs that go on, by the files of their folders.
    fn live(&self) -> Vec<LiveRun> {
        let survives = |name: &str| self.home.agents[name]["survives"] == true;
        let runs = self.names.iter().cloned().chain(lasting()).filter_map(|name| {
            let folder = newest_run(&self.home, &name).filter(|run| !run.join("end.json").exists())?;
            Some(LiveRun { pid: child_of(&folder)?, survives: survives(&name), name, folder })
        });
        runs.collect()
    }

    /// What ran when the supervisor was killed goes on under the next one, or was stopped, as configured.
    fn check_after_kill(&self, ran: &[LiveRun]) {
        for run in ran {
            let name = format!("{}/default", run.name);
            if run.survives && run.name.starts_with("lasting") {
                until("it is adopted", || (self.home.state_of(&name) == "running").then_some(()));
                let agents = self.home.status()["agents"].as_array().cloned().unwrap_or_default();
                let status = agents.iter().find(|one| one["agent"] == name.as_str()).unwrap();
                assert_eq!(status["pid"], run.pid, "{name}: the same process");
                let newest = newest_run(&self.home, &run.name);
                assert_eq!(newest.as_ref(), Some(&run.folder), "{name}: the same run");
                assert!(is_alive(run), "{name}");
                continue;
            }
            let end = until("it ends", || fs::read_to_string(run.folder.join("end.json")).ok());
            let end: Value = serde_json::from_str(&end).unwrap();
            assert!(!is_alive(run), "{name}: {end}");
            if run.survives {
                assert_eq!(end["asked"], false, "{name}: it goes on to its own end");
            } else if run.name.starts_with("lasting") {
                assert_eq!(end["asked"], true, "{name}: it is stopped with its supervisor");
            }
        }
    }

    fn starts(&self) -> usize {
        self.names.iter().map(|name| lines(&self.work.join(format!("{name}.starts")))).sum()
    }

    fn stop(&self) {
        for name in self.names.iter().chain(&lasting()) {
            assert_eq!(self.home.order("stop", name).status, 0);
        }
        until("all are stopped", || {
            let status = self.home.status();
            let agents = status["agents"].as_array()?;
            agents.iter().all(|one| one["state"] == "stopped").then_some(())
        });
    }

    fn folders(&self) -> Vec<PathBuf> {
        let home = self.home.path("runs/agents");
        let of = |name: &String| fs::read_dir(home.join(name).join("default")).unwrap();
        self.names
            .iter()
            .flat_map(of)
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    }

    /// Every run that is kept has an end, which was judged; none ran beside another one of the same agent.
    fn check(&self) {
        let twice = fs::read_to_string(self.work.join("twice")).unwrap_or_default();
        assert_eq!(twice, "", "two of the same agent at once");
        for folder in self.folders() {
            let end = fs::read_to_string(folder.join("end.json")).unwrap_or_else(|_| {
                let files: Vec<_> =
                    fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                panic!("{} has no end: {files:?}", folder.display())
            });
            assert!(end.contains("void") || folder.join("judged").exists(), "{}: {end}", folder.display());
            assert!(!end.contains("lost"), "{}: {end}", folder.display());
        }
    }
}

/// A run that goes on.
struct LiveRun {
    name: String,
    folder: PathBuf,
    pid: i64,
    survives: bool,
}

/// The names of the agents that last.
fn lasting() -> Vec<String> {
    (0..LASTING).map(|number| format!("lasting{number}")).collect()
}

/// The agent's process of a run.
fn child_of(run: &Path) -> Option<i64> {
    let running: Value = serde_json::from_slice(&fs::read(run.join("shim.json")).ok()?).ok()?;
    running["child"]["pid"].as_i64()
}

/// Whether the agent of a run is there: a process of this number whose environment names the run.
fn is_alive(run: &LiveRun) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", run.pid)).unwrap_or_default();
    let id = run.folder.file_name().unwrap().as_encoded_bytes();
    environment.windows(id.len()).any(|part| part == id)
}

/// What is in the journal: how often each agent ended.
fn ends(home: &Home) -> BTreeMap<String, usize> {
    let said = common::run(&["journal", "--format", "json", "--limit", "100000", "--store", &home.store()]);
    let entries: Vec<Value> = said.text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut count = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["data"]["exit_code"].is_number()) {
        *count.entry(entry["agent"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    count
}

#[test]
fn a_supervisor_that_is_killed_at_random_moments_loses_nothing_and_doubles_nothing() {
    let crowd = Crowd::new("killed");
    let mut seed = 2_463_534_242;
    let (mut ran, mut adopted, mut stopped) = (Vec::new(), 0, 0);
    for _ in 0..kills() {
        let mut supervisor = crowd.home.supervise();
        let before = crowd.starts();
        let more = random(&mut seed) % (2 * AGENTS);
        until("agents go on", || (crowd.starts() > before + more).then_some(()));
        crowd.check_after_kill(&ran);
        supervisor.kill();
        ran = crowd.live();
        adopted += ran.iter().filter(|run| run.survives).count();
        stopped += ran.iter().filter(|run| !run.survives).count();
    }
    let supervisor = crowd.home.supervise();
    crowd.check_after_kill(&ran);
    assert!(adopted > 0 && stopped > 0, "{adopted} {stopped}");
    let count = |name: &String| lines(&crowd.work.join(format!("{name}.starts")));
    let before: Vec<usize> = crowd.names.iter().map(count).collect();
    until("every agent goes on", || {
        crowd.names.iter().zip(&before).all(|(name, before)| count(name) > *before).then_some(())
    });
    crowd.stop();
    supervisor.end();
    crowd.check();
    assert_eq!(crowd.all.left(), [0_i32; 0], "a process without an agent");
    // Each start has an end in the journal. One that was killed before it could note its start has an end, too; and where the supervisor was
    // killed between the end and the note that it was judged, it is judged again.
    let ends = ends(&crowd.home);
    for name in &crowd.names {
        let (starts, ends) = (count(name), ends.get(&format!("{name}/default")).copied().unwrap_or(0));
        assert!(ends >= starts && ends <= starts + kills() + 1, "{name}: {starts} starts, {ends} ends");
    }
    let (starts, ends) = (crowd.starts(), ends.values().sum::<usize>());
    println!(
        "{} kills, {AGENTS} agents: {starts} starts, {ends} ends, none twice at once; {adopted} runs went on, {stopped} were stopped",
        kills()
    );
}

#[test]
fn many_runs_leave_no_zombie_no_descriptor_and_no_orphan() {
    let runs = kills() * 20;
    let crowd = Crowd::new("many");
    let supervisor = crowd.home.supervise();
    let id = supervisor.0.id();
    let descriptors = || fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    until("all have begun", || (crowd.starts() >= 2 * AGENTS).then_some(()));
    let mut most = 0;
    let mut before = 0;
    // Looked at all the while: a supervisor that leaked one a run would have a thousand more at the end.
    while crowd.starts() < runs {
        until("they go on", || (crowd.starts() > before).then_some(()));
        before = crowd.starts();
        most = most.max(descriptors());
    }
    crowd.stop();
    let left = descriptors();
    // The shim's process, two pipes and a log for each run, and what the supervisor itself has.
    assert!(most < 60 + 4 * AGENTS, "{most} descriptors");
    assert!(left < 60, "{left} descriptors without a run");
    until("the dead are buried", || zombies_of(id).is_empty().then_some(()));
    assert_eq!(crowd.all.left(), [0_i32; 0], "a process without an agent");
    let kept = crowd.folders().len();
    assert!(kept <= 20 * AGENTS, "{kept} folders");
    println!("{} runs: at most {most} descriptors, {left} at the end, no zombie, no orphan", crowd.starts());
    supervisor.end();
    crowd.check();
}

/// The newest run of an agent in its only project.
fn newest_run(home: &Home, agent: &str) -> Option<PathBuf> {
    let runs = fs::read_dir(home.path("runs/agents").join(agent).join("default")).ok()?;
    runs.flatten().map(|entry| entry.path()).filter(|path| path.join("shim.json").exists()).max()
}

fn shim_of(run: &Path) -> u32 {
    let running: Value = serde_json::from_slice(&fs::read(run.join("shim.json")).unwrap()).unwrap();
    u32::try_from(running["shim"]["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn an_agent_that_left_the_config_while_no_supervisor_ran_is_stopped_and_judged() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let gone = ScriptedAgent::new(&mark("gone")).notes(&notes).lives_on();
    home.agent("gone", &gone, json!({"account": "main"}));
    let supervisor = home.supervise();
    until("it runs", || (notes.exists() && home.state_of("gone/default") == "running").then_some(()));
    supervisor.end();
    assert!(!gone.left().is_empty(), "it survives its supervisor");
    let run = newest_run(&home, "gone").unwrap();
    home.agents = json!({});
    home.agent("other", &ScriptedAgent::new(&mark("other")).lives_on(), json!({"survives": false}));
    let next = home.supervise();
    until("nothing of it is left", || gone.left().is_empty().then_some(()));
    until("its end was judged", || run.join("judged").exists().then_some(()));
    assert!(
        home.log().contains("gone/default: is not in the config any more, it is stopped"),
        "{}",
        home.log()
    );
    until("it is forgotten", || home.state_of("gone/default").is_empty().then_some(()));
    assert_eq!(home.state_of("other/default"), "running");
    next.end();
}

#[test]
fn a_second_request_to_stop_spares_what_survives_the_supervisor() {
    let mut home = Home::new(QUICK);
    let (stays, stubborn) = (home.path("stays"), home.path("stubborn"));
    let survivor = ScriptedAgent::new(&mark("survivor")).notes(&stays).lives_on();
    home.agent("survivor", &survivor, json!({}));
    let other = ScriptedAgent::new(&mark("stubborn")).ignores_requests_to_end().notes(&stubborn).lives_on();
    home.agent("stubborn", &other, json!({"survives": false, "stop": {"grace": "10m"}}));
    let mut supervisor = home.supervise();
    until("both run", || (stays.exists() && stubborn.exists()).then_some(()));
    until("both are known", || {
        ["survivor/default", "stubborn/default"]
            .iter()
            .all(|name| home.state_of(name) == "running")
            .then_some(())
    });
    signal(&supervisor.0, "-TERM");
    home.says("stopping: 1 running agents are stopped, 1 go on");
    signal(&supervisor.0, "-TERM");
    assert!(supervisor.0.wait().unwrap().success());
    assert_eq!(other.left(), [0_i32; 0]);
    assert!(!survivor.left().is_empty(), "what survives goes on");
    assert!(!newest_run(&home, "survivor").unwrap().join("end.json").exists());
    home.agents = json!({});
    home.agent("survivor", &survivor, json!({}));
    let next = home.supervise();
    until("it is taken over", || (home.state_of("survivor/default") == "running").then_some(()));
    assert_eq!(home.order("stop", "survivor").status, 0);
    until("nothing is left", || survivor.left().is_empty().then_some(()));
    next.end();
}

#[test]
fn an_agent_that_an_operator_stopped_stays_stopped_after_a_restart_of_the_supervisor() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("halted")).notes(&notes).lives_on();
    home.agent("halted", &agent, json!({"survives": false}));
    let supervisor = home.supervise();
    until("it runs", || notes.exists().then_some(()));
    assert_eq!(home.order("stop", "halted").status, 0);
    until("it is stopped", || (home.state_of("halted/default") == "stopped").then_some(()));
    supervisor.end();
    let starts = lines(&notes);
    home.agent(
        "marker",
        &ScriptedAgent::new(&mark("marker")).notes(&home.path("marker")).exits(0),
        json!({"when": "once"}),
    );
    let next = home.supervise();
    until("others were started", || home.path("marker").exists().then_some(()));
    assert_eq!((home.state_of("halted/default").as_str(), lines(&notes)), ("stopped", starts));
    assert_eq!(home.order("start", "halted").status, 0);
    until("it runs again", || (lines(&notes) > starts).then_some(()));
    next.end();
    let last = home.supervise();
    until("a start by hand holds, too", || (lines(&notes) > starts + 1).then_some(()));
    last.end();
}

#[test]
fn the_time_that_a_run_may_take_goes_on_when_it_is_taken_over() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("long")).notes(&notes).lives_on();
    home.agent("long", &agent, json!({"limits": {"run": "1h"}}));
    let supervisor = home.supervise();
    until("it runs", || (notes.exists() && home.state_of("long/default") == "running").then_some(()));
    supervisor.end();
    let run = newest_run(&home, "long").unwrap();
    // As if it had been started with the machine: a half of that time is over; counted from the start again it would not be.
    let mut running: Value = serde_json::from_slice(&fs::read(run.join("shim.json")).unwrap()).unwrap();
    running["child"]["start"] = json!(0);
    fs::write(run.join("shim.json"), running.to_string()).unwrap();
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: u64 = uptime.split('.').next().unwrap().parse().unwrap();
    home.agent("long", &agent, json!({"limits": {"run": format!("{}s", seconds / 2)}}));
    let next = home.supervise();
    home.says("stopped for run time");
    assert_eq!(home.order("stop", "long").status, 0);
    until("nothing is left", || agent.left().is_empty().then_some(()));
    next.end();
}

#[test]
fn a_shim_that_is_killed_leaves_nothing_of_its_tree_alive() {
    let mut home = Home::new("cooldown: {error: {park_after: 1}}\n");
    let notes = home.path("notes");
    let agent =
        ScriptedAgent::new(&mark("orphans")).leaves_a_stubborn_child_behind().notes(&notes).lives_on();
    home.agent("orphans", &agent, json!({}));
    let supervisor = home.supervise();
    until("it runs", || (notes.exists() && home.state_of("orphans/default") == "running").then_some(()));
    let run = newest_run(&home, "orphans").unwrap();
    assert!(agent.left().len() > 2, "the shim, the agent and its child");
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &shim_of(&run).to_string()])
            .status()
            .unwrap()
            .success()
    );
    until("nothing of it is left", || agent.left().is_empty().then_some(()));
    let end = until("its end is written", || fs::read_to_string(run.join("end.json")).ok());
    assert!(end.contains("lost"), "{end}");
    assert_eq!(zombies_of(supervisor.0.id()), [0_i32; 0]);
    supervisor.end();
}
