//! A connection that has its session: frames go out as the log grows, orders come in.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use koboshi::fault::Kind;
use koboshi::session::{BadFrame, ClientFrame, TurnState};
use koboshi_report::phrase::Lang;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::pulse::{Beat, Pulse};
use super::{End, Incoming, Wire};
use crate::session::access::{self, Access, Admission, Can};
use crate::session::frames::{CloseCode, Problem, millis};
use crate::session::outgoing::Cursor;
use crate::session::{owner, storage, ticket};
use crate::shared::core_state::CoreState;
use crate::shared::sessions::{Command, LiveSession, Order, ReplyTo, Seat};

/// Frames of a client in a second; more wait.
pub(super) const FRAMES_PER_SECOND: u32 = 30;
/// This many may come at once.
const BURST: f64 = 60.0;
/// Frames in a row that cannot be read.
const MAX_BAD: u32 = 3;
/// In this part of the drain time clients are asked to leave, one after the other: who is asked later comes back later. With the usual 30 s no
/// second has more than one in twenty of them.
const ASK_WITHIN: f64 = 0.85;
/// A few clients are asked at once: each of them makes that time longer by this.
const ASK_EACH: Duration = Duration::from_millis(51);
/// Within this after a `goaway` clients come back whose connection has lasted its time: many may have begun at once.
const RECONNECT: Duration = Duration::from_secs(8);
/// And those who are asked one after the other: their own choice must not put them together again.
const RECONNECT_SOON: Duration = Duration::from_millis(500);

/// Why a client is asked to leave whose connection has lasted its time.
const LIFETIME: &str = "lifetime";

/// What a connection waits for.
enum Wake {
    Superseded,
    Changed,
    Reply(Value),
    Incoming(Incoming),
    Heartbeat,
    Stopping,
    /// The client is to be asked to leave.
    GoAway(&'static str),
    /// The time is over in which it should have left.
    Leave,
}

/// How far a connection is on its way out.
#[derive(Clone, Copy)]
enum Stay {
    /// It lasts until the client's lifetime here is over.
    Until(Instant),
    /// The gateway stops: the client is asked to leave then, and must have left at the second moment.
    AskedAt(Instant, Instant),
    /// The client was asked to leave and must have left then.
    Asked(Instant),
}

/// One connection at its session.
pub(super) struct Talk<'t> {
    core: &'t Rc<CoreState>,
    wire: &'t mut Wire,
    lang: Lang,
    client: String,
    live: Arc<LiveSession>,
    access: Access,
    resume: String,
    cursor: Cursor,
    seat: Seat,
    /// The page that made the connection.
    origin: Option<String>,
    can: Can,
    replies: mpsc::UnboundedReceiver<Value>,
    to_self: mpsc::UnboundedSender<Value>,
    changes: watch::Receiver<u64>,
    pulse: Pulse,
    bad: u32,
    tokens: (f64, Instant),
    number: u64,
}

impl<'t> Talk<'t> {
    pub(super) fn new(
        core: &'t Rc<CoreState>,
        wire: &'t mut Wire,
        lang: Lang,
        client: &str,
        admission: Admission,
        cursor: Cursor,
    ) -> Result<Self, Problem> {
        let Admission { live, access, resume, origin, can, .. } = admission;
        let number = core.state.sessions.number();
        let (to_self, replies) = mpsc::unbounded_channel();
        let max = core.state.plan().config.sessions.max_connections as usize;
        let seat = live
            .sit(number, client, max, to_self.clone())
            .ok_or_else(|| Problem::of(Kind::Overloaded).closing(CloseCode::TOO_MANY))?;
        let now = Instant::now();
        let changes = live.changes();
        core.state.meters.sessions.inc();
        Ok(Self {
            core,
            wire,
            lang,
            client: client.to_owned(),
            live,
            access,
            resume,
            cursor,
            seat,
            origin,
            can,
            replies,
            to_self,
            changes,
            pulse: Pulse::new(now),
            bad: 0,
            tokens: (BURST, now),
            number,
        })
    }

    pub(super) async fn send(&mut self, frame: Value) -> Result<(), End> {
        self.wire.send(frame.to_string()).await
    }

