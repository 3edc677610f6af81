//! The unit tests of the spawn-protection design (its sections 1.1 and 1.2), on virtual time.
//!
//! Names and values are the design's. Where it was wrong the right behaviour stands here with the reason: a stated
//! reset is not cut down to the cap, because every start before it would fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::chance::Seed;
use koboshi::classify::{AgentLog, Classifier, Rules};
use koboshi::cooldown::{Class, CooldownPolicy, Cooldowns, Failure, Rest, RunEnd};
use koboshi::key::ScopeKey;

fn at(second: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs_f64(1.8e9 + second)).unwrap()
}

fn key() -> ScopeKey {
    ScopeKey::agent("agt_001", "prj_001").unwrap()
}

fn manager(default_seconds: u64) -> Cooldowns {
    let mut policy = CooldownPolicy::default();
    policy.error.base = Duration::from_secs(default_seconds);
    Cooldowns::new(policy).unwrap()
}

fn set(manager: &mut Cooldowns, exit_code: i32, now: f64) {
    let end = RunEnd { exit_code: Some(exit_code), ran: None, fault: None };
    manager.run_ended(&key(), &end, at(now), Seed::new(1));
}

fn seconds(rest: &Rest, now: f64) -> f64 {
    rest.ends(at(now)).duration_since(at(now)).as_secs_f64()
}

// ===== 1.1 =====

#[test]
fn no_cooldown_initially() {
    assert!(manager(60).check(&key(), at(0.0)).is_none());
}

#[test]
fn cooldown_set_on_error() {
    let mut manager = manager(60);
    set(&mut manager, 1, 0.0);
    let entry = manager.check(&key(), at(0.0)).unwrap();
    assert_eq!(entry.class.name(), "error");
    assert!((59.0..=61.0).contains(&seconds(entry, 0.0)));
}

#[test]
fn cooldown_not_set_on_success() {
    let mut manager = manager(60);
    set(&mut manager, 0, 0.0);
    assert!(manager.check(&key(), at(0.0)).is_none());
}

#[test]
fn cooldown_cleared_on_success() {
    let mut manager = manager(60);
    set(&mut manager, 1, 0.0);
    assert!(manager.check(&key(), at(0.0)).is_some());
    set(&mut manager, 0, 1.0);
    assert!(manager.check(&key(), at(1.0)).is_none());
}

#[test]
fn cooldown_expires() {
    let mut manager = manager(1);
    set(&mut manager, 1, 0.0);
    assert!(manager.check(&key(), at(0.0)).is_some());
    assert!(manager.check(&key(), at(1.1)).is_none());
}

#[test]
fn consecutive_error_count() {
    let mut manager = manager(60);
    for expected in 1..=3 {
        set(&mut manager, 1, 0.0);
        assert_eq!(manager.check(&key(), at(0.0)).unwrap().streak(), expected);
    }
}

// ===== 1.2 =====

/// How long the log of a failed run makes the key rest, where it tells of a quota or a rate limit.
fn detect(log: &str, max_seconds: Option<u64>) -> Option<f64> {
    let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled());
    let now = at(0.0).to_zoned(TimeZone::UTC);
    let fault = classifier.log(&AgentLog { text: log, exit_code: Some(1), since: None }, &now)?;
    let failure = Failure::of(&fault);
    if !matches!(failure.class, Class::Quota | Class::RateLimit) {
        return None;
    }
    let mut policy = CooldownPolicy::default();
    if let Some(max) = max_seconds {
        policy.quota.cap = Duration::from_secs(max);
        policy.quota.base = policy.quota.base.min(policy.quota.cap);
    }
    let mut manager = Cooldowns::new(policy).unwrap();
    manager.fail(&key(), &failure, at(0.0), Seed::new(1));
    manager.check(&key(), at(0.0)).map(|rest| seconds(rest, 0.0))
}

#[test]
fn detect_gemini_quota_with_time() {
    let log = "
        Error when talking to Gemini API
        TerminalQuotaError: You have exhausted your capacity on this model.
        Your quota will reset after 22m55s.
        ";
    // 22 min 55 s = 1375 s, + 10 %.
    assert!((1500.0..=1520.0).contains(&detect(log, None).unwrap()));
}

#[test]
fn detect_gemini_quota_without_time() {
    assert_eq!(detect("\n        TerminalQuotaError: Quota exhausted\n        ", None), Some(1800.0));
}

#[test]
fn detect_claude_rate_limit() {
    let log = "\n        RateLimitError: Too many requests. Please retry after 120 seconds.\n        ";
    assert!((130.0..=140.0).contains(&detect(log, None).unwrap()));
}

#[test]
fn detect_generic_quota() {
    assert_eq!(detect("\n        Error: API quota exhausted. Please wait.\n        ", None), Some(1800.0));
}

#[test]
fn no_quota_error() {
    assert_eq!(
        detect("\n        Error: Connection timeout\n        Network error occurred\n        ", None),
        None
    );
}

/// The design cut the stated 120 minutes down to the cap. Only guesses are capped.
#[test]
fn max_cooldown_cap() {
    let stated = "\n        Your quota will reset after 120m0s.\n        ";
    assert_eq!(detect(stated, Some(3600)), Some(7200.0 + 300.0));
    assert_eq!(detect("TerminalQuotaError: Quota exhausted\n", Some(600)), Some(600.0));
}
