//! Loads the config, for the commands that use it.
//!
//! Simple precedence: a flag beats an environment variable, that beats the config file,
//! that beats the default. The language is the exception: the config beats `LANG`, which was not set for Koboshi.

use std::io::Write;
use std::path::{Path, PathBuf};

use koboshi_config::Config;
use koboshi_config::check::{Problem, Problems};
use koboshi_config::file::{check_file, locate};
use koboshi_config::load::{Environment, LoadedConfig};
use koboshi_report::phrase::Lang;

use crate::args::LangArgs;
use crate::init::next_commands;
use crate::say::Say;
use crate::{Failure, experts};

/// Stands for the value of a variable that is not set here.
pub(crate) const UNSET: &str = "not-set-here";

/// The config that the user named or that was found, else the defaults, for a gateway: what `koboshi check` refuses is refused.
pub(crate) fn load_to_serve(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(Config::default()) };
    let checked = check_file(&file, Environment { lookup: &lookup, experts: experts::ALL });
    checked.map(|loaded| loaded.config).map_err(|problems| unusable(&file, &problems, lang))
}

pub(crate) fn unusable(file: &Path, problems: &Problems, lang: &LangArgs) -> Failure {
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

/// The same for commands that ask no provider: a key that is only in the gateway's environment may be missing.
pub(crate) fn load_without_keys(asked: Option<&Path>, lang: &LangArgs) -> Result<Config, Failure> {
    Ok(find_without_keys(asked, lang)?.map(|(_, loaded)| loaded.config).unwrap_or_default())
}

/// The same for commands that answer without a config too. One that is only found, and cannot be used, is reported and left out; one that
/// was asked for is refused.
pub(crate) fn find_or_go_on(
    asked: Option<&Path>,
    lang: &LangArgs,
) -> Result<Option<(PathBuf, LoadedConfig)>, Failure> {
    let found = find_without_keys(asked, lang);
    let Err(failure) = &found else { return found };
    if asked.is_some() {
        return found;
    }
    let say = Say::new(language(lang))?;
    let said = failure.text(say.language());
    writeln!(anstream::stderr().lock(), "koboshi: {}\n{said}\n", say.text("config-left-out", &[]))?;
    Ok(None)
}

/// The language for commands that use no other setting of the config, even of a broken one.
pub(crate) fn language(lang: &LangArgs) -> Lang {
    let lookup = |name: &str| std::env::var(name).ok();
    let named = locate(None, &lookup).and_then(|file| match check_file(&file, Environment::new(&lookup)) {
        Ok(loaded) => loaded.config.language,
        Err(problems) => problems.language(),
    });
    lang.get_with(named)
}

/// The same with the file and further facts about it; none where there is no file.
pub(crate) fn find_without_keys(
    asked: Option<&Path>,
    lang: &LangArgs,
) -> Result<Option<(PathBuf, LoadedConfig)>, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    let Some(file) = locate(asked, &lookup) else { return Ok(None) };
    let filled = |name: &str| lookup(name).or_else(|| Some(UNSET.to_owned()));
    let loaded = check_file(&file, Environment::new(&lookup)).or_else(|problems| {
        check_file(&file, Environment::new(&filled)).map_err(|_| unusable(&file, &problems, lang))
    })?;
    Ok(Some((file, loaded)))
}

/// A usable file with facts that its config does not contain: what should be changed, and the order of its routes.
pub(crate) fn load_if_usable(file: &Path) -> Option<LoadedConfig> {
    let lookup = |name: &str| std::env::var(name).ok();
    check_file(file, Environment::new(&lookup)).ok()
}

/// What should be changed in a usable file: old names of keys, an address without its usual path.
pub(crate) fn warnings(loaded: &LoadedConfig) -> Vec<String> {
    let one = |warning: &Problem| {
        let line = warning.place.map(|place| format!(":{}", place.line)).unwrap_or_default();
        format!("{}{line}: {}", warning.file, warning.message)
    };
    loaded.warnings.iter().map(one).collect()
}
