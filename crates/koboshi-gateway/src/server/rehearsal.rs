//! A gateway that serves no one: requests go through the same rooms as any client's, a script stands in for all providers, and waits pass in
//! virtual time. `koboshi drill` plays its scenarios here.
//!
//! ```text
//!   request ─► edge::rehearse ─► request ─► attempt ─► Destination::Rehearsed ─► script ─► the simulated provider
//!                                                      (never a socket)
//! ```
//!
//! - **Nothing leaves the process.** There is no listener, every send goes to the script, and what would ask another server for a token, read a key
//!   or send traces is taken out of the config first.
//! - **Time is virtual.** The runtime's clock stands still while there is something to do, and jumps to the next timer when there is nothing
//!   (tokio's paused clock); [`replace_system_clock`] makes everything else read that clock. Both are for the whole process, so a process that
//!   has made a [`Rehearsal`] must not serve. A timer must not wait for another thread, or it would pass at once: requests of a rehearsal
//!   meet no socket, no name to resolve and no large core.
//! - **Each play begins without history**: breakers, cooldowns and limits of the play before are forgotten.
//!
//! It does not judge what a client got.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi_config::Config;
use koboshi_config::gateway::{Named, ProviderConfig, ProviderDialect, ProviderKind, TraceConfig};
use koboshi_config::secret::Secret;
use koboshi_report::phrase::Phrases;
use koboshi_store::{Ledger, LedgerOptions, Node, Store, replace_system_clock};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::time::{Instant, timeout};

use crate::edge;
use crate::http::response_future::ResponseFuture;
use crate::http::upstream::rehearsal::{Script, Stage};
use crate::http::upstream::sim::SimProvider;
use crate::http::upstream::{Origin, Upstream};
use crate::observe::log::Log;
use crate::route::plan::Plan;
use crate::route::well_known;
use crate::server::gateway::{StartError, plan};
use crate::shared::core_state::CoreState;
use crate::shared::state::{OperatorTexts, SharedState};

/// An address that cannot exist, for providers that have none by default.
const NOWHERE: &str = "https://rehearsal.invalid/v1";
/// Beyond the deadline of a request: a client that gets nothing more by then waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a play waits for the records of its store, which is in memory or refuses at once.
const LOAD_TIMEOUT: Duration = Duration::from_millis(200);
/// Between two plays, so that what one of them began is over.
const INTERMISSION: Duration = Duration::from_secs(1);
/// The same jitter in every run.
const SEED: u64 = 7;

/// The virtual time that has passed, in nanoseconds, for threads without the runtime's clock.
static ELAPSED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// When the rehearsal of this thread began, on its runtime's clock.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

fn elapsed() -> Duration {
    let is_running = tokio::runtime::Handle::try_current().is_ok();
    if let Some(began) = BEGAN.get().filter(|_| is_running) {
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        ELAPSED.fetch_max(nanos, Ordering::Relaxed);
    }
    Duration::from_nanos(ELAPSED.load(Ordering::Relaxed))
}

/// What a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsedAnswer {
    /// The status; 0 where no head came.
    pub status: u16,
    /// The headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether it ended, as far as HTTP is concerned.
    pub has_ended: bool,
    /// How long it took.
    pub took: Duration,
    /// The targets that were asked, in order.
    pub asked: Vec<Arc<str>>,
}

/// A gateway that serves no one.
pub struct Rehearsal {
    runtime: LocalRuntime,
    node: Node,
    zones: TimeZoneDatabase,
    zone: TimeZone,
    /// Its classifier serves every play.
    model: Plan,
}

impl Rehearsal {
    /// Prepares to rehearse a config. The time of the whole process is virtual from now on.
    ///
    /// # Errors
    /// A gateway would refuse the config too, or this machine cannot start one.
    pub fn new(
        config: &Config,
        node: Node,
        zones: TimeZoneDatabase,
        zone: TimeZone,
    ) -> Result<Self, StartError> {
        let model = plan(harmless(config), &zones, &|_| None, false, None)?;
        LazyLock::force(&model.classifier);
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build_local(LocalOptions::default())
            .map_err(StartError::Threads)?;
        runtime.block_on(async { BEGAN.set(Some(Instant::now())) });
        replace_system_clock(elapsed);
        Ok(Self { runtime, node, zones, zone, model })
    }

