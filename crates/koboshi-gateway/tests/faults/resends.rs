//! A request that met a dead connection is sent again without an attempt: once at most, only where no server can have processed it, and it
//! is counted.

use koboshi_sim::{Head, Play, play};
use koboshi_store::EntryKind;
use koboshi_testkit::until;

use crate::common::*;

/// A gateway whose only target does this, with idle connections to its provider and this many attempts.
fn with_idle_connections(fall: &str, attempts: u32) -> Stage {
    let stage = Stage::with(&[&format!("one/{fall}")], |config| {
        config.remedy.backoff.attempts = attempts;
        config.routes.insert("slow".to_owned(), route(&["one/slow-first?after=200ms"]));
    });
    let mut body = chat(false);
    body["model"] = "slow".into();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_whole(&stage.ask(&body), &body));
        }
    });
    stage.one.set("late", |ask| Play { head: Head::Reset { after: ms(1300) }, ..play(ask) });
    let count = stage.one.open_connections();
    assert!(count > 3, "some of them at once");
    until("all wait for a request", || (stage.one.idle_connections() == count).then_some(()));
    stage.reset();
    stage
}

#[test]
fn a_request_is_sent_again_unseen_only_once_however_many_attempts_it_has() {
    let stage = with_idle_connections("reset", 3);
    let answer = stage.ask(&chat(false));
    assert_error(&answer, 502, "connection_failed");
    assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
    assert_eq!(stage.calls(), (4, 0), "each attempt, and one that met a dead connection");
    assert_eq!(answer.number("x-koboshi-sends"), Some(4));
    let labels = "gen_ai_provider_name=\"one\",gen_ai_request_model=\"reset\"";
    let metrics = stage.get("/metrics").text();
    assert_eq!(gauge(&metrics, &format!("koboshi_resends_total{{{labels}}}")), Some(1.0), "{metrics}");
}

#[test]
fn a_connection_that_ends_long_after_the_request_was_sent_is_a_fault_like_any_other() {
    // The provider may have processed it, and charged for it.
    let stage = with_idle_connections("late", 1);
    let answer = stage.ask(&chat(false));
    assert_error(&answer, 502, "connection_failed");
    assert_eq!(answer.number("x-koboshi-attempts"), Some(1));
    assert_eq!((stage.calls(), answer.header("x-koboshi-sends")), ((1, 0), None), "sent once");
    let entry = stage.journal("the fault", |entry| entry.what == EntryKind::Fault);
    assert_eq!(entry.data.as_ref().unwrap()["sub"], "reset", "{entry:?}");
}

#[test]
fn the_breaker_sees_every_connection_that_ended_late() {
    let stage = with_idle_connections("late", 1);
    for _ in 0..2 {
        assert_error(&stage.ask(&chat(false)), 502, "connection_failed");
    }
    let failures = stage.get("/metrics").text();
    let line = "koboshi_faults_total{gen_ai_provider_name=\"one\",gen_ai_request_model=\"late\",error_type=\"connection_failed\"}";
    assert_eq!(gauge(&failures, line), Some(2.0), "{failures}");
    assert_eq!(stage.calls(), (2, 0));
}
