//! An agent as it is configured, for one project.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use koboshi::key::ScopeKey;
use koboshi::redact::GivenValues;
use koboshi::supervise::{Ladder, WatchPolicy, When};

use crate::folder::{OnOwnerDeath, TreeLimits};
use crate::kinds::{Kind, PointedAt};

use super::ask::{Question, Token};

/// An agent in one project, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// `agent/project`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What is known of the program.
    pub kind: Kind,
    /// The accounts that it may use, in this order; there is always one, perhaps without a name.
    pub accounts: Vec<AgentAccount>,
    /// Where it runs.
    pub dir: Option<PathBuf>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The names of those variables whose values must not appear in a log.
    pub masked: Vec<String>,
    /// When it is wanted.
    pub when: When,
    /// Who is asked whether it is wanted.
    pub question: Option<Question>,
    /// It runs on one machine at a time: how long another machine waits for one that is silent.
    pub takeover: Option<Duration>,
    /// How long a run may take.
    pub limits: WatchPolicy,
    /// What it and everything that it starts may take.
    pub tree_limits: TreeLimits,
    /// In how many of its projects it may run at once; none for all of them.
    pub concurrency: Option<u32>,
    /// The signal that asks it to end.
    pub stop_signal: i32,
    /// How long it may take to end.
    pub grace: Duration,
    /// What becomes of it when the supervisor dies.
    pub on_owner_death: OnOwnerDeath,
    /// The gateway that it is pointed at.
    pub gateway: GatewayChoice,
    /// Sessions are continued where the kind of agent allows it.
    pub resume: bool,
}

/// The gateway of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GatewayChoice {
    /// None.
    #[default]
    Off,
    /// The one at this address.
    At(String),
    /// The one at this address, which wants this key.
    Keyed(String, Token),
    /// The one that answers when the agent is started.
    Asked,
}

impl GatewayChoice {
    /// Its address now.
    pub(super) fn address(&self, ask: &dyn Fn() -> Option<String>) -> Option<String> {
        match self {
            Self::Off => None,
            Self::At(address) | Self::Keyed(address, _) => Some(address.clone()),
            Self::Asked => ask(),
        }
    }

    /// The key that it wants.
    pub(super) fn key(&self) -> Option<&str> {
        if let Self::Keyed(_, key) = self { Some(key.expose()) } else { None }
    }
}

/// An account that an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentAccount {
    /// What rests with an agent that uses it.
    pub ladder: Ladder,
    /// The variables that sign an agent in with it.
    pub environment: Vec<(OsString, OsString)>,
}

impl AgentAccount {
    /// Its name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.ladder.account.as_ref().map(ScopeKey::name)
    }

    /// The folders in which a program with this account keeps its sessions, as far as variables tell.
    fn folders(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        let is_folder = |name: &OsString| {
            name.to_str().is_some_and(|name| name.ends_with("_DIR") || name.ends_with("HOME"))
        };
        self.environment.iter().filter(move |(name, _)| is_folder(name))
    }
}

/// The variable with the name of the account that a run uses.
const ACCOUNT: &str = "KOBOSHI_ACCOUNT";
/// The variable with the name of the agent and its project.
const AGENT: &str = "KOBOSHI_AGENT";

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
    /// Its name without the project.
    pub(super) fn base(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(agent, _)| agent)
    }

    /// The account of this name, else the first one.
    pub(super) fn account(&self, name: Option<&str>) -> AgentAccount {
        let named = self.accounts.iter().find(|account| account.name() == name);
        named.or(self.accounts.first()).cloned().unwrap_or_default()
    }

    /// Whether a session that was begun with one account can be continued with another one: their programs keep sessions in the same folders.
    pub(super) fn sessions_move(&self, from: Option<&str>, to: &AgentAccount) -> bool {
        from == to.name() || self.account(from).folders().eq(to.folders())
    }

    /// Whether a running agent must be started again for these settings: what it was started with has changed.
    pub(super) fn needs_restart(&self, new: &Self) -> bool {
        let started_with = |agent: &Self| Self {
            when: new.when.clone(),
            question: new.question.clone(),
            limits: new.limits,
            concurrency: new.concurrency,
            resume: new.resume,
            ..agent.clone()
        };
        started_with(self) != started_with(new)
    }

    /// The command as it is started, and its environment.
    pub(super) fn prepared(
        &self,
        account: &AgentAccount,
        session: Option<&str>,
        again: bool,
        gateway: Option<&str>,
    ) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
        let command = match (&self.kind.session, session) {
            (Some(known), Some(id)) if again && known.fits(&self.command) => {
                known.continued(&self.command, id)
            }
            (Some(known), Some(id)) if known.own_id.is_none() => known.started(&self.command, id),
            _ => self.command.clone(),
        };
        let set_by_account = |name: &OsString| account.environment.iter().any(|(known, _)| known == name);
        let mut environment: Vec<_> =
            self.environment.iter().filter(|(name, _)| !set_by_account(name)).cloned().collect();
        environment.extend(account.environment.iter().cloned());
        environment.push((AGENT.into(), self.name.clone().into()));
        environment.extend(account.name().map(|name| (ACCOUNT.into(), name.into())));
        let key = gateway.and(self.gateway.key());
        for (name, value) in key.into_iter().flat_map(|key| self.kind.gateway.keyed(key)) {
            environment.retain(|(known, _)| *known != *name);
            environment.push((name.into(), value.into()));
        }
        let gateway = gateway.filter(|_| self.kind.gateway.missing(&environment).is_none());
        let gateway = gateway.map(|address| PointedAt { address, agent: &self.name, key });
        let command = self.kind.pointed(&self.kind.with_events(&command), gateway);
        for (name, value) in self.kind.variables(gateway) {
            if !environment.iter().any(|(known, _)| *known == *name) {
                environment.push((name.into(), value.into()));
            }
        }
        (command, environment)
    }

    /// The names of the variables whose values its output must not show, with this account.
    pub(super) fn masked_with(&self, account: &AgentAccount) -> Vec<String> {
        let of_account = account.environment.iter().map(|(name, _)| name.to_string_lossy().into_owned());
        let with_key = self.gateway.key().into_iter().flat_map(|_| self.kind.gateway.key.keys().cloned());
        self.masked.iter().cloned().chain(of_account).chain(with_key).collect()
    }

    /// What its output and its messages must not show, with this account.
    pub(super) fn secrets_with(&self, account: &AgentAccount) -> GivenValues {
        let is_masked = |name: &OsString| self.masked.iter().any(|masked| name == masked.as_str());
        let own = self.environment.iter().filter(|(name, _)| is_masked(name));
        let values = own.chain(&account.environment).filter_map(|(_, value)| value.to_str());
        let token = self.question.as_ref().and_then(Question::token);
        given_values(values.chain(token).chain(self.gateway.key()))
    }

    /// Whether a session of it can be continued under an id that we choose.
    pub(super) fn names_session(&self) -> bool {
        let session = self.kind.session.as_ref().filter(|_| self.resume);
        session.is_some_and(|session| session.own_id.is_none() && session.fits(&self.command))
    }
}

/// These values, as they are and as JSON writes them. A folder of this machine is no secret, and a log needs it.
pub(crate) fn given_values<'v>(values: impl Iterator<Item = &'v str>) -> GivenValues {
    let mut all = Vec::new();
    for value in values.filter(|value| !(Path::new(value).is_absolute() && Path::new(value).exists())) {
        let quoted = serde_json::to_string(value).unwrap_or_default();
        let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
        all.extend([value.to_owned(), inner.to_owned()]);
    }
    GivenValues::new(all.iter().map(String::as_str))
}
