//! Sessions: WebSocket conversations that survive their connections.

use std::time::Duration;

use crate::gateway::names;

names!(OnDetach: Continue "continue", Cancel "cancel");
names!(SessionKeep: Store "store", Memory "memory");

/// How sessions are kept and what their clients may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsConfig {
    /// The model or route that answers where a chat names none.
    pub model: Option<String>,
    /// Where transcripts are kept.
    pub keep: SessionKeep,
    /// How long a session is kept that is not used.
    pub ttl: Duration,
    /// What becomes of a turn without a reader.
    pub on_detach: OnDetach,
    /// After this.
    pub detached_for: Duration,
    /// Clients without `hello` are served, as the streaming protocol of the error handling guide has it.
    pub plain: bool,
    /// `recoverable` is false after the last attempt of a turn failed.
    pub seed_errors: bool,
    /// How often the server pings.
    pub heartbeat: Duration,
    /// How long a result of a client's tool is waited for.
    pub tool_timeout: Duration,
    /// How long a tab that has claimed a tool may be away.
    pub claim_grace: Duration,
    /// The largest frame of a client, in bytes.
    pub max_frame_bytes: u64,
    /// Connections of one session.
    pub max_connections: u32,
    /// Turns that may wait behind the running one.
    pub max_queued: u32,
    /// How long a connection lasts before its client is asked to come back.
    pub connection_lifetime: Duration,
    /// How long a ticket is good.
    pub ticket_ttl: Duration,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            model: None,
            keep: SessionKeep::Store,
            ttl: seconds(24 * 60 * 60),
            on_detach: OnDetach::Continue,
            detached_for: seconds(600),
            plain: true,
            seed_errors: false,
            heartbeat: seconds(20),
            tool_timeout: seconds(600),
            claim_grace: seconds(30),
            max_frame_bytes: 1024 * 1024,
            max_connections: 8,
            max_queued: 4,
            connection_lifetime: seconds(2 * 60 * 60),
            ticket_ttl: seconds(30),
        }
    }
}

/// What becomes of a turn without a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDetach {
    /// It runs on, but not without end.
    Continue,
    /// It is cancelled.
    Cancel,
}

/// Where transcripts are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionKeep {
    /// In the store.
    Store,
    /// In the memory of the process: they end with it.
    Memory,
}
