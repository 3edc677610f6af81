//! The commands around what is remembered: `status`, `resume`, `cool`, `journal`.
//!
//! They talk to the store itself, synchronously: a person waits for the answer and wants to know that it is written.
//! All work on a file and on Redis alike. What a person does is noted in the journal.

pub(crate) mod args;
mod journal;
mod person;
mod row;
mod say;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use koboshi_config::Config;
use koboshi_config::config::{StoreConfig, StorePlace};
use koboshi_gateway::retention;
use koboshi_store::{
    Loaded, MemoryPolicy, MemoryStore, Node, RedisPolicy, RedisStore, Retention, SqlitePolicy, SqliteStore,
    Store, StoreError,
};

use crate::{Failure, settings};

use args::StateArgs;
use say::Say;

pub(crate) use journal::run as journal;
pub(crate) use person::{cool, resume};
pub(crate) use status::run as status;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// The name under which people's doings are noted.
fn node() -> Result<Node, Failure> {
    format!("cli/{}", std::process::id()).parse().map_err(|_| Failure::new("this process has no name"))
}

/// A store that was looked for.
pub(crate) struct Found {
    /// None where nothing has been remembered yet: looking must not create a file.
    store: Option<Box<dyn Store>>,
    /// What to call it.
    place: String,
    /// How long the journal is kept.
    keep: Retention,
    /// The words for the reader.
    say: Say,
}

impl Found {
    fn look(args: &StateArgs) -> Result<Self, Failure> {
        let (place, config) = place(args)?;
        let store = match &place {
            Where::File(path) if !exists(path)? => None,
            place => Some(open(place, &config.store)?),
        };
        let name = match (&store, &place) {
            (_, Where::File(path)) => path.display().to_string(),
            (Some(store), Where::Redis { .. }) => store.place().to_owned(),
            (None, Where::Redis { .. }) => "Redis".to_owned(),
        };
        let say = Say::new(args, &config)?;
        Ok(Self { store, place: name, keep: retention(&config.store), say })
    }

    /// Everything that is remembered.
    fn load(&self) -> Result<Loaded, Failure> {
        Ok(self.store.as_ref().map_or_else(|| Ok(Loaded::default()), |store| store.load())?)
    }
}

/// The store, made if need be, and the words for the reader.
fn make(args: &StateArgs) -> Result<(Box<dyn Store>, Say), Failure> {
    let (place, config) = place(args)?;
    Ok((open(&place, &config.store)?, Say::new(args, &config)?))
}

/// The store of a gateway: what the flag, the config or the user's folder says.
pub(crate) fn for_gateway(asked: Option<&str>, config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let asked = asked.filter(|asked| !asked.is_empty());
    if asked.is_none() && config.store.place == StorePlace::Memory {
        return Ok(Arc::new(MemoryStore::new(MemoryPolicy::default())));
    }
    Ok(Arc::from(open(&find(asked, &config.store.place)?, &config.store)?))
}

/// The name of a gateway: machine and port, which no other process has at the same time and the next start has again, so that
/// it finds what it knew.
pub(crate) fn gateway_node(port: u16) -> Result<Node, Failure> {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine: String =
        machine.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).take(100).collect();
    let machine = if machine.is_empty() { std::process::id().to_string() } else { machine };
    format!("gateway/{machine}:{port}").parse().map_err(|_| Failure::new("this process has no name"))
}

/// A file that cannot be looked at is not a file that is not there.
fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists()
        .map_err(|error| Failure::new(format!("cannot look at the store {}: {error}", path.display())))
}

enum Where {
    File(PathBuf),
    Redis { url: String, prefix: String },
}

/// Flag or `KOBOSHI_STORE`, else the config, else the usual file.
fn place(args: &StateArgs) -> Result<(Where, Config), Failure> {
    let config = settings::load(args.config.file.as_deref())?;
    // An empty variable is none.
    let asked = args.store.as_deref().filter(|asked| !asked.is_empty());
    Ok((find(asked, &config.store.place)?, config))
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
        (Some(asked), _) => Where::File(PathBuf::from(asked)),
        (None, StorePlace::Memory) => {
            return Err(Failure::new(
                "the config says `store: memory`: what was learned stays in the process that learned it, and cannot be seen from here. Set `store.path` or `store.redis`, or name a store with --store",
            ));
        }
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
        Failure::new("there is no home folder to keep the store in: name a file with --store or set HOME")
    })?;
    Ok(state.join("koboshi").join("koboshi.db"))
}

fn open(place: &Where, config: &StoreConfig) -> Result<Box<dyn Store>, Failure> {
    let cache_bytes = config.cache.most_bytes;
    Ok(match place {
        Where::File(path) => {
            Box::new(SqliteStore::open(path, SqlitePolicy { cache_bytes, ..SqlitePolicy::default() })?)
        }
        Where::Redis { url, prefix } => {
            let policy = RedisPolicy { prefix: prefix.clone(), cache_bytes, ..RedisPolicy::default() };
            Box::new(RedisStore::new(url, policy)?)
        }
    })
}
