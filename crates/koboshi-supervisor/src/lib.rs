//! Keeps agents on their feet: starts them as processes, watches them, stops them, and starts them again when their account allows it.
//!
//! ```text
//!   koboshi run │ koboshi supervise
//!        │  asks the core: may it start?          ledger ◄──► store ◄──► gateways, other supervisors
//!        ▼                                          ▲
//!     spawn ──► shim ──► exec ──► the agent         │ what was learned
//!        ▲       │ owns the process tree            │
//!        │       └─► run folder: who runs, how it ended
//!        └── watch: output ──► log (masked), tail ──► classifier ──► judge (core) ──► rest, again, parked
//! ```
//!
//! - **`shim`** is a small process of the same binary between us and the agent. It makes a session of its own, adopts what the agent leaves
//!   behind, stops the whole tree, and writes the end down before it goes. So an agent outlives our death or ends with us, as it was told.
//! - **`folder`** is one run on disk: what was asked (`spec.json`), who runs (`shim.json`), how it ended (`end.json`), and a lock that says
//!   whether the shim lives. The holder of the lock decides: a start without a shim is made void under it.
//! - **`kinds`** is what is known of agent programs, as data.
//! - **`watch`** reads what an agent writes: a log with secrets taken out, a bounded tail as evidence, events as they come.
//! - **`knowledge`** is the ledger and the core's table of cooldowns together: what rests, here and elsewhere.
//! - **`protected`** is one command under protection (`koboshi run`), **`keep`** the agents of a config (`koboshi supervise`).
//!
//! Nothing is decided here: what an end means, what rests and who may start is [`koboshi::supervise`]'s.

pub mod folder;
pub mod identity;
pub mod keep;
pub mod kinds;
pub mod knowledge;
pub mod protected;
pub mod shim;
mod signals;
pub mod spawn;
mod terminal;
pub mod watch;

pub use folder::{Ended, Folder, OnOwnerDeath, Spec};
pub use kinds::{Kind, Kinds};
pub use knowledge::Knowledge;
