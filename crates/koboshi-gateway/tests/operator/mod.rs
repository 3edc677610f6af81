//! A gateway on a free port, and a client that speaks to it over a real socket: for the tests of what operators see.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi_config::Config;
use koboshi_config::gateway::LogFormat;
use koboshi_gateway::{Gateway, Setup};
use koboshi_store::MemoryStore;
use koboshi_testkit::DEADLINE;
use serde_json::{Value, json};

/// A config from the text of a file.
pub(crate) fn config(yaml: &str) -> Config {
    let mut config =
        koboshi_config::load("koboshi.yaml", yaml, &|_| Some("sk-secret-0123456789".to_owned())).unwrap();
    config.serve.listen.set_port(0);
    config.serve.threads = Some(1);
    config
}

/// A gateway with what it remembers in memory.
pub(crate) fn start(config: Config) -> Gateway {
    Gateway::start(Setup {
        config,
        store: Arc::new(MemoryStore::default()),
        node: "operator-test".parse().unwrap(),
        lookup: Arc::new(|_| None),
        zones: TimeZoneDatabase::none(),
        zone: TimeZone::UTC,
        log: None,
        log_format: LogFormat::Json,
        seed: 7,
        demo: false,
        operator: koboshi_gateway::Operator::default(),
    })
    .unwrap()
}

/// Where a client of this machine finds it.
pub(crate) fn address(gateway: &Gateway) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], gateway.address().port()))
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Sends a request and reads the whole answer.
pub(crate) fn ask(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Answer {
    let mut reader = send(at, method, path, headers, body);
    let (status, head) = read_head(&mut reader);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked { dechunk(&bytes) } else { bytes };
    Answer { status, head, body: String::from_utf8(body).unwrap() }
}

/// Sends a request; what comes back is read by the caller.
pub(crate) fn send(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body.unwrap_or_default());
    (&stream).write_all(text.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads up to the empty line.
pub(crate) fn read_head(reader: &mut BufReader<TcpStream>) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "no head: {head}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.replace("\r\n", "\n").to_ascii_lowercase())
}

fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a length");
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) fn get(at: SocketAddr, path: &str) -> Answer {
    ask(at, "GET", path, &[], None)
}

pub(crate) fn post(at: SocketAddr, path: &str, body: &Value) -> Answer {
    ask(at, "POST", path, &[JSON], Some(&body.to_string()))
}

/// A chat request that is not streamed.
pub(crate) fn chat(at: SocketAddr, model: &str) -> Answer {
    chat_with(at, model, &[])
}

pub(crate) fn chat_with(at: SocketAddr, model: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
    let headers: Vec<_> = std::iter::once(JSON).chain(headers.iter().copied()).collect();
    ask(at, "POST", "/v1/chat/completions", &headers, Some(&body.to_string()))
}
