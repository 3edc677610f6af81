//! Reports a supervisor to its store, for the page of nodes: on a thread of its own, because a store may block.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use koboshi_config::Config;
use koboshi_gateway::config_digits;
use koboshi_store::supervisors::{Supervisor, report};
use koboshi_store::{Clock, Store, SystemClock};
use koboshi_supervisor::keep::AgentMeters;
use sha2::{Digest, Sha256};

use crate::state;

/// How often it reports where nothing changes.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often it looks whether the number of running agents, or the config, has changed.
const TICK: Duration = Duration::from_secs(1);
/// How long a stop waits for the last report.
const LAST_REPORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Reports until it is dropped.
pub(crate) struct SupervisorPresence {
    digits: Arc<Mutex<String>>,
    stop: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl SupervisorPresence {
    /// Begins to report a supervisor that keeps its runs in this folder.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        node: String,
        runs: &Path,
        config: &Config,
        meters: Arc<AgentMeters>,
    ) -> std::io::Result<Self> {
        let digits = Arc::new(Mutex::new(config_digits(config)));
        let now = SystemClock.wall();
        let supervisor = Supervisor {
            node,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: now,
            at: now,
            stopped: false,
            agents: 0,
            running: 0,
            config: String::new(),
        };
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        let mut reporter =
            Reporter { store, place: place(runs), supervisor, digits: Arc::clone(&digits), meters };
        std::thread::Builder::new().name("koboshi-presence".to_owned()).spawn(move || {
            reporter.work(&stopped);
            // The waiting caller may want the store for itself.
            drop(reporter);
            let _ = end.send(());
        })?;
        Ok(Self { digits, stop: Some(stop), ended })
    }

    /// Another config is in force.
    pub(crate) fn adopt(&self, config: &Config) {
        *self.digits.lock().unwrap_or_else(PoisonError::into_inner) = config_digits(config);
    }
}

impl Drop for SupervisorPresence {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.ended.recv_timeout(LAST_REPORT_TIMEOUT);
    }
}

/// A machine with a folder of runs, in a few digits: the path itself is no matter of other machines.
fn place(runs: &Path) -> String {
    let runs = std::path::absolute(runs).unwrap_or_else(|_| runs.to_owned());
    let hash = Sha256::digest(runs.as_os_str().as_encoded_bytes());
    let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{digits}", state::machine())
}

struct Reporter {
    store: Arc<dyn Store>,
    place: String,
    supervisor: Supervisor,
    digits: Arc<Mutex<String>>,
    meters: Arc<AgentMeters>,
}

impl Reporter {
    fn work(&mut self, stopped: &Receiver<()>) {
        let mut last = None;
        loop {
            let now = SystemClock.moment();
            let is_due = last.is_none_or(|at| now.since(at) >= INTERVAL);
            // A store that cannot be written now is written with the next tick.
            if (self.poll() || is_due) && self.report() {
                last = Some(now);
            }
            if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                self.supervisor.stopped = true;
                self.report();
                return;
            }
        }
    }

    /// Whether something else is to be reported than before.
    fn poll(&mut self) -> bool {
        let (agents, running) = self.meters.counts();
        let config = self.digits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = (self.supervisor.agents, self.supervisor.running, &self.supervisor.config);
        let is_other = before != (agents, running, &config);
        (self.supervisor.agents, self.supervisor.running, self.supervisor.config) = (agents, running, config);
        is_other
    }

    fn report(&mut self) -> bool {
        let now = SystemClock.wall();
        self.supervisor.at = now;
        report(&*self.store, &self.place, &self.supervisor, now).is_ok()
    }
}
