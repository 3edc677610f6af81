//! The cooldowns that this process knows: the ledger that all processes share, and the core's table with the keys of this process alone.
//!
//! Before every decision the records of its keys are copied from the ledger; a decision's changes are written back. The right to probe first
//! after a cooldown is a lease, so that only one of all processes does.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::chance::Seed;
use koboshi::cooldown::{
    Class, CooldownEvent, CooldownPolicy, CooldownPolicyError, Cooldowns, Failure, StartRefusal,
    StartRefusalReason,
};
use koboshi::fault::Fault;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::supervise::{Ladder, Outcome, Permit, RunEffects};
use koboshi_store::{Clock, Entry, EntryKind, Ledger, SystemClock};
use serde_json::{Value, json};

use crate::first::FirstStarts;

/// What is cooling down, and which agent may start.
pub struct Knowledge {
    ledger: Arc<Ledger>,
    cooldowns: Mutex<Cooldowns>,
    policy: CooldownPolicy,
    /// Keys that only this process knows.
    private: HashSet<ScopeKey>,
    /// Other machines use the same store.
    is_fleet: bool,
    clock: SystemClock,
    first: FirstStarts,
    on_fault: Option<Box<OnFault>>,
}

/// Receives faults of runs.
type OnFault = dyn Fn(&RunFault<'_>) + Send + Sync;

/// A fault of a run, for a log of errors.
#[derive(Debug, Clone, Copy)]
pub struct RunFault<'a> {
    /// The agent, as `name/project`.
    pub agent: &'a str,
    /// What failed.
    pub fault: &'a Fault,
    /// The sentence of the journal, redacted.
    pub text: &'a str,
    /// The account that it ran with.
    pub account: Option<&'a str>,
    /// Exit code as a shell shows it; none while it still runs.
    pub exit_code: Option<i32>,
}

impl RunFault<'_> {
    /// Its fields in a log of errors: those of a failed attempt, with what a run has in place of a request.
    #[must_use]
    pub fn facts(&self, code_prefix: &str) -> Value {
        let Self { fault, agent, account, exit_code, .. } = self;
        json!({
            "method": "run",
            "errorType": fault.kind.name(),
            "errorCode": fault.kind.code(code_prefix),
            "retryable": fault.advice.later,
            "agent": agent,
            "account": account,
            "exitCode": exit_code,
            "rule": &*fault.evidence.rule,
        })
    }
}

