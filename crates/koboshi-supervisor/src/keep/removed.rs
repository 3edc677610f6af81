//! Agents that an earlier supervisor started and that the config no longer has.
//!
//! Their folders are all that is left of them. What ended meanwhile is judged; what still runs is stopped with its own grace, because
//! no supervisor would ever look after it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::supervise::{Ladder, WatchPolicy, When};

use crate::folder::{Folder, OnOwnerDeath, TreeLimits};
use crate::kinds::Kind;

use super::{Agent, AgentAccount, GatewayChoice, Keeper, Slot};

impl Keeper<'_> {
    /// Settles the runs of agents without a slot.
    pub(super) fn adopt_removed(&mut self, folder: &Path) {
        for home in folders(folder).iter().flat_map(|agent| folders(agent)) {
            let name = home.strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or_default();
            if self.slots.iter().any(|slot| slot.agent.name == name) {
                continue;
            }
            let Some(agent) = removed(name, &home) else { continue };
            let mut slot = Slot::new(agent, folder);
            slot.take_over(&self.common, self.log);
            if slot.is_running() {
                (self.log)(&format!("{name}: is not in the config any more, it is stopped"));
                if let Some(account) = slot.account() {
                    self.rooms.entry(account.clone()).or_default().enter();
                }
                slot.retire();
                self.slots.push(slot);
            }
        }
    }
}

/// What can be known of an agent from the folders of its runs: its name and its accounts.
fn removed(name: &str, home: &Path) -> Option<Agent> {
    let (agent, project) = name.split_once('/')?;
    let key = ScopeKey::agent(agent, project).ok()?;
    let used = folders(home).into_iter().filter_map(|run| Folder::at(&run).spec().ok()?.account);
    let account = |name: Option<String>| AgentAccount {
        ladder: Ladder {
            agent: Some(key.clone()),
            account: name.and_then(|name| ScopeKey::new(ScopeLevel::Account, &name).ok()),
            ..Ladder::default()
        },
        environment: Vec::new(),
    };
    let mut accounts: Vec<AgentAccount> = used.map(|name| account(Some(name))).collect();
    accounts.push(account(None));
    Some(Agent {
        name: name.to_owned(),
        command: Vec::new(),
        kind: Kind::default(),
        accounts,
        dir: None,
        environment: Vec::new(),
        masked: Vec::new(),
        when: When::Once,
        question: None,
        takeover: None,
        limits: WatchPolicy::default(),
        tree_limits: TreeLimits::default(),
        concurrency: None,
        stop_signal: 15,
        grace: Duration::ZERO,
        on_owner_death: OnOwnerDeath::Stop,
        gateway: GatewayChoice::Off,
        resume: false,
    })
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
