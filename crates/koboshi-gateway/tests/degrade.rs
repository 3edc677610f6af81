//! When no target of the chain can answer: a cached answer, a simpler model, a prepared text, and each is marked as what it is.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::*;
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, ClientKey};
use koboshi_sim::{Ask, play};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A provider that can be switched off.
#[derive(Clone)]
struct Switch(Arc<AtomicBool>);

impl Switch {
    /// The model `switched` of the first provider, healthy for now.
    fn on(stage: &Stage) -> Self {
        let switch = Self(Arc::new(AtomicBool::new(true)));
        let on = Arc::clone(&switch.0);
        stage.one.set("switched", move |ask| {
            let model = if on.load(Ordering::Relaxed) { "ok" } else { "fail-503" };
            play(&Ask { model, ..*ask })
        });
        switch
    }

    fn off(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn cached(mode: CacheMode) -> Stage {
    Stage::with(&["one/switched"], |config| config.degrade.cache = mode)
}

/// What a lesser answer says of itself, in its body.
fn about(answer: &Answer) -> Value {
    if answer.is_stream() { answer.chunks()[0]["koboshi"].clone() } else { answer.json()["koboshi"].clone() }
}

/// The answer is a lesser one, and says so in header and body.
fn assert_lesser(answer: &Answer, source: &str) {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    assert_eq!(answer.header("x-koboshi-degraded"), Some(source), "{answer:?}");
    assert!(answer.header("x-koboshi-fault").is_some(), "{answer:?}");
    let about = about(answer);
    assert_eq!((&about["source"], &about["degraded"]), (&json!(source), &json!(true)), "{answer:?}");
    assert!(about["reason"]["errorCode"].as_str().unwrap().starts_with("KBS-"), "{about}");
    if answer.is_stream() {
        assert!(answer.is_done());
        let ids: std::collections::BTreeSet<_> =
            answer.chunks().iter().map(|chunk| chunk["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
    assert_eq!(answer.finish().as_deref(), Some("stop"));
}

#[test]
fn a_kept_answer_serves_when_the_chain_cannot() {
    for (kept, asked) in [(false, false), (true, true), (false, true), (true, false)] {
        let stage = cached(CacheMode::Fallback);
        let switch = Switch::on(&stage);
        let first = stage.ask(&chat(kept));
        assert_whole(&first, &chat(kept));
        assert_eq!(first.header("x-koboshi-degraded"), None);
        switch.off();
        stage.reset();
        let second = stage.ask(&chat(asked));
        assert_lesser(&second, "cache");
        assert_eq!(second.content(), healthy_text(&chat(false)), "kept as a stream: {kept}, asked: {asked}");
        assert_eq!(stage.calls(), (3, 0), "the chain was asked first");
        assert_eq!(second.number("x-koboshi-attempts"), Some(3));
        assert_eq!(second.header("x-koboshi-fault"), Some("unavailable"));
        let mut other = chat(asked);
        other["messages"][0]["content"] = "another question".into();
        assert_error(&stage.ask(&other), 503, "unavailable");
    }
}

#[test]
fn a_cache_that_serves_answers_before_a_target_is_asked() {
    let stage = cached(CacheMode::Serve);
    let _switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(true)), &chat(true));
    for stream in [false, true] {
        let again = stage.ask(&chat(stream));
        assert_whole(&again, &chat(stream));
        assert_eq!((&about(&again)["source"], &about(&again)["degraded"]), (&json!("cache"), &json!(false)));
        assert_eq!(again.header("x-koboshi-degraded"), None, "header and body agree: {again:?}");
        assert_eq!(again.header("x-koboshi-cache"), Some("hit"), "{again:?}");
        assert_eq!(again.number("x-koboshi-attempts"), Some(0));
    }
    assert_eq!(stage.calls(), (1, 0));
}

#[test]
fn a_stale_answer_is_sent_only_where_no_target_answers() {
    let stage = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Serve;
        config.degrade.cache_ttl = ms(0);
    });
    let switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    assert_eq!(stage.calls(), (2, 0), "stale answers are not served while a target answers");
    switch.off();
    for stream in [false, true] {
        let stale = stage.ask(&chat(stream));
        assert_lesser(&stale, "cache");
        assert_eq!(stale.header("x-koboshi-cache"), None, "a lesser answer is no hit");
    }
    let none = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Fallback;
        (config.degrade.cache_ttl, config.degrade.cache_stale) = (ms(0), ms(0));
    });
    let switch = Switch::on(&none);
    assert_whole(&none.ask(&chat(false)), &chat(false));
    switch.off();
    assert_error(&none.ask(&chat(false)), 503, "unavailable");
}

