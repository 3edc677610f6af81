//! `koboshi serve`: the gateway in the foreground, until a signal.
//!
//! SIGTERM and SIGINT let streams end and stop; a second one stops at once. SIGHUP and a changed file reload the config, also where only a
//! file changed that it names (rules, facts of models, prepared answers); a bad one is reported and the old one stays in use.

mod example;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anstream::stderr;
use anstyle::{AnsiColor, Style};
use clap::Args;
use koboshi_config::Config;
use koboshi_config::check::hint_line;
use koboshi_config::config::Language;
use koboshi_config::file::locate;
use koboshi_config::gateway::{LogFormat, open_to_others};
use koboshi_config::reload::{Reload, Reloader};
use koboshi_gateway::{Backing, Gateway, Operator, Setup, StartError};
use koboshi_notify::{Notifications, Tone};
use koboshi_report::phrase::Lang;
use koboshi_store::Store;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::{ConfigFileArgs, LangArgs};
use crate::follow::Files;
use crate::host::GatewayHost;
use crate::notify::surroundings;
use crate::run::gateway::reachable;
use crate::say::{Say, store_place, width};
use crate::{Exit, Failure, clock, experts, settings, state};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi serve                              with koboshi.yaml, or with the API keys in the environment
  koboshi serve --listen 127.0.0.1:8080      on another address
  koboshi serve --store memory               no file is written, for a read-only container
  koboshi serve --demo                       without any key: every model gets a fake answer
  koboshi serve --chat                       and a chat page at /chat, to see a provider die in mid-answer
  OPENAI_BASE_URL=http://127.0.0.1:4141/v1 my-agent

Without a config the providers come from the usual variables (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …);
without any key only the simulated models (sim/ok, …) are answered, and every other model gets an error.

SIGHUP or a changed file: the new config is loaded. SIGTERM or Ctrl-C: running streams finish, then it stops.
Exit status: 0 stopped, 2 it could not start.";

/// How often the config file is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const STRONG: Style = Style::new().bold();
const LOUD: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: from the config, else 127.0.0.1:4141]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The store: a file or `redis://…`; without agents also `memory`, which a restart forgets [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Log everything: also each tool call that a model writes, with its check and what was repaired (secrets are taken out)
    #[arg(long)]
    debug: bool,
    /// Answer every model with fake answers of the simulated provider; no AI provider is asked
    #[arg(long)]
    demo: bool,
    /// Serve a small chat page at /chat, on which you can watch a provider die in mid-answer and the answer go on
    #[arg(long)]
    chat: bool,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

impl ServeArgs {
    /// The config file of the command line.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.config.file.as_deref()
    }

    /// The store of the command line.
    pub(crate) fn store_place(&self) -> Option<&str> {
        self.store.as_deref()
    }
}

/// A gateway that was started, and what follows its config.
pub(crate) struct RunningGateway<'a> {
    pub(crate) gateway: Gateway,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Config,
    pub(crate) say: Say,
    /// Ends after the gateway: what its last requests changed can still be sent.
    pub(crate) notices: Notifications,
    args: &'a ServeArgs,
    reloader: Option<Reloader>,
    /// As they were before the gateway read them: a change since then is a change.
    files: Files,
}

impl RunningGateway<'_> {
    /// What follows the config.
    pub(crate) fn follower(&self) -> ConfigFollower<'_> {
        let (config, started) = (self.config.clone(), self.config.clone());
        let files = self.files.clone();
        let reloader = self.reloader.as_ref();
        let (gateway, notices) = (&self.gateway, &self.notices);
        ConfigFollower { files, refused: None, args: self.args, gateway, notices, reloader, config, started }
    }
}

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the first request is served: an earlier signal would end the process at once, with its streams.
    let mut signals = runtime.block_on(async { Signals::new() })?;
    let served = begin(args, |_| Ok(()))?;
    runtime.block_on(until_stopped(served.follower(), &mut signals));
    let RunningGateway { gateway, notices, .. } = served;
    runtime.block_on(async {
        let stopping = tokio::task::spawn_blocking(move || {
            gateway.stop();
            drop(notices);
        });
        tokio::select! {
            _ = stopping => Ok(Exit::Good),
            // A second signal does not wait for streams.
            () = signals.stop.recv() => std::process::exit(130),
        }
    })
}

