//! A client of sessions: it keeps a transcript as every reader does, and its cursor, so that it can come back.

use std::io::ErrorKind::Interrupted;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use koboshi::session::{FrameResult, Transcript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::wait::DEADLINE;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// The server closed it with this code.
    Closed(u16),
    /// It was cut.
    Cut,
    /// The handshake was refused with this status.
    Refused(u16),
}

/// A client of sessions.
pub struct SessionClient {
    address: SocketAddr,
    socket: WebSocket<TcpStream>,
    /// What it shows.
    pub transcript: Transcript,
    /// Every frame that came, in order.
    pub frames: Vec<Value>,
    /// Its session and its token.
    pub session: String,
    /// The token with which it comes back.
    pub resume: String,
    tab: String,
    hello: Value,
}

impl SessionClient {
    /// A connection without a first frame, with more headers.
    ///
    /// # Errors
    /// The handshake was refused with this status.
    pub fn dial(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, SessionEnd> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
        );
        if stream.write_all(request.as_bytes()).is_err() {
            return Err(SessionEnd::Cut);
        }
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_err() {
                return Err(SessionEnd::Cut);
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 101 {
            return Err(SessionEnd::Refused(status));
        }
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        Ok(Self {
            address,
            socket: WebSocket::from_raw_socket(stream, Role::Client, None),
            transcript: Transcript::default(),
            frames: Vec::new(),
            session: String::new(),
            resume: String::new(),
            tab: String::new(),
            hello: Value::Null,
        })
    }

    /// A connection of this tab with a new session.
    #[must_use]
    pub fn begin(address: SocketAddr, tab: &str) -> Self {
        Self::begin_with(address, tab, json!({}))
    }

    /// The same with more in its `hello`.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "callers write the fields in place")]
    pub fn begin_with(address: SocketAddr, tab: &str, more: Value) -> Self {
        Self::try_begin(address, tab, &more).unwrap_or_else(|end| panic!("no session: {end:?}"))
    }

    /// The same where the connection may be cut before the session is there.
    ///
    /// # Errors
    /// How it ended.
    pub fn try_begin(address: SocketAddr, tab: &str, more: &Value) -> Result<Self, SessionEnd> {
        let protocol = [("sec-websocket-protocol", "koboshi.v1")];
        let mut client = Self::dial(address, "/v1/session", &protocol)?;
        let mut hello = json!({"type": "hello", "v": 1, "client": tab, "can": ["rewind", "tools"]});
        hello.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (client.tab, client.hello) = (tab.to_owned(), hello.clone());
        client.send(&hello);
        loop {
            let frame = client.next()?;
            if frame["type"] == "session" {
                client.greeted_by(&frame);
                return Ok(client);
            }
        }
    }

    /// Waits for `session`.
    pub fn greeted(&mut self) {
        let frame = self.until("session", |frame| frame["type"] == "session");
        self.greeted_by(&frame);
    }

    fn greeted_by(&mut self, frame: &Value) {
        self.session = frame["session"].as_str().unwrap().to_owned();
        self.resume = frame["resume"].as_str().unwrap().to_owned();
    }

    /// Another tab of the same session.
    #[must_use]
    pub fn tab(&self, tab: &str) -> Self {
        Self::begin_with(self.address, tab, json!({"session": self.session, "resume": self.resume}))
    }

    /// The `hello` with which this client comes back.
    #[must_use]
    pub fn hello_again(&self) -> Value {
        let mut hello = self.hello.clone();
        let fields = json!({
            "session": self.session, "resume": self.resume, "epoch": self.transcript.epoch,
            "after": self.transcript.seq,
        });
        hello.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        hello
    }

    /// Drops the connection without a word and comes back with its cursor, at this address.
    pub fn come_back_at(&mut self, address: SocketAddr) {
        let protocol = [("sec-websocket-protocol", "koboshi.v1")];
        let next = Self::dial(address, "/v1/session", &protocol).unwrap();
        (self.socket, self.address) = (next.socket, address);
        let hello = self.hello_again();
        self.send(&hello);
        self.greeted();
    }

    /// The same at the same address.
    pub fn come_back(&mut self) {
        self.come_back_at(self.address);
    }

    /// Leaves so much room for what comes and is not read: where it is little, the server feels at once that it is not.
    ///
    /// # Panics
    /// The socket is gone.
    pub fn room(&self, bytes: usize) {
        rustix::net::sockopt::set_socket_recv_buffer_size(self.socket.get_ref(), bytes).unwrap();
    }

    /// Cuts the connection without a word.
    pub fn cut(&mut self) {
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Both);
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string());
    }

    /// Sends any text.
    pub fn send_text(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text));
    }

    /// Sends any message.
    pub fn send_message(&mut self, message: Message) {
        let _ = self.socket.send(message);
    }

    /// Says something.
    pub fn chat(&mut self, id: &str, content: &str) {
        self.send(&json!({"type": "chat", "id": id, "content": content}));
    }

    /// The next frame; it is applied to the transcript.
    ///
    /// # Errors
    /// The connection is over.
    #[allow(clippy::should_implement_trait, reason = "a session is no iterator: it ends with a reason")]
    pub fn next(&mut self) -> Result<Value, SessionEnd> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    self.frames.push(frame.clone());
                    let applied = self.transcript.apply_frame(&frame);
                    assert_ne!(applied, FrameResult::Gap, "{frame} does not follow {:?}", self.transcript);
                    return Ok(frame);
                }
                Ok(Message::Close(Some(close))) => {
                    assert_eq!(close.reason.as_str(), "", "a close says a number and nothing else");
                    return Err(SessionEnd::Closed(close.code.into()));
                }
                Ok(_) => {}
                // A signal, such as that of a server that was stopped or has ended, cuts no connection.
                Err(tokio_tungstenite::tungstenite::Error::Io(error)) if error.kind() == Interrupted => {}
                Err(error) => {
                    assert!(!is_timeout(&error), "no frame within {DEADLINE:?}: {:#?}", self.frames);
                    // A test that expected no cut shows why there was one.
                    #[allow(clippy::print_stderr, reason = "the output of a test")]
                    {
                        eprintln!("the connection of {} was cut: {error:?}", self.tab);
                    }
                    return Err(SessionEnd::Cut);
                }
            }
        }
    }

    /// The next frame like this.
    pub fn until(&mut self, what: &str, like: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().unwrap_or_else(|end| panic!("{what}: {end:?}: {:#?}", self.frames));
            if like(&frame) {
                return frame;
            }
        }
    }

    /// The next frame of this type.
    pub fn next_of(&mut self, kind: &str) -> Value {
        self.until(kind, |frame| frame["type"] == kind)
    }

    /// Reads until the turn has ended, and gives the answer's text.
    pub fn answer(&mut self) -> String {
        let done = self.next_of("done");
        let message = self.transcript.messages.iter().find(|message| done["message"] == message.id.as_str());
        message.and_then(|message| message.content.as_str()).unwrap_or_default().to_owned()
    }

    /// Reads until the connection is over.
    pub fn end(&mut self) -> SessionEnd {
        loop {
            if let Err(end) = self.next() {
                return end;
            }
        }
    }

    /// How many frames of this type have come.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.frames.iter().filter(|frame| frame["type"] == kind).count()
    }
}

fn is_timeout(error: &tokio_tungstenite::tungstenite::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error, tokio_tungstenite::tungstenite::Error::Io(error) if matches!(error.kind(), TimedOut | WouldBlock))
}
