//! What Koboshi is told: `koboshi.yaml`, checked with line and column, and reloaded without harm.
//!
//! [`load`](load::load) turns text into a [`Config`], plain data of the core's policies, or says everything that is wrong
//! with it ([`check`]). [`schema`] is the one table of keys that all of it is read from. [`mod@file`] finds and reads the file,
//! [`reload`] keeps the old config when the new one is bad, and [`secret`] fills in `${NAME}`.
//!
//! No thread and no clock: the caller says when to look again.

mod at;
mod broken;
pub mod check;
pub mod config;
mod cross;
pub mod file;
mod foreign;
pub mod gateway;
pub mod load;
mod mask;
mod near;
mod policy;
mod provider;
mod read;
pub mod reload;
pub mod schema;
pub mod secret;
mod source;
mod tree;
mod vocabulary;
pub mod words;

pub use config::Config;
pub use load::load;

/// The file that a beginner starts from: short, commented, with the key of one provider from the environment.
///
/// ```
/// let config = koboshi_config::load("koboshi.yaml", koboshi_config::init_text(), &|name| {
///     (name == "OPENAI_API_KEY").then(|| "sk-1".to_owned())
/// })?;
/// assert_eq!(config.routes["gpt-*"].chain.len(), 2);
/// # Ok::<(), koboshi_config::check::Problems>(())
/// ```
#[must_use]
pub fn init_text() -> &'static str {
    include_str!("init.yaml")
}
