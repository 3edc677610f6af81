//! Providers behind TLS, on HTTP/1.1 and on HTTP/2: the same promises, and the falls that only such connections have.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::*;
use koboshi_config::Config;
use koboshi_config::gateway::{Commit, RouteConfig};
use koboshi_store::{EntryKind, MemoryStore};
use koboshi_testkit::chaos::{Crowd, primary};
use koboshi_testkit::{Authority, Protocol, Upstream, until};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// The first provider is behind TLS, with an authority that the config names; the second one is plain.
fn secure(speaks: Protocol, chain: &[&str], change: impl FnOnce(&mut Config)) -> Stage {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (one, two) = (Upstream::start_secure(&authority, speaks), Upstream::start());
    let mut config = config();
    let mut first = provider(one.url());
    first.ca_file = Some(authority.write_to(folder.path()));
    config.providers.insert("one".to_owned(), first);
    config.providers.insert("two".to_owned(), provider(two.url()));
    config.routes.insert("m".to_owned(), route(chain));
    change(&mut config);
    let store = MemoryStore::default();
    let gateway = start(config.clone(), &store).unwrap();
    Stage { gateway, one, two, store, config }
}

/// A middlebox that drops connections silently: they stay open, and nothing passes any more.
struct Forgetful {
    port: u16,
    forgotten: Arc<AtomicU64>,
    made: Arc<AtomicU64>,
}

impl Forgetful {
    fn before(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let (forgotten, made) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (limit, count) = (Arc::clone(&forgotten), Arc::clone(&made));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
                for (from, to) in ways {
                    let limit = Arc::clone(&limit);
                    std::thread::spawn(move || pass(from.unwrap(), to.unwrap(), number, &limit));
                }
            }
        });
        Self { port: own, forgotten, made }
    }

    /// Forgets the connections that there are.
    fn forget(&self) {
        self.forgotten.store(self.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// Passes on what comes until the connection is forgotten; then it is swallowed.
fn pass(mut from: TcpStream, mut to: TcpStream, number: u64, forgotten: &AtomicU64) {
    let mut block = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut block) {
        if number >= forgotten.load(Ordering::SeqCst) && to.write_all(&block[..read]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A connection that hangs costs the requests that are on it their attempt, and no others: the next ones open another.
#[test]
fn a_connection_that_hangs_is_not_used_again_and_harms_no_other_request() {
    let mut way = None;
    let stage = secure(Protocol::Http2, &["one/ok", "two/ok"], |config| {
        let one = config.providers.get_mut("one").unwrap();
        let url = one.base_url.clone().unwrap();
        let port: u16 = url.rsplit(':').next().unwrap().trim_end_matches("/v1").parse().unwrap();
        let relay = Forgetful::before(port);
        one.base_url = Some(url.replace(&port.to_string(), &relay.port.to_string()));
        way = Some(relay);
        timeouts(config, "one", |limits| {
            (limits.first_token, limits.unary) = (Some(ms(1500)), Some(ms(1500)));
        });
        config.routes.insert("only".to_owned(), route(&["one/ok"]));
    });
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    way.unwrap().forget();
    for stream in [false, true] {
        assert_whole(&stage.ask(&chat(stream)), &chat(stream));
    }
    let mut only = chat(false);
    only["model"] = "only".into();
    let answer = stage.ask(&only);
    assert_whole(&answer, &only);
    assert_eq!(answer.number("x-koboshi-attempts"), Some(1), "{answer:?}");
    assert_eq!(
        (stage.breaker("one/ok"), stage.breaker("two/ok")),
        ("closed".to_owned(), "closed".to_owned())
    );
    let entry = stage.journal("the fault", |entry| entry.what == EntryKind::Fault);
    assert_eq!(entry.kind.as_deref(), Some("timeout"), "{entry:?}");
}

/// The connections that requests came on, in order, each once.
fn connections(upstream: &Upstream) -> Vec<u64> {
    let mut all: Vec<u64> = upstream.requests().iter().map(|seen| seen.connection).collect();
    all.dedup();
    all
}

#[test]
fn answers_come_whole_over_secure_connections_that_are_used_again() {
    for speaks in BOTH {
        let stage = secure(speaks, &["one/ok"], |_| {});
        for stream in [false, true, false, true] {
            assert_whole(&stage.ask(&chat(stream)), &chat(stream));
        }
        let tools = with_tools(true, "the weather");
        assert_calls(&stage.ask(&tools), &tools);
        // A busy machine may read the very end of a stream late: then the next request does not find the connection yet.
        assert!(connections(&stage.one).len() <= 2, "{speaks:?}: {:?}", connections(&stage.one));
        let place = stage.one.url().replace("https://", "").replace("/v1", "");
        for seen in stage.one.requests() {
            let name = if speaks == Protocol::Http2 { ":authority" } else { "host" };
            assert_eq!(seen.header(name), Some(place.as_str()), "{seen:?}");
            assert!(seen.header("host").is_none() || speaks == Protocol::Http1, "said once: {seen:?}");
            assert_eq!(seen.path, "/v1/chat/completions");
        }
    }
}

#[test]
fn many_streams_share_one_http2_connection() {
    let stage = secure(Protocol::Http2, &["one/ok?gap=5ms"], |_| {});
    // Also those who come while there is none yet.
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| assert_whole(&stage.ask(&chat(true)), &chat(true)));
        }
    });
    assert_eq!((stage.one.all_calls(), connections(&stage.one)), (24, vec![0]));
}

