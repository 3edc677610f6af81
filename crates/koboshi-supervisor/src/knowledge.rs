//! What rests, here and elsewhere: the ledger that everybody shares, and the core's table with what is this process's own.
//!
//! Before every decision the records of its keys are taken over from the ledger; what a decision changed is handed to it. The right to go
//! first after a rest is a lease, so that of all processes only one does.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::chance::Seed;
use koboshi::cooldown::{
    CooldownEvent, CooldownPolicy, CooldownPolicyError, Cooldowns, StartRefusal, StartRefusalReason,
};
use koboshi::fault::Fault;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::supervise::{Ladder, Learned, Outcome, Permit};
use koboshi_store::{Clock, Entry, EntryKind, Ledger, SystemClock};
use serde_json::{Value, json};

/// How long the right to go first holds without being renewed.
const PROBE_TTL: Duration = Duration::from_secs(30);
/// So long the store is waited for to give that right; then it is asked for again with the next look.
const LONGEST_ASK: Duration = Duration::from_millis(200);

/// What rests, and who may start.
pub struct Knowledge {
    ledger: Arc<Ledger>,
    cooldowns: Mutex<Cooldowns>,
    policy: CooldownPolicy,
    /// Keys that only this process knows.
    private: HashSet<ScopeKey>,
    clock: SystemClock,
}

/// A run, as the journal tells it.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The agent, as `name/project`, or the program.
    pub agent: &'a str,
    /// The line of the output that decided, redacted.
    pub line: Option<&'a str>,
    /// Exit code as a shell shows it.
    pub code: i32,
}

impl Knowledge {
    /// What this ledger knows, under this policy.
    ///
    /// # Errors
    /// The policy makes no sense.
    pub fn new(ledger: Arc<Ledger>, policy: CooldownPolicy) -> Result<Self, CooldownPolicyError> {
        let cooldowns = Mutex::new(Cooldowns::new(policy)?);
        Ok(Self { ledger, cooldowns, policy, private: HashSet::new(), clock: SystemClock })
    }

    /// This key is nobody else's business.
    #[must_use]
    pub fn keeping_private(mut self, key: ScopeKey) -> Self {
        self.private.insert(key);
        self
    }

    /// How long things rest.
    #[must_use]
    pub const fn policy(&self) -> &CooldownPolicy {
        &self.policy
    }

