//! Starts, reloads and stops a gateway.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{RuleError, RuleSource};
use koboshi::models::{ModelSource, Models};
use koboshi_config::Config;
use koboshi_config::gateway::LogFormat;
use koboshi_report::phrase::{PhraseError, Phrases};
use koboshi_store::{Ledger, LedgerOptions, Node, Store, StoreError};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::admin::known::KnownKeys;
use crate::admin::presence;
use crate::admin::report_thread::ReportThread;
use crate::admin::spend_reports;
use crate::http::upstream::tls_config;
use crate::observe::error_log::ErrorLog;
use crate::observe::log::{Level, Log};
use crate::route::answers::{Answers, AnswersError};
use crate::route::classifier::{self, PlanClassifier};
use crate::route::plan::{Backing, Plan, PlanError};
use crate::server::tls::{Certificate, CertificateWatch};
use crate::server::{Cores, listen_for};
use crate::shared::agents::KeptAgents;
use crate::shared::host::{Host, Reloading};
use crate::shared::operator::Operator;
use crate::shared::retention::retention;
use crate::shared::state::{OperatorTexts, SharedState};

/// How long a stop waits for its last log line.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a stop waits for all writes to the store together.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long a start waits for the records of the store.
const LOAD_TIMEOUT: Duration = Duration::from_secs(1);

/// Looks up environment variables.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a gateway needs from the program around it.
pub struct Setup {
    /// The config.
    pub config: Config,
    /// Where state is stored.
    pub store: Arc<dyn Store>,
    /// The name of this process.
    pub node: Node,
    /// The environment, for providers that the config does not name.
    pub lookup: Lookup,
    /// Time zones by name.
    pub zones: TimeZoneDatabase,
    /// The zone of texts for people.
    pub zone: TimeZone,
    /// Where log lines go; none writes nothing.
    pub log: Option<Box<dyn io::Write + Send>>,
    /// How log lines look if the config does not say.
    pub log_format: LogFormat,
    /// Seed for jitter.
    pub seed: u64,
    /// The simulated provider answers everything, whatever the config and the environment name.
    pub demo: bool,
    /// What the operator started it with, for the commands and names in its texts.
    pub operator: Operator,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is in use or not ours.
    #[error("cannot listen on {0}: {1}{hint}", hint = listen_hint(.1))]
    Listen(SocketAddr, io::Error),
    /// Without keys, anyone on the network could spend the provider keys.
    #[error(
        "{0} can be reached from other machines, and no keys are set: add `keys` to the config, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// A reload would remove all keys: a file that is being written looks like that too.
    #[error(
        "it has no `keys` any more, and every local program could call: restart the gateway if that is what you want"
    )]
    KeysLost,
    /// The config cannot be served.
    #[error("{0}")]
    Plan(String),
    /// A provider that the config does not describe is not in the environment either.
    #[error("{key}: {target} needs environment variables that are not set: set {}, or describe the provider under `providers`", .variables.join(" and "))]
    Unset {
        /// The key that names the target.
        key: String,
        /// Provider and model.
        target: String,
        /// The variables to set.
        variables: Vec<&'static str>,
    },
    /// The certificate for clients, or its key, cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// The file of the error log cannot be written.
    #[error("log.errors.file: {file}: {1}", file = .0.display())]
    ErrorLog(PathBuf, io::Error),
    /// There is no such time zone.
    #[error("spend.zone: there is no time zone {0:?}: write it like \"Asia/Tokyo\" or \"UTC\"")]
    Zone(String),
    /// A rule file cannot be used.
    #[error("{0}")]
    Rules(String),
    /// The models file cannot be used.
    #[error("models_file: {0}")]
    Models(String),
    /// The file of static answers cannot be used.
    #[error("degrade.answers_file: {0}")]
    Answers(String),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
    /// The phrase files are broken.
    #[error(transparent)]
    Phrases(#[from] PhraseError),
    /// The machine cannot start threads.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

/// What to do about an address that cannot be used.
fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            ". Another program uses this port, perhaps another Koboshi: choose another one with --listen 127.0.0.1:PORT \
             (or `serve.listen` in the config)"
        }
        io::ErrorKind::AddrNotAvailable => {
            ". This machine does not have this address: choose one that it has with --listen ADDRESS:PORT \
             (or `serve.listen` in the config)"
        }
        io::ErrorKind::PermissionDenied => {
            ". Ports below 1024 are reserved: choose another one with --listen ADDRESS:PORT"
        }
        _ => "",
    }
}

impl From<PlanError> for StartError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Unset(key, target, variables) => Self::Unset { key, target, variables },
            other => Self::Plan(other.to_string()),
        }
    }
}

