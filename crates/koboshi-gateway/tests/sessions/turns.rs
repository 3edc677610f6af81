//! Turns: asked, answered, begun again, cancelled, tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use koboshi::session::DoneReason;
use koboshi_config::gateway::CacheMode;
use koboshi_store::Store as _;
use koboshi_testkit::{SessionClient, until};
use serde_json::{Value, json};

use crate::common::*;

fn roles(asked: &Value) -> Value {
    asked["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect()
}

/// The words of a healthy answer to a first message.
fn healthy(content: &str) -> String {
    healthy_text(&json!({"model": "ok", "messages": [{"role": "user", "content": content}]}))
}

#[test]
fn a_chat_is_accepted_answered_and_done() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    assert_eq!(client.frames[0]["resumed"], "new");
    client.chat("c-1", "富士山の高さは?");
    assert_eq!(client.answer(), healthy("富士山の高さは?"));
    assert_eq!(client.transcript.messages[1].reason, Some(DoneReason::Stop));
    client.chat("c-2", "and again");
    assert!(!client.answer().is_empty());
    assert_eq!((client.transcript.messages.len(), stage.calls().0), (4, 2));
    let asked: Value = stage.one.requests().last().unwrap().body.clone();
    assert_eq!(roles(&asked), json!(["user", "assistant", "user"]), "the model is told what was said before");
}

#[test]
fn an_id_that_is_known_is_answered_again_and_never_executed_again() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.answer();
    client.chat("c-1", "hello");
    let again = client.next_of("accepted");
    assert_eq!((&again["id"], &again["turn"], again.get("seq")), (&json!("c-1"), &json!(1), None));
    assert_eq!(stage.calls().0, 1);
}

#[test]
fn an_answer_that_breaks_begins_again_at_the_next_target() {
    for fall in ["cut?after=20", "fin?after=3", "bad-chunk?after=20", "in-band-error?after=20"] {
        let stage = Stage::of(&[&format!("one/{fall}"), "two/ok"]);
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        assert_eq!(client.answer(), healthy("hello"), "{fall}");
        assert!(client.count("rewind") >= 1, "{fall}: {:#?}", client.frames);
        let rewinds = client.frames.iter().filter(|frame| frame["type"] == "rewind");
        let attempts: Vec<u64> = rewinds.map(|frame| frame["attempt"].as_u64().unwrap()).collect();
        assert_eq!(attempts, (2..2 + attempts.len() as u64).collect::<Vec<_>>(), "{fall}");
        assert_eq!(client.transcript.messages[1].reason, Some(DoneReason::Stop));
        assert_eq!(client.count("error"), 0, "{fall}");
    }
}

#[test]
fn two_answers_are_never_joined_wherever_the_first_one_breaks() {
    let mut taken_back = 0;
    for after in 1..40 {
        let stage = Stage::of(&[&format!("one/cut?after={after}&times=1"), "two/ok"]);
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        assert_eq!(client.answer(), healthy("hello"), "{after}");
        let is_first = |frame: &&Value| frame["type"] == "content" && frame["attempt"] == 1;
        let first = client.frames.iter().filter(is_first).count();
        // What was shown of the first answer is taken back, once; where nothing was shown there is nothing to take back.
        let (one, two) = stage.calls();
        let is_taken_back = one + two == 2 && first > 0 && client.count("rewind") == 1;
        let is_not_shown = client.count("rewind") == 0 && client.transcript.messages[1].attempt == Some(1);
        assert!(is_taken_back || is_not_shown, "{after}: {:#?}", client.frames);
        taken_back += usize::from(is_taken_back);
    }
    assert!(taken_back >= 20, "{taken_back} of 39 broke in mid-answer");
}

