//! The checks of a config beyond the table of its keys: the simulated provider checks its models, the gateway everything that it would refuse,
//! and the supervisor its schedules and kinds of programs. `check`, `serve` and a reload use the same ones. They differ in one thing only:
//! whether the API keys of providers that the file does not describe are in the environment, which `check` cannot know for a gateway that
//! runs elsewhere.

use std::fs::File;
use std::io;
use std::path::Path;

use koboshi_config::Config;
use koboshi_config::config::StorePlace;
use koboshi_config::load::{Experts, Unservable};
use koboshi_config::words::Text;
use koboshi_gateway::{Refusal, refusals, unset_variables};

use crate::{clock, kinds, notify, sim_names, supervise};

/// Stands for a key that is not set here.
const KEY_ELSEWHERE: &str = "not-set-here";

/// All of them.
pub(crate) const ALL: Experts = Experts { sim: sim_names::mistake, gateway: unservable, unset };

/// The same for a file that is only checked: `serve` opens the store itself, perhaps another one.
pub(crate) const OF_CHECK: Experts = Experts { gateway: with_store, ..ALL };

fn with_store(config: &Config) -> Vec<Unservable> {
    let mut found = unservable(config);
    if let StorePlace::File(path) = &config.store.place
        && path.is_dir()
    {
        let path = path.display();
        let why = Text::new(
            format!("{path} is a folder: name a file in it, such as koboshi.db"),
            format!("{path} はフォルダーです。その中のファイルを koboshi.db のように指定してください"),
        );
        found.push(Unservable { key: "store.path", entry: String::new(), why });
    }
    found
}

fn unset(provider: &str) -> Vec<&'static str> {
    unset_variables(provider, &|name| std::env::var(name).ok())
}

fn unservable(config: &Config) -> Vec<Unservable> {
    // A provider whose key is only in the gateway's own environment is no mistake of the file.
    let lookup = |name: &str| {
        let elsewhere = || name.ends_with("_API_KEY").then(|| KEY_ELSEWHERE.to_owned());
        std::env::var(name).ok().or_else(elsewhere)
    };
    let found = refusals(config, &clock::zones(), &lookup);
    // Rule files and the models file are checked elsewhere, with the place in them. Unset variables are a warning.
    let others = found.into_iter().filter(|one| !matches!(one.key, "rules" | "models_file" | "routes"));
    let of_gateway =
        others.map(|one| Unservable { why: reason(config, &one), key: one.key, entry: one.entry });
    let of_agents = supervise::unusable_schedules(config).into_iter().chain(kinds::unusable(config));
    of_gateway.chain(of_agents).chain(notify::unknown_zones(config)).collect()
}

/// The reason as text. The gateway has English only, so a file that cannot be opened is described here.
fn reason(config: &Config, refusal: &Refusal) -> Text {
    let path = path_of(config, refusal);
    let closed = path.and_then(|path| Some((path, cannot_open(File::open(path).err()?.kind())?)));
    match closed {
        Some((path, (en, ja))) => {
            Text::new(format!("{}: {en}", path.display()), format!("{}: {ja}", path.display()))
        }
        None => Text::new(refusal.why.clone(), refusal.why.clone()),
    }
}

/// The file that the refused key names.
fn path_of<'c>(config: &'c Config, refusal: &Refusal) -> Option<&'c Path> {
    let provider = || config.providers.get(&refusal.entry);
    match refusal.key {
        "degrade.answers_file" => config.degrade.answers_file.as_deref(),
        "providers.*.ca_file" => provider()?.ca_file.as_deref(),
        "providers.*.credentials_file" => provider()?.credentials_file.as_deref(),
        _ => None,
    }
}

const fn cannot_open(kind: io::ErrorKind) -> Option<(&'static str, &'static str)> {
    match kind {
        io::ErrorKind::NotFound => Some(("there is no such file", "ファイルがありません")),
        io::ErrorKind::PermissionDenied => Some(("permission denied", "権限がありません")),
        _ => None,
    }
}
