//! The commands for the stored state: `status`, `top`, `resume`, `cool`, `journal`.
//!
//! They work on the store itself, a file or Redis, or ask a running gateway (`--url`); their output is the same. They block: an operator
//! waits for the answer and wants to know that it is written. Orders of operators are written to the journal.

pub(crate) mod args;
mod journal;
mod person;
mod remote;
mod say;
mod source;
mod spend;
mod status;
mod top;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use koboshi_config::Config;
use koboshi_config::config::{StoreConfig, StorePlace};
use koboshi_config::file::locate;
use koboshi_config::words::{Text, Words, words};
use koboshi_gateway::Reach;
use koboshi_store::{
    MemoryPolicy, MemoryStore, Node, RedisPolicy, RedisStore, SqlitePolicy, SqliteStore, Store, StoreError,
};

use crate::{Failure, settings};

use args::PlaceArgs;
use say::Say;
use source::Source;

pub(crate) use journal::run as journal;
pub(crate) use person::{cool, pause, resume};
pub(crate) use remote::Gateway;
pub(crate) use say::plain;
pub(crate) use spend::run as spend;
pub(crate) use status::run as status;
pub(crate) use top::run as top;

/// Why agents and their commands need another store.
const RUNS_NEED_STORE: Words = words(
    "the store is `memory` (by `store: memory` in the config, or by --store), which is gone with its process: agents need a file or Redis. Name one with --store, such as `--store koboshi.db`",
    "ストアは `memory` です（設定の `store: memory`、または --store による）。プロセスとともに失われるため、エージェントにはファイルか Redis が必要です。--store で指定してください（例: `--store koboshi.db`）",
);

/// What to do without the default file.
const GATEWAY_HINT: Words = words(
    "
  hint: choose a store
    --store PATH      a file that this user can write (or `store: {path: PATH}` in koboshi.yaml)
    --store memory    no file, for a read-only container: a restart forgets what was learned (or `store: memory`)",
    "
  ヒント: ストアを選んでください
    --store PATH      このユーザーが書き込めるファイル（koboshi.yaml の `store: {path: PATH}` でも指定できます）
    --store memory    ファイルを使わない（読み取り専用のコンテナ向け。再起動すると、学習した内容は失われます。`store: memory` でも指定できます）",
);

/// The name of the node of an operator's orders.
fn node() -> Result<Node, Failure> {
    format!("cli/{}", std::process::id()).parse().map_err(|_| Failure::new("this process has no name"))
}

/// What a command works on.
pub(crate) struct CommandContext {
    source: Source,
    /// The texts for the reader.
    say: Say,
}

impl CommandContext {
    fn open(args: &PlaceArgs) -> Result<Self, Failure> {
        if let Some(url) = asked_url(args.url.as_deref(), args.store.as_deref())? {
            // Of the config only the language matters, and the gateway may have another one.
            let config =
                settings::load_without_keys(args.config.file.as_deref(), &args.lang).unwrap_or_default();
            let lang = args.lang.get(&config);
            let source = Source::Remote(remote::Gateway::at(&url, args.admin_key_file.as_deref(), lang)?);
            return Ok(Self { source, say: Say::new(args, &config)? });
        }
        let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
        let has_config = locate(args.config.file.as_deref(), &|name| std::env::var(name).ok()).is_some();
        let place = find(asked_store(args.store.as_deref()).as_deref(), &config)?;
        let say = Say::new(args, &config)?;
        Ok(Self {
            source: Source::Store(Box::new(source::StoreSource::open(place, config, has_config)?)),
            say,
        })
    }
}

/// The gateway to ask: a flag beats the environment, and a flag for the store beats a gateway of the environment.
pub(crate) fn asked_url(url: Option<&str>, store: Option<&str>) -> Result<Option<String>, Failure> {
    if let Some(url) = url {
        return Ok(Some(url.to_owned()));
    }
    let url = variable("KOBOSHI_URL").filter(|_| store.is_none());
    if url.is_some() && variable("KOBOSHI_STORE").is_some() {
        let both = words(
            "KOBOSHI_URL and KOBOSHI_STORE are both set: say with --url or --store which one is meant",
            "KOBOSHI_URL と KOBOSHI_STORE の両方が設定されています。どちらを使うかを --url または --store で指定してください",
        );
        return Err(Failure::of(both.into()));
    }
    Ok(url)
}

/// The store that the user names, by flag or environment.
pub(crate) fn asked_store(store: Option<&str>) -> Option<String> {
    store.filter(|asked| !asked.is_empty()).map(str::to_owned).or_else(|| variable("KOBOSHI_STORE"))
}

