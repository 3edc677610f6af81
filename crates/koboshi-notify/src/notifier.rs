//! The thread of the notifications, and how a program starts, changes and ends it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi_config::Config;
use koboshi_config::notify::ChannelConfig;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_store::{Clock, Store, SystemClock};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::channel::{Letter, SendError, send};
use crate::http::Http;
use crate::meters::Meters;
use crate::post::{Post, words};
use crate::routes::RouteKeys;

/// How often the state is read.
const TURN: Duration = Duration::from_millis(500);
/// How long a stop waits for messages that are on their way; what did not arrive is sent by the next process.
const LAST: Duration = Duration::from_millis(1500);
/// How long a stop waits for the thread behind that. A store that hangs holds it for longer: then it is left, and its lease ends by itself.
const LAST_WRITE: Duration = Duration::from_millis(500);

/// How a line for the log is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It is well.
    Info,
    /// An operator should know.
    Warning,
}

/// Reads the routes of the gateways that use a store.
pub type ReadRoutes = Arc<dyn Fn(&dyn Store, Timestamp) -> Option<Vec<RouteKeys>> + Send + Sync>;

/// What notices need of the program around them.
#[derive(Clone)]
pub struct Surroundings {
    /// The store that is shared.
    pub store: Arc<dyn Store>,
    /// The name of this process, for people.
    pub node: String,
    /// Sends to webhooks.
    pub http: Arc<dyn Http>,
    /// The command that resumes a key, as a person pastes it into a shell: it must reach this store.
    pub resume: Arc<dyn Fn(&str) -> String + Send + Sync>,
    /// The routes of the gateways that use this store; none where they cannot be read now.
    pub routes: ReadRoutes,
    /// Where it is logged that a channel fails.
    pub log: Arc<dyn Fn(Tone, &str) + Send + Sync>,
    /// Time zones by name.
    pub zones: TimeZoneDatabase,
    /// The zone of this machine.
    pub zone: TimeZone,
    /// The language where neither channel nor config names one.
    pub lang: Lang,
}

impl Surroundings {
    /// The zone of a channel.
    pub(crate) fn zone_of(&self, channel: &ChannelConfig) -> TimeZone {
        let named = channel.zone.as_deref().and_then(|name| self.zones.get(name).ok());
        named.unwrap_or_else(|| self.zone.clone())
    }
}

/// Sends notices until it is dropped.
pub struct Notifications {
    around: Surroundings,
    meters: Arc<Meters>,
    running: Mutex<Option<Running>>,
}

struct Running {
    config: Config,
    /// Dropped to stop it.
    stop: oneshot::Sender<()>,
    /// Hears of the end of the thread: the other side is dropped then.
    ended: Receiver<()>,
}

impl Notifications {
    /// Begins to send what this config asks for. Without channels there is no thread.
    ///
    /// # Errors
    /// The machine cannot start a thread.
    pub fn start(around: Surroundings, config: &Config) -> std::io::Result<Self> {
        let this = Self { around, meters: Arc::default(), running: Mutex::new(None) };
        this.adopt(config)?;
        Ok(this)
    }

    /// How the channels fare, for a page of metrics in Prometheus' text format; empty where another process sends.
    #[must_use]
    pub fn metrics(&self) -> Box<dyn Fn() -> String + Send + Sync> {
        let meters = Arc::clone(&self.meters);
        Box::new(move || meters.text())
    }

    /// Goes by another config from now on.
    ///
    /// # Errors
    /// The machine cannot start a thread.
    pub fn adopt(&self, config: &Config) -> std::io::Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_some_and(|one| one.config == *config) {
            return Ok(());
        }
        // The one before is not waited for here: it may hang in its store, and who calls this must go on.
        let before = running.take().map(|one| {
            drop(one.stop);
            one.ended
        });
        if config.channels.is_empty() {
            return Ok(());
        }
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = channel();
        let (around, settings, meters) = (self.around.clone(), config.clone(), Arc::clone(&self.meters));
        let thread = std::thread::Builder::new().name("koboshi-notify".to_owned()).spawn(move || {
            let _end: Sender<()> = end;
            // It gives its lease back first.
            let _ = before.map(|before| before.recv());
            work(around, settings, meters, stopped);
        });
        // It ends by itself.
        drop(thread?);
        *running = Some(Running { config: config.clone(), stop, ended });
        Ok(())
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { stop, ended, .. }) = running {
            drop(stop);
            // Its end shows as a sender that is gone.
            let _ = ended.recv_timeout(LAST + LAST_WRITE);
        }
    }
}

fn work(around: Surroundings, config: Config, meters: Arc<Meters>, stopped: oneshot::Receiver<()>) {
    let log = Arc::clone(&around.log);
    let made = Phrases::new().map_err(|error| error.to_string()).and_then(|phrases| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| (phrases, runtime)).map_err(|error| error.to_string())
    });
    match made {
        Ok((phrases, runtime)) => {
            runtime.block_on(send_until(Post::new(around, config, phrases, meters), stopped))
        }
        Err(why) => log(Tone::Warning, &format!("notices cannot be sent: {why}")),
    }
}

async fn send_until(mut post: Post, mut stopped: oneshot::Receiver<()>) {
    let mut sends = FuturesUnordered::new();
    loop {
        match post.turn() {
            Some(due) => sends.extend(due),
            // Another process sends them, with the same ids.
            None => sends.clear(),
        }
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            Some(outcome) = sends.next(), if !sends.is_empty() => post.arrived(outcome),
            () = sleep(TURN) => {}
        }
    }
    let last = async {
        while let Some(outcome) = sends.next().await {
            post.arrived(outcome);
        }
    };
    // What takes longer stays in the book.
    let _ = timeout(LAST, last).await;
    post.close();
}

/// Sends a test notice to one channel, once.
///
/// # Errors
/// Why it did not arrive.
pub fn test(
    around: &Surroundings,
    config: &Config,
    name: &str,
    channel: &ChannelConfig,
) -> Result<(), SendError> {
    let failed = |error: &dyn std::fmt::Display| SendError::new(error.to_string());
    let phrases = Phrases::new().map_err(|error| failed(&error))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
    let now = SystemClock.wall();
    let letter = Letter::test(name, &words(&phrases, around, config, channel), now);
    let taken = runtime.block_on(send(channel, &letter, &around.http, now))?;
    taken.except.map_or(Ok(()), |why| Err(SendError::new(why)))
}

#[cfg(test)]
mod tests;
