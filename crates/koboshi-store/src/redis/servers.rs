//! Where the server is: at one address, where Sentinels say, or the node of a Cluster that has our keys.
//!
//! Who leads a set may change at any time, so every new connection asks for it. A server that Sentinels name is asked itself too: one that has
//! just been replaced may still be named by those that have not noticed. All keys of a fleet have one hash tag, so that they are on one node of
//! a Cluster and every script finds its keys there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError,
    RedisResult, Value,
};

/// The most addresses of one set.
const MAX_ADDRESSES: usize = 16;
const SENTINEL_PORT: u16 = 26379;
const NODE_PORT: u16 = 6379;

/// Where to look for the server.
pub(super) enum Servers {
    One(Box<Client>),
    Sentinels {
        sentinels: Addresses,
        /// What they call the server.
        name: String,
        /// Password, database and TLS of the server; its address is not known before they are asked.
        server: Box<ConnectionInfo>,
    },
    Cluster(Addresses),
}

/// Addresses of which any will do; the one that answered last is asked first.
pub(super) struct Addresses {
    all: Vec<ConnectionInfo>,
    last: AtomicUsize,
}

impl Addresses {
    fn of(all: Vec<ConnectionInfo>) -> Option<Self> {
        (!all.is_empty() && all.len() <= MAX_ADDRESSES).then(|| Self { all, last: AtomicUsize::new(0) })
    }

    /// The first success.
    fn find<R>(&self, ask: impl Fn(&ConnectionInfo) -> RedisResult<R>) -> RedisResult<R> {
        let first = self.last.load(Ordering::Relaxed);
        let mut failed = None;
        for turn in 0..self.all.len() {
            let at = (first + turn) % self.all.len();
            let Some(info) = self.all.get(at) else { continue };
            match ask(info) {
                Ok(found) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| away("no address is known")))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.all.iter().map(|info| shown(info.addr())).collect();
        names.join(", ")
    }
}

impl Servers {
    /// The servers that an address names; none where it cannot be used.
    pub(super) fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        match scheme.split_once('+') {
            Some((base, "sentinel")) => Self::of_sentinels(base, rest),
            Some((base, "cluster")) => {
                let parts = Parts::of(rest, NODE_PORT)?;
                let at = |server: &String| info(base, parts.user, server, "", parts.query);
                let all: Option<Vec<_>> = parts.servers.iter().map(at).collect();
                // A Cluster has no other database.
                all.filter(|_| matches!(parts.path, "" | "0")).and_then(Addresses::of).map(Self::Cluster)
            }
            _ => {
                Client::open(quiet(url.into_connection_info().ok()?)).ok().map(|one| Self::One(Box::new(one)))
            }
        }
    }

    fn of_sentinels(base: &str, rest: &str) -> Option<Self> {
        let parts = Parts::of(rest, SENTINEL_PORT)?;
        let (name, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
        let (own, query) = parts.sentinel_user();
        let at = |server: &String| info(base, &own, server, "", "");
        let sentinels = Addresses::of(parts.servers.iter().map(at).collect::<Option<_>>()?)?;
        let server = Box::new(info(base, parts.user, parts.servers.first()?, database, &query)?);
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        is_name.then(|| Self::Sentinels { sentinels, name: name.to_owned(), server })
    }

    /// What to call them in messages; holds no password.
    pub(super) fn place(&self) -> String {
        match self {
            Self::One(client) => format!("Redis at {}", client.get_connection_info().addr()),
            Self::Sentinels { sentinels, name, .. } => {
                format!("Redis {name} by the Sentinels at {}", sentinels.names())
            }
            Self::Cluster(nodes) => format!("Redis Cluster at {}", nodes.names()),
        }
    }

    /// What all keys begin with: in a Cluster with a hash tag.
    pub(super) fn prefix(&self, prefix: &str) -> String {
        let has_tag = prefix.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if !matches!(self, Self::Cluster(_)) || has_tag.is_some_and(|(tag, _)| !tag.is_empty()) {
            return prefix.to_owned();
        }
        let bare = prefix.trim_end_matches(':').replace(['{', '}'], "");
        format!("{{{}}}:", if bare.is_empty() { "koboshi" } else { &bare })
    }

    /// A connection to the server that takes writes of keys that begin like this.
    pub(super) fn connect(&self, prefix: &str, limit: Duration) -> RedisResult<Connection> {
        match self {
            Self::One(client) => with_limit(client, limit),
            Self::Sentinels { sentinels, name, server } => sentinels.find(|sentinel| {
                let (host, port) = named(&mut open(sentinel.clone(), limit)?, name)?;
                let mut connection = open(at(server, &host, port), limit)?;
                if is_replica(&mut connection) {
                    return Err(away("the server that a Sentinel named is a replica"));
                }
                Ok(connection)
            }),
            Self::Cluster(nodes) => nodes.find(|node| {
                let mut connection = open(node.clone(), limit)?;
                match owner(&mut connection, prefix)? {
                    (host, port) if host.is_empty() => open(at(node, host_of(node), port), limit),
                    (host, port) => open(at(node, &host, port), limit),
                }
            }),
        }
    }

    /// A connection to the node of a Cluster that an answer pointed at.
    pub(super) fn connect_to(&self, address: &str, limit: Duration) -> Option<RedisResult<Connection>> {
        let Self::Cluster(nodes) = self else { return None };
        let node = nodes.all.first()?;
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.is_empty() { host_of(node) } else { host.trim_matches(['[', ']']) };
        Some(open(at(node, host, port.parse().ok()?), limit))
    }
}

