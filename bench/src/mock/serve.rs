//! A connection: requests in, answers out, falls where the model says so.
//!
//! A whole answer is one write of bytes that are ready. A stream writes each piece by itself, as providers do; whether pieces are
//! joined on the way is then the gateway's doing. A cut is the end of the connection without the end of the body, and not a
//! reset, since a reset throws away what the other side has not read yet; it comes when the next piece would have come.

use std::fmt::Write as _;
use std::io;
use std::rc::Rc;

use koboshi_bench::answer;
use koboshi_bench::clock::{self, Alarm};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::model::{Model, Models, json};
use crate::plan::Fall;
use crate::request;

#[derive(Deserialize)]
struct Ask<'a> {
    #[serde(borrow)]
    model: std::borrow::Cow<'a, str>,
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
enum Then {
    Next,
    Close,
}

/// Answers until the client leaves.
pub(crate) async fn converse(mut socket: TcpStream, models: Rc<Models>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8192);
    while let Some(request) = request::read(&mut socket, &mut buffer).await? {
        let line = buffer.get(request.line).unwrap_or_default();
        let body = buffer.get(request.body.clone()).unwrap_or_default();
        let then = if memchr::memmem::find(line, b"/chat/completions").is_some() {
            complete(&mut socket, &models, body).await?
        } else {
            let answer = control(&models, &String::from_utf8_lossy(line));
            socket.write_all(&answer).await?;
            Then::Next
        };
        if then == Then::Close || request.last {
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

async fn complete(socket: &mut TcpStream, models: &Models, body: &[u8]) -> io::Result<Then> {
    let Ok(ask) = serde_json::from_slice::<Ask<'_>>(body) else {
        socket.write_all(&json("400 Bad Request", "", &error("no request that can be read", 400))).await?;
        return Ok(Then::Next);
    };
    let model = models.named(&ask.model);
    let fall = model.call();
    if model.plan.wait > 0 {
        Alarm::new()?.until(clock::now() + clock::millis(model.plan.wait)).await?;
    }
    match fall {
        Some(Fall::Status(status, wait)) => {
            let headers = wait.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            let answer = json(&format!("{status} Fallen"), &headers, &error("the mock has fallen", status));
            socket.write_all(&answer).await?;
            Ok(Then::Next)
        }
        Some(Fall::Hang) => {
            let mut waste = [0; 64];
            while socket.read(&mut waste).await? > 0 {}
            Ok(Then::Close)
        }
        Some(Fall::Reset) => {
            socket.set_zero_linger()?;
            Ok(Then::Close)
        }
        Some(Fall::Cut(_)) if !ask.stream => {
            let half = model.whole.len() / 2;
            socket.write_all(model.whole.get(..half).unwrap_or_default()).await?;
            Ok(Then::Close)
        }
        Some(Fall::Cut(after)) => stream(socket, &model, &given(&ask), Some(after)).await,
        None if ask.stream => stream(socket, &model, &given(&ask), None).await,
        None => {
            socket.write_all(&model.whole).await?;
            Ok(Then::Next)
        }
    }
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

async fn stream(socket: &mut TcpStream, model: &Model, given: &str, cut: Option<usize>) -> io::Result<Then> {
    let plan = &model.plan;
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let mut text = String::with_capacity(512);
    frame(
        &mut out,
        &mut text,
        &model.frame,
        r#"{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
    );
    socket.write_all(&out).await?;
    let alarm = if plan.gap > 0 { Some(Alarm::new()?) } else { None };
    let mut due = clock::now();
    let goes_on = !plan.stamp && !given.is_empty() && answer::text(plan.chunks).starts_with(given);
    let mut said = if goes_on { given.len() } else { 0 };
    let mut delta = String::with_capacity(128);
    for at in 0..plan.chunks {
        let whole = answer::piece(at);
        let piece = whole.get(said.min(whole.len())..).unwrap_or_default();
        said = said.saturating_sub(whole.len());
        if piece.is_empty() {
            continue;
        }
        // No pause before the first piece: the time to first content must not have a timer of ours in it.
        if let Some(alarm) = alarm.as_ref().filter(|_| at > 0) {
            due += clock::millis(plan.gap);
            alarm.until(due).await?;
        }
        if cut == Some(at) {
            return Ok(Then::Close);
        }
        delta.clear();
        let _infallible = if plan.stamp {
            write!(delta, r#"{{"content":"t{} "}},"logprobs":null,"finish_reason":null}}]}}"#, clock::now())
        } else {
            write!(delta, r#"{{"content":"{piece}"}},"logprobs":null,"finish_reason":null}}]}}"#)
        };
        out.clear();
        frame(&mut out, &mut text, &model.frame, &delta);
        socket.write_all(&out).await?;
        if at % 32 == 31 {
            tokio::task::yield_now().await;
        }
    }
    if cut.is_some() {
        return Ok(Then::Close);
    }
    out.clear();
    delta.clear();
    let _infallible = write!(
        delta,
        r#"{{}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":21,"completion_tokens":{},"total_tokens":{}}}}}"#,
        plan.chunks,
        plan.chunks + 21
    );
    frame(&mut out, &mut text, &model.frame, &delta);
    frame(&mut out, &mut text, "data: ", "[DONE]");
    out.extend_from_slice(b"0\r\n\r\n");
    socket.write_all(&out).await?;
    Ok(Then::Next)
}

/// One event as one chunk of the body.
fn frame(out: &mut Vec<u8>, text: &mut String, start: &str, rest: &str) {
    text.clear();
    let _infallible = write!(text, "{:x}\r\n{start}{rest}\n\n\r\n", start.len() + rest.len() + 2);
    out.extend_from_slice(text.as_bytes());
}

fn error(message: &str, status: u16) -> String {
    let kind = match status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    format!(r#"{{"error":{{"message":"{message}: {status}","type":"{kind}","param":null,"code":null}}}}"#)
}
