//! The one task that changes a session's log.
//!
//! It begins with the first order, takes the session in the store, and ends when nothing runs and nothing waits; then any process may take
//! it. What must not be lost is stored before a reader sees it ([`Owner::record`]); text is shown at once and stored a few times a
//! second. An owner whose fence is refused has been replaced: it stops at once, and its readers follow the new one. When its process stops and
//! the drain time is over, it hands a running turn over: another process goes on with it, or this one after its restart.

mod answer;
mod orders;
mod taking;
mod timers;
mod writing;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use koboshi::fault::{Kind, Sub};
use koboshi::session::{ClientFrame, DoneReason, Entry, TurnState};
use koboshi_store::Ownership;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

pub(crate) use self::answer::default_model;
use self::taking::{Refused, TakenSession, begin_epoch, take};
use self::writing::{Flight, Stored, landing};
use super::frames::{self, Problem};
use super::storage::{self, LEASE};
use super::ticket;
use super::turn::{Part, Segment};
use crate::route::plan::Plan;
use crate::shared::core_state::CoreState;
use crate::shared::sessions::{Command, LiveSession, Order, ReplyTo, lock};

/// How often an owner looks after its lease, its timers and what is not stored. Text is stored no more often than this, so that a running
/// turn has at most ten writes a second, those of its beginning and its end among them.
const TICK: Duration = Duration::from_millis(125);
/// A task that cannot store what it has gives up after this.
const GIVE_UP: Duration = Duration::from_secs(60);

/// How soon a store is asked again that is away, or has lost something.
const STORE_AGAIN: Duration = Duration::from_millis(500);
/// How often an order is given again whose owner was replaced meanwhile.
const MAX_REFUSED: u32 = 3;

/// Gives an order to the session's owner, wherever it is.
pub(crate) fn order(core: &Rc<CoreState>, live: &Arc<LiveSession>, command: Command) {
    let mut owner = lock(&live.owner);
    let command = match &*owner {
        Some(known) => match known.send(command) {
            Ok(()) => return,
            Err(back) => back.0,
        },
        None => command,
    };
    // Which tabs there are matters to an owner only.
    if matches!(command.order, Order::Present(_)) {
        return;
    }
    let (sender, orders) = mpsc::unbounded_channel();
    let _ = sender.send(command);
    *owner = Some(sender);
    drop(owner);
    let (core, live) = (Rc::clone(core), Arc::clone(live));
    tokio::task::spawn_local(async move { own(core, live, orders).await });
}

/// Why an owner stops.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// Nothing is left to do.
    Idle,
    /// Another process owns the session.
    Replaced,
    /// It was deleted.
    Forgotten,
    /// The process ends.
    Leaving,
}

/// Owns a session until nothing is left to do.
async fn own(core: Rc<CoreState>, live: Arc<LiveSession>, mut orders: mpsc::UnboundedReceiver<Command>) {
    loop {
        let Some(first) = orders.recv().await else { return };
        // What comes now is for the next owner; the client gives its order again there.
        if core.connections.are_ending() {
            continue;
        }
        let _counted = core.state.sessions.count_owner();
        if matches!(&first.order, Order::Frame(ClientFrame::Bye { forget: true })) {
            forget(&core, &live).await;
        } else {
            serve_until_done(&core, &live, first, &mut orders).await;
        }
        // An order that came meanwhile is served; one that comes now finds no owner and begins one.
        let mut owner = lock(&live.owner);
        if orders.is_empty() {
            *owner = None;
            return;
        }
    }
}

/// What is left to do after an owner was replaced.
struct Left {
    /// The order that met it: the store refused its write, so it was not executed.
    order: Option<Command>,
    /// No other process has taken the session: the store has lost what is known here.
    has_lost: bool,
}

