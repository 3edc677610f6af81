//! The config of Koboshi: `koboshi.yaml`, checked with line and column, and reloaded without harm.
//!
//! [`load`](load::load) turns text into a [`Config`], plain data of the core's policies, or reports everything that is wrong
//! with it ([`check`]). [`schema`] is the one table of keys behind all of it. [`mod@file`] finds and reads the file,
//! [`reload`] keeps the old config when the new one is bad, and [`secret`] fills in `${NAME}`. [`init`] writes a first file.
//!
//! No thread and no clock: the caller decides when to check again.

pub mod agents;
mod arguments;
mod as_text;
mod at;
mod broken;
pub mod check;
pub mod config;
mod cross;
pub mod file;
mod foreign;
pub mod gateway;
pub mod init;
pub mod litellm;
pub mod load;
mod mask;
mod near;
pub mod notify;
mod policy;
mod provider;
mod read;
pub mod reload;
pub mod schema;
pub mod secret;
pub mod sessions;
mod size;
mod source;
mod spacing;
mod tree;
mod vocabulary;
mod walk;
pub mod well_known;
mod wide;
pub mod words;

pub use config::Config;
pub use load::load;
