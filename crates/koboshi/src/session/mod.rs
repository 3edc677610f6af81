//! A conversation that survives its connections: frames, the session log, and what a reader makes of it.
//!
//! **The log is the session; connections only read it.** Every frame that changes a conversation is an [`Event`] of one log. An event has a
//! number (`seq`, dense, from 1) within an `epoch`; the pair is the cursor by which a client comes back. What is sent to one connection only
//! (`session`, `snapshot`, `ping`, `goaway`, its own errors) has no number.
//!
//! ```text
//!   client frame ──► Log::chat, cancel, retry, claim, … ──► Decision: bodies of events, or a refusal
//!                                                              │ numbered, stored by the shell, then applied
//!   upstream     ──► Log::content, offer, rewind, done ────────┘
//!
//!   Log ──► replay(after) ──► events, adjacent text merged ──► Transcript::apply ──► what a reader sees
//!       └─► snapshot      ──► the transcript itself     ─────►
//! ```
//!
//! [`Transcript`] is the reader: the same reducer makes what the server keeps, what a snapshot says and what a client shows; the TypeScript
//! client runs the same test vectors (`tests/vectors/session`). [`Log`] adds what only the server needs: known ids, turns that wait, the
//! segment that a rewind may take back, and the tail of events for readers that come back.
//!
//! What must be stored before a reader may see it is said by [`Body::is_durable`]. An *epoch* is a random string of the shell's: a new one
//! begins whenever continuity of the log cannot be proven, and readers of another epoch get a snapshot.
//!
//! *Not here*: sockets, stores, clocks, tokens, languages. The log keeps kinds and parameters; the shell writes sentences for each reader.

mod client;
mod event;
mod log;
mod merge;
mod tools;
mod transcript;
mod units;

pub use client::{BadFrame, Busy, Chat, ClientFrame, Hello, Tool, ToolResult, ToolStatus};
pub use event::{
    Body, DoneReason, ErrorBody, Event, Retry, RetryLater, RetryWhere, Runs, Source, Texts, ToolState, Usage,
};
pub use log::{Change, Entry, Limits, Log, Place, Refusal, TurnSpec, TurnState};
pub use merge::merged;
pub use transcript::{Call, FrameResult, Message, Open, Role, Snapshot, Transcript};
pub use units::{cut, units};