impl From<RuleError> for StartError {
    fn from(error: RuleError) -> Self {
        Self::Rules(error.to_string())
    }
}

impl From<AnswersError> for StartError {
    fn from(error: AnswersError) -> Self {
        Self::Answers(error.to_string())
    }
}

/// A running gateway.
pub struct Gateway {
    address: SocketAddr,
    state: Arc<SharedState>,
    lookup: Lookup,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    reports: ReportThread,
    spending: ReportThread,
    /// Where clients use TLS.
    certificate: Option<Arc<Certificate>>,
    _watch: Option<CertificateWatch>,
}

impl Gateway {
    /// Starts a gateway.
    ///
    /// # Errors
    /// Something that it needs is missing; the error says what.
    pub fn start(setup: Setup) -> Result<Self, StartError> {
        let listen = setup.config.serve.listen;
        if !listen.ip().is_loopback() && setup.config.keys.is_empty() {
            return Err(StartError::Open(listen));
        }
        let plan = plan(setup.config, &setup.zones, &*setup.lookup, setup.demo, None)?;
        let log = match setup.log {
            Some(out) => {
                let format = plan.config.log.format.unwrap_or(setup.log_format);
                Log::to(out, format, Level::from_name(plan.config.log.level))
            }
            None => Log::silent(),
        };
        let no_errors =
            |error| StartError::ErrorLog(plan.config.log.errors.clone().unwrap_or_default(), error);
        let log = match ErrorLog::open(&plan.config.log).map_err(no_errors)? {
            Some(errors) => log.with_errors(errors.into_log()),
            None => log,
        };
        let threads = plan.config.serve.threads.map_or_else(cores, |threads| threads as usize);
        let tls = plan
            .providers()
            .any(|provider| provider.origin.as_ref().is_some_and(|origin| origin.is_secure()));
        let tls = if tls { tls_config([]).ok() } else { None };
        let certificate = Certificate::of(&plan.config.serve.tls).map_err(StartError::Certificate)?;
        // Before the store is opened: another gateway may use this address, and its records must not be touched.
        let socket =
            std::net::TcpListener::bind(listen).map_err(|error| StartError::Listen(listen, error))?;
        let address = socket.local_addr().map_err(|error| StartError::Listen(listen, error))?;
        socket.set_nonblocking(true).map_err(|error| StartError::Listen(listen, error))?;
        let options = ledger_options(&plan.config, setup.node);
        let ledger = Ledger::open(Arc::clone(&setup.store), options)?;
        // The first request must find the earlier records. An unreachable store does not prevent the start; a damaged one does, because it
        // would stay damaged.
        if !ledger.wait_loaded(LOAD_TIMEOUT)
            && let Some(damage) = ledger.health().trouble.filter(StoreError::is_damage)
        {
            return Err(StartError::Store(damage));
        }
        let scheme = plan.config.serve.scheme();
        let state = Arc::new(SharedState::new(
            plan,
            Arc::new(ledger),
            setup.store,
            Phrases::new()?,
            log,
            setup.zones,
            setup.zone,
            setup.seed,
            OperatorTexts {
                flags: setup.operator.flags(scheme, address),
                config: setup.operator.config().to_owned(),
            },
        ));
        // Set once, here.
        let _ = state.address.set(address);
        state.listen();
        state.log_store_health();
        state.adopt_limits();
        state.know_fixed_targets();
        state.trace_to().map_err(StartError::Plan)?;
        state.log_to().map_err(StartError::Plan)?;
        let (stop, stopped) = watch::channel(false);
        let serving = Arc::clone(&state);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(StartError::Threads)?;
        let cores = Cores::start(&state, threads, tls.as_ref(), certificate.as_ref(), &stopped);
        let cores = cores.map_err(StartError::Threads)?;
        let watch = |of: &Arc<Certificate>| CertificateWatch::start(Arc::clone(of), state.log.clone());
        let watch = certificate.as_ref().map(watch).transpose().map_err(StartError::Threads)?;
        let reports = presence::report(&state, address.to_string()).map_err(StartError::Threads)?;
        let spending = spend_reports::report(&state).map_err(StartError::Threads)?;
        let thread = std::thread::Builder::new()
            .name("koboshi-accept".to_owned())
            .spawn(move || {
                listen_for(&runtime, &serving, socket, &cores, &stopped);
                runtime.shutdown_background();
                cores.join();
            })
            .map_err(StartError::Threads)?;
        classifier::prepare(&state.plan().classifier);
        Ok(Self {
            address,
            state,
            lookup: setup.lookup,
            stop,
            thread: Some(thread),
            reports,
            spending,
            certificate,
            _watch: watch,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The scheme of its address: `https` with `serve.tls`, else `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }

    /// What answers requests.
    #[must_use]
    pub fn backing(&self) -> Backing {
        self.state.plan().backing()
    }

    /// Whether the simulated provider makes up tool calls only for models whose name asks for them: where no config names it, because a
    /// real agent may be asking.
    #[must_use]
    pub fn makes_up_no_calls(&self) -> bool {
        self.state.plan().stands_in
    }

    /// The names of the providers.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        self.state.plan().providers().map(|provider| provider.name.to_string()).collect()
    }

    /// Uses a new config for future requests.
    ///
    /// # Errors
    /// The config cannot be served; the old one stays in use.
    pub fn reload(&self, config: Config) -> Result<(), StartError> {
        let mut config = config;
        // The socket is open already; another address needs a restart.
        config.serve.listen = self.state.plan().config.serve.listen;
        if config.serve.tls.files().is_some() != self.certificate.is_some() {
            config.serve.tls = self.state.plan().config.serve.tls.clone();
        }
        if !config.serve.listen.ip().is_loopback() && config.keys.is_empty() {
            return Err(StartError::Open(config.serve.listen));
        }
        let before = self.state.plan();
        if before.keys.are_needed() && config.keys.is_empty() {
            return Err(StartError::KeysLost);
        }
        let plan = plan(config, &self.state.zones, &*self.lookup, before.demo, Some(&before))?;
        if let Some(certificate) = &self.certificate {
            certificate.use_files(&plan.config.serve.tls).map_err(StartError::Certificate)?;
        }
        self.state.adopt(plan);
        if let Err(error) = self.state.trace_to() {
            self.state.log.line(Level::Warn, "traces go where they went before", &json!({"why": error}));
        }
        if let Err(error) = self.state.log_to() {
            self.state.log.line(Level::Warn, "the log goes where it went before", &json!({"why": error}));
        }
        self.state.log.line(Level::Info, "the new config is in use", &json!({}));
        self.state.note_reloading(Reloading::InUse);
        Ok(())
    }

    /// Lets operators ask for what only the program around the gateway can do. Only the first one counts.
    pub fn hosted_by(&self, host: Arc<dyn Host>) {
        let _ = self.state.host.set(host);
    }

    /// Tells operators that a new config was refused, or that the config in use is still the one in its file.
    pub fn not_reloaded(&self, why: Option<&str>) {
        self.state.note_reloading(why.map_or(Reloading::Unchanged, |why| Reloading::Refused(why.to_owned())));
    }

    /// Operators reach these agents through the admin API from now on. Later ones are not taken.
    pub fn keep_agents(&self, agents: Arc<dyn KeptAgents>) {
        let _ = self.state.agents.set(agents);
    }

    /// Makes a key for the agents of this process, valid for as long as it runs: only its hash is kept here, and no file has it. None after the
    /// first call.
    #[must_use]
    pub fn admit_agents(&self) -> Option<String> {
        self.state.agents_key.make()
    }

    /// Logs a warning.
    pub fn note(&self, message: &str) {
        self.state.log.line(Level::Warn, message, &json!({}));
    }

    /// Logs a line of another part of this process with its fields, at its level: `error`, `warn`, `info` or `debug`.
    pub fn tell(&self, level: &str, message: &str, facts: &Value) {
        self.state.log.line(Level::from_name(level), message, facts);
    }

    /// The same for a thread of that part.
    pub fn teller(&self) -> impl Fn(&str, &str, &Value) + Send + Sync + 'static {
        let log = self.state.log.clone();
        move |level, message, facts| log.line(Level::from_name(level), message, facts)
    }

    /// Adds what another part of the program counts to the page of metrics. Only the first one counts.
    pub fn add_metrics(&self, text: Box<dyn Fn() -> String + Send + Sync>) {
        let _ = self.state.more_metrics.set(text);
    }

    /// The flags that lead an operator's command to what this gateway has learned, with a space before each.
    #[must_use]
    pub fn flags(&self) -> &str {
        &self.state.operator.flags
    }

    /// Logs an event, with its fields.
    pub fn inform(&self, message: &str, facts: &Value) {
        self.state.log.line(Level::Info, message, facts);
    }

    /// Stops listening, lets streams end, and returns when all have ended or the drain time is over.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let (state, began) = (&self.state, self.state.now());
        state.feed.close();
        let open = state.meters.open.get();
        let requests = if open == 1 { "1 request".to_owned() } else { format!("{open} requests") };
        let at_most = state.plan().config.serve.drain.as_secs_f64();
        let facts = json!({"requests": open, "at_most_seconds": at_most});
        state.log.line(Level::Info, &format!("stopping: draining {requests}"), &facts);
        // Fails only when the thread is gone.
        let _ = self.stop.send(true);
        let _ = thread.join();
        state.end_traces();
        write_last(state, &mut self.reports, &mut self.spending);
        let took = state.now().since(began).as_secs_f64();
        state.log.line(Level::Info, &format!("stopped after {took:.1} s"), &json!({"seconds": took}));
        state.end_log();
        state.log.flush(LOG_FLUSH_TIMEOUT);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes what waits for the store. Each part has its own thread, so they write at the same time; a store that hangs is not waited for.
fn write_last(state: &SharedState, reports: &mut ReportThread, spending: &mut ReportThread) {
    let until = state.now().after(FINAL_WRITE_TIMEOUT);
    let left = || until.since(state.now());
    reports.close();
    spending.close();
    state.cache_calls.close();
    state.admin_calls.close();
    state.sessions.calls.finish(left());
    let health = state.ledger.finish(left());
    reports.finish(left());
    spending.finish(left());
    let answers = state.cache_calls.finish(left());
    let (records, entries) = (health.pending, health.journal_waiting);
    if records + entries + answers > 0 {
        let facts = json!({
            "store": health.place,
            "why": health.trouble.map_or_else(|| "no answer in time".to_owned(), |error| error.to_string()),
            "records": records,
            "journal_entries": entries,
            "cached_answers": answers,
        });
        state.log.line(Level::Warn, "the store did not take everything before the stop", &facts);
    }
}

fn ledger_options(config: &Config, node: Node) -> LedgerOptions {
    LedgerOptions { keep: retention(&config.store), ..LedgerOptions::new(node) }
}

/// The keys that a config names, without starting anything.
///
/// # Errors
/// The config cannot be served; the error says why.
pub fn known_to(
    config: Config,
    zones: &TimeZoneDatabase,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<KnownKeys, StartError> {
    Ok(KnownKeys::of_plan(&plan(config, zones, lookup, false, None)?))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Compiles a config with the files that it names.
pub(crate) fn plan(
    config: Config,
    zones: &TimeZoneDatabase,
    lookup: &dyn Fn(&str) -> Option<String>,
    demo: bool,
    before: Option<&Plan>,
) -> Result<Plan, StartError> {
    let zone = &config.spend.zone;
    // Known without any database.
    if zone != "UTC" && zones.get(zone).is_err() {
        return Err(StartError::Zone(zone.clone()));
    }
    let classifier = rules(&config, zones, before)?;
    let models = models(&config).map_err(StartError::Models)?;
    let answers = match &config.degrade.answers_file {
        Some(path) => Answers::parse(&read(path).map_err(StartError::Answers)?)?,
        None => Answers::default(),
    };
    Ok(Plan::compile(config, classifier, models, answers, lookup, demo, before)?)
}

/// The rules of a config. Without rules of its own, those of the previous plan are reused.
fn rules(
    config: &Config,
    zones: &TimeZoneDatabase,
    before: Option<&Plan>,
) -> Result<PlanClassifier, StartError> {
    if config.rules.is_empty() {
        let same = before.filter(|before| before.config.rules.is_empty());
        return Ok(
            same.map_or_else(|| classifier::builtin(zones.clone()), |before| Arc::clone(&before.classifier))
        );
    }
    let mut texts = Vec::new();
    for path in &config.rules {
        texts.push((path.display().to_string(), read(path).map_err(StartError::Rules)?));
    }
    let sources: Vec<RuleSource<'_>> = texts.iter().map(|(name, text)| RuleSource { name, text }).collect();
    Ok(classifier::with_user(&sources, zones.clone())?)
}

/// What is known of models, with the models file of a config.
///
/// # Errors
/// Why that file cannot be used.
pub fn models(config: &Config) -> Result<Models, String> {
    let Some(path) = &config.models_file else {
        return Models::builtin().map_err(|error| error.to_string());
    };
    let (name, text) = (path.display().to_string(), read(path)?);
    let source = ModelSource { name: &name, text: &text };
    Models::with_user(&[source]).map_err(|error| error.to_string())
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_kept_as_long_as_the_config_says() {
        let mut config = Config::default();
        (config.store.journal.keep_days, config.store.journal.keep_entries) = (2, 7);
        let keep = ledger_options(&config, "here".parse().unwrap()).keep;
        assert_eq!((keep.journal, keep.entries), (Duration::from_secs(2 * 86_400), 7));
    }
}
