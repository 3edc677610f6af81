//! Many runs in a row and at once, in a process of their own: what one of them leaves behind becomes a child of this test.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::PathBuf;
use std::process::Stdio;

use common::koboshi;
use koboshi_testkit::{ScriptedAgent, zombies_of};
use rustix::process::{Pid, set_child_subreaper};

/// Nothing of them is left: no process, no zombie, no folder.
#[test]
fn many_runs_leave_no_zombie_no_process_and_no_folder() {
    // What a run does not wait for becomes our child, and nothing here waits for that.
    set_child_subreaper(Pid::from_raw(1)).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mark = |name: &str| ScriptedAgent::new(&format!("{name}-{}", std::process::id()));
    let runs: usize = std::env::var("KOBOSHI_RUNS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let path: PathBuf = home.path().to_owned();
            std::thread::spawn(move || {
                let store = path.join("koboshi.db").display().to_string();
                for number in 0..runs.div_ceil(4) {
                    let agent = mark(&format!("many-{thread}-{number}"));
                    let agent = match number % 3 {
                        0 => agent.leaves_a_stubborn_child_behind().exits(0),
                        1 => agent.dies_of("KILL"),
                        _ => agent.says("done").exits(3),
                    };
                    let mut command =
                        koboshi(&["run", "--store", &store, "--gateway", "off", "--tries", "1", "--"]);
                    command.args(agent.command()).stdin(Stdio::null()).output().unwrap();
                    assert_eq!(agent.left(), [0_i32; 0]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(zombies_of(std::process::id()), [0_i32; 0]);
    assert_eq!(std::fs::read_dir(home.path().join("runs")).unwrap().count(), 0);
}
