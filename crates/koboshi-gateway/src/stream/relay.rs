//! A stream on its way to the client: nothing is seen before there is content, and nothing is ever seen that is not whole.
//!
//! ```text
//!   upstream ──► follow: frames, steps ──► commit gate ──► client
//!                   │ fault before the commit: the next target, invisibly
//!                   │ fault after it: resume (prefill, restart), or one error frame
//!                   └ tool calls are held until the answer is whole and pass the firewall
//! ```
//!
//! Frames of the client's own dialect pass as the bytes they were, those of another one are said anew by the [`voice`](crate::stream::voice). After a
//! change of target all frames are written anew, because the id stays the first one's and the model becomes the one that really answers.

use std::sync::Arc;

use bytes::Bytes;
use koboshi::args::Finish;
use koboshi::remedy::Remedy;
use koboshi_config::gateway::Commit;
use koboshi_wire::Dialect;
use koboshi_wire::any::Turn;
use koboshi_wire::dialect::finish;
use koboshi_wire::step::{Step, Usage};
use serde_json::{Value, json};

use crate::attempt::journey::{Ended, Journey, Open};
use crate::http::flow::Tap;
use crate::http::upstream::mark::SIMULATED;
use crate::reply::stream_head;
use crate::route::target::Target;
use crate::shared::stake::Withdrawn;
use crate::stream::answer::{Followed, Pass};
use crate::stream::firewall::{ToolCall, Unsettled, broken_call, hopeless, is_made_whole};
use crate::stream::follow::{Stop, finish_reading};
use crate::stream::forbidden::turn_after;
use crate::stream::hold::Hold;
use crate::stream::rest::Rest;
use crate::stream::resume::{Begun, Resume};
use crate::stream::run::Run;

/// Text beyond this is not kept, and a stream that breaks after it cannot be resumed.
const LONGEST_RESUMED: usize = 1024 * 1024;

/// What the client has seen of one stream.
pub(crate) struct Stream<'s, 'r> {
    pub(crate) run: &'s Run<'r>,
    pub(crate) tap: &'s Tap,
    pub(crate) hold: Hold<'s>,
    /// The text it has seen.
    pub(crate) sent: String,
    /// It has seen something that no other answer can continue.
    pub(crate) beyond_text: bool,
    /// It has seen content.
    pub(crate) committed: bool,
    /// What the target that answers speaks.
    pub(crate) tongue: Dialect,
    /// Its frames go out as they come.
    pub(crate) is_raw: bool,
    /// What all answers cost together.
    pub(crate) usage: Usage,
    pub(crate) knows_usage: bool,
    /// What is to be said of the answer as a whole, before its first frame.
    about: Option<Value>,
    /// It was text and nothing else, to its own end.
    pub(crate) is_plain: bool,
    /// An answer was refused for what the guard forbids, when the client had so much text.
    refused_at: Option<usize>,
}

/// How a stream ended that the client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relayed {
    /// Whole.
    Whole,
    /// With an error.
    Broken,
}

impl<'s, 'r> Stream<'s, 'r> {
    pub(crate) fn new(run: &'s Run<'r>, tap: &'s Tap) -> Self {
        let serve = &run.plan.config.serve;
        Self {
            run,
            tap,
            hold: Hold::stream(tap, serve.hold, serve.keep_alive_every),
            sent: String::new(),
            beyond_text: false,
            committed: false,
            tongue: run.request.dialect(),
            is_raw: true,
            usage: Usage::default(),
            knows_usage: false,
            about: None,
            is_plain: false,
            refused_at: None,
        }
    }

    /// With a word about the answer as a whole.
    pub(crate) fn about(mut self, about: Value) -> Self {
        self.about = Some(about);
        self.run.voice.borrow_mut().take_over();
        self
    }