#[test]
fn a_third_target_answers_where_the_first_two_break() {
    for (first, second) in [(3, 9), (9, 3), (20, 20)] {
        let (first, second) =
            (format!("one/cut?after={first}&times=1"), format!("two/cut?after={second}&times=1"));
        let stage = Stage::of(&[&first, &second, "one/ok"]);
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        assert_eq!(client.answer(), healthy("hello"));
        let attempt = usize::try_from(client.transcript.messages[1].attempt.unwrap()).unwrap();
        assert_eq!(client.count("rewind"), attempt - 1, "{:#?}", client.frames);
        assert_eq!(client.count("error"), 0);
    }
}

#[test]
fn a_client_that_cannot_take_text_back_is_never_told_to() {
    for can in [json!([]), json!(["tools"])] {
        let stage = Stage::of(&["one/cut?after=20", "two/ok"]);
        let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-1", json!({"can": can}));
        client.chat("c-1", "hello");
        let text = client.answer();
        assert_eq!((client.count("rewind"), client.count("error")), (0, 0), "{:#?}", client.frames);
        assert_eq!(text, healthy("hello"), "the next target continues it, as over HTTP");
        let stage = Stage::of(&["one/cut?after=20"]);
        let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-1", json!({"can": can}));
        client.chat("c-1", "hello");
        let text = client.answer();
        assert_eq!(client.count("rewind"), 0, "{:#?}", client.frames);
        assert_eq!(client.transcript.messages[1].reason, Some(DoneReason::Error));
        assert!(healthy("hello").starts_with(&text) && !text.is_empty(), "what was shown stays");
    }
}

#[test]
fn a_client_that_cannot_run_tools_may_not_offer_or_claim_them() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-1", json!({"can": ["rewind"]}));
    let tool = json!({"name": "look_up", "parameters": {"type": "object", "properties": {}}});
    client.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
    let refused = client.next_of("error");
    assert_eq!((&refused["code"], &refused["id"]), (&json!(3001), &json!("c-1")));
    client.send(&json!({"type": "tool_claim", "call": "t_1"}));
    assert_eq!(client.next_of("error")["detail"], "`can` of `hello` has no `tools`");
    assert_eq!(stage.calls().0, 0);
    client.chat("c-2", "hello");
    assert!(!client.answer().is_empty());
}

#[test]
fn when_nobody_answers_the_partial_text_stays_with_an_error() {
    let stage = Stage::of(&["one/cut?after=20"]);
    let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-1", json!({"lang": "ja"}));
    client.chat("c-1", "hello");
    client.answer();
    let answer = &client.transcript.messages[1];
    assert_eq!(answer.reason, Some(DoneReason::Error));
    let error = answer.error.as_ref().unwrap();
    assert_eq!((error.kind.as_str(), error.code, error.scope.as_str()), ("connection_closed", 1003, "turn"));
    assert!(error.recoverable && error.retry.later);
    assert!(!error.texts.message.is_empty() && !error.texts.message.is_ascii(), "in Japanese: {error:?}");
}

/// A broken connection is no busy service.
#[test]
fn a_retry_names_no_cause_that_its_kind_denies() {
    for act in ["fail-503", "reset", "cut"] {
        let stage = Stage::of(&[&format!("one/{act}?times=1")]);
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        let retry = client.next_of("retry");
        let message = retry["message"].as_str().unwrap();
        assert!(message.starts_with("This attempt failed.") && !message.contains("busy"), "{act}: {retry}");
        client.answer();
    }
}

