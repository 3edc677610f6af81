//! Asks the core's policies whether the values make sense together, and names the keys that do not.
//!
//! A policy says only the first thing that is wrong. To find the next ones, the keys of a complaint are put back to their
//! defaults, which always fit, and the policy is asked again.

use koboshi::backoff::BackoffError;
use koboshi::breaker::BreakerPolicyError;
use koboshi::cooldown::CooldownPolicyError;
use koboshi::gate::GatePolicyError;
use koboshi::guard::GuardPolicyError;

use crate::check::Problem;
use crate::config::Config;
use crate::schema::Key;
use crate::walk::{Given, Walk};
use crate::words::{Text, text, tr, words};

/// What a policy complains of, in terms of keys.
struct Complaint {
    what: What,
    /// The policy's own words.
    said: String,
}

enum What {
    /// The value of one of the first keys is above that of one of the second; of each, the one that the file gives.
    Above(Vec<String>, Vec<String>),
    /// One of these keys, the one that the file gives.
    Keys(Vec<String>),
}

/// Everything that does not make sense. The config is changed on the way.
pub(crate) fn check(config: &mut Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found: Vec<Problem> = Vec::new();
    // Each round puts at least one key back, so there are fewer rounds than keys; a core that is never content ends it.
    for _ in 0..64 {
        let Some(complaint) = first(config) else { break };
        let (low, high) = match &complaint.what {
            What::Above(low, high) => (low.as_slice(), high.as_slice()),
            What::Keys(keys) => (keys.as_slice(), [].as_slice()),
        };
        let involved = || low.iter().chain(high).filter_map(|path| Key::find(path));
        if !involved().any(|key| walk.failed(key.path, ""))
            && let Some(problem) = problem(&complaint, config, walk)
            && !found.contains(&problem)
        {
            found.push(problem);
        }
        // The keys of `error_protection` are other names; putting the limit of all classes back would change the rest.
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

/// The first of these keys that the file gives, in whatever entry.
fn given<'w>(paths: &[String], walk: &'w Walk<'_>) -> Option<&'w Given> {
    paths.iter().find_map(|path| walk.all_given(Key::find(path)?.path).next())
}

fn problem(complaint: &Complaint, config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    match &complaint.what {
        What::Keys(keys) => {
            let given = given(keys, walk)?;
            // The core says it in English only; what a file can bring about has its own sentence.
            let never = complaint.said == BreakerPolicyError::NeverOpens.to_string();
            let ja = if never {
                "このままではブレーカーがオープンすることはありません"
            } else {
                complaint.said.as_str()
            };
            let message = Text::new(
                format!("`{}` does not fit: {}", given.at.shown, complaint.said),
                format!("`{}` の値が合っていません: {ja}", given.at.shown),
            );
            let hint = words(
                "set it to a number, or choose the preset `window` or `both`",
                "数値を設定するか、プリセット `window` か `both` を選んでください",
            );
            Some(walk.problem(&given.at, given.spot, message, never.then(|| hint.into())))
        }
        What::Above(low, high) => {
            let (low_given, high_given) = (given(low, walk), given(high, walk));
            let shown_at = low_given.or(high_given)?;
            let side = |given: Option<&Given>, paths: &[String]| {
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
fn first(config: &Config) -> Option<Complaint> {
    let retry = config.remedy.backoff.validate().err().map(|error| of(backoff(error), error));
    let breaker = || config.breaker.validate().err().map(|error| of(breaker(error), error));
    let gate = || config.gate.validate().err().map(|error| of(gate(error), error));
    let cooldown = || config.cooldown.validate().err().map(|error| of(cooldown(error), error));
    let guard = || config.guard.policy.validate().err().map(|error| of(guard(&error), error));
    retry.or_else(breaker).or_else(gate).or_else(cooldown).or_else(guard)
}

fn of(what: What, error: impl std::error::Error) -> Complaint {
    Complaint { what, said: error.to_string() }
}

fn keys(paths: &[&str]) -> What {
    What::Keys(owned(paths))
}

fn above(low: &[&str], high: &[&str]) -> What {
    What::Above(owned(low), owned(high))
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// A complaint that this version does not know: any key of the section may be meant.
fn any_of(section: &str) -> What {
    let within = |key: &&Key| key.path.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
    What::Keys(crate::schema::KEYS.iter().filter(within).map(|key| key.path.to_owned()).collect())
}

fn backoff(error: BackoffError) -> What {
    match error {
        BackoffError::NoAttempt => keys(&["retry.max_attempts"]),
        BackoffError::Shrinking => keys(&["retry.multiplier"]),
        BackoffError::AboveCap => above(&["retry.initial_delay"], &["retry.max_delay"]),
        _ => any_of("retry"),
    }
}

fn breaker(error: BreakerPolicyError) -> What {
    use BreakerPolicyError as Error;
    match error {
        Error::NeverOpens | Error::Consecutive => keys(&["breaker.consecutive_failures"]),
        Error::Window => keys(&["breaker.window.calls", "breaker.window.time"]),
        Error::LeastCalls => above(&["breaker.window.min_calls"], &["breaker.window.calls"]),
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

fn gate(error: GatePolicyError) -> What {
    match error {
        GatePolicyError::Concurrency => keys(&["gate.max_concurrency"]),
        GatePolicyError::Queue => keys(&["gate.max_queue"]),
        GatePolicyError::Headroom => keys(&["gate.headroom"]),
        _ => any_of("gate"),
    }
}

fn cooldown(error: CooldownPolicyError) -> What {
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

fn guard(error: &GuardPolicyError) -> What {
    use GuardPolicyError as Error;
    match error {
        Error::Low(rule) | Error::High(rule) => What::Keys(vec![
            format!("guard.{}.limit", rule.name()),
            format!("guard.tools.*.{}.limit", rule.name()),
            format!("guard.tools.*.{}.action", rule.name()),
        ]),
        Error::Looser(looser, rule) => {
            // The core's names are those that the file had before.
            let looser = Key::named("guard", looser).map_or(*looser, Key::name);
            above(&[&format!("guard.{}.limit", rule.name())], &[&format!("guard.{looser}")])
        }
        Error::Window => above(&["guard.alternating_errors.limit"], &["guard.window"]),
        _ => any_of("guard"),
    }
}