    /// Relays until the client has a whole answer. An end is only given while nothing but the head was seen; after that the error
    /// was told in the stream.
    pub(crate) async fn relay(&mut self, journey: &mut Journey<'_>) -> Result<Relayed, Ended> {
        let mut resume = None;
        loop {
            let open = self.open(journey, resume.is_some()).await;
            let mut open = match open {
                Ok(open) => open,
                Err(ended) => return self.over(ended).await,
            };
            if let Some(resume) = &mut resume {
                *resume = match self.refused_at {
                    Some(_) => Resume::following(),
                    None if open.target.prefills() => Resume::new(Begun::Prefilled),
                    None => Resume::new(Begun::Anew),
                };
            }
            let followed = self.follow(&mut open, resume.as_mut(), journey).await;
            let fault = match followed {
                // On the heap: it comes last, and an open stream would have room for it all the time.
                Ok(followed) => {
                    match Box::pin(self.settle(journey, open, followed, resume.is_some())).await {
                        Ok(()) => return Ok(Relayed::Whole),
                        Err(unsettled) => match self.leave(journey, unsettled) {
                            Ok(next) => {
                                resume = next;
                                continue;
                            }
                            Err(ended) => return self.over(ended).await,
                        },
                    }
                }
                Err(Stop::Fault(fault)) => fault,
                Err(Stop::BrokenCall) => {
                    let unsettled = hopeless(journey, open);
                    match self.leave(journey, unsettled) {
                        Ok(next) => {
                            resume = next;
                            continue;
                        }
                        Err(ended) => return self.over(ended).await,
                    }
                }
                Err(Stop::Differs(fault)) => {
                    journey.withdraw(open, Withdrawn::Differs, None);
                    let ended = journey.give_up(fault);
                    return self.over_as("differs", ended).await;
                }
            };
            let target = Arc::clone(&open.target);
            let remedy = journey.after(open, fault.clone());
            if !self.committed && journey.trim(&target, remedy) {
                continue;
            }
            let again = matches!(remedy, Remedy::Again { .. } | Remedy::Wait { .. } | Remedy::Elsewhere);
            if !again || (self.committed && !self.can_resume()) {
                let ended = journey.give_up(fault);
                return self.over(ended).await;
            }
            if self.committed {
                resume = Some(Resume::new(Begun::Anew));
            }
        }
    }

    /// The calls of an answer could not be brought in order: how the next one begins, or the end.
    fn leave(&mut self, journey: &mut Journey<'_>, unsettled: Unsettled) -> Result<Option<Resume>, Ended> {
        match unsettled {
            Unsettled::Ended(ended) => Err(ended),
            Unsettled::Refused => {
                self.refused_at = Some(self.sent.len());
                Ok(self.committed.then(Resume::following))
            }
            Unsettled::Elsewhere if self.committed && !self.can_resume() => {
                Err(journey.give_up(broken_call()))
            }
            Unsettled::Elsewhere => Ok(self.committed.then(|| Resume::new(Begun::Anew))),
        }
    }

    async fn open(&mut self, journey: &mut Journey<'_>, resuming: bool) -> Result<Box<Open>, Ended> {
        let run = self.run;
        let sent = &self.sent;
        let head = || stream_head(run.story, &run.facts());
        let refused = run.refused.take();
        let calls = refused.corrected();
        let resuming = resuming && calls.is_empty();
        let mut make = |target: &crate::route::target::Target| {
            if resuming && target.prefills() {
                run.write(target, &Turn::Prefill(sent))
            } else {
                run.write(target, &turn_after(&calls, sent))
            }
        };
        let opened = {
            // Its room is given back before the answer is followed.
            let mut opening = Box::pin(journey.open_resuming(&run.shape, &mut make, resuming));
            let breath = || run.voice.borrow_mut().breath();
            self.hold.during(head, breath, opening.as_mut()).await
        };
        drop(calls);
        run.refused.replace(refused);
        if let Ok(open) = &opened {
            run.served_by(open);
            run.disclose(|facts| facts.tried(journey));
            self.mark_simulated(&open.target);
        }
        opened
    }

