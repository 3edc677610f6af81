//! Whom to ask, and the bytes of each request.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::events::Dialect;

/// Whom to ask what.
#[derive(Args)]
pub(crate) struct Target {
    /// Such as `http://127.0.0.1:4141/v1/chat/completions`.
    #[arg(long)]
    url: String,
    /// The client's key.
    #[arg(long, default_value = "sk-bench")]
    key: String,
    /// The body of each request; `{i}` in it is the request's number.
    #[arg(long)]
    body: String,
    /// The dialect of the answers.
    #[arg(long, value_enum, default_value_t = Dialect::Chat)]
    dialect: Dialect,
    /// A header such as `name: value`.
    #[arg(long = "header")]
    headers: Vec<String>,
    /// The answers are streams.
    #[arg(long)]
    stream: bool,
    /// An answer of this many pieces is the whole one.
    #[arg(long, default_value_t = koboshi_bench::answer::USUAL)]
    pieces: usize,
    /// Seconds until a request is given up.
    #[arg(long, default_value_t = 60.0)]
    timeout: f64,
}

/// Makes requests.
pub(crate) struct Asks {
    /// Where to connect.
    pub(crate) address: SocketAddr,
    /// Answers are streams.
    pub(crate) stream: bool,
    /// How they are written.
    pub(crate) dialect: Dialect,
    /// The text of a whole answer.
    pub(crate) text: String,
    /// When a request is given up.
    pub(crate) timeout: Duration,
    head: String,
    body: String,
}

impl Target {
    /// Reads the address; names of hosts are not looked up.
    pub(crate) fn asks(self) -> io::Result<Asks> {
        let bad = || {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{:?}: want http://IP:PORT/PATH", self.url))
        };
        let rest = self.url.strip_prefix("http://").ok_or_else(bad)?;
        let (host, path) = rest.split_once('/').ok_or_else(bad)?;
        let address = host.parse().map_err(|_| bad())?;
        let mut head = format!(
            "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\n",
            self.key
        );
        for header in &self.headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        Ok(Asks {
            address,
            stream: self.stream,
            dialect: self.dialect,
            text: koboshi_bench::answer::text(self.pieces),
            timeout: Duration::from_secs_f64(self.timeout),
            head,
            body: self.body,
        })
    }
}

impl Asks {
    /// The request with this number.
    pub(crate) fn numbered(&self, number: usize) -> Vec<u8> {
        let number = number.to_string();
        let body = self.body.replace("{i}", &number);
        let head = self.head.replace("{i}", &number);
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }
}
