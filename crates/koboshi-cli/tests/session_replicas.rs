//! Sessions over real processes: two gateways on one Redis, one of them killed or stopped in mid-answer; one gateway on one file, started again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]
#![allow(clippy::disallowed_methods, reason = "how long real gateways take is what some tests are about")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers of slices")]

mod common;
#[path = "session_replicas/drain.rs"]
mod drain;
#[path = "session_replicas/faults.rs"]
mod faults;
#[path = "session_replicas/readers.rs"]
mod readers;
#[path = "session_replicas/tickets.rs"]
mod tickets;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::served::Served;
use koboshi_testkit::{RedisServer, SessionClient, SessionEnd, Upstream, signal, until};
use serde_json::{Value, json};

/// A provider that gateways are started before.
struct Scene {
    folder: tempfile::TempDir,
    one: Upstream,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), one: Upstream::start() }
    }

    /// A gateway whose provider answers like this; what it does is at most a moment away where it is slow.
    fn gateway(&self, name: &str, model: &str, drain: &str, store: &str) -> Served {
        let config = self.folder.path().join(format!("{name}.yaml"));
        let text = format!(
            "serve: {{threads: 2, drain_timeout: {drain}}}\nproviders: {{one: {{kind: openai, base_url: \"{}\", keys: [sk-own]}}}}\n\
             routes: {{m: {{chain: [\"one/{model}\"]}}}}\n",
            self.one.url()
        );
        fs::write(&config, text).unwrap();
        Served::start(&config, &PathBuf::from(store))
    }

    fn file(&self) -> String {
        self.folder.path().join("koboshi.db").display().to_string()
    }
}

/// The same session at another gateway.
fn other(client: &SessionClient, gateway: &Served, tab: &str) -> SessionClient {
    let more = json!({"session": client.session, "resume": client.resume});
    SessionClient::begin_with(gateway.address, tab, more)
}

/// The words of a whole answer.
fn whole(one: &Upstream) -> String {
    let body = one.requests().last().unwrap().body.clone();
    koboshi_testkit::questions::healthy_text(&json!({"model": "ok", "messages": body["messages"]}))
}

fn errors(client: &SessionClient) -> Vec<&Value> {
    client.frames.iter().filter(|frame| frame["type"] == "error").collect()
}

/// What a reader shows, without the cursor.
fn shown(client: &SessionClient) -> Value {
    json!(client.transcript.messages)
}

/// Replaces what the provider says from now on.
fn from_now_on(one: &Upstream, model: &'static str, as_if: &'static str) {
    one.set(model, move |ask| koboshi_sim::play(&koboshi_sim::Ask { model: as_if, ..*ask }));
}

#[test]
fn a_killed_owner_is_replaced_and_the_answer_is_whole_everywhere() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let mut a = scene.gateway("a", "stall?after=12", "1s", &redis.url());
    let b = scene.gateway("b", "stall?after=12", "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    here.next_of("content");
    there.next_of("content");
    let epoch = here.transcript.epoch.clone();
    from_now_on(&scene.one, "stall?after=12", "ok");
    a.kill();
    let killed = Instant::now();
    assert_eq!(here.end(), SessionEnd::Cut);
    // An order that was meant for the one that is gone reaches the next one.
    there.send(&json!({"type": "chat", "id": "c-2", "content": "more", "on_busy": "queue"}));
    here.come_back_at(b.address);
    there.until("the first answer", |frame| frame["type"] == "done" && frame["turn"] == 1);
    assert!(killed.elapsed() < TAKEOVER, "{:?}", killed.elapsed());
    there.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    here.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    assert_eq!(shown(&here), shown(&there));
    assert_ne!(there.transcript.epoch, epoch, "continuity was not proven");
    let rewind = there.frames.iter().find(|frame| frame["type"] == "rewind");
    assert!(rewind.is_none_or(|frame| frame["reason"] == "recover"), "{rewind:?}");
    let first = there.transcript.messages[1].content.as_str().unwrap();
    let asked = &scene.one.requests()[1].body;
    let healthy = json!({"model": "ok", "messages": asked["messages"]});
    assert_eq!(first, koboshi_testkit::questions::healthy_text(&healthy), "whole, and once");
    assert_eq!(scene.one.all_calls(), 3, "one more for the answer that was cut, and the second turn");
    assert!(errors(&here).is_empty() && errors(&there).is_empty());
}

/// So soon after its owner was killed a turn is answered by another gateway.
const TAKEOVER: Duration = Duration::from_secs(12);

