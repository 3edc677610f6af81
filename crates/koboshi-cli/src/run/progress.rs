//! Shows that a command waits: a countdown on a terminal, one line otherwise.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::cooldown::{Class, CooldownChange, StartRefusal};
use koboshi::fault::Fault;
use koboshi::key::ScopeKey;
use koboshi_report::when::exact_time;
use koboshi_store::Ledger;
use koboshi_supervisor::knowledge::is_parked;
use koboshi_supervisor::protected::WaitObserver;

use crate::clock;
use crate::say::Say;

/// Clears the line of a terminal and goes to its beginning.
const CLEAR: &str = "\r\x1b[K";

pub(super) struct WaitReporter<'s> {
    say: &'s Say,
    /// What is known of the keys that hold a start.
    ledger: &'s Ledger,
    /// What a printed command needs to reach the same store.
    flags: String,
    terminal: bool,
    /// The key of a run without a name, which means nothing to its reader.
    pub(super) unnamed: Option<ScopeKey>,
    /// What was written last, so that it is not repeated every second.
    last: Option<(ScopeKey, Timestamp)>,
}

impl<'s> WaitReporter<'s> {
    pub(super) fn new(say: &'s Say, ledger: &'s Ledger, flags: String) -> Self {
        Self { say, ledger, flags, terminal: std::io::stderr().is_terminal(), unnamed: None, last: None }
    }

    /// Why a start is refused.
    pub(super) fn reason(&self, held: &StartRefusal) -> String {
        let class = match held.event.what {
            CooldownChange::Set { class, .. }
            | CooldownChange::Skipped { class, .. }
            | CooldownChange::SkippedParked { class }
            | CooldownChange::Parked { class, .. } => class,
            _ => Class::Operator,
        };
        if matches!(held.event.what, CooldownChange::Turn { .. }) {
            return self.say.text("run-others-first", &[]);
        }
        let known = self.ledger.cooldown(&held.event.key).and_then(|known| known.rest.clone());
        self.because(class.name(), known.as_ref().map_or("", |rest| &rest.detail))
    }

    /// A reason by its name; where no word fits, what was seen says more.
    fn because(&self, name: &str, detail: &str) -> String {
        let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
        if name == Class::Error.name() && !detail.is_empty() {
            return detail;
        }
        self.say.text(&format!("reason-{name}"), &[])
    }

    /// The command that ends what holds a key.
    pub(super) fn resume_command(&self, key: &ScopeKey) -> String {
        format!("koboshi resume {}{}", crate::shell::word(&key.to_string()), self.flags)
    }

    /// A key as its reader knows it.
    fn shown(&self, key: &ScopeKey) -> String {
        if self.unnamed.as_ref() == Some(key) { self.say.text("run-unnamed", &[]) } else { key.to_string() }
    }

    /// What the next run of a command that could not be started meets.
    pub(super) fn next_run(&self, held: &StartRefusal) -> String {
        let key = &held.event.key;
        let (name, command) = (key.to_string(), self.resume_command(key));
        match held.until.filter(|_| !is_parked(held)) {
            Some(until) => {
                let until = time(self.say, until);
                self.say.text("run-next-rests", &[("key", &name), ("until", &until), ("command", &command)])
            }
            None => self.say.text("run-next-parked", &[("key", &name), ("command", &command)]),
        }
    }

    fn write(text: &str) {
        // Where standard error is gone, no one reads it.
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl WaitObserver for WaitReporter<'_> {
    fn waits(&mut self, held: &StartRefusal, until: Timestamp, now: Timestamp) {
        let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        let left = self.say.phrases().countdown(self.say.lang, left.max(Duration::from_secs(1)));
        let key = &held.event.key;
        let args = [
            ("key", self.shown(key)),
            ("until", time(self.say, until)),
            ("left", left),
            ("reason", self.reason(held)),
        ];
        let args: Vec<_> = args.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = self.say.text("run-waits", &args);
        if self.terminal {
            Self::write(&format!("{CLEAR}koboshi: {text}"));
        } else if self.last.as_ref() != Some(&(key.clone(), until)) {
            Self::write(&format!("koboshi: {text}\n"));
        }
        self.last = Some((key.clone(), until));
    }

    fn goes_on(&mut self) {
        if self.terminal {
            Self::write(CLEAR);
        }
        self.last = None;
    }

    fn again(&mut self, fault: &Fault) {
        let reason = self.because(fault.log_reason(), &fault.detail);
        Self::write(&format!("koboshi: {}\n", self.say.text("run-again", &[("reason", &reason)])));
    }

    fn failed(&mut self, fault: &Fault, held: Option<&StartRefusal>) {
        let reason = self.because(fault.log_reason(), &fault.detail);
        let mut args = vec![("reason", reason)];
        let id = match held {
            None => "run-failed",
            Some(held) => {
                let key = &held.event.key;
                args.extend([("key", key.to_string()), ("command", self.resume_command(key))]);
                match held.until.filter(|_| !is_parked(held)) {
                    Some(until) => {
                        args.push(("until", time(self.say, until)));
                        "run-failed-rests"
                    }
                    None => "run-failed-parked",
                }
            }
        };
        let args: Vec<_> = args.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Self::write(&format!("koboshi: {}\n", self.say.text(id, &args)));
    }
}

/// A time in the reader's zone.
pub(super) fn time(say: &Say, at: Timestamp) -> String {
    exact_time(say.lang, &at.to_zoned(clock::now().time_zone().clone()))
}
