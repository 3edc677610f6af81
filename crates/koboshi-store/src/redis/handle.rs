//! The connection to the server: one at a time, made when it is needed, dropped when anything goes wrong. Which server that is, every new
//! connection asks ([`super::servers`]).
//!
//! Every step has a time limit, so that a server that accepts and then never answers cannot block a thread for ever. Only
//! single commands are sent, never pipelines: the driver waits the whole limit for *each* answer of a pipeline.
//! The password is in the driver's hands only: it is in no message.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Connection, ErrorKind, RedisError, RedisResult, ServerErrorKind};

use crate::error::StoreError;
use crate::journal::REDACTOR;
use crate::redis::time;

use super::servers::Servers;

/// The most characters of a server's message.
const MAX_MESSAGE_CHARS: usize = 200;

/// How often a call follows a Cluster to another node.
const MAX_MOVES: u32 = 3;

pub(super) struct RedisHandle {
    servers: Servers,
    prefix: String,
    place: String,
    limit: Duration,
    connection: Mutex<Option<Connection>>,
}

impl RedisHandle {
    /// A handle for this address, for keys with this prefix. Nothing is sent yet.
    pub(super) fn new(url: &str, prefix: &str, limit: Duration) -> Result<Self, StoreError> {
        let setting = |why: &str| StoreError::Setting { place: scheme(url), why: why.to_owned() };
        if limit.is_zero() {
            return Err(setting("its time limit must be more than nothing"));
        }
        let hint = "it is no address of a Redis: write it like redis://:password@host:6379/0, rediss:// for TLS, unix:///path, \
                    redis+sentinel://host,host/name or redis+cluster://host,host";
        let servers = Servers::of(url).ok_or_else(|| setting(hint))?;
        let (place, prefix) = (servers.place(), servers.prefix(prefix));
        Ok(Self { servers, prefix, place, limit, connection: Mutex::new(None) })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// What all keys begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A new connection with time limits.
    pub(super) fn connect(&self) -> RedisResult<Connection> {
        let mut connection = self.servers.connect(&self.prefix, self.limit)?;
        // A user who may not ask for the time goes by the clock of this machine.
        time::follow(&mut connection)
            .or_else(|error| if error.is_io_error() { Err(error) } else { Ok(()) })?;
        Ok(connection)
    }

    /// Runs something over the connection; again on a new one if the idle connection had been closed by the server, or the server no longer
    /// leads its set.
    pub(super) fn run<R>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Connection) -> RedisResult<R>,
    ) -> Result<R, StoreError> {
        let mut place = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out while it is used: after a failure it is not known which answers are still on their way.
        let (mut idle, mut moves) = (place.take(), 0);
        loop {
            let was_idle = idle.is_some();
            let connection = idle.take().map_or_else(|| self.connect(), Ok);
            let mut connection = connection.map_err(|error| self.trouble(&error, doing))?;
            let error = match work(&mut connection) {
                Ok(result) => {
                    *place = Some(connection);
                    return Ok(result);
                }
                Err(error) => error,
            };
            if was_idle && (error.is_connection_dropped() || error.code() == Some("READONLY")) {
                continue;
            }
            moves += 1;
            let there = self.pointed_at(&error).filter(|_| moves <= MAX_MOVES);
            let Some(there) = there else { return Err(self.trouble(&error, doing)) };
            let mut there = there.map_err(|error| self.trouble(&error, doing))?;
            if error.kind() != ErrorKind::Server(ServerErrorKind::Ask) {
                idle = Some(there);
                continue;
            }
            // Its slot is on the way to that node: only this call goes there.
            *place = Some(connection);
            return asking(&mut there, work).map_err(|error| self.trouble(&error, doing));
        }
    }

    /// A connection to the node of a Cluster that this answer points at.
    fn pointed_at(&self, error: &RedisError) -> Option<RedisResult<Connection>> {
        let (address, _) = error.redirect_node()?;
        self.servers.connect_to(address, self.limit)
    }

    /// The driver's error as ours.
    pub(super) fn trouble(&self, error: &RedisError, doing: &'static str) -> StoreError {
        let place = self.place.clone();
        let why = REDACTOR.excerpt(&error.to_string(), MAX_MESSAGE_CHARS);
        if error.is_timeout() {
            return StoreError::Away { place, doing, why: format!("no answer within {:?}", self.limit) };
        }
        if is_away(error) {
            return StoreError::Away { place, doing, why };
        }
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
                StoreError::Refused { place, why }
            }
            (_, Some("OOM")) => {
                StoreError::Failed { place, doing, why: format!("its memory is full, give it more ({why})") }
            }
            (_, Some("READONLY")) => {
                StoreError::Away { place, doing, why: format!("it is a replica and takes no writes ({why})") }
            }
            (_, Some("MOVED" | "ASK" | "CROSSSLOT")) if !matches!(self.servers, Servers::Cluster(_)) => {
                let why = "it is a node of a Cluster: begin its address with redis+cluster://".to_owned();
                StoreError::Failed { place, doing, why }
            }
            (_, Some("MISCONF")) => {
                let why = format!("it cannot write to its disk, which may be full ({why})");
                StoreError::Failed { place, doing, why }
            }
            _ => StoreError::Failed { place, doing, why },
        }
    }
}