#[test]
fn a_chat_is_one_turn_whether_its_gateway_is_killed_before_or_after_it_was_accepted() {
    for waits_for_accepted in [false, true] {
        let (scene, redis) = (Scene::new(), RedisServer::start());
        let mut a = scene.gateway("a", "slow-first?after=60s", "1s", &redis.url());
        let b = scene.gateway("b", "slow-first?after=60s", "1s", &redis.url());
        let mut client = SessionClient::begin(a.address, "tab-a");
        client.chat("c-1", "hello");
        if waits_for_accepted {
            client.next_of("accepted");
        }
        from_now_on(&scene.one, "slow-first?after=60s", "ok");
        a.kill();
        let killed = Instant::now();
        client.come_back_at(b.address);
        // Its outbox sends what was not accepted, and what may have been lost.
        client.chat("c-1", "hello");
        client.next_of("done");
        assert!(killed.elapsed() < TAKEOVER, "{:?}", killed.elapsed());
        assert_eq!(client.transcript.messages.len(), 2, "one turn for one id");
        assert_eq!(client.transcript.messages[1].content, whole(&scene.one).as_str());
        assert!(scene.one.all_calls() <= 2, "one call more at most");
        assert!(errors(&client).is_empty());
    }
}

#[test]
fn an_owner_that_was_paused_writes_no_more_and_its_readers_follow_the_new_one() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let a = scene.gateway("a", "stall?after=12", "1s", &redis.url());
    let b = scene.gateway("b", "stall?after=12", "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    here.next_of("content");
    there.next_of("content");
    from_now_on(&scene.one, "stall?after=12", "ok");
    signal(&a.child, "-STOP");
    let paused = Instant::now();
    let text = there.answer();
    assert!(paused.elapsed() < TAKEOVER, "{:?}", paused.elapsed());
    assert_eq!(text, whole(&scene.one));
    signal(&a.child, "-CONT");
    until("its reader sees the same", || {
        here.send(&json!({"type": "ping"}));
        here.next_of("pong");
        (shown(&here) == shown(&there)).then_some(())
    });
    there.chat("c-2", "more");
    there.answer();
    here.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    assert_eq!(shown(&here), shown(&there));
    assert_eq!(scene.one.all_calls(), 3, "one more for the answer that was cut, and the second turn");
}

#[test]
fn a_healthy_owner_keeps_its_session_for_longer_than_a_lease_while_pieces_pour_in() {
    let scene = Scene::new();
    let model = "ok?gap=20ms&chunks=700";
    let a = scene.gateway("a", model, "1s", &scene.file());
    let b = scene.gateway("b", model, "1s", &scene.file());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    let begun = Instant::now();
    there.next_of("content");
    assert!(begun.elapsed() < Duration::from_secs(5), "the reader elsewhere is not kept waiting");
    let text = there.answer();
    assert!(begun.elapsed() > Duration::from_secs(12), "longer than a lease and the look for lost owners");
    assert_eq!(here.answer(), text);
    assert_eq!((there.count("rewind"), here.count("rewind")), (0, 0));
    assert_eq!(scene.one.all_calls(), 1, "no gateway asks again");
    assert!(errors(&here).is_empty() && errors(&there).is_empty());
}

#[test]
fn a_client_at_the_other_gateway_chats_cancels_and_tries_again() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let a = scene.gateway("a", "stall?after=12", "1s", &redis.url());
    let b = scene.gateway("b", "stall?after=12", "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    here.next_of("content");
    there.next_of("content");
    there.send(&json!({"type": "chat", "id": "c-2", "content": "more", "on_busy": "queue"}));
    assert_eq!(there.next_of("accepted")["queued"], true);
    there.send(&json!({"type": "cancel", "id": "x-1", "turn": 1}));
    assert_eq!(here.next_of("done")["reason"], "cancelled");
    assert_eq!(there.next_of("done")["reason"], "cancelled");
    until("the provider is let go", || (scene.one.cancelled() >= 1).then_some(()));
    there.next_of("content");
    there.send(&json!({"type": "cancel", "id": "x-2", "turn": 2}));
    there.next_of("done");
    from_now_on(&scene.one, "stall?after=12", "ok");
    there.send(&json!({"type": "retry", "id": "y-1", "turn": 2}));
    assert_eq!(there.next_of("rewind")["reason"], "retry");
    let text = there.answer();
    assert_eq!(text, whole(&scene.one));
    here.until("the second try", |frame| frame["type"] == "done" && frame["attempt"] == 2);
    assert_eq!(shown(&here), shown(&there));
    assert_eq!(here.transcript.messages.len(), 4);
}

