//! Takes over what an earlier supervisor left: runs that live, ends that were not judged yet, and starts that never happened, which become void.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use koboshi::supervise::{Ladder, Permit};
use koboshi_store::Clock;
use rustix::event::{Timespec, poll};
use rustix::process::Signal;
use serde_json::Value;

use crate::folder::{Ended, Folder, How, State};

use super::end::EndEvidence;
use super::{Common, JUDGED, Run, Slot};

/// How long a shim may take from its start until it has written its processes.
const MAX_START_TIME: Duration = Duration::from_secs(10);

impl Slot {
    pub(super) fn adopt(&mut self, common: &Common<'_>, log: &mut dyn FnMut(&str)) -> io::Result<()> {
        let mut trouble = None;
        for path in self.runs() {
            if let Err(error) = self.adopt_run(&path, common, log) {
                trouble = Some(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
        }
        match trouble {
            // It runs at most once: what cannot be read is over.
            Some(error) if self.is_running() => {
                log(&format!("[WARNING] {}: an earlier run cannot be read: {error}", self.agent.name));
                Ok(())
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Takes over one run.
    fn adopt_run(&mut self, path: &Path, common: &Common<'_>, log: &mut dyn FnMut(&str)) -> io::Result<()> {
        let folder = Folder::at(path);
        if !folder.file("spec.json").exists() {
            // The previous supervisor was killed before it wrote the spec: nothing was started.
            folder.remove();
            return Ok(());
        }
        let running = match settled(&folder, common)? {
            State::Over(end) => {
                self.judge_late(&folder, &end, common, log);
                return Ok(());
            }
            State::Alive(running) => running,
        };
        let shim = running.as_ref().and_then(|running| running.shim.open());
        let (Some(running), Some(shim)) = (running, shim) else {
            return Err(io::Error::other("its shim does not answer"));
        };
        let spec = folder.spec()?;
        folder.adopt(&common.owner)?;
        self.recall_session(&folder);
        let moment = common.clock.moment();
        let permitted = (Permit::default(), self.ladder_of(&folder));
        let secrets = self.agent.secrets_with(&self.agent.account(self.last_account.as_deref()));
        let mut run = Run::open(folder, shim, permitted, secrets, running.started, moment, &common.events)?;
        // The shim hands over what it stored, and stops reading the pipes.
        let _ = rustix::process::pidfd_send_signal(&run.shim, Signal::HUP);
        run.recall();
        run.signs.ran_before = running.child.age();
        self.last_start = Some(running.started);
        self.run = Some(run);
        log(&format!("{}: taken over, runs since {}", self.agent.name, running.started));
        if spec.keyed && !self.stopped {
            log(&format!(
                "{}: is restarted, because its key of the gateway ended with the previous process",
                self.agent.name
            ));
            self.wanted = true;
            self.stop_for_us();
        }
        Ok(())
    }

    /// The keys of a run that another supervisor started: those of the account that it uses.
    fn ladder_of(&mut self, folder: &Folder) -> Ladder {
        self.last_account = folder.spec().ok().and_then(|spec| spec.account);
        self.agent.account(self.last_account.as_deref()).ladder
    }

    /// Restores what the previous supervisor judged of an end: whether the session continues, and whether the run did its work.
    fn recall(&mut self, judged: &[u8]) {
        let last: Value = serde_json::from_slice(judged).unwrap_or_default();
        let flag = |name: &str| last.get(name).and_then(Value::as_bool).unwrap_or(false);
        (self.again, self.ended_well, self.unfinished) =
            (flag("again"), flag("ended_well"), flag("unfinished"));
        let text = |name: &str| last.get(name).and_then(Value::as_str).map(str::to_owned);
        (self.session, self.last_account) = (text("session"), text("account"));
        self.last = last;
    }

    /// The session of a run that another supervisor started: the id that it chose, or that the program printed.
    fn recall_session(&mut self, folder: &Folder) {
        let printed = || {
            let own = self.agent.kind.session.as_ref()?.own_id.as_ref()?;
            own.in_lines(&fs::read(folder.file("log")).ok()?)
        };
        self.session = folder.spec().ok().and_then(|spec| spec.session).or_else(printed);
    }

    /// Judges an end that no supervisor has judged yet.
    fn judge_late(&mut self, folder: &Folder, end: &Ended, common: &Common<'_>, log: &mut dyn FnMut(&str)) {
        self.last_start = self.last_start.max(end.started);
        self.last_end = self.last_end.max(end.started.map(|_| end.ended));
        if end.how == How::Void {
            return;
        }
        if let Ok(judged) = fs::read(folder.file(JUDGED)) {
            self.recall(&judged);
            return;
        }
        let read =
            |name| String::from_utf8_lossy(&fs::read(folder.file(name)).unwrap_or_default()).into_owned();
        self.recall_session(folder);
        let text = read("log") + &read(crate::folder::MISSED);
        let (permit, ladder) = (Permit::default(), self.ladder_of(folder));
        let seen = EndEvidence {
            stopping: None,
            text: &text,
            permit: &permit,
            ladder: &ladder,
            written: None,
            dropped: 0,
        };
        self.conclude(Some(folder), end, &seen, common, log);
    }
}

/// The state of a run. A shim that has just begun gets the time to write its processes: no second run may start beside it.
fn settled(folder: &Folder, common: &Common<'_>) -> io::Result<State> {
    let begun = common.clock.moment();
    loop {
        let state = folder.settle(common.clock.wall())?;
        let is_known = match &state {
            State::Alive(Some(running)) => running.shim.open().is_some(),
            State::Alive(None) => false,
            State::Over(_) => true,
        };
        if is_known || common.clock.moment().since(begun) > MAX_START_TIME {
            return Ok(state);
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
    }
}