    /// Frames that are written anew say by themselves that they are made up; those that pass say it already.
    fn mark_simulated(&mut self, target: &Target) {
        if self.committed || (self.about.is_none() && !target.is_simulated()) {
            return;
        }
        let is_written = self.about.is_some() || !self.run.is_native(target);
        let mut about = self.about.take().unwrap_or_else(|| json!({}));
        if let Some(about) = about.as_object_mut() {
            about.remove(SIMULATED);
            if target.is_simulated() && is_written {
                about.insert(SIMULATED.to_owned(), true.into());
                self.run.voice.borrow_mut().take_over();
            }
        }
        self.about = Some(about).filter(|about| about.as_object().is_some_and(|about| !about.is_empty()));
    }

    pub(crate) fn can_resume(&self) -> bool {
        // What another model would say after a refused answer is not what the client has begun to read.
        let goes_on = self.refused_at.is_none_or(|at| at == self.sent.len());
        goes_on && !self.beyond_text && self.sent.len() < LONGEST_RESUMED
    }

    /// The answer is whole: its calls pass the firewall, and what was held goes out.
    async fn settle(
        &mut self,
        journey: &mut Journey<'_>,
        open: Box<Open>,
        followed: Followed,
        rewritten: bool,
    ) -> Result<(), Unsettled> {
        let Followed { mut calls, held, finishes, usage, text, rest, filtered, .. } = followed;
        if let Some(fault) = filtered {
            journey.note_filtered(&open.target, &fault);
        }
        let finish = finishes.iter().map(|(_, reason)| Finish::of(reason)).fold(Finish::Unknown, gravest);
        let mut sum = usage.unwrap_or_default();
        let run = self.run;
        // Who said it; a call may have been made anew by somebody else.
        let speaker = Arc::clone(&open.target);
        let mut open = if calls.is_empty() {
            open
        } else {
            let head = || stream_head(run.story, &run.facts());
            let may_refuse = !self.committed || self.can_resume();
            let settling = run.settle_calls(journey, open, &mut calls, finish, &mut sum, may_refuse);
            let breath = || run.voice.borrow_mut().breath();
            let settled = self.hold.during(head, breath, Box::pin(settling).as_mut()).await;
            if matches!(settled, Err(Unsettled::Refused)) {
                self.usage = self.usage.plus(sum);
                self.knows_usage |= usage.is_some();
            }
            settled?
        };
        self.usage = self.usage.plus(sum);
        self.knows_usage |= usage.is_some();
        let is_ours = rewritten || !self.is_raw || calls.iter().any(|call| call.changed);
        self.commit(journey);
        self.mark().await;
        if is_ours && !calls.is_empty() {
            let ends_anew = is_made_whole(&calls, finish);
            self.write_anew(held, &run.for_client(&speaker, calls.clone()), ends_anew).await;
        } else {
            for pass in held {
                self.pass(pass).await;
            }
        }
        self.sent.push_str(&text);
        self.is_plain = calls.is_empty()
            && !self.beyond_text
            && matches!(finishes.as_slice(), [(0, reason)] if reason == "stop");
        let reason = match finishes.first() {
            _ if is_made_whole(&calls, finish) => finish::TOOL_CALLS,
            Some((_, reason)) => finish::fitting(reason, !calls.is_empty()),
            None => finish::STOP,
        };
        let usage = Some(&self.usage).filter(|_| self.knows_usage);
        let end = run.voice.borrow_mut().finish(reason, usage);
        self.tap.send(end).await;
        if rewritten {
            self.run.core.world.meters.recovery("resumed");
        }
        if let Some(rest) = rest {
            // On the heap: every open stream would have room for it.
            Box::pin(Rest::of(rest, journey.whole(open)).come()).await;
            return Ok(());
        }
        finish_reading(&mut open.body).await;
        journey.succeeded(open, usage.map(|_| sum));
        Ok(())
    }

