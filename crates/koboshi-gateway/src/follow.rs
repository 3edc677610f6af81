//! One answer of an upstream, frame by frame: when it is silent too long, broken, cut, in error, and when it is whole.
//!
//! An answer is whole when every choice that began has its finish reason. The terminal mark alone proves nothing, and its absence harms
//! nobody: a healthy answer without it is finished for the client at once.

use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_wire::chat::chunk;
use koboshi_wire::sse::{Frame, Framer};
use koboshi_wire::step::{Step, Usage};
use tokio::time::{Instant, timeout_at};

use crate::firewall::{ToolCall, collect};
use crate::journey::{Journey, Limits, Open};
use crate::relay::Stream;
use crate::reply::stream_head;
use crate::resume::{Passed, Resume};
use crate::unary::not_an_answer;
use crate::upstream::Body;
use crate::upstream::trouble::{cut, timed_out};

/// The longest frame.
const LONGEST_FRAME: usize = 16 * 1024 * 1024;
/// How much is held back.
const MOST_HELD: usize = 16 * 1024 * 1024;
/// Before content, only so much: role and ping frames are small.
const MOST_BEFORE_CONTENT: usize = 256 * 1024;
/// After the last choice has ended, usage and the terminal mark may take so long.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// Something for the client.
#[derive(Debug)]
pub(crate) enum Pass {
    /// A frame as it came.
    Raw(Bytes),
    /// Text in a frame of our own.
    Text(String),
    /// The end in a frame of our own.
    Finish(String),
}

/// An answer that is whole.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) calls: Vec<ToolCall>,
    /// What did not go out yet, in order.
    pub(crate) held: Vec<Pass>,
    pub(crate) finishes: Vec<(u32, String)>,
    pub(crate) usage: Option<Usage>,
    held_bytes: usize,
    has_content: bool,
    /// Choices that have begun, as bits.
    begun: u128,
    done: bool,
}

impl Followed {
    fn is_whole(&self) -> bool {
        let ended = self.finishes.iter().fold(0, |bits, (choice, _)| bits | bit(*choice));
        !self.finishes.is_empty() && self.begun & !ended == 0
    }

