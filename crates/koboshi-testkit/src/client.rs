//! A small HTTP/1.1 client over one socket: reads whole answers, streams frame by frame, and says how an answer ended.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use crate::wait::DEADLINE;

/// A client with one connection.
#[derive(Debug)]
pub struct Client {
    /// The socket, for what no client should do.
    pub stream: TcpStream,
    held: Vec<u8>,
}

/// An answer, as far as it came.
#[derive(Clone)]
pub struct Answer {
    /// 0 if no head came.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Without its framing.
    pub body: Vec<u8>,
    /// Why it ended too early, if it did.
    pub broken: Option<ErrorKind>,
}

impl Client {
    /// A connection to a server that must be there.
    pub fn to(address: SocketAddr) -> Self {
        Self::try_to(address).unwrap()
    }

    /// A connection, if a server listens.
    ///
    /// # Errors
    /// No server listens.
    pub fn try_to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, held: Vec::new() })
    }

    /// Sends a request whole, to a server that must be there.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        self.try_send(method, path, headers, body).unwrap();
    }

    /// Sends a request whole, if the server reads it.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !has("host") {
            head.push_str("host: localhost\r\n");
        }
        if !body.is_empty() && !has("content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut all = head.into_bytes();
        all.extend_from_slice(body);
        self.stream.write_all(&all)
    }

    /// Reads an answer to its end. An answer whose head does not come has status 0.
    pub fn read(&mut self) -> Answer {
        let mut answer = match self.head() {
            Ok(answer) => answer,
            Err(broken) => {
                return Answer { status: 0, headers: Vec::new(), body: Vec::new(), broken: Some(broken) };
            }
        };
        loop {
            match self.piece(&answer) {
                Ok(Some(piece)) => answer.body.extend(piece),
                Ok(None) => return answer,
                Err(broken) => {
                    answer.broken = Some(broken);
                    return answer;
                }
            }
            if answer.header("content-length").is_some() {
                return answer;
            }
        }
    }

    /// The head alone; informational (1xx) heads are skipped, as every client must.
    pub fn head(&mut self) -> Result<Answer, ErrorKind> {
        loop {
            let head = self.any_head()?;
            if !(100..200).contains(&head.status) {
                return Ok(head);
            }
        }
    }

    fn any_head(&mut self) -> Result<Answer, ErrorKind> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new(), broken: None })
    }

    /// The next piece of a body: a chunk, or all of it where its length is known. None at the end.
    pub fn piece(&mut self, head: &Answer) -> Result<Option<Vec<u8>>, ErrorKind> {
        if let Some(length) = head.header("content-length") {
            return self.exactly(length.parse().unwrap()).map(Some);
        }
        if head.header("transfer-encoding").is_none() {
            return Ok(None);
        }
        let size = usize::from_str_radix(&self.line()?, 16).map_err(|_| ErrorKind::InvalidData)?;
        let piece = self.exactly(size)?;
        self.exactly(2)?;
        Ok((size > 0).then_some(piece))
    }

    /// Closes the sending side.
    pub fn close_writing(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn fill(&mut self) -> Result<(), ErrorKind> {
        let mut block = [0; 16 * 1024];
        match self.stream.read(&mut block) {
            Ok(0) => Err(ErrorKind::UnexpectedEof),
            Ok(count) => {
                self.held.extend_from_slice(&block[..count]);
                Ok(())
            }
            Err(error) => Err(error.kind()),
        }
    }

    fn line(&mut self) -> Result<String, ErrorKind> {
        loop {
            if let Some(at) = self.held.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.held.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, ErrorKind> {
        while self.held.len() < length {
            self.fill()?;
        }
        Ok(self.held.drain(..length).collect())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (broken: {:?})", self.status, self.broken)?;
        for (name, value) in &self.headers {
            write!(formatter, "\n  {name}: {value}")?;
        }
        write!(formatter, "\n{}", String::from_utf8_lossy(&self.body))
    }
}

impl Answer {
    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Whether it is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The data of the events of a stream, in order; comments are left out.
    pub fn events(&self) -> Vec<String> {
        let text = self.text();
        let events = text.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
        events.map(|event| event.strip_prefix("data: ").unwrap_or(event).to_owned()).collect()
    }

    /// The chunks of a stream without the terminal mark.
    pub fn chunks(&self) -> Vec<Value> {
        let events = self.events();
        let chunks = events.iter().filter(|data| *data != "[DONE]");
        chunks.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}"))).collect()
    }

    /// How many comments a stream had.
    pub fn comments(&self) -> usize {
        self.text().split("\n\n").filter(|event| event.starts_with(':')).count()
    }

    /// The error object, of an answer or inside a stream.
    pub fn error(&self) -> Option<Value> {
        if self.is_stream() {
            return self.chunks().into_iter().find_map(|chunk| chunk.get("error").cloned());
        }
        self.json().get("error").cloned()
    }

    /// The visible text of the first choice.
    pub fn content(&self) -> String {
        if !self.is_stream() {
            return self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
        }
        let chunks = self.chunks();
        let pieces = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
        pieces.collect()
    }

    /// Tool calls of the first choice: name and arguments.
    pub fn calls(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut calls: Vec<(String, String)> = Vec::new();
        if !self.is_stream() {
            let whole = self.json();
            for call in whole["choices"][0]["message"]["tool_calls"].as_array().into_iter().flatten() {
                calls.push((text(&call["function"]["name"]), text(&call["function"]["arguments"])));
            }
            return calls;
        }
        for chunk in self.chunks() {
            for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                assert!(index <= calls.len(), "calls come in order: {chunk}");
                if index == calls.len() {
                    calls.push((String::new(), String::new()));
                }
                calls[index].0.push_str(&text(&call["function"]["name"]));
                calls[index].1.push_str(&text(&call["function"]["arguments"]));
            }
        }
        calls
    }

    /// Why the first choice ended.
    pub fn finish(&self) -> Option<String> {
        if !self.is_stream() {
            return self.json()["choices"][0]["finish_reason"].as_str().map(str::to_owned);
        }
        let chunks = self.chunks();
        let reasons: Vec<_> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
        assert!(reasons.len() <= 1, "an answer ends once: {reasons:?}");
        reasons.first().map(|reason| (*reason).to_owned())
    }

    /// The usage at the end of a stream, or of a whole answer.
    pub fn usage(&self) -> Option<Value> {
        let usage = |value: &Value| value.get("usage").filter(|usage| usage.is_object()).cloned();
        if !self.is_stream() {
            return usage(&self.json());
        }
        let all: Vec<_> = self.chunks().iter().filter_map(usage).collect();
        assert!(all.len() <= 1, "usage comes once: {all:?}");
        all.first().cloned()
    }

    /// Whether a stream ended with its terminal mark, as the last event.
    pub fn is_done(&self) -> bool {
        self.events().last().is_some_and(|last| last == "[DONE]")
    }

    /// A header that is a number.
    pub fn number(&self, header: &str) -> Option<u64> {
        self.header(header).and_then(|value| value.parse().ok())
    }
}
