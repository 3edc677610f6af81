//! Asks the core's policies whether the values fit together, and names the keys that do not.
//!
//! A policy reports only its first problem. To find the next ones, the keys of a problem are reset to their
//! defaults, which always fit, and the policy is asked again.

use koboshi::backoff::BackoffError;
use koboshi::breaker::BreakerPolicyError;
use koboshi::cooldown::CooldownPolicyError;
use koboshi::gate::GatePolicyError;
use koboshi::guard::GuardPolicyError;

use crate::check::Problem;
use crate::config::Config;
use crate::schema::Key;
use crate::walk::{GivenKey, Walk};
use crate::words::{Text, text, tr, words};

/// A policy's complaint, in terms of keys.
struct PolicyError {
    what: InvalidKeys,
    /// The policy's own message.
    message: String,
}

enum InvalidKeys {
    /// The value of one of the first keys is above that of one of the second; of each, the key that is in the file.
    Above(Vec<String>, Vec<String>),
    /// One of these keys, the one that is in the file.
    Keys(Vec<String>),
}

/// Everything that does not fit. The config is changed in the process.
pub(crate) fn check(config: &mut Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found: Vec<Problem> = Vec::new();
    // Each round resets at least one key, so there are fewer rounds than keys; the bound ends it if a policy never accepts.
    for _ in 0..64 {
        let Some(complaint) = first(config) else { break };
        let (low, high) = match &complaint.what {
            InvalidKeys::Above(low, high) => (low.as_slice(), high.as_slice()),
            InvalidKeys::Keys(keys) => (keys.as_slice(), [].as_slice()),
        };
        let involved = || low.iter().chain(high).filter_map(|path| Key::find(path));
        if !involved().any(|key| walk.failed(key.path, ""))
            && let Some(problem) = problem(&complaint, config, walk)
            && !found.contains(&problem)
        {
            found.push(problem);
        }
        // The keys of `error_protection` are other names; resetting the limit of all classes would change the others.
        for key in involved().filter(|key| !key.path.starts_with("error_protection.")) {
            for entry in names(key, config) {
                if let Some(default) = key.default_value() {
                    key.set(config, &entry, default);
                }
            }
        }
    }
    found
}

/// The names of the entries that a key is in.
fn names(key: &Key, config: &Config) -> Vec<String> {
    key.entries().map_or_else(|| vec![String::new()], |entries| (entries.names)(config))
}

/// The first of these keys that is in the file, in any entry.
fn given<'w>(paths: &[String], walk: &'w Walk<'_>) -> Option<&'w GivenKey> {
    paths.iter().find_map(|path| walk.all_given(Key::find(path)?.path).next())
}

fn problem(complaint: &PolicyError, config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    match &complaint.what {
        InvalidKeys::Keys(keys) => {
            let given = given(keys, walk)?;
            // The core has its messages in English only; the one that a file can cause is translated here.
            let never = complaint.message == BreakerPolicyError::NeverOpens.to_string();
            let ja = if never {
                "このままではブレーカーがオープンすることはありません"
            } else {
                complaint.message.as_str()
            };
            let message = Text::new(
                format!("`{}` does not fit: {}", given.at.shown, complaint.message),
                format!("`{}` の値が合っていません: {ja}", given.at.shown),
            );
            let hint = words(
                "set it to a number, or choose the preset `window` or `both`",
                "数値を設定するか、プリセット `window` か `both` を選んでください",
            );
            Some(walk.problem(&given.at, given.spot, message, never.then(|| hint.into())))
        }
        InvalidKeys::Above(low, high) => {
            let (low_given, high_given) = (given(low, walk), given(high, walk));
            let shown_at = low_given.or(high_given)?;
            let side = |given: Option<&GivenKey>, paths: &[String]| {
                let key = given.map(|given| given.at.key).or_else(|| Key::find(paths.first()?))?;
                let note = if given.is_some() {
                    words("", "")
                } else {
                    words(" (not set in this file)", "（このファイルでは未設定）")
                };
                Some((key.path, key.get(config, "")?.to_string(), note))
            };
            let (low, low_value, low_note) = side(low_given, low)?;
            let (high, high_value, high_note) = side(high_given, high)?;
            let message = Text::of(|language| {
                let (low_note, high_note) = (low_note.get(language), high_note.get(language));
                tr!(
                    language,
                    "`{low}` is {low_value}{low_note}, above `{high}`, which is {high_value}{high_note}",
                    "`{low}` が {low_value}{low_note}で、`{high}` の {high_value}{high_note}を超えています"
                )
            });
            let hint = text!(
                "set `{low}` to {high_value} or less, or `{high}` to {low_value} or more",
                "`{low}` を {high_value} 以下にするか、`{high}` を {low_value} 以上にしてください"
            );
            Some(walk.problem(&shown_at.at, shown_at.spot, message, Some(hint)))
        }
    }
}