    /// Goes on until the connection is over.
    pub(super) async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let lifetime = self.core.state.plan().config.sessions.connection_lifetime;
        let mut stay = Stay::Until(Instant::now() + lifetime);
        loop {
            self.changes.borrow_and_update();
            let frames = self.cursor.next(&self.core.state, &self.live.log());
            let has_more = !frames.is_empty();
            for frame in frames {
                self.wire.send(frame).await?;
            }
            if self.cursor.is_over() {
                return Err(End::Close(CloseCode::ENDED));
            }
            if self.live.is_deleted.load(Ordering::Relaxed) {
                return Err(End::Close(CloseCode::ENDED));
            }
            if matches!(stay, Stay::Asked(_)) && self.is_quiet() {
                return Err(End::Close(CloseCode::GOING_AWAY));
            }
            match self.wake(has_more, stay).await? {
                Wake::Superseded => return Err(End::Close(CloseCode::SUPERSEDED)),
                Wake::Changed => {}
                Wake::Reply(reply) => self.send(reply).await?,
                Wake::Incoming(incoming) => {
                    self.pulse.hear(Instant::now());
                    match incoming {
                        Incoming::Text(text) => self.take(text).await?,
                        Incoming::Binary => self.bad("frames are text").await?,
                        Incoming::Sign => {}
                    }
                }
                Wake::Heartbeat => match self.pulse.beat(self.heartbeat(), Instant::now()) {
                    Beat::Gone => return Err(End::Gone),
                    Beat::Ping => self.wire.ping().await?,
                    Beat::Rest => {}
                },
                Wake::Stopping => {
                    let (now, drain) = (Instant::now(), self.core.state.plan().config.serve.drain);
                    let clients = u32::try_from(self.core.state.meters.sessions.get()).unwrap_or(u32::MAX);
                    let within = ASK_EACH.saturating_mul(clients).min(drain.mul_f64(ASK_WITHIN));
                    stay = Stay::AskedAt(now + within.mul_f64(share(self.number)), now + drain);
                }
                Wake::GoAway(reason) => {
                    let last = match stay {
                        Stay::AskedAt(_, last) | Stay::Asked(last) => last,
                        Stay::Until(_) => Instant::now() + RECONNECT * 4,
                    };
                    let window = if reason == LIFETIME { RECONNECT } else { RECONNECT_SOON };
                    self.go_away(reason, last, window).await?;
                    stay = Stay::Asked(last);
                }
                Wake::Leave => return Err(End::Close(CloseCode::GOING_AWAY)),
            }
        }
    }

    /// Waits until there is something to do.
    async fn wake(&mut self, has_more: bool, stay: Stay) -> Result<Wake, End> {
        let next = async {
            match stay {
                Stay::Until(at) => {
                    sleep_until(at).await;
                    Wake::GoAway(LIFETIME)
                }
                Stay::AskedAt(at, _) => {
                    sleep_until(at).await;
                    Wake::GoAway("restart")
                }
                Stay::Asked(last) => {
                    sleep_until(last).await;
                    Wake::Leave
                }
            }
        };
        let (connections, heartbeat) = (&self.core.connections, self.pulse.next(self.heartbeat()));
        Ok(tokio::select! {
            _ = self.seat.superseded.changed() => Wake::Superseded,
            Some(reply) = self.replies.recv() => Wake::Reply(reply),
            _ = self.changes.changed() => Wake::Changed,
            () = std::future::ready(()), if has_more => Wake::Changed,
            incoming = self.wire.receive() => Wake::Incoming(incoming?),
            () = sleep_until(heartbeat) => Wake::Heartbeat,
            () = until_woken(|| connections.are_stopping()), if matches!(stay, Stay::Until(_)) => Wake::Stopping,
            () = until_woken(|| connections.are_ending()) => match stay {
                Stay::Asked(_) => Wake::Leave,
                _ => Wake::GoAway("restart"),
            },
            wake = next => wake,
        })
    }

    fn heartbeat(&self) -> Duration {
        self.core.state.plan().config.sessions.heartbeat
    }

    /// Nothing of a turn is on its way.
    fn is_quiet(&self) -> bool {
        self.live.log().state() == TurnState::Idle
    }

    /// Asks the client to come back elsewhere; the connection ends then.
    async fn go_away(&mut self, reason: &str, last: Instant, window: Duration) -> Result<(), End> {
        let within = last.saturating_duration_since(Instant::now());
        let frame = json!({
            "type": "goaway",
            "in_ms": millis(within),
            "reason": reason,
            "reconnect_ms": millis(window),
        });
        self.send(frame).await
    }

    /// Takes a frame of the client.
    pub(super) async fn take(&mut self, text: String) -> Result<(), End> {
        self.slow_down().await;
        let plan = self.core.state.plan();
        if text.len() as u64 > plan.config.sessions.max_frame_bytes {
            let problem = Problem::of(Kind::MessageTooLarge);
            return self.tell(problem).await;
        }
        let frame = match ClientFrame::parse(&text) {
            Ok(frame) => frame,
            Err(error @ BadFrame::UnknownType(_)) => {
                return self.tell(Problem::of(Kind::InvalidMessage).detail(error.to_string())).await;
            }
            Err(error) => return self.bad(&error.to_string()).await,
        };
        self.bad = 0;
        self.obey(frame, text.len()).await
    }

    async fn obey(&mut self, frame: ClientFrame, bytes: usize) -> Result<(), End> {
        match frame {
            ClientFrame::Hello(_) => self.bad("`hello` is the first frame only").await,
            ClientFrame::Ack { .. } => Ok(()),
            ClientFrame::Ping { t } => self.send(json!({"type": "pong", "t": t})).await,
            ClientFrame::Auth { ticket } => self.prove(&ticket).await,
            ClientFrame::Bye { forget: false } => Err(End::Close(CloseCode::BYE)),
            ClientFrame::Chat(mut chat) => {
                // From here on it may be handed on more than once: the id makes it one message.
                chat.id = chat.id.or_else(|| ticket::random::<9>().map(|id| format!("c_{id}")));
                // Where only some routes are allowed, the one that would answer is named here: its owner may be elsewhere, or the config change.
                if self.access.grant.routes.is_some() {
                    chat.route = chat.route.or_else(|| owner::default_model(&self.core.state.plan()));
                }
                if !self.access.grant.allows(chat.route.as_deref()) {
                    let problem = Problem::of(Kind::PermissionDenied).answering(chat.id.as_deref());
                    return self.tell(problem).await;
                }
                if !chat.tools.is_empty() && !self.can.tools {
                    return self.cannot_run_tools(chat.id.as_deref()).await;
                }
                if !(chat.content.is_string() || chat.content.is_array()) {
                    return self.bad("`content` must be text or a list of parts").await;
                }
                self.give(Order::Frame(ClientFrame::Chat(chat)), bytes).await;
                Ok(())
            }
            ClientFrame::ToolClaim { .. } | ClientFrame::ToolResult(_) if !self.can.tools => {
                self.cannot_run_tools(None).await
            }
            ClientFrame::Retry { id, turn } => {
                let asked = self.live.log().asked(turn).and_then(|spec| spec.route.clone());
                let route = asked.or_else(|| owner::default_model(&self.core.state.plan()));
                if !self.access.grant.allows(route.as_deref()) {
                    return self.tell(Problem::of(Kind::PermissionDenied).answering(Some(&id))).await;
                }
                self.give(Order::Frame(ClientFrame::Retry { id, turn }), bytes).await;
                Ok(())
            }
            frame => {
                self.give(Order::Frame(frame), bytes).await;
                Ok(())
            }
        }
    }

    /// Gives an order of this size in bytes to the session's owner. Where too much waits for it already, the client waits.
    async fn give(&self, order: Order, bytes: usize) {
        let command = Command {
            room: self.live.room(bytes).await,
            client: self.client.clone(),
            lang: self.lang,
            can_rewind: self.can.rewind,
            key: self.access.grant.key.clone(),
            order,
            reply: ReplyTo::Here(self.to_self.clone()),
        };
        owner::order(self.core, &self.live, command);
    }

    /// A ticket while the connection lasts.
    async fn prove(&mut self, secret: &str) -> Result<(), End> {
        let state = &self.core.state;
        let (secret, wall) = (secret.to_owned(), state.wall());
        let taken = storage::ask(state, move |store| ticket::Ticket::take(store, &secret, wall)).await;
        let is_for_it = |ticket: &ticket::Ticket| {
            ticket.tenant == self.live.tenant && ticket.session.as_ref().is_none_or(|id| *id == self.live.id)
        };
        let Some(ticket) = taken.flatten().filter(is_for_it) else {
            return Err(Problem::of(Kind::TokenExpired).closing(CloseCode::NO_TICKET).into());
        };
        if !ticket.grant.is_for(self.origin.as_deref()) {
            return Err(access::forbidden().into());
        }
        self.access.grant = ticket.grant.clone();
        let (id, token, ttl) = (self.live.id.clone(), self.resume.clone(), state.plan().config.sessions.ttl);
        let kept =
            storage::ask(state, move |store| ticket::regrant(store, &id, &token, &ticket.grant, ttl, wall));
        // Where it is not written, coming back allows what the ticket before did.
        let _ = kept.await;
        Ok(())
    }

    /// A client that has not said that it can run tools would leave their calls waiting.
    async fn cannot_run_tools(&mut self, id: Option<&str>) -> Result<(), End> {
        let problem = Problem::of(Kind::InvalidMessage).detail("`can` of `hello` has no `tools`");
        self.tell(problem.answering(id)).await
    }

    async fn tell(&mut self, problem: Problem) -> Result<(), End> {
        let frame = problem.frame(&self.core.state, &self.core.state.plan(), self.lang);
        self.send(frame).await
    }

    /// A frame that cannot be used; several in a row end the connection.
    async fn bad(&mut self, why: &str) -> Result<(), End> {
        self.bad += 1;
        let problem = Problem::of(Kind::InvalidMessage).detail(why);
        if self.bad >= MAX_BAD {
            return Err(problem.closing(CloseCode::BAD_FRAMES).into());
        }
        self.tell(problem).await
    }

    /// A client that sends too much waits: its socket fills, and no memory of ours does.
    async fn slow_down(&mut self) {
        let now = Instant::now();
        let (tokens, at) = self.tokens;
        let rate = f64::from(FRAMES_PER_SECOND);
        let earned = now.duration_since(at).as_secs_f64() * rate;
        let left = (tokens + earned).min(BURST) - 1.0;
        self.tokens = (left, now);
        if left < 0.0 {
            sleep(Duration::from_secs_f64(-left / rate)).await;
        }
    }
}

