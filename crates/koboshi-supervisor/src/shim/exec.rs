//! The step between the shim and the agent: a process that prepares itself and becomes the agent.
//!
//! It leads a session of its own, so that a signal to the group reaches the agent and none of ours does; the terminal, if there is one,
//! becomes the agent's own; it enters the cgroup of the run, if there is one; inherited descriptors are closed by the exec. None of this needs
//! `unsafe`, because a whole process does it to itself.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, ioctl_tiocsctty, set_parent_process_death_signal, setrlimit, setsid,
};

use crate::folder::{Folder, Refusal, write_whole};

use super::cgroup;

/// Why the agent could not be run.
const FAILURE: &str = "failure";

pub(super) fn become_agent(path: &Path, command: &[OsString]) -> u8 {
    let folder = Folder::at(path);
    let error = prepared(&folder, command).err().unwrap_or_else(|| io::ErrorKind::Other.into());
    let why = Refusal::of(&error);
    let said = serde_json::to_vec(&(why, told(why, &error, command))).unwrap_or_default();
    // Without the file the exit code shows it.
    let _ = write_whole(&folder.file(FAILURE), &said);
    if why == Refusal::Missing { 127 } else { 126 }
}

/// The system's words, with the name of what was not found.
fn told(why: Refusal, error: &io::Error, command: &[OsString]) -> String {
    let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    match why {
        Refusal::Missing if Path::new(&*program).exists() => {
            format!("{program} cannot be run: the interpreter in its first line was not found")
        }
        Refusal::Missing => format!("{program} was not found"),
        Refusal::Refused | Refusal::Busy => error.to_string(),
    }
}

/// Returns only with an error.
fn prepared(folder: &Folder, command: &[OsString]) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let _ = setsid();
    cgroup::enter(folder);
    let spec = folder.spec()?;
    if spec.terminal {
        ioctl_tiocsctty(rustix::stdio::stdin())?;
    }
    if let Some(open_files) = spec.open_files {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(open_files), maximum })?;
    }
    // A killed shim could not stop the agent any more, so the agent dies with it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    close_fds::set_fds_cloexec(3, &[]);
    Err(Command::new(program).args(arguments).exec())
}

/// Why the agent could not be run, if it could not.
pub(super) fn failure(folder: &Folder) -> Option<(Refusal, String)> {
    serde_json::from_slice(&std::fs::read(folder.file(FAILURE)).ok()?).ok()
}
