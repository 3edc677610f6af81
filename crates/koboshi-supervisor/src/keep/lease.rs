//! The right to run an agent that may run on any machine.
//!
//! It is a lease in the store, which only one machine has at a time. The store's clock ends it, so machines need not agree on the time. The
//! supervisor renews it in the background and writes its end down for the shim, which stops the agent before that end: so an agent whose
//! supervisor hangs, or whose machine slept, is gone before another machine may start it. A machine keeps the lease between two runs, because
//! sessions and files are its own; it gives it back when its supervisor ends.

use std::time::Duration;

use jiff::Timestamp;
use koboshi_store::{Entry, EntryKind, Ledger, Query, since_boot};
use serde_json::Value;

use crate::folder::{Folder, Term};

/// Entries of the journal in which the last run of an agent is looked for.
const LOOKED_AT: usize = 50;
/// A term that is this much longer is worth writing down.
const STEP_MS: u64 = 200;

/// The lease of one agent.
#[derive(Debug)]
pub(super) struct AgentLease {
    agent: String,
    name: String,
    ttl: Duration,
    /// The fence under which we know what the agent did before.
    known: Option<u64>,
    /// The end that the shim knows.
    written_ms: u64,
}

/// The last run of an agent, wherever it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastRun {
    pub(super) started: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) ended_well: bool,
    pub(super) unfinished: bool,
}

impl AgentLease {
    pub(super) fn new(agent: &str, ttl: Duration) -> Self {
        Self { agent: agent.to_owned(), name: format!("agent {agent}"), ttl, known: None, written_ms: 0 }
    }

    /// Wants to have it; a run that was taken over has it already.
    pub(super) fn claim(&mut self, ledger: &Ledger, of_run: Option<Term>) {
        match of_run {
            Some(term) => {
                ledger.resume_claim(&self.name, term.fence, self.ttl);
                (self.known, self.written_ms) = (Some(term.fence), term.until_ms);
            }
            None => ledger.claim(&self.name, self.ttl),
        }
    }

    /// Until when we have it, if we do.
    pub(super) fn term(&self, ledger: &Ledger) -> Option<Term> {
        let (fence, left) = ledger.held_for(&self.name)?;
        let until = since_boot().saturating_add(left);
        Some(Term { fence, until_ms: u64::try_from(until.as_millis()).unwrap_or(u64::MAX) })
    }

    /// Tells the shim of a run that it may go on.
    pub(super) fn renew(&mut self, ledger: &Ledger, folder: &Folder) {
        let Some(term) = self.term(ledger) else { return };
        // A run under an earlier fence may not go on under a later one: another machine may have run it meanwhile.
        if term.until_ms >= self.written_ms.saturating_add(STEP_MS)
            && folder.term().is_some_and(|of_run| of_run.fence == term.fence)
            && folder.write_term(&term).is_ok()
        {
            self.written_ms = term.until_ms;
        }
    }

    /// A run was started with this term.
    pub(super) const fn started(&mut self, term: &Term) {
        self.written_ms = term.until_ms;
    }

    /// The run goes on without us, and so does its lease.
    pub(super) fn leave(&self, ledger: &Ledger) {
        ledger.leave(&self.name);
    }

    /// Another machine may have it.
    pub(super) fn give_up(&self, ledger: &Ledger) {
        ledger.give_up(&self.name);
    }

    /// What the agent did last, where another machine may have had it meanwhile: from the journal that all share.
    pub(super) fn news(&mut self, ledger: &Ledger, fence: u64) -> Option<LastRun> {
        if self.known == Some(fence) {
            return None;
        }
        let query = Query { agent: Some(self.agent.clone()), limit: LOOKED_AT, ..Query::default() };
        let entries = ledger.query(&query).ok()?;
        self.known = Some(fence);
        entries.iter().rev().find_map(last_run)
    }
}

/// The run whose end an entry tells.
fn last_run(entry: &Entry) -> Option<LastRun> {
    let data = entry.data.as_ref()?;
    data.get("exit_code")?;
    let ran = Duration::try_from_secs_f64(data.get("ran")?.as_f64()?).ok()?;
    let reason = data.get("reason").and_then(Value::as_str).unwrap_or_default();
    Some(LastRun {
        started: entry.at.saturating_sub(ran).ok()?,
        ended: entry.at,
        ended_well: entry.what == EntryKind::Run && entry.kind.as_deref() != Some("stopped"),
        unfinished: ["quota", "rate_limit", "overloaded", "network"].contains(&reason),
    })
}