    /// Wall time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    fn table(&self) -> MutexGuard<'_, Cooldowns> {
        self.cooldowns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what others know of these keys.
    fn refresh<'t>(&'t self, ladder: &Ladder, now: Timestamp) -> MutexGuard<'t, Cooldowns> {
        let mut table = self.table();
        for key in ladder.keys().filter(|key| !self.private.contains(*key)) {
            if let Some(known) = self.ledger.cooldown(key) {
                table.adopt(key, &known, now);
            }
        }
        table
    }

    /// Hands over what was changed here.
    fn share(&self, table: &Cooldowns, keys: &[ScopeKey]) {
        for key in keys.iter().filter(|key| !self.private.contains(*key)) {
            let Some(record) = table.record(key) else { continue };
            self.ledger.update_cooldown(key, |known| {
                let mut ours = record.clone();
                ours.reconcile(known);
                *known = ours;
            });
        }
    }

    /// Why an agent may not start now, if so.
    ///
    /// # Errors
    /// One of its keys rests or is parked, or others go first.
    pub fn look(&self, ladder: &Ladder) -> Result<(), StartRefusal> {
        let now = self.now();
        may_ask(&self.refresh(ladder, now), ladder, now)
    }

    /// May an agent start? Asks for the right to go first where that is needed, and waits for it a moment.
    ///
    /// # Errors
    /// One of its keys rests or is parked, or others go first.
    pub fn start(&self, ladder: &Ladder) -> Result<Permit, StartRefusal> {
        let now = self.now();
        let due: Vec<ScopeKey> = {
            let table = self.refresh(ladder, now);
            may_ask(&table, ladder, now)?;
            // An agent has one supervisor: nobody else could go first.
            ladder
                .due(&table, now)
                .into_iter()
                .filter(|key| key.level() != ScopeLevel::Agent)
                .cloned()
                .collect()
        };
        for key in &due {
            self.ledger.claim(&lease(key), PROBE_TTL);
        }
        let begun = self.clock.moment();
        while due.iter().any(|key| self.ledger.held(&lease(key)).is_none())
            && self.clock.moment().since(begun) < LONGEST_ASK
        {
            // The ledger's own thread asks the store; a flush is over when it has.
            let _ = self.ledger.flush(Duration::from_millis(50));
        }
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let may = |key: &ScopeKey| !due.contains(key) || self.ledger.held(&lease(key)).is_some();
        let started = ladder.start(&mut table, may, now, Seed::random());
        if started.as_ref().is_err_and(|held| held.why != StartRefusalReason::Probe) {
            due.iter().for_each(|key| self.ledger.give_up(&lease(key)));
            let keys: Vec<_> = ladder.agent.iter().cloned().collect();
            self.share(&table, &keys);
        }
        if let Ok(permit) = &started {
            self.tell(&permit.events);
        }
        started
    }

    /// A run has ended.
    pub fn ended(
        &self,
        ladder: &Ladder,
        permit: &Permit,
        outcome: &Outcome,
        ran: Duration,
        about: &About<'_>,
    ) -> Learned {
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let learned = ladder.ended(&mut table, permit, outcome, ran, now, Seed::random());
        self.share(&table, &learned.keys);
        drop(table);
        permit.probes.iter().for_each(|key| self.ledger.give_up(&lease(key)));
        self.note_end(ladder, outcome, ran, about);
        self.tell(&learned.events);
        learned
    }

    /// A run that goes on has met a limit.
    pub fn refused(&self, ladder: &Ladder, fault: &Fault, started: Timestamp, agent: &str) -> Learned {
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let learned = ladder.refused(&mut table, fault, started, now, Seed::random());
        self.share(&table, &learned.keys);
        drop(table);
        if !learned.keys.is_empty() {
            let data = json!({"rule": &*fault.evidence.rule, "running": true});
            self.note(EntryKind::Fault, fault.kind.name(), ladder.rung(fault), agent, &fault.detail, data);
        }
        self.tell(&learned.events);
        learned
    }

    fn note_end(&self, ladder: &Ladder, outcome: &Outcome, ran: Duration, about: &About<'_>) {
        let mut data = json!({"exit_code": about.code, "ran": ran.as_secs_f64()});
        match outcome {
            Outcome::Failed(fault) => {
                if let Value::Object(fields) = &mut data {
                    fields.insert("rule".to_owned(), json!(&*fault.evidence.rule));
                    fields.insert("reason".to_owned(), json!(fault.log_reason()));
                    fields.insert("line".to_owned(), json!(about.line));
                }
                let said =
                    if fault.detail.is_empty() { about.line.unwrap_or_default() } else { &fault.detail };
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                let text = format!("{}: ended with exit code {}{said}", about.agent, about.code);
                self.note(EntryKind::Fault, fault.kind.name(), ladder.rung(fault), about.agent, &text, data);
            }
            Outcome::Good | Outcome::Idle | Outcome::Stopped => {
                let kind = match outcome {
                    Outcome::Stopped => "stopped",
                    Outcome::Idle => "idle",
                    _ => "succeeded",
                };
                let text = format!("{}: ended with exit code {}", about.agent, about.code);
                self.note(EntryKind::Run, kind, ladder.agent.as_ref(), about.agent, &text, data);
            }
        }
    }

    /// What happened to rests is noted; that somebody had to wait is not, or every look would be.
    fn tell(&self, events: &[CooldownEvent]) {
        for event in
            events.iter().filter(|event| event.level() != "DEBUG" && !self.private.contains(&event.key))
        {
            let agent = if event.key.level() == ScopeLevel::Agent { event.key.name() } else { "" };
            self.note(
                EntryKind::Cooldown,
                "supervisor",
                Some(&event.key),
                agent,
                &event.to_string(),
                Value::Null,
            );
        }
    }

    fn note(
        &self,
        what: EntryKind,
        kind: &'static str,
        key: Option<&ScopeKey>,
        agent: &str,
        text: &str,
        data: Value,
    ) {
        self.ledger.journal(Entry {
            kind: Some(kind.into()),
            key: key.filter(|key| !self.private.contains(*key)).cloned(),
            agent: (!agent.is_empty()).then(|| agent.to_owned()),
            data: (!data.is_null()).then_some(data),
            ..Entry::new(self.now(), self.ledger.node(), what, text.to_owned())
        });
    }

    /// Whether a key is this process's own.
    #[must_use]
    pub fn is_private(&self, key: &ScopeKey) -> bool {
        self.private.contains(key)
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// The lease of the right to go first.
fn lease(key: &ScopeKey) -> String {
    format!("probe {key}")
}

/// Why an agent may not start, as if it had the right to go first.
fn may_ask(table: &Cooldowns, ladder: &Ladder, now: Timestamp) -> Result<(), StartRefusal> {
    ladder.look(table, |_| true, now).map(|_| ())
}

/// Whether a person must act.
#[must_use]
pub fn is_parked(held: &StartRefusal) -> bool {
    held.why == StartRefusalReason::Parked
}
