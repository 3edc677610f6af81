//! A program that is run again and again, and whose exit status is the answer.
//!
//! It runs in a process group of its own and is killed with it when it takes too long: a question that hangs must not stop the answers.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use koboshi::supervise::AgentAction;
use koboshi::time::Moment;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::keep::Agent;

/// The longest time that a program may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the program of one agent.
#[derive(Debug, Default)]
pub(in crate::keep) struct ProgramAsker {
    running: Option<(Child, Moment)>,
    next: Option<Moment>,
}

impl ProgramAsker {
    /// Runs the program when it is time. Gives its answer once.
    pub(in crate::keep) fn poll(
        &mut self,
        program: &[OsString],
        every: Duration,
        agent: &Agent,
        now: Moment,
    ) -> Option<Result<AgentAction, String>> {
        if let Some((child, begun)) = &mut self.running {
            let answer = match child.try_wait() {
                Ok(Some(status)) if status.success() => Ok(AgentAction::Start),
                Ok(Some(_)) => Ok(AgentAction::None),
                Ok(None) if now.since(*begun) < TIMEOUT => return None,
                Ok(None) => Err(format!("it did not end in {} s", TIMEOUT.as_secs())),
                Err(error) => Err(error.to_string()),
            };
            self.end();
            return Some(answer);
        }
        if self.next.is_some_and(|next| next > now) {
            return None;
        }
        self.next = Some(now.after(every));
        match start(program, agent) {
            Ok(child) => {
                self.running = Some((child, now));
                None
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// Ends a question that is not over.
    fn end(&mut self) {
        let Some((mut child, _)) = self.running.take() else { return };
        if matches!(child.try_wait(), Ok(None)) {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // It may be gone already.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.wait();
        }
    }
}

impl Drop for ProgramAsker {
    fn drop(&mut self) {
        self.end();
    }
}

fn start(program: &[OsString], agent: &Agent) -> std::io::Result<Child> {
    let (name, arguments) = program.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(name);
    command.args(arguments).env_clear().envs(agent.environment.iter().cloned()).process_group(0);
    if let Some(dir) = &agent.dir {
        command.current_dir(dir);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
