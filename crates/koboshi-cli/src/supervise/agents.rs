//! The agents of a config, ready to be started: one for each of their projects.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use koboshi::key::{KeyError, ScopeKey, ScopeLevel};
use koboshi::supervise::{Ladder, RoomPolicy, WatchPolicy};
use koboshi_config::Config;
use koboshi_config::agents::{ANY_MACHINE, AUTO, AccountConfig, AgentConfig, OFF};
use koboshi_config::secret::Secret;
use koboshi_supervisor::folder::TreeLimits;
use koboshi_supervisor::keep::{Agent, AgentAccount, GatewayChoice, Settings, is_passed};
use koboshi_supervisor::{Kind, Kinds, OnOwnerDeath};

use crate::run::gateway::{base_of, can_serve};
use crate::{Failure, kinds, state};

use super::when;

/// The agents of a config, and what their accounts allow.
/// `gateway` is the one of this config: for agents that have chosen no other, and that it can serve.
pub(crate) fn settings(config: &Config, gateway: &GatewayChoice) -> Result<Settings, Failure> {
    Ok(Settings { agents: of(config, gateway)?, rooms: rooms(config)?, restart_for: Vec::new() })
}

fn of(config: &Config, gateway: &GatewayChoice) -> Result<Vec<Agent>, Failure> {
    let kinds = kinds::load(config)?;
    let machine = state::machine();
    let mut all = Vec::new();
    for (name, agent) in &config.agents {
        if !runs_here(&agent.run_on, &machine) {
            continue;
        }
        for project in &agent.projects {
            all.push(one((name, project), agent, config, &kinds, gateway)?);
        }
    }
    Ok(all)
}

fn rooms(config: &Config) -> Result<BTreeMap<ScopeKey, RoomPolicy>, Failure> {
    let one = |(name, account): (&String, &AccountConfig)| {
        let key =
            ScopeKey::new(ScopeLevel::Account, name).map_err(|error| Failure::new(error.to_string()))?;
        Ok((key, RoomPolicy::default().with(|policy| policy.max_runs = account.concurrency)))
    };
    config.accounts.iter().map(one).collect()
}

fn one(
    (name, project): (&str, &str),
    agent: &AgentConfig,
    config: &Config,
    kinds: &Kinds,
    gateway: &GatewayChoice,
) -> Result<Agent, Failure> {
    let kind = kind(agent, kinds)?;
    let accounts =
        accounts((name, project), agent, config, &kind).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Agent {
        name: format!("{name}/{project}"),
        command: agent.command.iter().map(OsString::from).collect(),
        accounts,
        dir: agent.dir.as_ref().map(|dir| PathBuf::from(dir.to_string_lossy().replace("{project}", project))),
        environment: environment(agent),
        masked: masked(agent),
        when: when::of(&agent.when)
            .map_err(|error| Failure::new(format!("agents.{name}.when.schedule: {error}")))?,
        question: when::question(&agent.when),
        takeover: is_any(&agent.run_on).then_some(agent.takeover),
        limits: WatchPolicy::default().with(|limits| {
            limits.run = agent.limits.run;
            limits.silent = agent.limits.silent;
            limits.offline = agent.limits.offline;
        }),
        tree_limits: TreeLimits { memory: agent.limits.memory, pids: agent.limits.pids },
        concurrency: agent.concurrency,
        stop_signal: signal(agent.stop.signal),
        grace: agent.stop.grace,
        on_owner_death: if agent.survives { OnOwnerDeath::Survive } else { OnOwnerDeath::Stop },
        gateway: match agent.gateway.as_str() {
            OFF => GatewayChoice::Off,
            AUTO if can_serve(&kind, config) && can_ask(&kind, gateway) => gateway.clone(),
            AUTO => GatewayChoice::Off,
            address => GatewayChoice::At(base_of(address)),
        },
        resume: agent.resume,
        kind,
    })
}

/// Whether programs of this kind can be given what the gateway wants of its clients.
fn can_ask(kind: &Kind, gateway: &GatewayChoice) -> bool {
    kind.gateway.takes_key() || !matches!(gateway, GatewayChoice::Keyed(..))
}

/// Whether the agent runs on one machine, whichever it is.
fn is_any(run_on: &[String]) -> bool {
    run_on.iter().any(|machine| machine == ANY_MACHINE)
}

/// Whether it runs on this machine: a name may be written with its domain or without.
fn runs_here(run_on: &[String], machine: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_this = |name: &String| {
        let whole = name.contains('.') && machine.contains('.');
        if whole { name.eq_ignore_ascii_case(machine) } else { short(name) == short(machine) }
    };
    run_on.is_empty() || is_any(run_on) || run_on.iter().any(is_this)
}

fn kind(agent: &AgentConfig, kinds: &Kinds) -> Result<Kind, Failure> {
    let program = agent.command.first().cloned().unwrap_or_default();
    let Some(wanted) = &agent.kind else {
        return Ok(kinds.of_program(OsString::from(program).as_os_str()).1);
    };
    kinds.get(wanted).cloned().ok_or_else(|| Failure::of(kinds::unknown(wanted, kinds)))
}

/// The accounts that it may use, in their order; without any the one of its kind.
fn accounts(
    names: (&str, &str),
    agent: &AgentConfig,
    config: &Config,
    kind: &Kind,
) -> Result<Vec<AgentAccount>, KeyError> {
    if agent.account.is_empty() {
        let ladder = ladder(names, agent, kind, kind.vendor.as_ref())?;
        return Ok(vec![AgentAccount { ladder, environment: Vec::new() }]);
    }
    let one = |account: &String| {
        let environment = config.accounts.get(account).map(|one| variables(&one.env)).unwrap_or_default();
        Ok(AgentAccount { ladder: ladder(names, agent, kind, Some(account))?, environment })
    };
    agent.account.iter().map(one).collect()
}

fn ladder(
    (name, project): (&str, &str),
    agent: &AgentConfig,
    kind: &Kind,
    account: Option<&String>,
) -> Result<Ladder, KeyError> {
    let whose = kind.vendor.as_ref().or(account);
    let model = agent.model.as_ref().zip(whose);
    Ok(Ladder {
        agent: Some(ScopeKey::agent(name, project)?),
        model: model
            .map(|(model, whose)| ScopeKey::new(ScopeLevel::Model, &format!("{whose}/{model}")))
            .transpose()?,
        account: account.map(|account| ScopeKey::new(ScopeLevel::Account, account)).transpose()?,
        provider: kind
            .vendor
            .as_ref()
            .map(|vendor| ScopeKey::new(ScopeLevel::Provider, vendor))
            .transpose()?,
    })
}

fn environment(agent: &AgentConfig) -> Vec<(OsString, OsString)> {
    let passed = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| is_passed(name) || agent.pass_env.iter().any(|wanted| wanted == name))
    };
    let set = variables(&agent.env);
    let own =
        std::env::vars_os().filter(|(name, _)| passed(name) && !set.iter().any(|(known, _)| known == name));
    own.chain(set.clone()).collect()
}

/// The variables that the config hands to it: what they hold may be a secret, whatever it looks like.
fn masked(agent: &AgentConfig) -> Vec<String> {
    let set = agent.env.iter().filter_map(|one| one.expose().split_once('='));
    set.map(|(name, _)| name.to_owned()).chain(agent.pass_env.iter().cloned()).collect()
}

fn variables(set: &[Secret]) -> Vec<(OsString, OsString)> {
    set.iter()
        .filter_map(|one| one.expose().split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn signal(name: &str) -> i32 {
    match name {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => 9,
        _ => 15,
    }
}
