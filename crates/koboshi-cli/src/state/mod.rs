//! The commands around what is remembered: `status`, `resume`, `cool`, `journal`.
//!
//! They work on the store itself, a file or Redis, or ask a running gateway (`--url`); what they print is the same. They block: a person
//! waits for the answer and wants to know that it is written. What an operator does is noted in the journal.

pub(crate) mod args;
mod journal;
mod person;
mod remote;
mod say;
mod source;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use koboshi_config::Config;
use koboshi_config::config::{StoreConfig, StorePlace};
use koboshi_config::file::locate;
use koboshi_config::words::{Text, Words, words};
use koboshi_store::{
    MemoryPolicy, MemoryStore, Node, RedisPolicy, RedisStore, SqlitePolicy, SqliteStore, Store, StoreError,
};

use crate::{Failure, settings};

use args::StateArgs;
use say::Say;
use source::Source;

pub(crate) use journal::run as journal;
pub(crate) use person::{cool, resume};
pub(crate) use status::run as status;

/// What `--store` is called where there is none to share.
const MEMORY: &str = "memory";

/// What a gateway can do without the usual file.
const GATEWAY_HINT: Words = words(
    "
  hint: choose a store
    --store PATH      a file that this user can write (or `store: {path: PATH}` in koboshi.yaml)
    --store memory    no file, for a read-only container: a restart forgets what was learned (or `store: memory`)",
    "
  ヒント: ストアを選んでください
    --store PATH      このユーザーが書き込めるファイル（koboshi.yaml の `store: {path: PATH}` でも指定できます）
    --store memory    ファイルを使わない（読み取り専用のコンテナー向け。再起動すると、学習した内容は失われます。`store: memory` でも指定できます）",
);

/// The name under which an operator's orders are noted.
fn node() -> Result<Node, Failure> {
    format!("cli/{}", std::process::id()).parse().map_err(|_| Failure::new("this process has no name"))
}

/// What a command works on.
pub(crate) struct Found {
    source: Source,
    /// The words for the reader.
    say: Say,
}

impl Found {
    fn look(args: &StateArgs) -> Result<Self, Failure> {
        if let Some(url) = asked_url(args)? {
            // Of the config only the language is of use, and the gateway may have another one.
            let config =
                settings::load_without_keys(args.config.file.as_deref(), &args.lang).unwrap_or_default();
            let source = Source::Remote(remote::Gateway::at(&url, args.admin_key_file.as_deref())?);
            return Ok(Self { source, say: Say::new(args, &config)? });
        }
        let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
        let has_config = locate(args.config.file.as_deref(), &|name| std::env::var(name).ok()).is_some();
        let place = find(asked_store(args).as_deref(), &config.store.place)?;
        let say = Say::new(args, &config)?;
        Ok(Self { source: Source::Store(Box::new(source::Shared::look(place, config, has_config)?)), say })
    }
}

/// The gateway that is to be asked: a flag beats the environment, and a flag for the store beats a gateway of the environment.
fn asked_url(args: &StateArgs) -> Result<Option<String>, Failure> {
    if let Some(url) = &args.url {
        return Ok(Some(url.clone()));
    }
    let url = variable("KOBOSHI_URL").filter(|_| args.store.is_none());
    if url.is_some() && variable("KOBOSHI_STORE").is_some() {
        let both = words(
            "KOBOSHI_URL and KOBOSHI_STORE are both set: say with --url or --store which one is meant",
            "KOBOSHI_URL と KOBOSHI_STORE の両方が設定されています。どちらを使うかを --url または --store で指定してください",
        );
        return Err(Failure::of(both.into()));
    }
    Ok(url)
}

/// The store that is asked for, by flag or environment.
fn asked_store(args: &StateArgs) -> Option<String> {
    args.store.clone().filter(|asked| !asked.is_empty()).or_else(|| variable("KOBOSHI_STORE"))
}

/// A variable that says something: an empty one is none.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The store of a gateway: what the flag, the config or the user's folder says.
///
/// A file that cannot be opened ends the start: a gateway that went on in memory would lose what an operator told it.
pub(crate) fn for_gateway(asked: Option<&str>, config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let asked = asked.filter(|asked| !asked.is_empty());
    let in_memory = asked.map_or(config.store.place == StorePlace::Memory, |asked| asked == MEMORY);
    if in_memory {
        return Ok(Arc::new(MemoryStore::new(MemoryPolicy::default())));
    }
    let place = find(asked, &config.store.place).map_err(|failure| failure.and(&GATEWAY_HINT.into()))?;
    open_whole(&place, &config.store).map_err(|error| match (&error, &place) {
        (StoreError::Failed { .. }, Where::File(_)) => Failure::from(error).and(&GATEWAY_HINT.into()),
        _ => error.into(),
    })
}