#[test]
fn a_retry_is_told_before_its_wait_and_succeeds() {
    let stage = Stage::of(&["one/rate-429?retry_after=1&times=1"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    let retry = client.next_of("retry");
    assert_eq!(
        (&retry["kind"], &retry["where"], &retry["attempt"]),
        (&json!("rate_limited"), &json!("same"), &json!(1))
    );
    assert!(retry["delay_ms"].as_u64().unwrap() > 0);
    assert!(retry["message"].as_str().unwrap().starts_with("The AI service is busy."), "{retry}");
    assert_eq!(client.answer(), healthy("hello"));
}

#[test]
fn a_trim_that_is_known_is_answered_again_and_not_executed_again() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.answer();
    let trim = json!({"type": "trim", "id": "z-1", "keep_turns": 0});
    client.send(&trim);
    assert_eq!(client.next_of("trimmed")["messages"], 2);
    client.send(&trim);
    let again = client.until("it is answered", |frame| frame["type"] == "accepted" && frame["id"] == "z-1");
    assert_eq!((again.get("seq"), client.count("trimmed")), (None, 1));
}

#[test]
fn a_lesser_answer_is_marked() {
    let stage = Stage::with(&["one/fail-503"], |config| {
        config.providers.insert("three".to_owned(), provider("http://127.0.0.1:1".to_owned()));
        config.degrade.simple_model = Some("two/ok".to_owned());
    });
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    assert_eq!(client.answer(), healthy("hello"));
    let degraded = client.frames.iter().find(|frame| frame["type"] == "degraded").unwrap();
    assert_eq!((&degraded["source"], &degraded["kind"]), (&json!("simple"), &json!("unavailable")));
    assert_eq!(client.frames.iter().find(|frame| frame["type"] == "content").unwrap()["source"], "simple");
    assert_eq!(client.transcript.messages[1].degraded, Some(koboshi::session::Source::Simple));
}

/// The first turn is answered and kept; its question asked once more, when nothing answers, gets what was kept.
#[test]
fn an_answer_that_was_kept_is_marked_with_its_age() {
    let stage = Stage::with(&["one/switched"], |config| config.degrade.cache = CacheMode::Fallback);
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    stage.one.set("switched", move |ask| {
        let model = if well.load(Ordering::Relaxed) { "ok" } else { "fail-503" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    let text = client.answer();
    is_well.store(false, Ordering::Relaxed);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-2");
    client.chat("c-1", "hello");
    assert_eq!(client.answer(), text);
    let degraded = client.frames.iter().find(|frame| frame["type"] == "degraded").unwrap();
    assert_eq!((&degraded["source"], &degraded["kind"]), (&json!("cache"), &json!("unavailable")));
    assert!(degraded["age_ms"].as_u64().is_some_and(|age| age < 90_000), "{degraded}");
    assert!(!degraded["message"].as_str().unwrap().is_empty());
    assert_eq!(client.frames.iter().find(|frame| frame["type"] == "content").unwrap()["source"], "cache");
    assert_eq!(client.transcript.messages[1].degraded, Some(koboshi::session::Source::Cache));
}

#[test]
fn a_prepared_text_is_marked_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.yaml");
    std::fs::write(&file, "answers:\n  - text: {ja: 'お電話ください。', en: 'Please call us.'}\n").unwrap();
    let stage = Stage::with(&["one/fail-503"], |config| config.degrade.answers_file = Some(file));
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    assert_eq!(client.answer(), "Please call us.");
    let degraded = client.frames.iter().find(|frame| frame["type"] == "degraded").unwrap();
    assert_eq!((&degraded["source"], degraded.get("age_ms")), (&json!("fallback"), None));
    assert_eq!(client.frames.iter().find(|frame| frame["type"] == "content").unwrap()["source"], "fallback");
    assert_eq!(client.transcript.messages[1].degraded, Some(koboshi::session::Source::Fallback));
}

/// The provider says in the middle of a session that the conversation is too long: older messages are left out, the client is told, and the same turn is
/// answered.
#[test]
fn a_conversation_that_is_too_long_is_shortened_in_the_same_turn() {
    let stage = Stage::with(&["one/context-at-third"], |config| config.remedy.max_trims = 1);
    stage.one.set("context-at-third", |ask| {
        let model = if ask.tally.nth == 2 { "context" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    for turn in 1..=3 {
        client.chat(&format!("c-{turn}"), &format!("{turn}: {}", "a long story ".repeat(2000)));
        client.until("it is answered", |frame| frame["type"] == "done" && frame["turn"] == turn);
    }
    let trimmed = client.frames.iter().find(|frame| frame["type"] == "trimmed").unwrap();
    assert_eq!((&trimmed["turn"], &trimmed["reason"]), (&json!(3), &json!("context_too_large")));
    assert!(
        trimmed["messages"].as_u64().unwrap() > 0 && trimmed["tokens"].as_u64().unwrap() > 0,
        "{trimmed}"
    );
    assert_eq!((client.count("error"), client.count("rewind"), stage.calls().0), (0, 0, 4));
    let sent: Vec<usize> = stage.one.requests().iter().map(|asked| asked.body.to_string().len()).collect();
    assert!(sent[3] < sent[2], "{sent:?}");
    assert_eq!(client.transcript.messages.len(), 6, "what is shown stays");
}

#[test]
fn a_cancelled_turn_stops_its_provider_and_keeps_what_came() {
    for (model, has_text) in [("slow-first?after=60s", false), ("stall?after=10", true)] {
        let stage = Stage::of(&[&format!("one/{model}")]);
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        client.next_of("accepted");
        if has_text {
            client.next_of("content");
        } else {
            until("the provider is asked", || (stage.calls().0 == 1).then_some(()));
        }
        client.send(&json!({"type": "cancel", "id": "x-1"}));
        let text = client.answer();
        assert_eq!(!text.is_empty(), has_text, "{model}");
        assert_eq!(client.transcript.messages[1].reason, Some(DoneReason::Cancelled));
        until("the provider is let go", || (stage.one.cancelled() == 1).then_some(()));
        client.send(&json!({"type": "cancel", "id": "x-1"}));
        client.send(&json!({"type": "ping", "t": 7}));
        assert_eq!(client.next_of("pong")["t"], 7);
        assert_eq!(client.count("done"), 1, "a second order changes nothing");
    }
}

#[test]
fn a_turn_is_cancelled_while_it_waits_for_its_next_try() {
    let stage = Stage::of(&["one/rate-429?retry_after=2&times=1"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    let delay = client.next_of("retry")["delay_ms"].as_u64().unwrap();
    assert!(delay > 1000, "{delay}");
    client.send(&json!({"type": "cancel", "id": "x-1"}));
    assert_eq!(client.next_of("done")["reason"], "cancelled");
    assert_eq!(stage.calls().0, 1, "it is not tried again");
}

#[test]
fn a_turn_is_tried_again_with_the_same_message() {
    let stage = Stage::of(&["one/auth-401?times=1"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.answer();
    assert_eq!(client.transcript.messages[1].reason, Some(DoneReason::Error));
    client.send(&json!({"type": "retry", "id": "y-0", "turn": 9}));
    assert_eq!(client.next_of("error")["kind"], "invalid_message");
    client.send(&json!({"type": "retry", "id": "y-1", "turn": 1}));
    assert_eq!(client.next_of("rewind")["attempt"], 2);
    client.next_of("done");
    assert_eq!(client.transcript.messages.len(), 2, "no second message of the user");
}

#[test]
fn a_chat_for_a_conversation_that_has_moved_on_is_refused() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.answer();
    let seq = client.transcript.seq;
    client.send(&json!({"type": "chat", "id": "c-2", "content": "late", "if_seq": seq - 1}));
    let refused = client.next_of("error");
    assert_eq!((&refused["id"], &refused["code"]), (&json!("c-2"), &json!(3001)));
    client.send(&json!({"type": "chat", "id": "c-3", "content": "in time", "if_seq": seq}));
    assert_eq!(client.next_of("accepted")["id"], "c-3");
    client.answer();
    assert_eq!(stage.calls().0, 2);
}

#[test]
fn turns_wait_are_refused_or_replaced_as_the_client_says() {
    let stage = Stage::of(&["one/stall?after=10"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "one");
    client.next_of("content");
    client.chat("c-2", "two");
    let refused = client.next_of("error");
    assert_eq!(
        (&refused["id"], &refused["code"], &refused["recoverable"]),
        (&json!("c-2"), &json!(5002), &json!(true))
    );
    for waiting in 3..7 {
        let chat =
            json!({"type": "chat", "id": format!("c-{waiting}"), "content": "wait", "on_busy": "queue"});
        client.send(&chat);
        assert_eq!(client.next_of("accepted")["queued"], true);
    }
    client.send(&json!({"type": "chat", "id": "c-9", "content": "full", "on_busy": "queue"}));
    assert_eq!(client.next_of("error")["id"], "c-9", "four may wait");
    client.send(&json!({"type": "cancel", "id": "x-1", "turn": 3}));
    assert_eq!(client.next_of("done")["turn"], 3, "a turn that waits");
    assert_eq!(client.transcript.open.as_ref().unwrap().turn, 1);
    client.send(&json!({"type": "chat", "id": "c-10", "content": "now", "on_busy": "replace"}));
    let accepted = client.until("accepted", |frame| frame["id"] == "c-10");
    assert_eq!(accepted.get("queued"), None);
    assert_eq!(client.transcript.open.as_ref().unwrap().turn, accepted["turn"].as_u64().unwrap());
}

#[test]
fn what_is_trimmed_by_order_is_not_told_to_the_model() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    for turn in 1..4 {
        client.chat(&format!("c-{turn}"), "hello");
        client.answer();
    }
    client.send(&json!({"type": "trim", "id": "z-1", "keep_turns": 1}));
    assert_eq!(client.next_of("trimmed")["messages"], 4);
    client.chat("c-4", "hello");
    client.answer();
    let asked: Value = stage.one.requests().last().unwrap().body.clone();
    assert_eq!(roles(&asked), json!(["user", "assistant", "user"]));
}

#[test]
fn a_client_without_sessions_is_served_as_its_protocol_has_it() {
    let stage = Stage::of(&["one/cut?after=20"]);
    let mut client = SessionClient::dial(stage.gateway.address(), "/ws", &[]).unwrap();
    client.send_text("no json");
    let error = client.next_of("error");
    assert_eq!((&error["code"], &error["recoverable"]), (&json!(3001), &json!(true)));
    client.send(&json!({"content": "no type"}));
    assert_eq!(client.next_of("error")["code"], 3001);
    client.send(&json!({"type": "chat", "content": "hello"}));
    let content = client.next_of("content");
    assert!(content["data"].is_string() && content["source"] == "model");
    let error = client.next_of("error");
    assert_eq!((&error["code"], &error["recoverable"]), (&json!(1003), &json!(true)));
    assert_eq!(client.count("rewind"), 0, "it would not know what to do");
}

#[test]
fn errors_are_final_for_a_client_of_the_source_where_the_config_says_so() {
    let stage = Stage::with(&["one/fail-503"], |config| config.sessions.seed_errors = true);
    let mut client = SessionClient::dial(stage.gateway.address(), "/ws", &[]).unwrap();
    client.send(&json!({"type": "chat", "content": "hello"}));
    assert_eq!(client.next_of("error")["recoverable"], false);
    assert_eq!(client.end(), koboshi_testkit::SessionEnd::Closed(4410));
}

/// What a client without sessions says is nobody's to come back to: another process neither sees it nor goes on with its turn.
#[test]
fn nothing_of_a_client_without_sessions_is_stored_and_its_turn_ends_with_its_connection() {
    let stage = Stage::of(&["one/stall?after=12"]);
    let stored = || {
        let (mark, changed) = stage.store.sessions().changed(Some(0), jiff::Timestamp::now()).unwrap();
        (mark, changed, stage.store.sessions().orphans(9, jiff::Timestamp::now()).unwrap())
    };
    let before = stored();
    let mut client = SessionClient::dial(stage.gateway.address(), "/ws", &[]).unwrap();
    client.send(&json!({"type": "chat", "content": "hello"}));
    client.next_of("content");
    assert_eq!(stored(), before, "while it runs");
    client.cut();
    until("the provider is let go", || (stage.one.cancelled() == 1).then_some(()));
    assert_eq!((stored(), stage.calls().0), (before, 1));
    let mut again = SessionClient::begin(stage.gateway.address(), "tab-1");
    again.chat("c-1", "hello");
    again.next_of("content");
    assert_ne!(stored().0, 0, "those of sessions are");
}
