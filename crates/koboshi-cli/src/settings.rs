//! What the config says, for the commands that follow it.
//!
//! Precedence a reader can hold in the head: a flag beats a variable of the environment, that beats the config file,
//! that beats the default.

use std::path::Path;

use koboshi_config::Config;
use koboshi_config::file::{check_file, load_file, locate};
use koboshi_config::load::Outside;

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

/// What should be changed in a file that can be used all the same: old names of keys, an address without its usual path.
pub(crate) fn warnings(file: &Path) -> Vec<String> {
    let lookup = |name: &str| std::env::var(name).ok();
    let loaded = check_file(file, Outside::new(&lookup));
    let said = |loaded: koboshi_config::load::Loaded| {
        let one = |warning: &koboshi_config::check::Problem| {
            let line = warning.place.map(|place| format!(":{}", place.line)).unwrap_or_default();
            format!("{}{line}: {}", warning.file, warning.message)
        };
        loaded.warnings.iter().map(one).collect()
    };
    loaded.map(said).unwrap_or_default()
}
