//! One client's connection: it says who it is, gets its session, and is a cursor into the log from then on.

mod pulse;
mod talk;

use std::rc::Rc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use koboshi::fault::Kind;
use koboshi::session::{ClientFrame, Hello};
use koboshi_report::phrase::Lang;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode as WireCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use self::talk::Talk;
use super::access::{self, Admission};
use super::frames::{CloseCode, Problem};
use super::outgoing::Cursor;
use super::socket::{self, WebSocket};
use super::upgrade::Upgrade;
use crate::http::client::Connection;
use crate::shared::core_state::CoreState;

/// The first frame must be there after this.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// A socket that takes nothing for this long is closed.
const SEND_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Why a connection is over.
#[derive(Debug)]
pub(crate) enum End {
    /// The client is gone.
    Gone,
    /// It is closed with this code.
    Close(CloseCode),
    /// The same, and the client gets the reason.
    Tell(Box<Problem>),
}

impl From<Problem> for End {
    fn from(problem: Problem) -> Self {
        Self::Tell(Box::new(problem))
    }
}

/// What came from a client.
enum Incoming {
    Text(String),
    /// A frame that is no text.
    Binary,
    /// A sign of life.
    Sign,
}

/// The two ends of a WebSocket.
pub(super) struct Wire(WebSocket);

impl Wire {
    /// Sends a frame; a client that takes nothing for too long is let go.
    async fn send(&mut self, frame: String) -> Result<(), End> {
        match timeout(SEND_TIME, self.0.send(Message::text(frame))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(End::Close(CloseCode::TOO_SLOW)),
        }
    }

    async fn ping(&mut self) -> Result<(), End> {
        match timeout(SEND_TIME, self.0.send(Message::Ping(Vec::new().into()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(End::Close(CloseCode::TOO_SLOW)),
        }
    }

    async fn receive(&mut self) -> Result<Incoming, End> {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Ok(Incoming::Text(text.to_string())),
            Some(Ok(Message::Binary(_))) => Ok(Incoming::Binary),
            Some(Ok(Message::Close(_))) | None => Err(End::Gone),
            Some(Ok(_)) => Ok(Incoming::Sign),
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                Err(End::Close(CloseCode(1009)))
            }
            Some(Err(Error::Utf8(_))) => Err(End::Close(CloseCode(1007))),
            Some(Err(Error::Protocol(_))) => Err(End::Close(CloseCode(1002))),
            Some(Err(_)) => Err(End::Gone),
        }
    }

    async fn close(&mut self, code: CloseCode) {
        let frame = CloseFrame { code: WireCode::from(code.0), reason: "".into() };
        let closing = async {
            if self.0.close(Some(frame)).await.is_ok() {
                // What the client still sends is passed over until it has closed its side.
                while let Some(Ok(_)) = self.0.next().await {}
            }
        };
        let _ = timeout(CLOSE_TIME, closing).await;
    }
}

/// Serves a connection until it is over.
pub(crate) async fn serve(core: &Rc<CoreState>, connection: Connection, upgrade: Upgrade) {
    let mut wire = Wire(socket::open(connection).await);
    let mut lang = upgrade.lang;
    let Err(end) = begin(core, &mut wire, &upgrade, &mut lang).await;
    match end {
        End::Gone => {}
        End::Close(code) => wire.close(code).await,
        End::Tell(problem) => {
            let frame = problem.frame(&core.state, &core.state.plan(), lang);
            if wire.send(frame.to_string()).await.is_ok() {
                wire.close(problem.close.unwrap_or(CloseCode::FAULT)).await;
            }
        }
    }
}

