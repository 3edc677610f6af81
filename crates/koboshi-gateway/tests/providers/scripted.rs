//! A server that answers as the test says, whatever the path, and remembers what it was asked. A text is sent as a stream of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// With the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn bearer(&self) -> &str {
        self.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }
}

type Script = dyn Fn(&ReceivedRequest, usize) -> (u16, Value) + Send + Sync;

/// A server on a free port of this machine. Its threads end with the test's process.
pub(crate) struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    /// One that answers so; the number is how often it was asked before.
    pub(crate) fn start(
        script: impl Fn(&ReceivedRequest, usize) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (Arc::clone(&asked), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || serve(&stream, &kept, &*script));
            }
        });
        Self { port, asked }
    }

    /// One that refuses every request as wrong, so that it is not asked again.
    pub(crate) fn refusing() -> Self {
        Self::start(|_, _| (400, json!({"error": {"message": "no", "type": "invalid_request_error"}})))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// The bearers that came, in order.
    pub(crate) fn bearers(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.bearer().to_owned()).collect()
    }
}

fn serve(stream: &TcpStream, kept: &Mutex<Vec<ReceivedRequest>>, script: &Script) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match lines.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => head.push(line.trim_end().to_owned()),
            }
        }
        let path = head.first().and_then(|first| first.split(' ').nth(1)).unwrap_or_default().to_owned();
        let headers: Vec<(String, String)> = head
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut asked = ReceivedRequest { path, headers, body: String::new() };
        let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        asked.body = String::from_utf8(body).unwrap();
        let before = {
            let mut kept = kept.lock().unwrap();
            kept.push(asked.clone());
            kept.len() - 1
        };
        let (status, answer) = script(&asked, before);
        let (content, answer) = match answer {
            Value::String(events) => ("text/event-stream", events),
            json => ("application/json", json.to_string()),
        };
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let mut out = stream;
        if out.write_all(format!("{head}{answer}").as_bytes()).is_err() {
            return;
        }
    }
}