/// A run, as the journal describes it.
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
        Ok(Self {
            ledger,
            cooldowns,
            policy,
            private: HashSet::new(),
            is_fleet: false,
            clock: SystemClock,
            first: FirstStarts::default(),
            on_fault: None,
        })
    }

    /// Tells of each fault of a run that is written to the journal.
    #[must_use]
    pub fn telling(mut self, on_fault: impl Fn(&RunFault<'_>) + Send + Sync + 'static) -> Self {
        self.on_fault = Some(Box::new(on_fault));
        self
    }

    /// Keeps this key out of the shared ledger.
    #[must_use]
    pub fn keeping_private(mut self, key: ScopeKey) -> Self {
        self.private.insert(key);
        self
    }

    /// Whether other machines use the same store: they do not learn what is wrong with the network of this one then.
    #[must_use]
    pub const fn on_a_fleet(mut self, is_fleet: bool) -> Self {
        self.is_fleet = is_fleet;
        self
    }

    /// How long keys cool down.
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

    /// Copies what other processes know of these keys.
    fn refresh<'t>(&'t self, ladder: &Ladder, now: Timestamp) -> MutexGuard<'t, Cooldowns> {
        let mut table = self.table();
        for key in ladder.keys().filter(|key| !self.private.contains(*key)) {
            if let Some(known) = self.ledger.cooldown(key) {
                table.adopt(key, &known, now);
            }
        }
        table
    }

    /// Writes the changes of these keys to the ledger.
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

    /// What keeps an agent from starting now, apart from what only this process knows.
    #[must_use]
    pub fn shared_refusal(&self, ladder: &Ladder) -> Option<StartRefusal> {
        let now = self.now();
        let refused = may_ask(&self.refresh(ladder, now), ladder, now).err();
        refused.filter(|refused| !self.is_private(&refused.event.key))
    }

    /// Starts an agent if it may start: takes the lease of the first probe where one is needed, and waits a moment for it.
    ///
    /// # Errors
    /// One of its keys rests or is parked, or others go first.
    pub fn start(&self, ladder: &Ladder) -> Result<Permit, StartRefusal> {
        self.forget_unasked();
        let now = self.now();
        let due: Vec<ScopeKey> = {
            let table = self.refresh(ladder, now);
            may_ask(&table, ladder, now)?;
            // An agent has one supervisor: no other process could probe for it.
            ladder
                .due(&table, now)
                .into_iter()
                .filter(|key| key.level() != ScopeLevel::Agent)
                .cloned()
                .collect()
        };
        self.first.ask(&self.ledger, &due);
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let may = |key: &ScopeKey| !due.contains(key) || FirstStarts::has(&self.ledger, key);
        let started = ladder.start(&mut table, may, now, Seed::random());
        match &started {
            Ok(permit) => self.first.started(&self.ledger, ladder.keys(), &permit.probes),
            Err(held) if held.why != StartRefusalReason::Probe => {
                self.first.give_up(&self.ledger, &due);
                let keys: Vec<_> = ladder.agent.iter().cloned().collect();
                self.share(&table, &keys);
            }
            Err(_) => {}
        }
        match &started {
            Ok(permit) => self.journal_events(&permit.events),
            // A start too many begins a cooldown; a refusal by one that was there changes nothing, and its level keeps it out.
            Err(held) => self.journal_events(std::slice::from_ref(&held.event)),
        }
        started
    }

    /// Gives up the right to go first where no agent waits for it any more: to be called at least every few seconds while agents may wait.
    pub fn forget_unasked(&self) {
        self.first.forget_unasked(&self.ledger);
    }

    /// A first run after a cooldown that goes on: after `max_probe_time` without a limit it has shown that the cooldown is over, and the
    /// others follow it. Returns what changed.
    pub fn goes_on(&self, ladder: &Ladder, permit: &mut Permit, ran: Duration) -> Option<RunEffects> {
        if permit.probes.is_empty() || ran < self.policy.max_probe_time {
            return None;
        }
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let learned = ladder.passed(&mut table, permit, ran, now);
        self.share(&table, &learned.keys);
        drop(table);
        self.first.give_up(&self.ledger, &std::mem::take(&mut permit.probes));
        self.journal_events(&learned.events);
        Some(learned)
    }

    /// Records the end of a run.
    pub fn ended(
        &self,
        ladder: &Ladder,
        permit: &Permit,
        outcome: &Outcome,
        ran: Duration,
        about: &About<'_>,
    ) -> RunEffects {
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let learned = ladder.ended(&mut table, permit, outcome, ran, now, Seed::random());
        if !(self.is_fleet && is_of_network(outcome)) {
            self.share(&table, &learned.keys);
        }
        drop(table);
        self.first.give_up(&self.ledger, &permit.probes);
        self.note_end(ladder, outcome, ran, about);
        self.journal_events(&learned.events);
        learned
    }

    /// A run is over whose end is not known: another one may be the first after a cooldown.
    pub fn give_back(&self, permit: &Permit) {
        let mut table = self.table();
        permit.probes.iter().for_each(|key| table.give_up_probe(key));
        drop(table);
        self.first.give_up(&self.ledger, &permit.probes);
    }

    /// Records what an operator ordered.
    pub fn note_order(&self, order: &'static str, agent: Option<&str>) {
        let text = agent.map_or_else(
            || format!("{order} by an operator"),
            |name| format!("{name}: {order} by an operator"),
        );
        let key = agent
            .and_then(|name| name.split_once('/'))
            .and_then(|(name, project)| ScopeKey::agent(name, project).ok());
        self.note(EntryKind::Operator, order, key.as_ref(), agent.unwrap_or_default(), &text, Value::Null);
    }

    /// Records that a run begins.
    pub fn note_start(&self, ladder: &Ladder, agent: &str) {
        let account = ladder.account.as_ref().map(ScopeKey::name);
        let data = account.map_or(Value::Null, |account| json!({"account": account}));
        self.note(
            EntryKind::Run,
            "started",
            ladder.agent.as_ref(),
            agent,
            &format!("{agent}: started"),
            data,
        );
    }

    /// Records that an agent is not kept for now.
    pub fn note_aside(&self, ladder: &Ladder, agent: &str, text: &str) {
        self.note(EntryKind::Run, "aside", ladder.agent.as_ref(), agent, text, Value::Null);
    }

    /// Records that a run in progress has met a limit. If it was the first one after a cooldown, another one may be the next first one.
    pub fn refused(
        &self,
        ladder: &Ladder,
        permit: &mut Permit,
        fault: &Fault,
        started: Timestamp,
        agent: &str,
    ) -> RunEffects {
        let now = self.now();
        let mut table = self.refresh(ladder, now);
        let learned = ladder.refused(&mut table, fault, started, now, Seed::random());
        self.share(&table, &learned.keys);
        drop(table);
        self.give_back(&std::mem::take(permit));
        if !learned.keys.is_empty() {
            self.tell(ladder, fault, agent, &fault.detail, None);
            let data = json!({"rule": &*fault.evidence.rule, "running": true});
            self.note(
                EntryKind::Fault,
                fault.kind.name(),
                ladder.resting_key(fault),
                agent,
                &fault.detail,
                data,
            );
        }
        self.journal_events(&learned.events);
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
                let reason =
                    if fault.detail.is_empty() { about.line.unwrap_or_default() } else { &fault.detail };
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                let text = format!("{}: ended with exit code {}{reason}", about.agent, about.code);
                self.tell(ladder, fault, about.agent, &text, Some(about.code));
                self.note(
                    EntryKind::Fault,
                    fault.kind.name(),
                    ladder.resting_key(fault),
                    about.agent,
                    &text,
                    data,
                );
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

    fn tell(&self, ladder: &Ladder, fault: &Fault, agent: &str, text: &str, exit_code: Option<i32>) {
        let Some(on_fault) = &self.on_fault else { return };
        let account = ladder.account.as_ref().map(ScopeKey::name);
        on_fault(&RunFault { agent, fault, text, account, exit_code });
    }

    /// Writes changes of cooldowns to the journal. A refused start is not written, because every check would be.
    fn journal_events(&self, events: &[CooldownEvent]) {
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

/// Whether an end says something of the network of this machine alone.
fn is_of_network(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(fault) if Failure::of(fault).class == Class::Network)
}

/// Why an agent may not start, provided that it gets the lease of the first probe.
fn may_ask(table: &Cooldowns, ladder: &Ladder, now: Timestamp) -> Result<(), StartRefusal> {
    ladder.check(table, |_| true, now).map(|_| ())
}

/// Whether an operator must act.
#[must_use]
pub fn is_parked(held: &StartRefusal) -> bool {
    held.why == StartRefusalReason::Parked
}
