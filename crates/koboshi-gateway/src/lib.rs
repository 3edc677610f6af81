//! The gateway: change one `base_url`, and every fall of a provider is caught.
//!
//! ```text
//!   client ─► edge ─► chat ─► guard ─► plan (route) ─► journey ─► relay / unary ─► client
//!              who,     intake          chain of         cooldown → gate → permit →
//!              how big                  targets          send → classify → remedy
//!                                                          │
//!                                     degrade ◄── spent ───┘     cache → simpler model → prepared text → error
//! ```
//!
//! One request is one future (`flow`) on one core; nothing on its way waits for disk or for another core. Decisions are the core crate's;
//! this crate has the sockets, the clock and the order in which decisions are asked for. What all cores share is the `world`.
//!
//! Start it with [`Gateway::start`].

mod admin;
mod affinity;
mod answer;
mod attempt;
mod auth;
mod blocks;
mod capability;
mod chains;
mod core;
mod count;
mod credential;
mod degrade;
mod door;
mod edge;
mod embeddings;
mod endpoints;
mod feed;
mod firewall;
mod flow;
mod follow;
mod forbidden;
mod gateway;
mod guard;
mod h1;
mod hold;
mod interface;
mod journey;
mod known;
mod learn;
mod line;
mod locality;
mod log;
mod memory;
mod meters;
#[cfg(test)]
mod model_facts;
mod names;
mod page;
mod passing;
mod plan;
mod preflight;
mod presence;
mod program;
mod provider;
mod queue;
mod refusal;
mod relay;
mod remote;
mod reply;
mod rescue;
mod rest;
mod resume;
mod root;
mod run;
mod sentence;
mod server;
mod shown;
mod simulated;
mod stake;
mod story;
mod talk;
mod target;
mod timers;
mod token;
mod trace;
mod transition;
mod unary;
mod unavailable;
mod upstream;
mod voice;
mod well_known;
mod worker;
mod world;

pub use capability::{Origin, stated};
pub use gateway::{Gateway, Lookup, Setup, StartError, known_to, models, retention};
pub use known::{Known, Meaning};
pub use plan::Backing;
pub use preflight::{Refusal, refusals};
pub use presence::{Presence, gateways, known};
pub use remote::{Remote, RemoteError};
pub use well_known::{kind_of, owners_of};