/// Starts the gateway and says so; not where `check` refuses the config.
pub(crate) fn begin(
    args: &ServeArgs,
    check: impl FnOnce(&Config) -> Result<(), Failure>,
) -> Result<RunningGateway<'_>, Failure> {
    crate::heap::fix_thresholds();
    let lookup = |name: &str| std::env::var(name).ok();
    let file = locate(args.config.file.as_deref(), &lookup);
    let config = with_flags(settings::load_to_serve(args.config.file.as_deref(), &args.lang)?, args);
    check(&config)?;
    let files = Files::of(&config);
    let say = Say::new(args.lang.get(&config))?;
    let reloader = match &file {
        Some(path) => Some(
            Reloader::asking(experts::ALL, path, Box::new(lookup))
                .map_err(|problems| Failure::new(problems.show(say.language())))?,
        ),
        None => None,
    };
    let store = state::for_gateway(args.store.as_deref(), &config)?;
    let place = store.place().to_owned();
    let setup = Setup {
        config: config.clone(),
        store: Arc::clone(&store),
        node: state::gateway_node(config.serve.listen.port())?,
        lookup: Arc::new(lookup),
        zones: clock::zones(),
        zone: clock::now().time_zone().clone(),
        log: Some(Box::new(std::io::stderr())),
        log_format: if std::io::stderr().is_terminal() { LogFormat::Pretty } else { LogFormat::Json },
        seed: seed(),
        demo: args.demo,
        operator: Operator {
            reach: state::reach(args.store.as_deref(), &config),
            config: args.config.file.as_ref().map(|path| path.display().to_string()),
        },
    };
    crate::limits::raise_open_files();
    let gateway = Gateway::start(setup).map_err(|error| cannot_start(&error, &say))?;
    gateway.hosted_by(Arc::new(GatewayHost { file: file.clone() }));
    let loaded = file.as_deref().and_then(settings::load_if_usable);
    let routes = loaded.as_ref().map(|loaded| loaded.routes.as_slice()).unwrap_or_default();
    greet(&say, &gateway, file.as_ref(), &place, config.serve.chat)?;
    let url = format!("{}://{}/v1", gateway.scheme(), reachable(gateway.address()));
    let (command, stands_in) = example::command(&url, &config, routes, &gateway.providers());
    let label = say.text(if stands_in { "serve-try-simulated" } else { "serve-try" }, &[]);
    writeln!(stderr().lock(), "{QUIET}{label}\n  {command}{QUIET:#}")?;
    let facts = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "address": gateway.address().to_string(),
        "config": file.as_ref().map(|path| path.display().to_string()),
        "store": place,
        "providers": gateway.providers(),
        "pid": std::process::id(),
    });
    gateway.inform("started", &facts);
    if !config.keys.is_empty() && config.admin.sha256.is_none() {
        let text = "the admin API is closed: clients need keys here, and no admin key is set (admin.sha256)";
        gateway.inform(text, &json!({}));
    }
    for warning in loaded.as_ref().map(settings::warnings).unwrap_or_default() {
        gateway.note(&warning);
    }
    let teller = gateway.teller();
    let log = move |tone: Tone, text: &str| {
        teller(if tone == Tone::Info { "info" } else { "warn" }, text, &json!({}));
    };
    let node = format!("gateway/{}", gateway.address());
    let notices = Notifications::start(
        surroundings(&store, node, say.lang, gateway.flags().to_owned(), Arc::new(log)),
        &config,
    )?;
    gateway.add_metrics(notices.metrics());
    Ok(RunningGateway { gateway, store, config, say, notices, args, reloader, files })
}

/// Why it did not start. For an address that others can reach the text is that of `check`.
fn cannot_start(error: &StartError, say: &Say) -> Failure {
    let language = say.language();
    Failure::new(match error {
        StartError::Open(address) => {
            let (message, hint) = open_to_others(*address);
            format!("{}{}", message.get(language), hint_line(&hint, language))
        }
        StartError::Listen(address, why) => {
            let shown = [("address", address.to_string()), ("why", why.to_string())];
            let shown: Vec<_> = shown.iter().map(|(name, text)| (*name, text.as_str())).collect();
            say.text(cannot_listen(why.kind()), &shown)
        }
        StartError::Unset { key, target, variables } => {
            let variables = say.list(variables);
            let shown = [("key", key.as_str()), ("target", target), ("variables", &variables)];
            say.text("serve-variables-unset", &shown)
        }
        _ => error.to_string(),
    })
}

