//! What Koboshi is told: `koboshi.yaml`, checked with line and column, and reloaded without harm.
//!
//! [`load`](load::load) turns text into a [`Config`], plain data of the core's policies, or says everything that is wrong
//! with it ([`check`]). [`schema`] is the one table of keys that all of it is read from. [`mod@file`] finds and reads the file,
//! [`reload`] keeps the old config when the new one is bad, and [`secret`] fills in `${NAME}`.
//!
//! No thread and no clock: the caller says when to look again.

pub mod check;
pub mod config;
pub mod file;
pub mod gateway;
pub mod load;
mod near;
mod policy;
mod read;
pub mod reload;
pub mod schema;
pub mod secret;
mod tree;

pub use config::Config;
pub use load::load;