/// Serves orders, and takes the session again where something remains to be done.
async fn serve_until_done(
    core: &Rc<CoreState>,
    live: &Arc<LiveSession>,
    first: Command,
    orders: &mut mpsc::UnboundedReceiver<Command>,
) {
    let (mut next, mut refused) = (first, 0);
    while let Some(Left { order, has_lost }) = serve(core, live, next, orders).await {
        if !has_lost && order.is_none() || core.connections.are_ending() {
            return;
        }
        refused += u32::from(order.is_some());
        if let Some(order) = order.as_ref().filter(|_| refused > MAX_REFUSED) {
            return reply_not_saved(core, live, order);
        }
        sleep(STORE_AGAIN).await;
        // What the store has lost is here: the store gets it again.
        next = order.unwrap_or_else(Command::recover);
    }
}

/// Takes the session and serves orders, from this one on. Says what is left to do where the owner was replaced.
async fn serve(
    core: &Rc<CoreState>,
    live: &Arc<LiveSession>,
    first: Command,
    orders: &mut mpsc::UnboundedReceiver<Command>,
) -> Option<Left> {
    match take(core, live).await {
        Ok(taken) => {
            let mut owner = Owner::new(core, live, &taken);
            if taken.was_lost {
                owner.recover().await;
            } else {
                owner.go_on_with_it().await;
            }
            let stop = owner.run(first, orders).await;
            match stop {
                Stop::Replaced => {
                    let order = owner.refused.take();
                    let has_lost = storage::refresh_from(&core.state, live, true).await;
                    return Some(Left { order, has_lost });
                }
                Stop::Forgotten => live.be_forgotten(),
                Stop::Idle | Stop::Leaving => {}
            }
        }
        Err(Refused::Held(process)) => {
            super::replicas::forward(&core.state, live, &process, first);
        }
        Err(Refused::Away) => reply_not_saved(core, live, &first),
        Err(Refused::Forgotten) => live.be_forgotten(),
        Err(Refused::Missing) => {
            let problem = Problem::of(Kind::ConversationNotFound);
            reply(core, live, &first, &problem.closing(frames::CloseCode::UNKNOWN_SESSION));
        }
    }
    None
}

/// Tells the one who gave an order that it was not accepted.
fn reply_not_saved(core: &CoreState, live: &LiveSession, command: &Command) {
    reply(core, live, command, &Problem::of(Kind::MessageSaveFailed).after(Duration::from_secs(1)));
}

/// Deletes a session for everyone, also where another process owns it: that owner learns it from its next write. A store that is away is asked until it has
/// done it; the tabs learn of it only then. A process that ends before that leaves it to the client, which gives the order again.
async fn forget(core: &CoreState, live: &LiveSession) {
    let state = &core.state;
    loop {
        let (id, ttl, wall) = (live.id.clone(), state.plan().config.sessions.ttl, state.wall());
        let done = storage::ask_of(state, live, move |store| {
            store.sessions().forget(&id, ttl, wall)?;
            ticket::forget(store, &id)
        });
        if done.await.is_some() {
            return live.be_forgotten();
        }
        if core.connections.are_ending() {
            return;
        }
        sleep(STORE_AGAIN).await;
    }
}

/// Answers the one who gave an order.
fn reply(core: &CoreState, live: &LiveSession, command: &Command, problem: &Problem) {
    let (state, plan) = (&core.state, core.state.plan());
    let id = match &command.order {
        Order::Frame(frame) => frame.id(),
        _ => None,
    };
    let frame = problem.clone().answering(id).frame(state, &plan, command.lang);
    answer(core, live, command, frame);
}

fn answer(core: &CoreState, live: &LiveSession, command: &Command, frame: Value) {
    match &command.reply {
        ReplyTo::Here(sender) => drop(sender.send(frame)),
        ReplyTo::Elsewhere(process) => {
            super::replicas::send_back(&core.state, live, process, &command.client, frame);
        }
        ReplyTo::Nowhere => {}
    }
}