/// Runs something on a node that has a slot only for who asks. A script that it does not know yet takes two rounds: the first makes it known.
fn asking<R>(there: &mut Connection, work: impl Fn(&mut Connection) -> RedisResult<R>) -> RedisResult<R> {
    redis::cmd("ASKING").exec(there)?;
    let first = work(there);
    match &first {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Moved) => {
            redis::cmd("ASKING").exec(there)?;
            work(there)
        }
        _ => first,
    }
}

/// Whether nothing is wrong but that the server cannot be used now.
fn is_away(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, TryAgain};
    let passes = matches!(error.kind(), ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | TryAgain));
    error.is_io_error() || error.is_connection_dropped() || passes || error.code() == Some("BUSY")
}

/// What may be shown of an address that could not be read: no more than how it begins.
fn scheme(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+') => {
            format!("{scheme}://…")
        }
        _ => "redis".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        RedisHandle::new(url, "koboshi:", Duration::from_secs(1))
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn an_address_that_cannot_work_gets_the_reason_without_its_password() {
        for url in ["http://u:hunter2@host", "hunter2", "redis://:hunter2@host:notaport"] {
            let message = refused(url);
            assert!(!message.is_empty() && !message.contains("hunter2"), "{url}: {message}");
        }
        assert!(refused("host:6379").contains("redis://"));
    }

    #[test]
    fn every_address_that_a_config_may_name_can_be_used() {
        for url in [
            "redis://h", "redis://h/", "redis://h:6379/0", "redis://:p:w@h.example:1/15", "redis://u:p@q@h",
            "redis://[::1]:6379", "redis://h:", "redis://h:65535?protocol=resp3", "valkey://h", "rediss://h",
            "rediss://u:p@h:6380/1", "valkeys://h", "unix:///run/r.sock", "redis+unix:///run/r.sock?db=1",
            "valkey+unix:///run/r.sock", "redis+sentinel://h1,h2:26380/main",
            "rediss+sentinel://u:p@h/main/0", "valkey+cluster://h1:7000,h2", "rediss+cluster://:p@h",
        ] {
            assert_eq!(refused(url), "", "{url}");
        }
    }

    #[test]
    fn a_password_is_in_no_message() {
        let handle =
            RedisHandle::new("redis://user:hunter2@127.0.0.1:1/0", "koboshi:", Duration::from_secs(1))
                .unwrap();
        assert_eq!(handle.place(), "Redis at 127.0.0.1:1");
        let error =
            handle.run("say hello", |connection| redis::cmd("PING").query::<String>(connection)).unwrap_err();
        assert!(matches!(error, StoreError::Away { .. }));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