#[test]
fn off_means_off() {
    let stage = cached(CacheMode::Off);
    let switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    switch.off();
    assert_error(&stage.ask(&chat(false)), 503, "unavailable");
}

fn key(config: &mut Config, name: &str) {
    let sha256 = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    config.keys.insert(name.to_owned(), ClientKey { sha256, ..ClientKey::default() });
}

#[test]
fn tenants_never_see_each_others_answers() {
    let stage = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Serve;
        key(config, "anna");
        key(config, "ben");
    });
    let switch = Switch::on(&stage);
    let ask = |who: &str| stage.post(&chat(false), &[("x-api-key", who)]);
    assert_whole(&ask("anna"), &chat(false));
    assert_whole(&ask("ben"), &chat(false));
    assert_eq!(stage.calls(), (2, 0), "ben was not given anna's");
    switch.off();
    assert_eq!(ask("anna").number("x-koboshi-attempts"), Some(0));
    let stage = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Fallback;
        key(config, "anna");
        key(config, "ben");
    });
    let switch = Switch::on(&stage);
    assert_whole(&stage.post(&chat(false), &[("x-api-key", "anna")]), &chat(false));
    switch.off();
    assert_error(&stage.post(&chat(false), &[("x-api-key", "ben")]), 503, "unavailable");
}

#[test]
fn requests_with_tools_are_kept_only_where_that_is_allowed_and_calls_never() {
    for allowed in [false, true] {
        let stage = Stage::with(&["one/switched"], |config| {
            config.degrade.cache = CacheMode::Serve;
            config.degrade.cache_tools = allowed;
        });
        let _switch = Switch::on(&stage);
        for stream in [false, true] {
            stage.reset();
            // An answer in words to a request with tools.
            let mut words = with_tools(stream, "say it in words");
            words["tool_choice"] = "none".into();
            words["messages"][0]["content"] = format!("in words, stream {stream}").into();
            stage.ask(&words);
            stage.ask(&words);
            assert_eq!(
                stage.calls(),
                (if allowed { 1 } else { 2 }, 0),
                "allowed: {allowed}, stream: {stream}"
            );
            stage.reset();
            let calls = with_tools(stream, "look it up");
            assert_calls(&stage.ask(&calls), &calls);
            assert_calls(&stage.ask(&calls), &calls);
            assert_eq!(stage.calls(), (2, 0), "calls are never kept");
        }
    }
}

#[test]
fn a_broken_answer_is_never_kept() {
    // Cut in the middle, ended by its limit, and by a filter.
    for fall in ["cut?after=20", "fin?after=20", "filter?after=20"] {
        let stage = Stage::with(&[&format!("one/{fall}")], |config| config.degrade.cache = CacheMode::Serve);
        let first = stage.ask(&chat(true));
        assert!(!first.content().is_empty());
        stage.reset();
        let second = stage.ask(&chat(true));
        assert_eq!(second.header("x-koboshi-degraded"), None, "{fall}: {second:?}");
        assert!(stage.one.all_calls() > 0, "{fall}: it was asked again");
    }
    for stream in [false, true] {
        let stage = Stage::with(&["one/ok"], |config| config.degrade.cache = CacheMode::Serve);
        let mut body = chat(stream);
        body["max_tokens"] = 5.into();
        let first = stage.ask(&body);
        assert_eq!(first.finish().as_deref(), Some("length"));
        let second = stage.ask(&body);
        assert_eq!(second.finish().as_deref(), Some("length"), "a cut text never looks complete");
        assert_eq!(stage.calls(), (2, 0));
    }
}

#[test]
fn a_stream_that_commits_when_complete_is_kept_too() {
    let stage = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Fallback;
        config.routes.get_mut("m").unwrap().commit = koboshi_config::gateway::Commit::Complete;
    });
    let switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(true)), &chat(true));
    switch.off();
    let lesser = stage.ask(&chat(true));
    assert_lesser(&lesser, "cache");
    assert_eq!(lesser.content(), healthy_text(&chat(true)));
}