/// An address as it is written in a configuration: the driver leaves out the brackets of IPv6.
fn shown(address: &ConnectionAddr) -> String {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }
            if host.contains(':') && !host.starts_with('[') =>
        {
            format!("[{host}]:{port}")
        }
        other => other.to_string(),
    }
}

/// The parts of an address with several servers.
struct Parts<'u> {
    user: &'u str,
    servers: Vec<String>,
    path: &'u str,
    query: &'u str,
}

impl<'u> Parts<'u> {
    fn of(rest: &'u str, port: u16) -> Option<Self> {
        let (servers, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, servers) = servers.rsplit_once('@').unwrap_or(("", servers));
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let with_port = |server: &str| {
            let has_port = server.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
            let is_empty = server.is_empty() || server.starts_with(':');
            (!is_empty).then(|| if has_port { server.to_owned() } else { format!("{server}:{port}") })
        };
        let servers = servers.split(',').map(with_port).collect::<Option<_>>()?;
        Some(Self { user, servers, path: path.trim_matches('/'), query })
    }

    /// User and password of the Sentinels themselves, and the query without them.
    fn sentinel_user(&self) -> (String, String) {
        let (mut user, mut password, mut others) = ("", "", Vec::new());
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sentinel_user", value)) => user = value,
                Some(("sentinel_password", value)) => password = value,
                _ => others.push(pair),
            }
        }
        let own =
            if user.is_empty() && password.is_empty() { String::new() } else { format!("{user}:{password}") };
        (own, others.join("&"))
    }
}

fn info(base: &str, user: &str, server: &str, database: &str, query: &str) -> Option<ConnectionInfo> {
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{base}://{user}{server}/{database}{query}").into_connection_info().ok().map(quiet)
}

/// The same, without telling the server the name of the driver: an old server, and a user with few rights, refuse that.
fn quiet(info: ConnectionInfo) -> ConnectionInfo {
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    info.set_redis_settings(settings)
}

/// The same settings for another server.
fn at(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let mut address = info.addr().clone();
    match &mut address {
        ConnectionAddr::Tcp(old_host, old_port) => (*old_host, *old_port) = (host.to_owned(), port),
        ConnectionAddr::TcpTls { host: old_host, port: old_port, .. } => {
            (*old_host, *old_port) = (host.to_owned(), port);
        }
        _ => {}
    }
    info.clone().set_addr(address)
}

fn host_of(info: &ConnectionInfo) -> &str {
    match info.addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
        _ => "",
    }
}