/// The first complaint of any policy.
fn first(config: &Config) -> Option<PolicyError> {
    let retry = config.remedy.backoff.validate().err().map(|error| of(backoff(error), error));
    let breaker = || config.breaker.validate().err().map(|error| of(breaker(error), error));
    let gate = || config.gate.validate().err().map(|error| of(gate(error), error));
    let cooldown = || config.cooldown.validate().err().map(|error| of(cooldown(error), error));
    let guard = || config.guard.policy.validate().err().map(|error| of(guard(&error), error));
    retry.or_else(breaker).or_else(gate).or_else(cooldown).or_else(guard)
}

fn of(what: InvalidKeys, error: impl std::error::Error) -> PolicyError {
    PolicyError { what, message: error.to_string() }
}

fn keys(paths: &[&str]) -> InvalidKeys {
    InvalidKeys::Keys(owned(paths))
}

fn above(low: &[&str], high: &[&str]) -> InvalidKeys {
    InvalidKeys::Above(owned(low), owned(high))
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// A complaint that this version does not know: any key of the section may be the cause.
fn any_of(section: &str) -> InvalidKeys {
    let within = |key: &&Key| key.path.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
    InvalidKeys::Keys(crate::schema::KEYS.iter().filter(within).map(|key| key.path.to_owned()).collect())
}

fn backoff(error: BackoffError) -> InvalidKeys {
    match error {
        BackoffError::NoAttempt => keys(&["retry.max_attempts"]),
        BackoffError::Shrinking => keys(&["retry.multiplier"]),
        BackoffError::AboveCap => above(&["retry.initial_delay"], &["retry.max_delay"]),
        _ => any_of("retry"),
    }
}

fn breaker(error: BreakerPolicyError) -> InvalidKeys {
    use BreakerPolicyError as Error;
    match error {
        Error::NeverOpens | Error::Consecutive => keys(&["breaker.consecutive_failures"]),
        Error::Window => keys(&["breaker.window.calls", "breaker.window.time"]),
        Error::MinCalls => above(&["breaker.window.min_calls"], &["breaker.window.calls"]),
        Error::Rate => keys(&["breaker.window.failure_rate", "breaker.window.slow.rate"]),
        Error::SlowCall => keys(&["breaker.window.slow.rate", "breaker.window.slow.longer_than"]),
        Error::Growth => keys(&["breaker.open.multiplier"]),
        Error::OpenTime => above(&["breaker.open.initial"], &["breaker.open.max"]),
        Error::Jitter => keys(&["breaker.open.jitter"]),
        Error::Probe => {
            keys(&["breaker.probe.max_concurrent", "breaker.probe.successes", "breaker.probe.timeout"])
        }
        Error::Pace => keys(&["breaker.probe.last_target_interval"]),
        _ => any_of("breaker"),
    }
}

fn gate(error: GatePolicyError) -> InvalidKeys {
    match error {
        GatePolicyError::Concurrency => keys(&["gate.max_concurrency"]),
        GatePolicyError::Queue => keys(&["gate.max_queue"]),
        GatePolicyError::Headroom => keys(&["gate.headroom"]),
        _ => any_of("gate"),
    }
}

fn cooldown(error: CooldownPolicyError) -> InvalidKeys {
    use CooldownPolicyError as Error;
    let of_class = |class: koboshi::cooldown::Class, key: &str| format!("cooldown.{}.{key}", class.name());
    match error {
        Error::Base(class) => {
            let (base, cap) = (of_class(class, "initial"), of_class(class, "max"));
            let mut low = vec![base.as_str()];
            if class == koboshi::cooldown::Class::Error {
                low.push("error_protection.default_cooldown_seconds");
            }
            above(&low, &[cap.as_str(), "error_protection.max_cooldown_seconds"])
        }
        Error::Growth(class) => keys(&[&of_class(class, "multiplier")]),
        Error::Park(class) => keys(&[&of_class(class, "park_after")]),
        Error::Share(_) => keys(&["cooldown.margin.share", "cooldown.jitter"]),
        Error::Margin => above(&["cooldown.margin.min"], &["cooldown.margin.max"]),
        Error::Starts => keys(&["cooldown.max_starts"]),
        _ => any_of("cooldown"),
    }
}

fn guard(error: &GuardPolicyError) -> InvalidKeys {
    use GuardPolicyError as Error;
    match error {
        Error::Low(rule) | Error::High(rule) => InvalidKeys::Keys(vec![
            format!("guard.{}.limit", rule.name()),
            format!("guard.tools.*.{}.limit", rule.name()),
            format!("guard.tools.*.{}.action", rule.name()),
        ]),
        Error::Looser(looser, rule) => {
            // The core uses the former names of the keys.
            let looser = Key::named("guard", looser).map_or(*looser, Key::name);
            above(&[&format!("guard.{}.limit", rule.name())], &[&format!("guard.{looser}")])
        }
        Error::Window => above(&["guard.alternating_errors.limit"], &["guard.window"]),
        Error::OfTurn(rule, _) => InvalidKeys::Keys(vec![
            format!("guard.tools.*.{}.limit", rule.name()),
            format!("guard.tools.*.{}.action", rule.name()),
        ]),
        _ => any_of("guard"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in a block that begins with this text in the first column.
    fn block<'s>(source: &'s str, begin: &str) -> &'s str {
        let (_, rest) = source.split_once(begin).unwrap();
        rest.split_once("\n}").unwrap().0
    }

    /// The errors may grow, so that the compiler does not ask for their keys; then any key of the section would be reported.
    #[test]
    fn every_policy_error_names_its_keys() {
        let own = include_str!("policy.rs");
        for (source, error, reader) in [
            (include_str!("../../koboshi/src/backoff.rs"), "BackoffError", "backoff"),
            (include_str!("../../koboshi/src/breaker/policy.rs"), "BreakerPolicyError", "breaker"),
            (include_str!("../../koboshi/src/gate/policy.rs"), "GatePolicyError", "gate"),
            (include_str!("../../koboshi/src/cooldown/policy.rs"), "CooldownPolicyError", "cooldown"),
            (include_str!("../../koboshi/src/guard/policy.rs"), "GuardPolicyError", "guard"),
        ] {
            let reader = block(own, &format!("\nfn {reader}("));
            let variants: Vec<&str> = block(source, &format!("pub enum {error} {{"))
                .lines()
                .filter_map(|line| line.strip_prefix("    ")?.split(['(', ',', ' ']).next())
                .filter(|word| word.starts_with(|letter: char| letter.is_ascii_uppercase()))
                .collect();
            assert!(variants.len() >= 3, "{error}: {variants:?}");
            let words: Vec<_> = reader.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
            for variant in variants {
                assert!(words.contains(&variant), "{error}::{variant} names no key");
            }
            for path in reader.split('"').skip(1).step_by(2).filter(|path| path.contains('.')) {
                assert!(path.contains('{') || Key::find(path).is_some(), "{path} is no key");
            }
        }
    }
}
