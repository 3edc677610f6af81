//! Conversations over WebSocket that survive their connections, their server and their provider.
//!
//! ```text
//!   socket ─► upgrade ─► connection ─── hello ──► access (who, which session) ──► LiveSession (the log)
//!                            │  ▲                                                   ▲
//!                            │  └── cursor: events after it, merged, or a snapshot ─┤
//!                            └── chat, cancel, tools ─► owner ── turn ──────────────┘
//!                                                         │        └── the request path of HTTP, in this process
//!                                                         └── storage: append under the fence, inbox, takeover
//! ```
//!
//! A connection is a cursor into the log and nothing else ([`connection`]): it may come and go at any time. The one task that changes a log is
//! its [`owner`]; it holds the lease of the session in the store and stores what must not be lost before a reader sees it ([`storage`]). A
//! [`turn`] is a client of the same request path that serves HTTP: it posts a chat request, in this process, and reads the stream. So routes,
//! attempts, firewall, guard and degradation are the same, and [`history`] is all that sessions add to a request.
//!
//! Any process takes any connection. [`replicas`] brings in what other processes write to the logs that are read here, hands orders to the
//! owner through its inbox, and takes over sessions whose owner is lost.
//!
//! What the frames mean and what may follow from them is decided by `koboshi::session`; the protocol is `docs/sessions.md`.

pub(crate) mod access;
pub(crate) mod connection;
pub(crate) mod frames;
mod history;
mod outgoing;
mod owner;
pub(crate) mod replicas;
mod socket;
pub(crate) mod storage;
pub(crate) mod ticket;
mod turn;
pub(crate) mod upgrade;