#[test]
fn a_kept_answer_outlives_the_gateway_in_its_store() {
    let stage = cached(CacheMode::Fallback);
    let switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(true)), &chat(true));
    switch.off();
    let Stage { gateway, one, store, config, .. } = stage;
    gateway.stop();
    let gateway = start(config, &store).unwrap();
    let mut client = Client::to(gateway.address());
    client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
    let answer = client.read();
    assert_lesser(&answer, "cache");
    assert_eq!(answer.content(), healthy_text(&chat(false)));
    drop(one);
}

#[test]
fn a_simpler_model_answers_marked_and_is_not_kept() {
    for stream in [false, true] {
        let stage = Stage::with(&["one/switched"], |config| {
            config.degrade.simple_model = Some("two/ok".to_owned());
            config.degrade.cache = CacheMode::Fallback;
        });
        let switch = Switch::on(&stage);
        switch.off();
        let answer = stage.ask(&chat(stream));
        assert_lesser(&answer, "simple");
        assert_eq!(answer.content(), healthy_text(&chat(stream)));
        assert_eq!(stage.calls(), (3, 1));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(4), "all of them");
        assert_eq!(answer.header("x-koboshi-target"), Some("two/ok"));
        assert_eq!(answer.header("x-koboshi-fault"), Some("unavailable"));
        // The next one is asked again: what is lesser was not kept.
        stage.reset();
        let again = stage.ask(&chat(stream));
        assert_lesser(&again, "simple");
    }
}

#[test]
fn a_simpler_model_that_falls_too_leaves_the_first_error() {
    for stream in [false, true] {
        let stage = Stage::with(&["one/fail-503"], |config| {
            config.degrade.simple_model = Some("two/auth-401".to_owned());
        });
        let answer = stage.ask(&chat(stream));
        assert_error(&answer, 503, "unavailable");
        assert_eq!(stage.calls(), (3, 1));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(4));
    }
}

#[test]
fn a_simpler_model_whose_stream_breaks_gave_no_lesser_answer() {
    let stage = Stage::with(&["one/fail-503"], |config| {
        config.degrade.simple_model = Some("two/cut?after=20".to_owned());
        config.remedy.backoff.attempts = 1;
    });
    let answer = stage.ask(&chat(true));
    assert!(!answer.content().is_empty() && answer.finish().is_none(), "{answer:?}");
    assert_eq!(answer.header("x-koboshi-degraded"), Some("simple"), "{answer:?}");
    let metrics = stage.get("/metrics").text();
    assert!(!metrics.contains("koboshi_degraded_answers_total{"), "{metrics}");
    assert!(metrics.contains("broken"), "{metrics}");
}

#[test]
fn a_route_has_its_own_simpler_model_and_cache() {
    let stage = Stage::with(&["one/fail-503"], |config| {
        config.degrade.simple_model = Some("two/fail-500".to_owned());
        config.routes.get_mut("m").unwrap().simple_model = Some("two/ok".to_owned());
    });
    assert_lesser(&stage.ask(&chat(false)), "simple");
    assert_eq!(stage.two.calls("fail-500"), 0);
}

/// The screens of seed 004, and one that always fits.
const ANSWERS: &str = "answers:
  - mode: context_help
    screen: studio/modeler
    text:
      ja: |
        ## Modeler 画面について

        この画面では、エンティティ（データモデル）の設計を行います。
      en: |
        ## About the Modeler screen
  - mode: context_help
    screen: studio/form-designer
    text: {ja: '## Form Designer 画面について'}
";
const LAST: &str = "  - text: {ja: '申し訳ありません。', en: '{{model}} is away.'}\n";

