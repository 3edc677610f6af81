//! A run from its first line to its end: reads its output, stops it when it takes too long, and judges its end.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::classify::AgentLog;
use koboshi::cooldown::{Class, Failure};
use koboshi::key::ScopeKey;
use koboshi::supervise::{End, Ladder, Outcome, Permit, Room, Status, StoppedFor, judge};
use koboshi_store::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::folder::{Ended, Folder, State};
use crate::knowledge::About;
use crate::watch::Sign;

use super::super::events::Ready;
use super::super::run::Reader;
use super::{Common, JUDGED, Slot};

/// What the end of a run means for the run limit of its account.
pub(in crate::keep) enum RunOver {
    /// The account refused it; it began then, and its quota is granted again at that time.
    Refused { started: Timestamp, reset: Option<Timestamp>, now: Timestamp },
    /// It ended well, and began then.
    Succeeded { started: Timestamp },
    /// It says nothing about its account.
    Other,
}

impl RunOver {
    pub(in crate::keep) fn report_to(&self, room: &mut Room) {
        match *self {
            Self::Refused { started, reset, now } => room.refused(started, reset, now),
            Self::Succeeded { started } => room.succeeded(started),
            Self::Other => {}
        }
    }
}

/// What the supervisor knows of a run that is over.
pub(super) struct EndEvidence<'s> {
    pub(super) stopping: Option<StoppedFor>,
    /// The end of its output.
    pub(super) text: &'s str,
    pub(super) permit: &'s Permit,
    /// The keys that it was started with.
    pub(super) ladder: &'s Ladder,
    /// Bytes of output, where this supervisor has read all of them.
    pub(super) written: Option<u64>,
    /// Bytes of output that are not in the log.
    pub(super) dropped: u64,
}

