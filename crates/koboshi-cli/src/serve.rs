//! `koboshi serve`: the gateway in the foreground, until a signal.
//!
//! SIGTERM and SIGINT let streams end and stop; a second one stops at once. SIGHUP and a changed file bring the new config, also where only a
//! file changed that it names (rules, facts of models, prepared answers); a bad one is reported and the old one goes on.

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
use koboshi_gateway::{Backing, Gateway, Setup, StartError};
use koboshi_report::phrase::Lang;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::{ConfigFileArgs, LangArgs};
use crate::follow::Files;
use crate::say::{Say, store_place, width};
use crate::{Exit, Failure, clock, experts, settings, state};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi serve                              with koboshi.yaml, or with the API keys in the environment
  koboshi serve --listen 127.0.0.1:8080      on another address
  koboshi serve --store memory               no file is written, for a read-only container
  koboshi serve --demo                       without any key: every model gets a fake answer
  OPENAI_BASE_URL=http://127.0.0.1:4141/v1 my-agent

Without a config the providers come from the usual variables (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …);
without any key only the simulated models (sim/ok, …) are answered, and every other model gets an error.

SIGHUP or a changed file: the new config is loaded. SIGTERM or Ctrl-C: running streams finish, then it stops.
Exit status: 0 stopped, 2 it could not start.";

/// How often the config file is looked at.
const LOOK: Duration = Duration::from_secs(1);

const STRONG: Style = Style::new().bold();
const LOUD: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: from the config, else 127.0.0.1:4141]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The store: a file, `redis://…`, or `memory`, which a restart forgets [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Log everything: also each tool call that a model writes, with its check and what was repaired (secrets are taken out)
    #[arg(long)]
    debug: bool,
    /// Answer every model with fake answers of the simulated provider; no AI provider is asked
    #[arg(long)]
    demo: bool,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

impl ServeArgs {
    /// The config file that was asked for.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.config.file.as_deref()
    }
}

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    crate::heap::fix_thresholds();
    let lookup = |name: &str| std::env::var(name).ok();
    let file = locate(args.config.file.as_deref(), &lookup);
    let config = with_flags(settings::load_to_serve(args.config.file.as_deref(), &args.lang)?, args);
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
        store,
        node: state::gateway_node(config.serve.listen.port())?,
        lookup: Arc::new(lookup),
        zones: clock::zones(),
        zone: clock::now().time_zone().clone(),
        log: Some(Box::new(std::io::stderr())),
        log_format: if std::io::stderr().is_terminal() { LogFormat::Pretty } else { LogFormat::Json },
        seed: seed(),
        demo: args.demo,
    };
    crate::limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the first request is served: a signal that came earlier would end the process at once, with its streams.
    let mut signals = runtime.block_on(async { Signals::new() })?;
    let gateway = Gateway::start(setup).map_err(|error| cannot_start(&error, &say))?;
    let looked = file.as_deref().and_then(settings::look);
    let routes = looked.as_ref().map(|looked| looked.routes.as_slice()).unwrap_or_default();
    greet(&say, &gateway, file.as_ref(), &place)?;
    let url = format!("http://{}/v1", gateway.address());
    let command = example::command(&url, &config, routes);
    writeln!(stderr().lock(), "{QUIET}{}\n  {command}{QUIET:#}", say.text("serve-try", &[]))?;
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
    for warning in looked.as_ref().map(settings::warnings).unwrap_or_default() {
        gateway.note(&warning);
    }
    let (files, started) = (Files::of(&config), config.clone());
    let followed = Followed { files, args, gateway: &gateway, reloader, config, started };
    runtime.block_on(until_stopped(followed, &mut signals));
    runtime.block_on(async {
        let stopping = tokio::task::spawn_blocking(move || gateway.stop());
        tokio::select! {
            _ = stopping => Ok(Exit::Good),
            // A second signal does not wait for streams.
            () = signals.stop.recv() => std::process::exit(130),
        }
    })
}

/// Why it did not start. Of an address that is open to others it says what `check` says.
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
            let variables = variables.join(", ");
            let shown = [("key", key.as_str()), ("target", target), ("variables", &variables)];
            say.text("serve-variables-unset", &shown)
        }
        _ => error.to_string(),
    })
}

/// The phrase for an address that cannot be had.
const fn cannot_listen(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::AddrInUse => "serve-port-used",
        std::io::ErrorKind::AddrNotAvailable => "serve-no-address",
        std::io::ErrorKind::PermissionDenied => "serve-port-reserved",
        _ => "serve-cannot-listen",
    }
}

/// The signals that it obeys.
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
    // Clients that do not say which language they want get the one of whoever started the gateway.
    config.language = Some(match args.lang.get(&config) {
        Lang::Ja => Language::Ja,
        Lang::En => Language::En,
    });
    config
}

