//! `koboshi drill`: plays the fault scenarios against a user's own config and says what its clients would see.
//!
//! ```text
//!   config ─► routes × scenarios (koboshi-sim's table, which the fault suite holds to its promises)
//!                  │
//!                  ▼
//!   play: questions, script, store ─► Rehearsal (the real gateway, no socket, virtual time) ─► judge ─► outcome
//!                  │                                                                             │
//!                  └──────────── better: the same scenario with one key changed ◄── not good ────┘
//!                                                                        │
//!                                       score, advice ─► text │ JSON │ HTML
//! ```
//!
//! - **The config is used as it is**: routes, chains, retries, limits of time, breakers, lesser answers. Only its providers are replaced: each
//!   target answers at once and rightly unless the scenario says otherwise, so every second in the report was caused by the fall. No request
//!   leaves this process and no key is needed.
//! - **What falls** is the target that the gateway asks first, with everything that would fall with it: its model, its key, its account, its
//!   provider. A chain of two models of one provider survives no outage of that provider, and the report says so.
//! - **Good** is an answer (whole, word for word what the provider would have said), a lesser answer that the config provides, or a clear error
//!   where no config could have had an answer. An error that another config would have spared the client is not good: else a config without
//!   a fallback would be perfect. The score is the share of good scenarios.
//! - **Advice is tried, not guessed**: a scenario that is not good is played again with one key changed, and the first change that makes it good
//!   is the advice. Changes that help nothing are left out.
//!
//! It deliberately does not play what clients do wrong, and it measures no speed: the simulated providers have none.

mod better;
mod judge;
mod page;
mod play;
mod progress;
mod render;
mod report;
mod store;
mod words;

use std::io::Write;
use std::path::PathBuf;

use anstream::stdout;
use clap::{Args, ValueEnum};
use koboshi_config::file::{check_file, locate};
use koboshi_config::load::{Environment, LoadedConfig};
use koboshi_sim::{Scenario, scenarios};

use crate::args::{ConfigFileArgs, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, settings};
use play::Player;
use progress::Progress;
use report::{Report, Route};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi drill                                  the config in use, against every scenario
  koboshi drill --config koboshi.yaml --min 90   in CI: exit status 1 below 90 %
  koboshi drill --only all-down,dead-key         only these
  koboshi drill --format html > drill.html       a page to pass on
  koboshi drill --format json                    for programs: one object with `scenarios`

The providers of the config are replaced by simulated ones: nothing is sent, no key is needed, and waits take no time.

Exit status: 0 good, 1 the score is below --min, 2 the config cannot be used, or it has no routes.";

#[derive(Debug, Args)]
pub(crate) struct DrillArgs {
    /// Play only these scenarios, with commas between their names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Lowest acceptable score, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = parse_percent)]
    min: f64,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: DrillFormat,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

impl DrillArgs {
    /// The config file of the command line.
    pub(crate) fn config_file(&self) -> Option<&std::path::Path> {
        self.config.file.as_deref()
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DrillFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// A page that needs nothing else
    Html,
}

pub(crate) fn run(args: &DrillArgs) -> Result<Exit, Failure> {
    let (file, loaded) = load(args)?;
    let say = Say::new(args.lang.get(&loaded.config))?;
    let chosen = chosen(&args.only, &say)?;
    let routes: Vec<Route> =
        loaded.routes.iter().filter_map(|name| Route::of(&loaded.config, name)).collect();
    if routes.is_empty() {
        return Err(Failure::new(say.text("drill-no-routes", &[])));
    }
    let player = Player::new(&loaded.config)?;
    let mut progress = Progress::new(&say, routes.len() * chosen.len());
    let mut report = Report::new(file.as_ref().map(|file| file.display().to_string()));
    for route in &routes {
        for scenario in &chosen {
            let outcome = player.play(&loaded.config, route, scenario)?;
            let advice = better::advice(&player, &loaded.config, route, scenario, &outcome)?;
            report.add(&say, route, scenario, outcome, advice);
            progress.step();
        }
        report.end_route(&say, route);
    }
    progress.clear();
    let mut out = stdout().lock();
    match args.format {
        DrillFormat::Text => render::text(&mut out, &say, &report)?,
        DrillFormat::Json => {
            let text = serde_json::to_string_pretty(&report).map_err(std::io::Error::other)?;
            writeln!(out, "{text}")?;
        }
        DrillFormat::Html => write!(out, "{}", page::page(&say, &report))?,
    }
    Ok(if report.score < args.min { Exit::Found } else { Exit::Good })
}

/// The config, with placeholders in place of its keys. Without a file there is nothing to play.
fn load(args: &DrillArgs) -> Result<(Option<PathBuf>, LoadedConfig), Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(args.config.file.as_deref(), &environment) else {
        let say = Say::new(args.lang.get_with(None))?;
        return Err(Failure::new(say.text("drill-no-config", &[])));
    };
    let masked =
        |name: &str| if is_secret(name) { Some(settings::UNSET.to_owned()) } else { environment(name) };
    let filled = |name: &str| masked(name).or_else(|| Some(settings::UNSET.to_owned()));
    // An address that only the gateway's environment has need not be one: no one is asked there.
    let loaded = check_file(&file, Environment::new(&masked))
        .or_else(|problems| check_file(&file, Environment::new(&filled)).map_err(|_| problems))
        .map_err(|problems| settings::unusable(&file, &problems, &args.lang))?;
    Ok((Some(file), loaded))
}

/// Whether a variable of this name holds a key, which a drill does not read.
fn is_secret(name: &str) -> bool {
    ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.to_ascii_uppercase().contains(word))
}

/// The scenarios that were asked for, in the order of the table.
fn chosen(only: &[String], say: &Say) -> Result<Vec<Scenario>, Failure> {
    let names: Vec<&str> = only.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| scenarios().iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = scenarios().iter().map(|one| one.name).collect();
        let known = say.list(&known);
        let name: String = unknown.chars().filter(|c| !c.is_control()).take(100).collect();
        return Err(Failure::new(say.text("drill-unknown", &[("name", &name), ("known", &known)])));
    }
    let is_chosen = |one: &&Scenario| names.is_empty() || names.contains(&one.name);
    Ok(scenarios().iter().filter(is_chosen).copied().collect())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("`{text}` is not a number"))?;
    (0.0..=100.0).contains(&percent).then_some(percent).ok_or_else(|| "it must be from 0 to 100".to_owned())
}