    fn hold(&mut self, pass: Pass) -> Result<(), Stop> {
        self.held_bytes += match &pass {
            Pass::Raw(bytes) => bytes.len(),
            Pass::Text(text) | Pass::Finish(text) => text.len() + 200,
        };
        let most = if self.has_content { MOST_HELD } else { MOST_BEFORE_CONTENT };
        if self.held_bytes > most {
            return Err(Stop::Fault(Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long"))));
        }
        self.held.push(pass);
        Ok(())
    }
}

/// Why an answer was not followed to its end.
pub(crate) enum Stop {
    /// It fell.
    Fault(Box<Fault>),
    /// It is another answer than the one that the client has begun to read.
    Differs(Box<Fault>),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// What a frame was.
enum Looked {
    Go,
    End,
}

impl Stream<'_, '_> {
    /// Follows an answer to its end, passing on what may be passed on.
    pub(crate) async fn follow(
        &mut self,
        open: &mut Open,
        mut resume: Option<&mut Resume>,
        journey: &Journey<'_>,
    ) -> Result<Followed, Stop> {
        let mut framer = Framer::new(LONGEST_FRAME);
        let mut answer = Followed::default();
        let mut block = Bytes::new();
        // Frames of this block that go on as they are, as one piece.
        let mut run: Option<std::ops::Range<usize>> = None;
        loop {
            while let Some(frame) = framer.next_frame() {
                let frame =
                    frame.map_err(|_| Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long")))?;
                let before = self.committed;
                let looked = self.look(&frame, open, resume.as_deref_mut(), journey, &mut answer)?;
                if let Some(Looked::End) = looked.1 {
                    self.flush(&block, &mut run).await;
                    return self.end(resume.is_some(), answer);
                }
                match looked.0 {
                    Some(Pass::Raw(raw)) => {
                        if !before {
                            self.release(&mut answer).await;
                        }
                        match (frame.at(), &mut run) {
                            (Some(at), Some(run)) if run.end == at.start => run.end = at.end,
                            (Some(at), None) => run = Some(at),
                            (at, _) => {
                                self.flush(&block, &mut run).await;
                                match at {
                                    Some(at) => run = Some(at),
                                    None => self.pass(Pass::Raw(raw)).await,
                                }
                            }
                        }
                    }
                    Some(pass) => {
                        self.flush(&block, &mut run).await;
                        if !before {
                            self.release(&mut answer).await;
                        }
                        self.pass(pass).await;
                    }
                    None => {}
                }
            }
            self.flush(&block, &mut run).await;
            match self.read(open, &answer).await? {
                Some(next) => {
                    block = next.clone();
                    framer.push(next);
                }
                None => {
                    if let Some(frame) = framer.finish() {
                        let (pass, _) =
                            self.look(&frame, open, resume.as_deref_mut(), journey, &mut answer)?;
                        if let Some(pass) = pass {
                            self.release(&mut answer).await;
                            self.pass(pass).await;
                        }
                    }
                    return self.end(resume.is_some(), answer);
                }
            }
        }
    }

    /// The next block within its time. None when the answer has ended, or has said everything and stays silent.
    async fn read(&mut self, open: &mut Open, answer: &Followed) -> Result<Option<Bytes>, Stop> {
        let over = answer.is_whole();
        let (limit, sub) = limit(&open.limits, answer.has_content, over);
        let run = self.run;
        let head = || stream_head(run.story, &run.facts());
        let body = &mut open.body;
        match self.hold.during(head, timeout_at(limit, body.next())).await {
            Ok(Some(Ok(block))) => Ok(Some(block)),
            Ok(None) => Ok(None),
            // Everything was said: how the connection ended does not matter.
            Ok(Some(Err(_))) | Err(_) if over => Ok(None),
            Ok(Some(Err(fault))) => Err(Stop::Fault(fault)),
            Err(_) => Err(Stop::Fault(timed_out(sub))),
        }
    }

    /// Looks at a frame: what goes on, and whether it was the last.
    fn look(
        &mut self,
        frame: &Frame,
        open: &Open,
        resume: Option<&mut Resume>,
        journey: &Journey<'_>,
        answer: &mut Followed,
    ) -> Result<(Option<Pass>, Option<Looked>), Stop> {
        let malformed = || Box::new(Fault::of(Kind::ResponseInvalid, "gateway.malformed_chunk"));
        let Some(data) = frame.data().map_err(|_| malformed())? else { return Ok((None, None)) };
        let step = chunk::read(&data).map_err(|_| malformed())?;
        if step.done {
            answer.done = true;
            return Ok((None, Some(Looked::End)));
        }
        if step.error {
            let fault = journey.classify(&open.head, 200, &data, false);
            return Err(Stop::Fault(fault.unwrap_or_else(malformed)));
        }
        self.learn_names(&step, open);
        let first = !answer.has_content && step.has_content();
        if first {
            answer.has_content = true;
            open.saw_content();
        }
        for piece in &step.calls {
            collect(&mut answer.calls, piece, self.run.plan.config.args.most_bytes)
                .ok_or_else(|| Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long")))?;
            answer.begun |= bit(piece.choice);
        }
        if step.text.is_some() || step.reasoning || step.refusal || step.audio {
            answer.begun |= 1;
        }
        answer
            .finishes
            .extend(step.finish.iter().map(|(choice, reason)| (*choice, reason.clone().into_owned())));
        if let Some(usage) = step.usage {
            answer.usage = Some(usage);
            // The last frame of all has nothing but the usage; ours goes out instead, with what all answers cost.
            if step.choices == 0 {
                return Ok((None, Some(Looked::Go)));
            }
        }
        if let Some((_, reason)) = step.finish.first()
            && reason == "content_filter"
            && !self.committed
        {
            let fault = journey.classify(&open.head, 200, &data, false);
            return Err(Stop::Fault(
                fault.unwrap_or_else(|| Box::new(Fault::of(Kind::ContentFiltered, "gateway.filter"))),
            ));
        }
        let pass = match resume {
            Some(resume) => self.anew(&step, resume)?,
            None => Some(Pass::Raw(frame.raw().clone())),
        };
        let Some(pass) = pass else { return Ok((None, None)) };
        if !answer.calls.is_empty() || !self.flows() || !answer.has_content {
            // With its text, because a frame of a changed answer is written anew.
            let held = match (pass, &step.text) {
                (Pass::Raw(_), Some(text)) if !answer.calls.is_empty() => {
                    Pass::Text(text.clone().into_owned())
                }
                (pass, _) => pass,
            };
            answer.hold(held)?;
            return Ok((None, None));
        }
        self.commit(journey.attempts);
        self.remember(&step, matches!(pass, Pass::Raw(_)));
        Ok((Some(pass), None))
    }

    /// A frame after a change of target, in our own words.
    fn anew(&mut self, step: &Step<'_>, resume: &mut Resume) -> Result<Option<Pass>, Stop> {
        let differs = || Stop::Differs(cut("the second answer is not the first one"));
        if let Some(text) = step.text.as_deref() {
            return match resume.take(&self.sent, text) {
                Passed::On(text) if text.is_empty() => Ok(None),
                Passed::On(text) => {
                    self.sent.push_str(&text);
                    Ok(Some(Pass::Text(text)))
                }
                Passed::Differs => Err(differs()),
            };
        }
        if !step.finish.is_empty() || !step.calls.is_empty() {
            match resume.end(&self.sent) {
                Passed::On(text) if !text.is_empty() => {
                    self.sent.push_str(&text);
                    // The end itself follows when the answer is settled.
                    return Ok(Some(Pass::Text(text)));
                }
                Passed::On(_) => {}
                Passed::Differs => return Err(differs()),
            }
        }
        // Thinking that belongs to another run of the model is not shown twice.
        Ok(None)
    }

    fn learn_names(&mut self, step: &Step<'_>, open: &Open) {
        if self.names.id.is_empty()
            && let Some(id) = step.id.as_deref()
        {
            id.clone_into(&mut self.names.id);
        }
        match step.model.as_deref() {
            Some(model) if model != self.names.model => model.clone_into(&mut self.names.model),
            None if self.names.model.is_empty() => self.names.model = open.target.model.to_string(),
            _ => {}
        }
    }

    /// Keeps what the client has seen.
    fn remember(&mut self, step: &Step<'_>, raw: bool) {
        if step.refusal || step.audio || step.other_text {
            self.beyond_text = true;
        }
        if raw && let Some(text) = &step.text {
            self.sent.push_str(text);
        }
    }

    /// What was held before the commit goes out.
    async fn release(&mut self, answer: &mut Followed) {
        for pass in std::mem::take(&mut answer.held) {
            self.pass(pass).await;
        }
        answer.held_bytes = 0;
    }

    async fn flush(&mut self, block: &Bytes, run: &mut Option<std::ops::Range<usize>>) {
        if let Some(range) = run.take() {
            self.pass(Pass::Raw(block.slice(range))).await;
        }
    }

    /// The stream has ended: is the answer whole?
    fn end(&self, resumed: bool, mut answer: Followed) -> Result<Followed, Stop> {
        if !answer.is_whole() {
            return Err(Stop::Fault(cut("the stream ended before the answer was whole")));
        }
        if !answer.has_content && !resumed && !ended_by_limit(&answer) {
            return Err(Stop::Fault(not_an_answer()));
        }
        if resumed
            && answer.calls.is_empty()
            && let Some((_, reason)) = answer.finishes.first().cloned()
        {
            answer.hold(Pass::Finish(reason))?;
        }
        Ok(answer)
    }
}

/// An answer that its limit ended before any content is what the client asked for.
fn ended_by_limit(answer: &Followed) -> bool {
    answer.finishes.iter().all(|(_, reason)| reason == "length")
}

/// The connection can be used again only if its answer was read to the end, which is often there already.
pub(crate) async fn finish_reading(body: &mut Body) {
    let soon = Instant::now() + Duration::from_millis(5);
    while let Ok(Some(Ok(_))) = timeout_at(soon, body.next()).await {}
}

/// Until when the next block must be there, and what it is called if not.
fn limit(limits: &Limits, has_content: bool, over: bool) -> (Instant, Sub) {
    let now = Instant::now();
    let (limit, sub) = match (over, has_content) {
        (true, _) => (now + AFTER_THE_END, Sub::Idle),
        (false, true) => (now + limits.idle, Sub::Idle),
        (false, false) => (limits.first, Sub::FirstContent),
    };
    if limit >= limits.total { (limits.total, Sub::Total) } else { (limit, sub) }
}

fn bit(choice: u32) -> u128 {
    1_u128.checked_shl(choice).unwrap_or(1 << 127)
}
