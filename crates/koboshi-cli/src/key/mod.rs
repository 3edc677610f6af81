//! `koboshi key new` and `koboshi key revoke`: clients' keys in the config file.
//!
//! The file is a person's: only the lines of the key are changed, comments and order stay, and the result is read as the gateway reads it
//! before it replaces the file. What cannot be changed so (keys in braces) is printed for the person to do. The key itself is shown once and
//! stored nowhere.

mod edit;

use std::io::Write;
use std::path::{Path, PathBuf};

use anstream::{stderr, stdout};
use clap::{Args, Subcommand};
use koboshi_config::Config;
use koboshi_config::file::locate;
use koboshi_config::load::{Environment, load_located};
use koboshi_gateway::new_client_key;

use crate::args::{ConfigFileArgs, LangArgs};
use crate::say::Say;
use crate::settings::{self, UNSET};
use crate::{Exit, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key for a client, print it once and write its hash into the config
    New(NewArgs),
    /// Remove a client's key from the config
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The name of the key: it is in `koboshi spend`, and its tenant is called so
    name: String,
    /// What it may spend in a day, in the currency of the config
    #[arg(long, value_name = "AMOUNT")]
    budget_day: Option<f64>,
    /// What it may spend in a month
    #[arg(long, value_name = "AMOUNT")]
    budget_month: Option<f64>,
    /// How many requests it may make in a minute
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// A route or model that it may ask for; may be repeated, `*` stands for anything
    #[arg(long = "route", value_name = "NAME")]
    routes: Vec<String>,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The name of the key
    name: String,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(command: &KeyCommand) -> Result<Exit, Failure> {
    match command {
        KeyCommand::New(args) => new(args),
        KeyCommand::Revoke(args) => revoke(args),
    }
}

fn new(args: &NewArgs) -> Result<Exit, Failure> {
    let say = Say::new(settings::language(&args.lang))?;
    let file = find(args.config.file.as_deref(), &say)?;
    let text = read(&file)?;
    let before = parse(&file, &text)?;
    let name = args.name.as_str();
    if before.keys.contains_key(name) {
        return Err(Failure::new(say.text("key-exists", &[("name", name)])));
    }
    let (key, hash) = new_client_key().ok_or_else(|| Failure::new("this machine gives no random numbers"))?;
    let entry = edit::Entry {
        name,
        sha256: &hash,
        budget_day: args.budget_day,
        budget_month: args.budget_month,
        rate: args.rate,
        routes: &args.routes,
    };
    let changed = edit::with(&text, &entry).filter(|changed| {
        parse(&file, changed).is_ok_and(|after| {
            let is_there = after.keys.get(name).is_some_and(|key| key.sha256 == hash);
            is_there && is_same_without(&before, &after, name)
        })
    });
    writeln!(stdout().lock(), "{key}")?;
    let Some(changed) = changed else {
        let lines = entry.lines("  ").join("\n");
        return Err(Failure::new(say.text("key-by-hand", &[("file", &*shown(&file)), ("lines", &*lines)])));
    };
    replace(&file, &changed)?;
    let mut out = stderr().lock();
    writeln!(out, "{}", say.text("key-made", &[("name", name), ("file", &shown(&file))]))?;
    // With the first key, operators need one too: on their own machine the dashboard was open until now.
    if before.keys.is_empty() && before.admin.sha256.is_none() {
        writeln!(out, "{}", say.text("key-first", &[]))?;
    }
    Ok(Exit::Good)
}

fn revoke(args: &RevokeArgs) -> Result<Exit, Failure> {
    let say = Say::new(settings::language(&args.lang))?;
    let file = find(args.config.file.as_deref(), &say)?;
    let text = read(&file)?;
    let before = parse(&file, &text)?;
    let name = args.name.as_str();
    let place = shown(&file);
    let fills = [("name", name), ("file", place.as_str())];
    if !before.keys.contains_key(name) {
        return Err(Failure::new(say.text("key-unknown-name", &fills)));
    }
    // A gateway without any keys serves every program of its machine.
    if before.keys.len() == 1 {
        return Err(Failure::new(say.text("key-last", &fills)));
    }
    let by_hand = || Failure::new(say.text("key-revoke-by-hand", &fills));
    let changed = edit::without(&text, name).ok_or_else(by_hand)?;
    let after = parse(&file, &changed).map_err(|_| by_hand())?;
    if after.keys.contains_key(name) || !is_same_without(&before, &after, name) {
        return Err(by_hand());
    }
    replace(&file, &changed)?;
    writeln!(stdout().lock(), "{}", say.text("key-revoked", &fills))?;
    Ok(Exit::Good)
}

/// Whether nothing but this key is different.
fn is_same_without(before: &Config, after: &Config, name: &str) -> bool {
    let without = |config: &Config| {
        let mut config = config.clone();
        config.keys.remove(name);
        config
    };
    without(before) == without(after)
}

fn find(asked: Option<&Path>, say: &Say) -> Result<PathBuf, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    locate(asked, &lookup).ok_or_else(|| Failure::new(say.text("key-no-config", &[])))
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{}: {error}", shown(file))))
}

/// The config as a gateway would read it; keys of providers may be in the gateway's environment only.
fn parse(file: &Path, text: &str) -> Result<Config, Failure> {
    let filled = |name: &str| std::env::var(name).ok().or_else(|| Some(UNSET.to_owned()));
    let loaded = load_located(&shown(file), text, Environment::new(&filled));
    loaded.map(|loaded| loaded.config).map_err(|problems| Failure::new(problems.to_string()))
}

/// Replaces the file at once, with the rights that it has: a gateway that watches it never reads half of it. A link stays a link.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", shown(file)));
    let target = std::fs::canonicalize(file).map_err(failed)?;
    let rights = std::fs::metadata(&target).map_err(failed)?.permissions();
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = target.with_file_name(name);
    let written = std::fs::File::create_new(&fresh).and_then(|mut out| {
        out.set_permissions(rights)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()
    });
    let done = written.and_then(|()| std::fs::rename(&fresh, &target));
    if done.is_err() {
        // The caller gets the reason; what remains of the attempt must not stay.
        let _ = std::fs::remove_file(&fresh);
    }
    done.map_err(failed)
}
