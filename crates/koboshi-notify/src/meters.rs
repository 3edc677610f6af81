//! How the channels fare, as metrics. Only the process that sends has numbers: over a fleet they add up to the truth.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use koboshi::notice::{Book, ChannelState};

/// The channels as they were in the last turn.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<Vec<ChannelState>>);

impl Meters {
    pub(crate) fn show(&self, book: Option<&Book>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = book.map(Book::channels).unwrap_or_default();
    }

    /// Another process sends.
    pub(crate) fn clear(&self) {
        self.show(None);
    }

    /// In Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let channels = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        if channels.is_empty() {
            return text;
        }
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&ChannelState) -> u64| {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for one in &channels {
                // The name of a channel has letters, digits, `_` and `-`.
                let _ = writeln!(text, "{name}{suffix}{{channel=\"{}\"}} {}", one.channel, value(one));
            }
        };
        family("koboshi_notices_sent", "counter", "Messages that a channel took.", &|one| one.sent);
        let help = "How often a channel did not take a message.";
        family("koboshi_notices_failed", "counter", help, &|one| one.failed);
        let help = "Notices that a channel did not get yet.";
        family("koboshi_notices_waiting", "gauge", help, &|one| count(one.waiting));
        let help = "1 where a channel did not take the last message.";
        family("koboshi_notices_failing", "gauge", help, &|one| u64::from(one.trouble.is_some()));
        text
    }
}