fn open(info: ConnectionInfo, limit: Duration) -> RedisResult<Connection> {
    with_limit(&Client::open(info)?, limit)
}

fn with_limit(client: &Client, limit: Duration) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(limit)?;
    connection.set_read_timeout(Some(limit))?;
    connection.set_write_timeout(Some(limit))?;
    Ok(connection)
}

/// The server that a Sentinel names.
fn named(sentinel: &mut Connection, name: &str) -> RedisResult<(String, u16)> {
    let mut ask = redis::cmd("SENTINEL");
    let found: Option<(String, u16)> = ask.arg("get-master-addr-by-name").arg(name).query(sentinel)?;
    found.ok_or_else(|| {
        RedisError::from((ErrorKind::Client, "no server of this name is known to the Sentinel"))
    })
}

/// Whether this server takes no writes. Where it may not be asked, it shows at the first write.
fn is_replica(connection: &mut Connection) -> bool {
    let role = redis::cmd("ROLE").query::<Vec<Value>>(connection).unwrap_or_default();
    role.first().and_then(text).is_some_and(|role| role != "master")
}

/// The node of a Cluster that has the keys that begin like this.
fn owner(connection: &mut Connection, prefix: &str) -> RedisResult<(String, u16)> {
    let slot: i64 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(prefix).query(connection)?;
    let ranges: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(connection)?;
    let holds = |range: &Vec<Value>| match (range.first(), range.get(1)) {
        (Some(Value::Int(from)), Some(Value::Int(to))) => (*from..=*to).contains(&slot),
        _ => false,
    };
    let node = ranges.iter().find(|range| holds(range)).and_then(|range| range.get(2));
    let found = node.and_then(|node| {
        let Value::Array(facts) = node else { return None };
        let Some(Value::Int(port)) = facts.get(1) else { return None };
        Some((facts.first().and_then(text).unwrap_or_default(), u16::try_from(*port).ok()?))
    });
    found.ok_or_else(|| away("no node of the Cluster has the slot of these keys"))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

/// What may pass by itself.
fn away(why: &'static str) -> RedisError {
    RedisError::from((ErrorKind::Io, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Option<String> {
        Servers::of(url).map(|servers| servers.place())
    }

    #[test]
    fn addresses_of_sentinels_and_clusters_name_their_servers_and_no_password() {
        for (url, expected) in [
            ("redis+sentinel://a/main", Some("Redis main by the Sentinels at a:26379")),
            (
                "rediss+sentinel://u:hunter2@a:1,[::1],b/main/3?sentinel_user=s&sentinel_password=hunter2",
                Some("Redis main by the Sentinels at a:1, [::1]:26379, b:26379"),
            ),
            ("redis+cluster://:hunter2@a:7000,b", Some("Redis Cluster at a:7000, b:6379")),
            ("redis+cluster://a/0", Some("Redis Cluster at a:6379")),
            ("redis+cluster://a/1", None),
            ("redis+sentinel://a", None),
            ("redis+sentinel://a,,b/main", None),
            ("redis+sentinel://a/main/notanumber", None),
            ("redis+other://a/main", None),
        ] {
            assert_eq!(place(url).as_deref(), expected, "{url}");
        }
        let many: Vec<String> = (0..=MAX_ADDRESSES).map(|number| format!("h{number}")).collect();
        assert_eq!(place(&format!("redis+cluster://{}", many.join(","))), None);
    }

    #[test]
    fn only_the_keys_of_a_cluster_get_a_hash_tag() {
        let prefix = |url: &str, prefix: &str| Servers::of(url).unwrap().prefix(prefix);
        assert_eq!(prefix("redis://h", "koboshi:"), "koboshi:");
        for (given, used) in
            [("koboshi:", "{koboshi}:"), ("", "{koboshi}:"), ("{a}b:", "{a}b:"), ("{}b", "{b}:")]
        {
            assert_eq!(prefix("redis+cluster://h", given), used, "{given}");
        }
    }
}
