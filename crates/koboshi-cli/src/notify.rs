//! `koboshi notify test`, and what notices need of the program: its HTTP client, its zones, its language.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anstream::stdout;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use koboshi_config::Config;
use koboshi_config::load::Unservable;
use koboshi_config::words::Text;
use koboshi_gateway::{gateways, known_now, post_json};
use koboshi_notify::{Http, HttpAnswer, HttpRequest, LocalFuture, RouteKeys, Surroundings, Tone, test};
use koboshi_report::phrase::Lang;
use koboshi_store::{MemoryPolicy, MemoryStore, Store};
use serde_json::json;

use crate::args::{ConfigFileArgs, Format, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, clock, settings, shell};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi notify test ops                    does a notice arrive at the channel `ops` of koboshi.yaml?
  koboshi notify test ops --format json      for programs

Channels are under `notify.channels` in the config; docs/notices.md shows them.

Exit status: 0 the channel took it, 1 it did not, 2 there is no such channel, or the config cannot be used.";

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test notice to a channel, and say whether it was taken
    #[command(after_help = EXAMPLES)]
    Test(TestArgs),
}

impl NotifyCommand {
    /// The config file of the command line.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        let Self::Test(args) = self;
        args.config.file.as_deref()
    }
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The name of the channel, as `notify.channels` has it
    channel: String,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(command: &NotifyCommand) -> Result<Exit, Failure> {
    let NotifyCommand::Test(args) = command;
    // A secret that is only in the gateway's environment would be missing in the request.
    let config = settings::load_to_serve(args.config.file.as_deref(), &args.lang)?;
    let say = Say::new(args.lang.get(&config))?;
    let name = args.channel.as_str();
    let Some(channel) = config.channels.get(name) else {
        let known: Vec<&String> = config.channels.keys().collect();
        let id = if known.is_empty() { "notify-no-channels" } else { "notify-unknown-channel" };
        return Err(Failure::new(say.text(id, &[("channel", name), ("known", &say.list(&known))])));
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryPolicy::default()));
    let around = surroundings(&store, "cli".to_owned(), say.lang, String::new(), Arc::new(|_, _| {}));
    let result = test(&around, &config, name, channel);
    let (kind, why) = (channel.kind.name(), result.as_ref().err().map(|error| error.why.as_str()));
    match args.format {
        Format::Json => {
            let said = json!({"channel": name, "kind": kind, "delivered": why.is_none(), "why": why});
            writeln!(stdout().lock(), "{said}")?;
        }
        Format::Text => {
            let id = if why.is_none() { "notify-sent" } else { "notify-not-sent" };
            let shown = [("channel", name), ("kind", kind), ("why", why.unwrap_or_default())];
            writeln!(stdout().lock(), "{}", say.text(id, &shown))?;
        }
    }
    Ok(if result.is_ok() { Exit::Good } else { Exit::Found })
}

/// Zones of channels that do not exist: quiet hours would be those of another place.
pub(crate) fn unknown_zones(config: &Config) -> Vec<Unservable> {
    let zones = clock::zones();
    let wrong = config.channels.iter().filter_map(|(name, channel)| {
        let zone = channel.zone.as_deref().filter(|zone| zones.get(zone).is_err())?;
        let why = Text::new(
            format!("there is no time zone `{zone}`: write it like `Asia/Tokyo` or `UTC`"),
            format!("`{zone}` というタイムゾーンはありません。`Asia/Tokyo` や `UTC` のように書いてください"),
        );
        Some(Unservable { key: "notify.channels.*.zone", entry: name.clone(), why })
    });
    wrong.collect()
}

/// Where lines for the log go.
type LogLine = Arc<dyn Fn(Tone, &str) + Send + Sync>;

/// What notices need of this program. The flags lead the commands that a notice names to the same store.
pub(crate) fn surroundings(
    store: &Arc<dyn Store>,
    node: String,
    lang: Lang,
    flags: String,
    log: LogLine,
) -> Surroundings {
    let zone = clock::now().time_zone().clone();
    Surroundings {
        store: Arc::clone(store),
        node,
        http: Arc::new(Way),
        resume: Arc::new(move |key| format!("koboshi resume {}{flags}", shell::word(key))),
        routes: Arc::new(routes),
        log,
        zones: clock::zones(),
        zone,
        lang,
    }
}

/// The routes of the gateways that use this store, with what stops each of their targets.
fn routes(store: &dyn Store, now: Timestamp) -> Option<Vec<RouteKeys>> {
    let gateways = gateways(store, now).ok()?;
    // Where none runs, no client is waiting.
    if !gateways.iter().any(|gateway| gateway.is_running(now)) {
        return Some(Vec::new());
    }
    let known = known_now(store, &gateways, now).ok()?;
    let routes = known.routes().into_iter();
    Some(routes.map(|(name, targets)| RouteKeys { name, targets }).collect())
}

/// The way out that requests to providers take.
struct Way;

impl Http for Way {
    fn post(&self, request: HttpRequest) -> LocalFuture<Result<HttpAnswer, String>> {
        let HttpRequest { url, headers, body } = request;
        Box::pin(async move {
            let posted = post_json(url, headers, body, MAX_ANSWER).await?;
            let body = String::from_utf8_lossy(&posted.body).into_owned();
            Ok(HttpAnswer { status: posted.status, retry_after: posted.retry_after, body })
        })
    }
}