#[test]
fn no_connection_gets_more_streams_than_its_server_allows() {
    let stage = secure(Protocol::Http2AtMost(4), &["one/ok?gap=10ms", "two/ok"], |_| {});
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let answer = stage.ask(&chat(true));
                assert_whole(&answer, &chat(true));
                assert_eq!(answer.number("x-koboshi-attempts"), Some(1), "{answer:?}");
            });
        }
    });
    assert_eq!(stage.calls(), (12, 0));
    let mut used = connections(&stage.one);
    used.sort_unstable();
    used.dedup();
    assert!(used.len() <= 3, "each was used up before the next was opened: {used:?}");
}

#[test]
fn a_client_that_leaves_ends_its_stream_and_not_the_connection() {
    let stage = secure(Protocol::Http2, &["one/stall?after=3"], |config| {
        config.routes.insert("other".to_owned(), route(&["one/ok"]));
    });
    let (client, _) = begun(&stage);
    drop(client);
    until("the stream is cancelled", || (stage.one.cancelled() == 1).then_some(()));
    let mut other = chat(true);
    other["model"] = "other".into();
    assert_whole(&stage.ask(&other), &other);
    assert_eq!((stage.calls(), connections(&stage.one)), ((2, 0), vec![0]));
}

#[test]
fn clients_notice_no_failure_of_a_secure_primary_of_any_kind() {
    for speaks in BOTH {
        let stage = secure(speaks, &["one/chaos", "two/ok"], |config| {
            config.serve.first_byte_hold = ms(200);
            config.routes.insert("prefilled".to_owned(), route(&["one/chaos", "two/ok?seed=1"]));
            model(config, "two/ok?seed=1", |facts| facts.prefill = Some(true));
            let complete = RouteConfig { commit: Commit::Complete, ..route(&["one/chaos", "two/ok"]) };
            config.routes.insert("complete".to_owned(), complete);
            config.breaker.open.first = ms(20);
            config.breaker.open.cap = ms(40);
            timeouts(config, "one", |limits| {
                limits.first_token = Some(ms(500));
                limits.unary = Some(ms(500));
                limits.idle = Some(ms(500));
            });
        });
        stage.one.set("chaos", primary);
        Crowd::before(stage.gateway.address()).ask(32, 200, |_| {});
        let (one, two) = stage.calls();
        assert!(one > 60 && two > 10, "both were needed: {one}, {two}");
        stage.wait_until_quiet();
    }
}

