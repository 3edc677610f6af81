//! Follows the config of a supervisor that runs without a gateway: its file, and the files of kinds that it names.

use std::path::Path;

use koboshi_config::Config;
use koboshi_config::config::Language;
use koboshi_config::file::locate;
use koboshi_config::reload::{Reload, Reloader};
use koboshi_supervisor::keep::{GatewayChoice, Settings};

use crate::follow::Files;
use crate::say::Say;
use crate::{Failure, experts};

use super::agents;

pub(super) struct AgentsFollower {
    reloader: Option<Reloader>,
    files: Files,
    /// The config that was loaded last.
    newest: Config,
    /// The one at the start.
    started: Config,
    store_by_flag: bool,
    /// Why the one that was loaded last is not in use: a file that it names may be mended later.
    refused: Option<String>,
}

impl AgentsFollower {
    /// Follows this config, which comes from this file.
    pub(super) fn new(
        config: &Config,
        file: Option<&Path>,
        store_by_flag: bool,
        say: &Say,
    ) -> Result<Self, Failure> {
        let (newest, started) = (config.clone(), config.clone());
        let (reloader, files) = (reloader(file, say)?, Files::of_agents(config));
        Ok(Self { reloader, files, newest, started, store_by_flag, refused: None })
    }

    /// Checks for changes; returns what they lead to, if there are any. `now`: a person says that the files are complete.
    pub(super) fn follow(&mut self, now: bool) -> Option<Result<(Config, Settings), String>> {
        let check = if now { Reloader::check_now } else { Reloader::poll };
        match self.reloader.as_ref().map(check) {
            Some(Reload::Changed(config)) => {
                self.files = Files::of_agents(&config);
                self.newest = config.as_ref().clone();
            }
            Some(Reload::Bad(problems)) => return Some(Err(problems.to_string())),
            _ if self.files.changed(now) => {}
            // The log has the problem already; a program that asks for a reload still gets it.
            _ => {
                let reloader = self.reloader.as_ref().filter(|_| now)?;
                let problems = reloader.problems().map(|problems| problems.to_string());
                return problems.or_else(|| self.refused.clone()).map(Err);
            }
        }
        let settings = agents::settings(&self.newest, &GatewayChoice::Asked);
        let settings = settings.map_err(|failure| failure.text(Language::En).to_owned());
        self.refused = settings.as_ref().err().cloned();
        Some(settings.map(|settings| {
            let restart_for = restart_for(&self.started, &self.newest, self.store_by_flag);
            (self.newest.clone(), Settings { restart_for, ..settings })
        }))
    }
}

/// The keys whose new values a running supervisor does not apply. A store that was named by a flag overrides the config.
pub(crate) fn restart_for(started: &Config, new: &Config, store_by_flag: bool) -> Vec<&'static str> {
    let changed = [
        ("cooldown", started.cooldown != new.cooldown),
        ("rules", started.rules != new.rules),
        ("store", !store_by_flag && started.store != new.store),
    ];
    changed.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}

/// Follows the config file, where there is one.
fn reloader(file: Option<&Path>, say: &Say) -> Result<Option<Reloader>, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(path) = locate(file, &lookup) else { return Ok(None) };
    let reloader = Reloader::asking(experts::ALL, path, Box::new(lookup));
    reloader.map(Some).map_err(|problems| Failure::new(problems.show(say.language())))
}