impl Drop for Talk<'_> {
    fn drop(&mut self) {
        let state = &self.core.state;
        state.meters.sessions.dec();
        if self.live.is_deleted.load(Ordering::Relaxed) || self.resume.is_empty() {
            return;
        }
        let (store, wall, ttl) = (storage::store(state), state.wall(), state.plan().config.sessions.ttl);
        let (id, token) = (self.live.id.clone(), std::mem::take(&mut self.resume));
        // Where it is not written, the token stays good for longer.
        state.sessions.calls.push(id.len() + token.len(), move || {
            let _ = ticket::dropped(&*store, &id, &token, ttl, wall);
        });
    }
}

/// Waits for something at which every connection is woken: that the gateway stops, and that its drain time is over.
async fn until_woken(is_so: impl Fn() -> bool) {
    std::future::poll_fn(|_| if is_so() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Where a connection stands among all, from 0 to 1: any number of them, in any order, is spread evenly (by the golden ratio).
fn share(number: u64) -> f64 {
    let turned = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    f64::from(u32::try_from(turned >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number below 25")]
    fn connections_are_asked_to_leave_one_after_the_other_however_many_there_are() {
        for (count, step) in [(500_u32, 2), (500, 1), (2000, 1), (2000, 7), (8000, 2)] {
            let mut slices = [0_u32; 25];
            for number in 0..count {
                let at = (share(u64::from(number * step)) * 24.999) as usize;
                slices[at] += 1;
            }
            let most = slices.into_iter().max().unwrap();
            assert!(f64::from(most) <= f64::from(count) * 0.05, "{count} by {step}: {slices:?}");
        }
    }
}
