//! A provider that answers with whatever bytes the test says: heads that are wrong, two answers at once, nothing at all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What is sent for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawReply {
    /// These bytes; the connection stays open.
    Keep(String),
    /// These bytes, and the connection is closed.
    Close(String),
    /// The first bytes once, then the second ones again and again for as long as the client reads them.
    Endless(String, String),
}

type Script = dyn Fn(usize) -> RawReply + Send + Sync;

/// A provider on a free port of this machine. Its threads end with the test's process.
#[derive(Debug)]
pub struct RawUpstream {
    port: u16,
    asked: Arc<Mutex<Vec<u64>>>,
    left: Arc<AtomicU64>,
}

impl RawUpstream {
    /// A provider that answers with this function; its argument is the number of earlier requests.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start(script: impl Fn(usize) -> RawReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
        let (kept, gone, script): (_, _, Arc<Script>) =
            (Arc::clone(&asked), Arc::clone(&left), Arc::new(script));
        let connections = AtomicU64::new(0);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, gone, script) = (Arc::clone(&kept), Arc::clone(&gone), Arc::clone(&script));
                let connection = connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || serve(&stream, connection, &kept, &gone, &*script));
            }
        });
        Self { port, asked, left }
    }

    /// Its base address, `http://127.0.0.1:…/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// How many clients have left an endless answer.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::SeqCst)
    }

    /// The connections that its requests came on, in order: the first one has 0.
    ///
    /// # Panics
    /// One of its threads has died.
    #[must_use]
    pub fn asked(&self) -> Vec<u64> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, connection: u64, asked: &Mutex<Vec<u64>>, left: &AtomicU64, script: &Script) {
    let mut lines = BufReader::new(stream);
    while read_request(&mut lines).is_some() {
        let before = {
            let mut asked = asked.lock().unwrap();
            asked.push(connection);
            asked.len() - 1
        };
        let mut out = stream;
        let (bytes, closes) = match script(before) {
            RawReply::Keep(bytes) => (bytes, false),
            RawReply::Close(bytes) => (bytes, true),
            RawReply::Endless(first, again) => {
                let mut taken = out.write_all(first.as_bytes());
                while taken.is_ok() {
                    taken = out.write_all(again.as_bytes());
                }
                left.fetch_add(1, Ordering::SeqCst);
                return;
            }
        };
        if out.write_all(bytes.as_bytes()).is_err() || closes {
            return;
        }
    }
}

/// Reads a request to its end; nothing if the client is gone.
fn read_request(lines: &mut BufReader<&TcpStream>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    lines.read_exact(&mut vec![0; length]).ok()
}
