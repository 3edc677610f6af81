//! What the config says, for the commands that follow it.
//!
//! Precedence a reader can hold in the head: a flag beats a variable of the environment, that beats the config file,
//! that beats the default. The language is the exception: the config beats `LANG`, which was not set for Koboshi.

use std::path::{Path, PathBuf};

use koboshi_config::Config;
use koboshi_config::check::{Problem, Problems};
use koboshi_config::file::{check_file, locate};
use koboshi_config::load::{Loaded, Outside};
use koboshi_report::phrase::Lang;

use crate::args::LangArgs;
use crate::init::next_commands;
use crate::say::Say;
use crate::{Failure, experts};

/// Stands for the value of a variable that is not set here.
const UNSET: &str = "not-set-here";

/// The config that was asked for or is found, else the defaults, for a gateway: what `koboshi check` refuses is refused.
pub(crate) fn load_to_serve(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(Config::default()) };
    let checked = check_file(&file, Outside { lookup: &lookup, experts: experts::ALL });
    checked.map(|loaded| loaded.config).map_err(|problems| unusable(&file, &problems, lang))
}

fn unusable(file: &Path, problems: &Problems, lang: &LangArgs) -> Failure {
    let Ok(say) = Say::new(lang.get_with(problems.language())) else {
        return Failure::new(problems.to_string());
    };
    let (check, _) = next_commands(file);
    Failure::new(format!(
        "{}\n{}",
        say.text("config-unusable", &[("check", &check)]),
        problems.show(say.language())
    ))
}

/// The same for commands that ask no provider: a key that is only in the gateway's environment is not missed.
pub(crate) fn load_without_keys(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    Ok(look_without_keys(asked, lang)?.map(|(_, loaded)| loaded.config).unwrap_or_default())
}

/// The language for commands that follow no config, but speak as the one that is there says, be it broken.
pub(crate) fn language(lang: &LangArgs) -> Lang {
    let lookup = |name: &str| std::env::var(name).ok();
    let named = locate(None, &lookup).and_then(|file| match check_file(&file, Outside::new(&lookup)) {
        Ok(loaded) => loaded.config.language,
        Err(problems) => problems.language(),
    });
    lang.get_with(named)
}

/// The same with the file and what its config does not tell; none where there is no file.
pub(crate) fn look_without_keys(
    asked: Option<&Path>,
    lang: &LangArgs,
) -> Result<Option<(PathBuf, Loaded)>, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(None) };
    let filled = |name: &str| lookup(name).or_else(|| Some(UNSET.to_owned()));
    let loaded = check_file(&file, Outside::new(&lookup)).or_else(|problems| {
        check_file(&file, Outside::new(&filled)).map_err(|_| unusable(&file, &problems, lang))
    })?;
    Ok(Some((file, loaded)))
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