#[test]
fn a_claimed_tool_is_not_run_again_when_the_owner_is_killed() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let mut a = scene.gateway("a", "ok?say=3", "1s", &redis.url());
    let b = scene.gateway("b", "ok?say=3", "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    let tool = json!({"name": "look_up", "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}});
    here.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
    let call = there.next_of("tool_call")["call"].clone();
    there.send(&json!({"type": "tool_claim", "call": call}));
    assert_eq!(there.next_of("tool_state")["by"], "tab-b");
    a.kill();
    // The result reaches the process that owns the session then.
    there.send(&json!({"type": "tool_result", "call": call, "content": "42"}));
    there.next_of("done");
    here.come_back_at(b.address);
    here.send(&json!({"type": "ping"}));
    here.next_of("pong");
    assert_eq!(shown(&here), shown(&there));
    let calls = &there.transcript.messages[1].calls;
    assert_eq!((calls.len(), &calls[0].content), (1, &Some(json!("42"))));
    assert_eq!(there.count("tool_call"), 1, "it is not offered again");
    assert_eq!(scene.one.all_calls(), 2);
}

#[test]
fn a_turn_that_outlasts_the_drain_is_handed_to_the_other_gateway() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let mut a = scene.gateway("a", "stall?after=12", "500ms", &redis.url());
    let b = scene.gateway("b", "stall?after=12", "500ms", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    here.next_of("content");
    there.next_of("content");
    let epoch = here.transcript.epoch.clone();
    from_now_on(&scene.one, "stall?after=12", "ok");
    signal(&a.child, "-TERM");
    assert_eq!(here.next_of("goaway")["reason"], "restart");
    assert_eq!(here.end(), SessionEnd::Closed(4200));
    here.come_back_at(b.address);
    let text = there.answer();
    assert_eq!((here.answer(), whole(&scene.one)), (text.clone(), text));
    assert!(a.child.wait().unwrap().success());
    assert_eq!(shown(&here), shown(&there));
    assert_eq!(there.transcript.epoch, epoch, "nothing was lost: the same log");
    let rewind = there.frames.iter().find(|frame| frame["type"] == "rewind").unwrap();
    assert_eq!((&rewind["reason"], &rewind["attempt"]), (&json!("restart"), &json!(2)));
    assert!(errors(&here).is_empty() && errors(&there).is_empty());
    assert_eq!((scene.one.all_calls(), there.count("retry")), (2, 0));
}

#[test]
fn a_turn_goes_on_after_the_restart_of_the_only_gateway() {
    let scene = Scene::new();
    let mut a = scene.gateway("a", "stall?after=12", "300ms", &scene.file());
    let mut client = SessionClient::begin(a.address, "tab-a");
    client.chat("c-1", "hello");
    client.next_of("content");
    let epoch = client.transcript.epoch.clone();
    from_now_on(&scene.one, "stall?after=12", "ok");
    signal(&a.child, "-TERM");
    assert_eq!(client.end(), SessionEnd::Closed(4200));
    a.child.wait().unwrap();
    a.start_again();
    // No client needs to be connected for it.
    until("the turn goes on", || (scene.one.all_calls() == 2).then_some(()));
    client.come_back_at(a.address);
    until("the answer is there", || {
        client.send(&json!({"type": "ping"}));
        client.next_of("pong");
        client.transcript.open.is_none().then_some(())
    });
    assert_eq!(client.transcript.messages[1].content, whole(&scene.one).as_str());
    assert_eq!(client.transcript.epoch, epoch);
    assert!(errors(&client).is_empty());
    assert_eq!(scene.one.all_calls(), 2);
}

#[test]
fn a_killed_gateway_goes_on_with_its_turn_when_it_is_started_again() {
    let scene = Scene::new();
    let mut a = scene.gateway("a", "stall?after=12", "1s", &scene.file());
    let mut client = SessionClient::begin(a.address, "tab-a");
    client.chat("c-1", "hello");
    client.next_of("content");
    from_now_on(&scene.one, "stall?after=12", "ok");
    a.kill();
    a.start_again();
    client.come_back_at(a.address);
    client.next_of("done");
    assert_eq!(client.transcript.messages[1].content, whole(&scene.one).as_str());
    assert_eq!(scene.one.all_calls(), 2);
}