/// The store of agents, and the folder of their runs.
pub(crate) fn for_runs(asked: Option<&str>, config: &Config) -> Result<(Arc<dyn Store>, PathBuf), Failure> {
    let place = find(asked.filter(|asked| !asked.is_empty()), &config.store.place)?;
    Ok((Arc::from(open(&place, &config.store)?), runs_of(&place)))
}

/// The folder of runs: beside a store file, else where this user's is.
pub(crate) fn runs_folder(asked: Option<&str>, config: &Config) -> Result<PathBuf, Failure> {
    Ok(runs_of(&find(asked.filter(|asked| !asked.is_empty()), &config.store.place)?))
}

fn runs_of(place: &Where) -> PathBuf {
    let folder = match place {
        Where::File(path) => path.parent().map(Path::to_owned),
        Where::Redis { .. } => usual_file().ok().and_then(|path| path.parent().map(Path::to_owned)),
    };
    folder.unwrap_or_else(std::env::temp_dir).join("runs")
}

/// The name of a supervisor: its machine has one for a folder of runs.
pub(crate) fn supervisor_node() -> Result<Node, Failure> {
    format!("supervisor/{}:{}", machine(), std::process::id())
        .parse()
        .map_err(|_| Failure::new("this process has no name"))
}

/// The name of a command that is run once.
pub(crate) fn run_node() -> Result<Node, Failure> {
    format!("run/{}:{}", machine(), std::process::id())
        .parse()
        .map_err(|_| Failure::new("this process has no name"))
}

/// `2h`, `90m`: a length of time that a person types.
pub(crate) fn length(text: &str) -> Option<std::time::Duration> {
    say::parse_length(text)
}

/// Opens a store for long. A file is looked through first: damage that is met later would be nobody's to mend while it runs.
fn open_whole(place: &Where, config: &StoreConfig) -> Result<Arc<dyn Store>, StoreError> {
    let Where::File(path) = place else { return Ok(Arc::from(open(place, config)?)) };
    let store = open_file(path, config)?;
    store.check()?;
    Ok(Arc::new(store))
}

/// The name of a gateway: machine and port, which no other process has at the same time and the next start has again, so that
/// it finds what it knew.
pub(crate) fn gateway_node(port: u16) -> Result<Node, Failure> {
    format!("gateway/{}:{port}", machine()).parse().map_err(|_| Failure::new("this process has no name"))
}

/// The name of this machine, fit for the name of a node.
fn machine() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine: String =
        machine.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).take(100).collect();
    if machine.is_empty() { std::process::id().to_string() } else { machine }
}

/// A file that cannot be looked at is not a file that is not there.
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

fn find(asked: Option<&str>, configured: &StorePlace) -> Result<Where, Failure> {
    Ok(match (asked, configured) {
        (Some(asked), configured) if is_redis(asked) => {
            let prefix = match configured {
                StorePlace::Redis { prefix, .. } => prefix.as_str(),
                _ => StorePlace::DEFAULT_PREFIX,
            };
            Where::Redis { url: asked.to_owned(), prefix: prefix.to_owned() }
        }
        (Some(MEMORY), _) | (None, StorePlace::Memory) => {
            let in_memory = words(
                "the store is `memory` (by `store: memory` in the config, or by --store): only the gateway itself knows what it has learned. Ask it with --url, such as --url http://127.0.0.1:4141 (or KOBOSHI_URL), or name another store with --store",
                "ストアは `memory` です（設定の `store: memory`、または --store による）。学習した内容は、ゲートウェイ自身だけが知っています。--url http://127.0.0.1:4141 のようにゲートウェイを指定するか（KOBOSHI_URL でも可）、--store で別のストアを指定してください",
            );
            return Err(Failure::of(in_memory.into()));
        }
        (Some(asked), _) => Where::File(PathBuf::from(asked)),
        (None, StorePlace::File(path)) => Where::File(path.clone()),
        (None, StorePlace::Redis { url, prefix }) => {
            Where::Redis { url: url.expose().to_owned(), prefix: prefix.clone() }
        }
        (None, _) => Where::File(usual_file()?),
    })
}

fn is_redis(place: &str) -> bool {
    // Whatever looks like an address is none of a file, so that a slip in it is not made into one.
    place.contains("://")
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
    SqliteStore::open(path, SqlitePolicy { cache_bytes: config.cache.most_bytes, ..SqlitePolicy::default() })
}

fn open(place: &Where, config: &StoreConfig) -> Result<Box<dyn Store>, StoreError> {
    Ok(match place {
        Where::File(path) => Box::new(open_file(path, config)?),
        Where::Redis { url, prefix } => {
            let cache_bytes = config.cache.most_bytes;
            let policy = RedisPolicy { prefix: prefix.clone(), cache_bytes, ..RedisPolicy::default() };
            Box::new(RedisStore::new(url, policy)?)
        }
    })
}
