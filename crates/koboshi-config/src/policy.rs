//! Asks the core's policies whether the values make sense together, and names the keys that do not.
//!
//! A policy says only the first thing that is wrong. To find the next ones, the keys of a complaint are put back to their
//! defaults, which always fit, and the policy is asked again.

use koboshi::backoff::BackoffError;
use koboshi::breaker::BreakerPolicyError;
use koboshi::cooldown::CooldownPolicyError;
use koboshi::gate::GatePolicyError;

use crate::check::Problem;
use crate::config::Config;
use crate::load::Walk;
use crate::schema::Key;

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
    let defaults = Config::default();
    let mut found: Vec<Problem> = Vec::new();
    // Each round puts at least one key back, so there are fewer rounds than keys; a core that is never content ends it.
    for _ in 0..64 {
        let Some(complaint) = first(config) else { break };
        let involved: Vec<&String> = match &complaint.what {
            What::Above(low, high) => low.iter().chain(high).collect(),
            What::Keys(keys) => keys.iter().collect(),
        };
        if !involved.iter().any(|path| walk.failed(path))
            && let Some(problem) = problem(&complaint, config, walk)
            && !found.contains(&problem)
        {
            found.push(problem);
        }
        // The keys of `error_protection` are other names; putting the limit of all classes back would change the rest.
        let own = involved.iter().filter(|path| !path.starts_with("error_protection."));
        for key in own.filter_map(|path| Key::find(path)) {
            if let Some(default) = key.get(&defaults) {
                key.set(config, default);
            }
        }
    }
    found
}

fn problem(complaint: &Complaint, config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    let given =
        |paths: &[String]| paths.iter().find_map(|path| walk.spot(path).map(|spot| (path.clone(), spot)));
    match &complaint.what {
        What::Keys(keys) => {
            let (path, spot) = given(keys)?;
            let message = format!("`{path}` does not fit: {}", complaint.said);
            let never = complaint.said == BreakerPolicyError::NeverOpens.to_string();
            let hint =
                never.then(|| "set it to a number, or choose the preset `window` or `both`".to_owned());
            Some(walk.problem(spot, &path, message, hint))
        }
        What::Above(low, high) => {
            let (low_given, high_given) = (given(low), given(high));
            let spot = low_given.as_ref().or(high_given.as_ref())?.1;
            let side = |given: &Option<(String, _)>, paths: &[String]| {
                let path = given.as_ref().map(|(path, _)| path.clone()).or_else(|| paths.first().cloned())?;
                let value = Key::find(&path)?.get(config)?;
                Some((path, value.to_string(), if given.is_some() { "" } else { " (not set in this file)" }))
            };
            let (low, low_value, low_note) = side(&low_given, low)?;
            let (high, high_value, high_note) = side(&high_given, high)?;
            let message =
                format!("`{low}` is {low_value}{low_note}, above `{high}`, which is {high_value}{high_note}");
            let hint = format!("set `{low}` to {high_value} or less, or `{high}` to {low_value} or more");
            let path = if low_given.is_some() { &low } else { &high };
            Some(walk.problem(spot, path, message, Some(hint)))
        }
    }
}

/// The first complaint of any policy.
fn first(config: &Config) -> Option<Complaint> {
    let retry = config.remedy.backoff.validate().err().map(|error| of(backoff(error), error));
    let breaker = || config.breaker.validate().err().map(|error| of(breaker(error), error));
    let gate = || config.gate.validate().err().map(|error| of(gate(error), error));
    let cooldown = || config.cooldown.validate().err().map(|error| of(cooldown(error), error));
    retry.or_else(breaker).or_else(gate).or_else(cooldown)
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
        BackoffError::NoAttempt => keys(&["retry.attempts"]),
        BackoffError::Shrinking => keys(&["retry.growth"]),
        BackoffError::AboveCap => above(&["retry.first"], &["retry.cap"]),
        _ => any_of("retry"),
    }
}

fn breaker(error: BreakerPolicyError) -> What {
    use BreakerPolicyError as Error;
    match error {
        Error::NeverOpens | Error::Consecutive => keys(&["breaker.consecutive"]),
        Error::Window => keys(&["breaker.window.calls", "breaker.window.time"]),
        Error::LeastCalls => above(&["breaker.window.least_calls"], &["breaker.window.calls"]),
        Error::Rate => keys(&["breaker.window.failure_rate", "breaker.window.slow.rate"]),
        Error::SlowCall => keys(&["breaker.window.slow.rate", "breaker.window.slow.longer_than"]),
        Error::Growth => keys(&["breaker.open.growth"]),
        Error::OpenTime => above(&["breaker.open.first"], &["breaker.open.cap"]),
        Error::Jitter => keys(&["breaker.open.jitter"]),
        Error::Probe => keys(&["breaker.probe.permits", "breaker.probe.successes", "breaker.probe.longest"]),
        Error::Pace => keys(&["breaker.probe.last_target_every"]),
        _ => any_of("breaker"),
    }
}

fn gate(error: GatePolicyError) -> What {
    match error {
        GatePolicyError::Concurrency => keys(&["gate.concurrency"]),
        GatePolicyError::Queue => keys(&["gate.queue"]),
        GatePolicyError::Headroom => keys(&["gate.headroom"]),
        _ => any_of("gate"),
    }
}

fn cooldown(error: CooldownPolicyError) -> What {
    use CooldownPolicyError as Error;
    let of_class = |class: koboshi::cooldown::Class, key: &str| format!("cooldown.{}.{key}", class.name());
    match error {
        Error::Base(class) => {
            let (base, cap) = (of_class(class, "base"), of_class(class, "cap"));
            let mut low = vec![base.as_str()];
            if class == koboshi::cooldown::Class::Error {
                low.push("error_protection.default_cooldown_seconds");
            }
            above(&low, &[cap.as_str(), "error_protection.max_cooldown_seconds"])
        }
        Error::Growth(class) => keys(&[&of_class(class, "growth")]),
        Error::Park(class) => keys(&[&of_class(class, "park_after")]),
        Error::Share(_) => keys(&["cooldown.margin.share", "cooldown.jitter"]),
        Error::Margin => above(&["cooldown.margin.least"], &["cooldown.margin.most"]),
        Error::Starts => keys(&["cooldown.starts"]),
        _ => any_of("cooldown"),
    }
}
