//! A connection: requests in, answers out, falls where the model says so.
//!
//! A whole answer is one write of bytes that are ready. A stream writes each piece by itself, as providers do; whether pieces are
//! joined on the way is then the gateway's doing. A cut is the end of the connection without the end of the body, and not a
//! reset, since a reset throws away what the other side has not read yet; it comes when the next piece would have come.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::rc::Rc;

use koboshi_bench::answer;
use koboshi_bench::clock::{self, Alarm};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::dialect::Dialect;
use crate::model::{Model, Models, json};
use crate::plan::Fall;
use crate::request;

#[derive(Deserialize)]
struct Ask<'a> {
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(default)]
    stream: bool,
    #[serde(borrow, default)]
    messages: Option<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<serde_json::Value>,
}

/// Whether the connection goes on.
#[derive(PartialEq, Eq)]
enum Connection {
    KeepAlive,
    Close,
}

/// Answers until the client leaves.
pub(crate) async fn converse(mut socket: TcpStream, models: Rc<Models>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8192);
    while let Some(request) = request::read(&mut socket, &mut buffer).await? {
        let line = buffer.get(request.line).unwrap_or_default();
        let body = buffer.get(request.body.clone()).unwrap_or_default();
        let connection = if let Some(dialect) = Dialect::of(line) {
            complete(&mut socket, &models, dialect, line, body).await?
        } else {
            let answer = control(&models, &String::from_utf8_lossy(line));
            socket.write_all(&answer).await?;
            Connection::KeepAlive
        };
        if connection == Connection::Close || request.last {
            break;
        }
        if request.body.end == buffer.len() {
            buffer.clear();
        } else {
            buffer.drain(..request.body.end);
        }
    }
    Ok(())
}

/// `GET /stats`, `POST /forget`, `POST /outage?model=NAME&way=503&on=1`; everything else is healthy.
fn control(models: &Models, line: &str) -> Vec<u8> {
    let (_, target) = line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    match path {
        "/stats" => json("200 OK", "", &models.stats()),
        "/forget" => {
            models.forget();
            json("200 OK", "", "{}")
        }
        "/outage" => match (asked("model"), asked("on"), asked("way").and_then(Fall::named)) {
            (Some(model), Some("0"), _) => {
                models.outage(model, None);
                json("200 OK", "", "{}")
            }
            (Some(model), Some("1"), Some(fall)) => {
                models.outage(model, Some(fall));
                json("200 OK", "", "{}")
            }
            _ => json(
                "400 Bad Request",
                "",
                r#"{"error":"model, on (0 or 1) and way (a status, hang, reset, cut)"}"#,
            ),
        },
        _ => json("200 OK", "", r#"{"object":"list","data":[]}"#),
    }
}

async fn complete(
    socket: &mut TcpStream,
    models: &Models,
    dialect: Dialect,
    line: &[u8],
    body: &[u8],
) -> io::Result<Connection> {
    let Ok(mut ask) = serde_json::from_slice::<Ask<'_>>(body) else {
        socket
            .write_all(&json("400 Bad Request", "", &dialect.error("no request that can be read", 400)))
            .await?;
        return Ok(Connection::KeepAlive);
    };
    if dialect == Dialect::Gemini {
        (ask.model, ask.stream) = named_in(line);
    }
    let model = models.named(&ask.model);
    let written = model.in_dialect(dialect);
    let fall = model.call();
    if model.plan.wait > 0 {
        Alarm::new()?.until(clock::now() + clock::millis(model.plan.wait)).await?;
    }
    match fall {
        Some(Fall::Status(status, wait)) => {
            let headers = wait.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            let answer =
                json(&format!("{status} Fallen"), &headers, &dialect.error("the mock has fallen", status));
            socket.write_all(&answer).await?;
            Ok(Connection::KeepAlive)
        }
        Some(Fall::Hang) => {
            let mut waste = [0; 64];
            while socket.read(&mut waste).await? > 0 {}
            Ok(Connection::Close)
        }
        Some(Fall::Reset) => {
            socket.set_zero_linger()?;
            Ok(Connection::Close)
        }
        Some(Fall::Cut(_)) if !ask.stream => {
            let half = written.whole.len() / 2;
            socket.write_all(written.whole.get(..half).unwrap_or_default()).await?;
            Ok(Connection::Close)
        }
        Some(Fall::Cut(after)) => stream(socket, &model, dialect, &given(&ask), Some(after)).await,
        None if ask.stream => stream(socket, &model, dialect, &given(&ask), None).await,
        None => {
            socket.write_all(&written.whole).await?;
            Ok(Connection::KeepAlive)
        }
    }
}