#[test]
fn an_untrusted_certificate_is_named_and_not_tried_again() {
    for speaks in BOTH {
        let stage = secure(speaks, &["one/ok"], |config| {
            config.routes.insert("both".to_owned(), route(&["one/ok", "two/ok"]));
            config.providers.get_mut("one").unwrap().ca_file = None;
        });
        let answer = stage.ask(&chat(false));
        assert_error(&answer, 502, "connection_failed");
        assert_eq!(answer.number("x-koboshi-attempts"), Some(1), "asking again cannot help: {answer:?}");
        let entry = stage.journal("the fault", |entry| entry.what == EntryKind::Fault);
        assert_eq!(entry.data.as_ref().unwrap()["sub"], "certificate", "{entry:?}");
        assert!(entry.text.contains("certificate"), "{}", entry.text);
        let mut both = chat(true);
        both["model"] = "both".into();
        assert_whole(&stage.ask(&both), &both);
        assert_eq!(stage.calls(), (0, 1));
    }
}

#[test]
fn a_file_without_an_authority_keeps_the_gateway_from_starting() {
    let mut config = config();
    let mut one = provider("https://127.0.0.1:1/v1".to_owned());
    one.ca_file = Some("/there/is/none.pem".into());
    config.providers.insert("one".to_owned(), one);
    let error = start(config, &MemoryStore::default()).err().unwrap().to_string();
    assert!(error.starts_with("providers.one.ca_file: /there/is/none.pem: "), "{error}");
}

#[test]
fn connections_that_went_stale_are_replaced_unseen() {
    for speaks in BOTH {
        let stage = secure(speaks, &["one/ok", "two/ok"], |_| {});
        for (round, end) in
            [Upstream::stale, Upstream::stale_on_use, Upstream::stale_on_use].iter().enumerate()
        {
            // A whole answer was read to its end: its connection is back before the client has it.
            assert_whole(&stage.ask(&chat(false)), &chat(false));
            stage.one.reset_counts();
            end(&stage.one);
            let answer = stage.ask(&chat(round == 1));
            assert_whole(&answer, &chat(round == 1));
            assert_eq!(answer.number("x-koboshi-attempts"), Some(1), "{speaks:?} {round}: {answer:?}");
            assert_eq!(stage.calls(), (1, 0), "{speaks:?} {round}");
            let sends = (round > 0).then_some(2);
            assert_eq!(answer.number("x-koboshi-sends"), sends, "{speaks:?} {round}: {answer:?}");
        }
    }
}

/// A stream that has begun, and what its client has of it.
fn begun(stage: &Stage) -> (Client, Answer) {
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    let mut answer = client.head().unwrap();
    while !String::from_utf8_lossy(&answer.body).contains("\"content\":\"") {
        let piece = client.piece(&answer).unwrap().unwrap();
        answer.body.extend(piece);
    }
    (client, answer)
}

fn to_the_end((mut client, mut answer): (Client, Answer)) -> Answer {
    while let Some(piece) = client.piece(&answer).unwrap() {
        answer.body.extend(piece);
    }
    answer
}

#[test]
fn a_server_that_takes_its_leave_lets_streams_end_and_gets_no_new_ones() {
    let stage = secure(Protocol::Http2, &["one/ok?gap=10ms", "two/ok"], |_| {});
    let stream = begun(&stage);
    stage.one.go_away();
    assert_whole(&to_the_end(stream), &chat(true));
    assert_eq!(stage.calls(), (1, 0));
    until("a new connection", || {
        assert_whole(&stage.ask(&chat(false)), &chat(false));
        (connections(&stage.one) == [0, 1]).then_some(())
    });
    assert_eq!(stage.two.all_calls(), 0);
}

#[test]
fn a_server_that_leaves_in_the_middle_of_an_answer_is_made_good() {
    let stage = secure(Protocol::Http2, &["one/ok?gap=20ms", "two/ok"], |_| {});
    let streams = [begun(&stage), begun(&stage), begun(&stage)];
    stage.one.go_away_at_once();
    for stream in streams {
        assert_whole(&to_the_end(stream), &chat(true));
    }
    let (one, two) = stage.calls();
    assert!(one + two > 3, "another target had to continue: {one}, {two}");
    let entry = stage.journal("the fault", |entry| entry.what == EntryKind::Fault);
    assert_eq!(entry.kind.as_deref(), Some("connection_closed"), "{entry:?}");
}