/// Chance that differs from process to process; nothing secret depends on it.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// The config and what it names, as they change.
struct Followed<'f> {
    args: &'f ServeArgs,
    gateway: &'f Gateway,
    reloader: Option<Reloader>,
    /// The one that holds.
    config: Config,
    /// The one that it started with.
    started: Config,
    files: Files,
}

impl Followed<'_> {
    /// Somebody says that there is a new config.
    fn hang_up(&mut self) {
        if self.reloader.is_none() {
            self.gateway.note("SIGHUP: there is no config file to read again, everything stays as it is");
        }
        if !self.look(true) && self.reloader.is_some() {
            self.gateway.inform("SIGHUP: nothing has changed, the config in use stays", &json!({}));
        }
    }

    /// Looks whether there is something new, and takes it; says whether there was. `now`: somebody says that it is complete.
    fn look(&mut self, now: bool) -> bool {
        let look = if now { Reloader::check_now } else { Reloader::poll };
        match self.reloader.as_ref().map(look) {
            Some(Reload::Changed(config)) => {
                let config = with_flags((*config).clone(), self.args);
                self.files = Files::of(&config);
                self.take(config);
            }
            Some(Reload::Bad(problems)) => self.complain(&problems.to_string()),
            Some(Reload::Restored) => {
                self.gateway.inform("the config file can be used again and is the config in use", &json!({}));
            }
            _ if self.files.changed(now) => self.take(self.config.clone()),
            _ => return false,
        }
        true
    }

    fn take(&mut self, config: Config) {
        match self.gateway.reload(config.clone()) {
            Ok(()) => {
                self.tell_what_waits(&config);
                self.config = config;
            }
            Err(error) => self.complain(&error.to_string()),
        }
    }

    /// Says which of the new values hold only after a restart.
    fn tell_what_waits(&self, config: &Config) {
        let keys = needs_restart(&self.started, config, self.args.store.is_some());
        if !keys.is_empty() {
            self.gateway.note(&format!("restart the gateway for the new value of: {}", keys.join(", ")));
        }
    }

    fn complain(&self, problem: &str) {
        self.gateway.note(&format!("the new config cannot be used, the old one goes on: {problem}"));
    }
}

/// The keys whose new values a running gateway does not take. A store that was named by a flag is not the config's to say.
fn needs_restart(started: &Config, new: &Config, store_by_flag: bool) -> Vec<&'static str> {
    let changed = [
        ("serve.listen", started.serve.listen != new.serve.listen),
        ("serve.threads", started.serve.threads != new.serve.threads),
        ("store", !store_by_flag && started.store != new.store),
        ("log", started.log != new.log),
    ];
    changed.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}

/// Waits for a signal to stop; takes new configs meanwhile.
async fn until_stopped(mut followed: Followed<'_>, signals: &mut Signals) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = signals.stop.recv() => return,
            _ = signals.hang_up.recv() => followed.hang_up(),
            _ = look.tick() => { followed.look(false); }
        }
    }
}

/// What is said of who answers, by the ids of its phrases.
const fn about_backing(backing: Backing) -> &'static [&'static str] {
    match backing {
        Backing::Providers => &[],
        Backing::Demo => &["serve-demo"],
        Backing::Simulated => &["serve-sim-only"],
        Backing::Nothing => &["serve-no-key", "serve-no-key-next"],
    }
}

/// Says where it is and what answers, in the reader's language.
fn greet(say: &Say, gateway: &Gateway, file: Option<&PathBuf>, place: &str) -> Result<(), Failure> {
    let say = |id: &str, args: &[(&str, &str)]| say.text(id, args);
    let url = format!("http://{}/v1", gateway.address());
    let mut out = stderr().lock();
    writeln!(out, "{STRONG}{}{STRONG:#}", say("serve-listens", &[("place", &url)]))?;
    let providers = gateway.providers().join(", ");
    let file = file.map_or_else(|| say("serve-no-config", &[]), |path| path.display().to_string());
    for (label, value) in [
        ("serve-label-providers", &providers),
        ("serve-label-config", &file),
        ("serve-label-store", &store_place(place, say)),
    ] {
        let label = say(label, &[]);
        writeln!(out, "  {label}{}{value}", " ".repeat(14_usize.saturating_sub(width(&label)).max(1)))?;
    }
    let no_calls = Some("serve-no-calls").filter(|_| gateway.makes_up_no_calls());
    for id in about_backing(gateway.backing()).iter().copied().chain(no_calls) {
        writeln!(out, "{LOUD}{}{LOUD:#}", say(id, &[]))?;
    }
    Ok(())
}