impl Slot {
    /// Reads output, stops a run that takes too long, and judges its end.
    pub(in crate::keep) fn poll(
        &mut self,
        ready: &Ready,
        buffer: &mut [u8],
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> Option<RunOver> {
        self.give_way(common.clock.wall());
        self.renew(common);
        let run = self.run.as_mut()?;
        let now = common.clock.moment();
        if run.stopping.is_none() && run.signs.offline.is_none() {
            let ran = now.since(run.signs.started);
            let learned = common.knowledge.goes_on(&run.ladder, &mut run.permit, ran);
            learned.iter().flat_map(|learned| &learned.events).for_each(|event| log(&event.log_line()));
        }
        if !ready.has(run.number) {
            run.stop_if_overdue(&self.agent.limits, now);
            return None;
        }
        let (live, agent, started) = (&self.live, &self.agent, run.started);
        let ladder = run.ladder.clone();
        let mut permit = run.permit.clone();
        let mut offline = run.signs.offline;
        let own_id = agent.kind.session.as_ref().and_then(|session| session.own_id.as_ref());
        let session = &mut self.session;
        let mut on_lines = |lines: &[u8]| {
            if let (Some(own), None) = (own_id, &session) {
                *session = own.in_lines(lines);
            }
            let zoned = || common.knowledge.now().to_zoned(common.zone.clone());
            live.signs(lines, common.classifier, zoned, |sign| match sign {
                Sign::Life => offline = None,
                Sign::Offline => offline = offline.or(Some(now)),
                Sign::Limit(fault) => {
                    let learned =
                        common.knowledge.refused(&ladder, &mut permit, &fault, started, &agent.name);
                    learned.events.iter().for_each(|event| log(&event.log_line()));
                }
            });
        };
        let mut reader = Reader {
            buffer,
            redactor: &common.redactor,
            now,
            clock: &|| common.clock.moment(),
            on_lines: &mut on_lines,
        };
        run.read(&mut reader);
        if !is_gone(&run.shim) {
            (run.signs.offline, run.permit) = (offline, permit);
            run.stop_if_overdue(&agent.limits, now);
            return None;
        }
        run.finish(&mut reader);
        run.permit = permit;
        let run = self.run.take()?;
        let end = match self.end_of(&run.folder, common) {
            Ok(end) => end,
            Err(error) => {
                let error = io::Error::new(error.kind(), format!("{}: {error}", run.folder.path().display()));
                common.knowledge.give_back(&run.permit);
                self.give_up(common.knowledge.ledger());
                self.set_aside(&error, common, log);
                return Some(RunOver::Other);
            }
        };
        let seen = EndEvidence {
            stopping: run.stopping,
            text: &run.tail.text(),
            permit: &run.permit,
            ladder: &run.ladder,
            written: Some(run.written),
            dropped: run.dropped(),
        };
        let over = self.conclude(Some(&run.folder), &end, &seen, common, log);
        self.forget_old_runs();
        Some(over)
    }

    /// How a run ended whose shim is gone.
    fn end_of(&mut self, folder: &Folder, common: &Common<'_>) -> io::Result<Ended> {
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        match folder.settle(common.clock.wall())? {
            State::Over(end) => Ok(end),
            State::Alive(_) => Err(io::Error::other("the shim is gone and its lock is held")),
        }
    }

    /// Judges an end, and shares what was learned. A start that failed at once has no folder.
    pub(super) fn conclude(
        &mut self,
        folder: Option<&Folder>,
        end: &Ended,
        seen: &EndEvidence<'_>,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> RunOver {
        let EndEvidence { text, permit, ladder, .. } = *seen;
        let status = end.status().unwrap_or(Status::Signaled(9));
        let dropped = end.dropped.saturating_add(seen.dropped);
        // A run may have ended long before a supervisor that was started again learns of it.
        let now = common.knowledge.now();
        let ended = end.ended.min(now).to_zoned(common.zone.clone());
        let log_text = AgentLog { text, exit_code: Some(status.shell_code()), since: end.started };
        let read = self.agent.kind.read_end(common.classifier, &log_text, &ended);
        let read = read.map(|fault| fault.left_at(now));
        let ran = Duration::from_millis(end.ran_ms);
        let stopped = seen.stopping.or(end.stopped());
        let judged =
            judge(&End { status, stopped, ran, read: read.as_ref() }, common.knowledge.policy().min_run);
        let outcome = end.explained(judged);
        let line = crate::protected::evidence(&outcome, text);
        let about = About { agent: &self.agent.name, line: line.as_deref(), code: status.shell_code() };
        let learned = common.knowledge.ended(ladder, permit, &outcome, ran, &about);
        learned.events.iter().for_each(|event| log(&event.log_line()));
        let (name, rule) = match &outcome {
            Outcome::Good => ("succeeded", None),
            Outcome::Idle => ("idle", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(fault) => (fault.log_reason(), Some(fault.evidence.rule.to_string())),
        };
        common.meters.ended(&self.agent.name, name, ran, seen.written.unwrap_or_default(), dropped);
        let class = if let Outcome::Failed(fault) = &outcome { Some(Failure::of(fault).class) } else { None };
        self.unfinished =
            matches!(class, Some(Class::Quota | Class::RateLimit | Class::Overloaded | Class::Network));
        self.last_end = Some(end.ended);
        self.ended_well = matches!(outcome, Outcome::Good | Outcome::Idle);
        self.again = matches!(outcome, Outcome::Failed(_)) && end.started.is_some();
        self.last = json!({
            "ended": end.ended, "started": end.started, "exit_code": status.shell_code(), "outcome": name,
            "rule": rule, "line": line, "left": end.left, "written": seen.written, "dropped": dropped,
            "stopped_for": stopped.map(StoppedFor::name), "session": self.session, "again": self.again,
            "ended_well": self.ended_well, "unfinished": self.unfinished,
            "account": ladder.account.as_ref().map(ScopeKey::name),
        });
        let mut summary = name.to_owned();
        if let Some(why) = stopped.filter(|why| *why != StoppedFor::Request) {
            summary += &format!(", stopped for {}", why.name().replace('_', " "));
        }
        if dropped > 0 {
            summary += &format!(", {dropped} bytes of output left out");
        }
        log(&format!("{}: ended with exit code {} ({summary})", self.agent.name, status.shell_code()));
        if let Some(folder) = folder {
            common.judged.borrow_mut().add(folder.file(JUDGED), self.last.to_string());
        }
        let started = end.started.unwrap_or(now);
        match &outcome {
            Outcome::Failed(fault) if matches!(class, Some(Class::Quota | Class::RateLimit)) => {
                let reset = fault.wait.filter(|_| class == Some(Class::Quota)).map(|wait| wait.until);
                RunOver::Refused { started, reset, now }
            }
            Outcome::Good => RunOver::Succeeded { started },
            _ => RunOver::Other,
        }
    }
}

/// Whether the process of this descriptor has ended.
fn is_gone(process: &std::os::fd::OwnedFd) -> bool {
    let mut one = [PollFd::new(process, PollFlags::IN)];
    poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}
