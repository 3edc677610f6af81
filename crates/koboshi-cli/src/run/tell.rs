//! What is said while a command waits: a countdown on a terminal, one line otherwise.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::cooldown::{Class, Happened, StartRefusal};
use koboshi::fault::Fault;
use koboshi::key::ScopeKey;
use koboshi_report::when::exact_time;
use koboshi_supervisor::protected::Teller;

use crate::clock;
use crate::say::Say;

/// Clears the line of a terminal and goes to its beginning.
const CLEAR: &str = "\r\x1b[K";

pub(super) struct Telling<'s> {
    say: &'s Say,
    terminal: bool,
    /// What was said last, so that it is not said every second.
    said: Option<(ScopeKey, Timestamp)>,
}

impl<'s> Telling<'s> {
    pub(super) fn new(say: &'s Say) -> Self {
        Self { say, terminal: std::io::stderr().is_terminal(), said: None }
    }

    fn write(text: &str) {
        // Nobody is left to tell where standard error is gone.
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl Teller for Telling<'_> {
    fn waits(&mut self, held: &StartRefusal, until: Timestamp, now: Timestamp) {
        let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        let left = self.say.phrases().countdown(self.say.lang, left.max(Duration::from_secs(1)));
        let key = &held.event.key;
        let args = [
            ("key", key.to_string()),
            ("until", time(self.say, until)),
            ("left", left),
            ("reason", reason(self.say, held)),
        ];
        let args: Vec<_> = args.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = self.say.text("run-waits", &args);
        if self.terminal {
            Self::write(&format!("{CLEAR}koboshi: {text}"));
        } else if self.said.as_ref() != Some(&(key.clone(), until)) {
            Self::write(&format!("koboshi: {text}\n"));
        }
        self.said = Some((key.clone(), until));
    }

    fn goes_on(&mut self) {
        if self.terminal {
            Self::write(CLEAR);
        }
        self.said = None;
    }

    fn again(&mut self, fault: &Fault) {
        let reason = self.say.text(&format!("reason-{}", fault.log_reason()), &[]);
        Self::write(&format!("koboshi: {}\n", self.say.text("run-again", &[("reason", &reason)])));
    }
}

/// Why something is held.
pub(super) fn reason(say: &Say, held: &StartRefusal) -> String {
    let class = match held.event.what {
        Happened::Set { class, .. }
        | Happened::Skipped { class, .. }
        | Happened::SkippedParked { class }
        | Happened::Parked { class, .. } => class,
        _ => Class::Operator,
    };
    if matches!(held.event.what, Happened::Turn { .. }) {
        return say.text("run-others-first", &[]);
    }
    say.text(&format!("reason-{}", class.name()), &[])
}

/// A time in the reader's zone.
pub(super) fn time(say: &Say, at: Timestamp) -> String {
    exact_time(say.lang, &at.to_zoned(clock::now().time_zone().clone()))
}
