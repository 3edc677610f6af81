//! An agent as it is configured, for one project.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use koboshi::supervise::{Ladder, WatchPolicy, When};

use crate::folder::OnOwnerDeath;
use crate::kinds::Kind;

/// An agent in one project, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// `agent/project`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What is known of the program.
    pub kind: Kind,
    /// What rests with it.
    pub ladder: Ladder,
    /// Where it runs.
    pub dir: Option<PathBuf>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// When it is wanted.
    pub when: When,
    /// The program that is asked whether it is wanted.
    pub ask: Vec<OsString>,
    /// How long a run may take.
    pub limits: WatchPolicy,
    /// The signal that asks it to end.
    pub stop_signal: i32,
    /// How long it may take to end.
    pub grace: Duration,
    /// What becomes of it when the supervisor dies.
    pub on_owner_death: OnOwnerDeath,
    /// The address of the gateway that it is pointed at.
    pub gateway: Option<String>,
    /// A session is continued where that is known how.
    pub resume: bool,
}

/// Variables that an agent gets from the supervisor's own environment; everything else must be configured.
const PASSED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
];

/// Whether an agent gets a variable of the supervisor's.
#[must_use]
pub fn is_passed(name: &str) -> bool {
    PASSED.contains(&name) || name.starts_with("LC_")
}

impl Agent {
    /// The command as it is started, and its environment.
    pub(super) fn prepared(
        &self,
        session: Option<&str>,
        again: bool,
    ) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
        let command = match (&self.kind.session, session) {
            (Some(known), Some(id)) if again => known.continued(&self.command, id),
            (Some(known), Some(id)) => known.started(&self.command, id),
            _ => self.command.clone(),
        };
        let command = self.kind.pointed(&self.kind.with_events(&command), self.gateway.as_deref());
        let mut environment = self.environment.clone();
        for (name, value) in self.kind.variables(self.gateway.as_deref()) {
            if !environment.iter().any(|(known, _)| *known == *name) {
                environment.push((name.into(), value.into()));
            }
        }
        (command, environment)
    }

    /// Whether a session of it can be continued.
    pub(super) fn has_session(&self) -> bool {
        self.resume && self.kind.session.as_ref().is_some_and(|session| session.fits(&self.command))
    }
}
