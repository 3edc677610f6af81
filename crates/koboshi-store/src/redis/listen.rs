//! Listens to two channels of the server on a thread of its own, and begins again when the connection breaks.
//!
//! What is announced is a hint, never the truth: messages are lost while the connection is away. So the listener learns when a subscription
//! begins, and looks for itself then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::RedisResult;

use super::RedisAccess;
use crate::error::StoreError;
use crate::session::{Listening, News, NewsHandler};

/// The first pause before the next try to subscribe, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// A thread that listens; it ends soon after this is dropped.
struct Listener {
    is_closed: Arc<AtomicBool>,
}

impl Listening for Listener {}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Calls this with everything that is announced for sessions, with what is said to this process, and whenever a subscription begins.
pub(super) fn listen(
    shared: Arc<RedisAccess>,
    process: &str,
    heard: NewsHandler,
) -> Result<Box<dyn Listening>, StoreError> {
    let told = shared.names.told(process);
    let is_closed = Arc::new(AtomicBool::new(false));
    let (closed, place) = (Arc::clone(&is_closed), shared.handle.place().to_owned());
    let listen = move || {
        let mut pause = PAUSE.0;
        while !closed.load(Ordering::Relaxed) {
            let mut was_subscribed = false;
            let _ = subscription(&shared, &told, &closed, |news| {
                was_subscribed = true;
                heard(news);
            });
            pause = if was_subscribed { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
            std::thread::park_timeout(pause);
        }
    };
    let started = std::thread::Builder::new().name("koboshi-listen".to_owned()).spawn(listen);
    started.map_err(|error| StoreError::Failed { place, doing: "start a thread", why: error.to_string() })?;
    Ok(Box::new(Listener { is_closed }))
}

/// One subscription, until it breaks or is closed.
fn subscription(
    shared: &RedisAccess,
    told: &str,
    closed: &AtomicBool,
    mut heard: impl FnMut(News<'_>),
) -> RedisResult<()> {
    let mut connection = shared.handle.connect()?;
    let mut channel = connection.as_pubsub();
    channel.subscribe(&[shared.names.announced.as_str(), told])?;
    heard(News::Begun);
    while !closed.load(Ordering::Relaxed) {
        match channel.get_message() {
            Ok(message) if message.get_channel_name() == told => {
                heard(News::Told(message.get_payload_bytes()));
            }
            Ok(message) => heard(News::Written(&String::from_utf8_lossy(message.get_payload_bytes()))),
            // Silence: is it still there?
            Err(error) if error.is_timeout() => drop(channel.ping::<redis::Value>()?),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
