//! What in the config would make a scenario better: found by playing it again with one key changed.

use std::time::Duration;

use koboshi_config::Config;
use koboshi_config::gateway::{Commit, GuardMode};
use koboshi_sim::{Reach, Scenario};

use super::judge::{Ending, Outcome};
use super::play::{Player, SPARE};
use super::report::Route;
use crate::Failure;

/// A wait that is worth a hint.
const LONG: Duration = Duration::from_secs(60);
/// The limits that a hint tries.
const FIRST: Duration = Duration::from_secs(20);
/// The attempts that a hint tries.
const ATTEMPTS: u32 = 3;

/// A change of the config that helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// More attempts.
    Attempts,
    /// The loop guard may act.
    Guard,
    /// Another target in the chain.
    Fallback,
    /// The client sees nothing before the answer is complete.
    Complete,
    /// Shorter limits of time.
    Timeouts,
    /// An answer that is prepared for when nothing works.
    Prepared,
}

/// The changes that may help where a client got no answer, in the order of what they ask of an operator.
const TOWARDS_ANSWER: &[Change] = &[Change::Attempts, Change::Guard, Change::Fallback, Change::Complete];

/// The change that makes this scenario better, if one does.
pub(super) fn advice(
    player: &Player,
    config: &Config,
    route: &Route,
    scenario: &Scenario,
    outcome: &Outcome,
) -> Result<Option<Change>, Failure> {
    if !outcome.is_good {
        for change in TOWARDS_ANSWER {
            // Where everything falls, another target would fall too.
            if *change == Change::Fallback && scenario.reach == Reach::Everything {
                continue;
            }
            let Some(changed) = change.of(config, route) else { continue };
            if player.play(&changed, route, scenario)?.is_good {
                return Ok(Some(*change));
            }
        }
        return Ok(None);
    }
    let change = match outcome.ending {
        Ending::Error => Change::Prepared,
        _ if outcome.took > LONG => Change::Timeouts,
        _ => return Ok(None),
    };
    let Some(changed) = change.of(config, route) else { return Ok(None) };
    let new = player.play(&changed, route, scenario)?;
    let helps = match change {
        Change::Prepared => new.ending < Ending::Error,
        _ => new.is_good && new.ending <= outcome.ending && new.took * 2 < outcome.took,
    };
    Ok(helps.then_some(change))
}

impl Change {
    /// The config with this change; none where it has it already.
    fn of(self, config: &Config, route: &Route) -> Option<Config> {
        let mut changed = config.clone();
        match self {
            Self::Attempts if config.remedy.backoff.attempts < ATTEMPTS => {
                changed.remedy.backoff.attempts = ATTEMPTS;
            }
            Self::Guard => {
                let own = changed.routes.get_mut(&route.name)?;
                if own.guard.unwrap_or(config.guard.mode) == GuardMode::Stop {
                    return None;
                }
                own.guard = Some(GuardMode::Stop);
            }
            Self::Fallback => changed.routes.get_mut(&route.name)?.chain.push(SPARE.to_owned()),
            Self::Complete => {
                let own = changed.routes.get_mut(&route.name)?;
                if own.commit == Commit::Complete {
                    return None;
                }
                own.commit = Commit::Complete;
            }
            Self::Timeouts => {
                for timeouts in changed
                    .providers
                    .values_mut()
                    .map(|one| &mut one.timeouts)
                    .chain(changed.models.values_mut().map(|one| &mut one.timeouts))
                {
                    (timeouts.first_token, timeouts.unary, timeouts.idle) =
                        (Some(FIRST), Some(LONG), Some(FIRST));
                }
            }
            Self::Prepared => {
                let own = changed.routes.get_mut(&route.name)?;
                own.simple_model = Some(SPARE.to_owned());
            }
            Self::Attempts => return None,
        }
        Some(changed)
    }
}
