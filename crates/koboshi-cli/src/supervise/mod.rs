//! `koboshi supervise` and the commands for its agents: `start`, `stop`, `restart`, `reload`, `logs`.

mod agents;
mod follow;
mod kept;
mod logs;
mod metrics;
mod orders;
mod place;
mod presence;
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
use koboshi_gateway::{ErrorLog, Reach};
use koboshi_notify::{Notifications, Tone};
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::keep::{
    Agent, AgentMeters, GatewayChoice, KeepError, Reloaded, SupervisorInputs, keep,
};
use koboshi_supervisor::spawn::own_binary;
use koboshi_supervisor::{Knowledge, RunFault};
use serde_json::json;

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
pub(crate) use presence::SupervisorPresence;
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
    let errors = Arc::new(ErrorLog::open(&config.log).map_err(|error| no_error_log(&config, &error))?);
    let knowledge = Knowledge::new(Arc::clone(&ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?
        .on_a_fleet(state::is_fleet(args.store.as_deref(), &config))
        .telling(fault_teller(Arc::clone(&errors), config.code_prefix.clone()));
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let say = Say::new(args.lang.get(&config))?;
    let notice_errors = Arc::clone(&errors);
    let log_notice = move |tone: Tone, text: &str| {
        let mark = if tone == Tone::Info { "INFO" } else { "WARNING" };
        log_line(notice_errors.as_ref().as_ref(), &format!("[{mark}] {text}"));
    };
    let around = surroundings(&store, node.to_string(), say.lang, flags(args, &config), Arc::new(log_notice));
    let notices = Notifications::start(around, &config)?;
    // Asked at each start: a gateway that is started later serves too, and the absence of one restarts no agent.
    let in_use = RefCell::new(config.clone());
    let settings = agents::settings(&config, &GatewayChoice::Asked)?;
    let by_flag = args.store.is_some();
    let mut follower = AgentsFollower::new(&config, args.config.file.as_deref(), by_flag, &say)?;
    let meters = Arc::new(AgentMeters::default());
    let presence = RefCell::new(None::<SupervisorPresence>);
    let mut reload = |now: bool| match follower.follow(now) {
        None => Reloaded::Same,
        Some(Err(why)) => Reloaded::Refused(why),
        Some(Ok((config, settings))) => {
            if let Err(error) = notices.adopt(&config) {
                log_line(errors.as_ref().as_ref(), &format!("[WARNING] notices cannot be sent: {error}"));
            }
            if let Some(presence) = &*presence.borrow() {
                presence.adopt(&config);
            }
            in_use.replace(config);
            Reloaded::New(settings)
        }
    };
    if let Some(at) = args.metrics {
        let page = metrics::serve(at, Arc::clone(&meters)).map_err(|error| no_metrics(at, &error))?;
        // Where standard error is gone, no one reads it.
        let said = say.text("supervise-metrics", &[("place", &format!("http://{page}/metrics"))]);
        let _ = writeln!(std::io::stderr().lock(), "koboshi: {said}");
    }
    let kept = keep(SupervisorInputs {
        begun: &mut |agents| {
            announce(&say, agents);
            // Only the one that keeps them reports.
            let (store, meters) = (Arc::clone(&store), Arc::clone(&meters));
            presence.replace(
                SupervisorPresence::start(store, node.to_string(), &runs, &in_use.borrow(), meters).ok(),
            );
        },
        settings,
        reload: &mut reload,
        runs: runs.clone(),
        knowledge: &knowledge,
        classifier: &classifier,
        zone: clock::now().time_zone().clone(),
        binary: own_binary(),
        gateway: &|| answering(&in_use.borrow()),
        meters: Arc::clone(&meters),
        log: &mut |line| log_line(errors.as_ref().as_ref(), line),
    });
    drop(presence);
    ledger.finish(STORE_TIMEOUT);
    drop(notices);
    if let Some(errors) = &*errors {
        errors.finish();
    }
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

/// Writes a line of the supervisor to standard error; warnings and errors go to the file of errors too.
fn log_line(errors: Option<&ErrorLog>, line: &str) {
    // A log that cannot be written stops no agent.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
    let (level, message) = levelled(line);
    if let Some(errors) = errors {
        errors.line(level, message, &json!({}));
    }
}

/// The level of a line of the supervisor, and the line without it. Lines for standard error have it in front, as `[WARNING] `.
pub(crate) fn levelled(line: &str) -> (&'static str, &str) {
    let levels = [("[ERROR] ", "error"), ("[WARNING] ", "warn"), ("[INFO] ", "info"), ("[DEBUG] ", "debug")];
    let found = levels.into_iter().find_map(|(mark, level)| Some((level, line.strip_prefix(mark)?)));
    found.unwrap_or(("info", line))
}

/// Writes faults of runs to the file of errors, with the fields of a failed attempt. Standard error has the end of each run already.
fn fault_teller(errors: Arc<Option<ErrorLog>>, code_prefix: String) -> impl Fn(&RunFault<'_>) + Send + Sync {
    move |fault| {
        if let Some(errors) = &*errors {
            errors.line("warn", fault.text, &fault.facts(&code_prefix));
        }
    }
}

/// Why there is no file of errors.
fn no_error_log(config: &Config, error: &std::io::Error) -> Failure {
    let file = config.log.errors.clone().unwrap_or_default();
    Failure::of(Text::new(
        format!("log.errors.file: {}: {error}", file.display()),
        format!("log.errors.file: {} に書き込めません: {error}", file.display()),
    ))
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
