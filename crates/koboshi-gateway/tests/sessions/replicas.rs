//! Two gateways, one store: a client of either sees the same conversation.

use std::sync::Arc;
use std::time::Instant;

use koboshi_config::Config;
use koboshi_config::sessions::OnDetach;
use koboshi_gateway::Gateway;
use koboshi_store::{KnownPart, RedisPolicy, RedisStore, SqlitePolicy, SqliteStore, Store};
use koboshi_testkit::{RedisServer, SessionClient, SessionEnd, Upstream, until};
use serde_json::json;

use crate::common::*;

/// Two gateways before one provider.
struct Pair {
    a: Gateway,
    b: Gateway,
    one: Upstream,
    _place: Box<dyn std::any::Any>,
}

fn pair(model: &str, store: impl Fn() -> Arc<dyn Store>, place: Box<dyn std::any::Any>) -> Pair {
    pair_with(model, store, place, |_| {})
}

fn pair_with(
    model: &str,
    store: impl Fn() -> Arc<dyn Store>,
    place: Box<dyn std::any::Any>,
    change: impl Fn(&mut Config),
) -> Pair {
    let one = Upstream::start();
    let mut config = config();
    change(&mut config);
    config.providers.insert("one".to_owned(), provider(one.url()));
    config.routes.insert("m".to_owned(), route(&[&format!("one/{model}")]));
    let start = || start_on(config.clone(), store(), None).unwrap();
    Pair { a: start(), b: start(), one, _place: place }
}

fn pairs(model: &str) -> Vec<Pair> {
    pairs_with(model, |_| {})
}

fn pairs_with(model: &str, change: impl Fn(&mut Config)) -> Vec<Pair> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("koboshi.db");
    let sqlite = || Arc::new(SqliteStore::open(&path, SqlitePolicy::default()).unwrap()) as Arc<dyn Store>;
    let first = pair_with(model, sqlite, Box::new(folder), &change);
    let server = RedisServer::start();
    let url = server.url();
    let redis = || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    vec![first, pair_with(model, redis, Box::new(server), &change)]
}

/// The same session at the other gateway.
fn other(client: &SessionClient, gateway: &Gateway, tab: &str) -> SessionClient {
    let more = json!({"session": client.session, "resume": client.resume});
    SessionClient::begin_with(gateway.address(), tab, more)
}

#[test]
fn a_client_elsewhere_sees_what_the_owner_writes_and_may_stop_it() {
    for pair in pairs("stall?after=12") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        here.chat("c-1", "hello");
        here.next_of("content");
        there.next_of("content");
        there.send(&json!({"type": "chat", "id": "c-2", "content": "more"}));
        assert_eq!(there.next_of("error")["id"], "c-2", "the owner's answer comes back");
        there.send(&json!({"type": "cancel", "id": "x-1"}));
        assert_eq!(here.next_of("done")["reason"], "cancelled");
        there.next_of("done");
        assert_eq!(here.transcript, there.transcript);
        until("the provider is let go", || (pair.one.cancelled() == 1).then_some(()));
    }
}

#[test]
fn a_reader_elsewhere_gets_the_text_while_it_is_written_however_fast_its_pieces_come() {
    for pair in pairs("ok?gap=20ms&chunks=150") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        here.chat("c-1", "hello");
        let text = there.answer();
        assert!(there.count("content") >= 5, "it came in steps: {:#?}", there.frames);
        assert_eq!(here.answer(), text);
        assert_eq!((there.count("rewind"), pair.one.all_calls()), (0, 1));
    }
}