/// The phrase for an address that cannot be used.
const fn cannot_listen(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::AddrInUse => "serve-port-used",
        std::io::ErrorKind::AddrNotAvailable => "serve-no-address",
        std::io::ErrorKind::PermissionDenied => "serve-port-reserved",
        _ => "serve-cannot-listen",
    }
}

/// The signals that it handles.
struct Signals {
    stop: StopSignals,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { stop: StopSignals::new()?, hang_up: signal(SignalKind::hangup())? })
    }
}

/// The signals that stop it.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn with_flags(mut config: Config, args: &ServeArgs) -> Config {
    if let Some(listen) = args.listen {
        config.serve.listen = listen;
    }
    if args.debug {
        config.log.level = "debug";
    }
    config.serve.chat |= args.chat;
    // Clients that state no language get that of the user who started the gateway.
    config.language = Some(match args.lang.get(&config) {
        Lang::Ja => Language::Ja,
        Lang::En => Language::En,
    });
    config
}

/// A seed that differs from process to process; nothing secret depends on it.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// The config and the files that it names, as they change.
pub(crate) struct ConfigFollower<'f> {
    args: &'f ServeArgs,
    gateway: &'f Gateway,
    notices: &'f Notifications,
    reloader: Option<&'f Reloader>,
    /// The current one.
    config: Config,
    /// The one at the start.
    started: Config,
    /// A newer one that cannot be used as it is, and why: a file that it names may be mended later.
    refused: Option<(Config, String)>,
    files: Files,
}

impl ConfigFollower<'_> {
    /// Reloads the config on request.
    fn hang_up(&mut self) {
        if self.reloader.is_none() {
            self.gateway.note("SIGHUP: there is no config file to read again, everything stays as it is");
            self.gateway.not_reloaded(None);
        }
        if !self.poll(true) && self.reloader.is_some() {
            self.gateway.inform("SIGHUP: nothing has changed, the config in use stays", &json!({}));
        }
    }

    /// Checks for changes and applies them; returns whether there were any. `now`: the user says that the files are complete.
    fn poll(&mut self, now: bool) -> bool {
        self.follow(now, |_| Ok(())).is_some()
    }

    /// The same, where another part must be able to use the config too; returns what that part made of it, or why it is refused, if there
    /// was a change.
    pub(crate) fn follow<T: Default>(
        &mut self,
        now: bool,
        used: impl FnOnce(&Config) -> Result<T, String>,
    ) -> Option<Result<T, String>> {
        let check = if now { Reloader::check_now } else { Reloader::poll };
        let followed = match self.reloader.map(check) {
            Some(Reload::Changed(config)) => {
                let config = with_flags((*config).clone(), self.args);
                self.files = Files::of(&config);
                self.take(config, used)
            }
            Some(Reload::Bad(problems)) => Err(problems.to_string()),
            Some(Reload::Restored) if self.refused.is_none() => {
                self.gateway.inform("the config file can be used again and is the config in use", &json!({}));
                self.gateway.not_reloaded(None);
                Ok(T::default())
            }
            _ if self.files.changed(now) => self.take(self.newest(), used),
            // The log has the problem already; a program that asks for a reload still gets it.
            _ => match self.reloader.filter(|_| now).and_then(|reloader| self.problem(reloader)) {
                Some(problem) => Err(problem),
                None => {
                    if now {
                        self.gateway.not_reloaded(None);
                    }
                    return None;
                }
            },
        };
        if let Err(problem) = &followed {
            self.gateway.not_reloaded(Some(problem));
            self.gateway.note(&format!("the new config cannot be used, the old one goes on: {problem}"));
        }
        Some(followed)
    }

    /// The config that was loaded last, in use or not.
    fn newest(&self) -> Config {
        self.refused.as_ref().map_or(&self.config, |(config, _)| config).clone()
    }

    /// What keeps the newest config from being used.
    fn problem(&self, reloader: &Reloader) -> Option<String> {
        let unusable = || self.refused.as_ref().map(|(_, why)| why.clone());
        reloader.problems().map(|problems| problems.to_string()).or_else(unusable)
    }

    fn take<T>(
        &mut self,
        config: Config,
        used: impl FnOnce(&Config) -> Result<T, String>,
    ) -> Result<T, String> {
        let reloaded = used(&config).and_then(|used| {
            self.gateway.reload(config.clone()).map(|()| used).map_err(|error| error.to_string())
        });
        self.refused = reloaded.as_ref().err().map(|why| (config.clone(), why.clone()));
        let used = reloaded?;
        if let Err(error) = self.notices.adopt(&config) {
            self.gateway.note(&format!("notices cannot be sent: {error}"));
        }
        self.log_pending_settings(&config);
        self.config = config;
        Ok(used)
    }

    /// Logs which new values need a restart.
    fn log_pending_settings(&self, config: &Config) {
        let keys = needs_restart(&self.started, config, self.args.store.is_some());
        if !keys.is_empty() {
            self.gateway.note(&format!("restart the gateway for the new value of: {}", keys.join(", ")));
        }
    }
}

