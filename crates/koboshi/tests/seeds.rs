//! The examples that the project began with, word for word.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{AgentLog, Classifier, Rules};
use koboshi::fault::{Fault, Kind};
use koboshi::wait::parse_duration;

fn now() -> Zoned {
    "2026-01-20T08:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC)
}

fn fault(text: &str) -> Option<Fault> {
    let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled());
    classifier.log(&AgentLog { text, exit_code: Some(1), since: None }, &now())
}

fn reason_and_wait(text: &str) -> (&'static str, Option<u64>) {
    fault(text)
        .map_or(("none", None), |fault| (fault.log_reason(), fault.wait.map(|wait| wait.after.as_secs())))
}

#[test]
fn a_quota_with_its_reset_is_waited_for_exactly() {
    let log = "\n        Error when talking to Gemini API\n        TerminalQuotaError: You have exhausted your capacity on this model.\n        Your quota will reset after 22m55s.\n        ";
    assert_eq!(reason_and_wait(log), ("quota", Some(1375)));
    assert_eq!(parse_duration("22m55s"), Some(Duration::from_secs(1375)));
}

#[test]
fn a_quota_without_a_time_states_none() {
    assert_eq!(reason_and_wait("TerminalQuotaError: Quota exhausted\n"), ("quota", None));
    assert_eq!(reason_and_wait("Error: API quota exhausted. Please wait.\n"), ("quota", None));
}

#[test]
fn a_rate_limit_states_its_seconds() {
    let log = "RateLimitError: Too many requests. Please retry after 120 seconds.\n";
    assert_eq!(reason_and_wait(log), ("rate_limit", Some(120)));
}

#[test]
fn a_stated_reset_is_not_cut_down() {
    assert_eq!(reason_and_wait("Your quota will reset after 120m0s.\n"), ("quota", Some(7200)));
    assert_eq!(reason_and_wait("TerminalQuotaError: quota will reset after 10m0s"), ("quota", Some(600)));
}

#[test]
fn other_errors_are_no_quota() {
    let log = "Error: Connection timeout\nNetwork error occurred\n";
    assert_eq!(reason_and_wait(log), ("network", None));
    assert_eq!(reason_and_wait("Error: Something went wrong"), ("error", None));
}

#[test]
fn what_no_rule_knows_stays_unknown() {
    let fault = fault("Error: the frobnicator is out of tune\n").unwrap();
    assert_eq!(fault.kind, Kind::AgentError);
    assert_eq!(fault.confidence, koboshi::fault::Confidence::Low);
}