fn answers(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn prepared(file: &tempfile::NamedTempFile) -> Stage {
    Stage::with(&["one/fail-503", "two/fail-503"], |config| {
        config.degrade.answers_file = Some(file.path().to_owned());
    })
}

#[test]
fn prepared_answers_go_by_mode_and_screen_in_body_and_headers() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    let stage = prepared(&file);
    let body = |metadata: Value, stream: bool| {
        let mut body = chat(stream);
        body["metadata"] = metadata;
        body
    };
    let help = json!({"mode": "CONTEXT_HELP", "screenId": "studio/modeler"});
    let headers: &[(&str, &str)] =
        &[("x-koboshi-mode", "context_help"), ("x-koboshi-screen", "studio/form-designer")];
    let ja = ("accept-language", "ja-JP,ja;q=0.9,en;q=0.5");
    for stream in [false, true] {
        let english = stage.ask(&body(help.clone(), stream));
        assert_lesser(&english, "static");
        assert!(english.content().starts_with("## About the Modeler screen"), "{english:?}");
        assert!(about(&english)["notice"].as_str().unwrap().contains("prepared answer"));
        let japanese = stage.post(&body(help.clone(), stream), &[ja]);
        assert!(japanese.content().contains("エンティティ"), "{japanese:?}");
        assert_eq!(
            about(&japanese)["notice"],
            "AI サービスが一時的に利用できないため、事前定義された応答を表示しています。"
        );
        let by_header = stage.post(&chat(stream), &[headers, &[ja]].concat());
        assert!(by_header.content().contains("Form Designer"), "{by_header:?}");
        let other = stage.ask(&body(json!({"mode": "chat"}), stream));
        assert_eq!(other.content(), "m is away.", "the last one fits always, with its variable");
    }
}

#[test]
fn where_no_prepared_answer_fits_the_client_gets_the_error() {
    let file = answers(ANSWERS);
    let stage = prepared(&file);
    let mut other = chat(false);
    other["metadata"] = json!({"mode": "context_help", "screenId": "studio/nowhere"});
    assert_error(&stage.ask(&other), 503, "unavailable");
    let entry = stage.journal("it is noted", |entry| entry.kind.as_deref() == Some("template_not_found"));
    assert!(entry.text.contains("mode `context_help` and screen `studio/nowhere`"), "{entry:?}");
    let mut wrong = chat(false);
    wrong["metadata"] = json!({"mode": "context_help", "screenId": "studio/modeler"});
    wrong["model"] = "unheard-of".into();
    assert_error(&stage.ask(&wrong), 404, "model_not_found");
}

#[test]
fn a_wrong_request_gets_its_error_and_no_lesser_answer() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    for fall in ["fail-400", "filter-400", "context"] {
        let stage = Stage::with(&[&format!("one/{fall}")], |config| {
            config.degrade.answers_file = Some(file.path().to_owned());
            config.degrade.simple_model = Some("two/ok".to_owned());
        });
        let answer = stage.ask(&chat(false));
        assert_eq!(answer.header("x-koboshi-degraded"), None, "{fall}: {answer:?}");
        assert_eq!(answer.status, 400);
        assert_eq!(stage.calls(), (1, 0), "{fall}: a mistake is not hidden");
    }
}

#[test]
fn a_prepared_answer_may_have_the_status_of_an_error() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    let stage = Stage::with(&["one/fail-503"], |config| {
        config.degrade.answers_file = Some(file.path().to_owned());
        config.degrade.status = 503;
    });
    for stream in [false, true] {
        let answer = stage.ask(&chat(stream));
        assert_eq!((answer.status, answer.header("x-koboshi-degraded")), (503, Some("static")), "{answer:?}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "an SDK would run the whole chain again");
        assert_eq!((answer.content().as_str(), answer.is_stream()), ("m is away.", stream));
    }
    // A stream whose head has gone out keeps the status it has.
    let stage = Stage::with(&["one/silence"], |config| {
        config.serve.first_byte_hold = ms(50);
        config.remedy.backoff.attempts = 1;
        config.degrade.answers_file = Some(file.path().to_owned());
        config.degrade.status = 503;
        timeouts(config, "one", |limits| limits.first_token = Some(ms(400)));
    });
    let answer = stage.ask(&chat(true));
    assert_eq!((answer.status, answer.content().as_str()), (200, "m is away."), "{answer:?}");
}

