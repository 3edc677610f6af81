//! The agents of a config, ready to be started: one for each of their projects.

use std::ffi::OsString;
use std::path::PathBuf;

use koboshi::key::{KeyError, ScopeKey, ScopeLevel};
use koboshi::supervise::{Ladder, WatchPolicy, When};
use koboshi_config::Config;
use koboshi_config::agents::AgentConfig;
use koboshi_config::words::Text;
use koboshi_supervisor::keep::{Agent, is_passed};
use koboshi_supervisor::{Kind, Kinds, OnOwnerDeath};

use crate::Failure;
use crate::run::gateway;

pub(super) fn of(config: &Config) -> Result<Vec<Agent>, Failure> {
    let kinds = Kinds::builtin().map_err(|error| Failure::new(error.to_string()))?;
    let wants_gateway = config.agents.values().any(|agent| agent.gateway);
    let gateway = if wants_gateway { gateway::choose("auto", config) } else { None };
    let mut all = Vec::new();
    for (name, agent) in &config.agents {
        for project in &agent.projects {
            all.push(one(name, project, agent, &kinds, gateway.as_deref())?);
        }
    }
    Ok(all)
}

fn one(
    name: &str,
    project: &str,
    agent: &AgentConfig,
    kinds: &Kinds,
    gateway: Option<&str>,
) -> Result<Agent, Failure> {
    let kind = kind(name, agent, kinds)?;
    let ladder = ladder(name, project, agent, &kind).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Agent {
        name: format!("{name}/{project}"),
        command: agent.command.iter().map(OsString::from).collect(),
        ladder,
        dir: agent.dir.as_ref().map(|dir| PathBuf::from(dir.to_string_lossy().replace("{project}", project))),
        environment: environment(agent),
        when: match (agent.when.as_str(), agent.every()) {
            (_, Some(length)) => When::Every(length),
            ("once", _) => When::Once,
            ("asked", _) => When::Asked,
            _ => When::Always,
        },
        ask: agent.ask.iter().map(OsString::from).collect(),
        limits: WatchPolicy {
            run: agent.limits.run,
            silent: agent.limits.silent,
            offline: agent.limits.offline,
        },
        stop_signal: signal(agent.stop.signal),
        grace: agent.stop.grace,
        on_owner_death: if agent.survives { OnOwnerDeath::Survive } else { OnOwnerDeath::Stop },
        gateway: gateway.filter(|_| agent.gateway).map(str::to_owned),
        resume: agent.resume,
        kind,
    })
}

fn kind(name: &str, agent: &AgentConfig, kinds: &Kinds) -> Result<Kind, Failure> {
    let program = agent.command.first().cloned().unwrap_or_default();
    let Some(wanted) = &agent.kind else {
        return Ok(kinds.of_program(OsString::from(program).as_os_str()).1);
    };
    kinds.get(wanted).cloned().ok_or_else(|| {
        let known = kinds.names().collect::<Vec<_>>().join(", ");
        Failure::of(Text::new(
            format!("agents.{name}.kind: there is no kind `{wanted}`: choose one of {known}"),
            format!("agents.{name}.kind: `{wanted}` という種類はありません。{known} から選んでください"),
        ))
    })
}

fn ladder(name: &str, project: &str, agent: &AgentConfig, kind: &Kind) -> Result<Ladder, KeyError> {
    let account = agent.account.as_ref().or(kind.vendor.as_ref());
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
    let set: Vec<(OsString, OsString)> = agent
        .env
        .iter()
        .filter_map(|one| one.expose().split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let own =
        std::env::vars_os().filter(|(name, _)| passed(name) && !set.iter().any(|(known, _)| known == name));
    own.chain(set.clone()).collect()
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
