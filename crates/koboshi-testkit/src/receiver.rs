//! A web server that takes webhooks: it keeps what it got, and answers, fails, redirects or falls silent as the test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// What a webhook gets for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// This status.
    Status(u16),
    /// A redirect to this address.
    Redirect(String),
    /// No answer; the connection stays open.
    Hang,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Delivery {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// It is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The notices in it, as `subject stage`.
    ///
    /// # Panics
    /// It is no notice.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let all = self.json()["notices"].as_array().unwrap().clone();
        let name =
            |one: &Value| format!("{} {}", one["subject"].as_str().unwrap(), one["stage"].as_str().unwrap());
        all.iter().map(name).collect()
    }
}

type Script = dyn Fn(usize) -> Reception + Send + Sync;

/// A receiver on a free port of this machine. Its threads end with the test's process.
#[derive(Debug, Clone)]
pub struct Receiver {
    port: u16,
    got: Arc<Mutex<Vec<Delivery>>>,
}

impl Receiver {
    /// A receiver that answers with this function; its argument is the number of earlier requests.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start(script: impl Fn(usize) -> Reception + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (Arc::clone(&got), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || serve(&stream, &kept, &*script));
            }
        });
        Self { port, got }
    }

    /// One that takes everything.
    #[must_use]
    pub fn good() -> Self {
        Self::start(|_| Reception::Status(204))
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook/of-a-secret-name", self.port)
    }

    /// What came, in order.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All notices that came, as `subject stage`.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.deliveries().iter().flat_map(Delivery::notices).collect()
    }
}

fn serve(stream: &TcpStream, got: &Mutex<Vec<Delivery>>, script: &Script) {
    let mut lines = BufReader::new(stream);
    while let Some(delivery) = read(&mut lines) {
        let before = {
            let mut got = got.lock().unwrap_or_else(PoisonError::into_inner);
            got.push(delivery);
            got.len() - 1
        };
        let mut out = stream;
        let answer = match script(before) {
            Reception::Status(status) => format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n"),
            Reception::Redirect(to) => {
                format!("HTTP/1.1 307 Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
            }
            Reception::Hang => continue,
        };
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(lines: &mut BufReader<&TcpStream>) -> Option<Delivery> {
    let mut line = String::new();
    lines.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse());
    let mut body = vec![0; length.and_then(Result::ok).unwrap_or(0)];
    lines.read_exact(&mut body).ok()?;
    Some(Delivery { headers, body })
}
