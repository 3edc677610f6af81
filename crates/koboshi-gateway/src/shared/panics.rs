//! Threads that go on after a panic.
//!
//! A thread that ends without a word leaves a process that looks well and no longer does its work: no service manager restarts it. So a panic
//! is logged, and the thread begins its work once more after a pause.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::json;

use crate::observe::log::{Level, Log};

/// The pause before work that failed is begun once more.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Repeats an attempt until it is done. A panic is logged; what else fails is logged by the attempt.
pub(crate) fn despite_panics(log: &Log, text: &str, mut attempt: impl FnMut() -> bool) {
    while caught(log, text, &mut attempt) != Some(true) {
        pause();
    }
}

/// The result of an attempt; none after a panic, which is logged.
pub(crate) fn caught<T>(log: &Log, text: &str, attempt: impl FnOnce() -> T) -> Option<T> {
    let panic = match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(result) => return Some(result),
        Err(panic) => panic,
    };
    let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    log.line(Level::Error, text, &json!({"thread": name, "panic": message}));
    None
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own that would fail again at once")]
fn pause() {
    std::thread::sleep(RESTART_PAUSE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_is_done_again_until_it_is_done() {
        let mut times = 0;
        despite_panics(&Log::silent(), "it failed", || {
            times += 1;
            assert!(times > 2, "not yet");
            true
        });
        assert_eq!(times, 3);
    }
}