/// A task that owns a session.
struct Owner<'o> {
    core: &'o Rc<CoreState>,
    live: &'o Arc<LiveSession>,
    plan: Arc<Plan>,
    fence: u64,
    /// The number in the store.
    stored: u64,
    /// Events that are not stored yet.
    unstored: Vec<Entry>,
    /// The whole state must be written with them.
    is_head_old: bool,
    /// Since when something is not stored.
    unstored_since: Option<Instant>,
    /// A write that is on its way while the text goes on.
    flight: Option<Flight<'o>>,
    segment: Option<Segment>,
    /// The order whose write was refused because another owner has the session.
    refused: Option<Command>,
    /// The turn that it answers.
    turn: u64,
    usage: Option<koboshi::session::Usage>,
    renewed: Instant,
    /// When calls must be done.
    deadlines: HashMap<String, Instant>,
    /// Tabs whose connections are gone, and since when.
    gone: HashMap<String, Instant>,
    /// Tabs at other processes: where, and the time of the last report.
    elsewhere: HashMap<String, (String, Instant)>,
    detached: Option<Instant>,
    thought: u64,
}

impl<'o> Owner<'o> {
    fn new(core: &'o Rc<CoreState>, live: &'o Arc<LiveSession>, taken: &TakenSession) -> Self {
        let now = Instant::now();
        Self {
            core,
            live,
            plan: core.state.plan(),
            fence: taken.fence,
            stored: taken.stored,
            unstored: Vec::new(),
            is_head_old: taken.is_head_old,
            unstored_since: None,
            flight: None,
            segment: None,
            refused: None,
            turn: 0,
            usage: None,
            renewed: now,
            deadlines: HashMap::new(),
            gone: HashMap::new(),
            elsewhere: HashMap::new(),
            detached: None,
            thought: 0,
        }
    }

    async fn run(&mut self, first: Command, orders: &mut mpsc::UnboundedReceiver<Command>) -> Stop {
        let mut next = Some(first);
        // One clock for the whole run: pieces that come faster than it ticks must not put the lease and the store off.
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let went = match next.take() {
                Some(command) => {
                    let obeyed = self.obey(&command).await;
                    self.refused = (obeyed == Err(Stop::Replaced)).then_some(command);
                    obeyed
                }
                None => Ok(()),
            };
            let went = match went {
                Ok(()) => self.go_on().await,
                stop => stop,
            };
            if let Err(stop) = went {
                return stop;
            }
            if self.core.connections.are_ending() {
                return self.hand_over().await;
            }
            if self.is_idle() && orders.is_empty() {
                match self.release().await {
                    Ok(true) => return Stop::Idle,
                    Ok(false) => {}
                    Err(stop) => return stop,
                }
            }
            let went = tokio::select! {
                biased;
                _ = ticks.tick() => self.tick().await,
                answer = landing(&mut self.flight) => self.land(answer).await.map(drop),
                command = orders.recv() => {
                    next = command;
                    Ok(())
                }
                // A request that the end of the drain time has broken off is no failure of the turn: it is handed over.
                part = next_part(&mut self.segment) => match self.core.connections.are_ending() {
                    true => Ok(()),
                    false => self.part(part).await,
                },
            };
            if let Err(stop) = went {
                return stop;
            }
        }
    }

    /// The process ends: what runs is left to another one. A client that knows no sessions has no way to come back to it, and what is kept in
    /// memory ends with the process: there the turn ends with an error.
    async fn hand_over(&mut self) -> Stop {
        let is_kept = !self.live.is_plain() && storage::outlives_process(&self.core.state);
        if !is_kept && !self.is_idle() {
            let error = self.error(Kind::Unavailable, Some(Sub::Stopping));
            if let Err(stop) = self.end(DoneReason::Error, Some(error)).await {
                return stop;
            }
        }
        self.segment = None;
        let ownership = if self.is_idle() { Ownership::GivenBack } else { Ownership::HandedOver };
        match self.leave(ownership).await {
            Ok(Stored::Done | Stored::Away) => Stop::Leaving,
            Err(stop) => stop,
        }
    }

    fn is_idle(&self) -> bool {
        self.segment.is_none() && self.live.log().state() == TurnState::Idle
    }
}

/// The next part of the running segment; waits for ever where none runs.
async fn next_part(segment: &mut Option<Segment>) -> Part {
    match segment {
        Some(segment) => segment.next().await,
        None => std::future::pending().await,
    }
}
