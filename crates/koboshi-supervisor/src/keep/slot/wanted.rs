//! Whether an agent is to run: by its clock, by a person, or by those who are asked.

use jiff::Timestamp;
use koboshi::supervise::{AgentAction, Due, Past, StoppedFor, due, gives_way};
use koboshi::time::Moment;

use super::super::AgentAccount;
use super::super::ask::{Question, Whom};
use super::Slot;

impl Slot {
    /// Whether it is to be started now.
    pub(in crate::keep) fn wants_to_start(&self, watched_since: Timestamp, now: Timestamp) -> bool {
        if self.is_running() || self.stopped || self.retired || self.aside.is_some() {
            return false;
        }
        let past = Past {
            last_start: self.last_start,
            last_end: self.last_end,
            ended_well: self.ended_well,
            unfinished: self.unfinished,
            watched_since,
        };
        self.wanted
            || match due(&self.agent.when, &past, now) {
                Due::Now => true,
                Due::Ask => self.action == Some(AgentAction::Start),
                Due::At(_) | Due::Never => false,
            }
    }

    /// Asks the program that knows, if it is time, and takes its answer.
    pub(in crate::keep) fn ask(&mut self, now: Moment, log: &mut dyn FnMut(&str)) {
        let Some(Question { whom: Whom::Program(program), every }) = &self.agent.question else { return };
        // The answer holds until it could start.
        if self.is_running() || self.stopped || self.action == Some(AgentAction::Start) {
            return;
        }
        if let Some(answer) = self.asker.poll(program, *every, &self.agent, now) {
            self.answered(answer, log);
        }
    }

    /// Takes the answer of the program or server that was asked. An error changes nothing, and is logged once.
    pub(in crate::keep) fn answered(
        &mut self,
        answer: Result<AgentAction, String>,
        log: &mut dyn FnMut(&str),
    ) {
        let name = &self.agent.name;
        match answer {
            Err(why) => {
                let why = self.agent.secrets_with(&AgentAccount::default()).mask_text(&why);
                if self.trouble.as_ref() != Some(&why) {
                    log(&format!("{name}: cannot ask whether it is wanted: {why}"));
                }
                (self.trouble, self.action) = (Some(why), None);
                return;
            }
            Ok(action) => {
                if self.trouble.take().is_some() {
                    log(&format!("{name}: can ask again whether it is wanted"));
                }
                self.action = Some(action);
            }
        }
        if let (Some(AgentAction::Stop), Some(run)) = (self.action, &mut self.run)
            && run.stopping.is_none()
        {
            log(&format!("{name}: is to be stopped"));
            run.stop(StoppedFor::Request);
        }
    }

    /// Stops a run whose next time has come, where the config says so.
    pub(super) fn give_way(&mut self, now: Timestamp) {
        if let Some(run) = &mut self.run
            && run.stopping.is_none()
            && gives_way(&self.agent.when, run.started, now)
        {
            run.stop(StoppedFor::Request);
        }
    }
}