/// Model and whether a stream is wanted, as `/v1beta/models/NAME:streamGenerateContent` says it.
fn named_in(line: &[u8]) -> (Cow<'static, str>, bool) {
    let line = String::from_utf8_lossy(line);
    let name = line.split_once("/models/").and_then(|(_, rest)| rest.split_once(':')).unwrap_or_default().0;
    (Cow::Owned(name.to_owned()), line.contains(":stream"))
}

/// The beginning of the answer, where the conversation ends with it: the mock goes on from there.
fn given(ask: &Ask<'_>) -> String {
    let messages: Vec<Message> =
        ask.messages.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    match messages.last() {
        Some(Message { role, content: Some(serde_json::Value::String(text)) }) if role == "assistant" => {
            text.clone()
        }
        _ => String::new(),
    }
}

async fn stream(
    socket: &mut TcpStream,
    model: &Model,
    dialect: Dialect,
    given: &str,
    cut: Option<usize>,
) -> io::Result<Connection> {
    let (plan, speech) = (&model.plan, &model.in_dialect(dialect).speech);
    let mut out = String::with_capacity(1024);
    out.push_str(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for frame in &speech.opening {
        chunk(&mut out, frame);
    }
    socket.write_all(out.as_bytes()).await?;
    let alarm = if plan.gap > 0 { Some(Alarm::new()?) } else { None };
    let mut due = clock::now();
    let goes_on = !plan.stamp && !given.is_empty() && answer::text(plan.chunks).starts_with(given);
    let mut skipped = if goes_on { given.len() } else { 0 };
    let (mut piece, mut frame, mut text) =
        (String::with_capacity(32), String::with_capacity(512), String::new());
    for at in 0..plan.chunks {
        let whole = answer::piece(at);
        let rest = whole.get(skipped.min(whole.len())..).unwrap_or_default();
        skipped = skipped.saturating_sub(whole.len());
        if rest.is_empty() {
            continue;
        }
        // No pause before the first piece: the time to first content must not have a timer of ours in it.
        if let Some(alarm) = alarm.as_ref().filter(|_| at > 0) {
            due += clock::millis(plan.gap);
            alarm.until(due).await?;
        }
        if cut == Some(at) {
            return Ok(Connection::Close);
        }
        piece.clear();
        frame.clear();
        out.clear();
        let _infallible =
            if plan.stamp { write!(piece, "t{} ", clock::now()) } else { write!(piece, "{rest}") };
        text.push_str(&piece);
        speech.piece(&mut frame, at, &piece);
        chunk(&mut out, &frame);
        socket.write_all(out.as_bytes()).await?;
        if at % 32 == 31 {
            tokio::task::yield_now().await;
        }
    }
    if cut.is_some() {
        return Ok(Connection::Close);
    }
    out.clear();
    for frame in &speech.closing(&text) {
        chunk(&mut out, frame);
    }
    out.push_str("0\r\n\r\n");
    socket.write_all(out.as_bytes()).await?;
    Ok(Connection::KeepAlive)
}

/// One event as one chunk of the body.
fn chunk(out: &mut String, frame: &str) {
    let _infallible = write!(out, "{:x}\r\n{frame}\r\n", frame.len());
}
