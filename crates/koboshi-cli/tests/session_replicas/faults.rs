//! What a store does to sessions: it is killed between two of its steps, it is away for long, and a replica that lags takes its place.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;
use koboshi_store::{RedisPolicy, RedisStore, Store as _};

/// Where a relay stops when it has seen the words that it waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// The order does not reach the server.
    Order,
    /// The server has done it, and its answer does not come back.
    Answer,
}

#[derive(Default)]
struct Passing {
    target: u16,
    /// Words of an order, and where it is held then.
    wanted: Option<(&'static [u8], Hold)>,
    held: Option<Hold>,
    open: Vec<TcpStream>,
}

/// A way to a server that can be stopped at a word, and turned to another server.
struct Relay {
    address: SocketAddr,
    passing: Arc<Mutex<Passing>>,
}

fn port(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap()
}

impl Relay {
    fn to(url: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let passing = Arc::new(Mutex::new(Passing { target: port(url), ..Passing::default() }));
        let shared = Arc::clone(&passing);
        std::thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                let target = shared.lock().unwrap().target;
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let open = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                shared.lock().unwrap().open.extend(open);
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (orders, answers) = (Arc::clone(&shared), Arc::clone(&shared));
                std::thread::spawn(move || {
                    pass(client, server, |bytes| orders.lock().unwrap().lets_order(bytes));
                });
                std::thread::spawn(move || pass(ends.1, ends.0, |_| answers.lock().unwrap().held.is_none()));
            }
        });
        Self { address, passing }
    }

    fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    fn hold(&self, words: &'static str, at: Hold) {
        self.passing.lock().unwrap().wanted = Some((words.as_bytes(), at));
    }

    fn has_held(&self) -> bool {
        self.passing.lock().unwrap().held.is_some()
    }

    /// Another server is there from now on.
    fn turn_to(&self, url: &str) {
        let mut passing = self.passing.lock().unwrap();
        passing.target = port(url);
        for stream in passing.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Passing {
    fn lets_order(&mut self, bytes: &[u8]) -> bool {
        if self.held == Some(Hold::Order) {
            return false;
        }
        let Some((words, at)) = self.wanted else { return true };
        if self.held.is_none() && bytes.windows(words.len()).any(|window| window == words) {
            self.held = Some(at);
            return at == Hold::Answer;
        }
        true
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, lets: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let Some(bytes) = buffer.get(..count) else { return };
        if lets(bytes) && to.write_all(bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn at(url: &str) -> RedisStore {
    RedisStore::new(url, RedisPolicy::default()).unwrap()
}

/// The events of a session as the store has them.
fn stored(store: &RedisStore, session: &str) -> String {
    let read = store
        .sessions()
        .read(session, koboshi_store::KnownPart::NOTHING, jiff::Timestamp::UNIX_EPOCH)
        .unwrap();
    let events = read.into_iter().flat_map(|stored| stored.events);
    events.map(|(_, body)| String::from_utf8_lossy(&body).into_owned()).collect()
}

/// Nothing else was ever shown under the same number of the same epoch.
fn no_number_was_used_twice(clients: &[&SessionClient]) {
    let mut known = std::collections::HashMap::new();
    for client in clients {
        let mut epoch = String::new();
        for frame in &client.frames {
            if let Some(name) = frame["epoch"].as_str() {
                name.clone_into(&mut epoch);
            }
            let Some(seq) = frame["seq"].as_u64().filter(|_| frame["type"] != "session") else { continue };
            // Merged frames cover several numbers: what they say is compared by their last one and where they begin.
            let key = (epoch.clone(), seq, frame["first"].as_u64());
            let before = known.insert(key.clone(), frame.clone());
            assert!(before.as_ref().is_none_or(|before| before == frame), "{key:?}: {before:?} and {frame}");
        }
    }
}

#[test]
fn an_answer_whose_owner_is_killed_between_storing_and_sending_its_end_is_whole_and_asked_for_once() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let relay = Relay::to(&redis.url());
    let mut a = scene.gateway("a", "ok?gap=10ms", "1s", &relay.url());
    let b = scene.gateway("b", "ok?gap=10ms", "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    relay.hold("\"type\":\"done\"", Hold::Answer);
    here.chat("c-1", "hello");
    here.next_of("content");
    until("the end is stored", || relay.has_held().then_some(()));
    let store = at(&redis.url());
    until("the store has it", || stored(&store, &here.session).contains("\"type\":\"done\"").then_some(()));
    a.kill();
    assert_eq!(here.end(), SessionEnd::Cut);
    assert_eq!(here.count("done"), 0, "it was not sent");
    let killed = Instant::now();
    here.come_back_at(b.address);
    for client in [&mut here, &mut there] {
        until("the answer is whole", || {
            client.send(&json!({"type": "ping"}));
            client.next_of("pong");
            client.transcript.open.is_none().then_some(())
        });
        assert_eq!(client.transcript.messages[1].content, whole(&scene.one).as_str());
        assert_eq!(client.count("rewind"), 0, "nothing is taken back");
    }
    assert!(killed.elapsed() < TAKEOVER, "{:?}", killed.elapsed());
    // The lease of the killed one is over before a chat is answered by the other one.
    there.chat("c-2", "more");
    there.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    assert_eq!(scene.one.all_calls(), 2, "no answer was asked for twice");
    assert!(errors(&here).is_empty() && errors(&there).is_empty());
    no_number_was_used_twice(&[&here, &there]);
}

#[test]
fn a_chat_that_was_killed_before_it_was_stored_is_one_turn_elsewhere() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let relay = Relay::to(&redis.url());
    let mut a = scene.gateway("a", "ok", "1s", &relay.url());
    let b = scene.gateway("b", "ok", "1s", &redis.url());
    let mut client = SessionClient::begin(a.address, "tab-a");
    relay.hold("\"type\":\"accepted\"", Hold::Order);
    client.chat("c-1", "hello");
    until("it is about to be stored", || relay.has_held().then_some(()));
    a.kill();
    assert_eq!((client.end(), client.count("accepted")), (SessionEnd::Cut, 0));
    client.come_back_at(b.address);
    client.chat("c-1", "hello");
    client.until("the answer", |frame| frame["type"] == "done" && frame["turn"] == 1);
    assert_eq!((client.transcript.messages.len(), scene.one.all_calls()), (2, 1));
    assert!(errors(&client).is_empty());
}

#[test]
fn a_store_that_is_away_for_thirty_seconds_costs_no_text_and_uses_no_number_twice() {
    const AWAY: Duration = Duration::from_secs(30);
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let model = "ok?gap=100ms&chunks=80";
    let a = scene.gateway("a", model, "1s", &redis.url());
    let b = scene.gateway("b", model, "1s", &redis.url());
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    there.next_of("content");
    redis.pause();
    let away = Instant::now();
    here.until("the answer goes on to its end without a store", |frame| frame["type"] == "done");
    let text = here.transcript.messages[1].content.clone();
    here.chat("c-2", "while it is away");
    assert_eq!(here.next_of("error")["kind"], "message_save_failed", "nothing is shown as accepted");
    until("it is away for longer than three leases", || {
        // Who reads answers the pings of its gateway.
        for client in [&mut here, &mut there] {
            client.send(&json!({"type": "ping"}));
            client.next_of("pong");
        }
        (away.elapsed() > AWAY).then_some(())
    });
    redis.resume();
    until("it is accepted", || {
        here.chat("c-2", "while it is away");
        here.send(&json!({"type": "ping"}));
        here.next_of("pong");
        (here.transcript.messages.len() == 4 && here.transcript.open.is_none()).then_some(())
    });
    until("the other one sees the same", || {
        there.send(&json!({"type": "ping"}));
        there.next_of("pong");
        (shown(&there) == shown(&here)).then_some(())
    });
    assert_eq!(here.transcript.messages[1].content, text, "what was shown stays");
    assert!(scene.one.all_calls() <= 3, "one call more at most: {}", scene.one.all_calls());
    no_number_was_used_twice(&[&here, &there]);
}

#[test]
fn a_replica_that_lags_and_takes_the_place_of_its_server_costs_no_message_while_a_gateway_has_it() {
    let (scene, mut redis) = (Scene::new(), RedisServer::start());
    let relay = Relay::to(&redis.url());
    let a = scene.gateway("a", "ok", "1s", &relay.url());
    let b = scene.gateway("b", "ok", "1s", &relay.url());
    let replica = redis.replica();
    let mut here = SessionClient::begin(a.address, "tab-a");
    let mut there = other(&here, &b, "tab-b");
    here.chat("c-1", "hello");
    here.answer();
    let copy = at(&replica.url());
    until("the replica has it", || stored(&copy, &here.session).contains("\"type\":\"done\"").then_some(()));
    // From here on it lags: what follows reaches the server alone.
    replica.order("REPLICAOF NO ONE");
    here.chat("c-2", "what the replica never gets");
    here.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    there.until("the second answer", |frame| frame["type"] == "done" && frame["turn"] == 2);
    let epoch = here.transcript.epoch.clone();
    redis.kill();
    relay.turn_to(&replica.url());
    until("the third answer", || {
        here.chat("c-3", "again");
        here.send(&json!({"type": "ping"}));
        here.next_of("pong");
        (here.transcript.messages.len() == 6 && here.transcript.open.is_none()).then_some(())
    });
    until("the other one sees the same", || {
        there.send(&json!({"type": "ping"}));
        there.next_of("pong");
        (shown(&there) == shown(&here)).then_some(())
    });
    assert_ne!(here.transcript.epoch, epoch, "continuity was not proven");
    let ids: Vec<_> =
        here.transcript.messages.iter().filter_map(|message| message.content.as_str()).collect();
    assert!(ids.contains(&"what the replica never gets"), "{ids:?}");
    no_number_was_used_twice(&[&here, &there]);
}
