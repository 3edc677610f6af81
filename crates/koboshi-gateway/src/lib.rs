//! The gateway: change one `base_url`, and every fall of a provider is caught.
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
//! server → edge → admin → request → degrade → stream → reply → attempt → shared → route → observe → http.
//!
//! One request is one future (`future`) on one core; nothing on its way waits for disk or for another core. Decisions are the core crate's;
//! this crate has the sockets, the clock and the order in which decisions are asked for. What all cores share is `shared::state`.
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
mod shared;
mod stream;

pub use admin::known::{Known, Meaning};
pub use admin::presence::{Presence, gateways, is_in_force, known, known_now};
pub use admin::remote::{Remote, RemoteError};
pub use route::capability::{Origin, stated};
pub use route::plan::Backing;
pub use route::well_known::{kind_of, owners_of, unset_variables};
pub use server::gateway::{Gateway, Lookup, Setup, StartError, known_to, models};
pub use server::preflight::{Refusal, refusals};
pub use shared::retention::retention;