/// The value of a variable; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The store of a gateway: by the flag, the config or the user's folder.
///
/// A file that cannot be opened ends the start: a gateway that continued in memory would lose the orders of operators.
pub(crate) fn for_gateway(asked: Option<&str>, config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let asked = asked.filter(|asked| !asked.is_empty());
    if is_memory(asked, config) {
        return Ok(Arc::new(MemoryStore::new(MemoryPolicy::default())));
    }
    let place = find(asked, config).map_err(|failure| failure.and(&GATEWAY_HINT.into()))?;
    open_whole(&place, &config.store).map_err(|error| match (&error, &place) {
        (StoreError::Failed { .. }, Where::File(_)) => Failure::from(error).and(&GATEWAY_HINT.into()),
        _ => error.into(),
    })
}

/// How an operator's command finds the store of a gateway, from any folder. The address of a Redis may have a password, so the gateway
/// itself is named instead.
pub(crate) fn reach(asked: Option<&str>, config: &Config) -> Reach {
    let asked = asked.filter(|asked| !asked.is_empty());
    match find(asked, config) {
        Ok(Where::File(path)) if usual_file().is_ok_and(|usual| usual == path) => Reach::Usual,
        Ok(Where::File(path)) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            Reach::Flags(crate::shell::flags([("--store", Some(path.display().to_string()))]))
        }
        Ok(Where::Redis { .. }) | Err(_) => Reach::Url,
    }
}

/// Whether a restart forgets the store.
pub(crate) fn is_memory(asked: Option<&str>, config: &Config) -> bool {
    let asked = asked.filter(|asked| !asked.is_empty());
    place_of(asked, config).is_ok_and(|place| place == StorePlace::Memory)
}

/// Whether several machines may use the store.
pub(crate) fn is_fleet(asked: Option<&str>, config: &Config) -> bool {
    let asked = asked.filter(|asked| !asked.is_empty());
    place_of(asked, config).is_ok_and(|place| place.is_shared_by_machines())
}

/// The store of agents, and the folder of their runs.
pub(crate) fn for_runs(asked: Option<&str>, config: &Config) -> Result<(Arc<dyn Store>, PathBuf), Failure> {
    refuse_memory(asked, config)?;
    let place = find(asked.filter(|asked| !asked.is_empty()), config)?;
    Ok((Arc::from(open(&place, &config.store)?), runs_of(&place)))
}

/// The folder of runs: beside a store file, else in this user's default folder.
pub(crate) fn runs_folder(asked: Option<&str>, config: &Config) -> Result<PathBuf, Failure> {
    refuse_memory(asked, config)?;
    Ok(runs_of(&find(asked.filter(|asked| !asked.is_empty()), config)?))
}

/// Runs of agents outlast the process that keeps them, and so must what is known of them.
fn refuse_memory(asked: Option<&str>, config: &Config) -> Result<(), Failure> {
    if is_memory(asked, config) {
        return Err(Failure::of(RUNS_NEED_STORE.into()));
    }
    Ok(())
}

fn runs_of(place: &Where) -> PathBuf {
    let folder = match place {
        Where::File(path) => path.parent().map(Path::to_owned),
        Where::Redis { .. } => usual_file().ok().and_then(|path| path.parent().map(Path::to_owned)),
    };
    folder.unwrap_or_else(std::env::temp_dir).join("runs")
}

/// The node of a supervisor: a machine has one for a folder of runs.
pub(crate) fn supervisor_node() -> Result<Node, Failure> {
    format!("supervisor/{}:{}", machine(), std::process::id())
        .parse()
        .map_err(|_| Failure::new("this process has no name"))
}

/// The node of a command that is run once.
pub(crate) fn run_node() -> Result<Node, Failure> {
    format!("run/{}:{}", machine(), std::process::id())
        .parse()
        .map_err(|_| Failure::new("this process has no name"))
}

/// `2h`, `90m`: a length of time as typed.
pub(crate) fn length(text: &str) -> Option<std::time::Duration> {
    say::parse_length(text)
}

/// Opens a store for a long-running process. A file is checked first: no one could repair damage that is found later.
fn open_whole(place: &Where, config: &StoreConfig) -> Result<Arc<dyn Store>, StoreError> {
    let Where::File(path) = place else { return Ok(Arc::from(open(place, config)?)) };
    let store = open_file(path, config)?;
    store.check()?;
    Ok(Arc::new(store))
}

