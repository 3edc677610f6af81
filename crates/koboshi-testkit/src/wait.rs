//! Waiting for what other threads, processes and servers do.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Generous: a busy machine must not fail a test.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// Polls until a value is there; names what was waited for if it does not come.
///
/// # Panics
/// It does not come before the deadline.
#[expect(clippy::disallowed_methods, reason = "real processes have no virtual time: polled with a deadline")]
pub fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "waited {DEADLINE:?} without success: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets others have the processor for a moment.
#[expect(clippy::disallowed_methods, reason = "nothing depends on how long it is")]
pub fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Sends a signal such as `-STOP` to a child.
///
/// # Panics
/// It cannot be sent.
pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}
