//! A user's rule file: adds, overrides, mutes, brings its own categories; and says exactly where it is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Answer, Classifier, RuleError, RuleSource, Rules, ToolOutput};
use koboshi::fault::{Fault, Kind, Scope, Sub};

fn now() -> Zoned {
    "2026-11-15T12:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC)
}

fn with(text: &str) -> Result<Classifier, RuleError> {
    let rules = Rules::with_user(&[RuleSource { name: "my.yaml", text }])?;
    Ok(Classifier::new(rules, TimeZoneDatabase::bundled()))
}

fn answer(classifier: &Classifier, status: u16, message: &str) -> Fault {
    let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}");
    let answer = Answer { status: Some(status), body: &body, ..Answer::default() };
    classifier.answer(&answer, &now()).unwrap()
}

#[track_caller]
fn refused(text: &str, line: u64, part: &str) {
    let error = with(text).expect_err("the file is wrong");
    assert_eq!((error.file.as_str(), error.line), ("my.yaml", line), "{error}");
    assert!(error.message.contains(part), "{error}");
}

#[test]
fn a_new_rule_goes_before_the_built_in_ones() {
    let classifier = with(
        "provider:\n  - id: mine.pool\n    kind: quota_exceeded\n    sub: window\n    scope: key\n    when: [\"pool is dry\"]\n    same: true\n",
    )
    .unwrap();
    let fault = answer(&classifier, 503, "The GPU pool is dry, rate limit applies");
    assert_eq!((fault.kind, fault.sub, fault.scope), (Kind::QuotaExceeded, Some(Sub::Window), Scope::Key));
    assert!(fault.advice.same, "a rule may differ from its row");
    assert_eq!(&*fault.evidence.rule, "mine.pool");
}

#[test]
fn the_same_id_overrides_a_built_in_rule() {
    let plain = with("").unwrap();
    assert_eq!(answer(&plain, 418, "I am a teapot").kind, Kind::InvalidRequest);
    let mine = with("provider:\n  - {id: status.4xx, kind: unavailable, status: 4xx}\n").unwrap();
    assert_eq!(answer(&mine, 418, "I am a teapot").kind, Kind::Unavailable);
}

#[test]
fn a_muted_rule_is_gone() {
    let mine = with("mute: [overloaded.words, overloaded.code]\n").unwrap();
    assert_eq!(answer(&mine, 503, "The engine is overloaded").kind, Kind::Unavailable);
}

#[test]
fn a_word_added_to_a_concept_is_known_to_every_rule() {
    let message = "Zu viele Zugriffe in kurzer Zeit";
    assert_ne!(answer(&with("").unwrap(), 503, message).kind, Kind::RateLimited);
    let mine = with("concepts:\n  rate: [\"zu viele zugriffe\"]\n").unwrap();
    assert_eq!(answer(&mine, 503, message).kind, Kind::RateLimited);
}

#[test]
fn a_regular_expression_is_a_term_too() {
    let mine =
        with("provider:\n  - {id: mine.code, kind: model_not_found, when: [\"/e-4[0-9]{2} gone/\"]}\n")
            .unwrap();
    assert_eq!(
        answer(&mine, 500, "E-417 gone").kind,
        Kind::Internal,
        "plain text has no letter before a minus"
    );
    let mine =
        with("provider:\n  - {id: mine.code, kind: model_not_found, when: [\"/e 4[0-9]{2} gone/\"]}\n")
            .unwrap();
    assert_eq!(answer(&mine, 500, "E-417 gone").kind, Kind::ModelNotFound);
}

#[test]
fn a_new_category_brings_its_own_words() {
    let mine = with(
        "tool:\n  - id: tool.licence\n    category: licence\n    when: [licence server]\n    message: {en: No licence was free., ja: 空きライセンスがありません。}\n    suggestion: {en: Ask for a seat., ja: 追加を依頼してください。}\n",
    )
    .unwrap();
    let output = ToolOutput { text: "error: the licence server refused", is_error: Some(true) };
    assert_eq!(mine.tool(&output, &now()).unwrap().category.as_deref(), Some("licence"));
    assert_eq!(mine.rules().own_category("licence").unwrap().suggestion.en, "Ask for a seat.");
    assert!(mine.rules().own_category("font").is_none());
}

#[test]
fn a_wrong_file_says_where_and_what_would_be_right() {
    refused(
        "provider:\n  - id: a\n    kind: quota_exeeded\n    when: [x]\n",
        3,
        "did you mean `quota_exceeded`?",
    );
    refused(
        "provider:\n  - id: a\n    kind: timeout\n    when: [x]\n    sub: idel\n",
        5,
        "did you mean `idle`?",
    );
    refused(
        "provider:\n  - id: a\n    kind: timeout\n    when: [\"@per_dya\"]\n",
        4,
        "did you mean `per_day`?",
    );
    refused("provider:\n  - id: a\n    kind: timeout\n    when: [\"#pge\"]\n", 4, "did you mean `page`?");
    refused("provider:\n  - id: a\n    kind: timeout\n    status: 4x9\n", 4, "`4xx`");
    refused("provider:\n  - id: a\n    kind: timeout\n    when: [Rate_Limit]\n", 4, "`rate limit`");
    refused("provider:\n  - id: a\n    kind: timeout\n    when: [\"/(/\"]\n", 4, "regular expression");
    refused("provider:\n  - id: a\n    kind: timeout\n", 2, "would hold always");
    refused(
        "provider:\n  - {id: a, kind: timeout, when: [x]}\n  - {id: a, kind: timeout, when: [y]}\n",
        3,
        "twice",
    );
    refused("tool:\n  - id: a\n    category: fonts\n    when: [x]\n", 3, "did you mean `font`?");
    refused("mute:\n  - status.4x\n", 2, "did you mean");
    refused("concepts:\n  a: [\"@b\"]\n  b: [\"@a\"]\n", 3, "refers to itself");
    refused("provider: 7\n", 1, "");
    refused("provider:\n  - id: a\n    kind: timeout\n    wehn: [x]\n", 4, "wehn");
}
