//! Threads for requests with large bodies.
//!
//! They have a lower priority than the others, so that small requests also go first where processors are few.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::Worker;
use crate::http::client::TICK;
use crate::shared::core_state::CoreState;
use crate::shared::large::{Job, LargeCores};

/// The niceness of these threads: low enough that another thread that wakes up need not wait for the end of a time slice, and still a tenth of a
/// processor that others would use up.
const NICENESS: i32 = 10;

/// Starts the threads.
pub(super) fn start(
    count: usize,
    end: &watch::Receiver<bool>,
    worker: impl Fn() -> Worker,
) -> io::Result<Arc<LargeCores>> {
    let mut all = Vec::new();
    for number in 0..count {
        let (give, mut given) = mpsc::unbounded_channel();
        let (end, name) = (end.clone(), format!("koboshi-large-{number}"));
        // Not joined: a thread that is reading a large body when the gateway stops is abandoned.
        worker().spawn(name, async move |core| serve_jobs(core, &mut given, &end).await)?;
        all.push(give);
    }
    Ok(Arc::new(LargeCores::of(all)))
}

/// One core for large requests: runs its jobs until the gateway has stopped.
async fn serve_jobs(
    core: Rc<CoreState>,
    given: &mut mpsc::UnboundedReceiver<Job>,
    end: &watch::Receiver<bool>,
) {
    // Fails only where the system has no priorities.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let mut gone = end.clone();
    let mut over = pin!(async move { while gone.changed().await.is_ok() {} });
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            job = given.recv() => {
                let Some(job) = job else { return };
                tokio::task::spawn_local(job(Rc::clone(&core), end.clone()));
            }
            () = &mut over => return,
            // Only while a request is served.
            _ = ticks.tick(), if Rc::strong_count(&core) > 1 => core.upstream.tidy(),
        }
    }
}
