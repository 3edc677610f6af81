//! Starts a shim.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::folder::{Folder, Spec};
use crate::marked::{RUN, absolute};
use crate::shim::SHIM;

/// What to start.
#[derive(Debug)]
pub struct Launch<'l> {
    /// The folder of the run; it must not be there yet.
    pub folder: &'l Path,
    /// What the run is started with.
    pub spec: &'l Spec,
    /// The program and its arguments. No shell reads them.
    pub command: &'l [OsString],
    /// All of its environment.
    pub environment: &'l [(OsString, OsString)],
    /// Variables that name a file with such a text.
    pub files: &'l [(&'l str, &'l str)],
    /// Where it runs; none for our own directory.
    pub dir: Option<&'l Path>,
    /// The binary whose shim is used.
    pub binary: &'l Path,
    /// What its streams are.
    pub streams: Streams,
}

/// What the streams of an agent are.
#[derive(Debug)]
pub enum Streams {
    /// Our input, and pipes to us.
    PassedOn,
    /// A terminal of its own; its errors apart, where ours go elsewhere.
    Terminal {
        /// The agent's side.
        side: OwnedFd,
        /// Errors go to a pipe.
        errors_apart: bool,
    },
    /// The pipes of the folder, which outlive us.
    Folder,
}

/// This program's own file, also after it was replaced on disk.
#[must_use]
pub fn own_binary() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Starts the shim of a run.
///
/// # Errors
/// The folder cannot be made, or the machine cannot start a process.
pub fn start(launch: Launch<'_>) -> io::Result<(Folder, Child)> {
    if let Some(dir) = launch.dir {
        enterable(dir)?;
    }
    let folder = Folder::create(launch.folder, launch.spec)?;
    let mut command = Command::new(launch.binary);
    command.arg0("koboshi").arg(SHIM).arg(folder.path()).args(launch.command);
    command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.env(RUN, absolute(folder.path()));
    for (name, text) in launch.files {
        let file = folder.file(name);
        // It need not outlive the machine: the agent reads it now.
        fs::write(&file, text).inspect_err(|_| folder.remove())?;
        command.env(name, absolute(&file));
    }
    if let Some(dir) = launch.dir {
        command.current_dir(dir);
    }
    match launch.streams {
        Streams::PassedOn => {
            command.stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        Streams::Folder => {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        }
        Streams::Terminal { side, errors_apart } => {
            command.stdin(side.try_clone()?);
            if errors_apart {
                command.stderr(Stdio::piped());
            } else {
                command.stderr(side.try_clone()?);
            }
            command.stdout(side);
        }
    }
    let child = command.spawn().inspect_err(|_| folder.remove())?;
    Ok((folder, child))
}

/// The system would not say which file it misses, and the folder would look like a missing program.
fn enterable(dir: &Path) -> io::Result<()> {
    let told = |why: &str| io::Error::other(format!("its folder {} {why}", dir.display()));
    match dir.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(told("is not a folder")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(told("does not exist")),
        Err(error) => Err(told(&format!("cannot be entered: {error}"))),
    }
}