/// The first frame decides what the connection is.
async fn begin(
    core: &Rc<CoreState>,
    wire: &mut Wire,
    upgrade: &Upgrade,
    lang: &mut Lang,
) -> Result<std::convert::Infallible, End> {
    let invalid = || Problem::of(Kind::InvalidMessage);
    // One time for the whole of it: a client that only pings says nothing.
    let deadline = Instant::now() + HELLO_TIME;
    let text = loop {
        let late = || invalid().detail("no hello within 10 s").closing(CloseCode::BAD_FRAMES);
        match timeout_at(deadline, wire.receive()).await.map_err(|_| late())?? {
            Incoming::Text(text) => break text,
            Incoming::Binary => {
                return Err(invalid().detail("frames are text").closing(CloseCode::BAD_FRAMES).into());
            }
            Incoming::Sign => {}
        }
    };
    if text.len() as u64 > core.state.plan().config.sessions.max_frame_bytes {
        return Err(Problem::of(Kind::MessageTooLarge).closing(CloseCode::TOO_LARGE).into());
    }
    match ClientFrame::parse(&text) {
        Ok(ClientFrame::Hello(hello)) => {
            if hello.v != 1 {
                return Err(invalid().detail("the version must be 1").closing(CloseCode::VERSION).into());
            }
            *lang = hello.lang.as_deref().and_then(Lang::from_tag).unwrap_or(*lang);
            let admission = access::admit(core, upgrade, &hello).await?;
            greet(core, wire, *lang, &hello, admission).await
        }
        _ if !upgrade.has_protocol && core.state.plan().config.sessions.plain => {
            plain(core, wire, *lang, upgrade, text).await
        }
        Ok(_) => {
            Err(invalid().detail("the first frame must be `hello`").closing(CloseCode::BAD_FRAMES).into())
        }
        Err(error) => Err(invalid().detail(error.to_string()).closing(CloseCode::BAD_FRAMES).into()),
    }
}

/// A client of the streaming protocol without sessions: one session for this connection alone.
async fn plain(
    core: &Rc<CoreState>,
    wire: &mut Wire,
    lang: Lang,
    upgrade: &Upgrade,
    first: String,
) -> Result<std::convert::Infallible, End> {
    let access = access::identify(core, upgrade, None).await?;
    let access = access.ok_or_else(access::no_access)?;
    let admission = access::begin_plain(core, upgrade, access).await?;
    let cursor = Cursor::start(&admission.live.log(), lang);
    let mut talk = Talk::new(core, wire, lang, "plain", admission, cursor)?;
    talk.take(first).await?;
    talk.run().await
}

/// Tells the client its session, then the log.
async fn greet(
    core: &Rc<CoreState>,
    wire: &mut Wire,
    lang: Lang,
    hello: &Hello,
    admission: Admission,
) -> Result<std::convert::Infallible, End> {
    let number = core.state.sessions.number();
    let client = hello.client.clone().unwrap_or_else(|| format!("connection-{number}"));
    let is_new = admission.is_new;
    let cursor = if is_new {
        Cursor::start(&admission.live.log(), lang).showing(hello)
    } else {
        Cursor::of(hello, lang)
    };
    let frame = session_frame(core, &admission, &cursor, is_new);
    let mut talk = Talk::new(core, wire, lang, &client, admission, cursor)?;
    talk.send(frame).await?;
    talk.run().await
}

fn session_frame(core: &CoreState, admission: &Admission, cursor: &Cursor, is_new: bool) -> Value {
    let config = &core.state.plan().config.sessions;
    let log = admission.live.log();
    json!({
        "type": "session",
        "session": admission.live.id,
        "resume": admission.resume,
        "epoch": log.epoch(),
        "seq": log.seq(),
        "resumed": if is_new { "new" } else { cursor.manner(&log) },
        "state": log.state(),
        "heartbeat_ms": super::frames::millis(config.heartbeat),
        "reconnect_ms": 3000,
        "limits": {
            "frame_bytes": config.max_frame_bytes,
            "connections": config.max_connections,
            "queued": config.max_queued,
            "frames_per_second": talk::FRAMES_PER_SECOND,
        },
    })
}