    /// Frames with tool calls that were changed: everything as it came, but the calls whole and in our own words, and the end where it is
    /// another one now.
    async fn write_anew(&mut self, held: Vec<Pass>, calls: &[ToolCall], ends_anew: bool) {
        let speaks = |pass: &Pass| matches!(pass, Pass::Frame(_, step) if !step.calls.is_empty());
        let (first, last) = (held.iter().position(speaks), held.iter().rposition(speaks));
        // Elsewhere what belongs to a call is spread over several frames, and the end counts the blocks.
        let keeps_others = self.tongue == Dialect::Chat;
        for (at, pass) in held.into_iter().enumerate() {
            match pass {
                Pass::Frame(raw, step) if !step.calls.is_empty() => {
                    drop(raw);
                    self.say(&step).await;
                }
                Pass::Frame(_, step)
                    if !keeps_others && first.is_some_and(|first| at > first)
                        || ends_anew && matches!(step.finish.as_slice(), [(0, _)]) =>
                {
                    self.say(&step).await;
                }
                pass => self.pass(pass).await,
            }
            if Some(at) == last {
                self.write_calls(calls).await;
            }
        }
        // After a change of target no frame is kept.
        if last.is_none() {
            self.write_calls(calls).await;
        }
    }

    async fn say(&mut self, step: &Step<'_>) {
        let said = self.run.voice.borrow_mut().say(step);
        self.tap.send(said).await;
    }

    async fn write_calls(&mut self, calls: &[ToolCall]) {
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|call| call.choice == first.choice).count();
            let (these, others) = rest.split_at(same);
            let wholes: Vec<_> = these.iter().map(ToolCall::whole).collect();
            let frames = self.run.voice.borrow_mut().calls(first.choice, &wholes);
            self.tap.send(frames).await;
            rest = others;
        }
    }

    /// The client sees content from here on.
    pub(crate) fn commit(&mut self, journey: &Journey<'_>) {
        if !self.committed {
            self.committed = true;
            self.run.disclose(|facts| facts.tried(journey));
            self.tap.head(stream_head(self.run.story, &self.run.facts.borrow()));
        }
    }

    /// Says what is to be said of the answer as a whole, once.
    pub(crate) async fn mark(&mut self) {
        if let Some(opening) = self.opening() {
            self.tap.send(opening).await;
        }
    }

    /// The same, to be sent first of all.
    pub(crate) fn opening(&mut self) -> Option<Bytes> {
        let about = self.about.take()?;
        Some(self.run.voice.borrow_mut().open(&about))
    }

    pub(crate) async fn pass(&mut self, pass: Pass) {
        let bytes = match pass {
            Pass::Raw(bytes) | Pass::Own(bytes) => bytes,
            Pass::Frame(raw, step) => self.run.voice.borrow_mut().pass_on(raw, &step),
            Pass::Said(step) => self.run.voice.borrow_mut().say(&step),
            Pass::Text(text) => self.run.voice.borrow_mut().text(&text),
        };
        self.tap.send(bytes).await;
        self.hold.spoke();
    }

    /// Whether content goes out as it comes.
    pub(crate) fn flows(&self) -> bool {
        self.run.commit == Commit::First
    }

    /// There is no more to try. What the client has seen decides how it is told.
    async fn over(&mut self, ended: Ended) -> Result<Relayed, Ended> {
        self.over_as("error", ended).await
    }

    /// The same; a stream that broke after its first content is counted under this name.
    async fn over_as(&mut self, recovery: &'static str, ended: Ended) -> Result<Relayed, Ended> {
        if !self.committed {
            return Err(ended);
        }
        let run = self.run;
        run.core.world.meters.recovery(recovery);
        let told =
            crate::reply::tell(&run.core.world, run.plan, run.story, run.targets, &ended, &run.facts());
        run.core.world.meters.answer("broken");
        let frame = run.voice.borrow_mut().error(&told.failure());
        crate::stream::voice::apart(run.story).await;
        self.tap.send(frame).await;
        Ok(Relayed::Broken)
    }
}

fn gravest(known: Finish, next: Finish) -> Finish {
    match (known, next) {
        (Finish::Cut, _) | (_, Finish::Cut) => Finish::Cut,
        (_, next) => next,
    }
}