#[test]
fn a_running_turn_is_written_at_most_ten_times_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("koboshi.db");
    let sqlite = || Arc::new(SqliteStore::open(&path, SqlitePolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok?gap=5ms&chunks=500", sqlite, Box::new(()));
    let store = sqlite();
    let writes = || store.sessions().changed(None, jiff::Timestamp::UNIX_EPOCH).unwrap().0;
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    let (before, begun) = (writes(), Instant::now());
    client.chat("c-1", "hello");
    client.answer();
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let a_second = (writes() - before) as f64 / begun.elapsed().as_secs_f64();
    assert!((4.0..=10.0).contains(&a_second), "{a_second}");
}

/// Eight writes a second would bring some 25 steps of this answer.
#[test]
fn a_reader_elsewhere_gets_the_text_before_the_store_has_it_where_the_store_can_tell_it() {
    let redis = pairs("ok?gap=20ms&chunks=150").pop().unwrap();
    let mut here = SessionClient::begin(redis.a.address(), "tab-a");
    let mut there = other(&here, &redis.b, "tab-b");
    here.chat("c-1", "hello");
    let text = there.answer();
    assert_eq!(here.answer(), text);
    assert!(there.count("content") > 50, "{} steps", there.count("content"));
}

/// What a turn costs in writes does not depend on what was said before it.
#[test]
fn a_turn_of_a_long_conversation_is_a_small_write() {
    let server = RedisServer::start();
    let url = server.url();
    let redis = || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok?chunks=3", redis, Box::new(()));
    let received = || -> u64 {
        let stats = server.ask("INFO stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
        line.unwrap().trim().parse().unwrap()
    };
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    let mut turns = 0;
    let mut ten_turns = |client: &mut SessionClient| {
        let before = received();
        for _ in 0..10 {
            turns += 1;
            client.chat(&format!("c-{turns}"), "hello");
            client.answer();
        }
        received() - before
    };
    let new = ten_turns(&mut client);
    for big in 0..3 {
        client.chat(&format!("big-{big}"), &"x".repeat(700_000));
        client.answer();
    }
    // The whole of it is stored when it has doubled, behind one of these.
    ten_turns(&mut client);
    let long = ten_turns(&mut client);
    assert!(long < new + 200_000, "{long} bytes of ten turns behind 2 MB, {new} without");
    // Another gateway has all of it.
    let mut there = other(&client, &pair.b, "tab-b");
    there.chat("c-last", "hello");
    there.answer();
    client.next_of("done");
    assert_eq!(there.transcript.messages, client.transcript.messages);
    assert_eq!(there.transcript.messages.len(), 2 * 34);
}

#[test]
fn a_store_that_hangs_does_not_hold_the_text() {
    let server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok?gap=20ms&chunks=200", redis, Box::new(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    client.chat("c-1", "hello");
    client.next_of("content");
    server.pause();
    let begun = Instant::now();
    for _ in 0..50 {
        client.next_of("content");
    }
    // A frame that must be stored first waits for 2 s; text does not.
    assert!(begun.elapsed() < ms(1900), "{:?}", begun.elapsed());
    server.resume();
    assert!(!client.answer().is_empty());
}

#[test]
fn an_idle_session_is_taken_by_the_gateway_that_gets_the_next_chat() {
    for pair in pairs("ok") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        here.chat("c-1", "hello");
        here.answer();
        let mut there = other(&here, &pair.b, "tab-b");
        there.chat("c-2", "again");
        let text = there.answer();
        assert_eq!(here.answer(), text);
        assert_eq!(here.transcript.messages.len(), 4);
        assert_eq!(here.transcript.messages, there.transcript.messages);
        there.chat("c-1", "hello");
        assert_eq!(there.next_of("accepted")["turn"], 1, "its id is known everywhere");
        assert_eq!(pair.one.all_calls(), 2);
        here.come_back_at(pair.b.address());
        assert_eq!(here.frames.last().unwrap()["resumed"], "replay", "the same epoch");
    }
}

#[test]
fn a_tool_is_claimed_and_answered_from_the_other_gateway() {
    for pair in pairs("ok") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        let tool = json!({"name": "look_up", "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}});
        here.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
        let call = there.next_of("tool_call")["call"].clone();
        there.send(&json!({"type": "tool_claim", "call": call}));
        assert_eq!(here.next_of("tool_state")["by"], "tab-b");
        there.send(&json!({"type": "tool_result", "call": call, "content": "42"}));
        here.next_of("done");
        there.next_of("done");
        assert_eq!(here.transcript.messages, there.transcript.messages);
    }
}

#[test]
fn what_is_forgotten_at_one_gateway_is_gone_at_the_other() {
    for pair in pairs("ok") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        here.chat("c-1", "hello");
        here.answer();
        let mut there = other(&here, &pair.b, "tab-b");
        let mut more = other(&here, &pair.b, "tab-c");
        here.send(&json!({"type": "bye", "forget": true}));
        assert_eq!(here.end(), SessionEnd::Closed(4410));
        // It may be told before it has heard of it.
        there.chat("c-2", "again");
        assert_eq!(there.end(), SessionEnd::Closed(4410));
        assert_eq!(more.end(), SessionEnd::Closed(4410), "also where nothing was said");
        assert_eq!(pair.one.all_calls(), 1, "no target answers it any more");
        for gateway in [&pair.a, &pair.b] {
            let more = json!({"session": there.session, "resume": there.resume});
            let refused = SessionClient::try_begin(gateway.address(), "tab-d", &more);
            assert_eq!(refused.err(), Some(SessionEnd::Closed(4404)));
        }
    }
}

#[test]
fn a_running_turn_is_forgotten_by_order_of_a_client_elsewhere() {
    for pair in pairs("stall?after=12") {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        here.chat("c-1", "hello");
        there.next_of("content");
        there.send(&json!({"type": "bye", "forget": true}));
        assert_eq!((there.end(), here.end()), (SessionEnd::Closed(4410), SessionEnd::Closed(4410)));
        until("the provider is let go", || (pair.one.cancelled() == 1).then_some(()));
    }
}

#[test]
fn a_store_that_is_away_forgets_when_it_is_back() {
    let server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok", &redis, Box::new(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    client.chat("c-1", "hello");
    client.answer();
    server.pause();
    client.send(&json!({"type": "bye", "forget": true}));
    client.send(&json!({"type": "ping"}));
    client.next_of("pong");
    server.resume();
    assert_eq!(client.end(), SessionEnd::Closed(4410));
    let read =
        redis().sessions().read(&client.session, KnownPart::NOTHING, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert!(read.unwrap().is_forgotten);
}

#[test]
fn a_reader_at_the_other_gateway_keeps_the_turn() {
    for pair in pairs_with("ok?gap=100ms&chunks=50", |config| {
        config.sessions.on_detach = OnDetach::Cancel;
        config.sessions.detached_for = ms(100);
    }) {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        here.chat("c-1", "hello");
        there.next_of("content");
        here.cut();
        assert_eq!(there.next_of("done")["reason"], "stop");
        here.come_back_at(pair.a.address());
        here.send(&json!({"type": "chat", "id": "c-2", "content": "again"}));
        here.until("it is answered", |frame| frame["type"] == "content" && frame["turn"] == 2);
        here.cut();
        there.cut();
        until("no reader is left", || (pair.one.cancelled() == 1).then_some(()));
    }
}

#[test]
fn the_result_of_a_tab_that_left_the_other_gateway_is_unknown_after_its_grace() {
    for pair in pairs_with("ok", |config| config.sessions.claim_grace = ms(1000)) {
        let mut here = SessionClient::begin(pair.a.address(), "tab-a");
        let mut there = other(&here, &pair.b, "tab-b");
        let tool = json!({"name": "look_up", "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}});
        here.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
        let call = there.next_of("tool_call")["call"].clone();
        there.send(&json!({"type": "tool_claim", "call": call}));
        assert_eq!(here.next_of("tool_state")["by"], "tab-b");
        let begun = Instant::now();
        until("its process has said twice that it is there", || (begun.elapsed() > ms(4500)).then_some(()));
        here.send(&json!({"type": "ping"}));
        here.next_of("pong");
        assert_eq!(here.count("tool_state"), 1, "it is not given up while it is there");
        there.cut();
        assert_eq!(here.next_of("tool_state")["state"], "unknown");
        here.next_of("done");
    }
}

/// Lets the client claim a call; gives its `tool_call` frame.
fn claimed(client: &mut SessionClient) -> serde_json::Value {
    let tool = json!({"name": "look_up", "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}});
    client.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
    let call = client.next_of("tool_call");
    client.send(&json!({"type": "tool_claim", "call": call["call"]}));
    assert_eq!(client.next_of("tool_state")["state"], "claimed");
    call
}

#[test]
fn a_claim_is_promised_once_only_where_a_replica_has_it_too() {
    let mut server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok", redis, Box::new(()));
    let alone = claimed(&mut SessionClient::begin(pair.a.address(), "tab-a"));
    assert_eq!(alone["at_most_once"], false, "a claim may be lost with the machine");
    let replica = server.replica();
    let copy = RedisStore::new(&replica.url(), RedisPolicy::default()).unwrap();
    let main = RedisStore::new(&server.url(), RedisPolicy::default()).unwrap();
    until("the replica is there", || main.sessions().can_confirm().unwrap().then_some(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    assert_eq!(claimed(&mut client)["at_most_once"], true);
    server.kill();
    let kept = copy
        .sessions()
        .read(&client.session, KnownPart::NOTHING, jiff::Timestamp::UNIX_EPOCH)
        .unwrap()
        .unwrap();
    let events: String =
        kept.events.iter().map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect();
    assert!(events.contains("\"claimed\""), "{events}");
}

#[test]
fn a_store_that_comes_back_empty_costs_no_message() {
    let mut server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok", redis, Box::new(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    client.chat("c-1", "hello");
    client.answer();
    let epoch = client.transcript.epoch.clone();
    server.kill();
    client.chat("c-2", "while it is away");
    assert_eq!(client.next_of("error")["kind"], "message_save_failed", "nothing is shown as accepted");
    until("it starts again, empty", || server.restart().then_some(()));
    // A snapshot may say what an event would have said.
    until("the second answer", || {
        client.chat("c-3", "again");
        client.send(&json!({"type": "ping"}));
        client.next_of("pong");
        (client.transcript.messages.len() == 4 && client.transcript.open.is_none()).then_some(())
    });
    assert_ne!(client.transcript.epoch, epoch, "continuity was not proven");
    assert_eq!(client.transcript.messages.len(), 4);
}

/// Nothing else was ever shown under the same number of the same epoch.
fn no_number_was_used_twice(clients: &[&SessionClient]) {
    let mut shown = std::collections::HashMap::new();
    for client in clients {
        let mut epoch = String::new();
        for frame in &client.frames {
            if let Some(name) = frame["epoch"].as_str() {
                name.clone_into(&mut epoch);
            }
            // Merged frames cover several numbers: what they say is compared by their last one and where they begin.
            let Some(seq) = frame["seq"].as_u64().filter(|_| frame["type"] != "session") else { continue };
            let key = (epoch.clone(), seq, frame["first"].as_u64());
            let before = shown.insert(key.clone(), frame.clone());
            assert!(before.as_ref().is_none_or(|before| before == frame), "{key:?}: {before:?} and {frame}");
        }
    }
}

#[test]
fn a_store_that_has_lost_its_last_writes_costs_nothing_while_the_gateway_lives() {
    let mut server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok", redis, Box::new(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    let mut other_tab = client.tab("tab-b");
    client.chat("c-1", "hello");
    client.answer();
    server.save();
    client.chat("c-2", "what the store loses");
    client.answer();
    other_tab.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    other_tab.cut();
    let epoch = client.transcript.epoch.clone();
    server.kill();
    until("it starts again, with older data", || server.restart().then_some(()));
    // A snapshot may say what an event would have said.
    until("the third answer", || {
        client.chat("c-3", "again");
        client.send(&json!({"type": "ping"}));
        client.next_of("pong");
        (client.transcript.messages.len() == 6 && client.transcript.open.is_none()).then_some(())
    });
    other_tab.come_back();
    other_tab.send(&json!({"type": "ping"}));
    other_tab.next_of("pong");
    assert_ne!(client.transcript.epoch, epoch, "continuity was not proven");
    assert_eq!(client.transcript.messages.len(), 6);
    assert_eq!(client.transcript, other_tab.transcript);
    no_number_was_used_twice(&[&client, &other_tab]);
}

#[test]
fn a_turn_whose_store_has_lost_its_last_writes_goes_on() {
    let mut server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let pair = pair("ok?gap=30ms&chunks=150", redis, Box::new(()));
    let mut client = SessionClient::begin(pair.a.address(), "tab-a");
    client.chat("c-1", "hello");
    client.answer();
    server.save();
    client.chat("c-2", "what the store loses");
    client.until("some of it", |frame| frame["type"] == "content" && frame["turn"] == 2);
    let epoch = client.transcript.epoch.clone();
    server.kill();
    until("it starts again, with older data", || server.restart().then_some(()));
    client.until("the second answer", |frame| {
        frame["type"] == "done" && frame["turn"] == 2
            || frame["type"] == "snapshot" && frame["messages"].as_array().is_some_and(|all| all.len() == 4)
    });
    assert_ne!(client.transcript.epoch, epoch, "continuity was not proven");
    assert_eq!(client.transcript.messages.len(), 4);
    assert_eq!(client.transcript.messages[3].reason, Some(koboshi::session::DoneReason::Stop));
    no_number_was_used_twice(&[&client]);
    client.chat("c-3", "again");
    client.until("the third answer", |frame| frame["type"] == "done" && frame["turn"] == 3);
    no_number_was_used_twice(&[&client]);
}

#[test]
fn a_store_that_has_lost_its_last_writes_uses_no_number_twice_also_after_a_restart() {
    let mut server = RedisServer::start();
    let url = server.url();
    let redis = move || Arc::new(RedisStore::new(&url, RedisPolicy::default()).unwrap()) as Arc<dyn Store>;
    let first = pair("ok", &redis, Box::new(()));
    let mut client = SessionClient::begin(first.a.address(), "tab-a");
    let mut other_tab = client.tab("tab-b");
    client.chat("c-1", "hello");
    client.answer();
    server.save();
    client.chat("c-2", "what the store loses");
    client.answer();
    other_tab.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    let (epoch, seq) = (client.transcript.epoch.clone(), client.transcript.seq);
    server.kill();
    drop(first);
    until("it starts again, with older data", || server.restart().then_some(()));
    let second = pair("ok", &redis, Box::new(()));
    client.come_back_at(second.a.address());
    assert_eq!(client.frames.last().unwrap()["resumed"], "snapshot");
    client.next_of("snapshot");
    assert_eq!(client.transcript.messages.len(), 2, "what was lost is not hidden");
    client.chat("c-2", "what the store loses");
    client.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    client.chat("c-3", "one more");
    client.until("the third answer", |frame| frame["type"] == "done" && frame["turn"] == 3);
    assert!(client.transcript.seq > seq);
    other_tab.come_back_at(second.a.address());
    other_tab.send(&json!({"type": "ping"}));
    other_tab.next_of("pong");
    assert_ne!(client.transcript.epoch, epoch, "continuity was not proven");
    assert_eq!(client.transcript, other_tab.transcript);
    no_number_was_used_twice(&[&client, &other_tab]);
}
