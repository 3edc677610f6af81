//! Models of the simulated provider that do not exist. Only the simulation knows its names, so the caller passes a check.

use super::named;
use crate::check::{MAX_PROBLEMS, Problem};
use crate::config::Config;
use crate::gateway::{ProviderKind, SIM};
use crate::load::Mistake;
use crate::walk::Walk;
use crate::words::{Text, tr};

pub(super) fn check(config: &Config, walk: &Walk<'_>, mistake: fn(&str) -> Option<Mistake>) -> Vec<Problem> {
    let is_sim = |provider: &str| {
        let kind = config.providers.get(provider).map(|one| one.kind);
        kind == Some(ProviderKind::Sim) || kind.is_none() && provider == SIM
    };
    let wrong = named(config, walk).into_iter().filter_map(|(at, spot, target)| {
        let (provider, model) = target.split_once('/')?;
        // The client's model is not known here.
        let fixed = is_sim(provider) && !model.contains("{model}");
        let Mistake { message: said, hint } = fixed.then(|| mistake(model)).flatten()?;
        let (shown, quoted) = (&at.shown, walk.quote(target));
        let message = Text::of(|language| {
            let said = said.get(language);
            tr!(language, "`{shown}` names `{quoted}`: {said}", "`{shown}` の `{quoted}`: {said}")
        });
        Some(walk.problem(at, spot, message, hint))
    });
    wrong.take(MAX_PROBLEMS).collect()
}
