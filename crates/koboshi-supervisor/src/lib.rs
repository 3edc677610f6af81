//! Keeps agents on their feet: starts them as processes, watches them, stops them, and starts them again when their account allows it.
//!
//! ```text
//!   koboshi run │ koboshi supervise
//!        │  asks the core: may it start?          ledger ◄──► store ◄──► gateways, other supervisors
//!        ▼                                          ▲
//!     spawn ──► shim ──► exec ──► the agent         │ what was learned
//!        ▲       │ owns the process tree            │
//!        │       └─► run folder: who runs, how it ended
//!        └── watch: output ──► log (masked), tail ──► classifier ──► judge (core) ──► cooldown, start again, parked
//! ```
//!
//! - **`shim`** is a small process of the same binary between us and the agent. It makes a session of its own, adopts what the agent leaves
//!   behind, stops the whole tree, and writes the end down before it exits. So an agent outlives our death or ends with us, as its spec says.
//! - **`folder`** is one run on disk: the request (`spec.json`), its processes (`shim.json`), its end (`end.json`), and a lock that shows
//!   whether the shim lives. The holder of the lock decides: under it, a start without a shim is made void.
//! - **`kinds`** is what is known of agent programs, as data; **`session`** continues their sessions.
//! - **`watch`** reads an agent's output: a log with secrets taken out, a bounded tail as evidence, events as they come.
//! - **`logs`** reads what they wrote, for those who ask.
//! - **`knowledge`** is the ledger and the core's table of cooldowns together: what is cooling down, here and elsewhere.
//! - **`first`** is the right to go first after a cooldown, which of all processes one has.
//! - **`protected`** is one command under protection (`koboshi run`), **`keep`** the agents of a config (`koboshi supervise`).
//!
//! [`koboshi::supervise`] decides what an end means, what cools down and which agent may start. What is decided here concerns bytes and processes
//! alone: which lines are worth classifying, when the shim reads for a supervisor that hangs, how many files are kept.

mod first;
pub mod folder;
pub mod identity;
pub mod keep;
pub mod kinds;
pub mod knowledge;
pub mod logs;
mod marked;
pub mod protected;
pub mod session;
pub mod shim;
mod signals;
pub mod spawn;
mod terminal;
pub mod watch;

pub use folder::{Ended, Folder, OnOwnerDeath, Spec};
pub use kinds::{Kind, Kinds};
pub use knowledge::{Knowledge, RunFault};
