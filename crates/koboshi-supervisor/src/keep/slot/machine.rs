//! An agent that may run on any machine: whether it is this one.

use koboshi_store::Ledger;

use crate::folder::Term;

use super::{Common, Slot};

/// What holds an agent that another machine has.
const ELSEWHERE: &str = "another machine";

impl Slot {
    /// Wants the right to run it, or to go on with the run that was taken over.
    pub(in crate::keep) fn claim(&mut self, ledger: &Ledger) {
        let of_run = self.run.as_ref().and_then(|run| run.folder.term());
        if let Some(lease) = &mut self.lease {
            lease.claim(ledger, of_run);
        }
    }

    /// A run that goes on without us keeps its right; all others are given back.
    pub(in crate::keep) fn leave(&self, ledger: &Ledger) {
        if let (Some(lease), true) = (&self.lease, self.is_running()) {
            lease.leave(ledger);
        }
    }

    /// Gives the right to run it back.
    pub(in crate::keep) fn give_up(&self, ledger: &Ledger) {
        if let Some(lease) = &self.lease {
            lease.give_up(ledger);
        }
    }

    /// Lets a run go on for as long as this machine has the right to it.
    pub(super) fn renew(&mut self, common: &Common<'_>) {
        if let (Some(lease), Some(run)) = (&mut self.lease, &self.run) {
            lease.renew(common.knowledge.ledger(), &run.folder);
        }
    }

    /// The right to start it here, if one is needed. An error where another machine has it, or where that is not known yet.
    pub(super) fn term(
        &mut self,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> Result<Option<Term>, ()> {
        let Some(lease) = &mut self.lease else { return Ok(None) };
        let ledger = common.knowledge.ledger();
        let Some(term) = lease.term(ledger) else {
            if self.held.as_deref() != Some(ELSEWHERE) {
                log(&format!("{}: waits, because only one machine runs it", self.agent.name));
                (self.held, self.is_parked) = (Some(ELSEWHERE.to_owned()), false);
            }
            return Err(());
        };
        if self.held.as_deref() == Some(ELSEWHERE) {
            self.held = None;
        }
        if let Some(last) = lease.news(ledger, term.fence)
            && self.last_end.is_none_or(|known| known < last.ended)
        {
            (self.last_start, self.last_end) = (Some(last.started), Some(last.ended));
            (self.ended_well, self.unfinished) = (last.ended_well, last.unfinished);
            // What another machine did last may mean that nothing is to be started.
            return Err(());
        }
        Ok(Some(term))
    }
}
