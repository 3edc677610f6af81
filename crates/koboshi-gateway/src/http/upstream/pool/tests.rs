use std::sync::Arc;

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;
use koboshi_testkit::{Authority, Protocol, Upstream};

use super::*;
use crate::http::upstream::sends::Sends;
use crate::http::upstream::trust::Trust;

const UNASKED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nunasked!";
/// What a server sends before it closes a connection that was idle for too long.
const FAREWELL: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

fn pool() -> Rc<Pool> {
    Pool::new(Connector::new(None, Arc::new(Matcher::builder().build())))
}

/// A provider without TLS, and one with TLS.
fn upstreams() -> [(Upstream, Origin); 2] {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let trust = Trust::read(&authority.write_to(folder.path())).unwrap();
    let (plain, secure) = (Upstream::start(), Upstream::start_secure(&authority, Protocol::Http1));
    let [at_plain, at_secure] = [&plain, &secure].map(|upstream| Origin::parse(&upstream.url()).unwrap());
    [(plain, at_plain), (secure, at_secure.trusting(trust))]
}

/// Sends a request and reads the whole answer.
async fn ask(pool: &Rc<Pool>, origin: &Origin) -> String {
    let body = Bytes::from(r#"{"model": "ok", "messages": [{"role": "user", "content": "hello"}]}"#);
    let path = origin.path("/chat/completions").unwrap();
    let connect_limit = Duration::from_secs(10);
    let sends = Sends::default();
    let ask = ServerRequest {
        origin,
        path: &path,
        headers: &|_| {},
        body: &body,
        connect_limit,
        began: Instant::now(),
        sends: &sends,
        on_resend: &|| {},
    };
    let mut answer = pool.send(&ask).await.unwrap();
    let mut text = Vec::new();
    while let Some(block) = answer.body.next().await {
        text.extend_from_slice(&block.unwrap());
    }
    String::from_utf8(text).unwrap()
}

/// The test's thread blocks while the provider sends, so the runtime has not noticed it, as on a busy core.
#[tokio::test(flavor = "current_thread")]
async fn bytes_that_lie_unread_on_an_idle_connection_never_become_an_answer() {
    for (upstream, origin) in upstreams() {
        let pool = pool();
        let first = ask(&pool, &origin).await;
        upstream.send_unsolicited(UNASKED);
        let second = ask(&pool, &origin).await;
        assert!(
            first.contains("chat.completion") && second.contains("chat.completion"),
            "{origin}: {second}"
        );
    }
}

/// Checks the idle connections; returns how many are kept, and whether another one would be.
fn last_sweep(pool: &Pool, origin: &Origin) -> (usize, bool) {
    let mut hosts = pool.hosts.borrow_mut();
    let host = hosts.of(origin).unwrap();
    host.sweep();
    (host.idle.len(), host.may_keep(Instant::now()))
}

#[tokio::test(flavor = "current_thread")]
async fn a_provider_that_sends_unsolicited_bytes_loses_its_idle_connections() {
    for (upstream, origin) in upstreams() {
        let pool = pool();
        ask(&pool, &origin).await;
        assert_eq!(last_sweep(&pool, &origin), (1, true), "{origin}: it is quiet");
        upstream.send_unsolicited(FAREWELL);
        assert_eq!(last_sweep(&pool, &origin), (0, true), "{origin}: it only takes its leave");
        ask(&pool, &origin).await;
        upstream.send_unsolicited(UNASKED);
        assert_eq!(last_sweep(&pool, &origin), (0, false), "{origin}");
        ask(&pool, &origin).await;
        assert_eq!(last_sweep(&pool, &origin), (0, false), "{origin}: the next one is not kept");
    }
}