/// The node of a gateway: machine and port, which no other process has at the same time and the next start has again, so that
/// it finds its records.
pub(crate) fn gateway_node(port: u16) -> Result<Node, Failure> {
    format!("gateway/{}:{port}", machine()).parse().map_err(|_| Failure::new("this process has no name"))
}

/// The name of this machine, valid as the name of a node.
pub(crate) fn machine() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine: String =
        machine.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).take(100).collect();
    if machine.is_empty() { std::process::id().to_string() } else { machine }
}

/// Whether a file exists. One that cannot be examined is an error, not a missing file.
fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| {
        let path = path.display();
        Failure::of(Text::new(
            format!("cannot look at the store {path}: {error}"),
            format!("ストア {path} を確認できません: {error}"),
        ))
    })
}

enum Where {
    File(PathBuf),
    Redis { url: String, prefix: String },
}

fn find(asked: Option<&str>, config: &Config) -> Result<Where, Failure> {
    Ok(match place_of(asked, config)? {
        StorePlace::Usual => Where::File(usual_file()?),
        StorePlace::File(path) => Where::File(path),
        StorePlace::Redis { url, prefix } => Where::Redis { url: url.expose().to_owned(), prefix },
        StorePlace::Memory => {
            let url = url_of(config);
            return Err(Failure::of(Text::new(
                format!(
                    "the store is `memory` (by `store: memory` in the config, or by --store): only the gateway itself knows what it has learned. Ask it with --url {url} (or KOBOSHI_URL), or name another store with --store"
                ),
                format!(
                    "ストアは `memory` です（設定の `store: memory`、または --store による）。学習した内容は、ゲートウェイのメモリにしかありません。--url {url} でゲートウェイを指定するか（KOBOSHI_URL でも可）、--store で別のストアを指定してください"
                ),
            )));
        }
    })
}

/// The place of the store: the one that `--store` names, with the prefix of the config, else that of the config.
fn place_of(asked: Option<&str>, config: &Config) -> Result<StorePlace, Failure> {
    let configured = &config.store.place;
    let Some(asked) = asked else { return Ok(configured.clone()) };
    let Some(mut place) = StorePlace::named(asked) else { return Err(no_store(asked)) };
    if let (StorePlace::Redis { prefix, .. }, Some(configured)) = (&mut place, configured.prefix()) {
        configured.clone_into(prefix);
    }
    Ok(place)
}

/// The scheme is repeated and nothing else: an address may hold a password.
fn no_store(asked: &str) -> Failure {
    let scheme = asked.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let scheme = if is_scheme { scheme } else { "" };
    Failure::of(Text::new(
        format!(
            "--store (or KOBOSHI_STORE) is {scheme}://…: it is no address of a Redis or Valkey server. Write redis://host:6379/0, rediss:// for TLS, unix:///path, redis+sentinel://host,host/name or redis+cluster://host,host; or name a file, or `memory`"
        ),
        format!(
            "--store（または KOBOSHI_STORE）の {scheme}://… は、Redis のアドレスではありません。redis://host:6379/0（TLS なら rediss://）、unix:///path、redis+sentinel://host,host/name、redis+cluster://host,host のいずれかの形で書くか、ファイルまたは `memory` を指定してください"
        ),
    ))
}

/// The address of the gateway of a config, for a caller on its machine.
fn url_of(config: &Config) -> String {
    let mut listen = config.serve.listen;
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("{}://{listen}", config.serve.scheme())
}

/// The file that the processes of one user share: `koboshi/koboshi.db` in `$XDG_STATE_HOME` or `~/.local/state`.
fn usual_file() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| folder("HOME").map(|home| home.join(".local").join("state")));
    let state = state.ok_or_else(|| {
        let homeless = words(
            "there is no home folder to keep the store in: name a file with --store, or set HOME",
            "ストアを置くホームフォルダーがありません。--store でファイルを指定するか、HOME を設定してください",
        );
        Failure::of(homeless.into())
    })?;
    Ok(state.join("koboshi").join("koboshi.db"))
}

fn open_file(path: &Path, config: &StoreConfig) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, SqlitePolicy { cache_bytes: config.cache.max_bytes, ..SqlitePolicy::default() })
}

fn open(place: &Where, config: &StoreConfig) -> Result<Box<dyn Store>, StoreError> {
    Ok(match place {
        Where::File(path) => Box::new(open_file(path, config)?),
        Where::Redis { url, prefix } => {
            let cache_bytes = config.cache.max_bytes;
            let policy = RedisPolicy { prefix: prefix.clone(), cache_bytes, ..RedisPolicy::default() };
            Box::new(RedisStore::new(url, policy)?)
        }
    })
}