#[test]
fn lesser_answers_come_in_order_cache_then_simple_then_prepared() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    let stage = Stage::with(&["one/switched"], |config| {
        config.degrade.cache = CacheMode::Fallback;
        config.degrade.simple_model = Some("two/ok?times=0".to_owned());
        config.degrade.answers_file = Some(file.path().to_owned());
    });
    stage.two.set("ok?times=0", |ask| {
        let model = if ask.tally.nth == 0 { "ok" } else { "fail-503" };
        play(&Ask { model, ..*ask })
    });
    let switch = Switch::on(&stage);
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    switch.off();
    assert_lesser(&stage.ask(&chat(false)), "cache");
    assert_eq!(stage.two.all_calls(), 0);
    let mut other = chat(false);
    other["messages"][0]["content"] = "another question".into();
    assert_lesser(&stage.ask(&other), "simple");
    assert_lesser(&stage.ask(&other), "static");
}

/// What is said about the fault is what was done: a request that may get a lesser answer was not given up.
#[test]
fn the_remedy_is_to_degrade_as_long_as_a_source_is_left() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    let path = file.path().to_owned();
    for (cache, simple, has_texts, wanted) in [
        (CacheMode::Off, None, false, "stop"),
        (CacheMode::Fallback, None, false, "degrade"),
        (CacheMode::Off, Some("two/ok"), false, "degrade"),
        (CacheMode::Off, None, true, "degrade"),
        // The simpler model fails too: what is behind it decides.
        (CacheMode::Off, Some("two/auth-401"), false, "stop"),
        (CacheMode::Off, Some("two/auth-401"), true, "degrade"),
    ] {
        let stage = Stage::with(&["one/auth-401"], |config| {
            config.degrade.cache = cache;
            config.degrade.simple_model = simple.map(str::to_owned);
            config.degrade.answers_file = has_texts.then(|| path.clone());
        });
        stage.ask(&chat(false));
        let metrics = stage.get("/metrics").text();
        let has = |remedy: &str| metrics.contains(&format!("koboshi_remedies_total{{kind=\"{remedy}\"}}"));
        let found = if has("stop") { "stop" } else { "degrade" };
        assert_eq!((found, has("elsewhere")), (wanted, false), "{cache:?} {simple:?} {has_texts}: {metrics}");
    }
}

#[test]
fn a_lesser_answer_comes_inside_a_stream_that_was_kept_open() {
    let file = answers(&format!("{ANSWERS}{LAST}"));
    let stage = Stage::with(&["one/silence"], |config| {
        config.serve.first_byte_hold = ms(50);
        config.serve.keep_alive_every = ms(50);
        config.remedy.backoff.attempts = 1;
        config.degrade.answers_file = Some(file.path().to_owned());
        timeouts(config, "one", |limits| limits.first_token = Some(ms(400)));
    });
    let answer = stage.ask(&chat(true));
    assert!(answer.comments() > 0, "{answer:?}");
    assert_eq!((answer.content().as_str(), answer.is_done()), ("m is away.", true));
    assert_eq!((answer.error(), &about(&answer)["source"]), (None, &json!("static")));
}

// The three scenarios of seed 004, by their names.

#[test]
fn should_retry_on_connection_failure() {
    let stage = Stage::of(&["one/reset?times=2"]);
    let answer = stage.ask(&chat(false));
    assert_whole(&answer, &chat(false));
    assert_eq!(stage.calls(), (3, 0), "success on the third attempt");
}

#[test]
fn should_fallback_to_static_response_when_all_providers_fail() {
    let file = answers(ANSWERS);
    let stage = prepared(&file);
    let mut body = chat(false);
    body["metadata"] = json!({"mode": "CONTEXT_HELP", "screenId": "studio/modeler"});
    let answer = stage.ask(&body);
    assert_lesser(&answer, "static");
    assert!(answer.content().contains("Modeler"));
}

#[test]
fn should_open_circuit_breaker_after_multiple_failures() {
    let stage = Stage::with(&["one/silence"], |config| {
        config.remedy.backoff.attempts = 1;
        config.breaker.probe.last_target_every = None;
        timeouts(config, "one", |limits| limits.unary = Some(ms(200)));
    });
    for _ in 0..10 {
        stage.ask(&chat(false));
    }
    let asked = stage.one.all_calls();
    assert_eq!(asked, 5, "five failures open it");
    let answer = stage.ask(&chat(false));
    assert_error(&answer, 504, "timeout");
    assert_eq!(stage.one.all_calls(), asked, "the next call was blocked");
    stage.until_breaker("one/silence", "open");
}
