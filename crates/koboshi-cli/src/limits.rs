//! What the system allows this process: the soft limit of open files is raised to the hard one.
//!
//! The usual soft limit is 1,024 for the sake of programs that still use `select`. A gateway needs two files for every client that waits
//! for a provider, and the hard limit is what an administrator really allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as it may be. A system that refuses keeps the old one: the gateway bounds its connections by it.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