    /// Sends these requests to chat completions, one after the other, and returns what the client gets.
    ///
    /// # Errors
    /// A gateway would refuse the config too.
    pub fn play(
        &self,
        config: &Config,
        store: Arc<dyn Store>,
        script: Script,
        requests: Vec<Vec<u8>>,
    ) -> Result<Vec<RehearsedAnswer>, StartError> {
        let plan = plan(harmless(config), &self.zones, &|_| None, false, Some(&self.model))?;
        let limit = plan.config.serve.deadline.saturating_add(PATIENCE);
        let ledger = Ledger::open(Arc::clone(&store), LedgerOptions::new(self.node.clone()))?;
        // A store that is away loads nothing, and a gateway serves without it.
        let _ = ledger.wait_loaded(LOAD_TIMEOUT);
        let texts = OperatorTexts { flags: String::new(), config: "koboshi.yaml".to_owned() };
        let stage = Arc::new(Stage::new(script));
        self.runtime.block_on(async {
            tokio::time::sleep(INTERMISSION).await;
            let state = SharedState::new(
                plan,
                Arc::new(ledger),
                store,
                Phrases::new()?,
                Log::silent(),
                self.zones.clone(),
                self.zone.clone(),
                SEED,
                texts,
            );
            let sim = Arc::new(SimProvider::on(Arc::clone(&stage)));
            let proxies = Arc::new(Matcher::builder().build());
            let core = CoreState::new(Arc::new(state), Upstream::new(None, proxies, sim), None);
            let mut answers = Vec::new();
            for body in requests {
                answers.push(answer(&core, body.into(), limit, &stage).await);
            }
            Ok(answers)
        })
    }
}

async fn answer(core: &Rc<CoreState>, body: Bytes, limit: Duration, stage: &Stage) -> RehearsedAnswer {
    let began = Instant::now();
    let mut got = RehearsedAnswer {
        status: 0,
        headers: Vec::new(),
        body: Vec::new(),
        has_ended: false,
        took: Duration::ZERO,
        asked: Vec::new(),
    };
    let mut future = edge::rehearse(core, body);
    got.has_ended = timeout(limit, read(&mut future, &mut got)).await.is_ok();
    drop(future);
    (got.took, got.asked) = (began.elapsed(), stage.take_asked());
    got
}

/// Reads an answer to its end.
async fn read(future: &mut ResponseFuture, got: &mut RehearsedAnswer) {
    if let Some(heading) = future.head().await {
        got.status = heading.status.as_u16();
        let lines = String::from_utf8_lossy(heading.lines.as_bytes()).into_owned();
        let pairs = lines.lines().filter_map(|line| line.split_once(": "));
        got.headers = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    }
    while let Some(piece) = poll_fn(|context| future.poll_piece(context)).await {
        got.body.extend_from_slice(&piece);
    }
}

/// A config that reads no key, asks for no token and sends no traces; its routes, limits and policies stay as they are.
fn harmless(config: &Config) -> Config {
    let mut config = config.clone();
    config.trace = TraceConfig::default();
    if config.providers.is_empty() {
        config.providers = named_by_routes(&config);
    }
    for provider in config.providers.values_mut().filter(|provider| provider.kind != ProviderKind::Sim) {
        make_harmless(provider);
    }
    config
}

/// The well-known providers that the routes name, where the environment would describe them.
fn named_by_routes(config: &Config) -> Named<ProviderConfig> {
    let routes = config.routes.values();
    let links = routes.flat_map(|route| route.chain.iter().chain(&route.simple_model));
    let names = links.chain(&config.degrade.simple_model).filter_map(|link| Some(link.split_once('/')?.0));
    names
        .filter_map(|name| Some((name.to_owned(), ProviderConfig::new(well_known::kind_of(name)?))))
        .collect()
}

fn make_harmless(provider: &mut ProviderConfig) {
    // Several keys stay several.
    let keys = provider.keys.len().max(1);
    provider.keys = (1..=keys).map(|number| Secret::new(format!("rehearsal-{number}"))).collect();
    provider.token_command = Vec::new();
    provider.credentials_file = None;
    provider.ca_file = None;
    if provider.kind == ProviderKind::Vertex {
        // It cannot do without a file of credentials; what differs otherwise is the address.
        provider.kind = ProviderKind::Openai;
        provider.base_url = Some(NOWHERE.to_owned());
        if provider.dialects.is_empty() {
            provider.dialects = vec![ProviderDialect::Gemini];
        }
    }
    // No address, or one whose variable is set elsewhere only: no one is asked there.
    let is_usable = match &provider.base_url {
        Some(address) => Origin::parse(address).is_ok(),
        None => provider.kind != ProviderKind::Azure,
    };
    if !is_usable {
        provider.base_url = Some(NOWHERE.to_owned());
    }
}
