//! Our reader of HTTP/1 requests beside hyper's, on mutated requests: whenever ours takes a request, hyper takes the same one, with the same
//! method, path, headers and body, and finds the same request behind it. A proxy in front of us may read as hyper does; a request
//! that we take and it reads otherwise is how one is smuggled. Ours may be stricter, never laxer.
//!
//! Where ours is stricter by intention:
//! - a CR or an LF alone ends no line;
//! - a length beside chunks is refused, where hyper lets the chunks count;
//! - `chunked` is the one transfer-encoding, and it is said once;
//! - heads and trailers have smaller limits.
//!
//! What is not compared, because both mean the same by it:
//! - a length that is said twice with the same value is one header to hyper and two to us;
//! - `*` and a bare authority are the root to us (`/`), and have no path of that kind in hyper;
//! - trailers: we pass over them once they are found to be well-formed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use koboshi_wire::http1::chunks::Chunks;
use koboshi_wire::http1::head::{Head, RequestBody};
use proptest::prelude::*;

/// A request, as one of the two has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedHead {
    method: String,
    path: String,
    query: String,
    version: Version,
    headers: Vec<(String, String)>,
    body: String,
}

/// Names and values.
type Headers<'h> = Vec<(&'h str, &'h [u8])>;

impl ParsedHead {
    fn new(
        method: &str,
        (path, query): (&str, &str),
        version: Version,
        headers: Headers<'_>,
        body: &[u8],
    ) -> Self {
        let readable = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let mut headers: Vec<_> =
            headers.into_iter().map(|(name, value)| (name.to_owned(), readable(value))).collect();
        // Lines of one name keep their order; that of the names says nothing.
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        headers.dedup_by(|one, other| one.0 == "content-length" && one.0 == other.0);
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            version,
            headers,
            body: readable(body),
        }
    }
}

/// What our reader takes of these bytes, up to the first thing that it refuses or that is not whole.
fn ours(mut bytes: &[u8]) -> Vec<ParsedHead> {
    let mut all = Vec::new();
    while let Ok(Some((head, length))) = Head::parse(bytes) {
        bytes = bytes.get(length..).unwrap_or_default();
        let Some((body, rest)) = body_of(head.coming, bytes) else { break };
        bytes = rest;
        let headers = head.fields.every().collect();
        all.push(ParsedHead::new(
            head.method.as_str(),
            (head.path(), head.query()),
            head.version,
            headers,
            &body,
        ));
        if !head.stays {
            break;
        }
    }
    all
}

fn body_of(coming: RequestBody, bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    match coming {
        RequestBody::Nothing => Some((Vec::new(), bytes)),
        RequestBody::Length(length) => {
            let (body, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            Some((body.to_vec(), rest))
        }
        RequestBody::Chunked => {
            let (mut chunks, mut body) = (Chunks::default(), BytesMut::new());
            let taken = chunks.take(bytes, &mut body, usize::MAX).ok()?;
            chunks.is_done().then(|| (body.to_vec(), bytes.get(taken..).unwrap_or_default()))
        }
        RequestBody::Abandoned => None,
    }
}

/// What hyper takes of them.
fn hypers(bytes: &[u8]) -> Vec<ParsedHead> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    let service = service_fn(move |request: Request<Incoming>| {
        let seen = Rc::clone(&noted);
        async move {
            if let Some(request) = read(request).await {
                seen.borrow_mut().push(request);
            }
            let mut answer = Response::new(Empty::<Bytes>::new());
            // Not 200: that would make a tunnel of CONNECT, and nothing behind it a request.
            *answer.status_mut() = StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(answer)
        }
    });
    let line = Line(Bytes::copy_from_slice(bytes));
    let connection =
        http1::Builder::new().max_headers(200).header_read_timeout(None).serve_connection(line, service);
    until_it_waits(connection);
    seen.take()
}

async fn read(request: Request<Incoming>) -> Option<ParsedHead> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.ok()?.to_bytes().to_vec();
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let path = if matches!(path, "" | "*") { "/" } else { path };
    let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    Some(ParsedHead::new(head.method.as_str(), (path, query), head.version, headers, &body))
}

