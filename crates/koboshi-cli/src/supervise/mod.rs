//! `koboshi supervise` and the commands for its agents: `start`, `stop`, `restart`, `reload`, `logs`.

mod agents;
mod follow;
mod kept;
mod logs;
mod metrics;
mod orders;
mod place;
mod when;

use std::cell::RefCell;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use koboshi::classify::Classifier;
use koboshi_config::Config;
use koboshi_config::words::{Text, words};
use koboshi_gateway::Reach;
use koboshi_notify::{Notifications, Tone};
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::Knowledge;
use koboshi_supervisor::keep::{
    Agent, AgentMeters, GatewayChoice, KeepError, Reloaded, SupervisorInputs, keep,
};
use koboshi_supervisor::spawn::own_binary;

use crate::args::{ConfigFileArgs, LangArgs};
use crate::notify::surroundings;
use crate::run::gateway::answering;
use crate::say::Say;
use crate::{Exit, Failure, clock, rules, shell, state};

use follow::AgentsFollower;

pub(crate) use agents::settings;
pub(crate) use follow::restart_for;
pub(crate) use kept::HostedAgents;
pub(crate) use logs::{EXAMPLES as LOGS_EXAMPLES, LogsArgs, run as logs};
pub(crate) use orders::{
    AgentWords, OrderArgs, RELOAD_EXAMPLES, ReloadArgs, lines, reload, restart, rows, start, stop,
};
pub(crate) use when::unusable as unusable_schedules;

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi supervise                          keep the agents of koboshi.yaml running
  koboshi supervise --config team.yaml
  koboshi status                             which agents run, wait or are stopped
  koboshi logs reviewer/website -f           what an agent writes
  koboshi stop reviewer; koboshi start reviewer

SIGHUP or a changed file: the new config is loaded, agents are restarted only where they must be.
SIGTERM or Ctrl-C: agents with `survives: false` are stopped, the others go on and the next supervisor takes them over.
Exit status: 0 stopped, 2 it could not start.";

/// How long to wait for the store at the beginning and at the end.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The store: a file or `redis://…` [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Serve metrics of the agents at /metrics of this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

impl SuperviseArgs {
    /// The config file of the command line.
    pub(crate) fn config_file(&self) -> Option<&std::path::Path> {
        self.config.file.as_deref()
    }
}

pub(crate) fn run(args: &SuperviseArgs) -> Result<Exit, Failure> {
    // The config gives the environment of the agents: a missing variable is a mistake here.
    let config = crate::settings::load_to_serve(args.config.file.as_deref(), &args.lang)?;
    if config.agents.is_empty() {
        let none = words(
            "the config has no `agents`: add one under a name of your choice, with its `command`",
            "設定に `agents` がありません。好きな名前で追加し、`command` を書いてください",
        );
        return Err(Failure::of(none.into()));
    }
    let (store, runs) = state::for_runs(args.store.as_deref(), &config)?;
    let node = state::supervisor_node()?;
    let ledger = Arc::new(Ledger::open(Arc::clone(&store), LedgerOptions::new(node.clone()))?);
    let _ = ledger.wait_loaded(STORE_TIMEOUT);
    let knowledge = Knowledge::new(Arc::clone(&ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?
        .on_a_fleet(state::is_fleet(args.store.as_deref(), &config));
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let say = Say::new(args.lang.get(&config))?;
    let around = surroundings(&store, node.to_string(), say.lang, flags(args, &config), Arc::new(log_line));
    let notices = Notifications::start(around, &config)?;
    // Asked at each start: a gateway that is started later serves too, and the absence of one restarts no agent.
    let in_use = RefCell::new(config.clone());
    let settings = agents::settings(&config, &GatewayChoice::Asked)?;
    let by_flag = args.store.is_some();
    let mut follower = AgentsFollower::new(&config, args.config.file.as_deref(), by_flag, &say)?;
    let mut reload = |now: bool| match follower.follow(now) {
        None => Reloaded::Same,
        Some(Err(why)) => Reloaded::Refused(why),
        Some(Ok((config, settings))) => {
            if let Err(error) = notices.adopt(&config) {
                log_line(Tone::Warning, &format!("notices cannot be sent: {error}"));
            }
            in_use.replace(config);
            Reloaded::New(settings)
        }
    };
    let meters = Arc::new(AgentMeters::default());
    if let Some(at) = args.metrics {
        let page = metrics::serve(at, Arc::clone(&meters)).map_err(|error| no_metrics(at, &error))?;
        // Where standard error is gone, no one reads it.
        let said = say.text("supervise-metrics", &[("place", &format!("http://{page}/metrics"))]);
        let _ = writeln!(std::io::stderr().lock(), "koboshi: {said}");
    }
    let kept = keep(SupervisorInputs {
        begun: &mut |agents| announce(&say, agents),
        settings,
        reload: &mut reload,
        runs,
        knowledge: &knowledge,
        classifier: &classifier,
        zone: clock::now().time_zone().clone(),
        binary: own_binary(),
        gateway: &|| answering(&in_use.borrow()),
        meters,
        log: &mut |line| {
            // A log that cannot be written stops no agent.
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        },
    });
    ledger.finish(STORE_TIMEOUT);
    drop(notices);
    kept.map(|()| Exit::Good).map_err(|error| not_kept(&error))
}

/// The flags that lead a command to the store of this supervisor, from any folder where that can be said.
fn flags(args: &SuperviseArgs, config: &Config) -> String {
    match state::reach(args.store.as_deref(), config) {
        Reach::Usual => String::new(),
        Reach::Flags(flags) => flags,
        // There is no gateway to ask; a password in an address is not repeated.
        Reach::Url => {
            let file = args.config.file.as_ref().map(|path| path.display().to_string());
            shell::flags([("--store", args.store.clone()), ("--config", file)])
        }
    }
}

/// Why there is no page of metrics.
fn no_metrics(at: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::of(Text::new(
        format!("the metrics cannot be served at {at}: {error}"),
        format!("{at} でメトリクスを公開できません: {error}"),
    ))
}

/// A line of the notices, as the supervisor writes its own.
fn log_line(tone: Tone, text: &str) {
    let level = if tone == Tone::Info { "INFO" } else { "WARNING" };
    // A log that cannot be written stops no agent.
    let _ = writeln!(std::io::stderr().lock(), "[{level}] {text}");
}

/// Why agents are not kept.
pub(crate) fn not_kept(error: &KeepError) -> Failure {
    match error {
        KeepError::Owned(runs) => {
            let runs = std::path::absolute(runs).unwrap_or_else(|_| runs.clone());
            Failure::of(Text::new(
                format!(
                    "another supervisor keeps these agents already: it has their runs in {}",
                    runs.display()
                ),
                format!(
                    "これらのエージェントは、すでに別のスーパーバイザーが管理しています（実行記録のフォルダー: {}）",
                    runs.display()
                ),
            ))
        }
        error => Failure::new(error.to_string()),
    }
}

/// Says which agents are kept: without it a start looks like a hang.
pub(crate) fn announce(say: &Say, agents: &[Agent]) {
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let (count, names) = (names.len().to_string(), say.list(&names));
    let said = say.text("supervise-agents", &[("count", &count), ("names", &names)]);
    // Where standard error is gone, no one reads it.
    let _ = writeln!(std::io::stderr().lock(), "koboshi: {said}");
}
