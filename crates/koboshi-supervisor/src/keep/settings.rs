//! New settings for a supervisor that runs: agents are added, removed, changed where they are, and restarted only where they must be.
//!
//! The caller checks the settings first: bad ones never come here. What was learned and what an operator ordered stays.

use std::collections::BTreeMap;
use std::io;

use koboshi::key::ScopeKey;
use koboshi::supervise::RoomPolicy;
use serde_json::{Value, json};

use super::ask::Servers;
use super::{AGENTS, Agent, Keeper, Slot};

/// What a config says about agents.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The agents.
    pub agents: Vec<Agent>,
    /// How many runs each account allows at a time.
    pub rooms: BTreeMap<ScopeKey, RoomPolicy>,
    /// Keys of the config whose new values count only for a supervisor that is started again.
    pub restart_for: Vec<&'static str>,
}

/// What a check of the config found.
#[derive(Debug)]
pub enum Reloaded {
    /// Nothing has changed.
    Same,
    /// New settings, which were checked.
    New(Settings),
    /// The new ones cannot be used, and why; the old ones stay.
    Refused(String),
}

/// What became of the agents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    added: Vec<String>,
    removed: Vec<String>,
    restarted: Vec<String>,
    changed: Vec<String>,
    /// Keys of the config that are not in use before a restart.
    restart_for: Vec<&'static str>,
}

impl Applied {
    fn log_line(&self) -> String {
        let parts = [
            ("added", &self.added),
            ("removed", &self.removed),
            ("restarted", &self.restarted),
            ("changed without a restart", &self.changed),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {}", names.join(", ")))
            .collect();
        let what = if parts.is_empty() { "no agent changes".to_owned() } else { parts.join("; ") };
        let pending = if self.restart_for.is_empty() {
            String::new()
        } else {
            format!("; restart the supervisor for the new value of: {}", self.restart_for.join(", "))
        };
        format!("the new config of the agents is in use ({what}){pending}")
    }

    fn to_json(&self) -> Value {
        json!({
            "reloaded": true, "added": self.added, "removed": self.removed, "restarted": self.restarted,
            "changed": self.changed, "restart_for": self.restart_for,
        })
    }
}

impl Keeper<'_> {
    /// Checks the config and applies it. `now`: a person says that the file is complete.
    pub(super) fn reload(&mut self, now: bool) -> Value {
        match (self.reload)(now) {
            Reloaded::Same => {
                if now {
                    (self.log)("reload: nothing has changed, the config in use stays");
                }
                Applied::default().to_json()
            }
            Reloaded::Refused(why) => {
                (self.log)(&format!(
                    "[WARNING] the new config of the agents cannot be used, the old one goes on: {why}"
                ));
                json!({"error": "config", "why": why})
            }
            Reloaded::New(settings) => match self.apply(settings) {
                Ok(applied) => {
                    (self.log)(&applied.log_line());
                    applied.to_json()
                }
                Err(error) => {
                    (self.log)(&format!(
                        "[WARNING] the new config could not be applied to every agent: {error}"
                    ));
                    json!({"error": "config", "why": error.to_string()})
                }
            },
        }
    }

    fn apply(&mut self, settings: Settings) -> io::Result<Applied> {
        let mut applied = Applied { restart_for: settings.restart_for, ..Applied::default() };
        let mut new: BTreeMap<String, Agent> =
            settings.agents.into_iter().map(|agent| (agent.name.clone(), agent)).collect();
        let mut asked = false;
        for slot in &mut self.slots {
            let Some(agent) = new.remove(&slot.agent.name) else {
                asked |= slot.agent.question.is_some();
                applied.removed.push(slot.agent.name.clone());
                slot.retire();
                continue;
            };
            if agent == slot.agent && !slot.is_retired() {
                continue;
            }
            asked |= agent.question != slot.agent.question;
            let name = agent.name.clone();
            let restarted = slot.take_settings(agent, self.common.knowledge.ledger());
            let list = if restarted { &mut applied.restarted } else { &mut applied.changed };
            list.push(name);
        }
        let folder = self.runs.join(AGENTS);
        for (name, agent) in new {
            asked |= agent.question.is_some();
            let mut slot = Slot::new(agent, &folder);
            slot.take_over(&self.common, self.log);
            if let Some(account) = slot.account() {
                self.rooms.entry(account.clone()).or_default().enter();
            }
            self.slots.push(slot);
            applied.added.push(name);
        }
        self.policies = settings.rooms;
        self.remove_retired();
        if asked {
            self.servers = Servers::start(self.slots.iter().map(|slot| &slot.agent))?;
            if let Some(servers) = &self.servers {
                self.common.events.listen(servers.bell())?;
            }
        }
        Ok(applied)
    }

    /// Removes agents that the config no longer has and whose runs are over.
    pub(super) fn remove_retired(&mut self) {
        let ledger = self.common.knowledge.ledger();
        self.slots.retain(|slot| {
            let is_over = slot.is_retired() && !slot.is_running();
            if is_over {
                slot.give_up(ledger);
            }
            !is_over
        });
    }
}