/// The keys whose new values a running gateway does not apply. A store that was named by a flag overrides the config.
fn needs_restart(started: &Config, new: &Config, store_by_flag: bool) -> Vec<&'static str> {
    let changed = [
        ("serve.listen", started.serve.listen != new.serve.listen),
        ("serve.tls", started.serve.scheme() != new.serve.scheme()),
        ("serve.threads", started.serve.threads != new.serve.threads),
        ("store", !store_by_flag && started.store != new.store),
        ("log", started.log != new.log),
    ];
    changed.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}

/// Waits for a signal to stop; reloads configs meanwhile.
async fn until_stopped(mut follower: ConfigFollower<'_>, signals: &mut Signals) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = signals.stop.recv() => return,
            _ = signals.hang_up.recv() => follower.hang_up(),
            _ = ticks.tick() => { follower.poll(false); }
        }
    }
}

/// The ids of the phrases about what answers requests.
const fn about_backing(backing: Backing) -> &'static [&'static str] {
    match backing {
        Backing::Providers => &[],
        Backing::Demo => &["serve-demo"],
        Backing::Simulated => &["serve-sim-only"],
        Backing::Nothing => &["serve-no-key", "serve-no-key-next"],
    }
}

/// Prints the address and what answers requests, in the reader's language.
fn greet(
    say: &Say,
    gateway: &Gateway,
    file: Option<&PathBuf>,
    place: &str,
    chat: bool,
) -> Result<(), Failure> {
    let providers = say.list(&gateway.providers());
    let say = |id: &str, args: &[(&str, &str)]| say.text(id, args);
    // An address that means all addresses is none that anyone could open.
    let address = reachable(gateway.address());
    let scheme = gateway.scheme();
    let url = format!("{scheme}://{address}/v1");
    let listens = if address == gateway.address() { "serve-listens" } else { "serve-listens-everywhere" };
    let mut out = stderr().lock();
    writeln!(out, "{STRONG}{}{STRONG:#}", say(listens, &[("place", &url)]))?;
    let file = file.map_or_else(|| say("serve-no-config", &[]), |path| path.display().to_string());
    for (label, value) in [
        ("serve-label-providers", &providers),
        ("serve-label-config", &file),
        ("serve-label-store", &store_place(place, say)),
    ] {
        let label = say(label, &[]);
        writeln!(out, "  {label}{}{value}", " ".repeat(14_usize.saturating_sub(width(&label)).max(1)))?;
    }
    let page = format!("{scheme}://{address}/koboshi/");
    writeln!(out, "{}", say("serve-dashboard", &[("place", &page)]))?;
    if chat {
        let page = format!("{scheme}://{address}/chat");
        writeln!(out, "{}", say("serve-chat", &[("place", &page)]))?;
    }
    let no_calls = Some("serve-no-calls").filter(|_| gateway.makes_up_no_calls());
    for id in about_backing(gateway.backing()).iter().copied().chain(no_calls) {
        writeln!(out, "{LOUD}{}{LOUD:#}", say(id, &[]))?;
    }
    Ok(())
}
