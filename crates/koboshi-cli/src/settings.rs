//! What the config says, for the commands that follow it.
//!
//! Precedence a reader can hold in the head: a flag beats a variable of the environment, that beats the config file,
//! that beats the default.

use std::path::Path;

use koboshi_config::Config;
use koboshi_config::file::{load_file, locate};

use crate::Failure;

/// The config that was asked for or is found, else the defaults.
pub(crate) fn load(asked: Option<&Path>) -> Result<Config, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(Config::default()) };
    load_file(&file, &lookup).map_err(|problems| {
        let advice = "look at all of it with `koboshi check`, or name another file with --config";
        Failure::new(format!("the config cannot be used ({advice}):\n{problems}"))
    })
}
