//! `koboshi up`: the gateway and the supervisor in one process, from one config.
//!
//! The gateway serves on threads of its own; this thread keeps the agents, follows the config for both, and handles the signals. The agents are
//! stopped before the gateway drains, so that their last requests are answered.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use koboshi::classify::Classifier;
use koboshi_config::Config;
use koboshi_config::agents::AUTO;
use koboshi_config::config::Language;
use koboshi_config::words::{Words, words};
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::Knowledge;
use koboshi_supervisor::keep::{
    Agent, AgentMeters, GatewayChoice, Reloaded, Settings, SupervisorInputs, Token, exit_at_next_signal, keep,
};
use koboshi_supervisor::spawn::own_binary;
use serde_json::json;

use crate::run::gateway::reachable;
use crate::serve::{RunningGateway, ServeArgs, begin};
use crate::supervise::{
    HostedAgents, SupervisorPresence, announce, levelled, not_kept, restart_for, settings,
};
use crate::{Exit, Failure, clock, rules, state};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi up                                 the gateway and the agents of koboshi.yaml
  koboshi up --config team.yaml --listen 127.0.0.1:8080
  koboshi status; koboshi logs reviewer -f   what they do
  koboshi reload                             read the config again, for both

The agents ask their models through the gateway, where their kind says how. Where its clients need keys (`keys`), agents get one of their own.
SIGHUP or a changed file: the new config is loaded, agents are restarted only where they must be.
SIGTERM or Ctrl-C: agents with `survives: false` are stopped, then running streams finish, then it stops.
Exit status: 0 stopped, 2 it could not start.";

/// How long to wait for the store at the beginning.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for what the supervisor writes last.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The exit status after a second signal.
const INTERRUPTED: u8 = 130;

const NEEDS_STORE: Words = words(
    "the store is `memory` (by `store: memory` in the config, or by --store), which a restart forgets: agents need a file or Redis. `koboshi serve` runs the gateway alone",
    "ストアは `memory` です（設定の `store: memory`、または --store による）。再起動で失われるため、エージェントにはファイルか Redis が必要です。ゲートウェイだけなら `koboshi serve` で動きます",
);

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

impl UpArgs {
    /// The config file of the command line.
    pub(crate) fn config_file(&self) -> Option<&std::path::Path> {
        self.serve.config_file()
    }
}

pub(crate) fn run(args: &UpArgs) -> Result<Exit, Failure> {
    let served = begin(&args.serve, |config| {
        // What the agents lack is said before the gateway listens.
        if state::is_memory(args.serve.store_place(), config) {
            return Err(Failure::of(NEEDS_STORE.into()));
        }
        settings(config, &GatewayChoice::Off).map(drop)
    })?;
    let ledger =
        Arc::new(Ledger::open(Arc::clone(&served.store), LedgerOptions::new(state::supervisor_node()?))?);
    let kept = supervise(&served, &args.serve, &ledger);
    // The gateway may take a while to end its streams: a second signal does not wait for them.
    let _ = exit_at_next_signal(i32::from(INTERRUPTED));
    let RunningGateway { gateway, notices, .. } = served;
    // Both at once: a store that does not answer then costs their time only once.
    std::thread::scope(|scope| {
        scope.spawn(|| ledger.finish(LAST_WRITE_TIMEOUT));
        gateway.stop();
    });
    drop(notices);
    kept.map(|()| Exit::Good)
}

fn supervise(served: &RunningGateway<'_>, args: &ServeArgs, ledger: &Arc<Ledger>) -> Result<(), Failure> {
    let (gateway, config) = (&served.gateway, &served.config);
    let _ = ledger.wait_loaded(STORE_TIMEOUT);
    let (teller, code_prefix) = (gateway.teller(), config.code_prefix.clone());
    let knowledge = Knowledge::new(Arc::clone(ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?
        .on_a_fleet(state::is_fleet(args.store_place(), config))
        .telling(move |fault| teller("warn", fault.text, &fault.facts(&code_prefix)));
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let address = format!("{}://{}", gateway.scheme(), reachable(gateway.address()));
    // Where its clients need keys, the agents have one of their own. It is in this process and in theirs alone.
    let key = gateway.admit_agents();
    let ours = |config: &Config| match &key {
        _ if config.keys.is_empty() => GatewayChoice::At(address.clone()),
        Some(key) => GatewayChoice::Keyed(address.clone(), Token::new(key.clone())),
        None => GatewayChoice::Off,
    };
    let first = settings(config, &ours(config))?;
    if first.agents.is_empty() {
        gateway.note("the config has no agents for this machine: only the gateway runs");
    }
    for agent in first.agents.iter().filter(|agent| goes_round(agent, config)) {
        let why = if !config.keys.is_empty() && !agent.kind.gateway.takes_key() {
            "because clients of the gateway need keys, and its kind does not say how it gets one"
        } else {
            "because the gateway has no key for it and `serve.passthrough` is off"
        };
        gateway.note(&format!("{}: asks its provider directly, {why}", agent.name));
    }
    let runs = state::runs_folder(args.store_place(), config)?;
    let meters = Arc::new(AgentMeters::default());
    gateway.keep_agents(Arc::new(HostedAgents { runs: runs.clone(), meters: Arc::clone(&meters) }));
    let mut follower = served.follower();
    let presence = RefCell::new(None::<SupervisorPresence>);
    let mut reload = |now: bool| {
        let of_agents = |config: &Config| {
            if let Some(presence) = &*presence.borrow() {
                presence.adopt(config);
            }
            let restart_for = restart_for(&served.config, config, args.store_place().is_some());
            let settings = settings(config, &ours(config)).map(|new| Settings { restart_for, ..new });
            settings.map(Some).map_err(|failure| failure.text(Language::En).to_owned())
        };
        match follower.follow::<Option<Settings>>(now, of_agents) {
            None | Some(Ok(None)) => Reloaded::Same,
            Some(Ok(Some(settings))) => Reloaded::New(settings),
            Some(Err(why)) => Reloaded::Refused(why),
        }
    };
    let kept = keep(SupervisorInputs {
        begun: &mut |agents| {
            if !agents.is_empty() {
                announce(&served.say, agents);
            }
            let (store, meters) = (Arc::clone(&served.store), Arc::clone(&meters));
            let node = ledger.node().to_string();
            presence.replace(SupervisorPresence::start(store, node, &runs, config, meters).ok());
        },
        settings: first,
        reload: &mut reload,
        runs: runs.clone(),
        knowledge: &knowledge,
        classifier: &classifier,
        zone: clock::now().time_zone().clone(),
        binary: own_binary(),
        gateway: &|| None,
        meters: Arc::clone(&meters),
        log: &mut |line| {
            let (level, message) = levelled(line);
            gateway.tell(level, message, &json!({}));
        },
    });
    kept.map_err(|error| not_kept(&error))
}

/// Whether an agent wants the gateway of this process, and cannot be served by it.
fn goes_round(agent: &Agent, config: &Config) -> bool {
    let name = agent.name.split('/').next().unwrap_or_default();
    agent.kind.gateway.is_known()
        && agent.gateway == GatewayChoice::Off
        && config.agents.get(name).is_some_and(|agent| agent.gateway == AUTO)
}
