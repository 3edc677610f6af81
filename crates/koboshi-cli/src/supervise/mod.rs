//! `koboshi supervise` and the commands for its agents: `start`, `stop`, `restart`, `logs`.

mod agents;
mod logs;
mod orders;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use koboshi::classify::Classifier;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::supervise::RoomPolicy;
use koboshi_config::Config;
use koboshi_config::words::words;
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::Knowledge;
use koboshi_supervisor::keep::{KeepError, Keeping, keep};
use koboshi_supervisor::spawn::own_binary;

use crate::args::{ConfigFileArgs, LangArgs};
use crate::{Exit, Failure, clock, rules, settings, state};

pub(crate) use logs::{EXAMPLES as LOGS_EXAMPLES, LogsArgs, run as logs};
pub(crate) use orders::{OrderArgs, lines, restart, rows, start, stop};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi supervise                          keep the agents of koboshi.yaml running
  koboshi supervise --config team.yaml
  koboshi status                             which agents run, wait or are stopped
  koboshi logs reviewer/website -f           what an agent writes
  koboshi stop reviewer; koboshi start reviewer

SIGTERM or Ctrl-C: agents with `survives: false` are stopped, the others go on and the next supervisor takes them over.
Exit status: 0 stopped, 2 it could not start.";

/// So long the store is waited for at the beginning and at the end.
const STORE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The store: a file or `redis://…` [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

impl SuperviseArgs {
    /// The config file that was asked for.
    pub(crate) fn config_file(&self) -> Option<&std::path::Path> {
        self.config.file.as_deref()
    }
}

pub(crate) fn run(args: &SuperviseArgs) -> Result<Exit, Failure> {
    // The environment of the agents comes from the config: a variable that is missing is a mistake here.
    let config = settings::load_to_serve(args.config.file.as_deref(), &args.lang)?;
    if config.agents.is_empty() {
        let none = words(
            "the config has no `agents`: add one under a name of your choice, with its `command`",
            "設定に `agents` がありません。好きな名前で追加し、`command` を書いてください",
        );
        return Err(Failure::of(none.into()));
    }
    let (store, runs) = state::for_runs(args.store.as_deref(), &config)?;
    let ledger = Arc::new(Ledger::open(store, LedgerOptions::new(state::supervisor_node()?))?);
    let _ = ledger.wait_loaded(STORE);
    let knowledge = Knowledge::new(Arc::clone(&ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?;
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let kept = keep(Keeping {
        agents: agents::of(&config)?,
        rooms: rooms(&config)?,
        runs,
        knowledge: &knowledge,
        classifier: &classifier,
        zone: clock::now().time_zone().clone(),
        binary: own_binary(),
        log: &mut |line| {
            // A log that cannot be written keeps no agent from running.
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        },
    });
    ledger.finish(STORE);
    kept.map(|()| Exit::Good).map_err(|error| match &error {
        KeepError::Owned(runs) => Failure::of(koboshi_config::words::Text::new(
            format!("another supervisor keeps the agents of {}", runs.display()),
            format!("{} のエージェントは、別のスーパーバイザーが管理しています", runs.display()),
        )),
        error => Failure::new(error.to_string()),
    })
}

fn rooms(config: &Config) -> Result<std::collections::BTreeMap<ScopeKey, RoomPolicy>, Failure> {
    let one = |(name, account): (&String, &koboshi_config::agents::AccountConfig)| {
        let key =
            ScopeKey::new(ScopeLevel::Account, name).map_err(|error| Failure::new(error.to_string()))?;
        Ok((key, RoomPolicy { most: account.concurrency }))
    };
    config.accounts.iter().map(one).collect()
}
