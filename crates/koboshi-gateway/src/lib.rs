//! The gateway: change one `base_url`, and clients survive every failure of a provider.
//!
//! ```text
//!   client ─► server ─► edge ─► request ─► attempt ─► stream ─► client
//!                        who,    guard,     cooldown → gate → permit →
//!                        how     route      send → classify → remedy
//!                        much                 │
//!                                degrade ◄────┘  chain spent: cache → simpler model → prepared text → error
//! ```
//!
//! The rooms depend on each other in one direction, which `crates/koboshi-cli/tests/architecture.rs` keeps:
//! server → edge → session → admin → request → degrade → stream → reply → attempt → shared → route → observe → http.
//!
//! One request is one future (`http::response_future`) on one core; it never waits for disk or for another core. The library (`koboshi`)
//! decides; this crate has the sockets, the clock and the order of the decisions. What all cores share is `shared::state`.
//!
//! Start it with [`Gateway::start`].

mod admin;
mod attempt;
mod degrade;
mod edge;
mod http;
mod observe;
mod reply;
mod request;
mod route;
mod server;
mod session;
mod shared;
mod stream;

pub use admin::known::{KnownKeys, Meaning};
pub use admin::paths;
pub use admin::presence::{Presence, config_digits, gateways, is_in_force, known, known_now};
pub use admin::remote::{Remote, RemoteError};
pub use admin::spend::{BudgetRow, SpendBy, SpendQuery, SpendReport, SpendRow};
pub use http::upstream::one_shot::{PostReply, post_json};
pub use http::upstream::rehearsal::{Cue, RehearsedTarget, Script};
pub use observe::error_log::ErrorLog;
pub use route::auth::new_client_key;
pub use route::capability::{Origin, stated};
pub use route::plan::Backing;
pub use route::well_known::{kind_of, owners_of, unset_variables};
pub use server::gateway::{Gateway, Lookup, Setup, StartError, known_to, models};
pub use server::preflight::{Refusal, refusals};
pub use server::rehearsal::{Rehearsal, RehearsedAnswer};
pub use shared::agents::{AgentOrder, AgentsError, KeptAgents, LogPiece, LogQuestion};
pub use shared::host::Host;
pub use shared::operator::{Operator, Reach};
pub use shared::retention::retention;