/// A connection on which these bytes came, and then nothing more. What is written to it is forgotten.
struct Line(Bytes);

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let length = self.0.len().min(into.remaining());
        into.put_slice(&self.0.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl Write for Line {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Whether the waker was called.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Moves a future along until it ends or waits for what never comes.
fn until_it_waits(future: impl Future) {
    let mut future = pin!(future);
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    while woken.0.swap(false, Ordering::Relaxed) {
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return;
        }
    }
}

const SEEDS: &[&str] = &[
    "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /v1/models?limit=5&after=x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: a:1\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"a\"}GET /next HTTP/1.1\r\nHost: b\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nTrailer: T\r\n\r\n1 ;a=\"b\"\r\nx\r\n000\r\nT: 1\r\nU: 2\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhelloGET /next HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!GET /smuggled HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\nhello",
    "POST / HTTP/1.1\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /next HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\nGET /next HTTP/1.0\r\n\r\n",
    "GET http://a.b:1/path?q HTTP/1.1\r\nHost: a.b\r\n\r\nOPTIONS * HTTP/1.1\r\n\r\n",
    "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhiGET /next HTTP/1.1\r\n\r\n",
    "\r\n\r\nGET /%7Ea/\u{e9}#f HTTP/1.1\r\nx-odd: \u{e9}\u{7f}\r\nx-empty:\r\nx-spaces: \t a \t \r\n\r\n",
    "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nx: a\r\n folded\r\n\r\n",
    "PATCH /a//b/../c;d=e?f=g?h HTTP/1.1\r\nConnection: foo, Close\r\n\r\n",
];

/// What requests are made of, and what makes them odd.
const PIECES: &[&[u8]] = &[
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b":", b";", b",", b"\0", b"\x0b", b"\x7f", b"\xff",
    b"/", b"?", b"#", b"*", b"\"", b"<", b"\\", b"^", b"`", b"{", b"|", b"%", b"@", b"[", b"0", b"5", b"f",
    b"+", b"-", b"0x", b"0\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n", b"5 5\r\nhello\r\n", b"5;\r\nhello\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"content-length:5\r\n", b"Content-Length : 5\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\r\n",
    b"transfer-encoding:\tchunked\r\n", b"Transfer-Encoding: \"chunked\"\r\n", b"chunked", b"close",
    b"keep-alive", b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"X: y\r\n", b" folded\r\n",
    b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"GET", b"GET /next HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"http://", b"//a",
];

/// A change at a place, which is a share of the length.
#[derive(Debug, Clone)]
enum Change {
    Insert(&'static [u8]),
    Replace(u8),
    Remove(usize),
    Repeat(usize),
}

fn change() -> impl Strategy<Value = (usize, Change)> {
    let change = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(Change::Insert),
        2 => any::<u8>().prop_map(Change::Replace),
        2 => (1_usize..12).prop_map(Change::Remove),
        1 => (1_usize..40).prop_map(Change::Repeat),
    ];
    (any::<usize>(), change)
}

fn changed(seed: &str, changes: &[(usize, Change)]) -> Vec<u8> {
    let mut bytes = seed.as_bytes().to_vec();
    for (place, change) in changes {
        let at = place % (bytes.len() + 1);
        let until = |length: &usize| (at + length).min(bytes.len());
        match change {
            Change::Insert(piece) => drop(bytes.splice(at..at, piece.iter().copied())),
            Change::Replace(byte) => drop(bytes.splice(at..until(&1), [*byte])),
            Change::Remove(length) => drop(bytes.drain(at..until(length))),
            Change::Repeat(length) => {
                let again = bytes.get(at..until(length)).unwrap_or_default().to_vec();
                drop(bytes.splice(at..at, again));
            }
        }
    }
    bytes
}

/// Every request that we take, hyper takes as the same.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (ours, hypers) = (ours(bytes), hypers(bytes));
    prop_assert!(
        hypers.starts_with(&ours),
        "{}\nours: {ours:#?}\nhyper's: {hypers:#?}",
        bytes.escape_ascii()
    );
    Ok(())
}

#[test]
fn both_read_the_seeds_alike() {
    let mut both = 0;
    for seed in SEEDS {
        agree(seed.as_bytes()).unwrap();
        both += ours(seed.as_bytes()).len();
    }
    // Otherwise the test would compare nothing.
    assert!(both > 15, "{both}");
}

/// The number of cases, or that of the environment variable.
fn cases(count: u32) -> ProptestConfig {
    let told = std::env::var("KOBOSHI_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: told.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn what_we_take_hyper_takes_as_the_same_request(
        seed in prop::sample::select(SEEDS),
        changes in prop::collection::vec(change(), 1..5),
    ) {
        agree(&changed(seed, &changes))?;
    }
}
