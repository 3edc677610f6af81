//! What the config says, for the commands that follow it.
//!
//! Precedence a reader can hold in the head: a flag beats a variable of the environment, that beats the config file,
//! that beats the default. The language is the exception: the config beats `LANG`, which was not set for Koboshi.

use std::path::Path;

use koboshi_config::Config;
use koboshi_config::check::Problem;
use koboshi_config::file::{check_file, load_file, locate};
use koboshi_config::load::{Experts, Loaded, Outside};

use crate::args::LangArgs;
use crate::say::Say;
use crate::{Failure, experts};

/// Stands for the value of a variable that is not set here.
const UNSET: &str = "not-set-here";

/// The config that was asked for or is found, else the defaults.
fn load(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    load_asking(Experts::NONE, asked, lang)
}

/// The same for a gateway: what `koboshi check` refuses is refused.
pub(crate) fn load_to_serve(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    load_asking(experts::ALL, asked, lang)
}

fn load_asking(experts: Experts, asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(Config::default()) };
    let checked = check_file(&file, Outside { lookup: &lookup, experts });
    checked.map(|loaded| loaded.config).map_err(|problems| {
        // A file that cannot be used cannot say in which language to complain of it.
        let Ok(say) = Say::new(lang.get(&Config::default())) else {
            return Failure::new(problems.to_string());
        };
        Failure::new(format!("{}\n{}", say.text("config-unusable", &[]), problems.show(say.language())))
    })
}

/// The same for commands that ask no provider: a key that is only in the gateway's environment is not missed.
pub(crate) fn load_without_keys(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let strict = load(asked, lang);
    let Some(file) = locate(asked, &lookup).filter(|_| strict.is_err()) else { return strict };
    let filled = |name: &str| lookup(name).or_else(|| Some(UNSET.to_owned()));
    load_file(&file, &filled).or(strict)
}

/// A file that can be used, with what its config does not tell: what should be changed, and the order of its routes.
pub(crate) fn look(file: &Path) -> Option<Loaded> {
    let lookup = |name: &str| std::env::var(name).ok();
    check_file(file, Outside::new(&lookup)).ok()
}

/// What should be changed in a file that can be used all the same: old names of keys, an address without its usual path.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<String> {
    let one = |warning: &Problem| {
        let line = warning.place.map(|place| format!(":{}", place.line)).unwrap_or_default();
        format!("{}{line}: {}", warning.file, warning.message)
    };
    loaded.warnings.iter().map(one).collect()
}
