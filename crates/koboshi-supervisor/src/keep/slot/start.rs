//! Starts an agent.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;

use koboshi::cooldown::StartRefusal;
use koboshi::key::ScopeKey;
use koboshi::supervise::{Permit, is_dry};
use koboshi_store::Clock;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::folder::{Ended, Spec, Term};
use crate::knowledge::is_parked;
use crate::spawn::{Launch, Streams, start};

use super::super::AgentAccount;
use super::end::EndEvidence;
use super::{Common, Run, Slot};

/// The variable with the fence of its lease, which distinguishes what it does from what a late one does.
const FENCE: &str = "KOBOSHI_FENCE";

impl Slot {
    /// Starts it with the first of its accounts that is not dry, if it may start; returns whether it runs. `full` names what allows no further
    /// run with an account: that account, or the agent.
    pub(in crate::keep) fn start(
        &mut self,
        full: impl Fn(Option<&ScopeKey>) -> Option<String>,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> bool {
        let Ok(term) = self.term(common, log) else { return false };
        let mut refusals = Vec::new();
        for account in self.agent.accounts.clone() {
            let ladder = &account.ladder;
            let started = match full(ladder.account.as_ref()) {
                None => common.knowledge.start(ladder),
                Some(full) => match common.knowledge.shared_refusal(ladder) {
                    Some(held) => Err(held),
                    None => {
                        self.hold_for_place(&full, log);
                        return false;
                    }
                },
            };
            match started {
                Ok(permit) => return self.started(&permit, &account, term, common, log),
                Err(held) => {
                    let is_dry = is_dry(&held);
                    refusals.push(held);
                    if !is_dry {
                        break;
                    }
                }
            }
        }
        self.hold(&refusals, log);
        false
    }

    /// Remembers that as many run as its account allows, or as it may itself.
    fn hold_for_place(&mut self, full: &str, log: &mut dyn FnMut(&str)) {
        let why = format!("the concurrency of {full}");
        if self.held.as_ref() != Some(&why) {
            log(&format!("{}: waits, held by {why}", self.agent.name));
            (self.held, self.is_parked) = (Some(why), false);
        }
    }

    /// Remembers why it waits; a new reason is logged once.
    fn hold(&mut self, refusals: &[StartRefusal], log: &mut dyn FnMut(&str)) {
        let keys: Vec<String> = refusals.iter().map(|held| held.event.key.to_string()).collect();
        let keys = keys.join(", ");
        self.is_parked = !refusals.is_empty() && refusals.iter().all(is_parked);
        if !keys.is_empty() && self.held.as_ref() != Some(&keys) {
            refusals.iter().for_each(|held| log(&held.event.log_line()));
            self.held = Some(keys);
        }
    }

    fn started(
        &mut self,
        permit: &Permit,
        account: &AgentAccount,
        term: Option<Term>,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> bool {
        self.held = None;
        permit.events.iter().for_each(|event| log(&event.log_line()));
        match self.launch(permit, account, term, common) {
            Ok(()) => {
                (self.wanted, self.action) = (false, None);
                common.meters.started(&self.agent.name);
                common.knowledge.note_start(&account.ladder, &self.agent.name);
                let with = account.name().filter(|_| self.agent.accounts.len() > 1);
                let with = with.map(|name| format!(" with the account {name}")).unwrap_or_default();
                log(&format!("{}: started{with}", self.agent.name));
                true
            }
            Err(error) => {
                log(&format!("[WARNING] {}: cannot be started: {error}", self.agent.name));
                self.not_launched(&error, permit, account, common, log);
                false
            }
        }
    }

    /// A start that failed before there was a shim is an end like any other: its permit goes to the next one that waits.
    fn not_launched(
        &mut self,
        error: &io::Error,
        permit: &Permit,
        account: &AgentAccount,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) {
        let now = common.clock.wall();
        (self.wanted, self.action) = (false, None);
        (self.last_account, self.last_start) = (account.name().map(str::to_owned), Some(now));
        let seen = EndEvidence {
            stopping: None,
            text: "",
            permit,
            ladder: &account.ladder,
            written: Some(0),
            dropped: 0,
        };
        self.conclude(None, &Ended::not_launched(error, now), &seen, common, log);
    }

    fn launch(
        &mut self,
        permit: &Permit,
        account: &AgentAccount,
        term: Option<Term>,
        common: &Common<'_>,
    ) -> io::Result<()> {
        // A session is continued after a failure; after a run that ended well the next one begins a new session.
        let again = self.again
            && self.session.is_some()
            && self.agent.sessions_move(self.last_account.as_deref(), account);
        if !again {
            self.session = if self.agent.names_session() { crate::protected::random_id() } else { None };
        }
        let gateway = self.agent.gateway.address(common.gateway);
        let (command, mut environment) =
            self.agent.prepared(account, self.session.as_deref(), again, gateway.as_deref());
        environment.extend(term.map(|term| (FENCE.into(), term.fence.to_string().into())));
        let spec = Spec {
            owner: common.owner.clone(),
            on_owner_death: self.agent.on_owner_death,
            stop_signal: self.agent.stop_signal,
            grace_ms: u64::try_from(self.agent.grace.as_millis()).unwrap_or(u64::MAX),
            piped: true,
            terminal: false,
            label: self.agent.name.clone(),
            limits: self.agent.tree_limits,
            session: self.session.clone(),
            open_files: common.open_files,
            lease: term,
            account: account.name().map(str::to_owned),
            keyed: gateway.is_some() && self.agent.gateway.key().is_some(),
            masked: self.agent.masked_with(account),
        };
        if let Some(why) = missing(&command, &environment, self.agent.dir.as_deref()) {
            return Err(why);
        }
        let now = common.clock.wall();
        let files: Vec<_> = self.agent.kind.files(&environment).collect();
        let (folder, mut child) = start(Launch {
            folder: &self.home.join(format!("{:020}", now.as_nanosecond())),
            spec: &spec,
            command: &command,
            environment: &environment,
            files: &files,
            dir: self.agent.dir.as_deref(),
            binary: &common.binary,
            streams: Streams::Folder,
        })?;
        let permitted = (permit.clone(), account.ladder.clone());
        let opened = pidfd_of(&child).and_then(|shim| {
            Run::open(
                folder,
                shim,
                permitted,
                self.agent.secrets_with(account),
                now,
                common.clock.moment(),
                &common.events,
            )
        });
        match opened {
            Ok(run) => self.run = Some(run),
            Err(error) => {
                end_unwatched(&mut child);
                return Err(error);
            }
        }
        self.child = Some(child);
        if let (Some(lease), Some(term)) = (&mut self.lease, &term) {
            lease.started(term);
        }
        self.last_account = account.name().map(str::to_owned);
        self.last_start = Some(now);
        Ok(())
    }
}

/// Why a program cannot be started, where that is known before: its shim would start, and the agent would seem to.
fn missing(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    dir: Option<&Path>,
) -> Option<io::Error> {
    let program = Path::new(command.first()?);
    let shown = program.display();
    let not_found = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
    if program.components().count() > 1 {
        let at = dir.map_or_else(|| program.to_owned(), |dir| dir.join(program));
        let is_missing = matches!(at.try_exists(), Ok(false));
        return is_missing.then(|| not_found(format!("its program {shown} does not exist")));
    }
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    // What a relative folder means is for the system to say.
    let may_have = |folder: PathBuf| folder.is_relative() || folder.join(program).exists();
    let is_there = std::env::split_paths(path).any(may_have);
    (!is_there).then(|| not_found(format!("its program {shown} was not found in PATH")))
}

fn pidfd_of(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Ends a shim that cannot be watched: an agent that no supervisor knows of would run beside the next one.
fn end_unwatched(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Our own child that was not waited for: the number is still its own.
        let _ = kill_process(pid, Signal::TERM);
    }
    let _ = child.wait();
}
