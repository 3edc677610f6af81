//! Requests with large bodies are served by cores of their own.
//!
//! A request is read and translated in one go, and 30 MB take a second of it: all other clients of that core would wait. So a request with a large
//! body goes to another core as a whole, where it is one future like every other, and what it says comes back through a channel
//! with one place: the client's slowness still reaches the upstream. The connection stays where it is, and a client that goes away closes the
//! channel. These cores have a lower priority than the others, so that small requests also go first where processors are few.
//!
//! What waits to be read is bounded in bytes; beyond that a request is refused and may be sent again a moment later.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use koboshi_wire::http1::Heading;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::core::Core;
use crate::door::Door;
use crate::edge;
use crate::flow::{Flow, Tap};
use crate::line::LOOK;
use crate::refusal::Refusal;
use crate::reply::Told;
use crate::server::Worker;
use crate::talk::{self, Intake, Opened};

/// A body above this is large.
pub(crate) const LARGE: usize = 1024 * 1024;
/// Bytes of bodies that may wait for their turn.
const MAX_WAITING: usize = 512 * 1024 * 1024;
/// How much lower the priority of these cores is.
const NICE: i32 = 5;

/// The cores for large requests.
pub(crate) struct Large {
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    turn: AtomicUsize,
    waiting: Arc<AtomicUsize>,
}

/// A request for one of them.
struct Job {
    intake: Intake,
    door: Door,
    tell: mpsc::Sender<Said>,
    place: Place,
}

/// What is said to the client.
enum Said {
    /// A head; pieces follow.
    Head(Heading),
    Piece(Bytes),
    /// A head and all of the body.
    Whole(Heading, Bytes),
}

/// A place among the requests that wait to be read; given back when it is dropped.
struct Place {
    waiting: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Large {
    /// Starts so many threads.
    pub(crate) fn start(
        count: usize,
        end: &watch::Receiver<bool>,
        worker: impl Fn() -> Worker,
    ) -> io::Result<Arc<Self>> {
        let mut large = Self { jobs: Vec::new(), turn: AtomicUsize::new(0), waiting: Arc::default() };
        for number in 0..count {
            let (give, mut given) = mpsc::unbounded_channel();
            let (end, name) = (end.clone(), format!("koboshi-large-{number}"));
            // Not joined: whoever reads a large body when the gateway stops is left behind.
            worker().spawn(name, async move |core| take_turns(core, &mut given, &end).await)?;
            large.jobs.push(give);
        }
        Ok(Arc::new(large))
    }

    /// A place for so many bytes, if there is one. Whoever comes when nobody waits always gets it.
    fn place(&self, bytes: usize) -> Option<Place> {
        let taken = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            let sum = waiting.checked_add(bytes)?;
            (waiting == 0 || sum <= MAX_WAITING).then_some(sum)
        });
        taken.is_ok().then(|| Place { waiting: Arc::clone(&self.waiting), bytes })
    }

    /// Hands a request over; what it says comes through the channel. Nothing comes where its core is gone.
    fn give(&self, intake: Intake, door: Door, place: Place) -> mpsc::Receiver<Said> {
        let (tell, told) = mpsc::channel(1);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(jobs) = self.jobs.get(turn % self.jobs.len().max(1)) {
            let _ = jobs.send(Job { intake, door, tell, place });
        }
        told
    }
}

/// What answers a request with a large body.
pub(crate) fn serve(core: &Rc<Core>, large: &Large, intake: Intake, door: Door, open: Opened) -> Flow {
    let told = |refusal: Refusal, intake: &Intake| refusal.told(&core.world, &intake.plan, &intake.story);
    let Some(place) = large.place(intake.body.len()) else {
        return edge::say(told(Refusal::busy(), &intake));
    };
    let stopping = told(Refusal::stopping(), &intake);
    let said = large.give(intake, door, place);
    let core = Rc::clone(core);
    Flow::of(move |tap| async move {
        let _open = open;
        pass_on(&core, said, &tap, stopping).await;
    })
}

/// Passes on what the other core says. It is the other core that tells the client when the drain time is over, except where nothing was said yet:
/// it may be busy with the body of somebody else.
async fn pass_on(core: &Core, mut said: mpsc::Receiver<Said>, tap: &Tap, stopping: Told) {
    let Some(first) = core.until_end(pin!(said.recv())).await else {
        return talk::send_error(core, tap, stopping).await;
    };
    let mut next = first;
    while let Some(said_now) = next {
        match said_now {
            Said::Head(heading) => tap.head(heading),
            Said::Piece(piece) => tap.send(piece).await,
            Said::Whole(heading, body) => {
                tap.head(heading);
                return tap.send(body).await;
            }
        }
        next = said.recv().await;
    }
}

/// One core for large requests: serves what it is given until the gateway has stopped.
async fn take_turns(core: Rc<Core>, given: &mut mpsc::UnboundedReceiver<Job>, end: &watch::Receiver<bool>) {
    // It fails only where the system has no priorities.
    let _ = rustix::process::setpriority_process(None, NICE);
    let mut gone = end.clone();
    let mut over = pin!(async move { while gone.changed().await.is_ok() {} });
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            job = given.recv() => {
                let Some(job) = job else { return };
                tokio::task::spawn_local(work(Rc::clone(&core), job, end.clone()));
            }
            () = &mut over => return,
            // Somebody is served.
            _ = looks.tick(), if Rc::strong_count(&core) > 1 => core.upstream.tidy(),
        }
    }
}

/// Serves one request until all was said or the client is gone.
async fn work(core: Rc<Core>, job: Job, mut end: watch::Receiver<bool>) {
    let Job { intake, door, tell, place } = job;
    let flow = edge::serve(Rc::clone(&core), intake, door, None);
    let (mut told, mut gone) = (pin!(tell_all(flow, &tell)), pin!(tell.closed()));
    let (mut ended, mut place) = (pin!(end.wait_for(|end| *end)), Some(place));
    poll_fn(|context| {
        // Whoever serves a request looks at this when it is woken.
        if !core.lines.are_ending() && ended.as_mut().poll(context).is_ready() {
            core.lines.end();
        }
        if gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let done = told.as_mut().poll(context);
        // It was read, and is on its way: others have their turn.
        place = None;
        done
    })
    .await;
}

async fn tell_all(mut flow: Flow, tell: &mpsc::Sender<Said>) {
    let heading = flow.head().await.unwrap_or_else(|| Heading::of(500));
    if flow.length().is_some() {
        let body = poll_fn(|context| flow.poll_piece(context)).await.unwrap_or_default();
        let _ = tell.send(Said::Whole(heading, body)).await;
        return;
    }
    let mut next = Some(Said::Head(heading));
    while let Some(said) = next {
        if tell.send(said).await.is_err() {
            return;
        }
        next = poll_fn(|context| flow.poll_piece(context)).await.map(Said::Piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_whoever_comes_alone_is_always_taken() {
        let large = Large { jobs: Vec::new(), turn: AtomicUsize::new(0), waiting: Arc::default() };
        let alone = large.place(2 * MAX_WAITING);
        assert!(alone.is_some() && large.place(1).is_none());
        drop(alone);
        let half = large.place(MAX_WAITING / 2);
        assert!(half.is_some() && large.place(MAX_WAITING / 2 + 1).is_none());
        assert!(large.place(MAX_WAITING / 2).is_some());
        drop(half);
        assert_eq!(large.waiting.load(Ordering::Relaxed), 0);
    }
}
