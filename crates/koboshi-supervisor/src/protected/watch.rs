//! What a run shows while it goes on: a limit that others must learn of at once, the id of its session, and that it takes too long.

use std::time::Duration;

use jiff::Timestamp;
use koboshi::classify::Classifier;
use koboshi::supervise::{Permit, Signs, StoppedFor, next_check, overdue};
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};

use crate::knowledge::Knowledge;
use crate::session::Session;
use crate::watch::{Live, Sign};

use super::Task;

pub(super) struct RunWatch<'w> {
    pub(super) task: &'w Task,
    pub(super) knowledge: &'w Knowledge,
    pub(super) classifier: &'w Classifier,
    pub(super) session: Option<&'w mut (Session, Option<String>)>,
    pub(super) permit: &'w mut Permit,
    live: Live,
    started: Timestamp,
    signs: Signs,
    stopping: Option<StoppedFor>,
}

impl<'w> RunWatch<'w> {
    /// Of a run that begins now.
    pub(super) fn new(
        task: &'w Task,
        knowledge: &'w Knowledge,
        classifier: &'w Classifier,
        session: Option<&'w mut (Session, Option<String>)>,
        permit: &'w mut Permit,
    ) -> Self {
        let now = SystemClock.moment();
        let signs = Signs { started: now, ran_before: Duration::ZERO, output: now, offline: None };
        let (live, started) = (Live::of(&task.kind), knowledge.now());
        Self { task, knowledge, classifier, session, permit, live, started, signs, stopping: None }
    }

    /// It wrote these lines.
    pub(super) fn read(&mut self, lines: &[u8]) {
        if let Some((Session { own_id: Some(own), .. }, id @ None)) = self.session.as_deref_mut() {
            *id = own.in_lines(lines);
        }
        let (task, knowledge, started) = (self.task, self.knowledge, self.started);
        let (permit, offline) = (&mut *self.permit, &mut self.signs.offline);
        let zoned = || knowledge.now().to_zoned(task.zone.clone());
        self.live.signs(lines, self.classifier, zoned, |sign| match sign {
            Sign::Life => *offline = None,
            Sign::Offline => *offline = offline.or(Some(SystemClock.moment())),
            Sign::Limit(fault) => {
                knowledge.refused(&task.ladder, permit, &fault, started, &task.label);
            }
        });
    }

    /// Whether it must be stopped now; said once.
    pub(super) fn must_stop(&mut self) -> bool {
        let now = SystemClock.moment();
        if self.signs.offline.is_none() {
            self.knowledge.goes_on(&self.task.ladder, self.permit, now.since(self.signs.started));
        }
        if self.stopping.is_none() {
            self.stopping = overdue(&self.task.limits, &self.signs, now);
            return self.stopping.is_some();
        }
        false
    }

    /// How long until it may have to be stopped, or counts as one that the others may follow.
    pub(super) fn next_check(&self) -> Option<Duration> {
        let waited_for = (!self.permit.probes.is_empty()).then_some(self.knowledge.policy().max_probe_time);
        let passed = waited_for.map(|wait| self.signs.started.after(wait));
        let limit = if self.stopping.is_none() { next_check(&self.task.limits, &self.signs) } else { None };
        let next: Option<Moment> = [passed, limit].into_iter().flatten().min();
        next.map(|next| next.since(SystemClock.moment()))
    }

    /// Why it was stopped, if it was for taking too long.
    pub(super) const fn stopped(&self) -> Option<StoppedFor> {
        self.stopping
    }
}
