//! Raises the soft limit of open files to the hard one.
//!
//! The usual soft limit is 1,024, for programs that still use `select`. A gateway needs two descriptors for every client that waits
//! for a provider, and the hard limit is what an administrator really allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as allowed. If the system refuses, the gateway bounds its connections by the old one.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
