//! An agent whose runs cannot be read or written on disk: it is set aside, and the others go on.
//!
//! Something of it may still run, so it is not started: no run may begin beside another one. What is on disk is read again every minute,
//! and at once when an operator starts the agent.

use std::io;
use std::time::Duration;

use koboshi::time::Moment;
use koboshi_store::Clock;

use super::{Common, Slot};

/// How often it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// An agent that is set aside.
#[derive(Debug)]
pub(super) struct Aside {
    /// Why, for `status`; logged once.
    pub(super) why: String,
    /// When it is tried again.
    retry: Moment,
}

impl Slot {
    /// Takes over what an earlier supervisor left, and the right to run the agent; sets it aside where that is not possible.
    pub(in crate::keep) fn take_over(&mut self, common: &Common<'_>, log: &mut dyn FnMut(&str)) {
        match self.adopt(common, log) {
            Ok(()) => {
                if self.aside.take().is_some() {
                    log(&format!("{}: its runs can be read again", self.agent.name));
                }
                self.claim(common.knowledge.ledger());
            }
            Err(error) => self.set_aside(&error, common, log),
        }
    }

    /// Does not start it as long as its runs cannot be read.
    pub(super) fn set_aside(&mut self, error: &io::Error, common: &Common<'_>, log: &mut dyn FnMut(&str)) {
        let why = error.to_string();
        let is_known = self.aside.as_ref().is_some_and(|aside| aside.why == why);
        if !is_known {
            let name = &self.agent.name;
            let text = format!(
                "{name}: is set aside, the other agents go on: {why}. Mend that folder, or remove it when nothing of the run is left, \
                 then: koboshi start {name}"
            );
            log(&format!("[WARNING] {text}"));
            common.knowledge.note_aside(&self.agent.account(None).ladder, name, &text);
        }
        self.aside = Some(Aside { why, retry: common.clock.moment().after(RETRY_INTERVAL) });
    }

    /// Tries it again when it is time; returns whether it runs.
    pub(in crate::keep) fn retry(&mut self, common: &Common<'_>, log: &mut dyn FnMut(&str)) -> bool {
        if self.aside.as_ref().is_none_or(|aside| aside.retry > common.clock.moment()) {
            return false;
        }
        self.take_over(common, log);
        self.is_running()
    }

    /// An operator wants it: it is tried again at once.
    pub(super) fn retry_now(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.retry = Moment::START;
        }
    }
}
