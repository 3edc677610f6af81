//! One answer of an upstream, frame by frame: when it is silent too long, broken, cut, in error, and when it is whole.
//!
//! An answer is whole when every choice that began has its finish reason. The terminal mark alone proves nothing, and its absence harms
//! nobody: a healthy answer without it is finished for the client at once. Where only the cost can follow, and the client did not ask for
//! it, the client does not wait for it either: [`rest`](crate::stream::rest) does.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_wire::Dialect;
use koboshi_wire::chat::unstreamed;
use koboshi_wire::dialect::finish;
use koboshi_wire::sse::{Frame, Framer};
use koboshi_wire::step::Step;
use tokio::time::{Instant, timeout_at};

use crate::attempt::journey::{Journey, Open};
use crate::attempt::not_an_answer;
use crate::http::upstream::Body;
use crate::http::upstream::trouble::{cut, timed_out};
use crate::reply::stream_head;
use crate::stream::answer::{Followed, Pass, too_long};
use crate::stream::blocks::Blocks;
use crate::stream::firewall::{collect, is_broken_call};
use crate::stream::passing::{Passing, for_later, is_heard};
use crate::stream::relay::Stream;
use crate::stream::resume::{Passed, Resume};
use crate::stream::unary::filtered;

/// The longest frame.
const LONGEST_FRAME: usize = 16 * 1024 * 1024;
/// Why an answer was not followed to its end.
pub(crate) enum Stop {
    /// It fell.
    Fault(Box<Fault>),
    /// It is another answer than the one that the client has begun to read.
    Differs(Box<Fault>),
    /// The provider itself says that the model wrote a call that nobody can run.
    BrokenCall,
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// What a frame was.
enum Looked {
    /// Nothing for the client, or nothing yet.
    Quiet,
    /// This goes out now.
    Pass(Pass),
    /// The last one.
    End,
}

impl Stream<'_, '_> {
    /// Follows an answer to its end, passing on what may be passed on.
    pub(crate) async fn follow(
        &mut self,
        open: &mut Open,
        resume: Option<&mut Resume>,
        journey: &Journey<'_>,
    ) -> Result<Followed, Stop> {
        self.begin(open);
        let mut passing = Passing::default();
        let followed = self.frames(open, resume, journey, &mut passing).await;
        // What passed the gate before a fall counts as seen, so it must go out.
        self.flush(&mut passing).await;
        followed
    }

    async fn frames(
        &mut self,
        open: &mut Open,
        mut resume: Option<&mut Resume>,
        journey: &Journey<'_>,
        passing: &mut Passing,
    ) -> Result<Followed, Stop> {
        let mut framer = Framer::new(LONGEST_FRAME);
        let mut answer = Followed::new(self.tongue);
        let resumed = resume.is_some();
        loop {
            while let Some(frame) = framer.next_frame() {
                let frame = frame.map_err(|_| too_long())?;
                let before = self.committed;
                match self.look(&frame, open, resume.as_deref_mut(), journey, &mut answer)? {
                    Looked::Quiet => {}
                    Looked::End => return self.end(resumed, answer),
                    Looked::Pass(pass) => {
                        if !before {
                            self.release(&mut answer).await;
                        }
                        self.pass_frame(pass, frame.at(), passing).await;
                    }
                }
                if answer.is_done {
                    return self.end(resumed, answer);
                }
            }
            self.flush(passing).await;
            let first = passing.block.is_empty();
            let enough = self.needs_no_more(&answer);
            let block = match enough {
                true => open.body.at_hand().await.flatten().and_then(Result::ok),
                false => None,
            };
            if enough && block.is_none() {
                answer.rest = Some(framer);
                return self.end(resumed, answer);
            }
            let block = match block {
                Some(block) => block,
                None => match self.read(open, &mut answer).await? {
                    Some(block) => block,
                    None => break,
                },
            };
            let block = match block.trim_ascii_start().first() {
                // Boxed: every open stream would have room for it.
                Some(b'{') if first => Box::pin(self.unstreamed(open, block, journey, &mut answer)).await?,
                // Events begin with the name of a field or a colon; this is a page or a list, whatever its head says.
                Some(b'[' | b'<') if first => {
                    return Err(Stop::Fault(journey.no_stream(open, block).await));
                }
                _ => block,
            };
            passing.block = block.clone();
            framer.push(block);
        }
        if let Some(frame) = framer.finish().map(Frame::closed)
            && let Looked::Pass(pass) = self.look(&frame, open, resume, journey, &mut answer)?
        {
            self.release(&mut answer).await;
            self.pass(pass).await;
        }
        self.end(resumed, answer)
    }

    /// An object came in place of a stream: a whole answer as the stream that it should have been, or what it says is wrong.
    async fn unstreamed(
        &mut self,
        open: &mut Open,
        begun: Bytes,
        journey: &Journey<'_>,
        answer: &mut Followed,
    ) -> Result<Bytes, Stop> {
        let mut blocks = Blocks::up_to(LONGEST_FRAME);
        let (mut next, mut broken) = (Some(begun), None);
        while let Some(block) = next {
            blocks.push(block).ok_or_else(too_long)?;
            next = match self.read(open, answer).await {
                Ok(next) => next,
                Err(Stop::Fault(fault)) => {
                    broken = Some(fault);
                    None
                }
                Err(differs) => return Err(differs),
            };
        }
        let body = blocks.whole();
        if self.tongue == Dialect::Chat
            && let (None, Some(frames)) = (&broken, unstreamed::frames(&body))
        {
            return Ok(frames);
        }
        let said = journey.said_of(open, &body);
        Err(Stop::Fault(said.or(broken).unwrap_or_else(not_an_answer)))
    }

    /// Whether the client has everything that it asked for.
    fn needs_no_more(&self, answer: &Followed) -> bool {
        let request = self.run.request;
        // Only there the cost comes apart from the end.
        self.tongue == Dialect::Chat
            && answer.has_said_all(request.n().max(1))
            && (!request.include_usage() || answer.usage.is_some())
    }

    /// Nothing of an attempt that was not seen counts for the next one.
    fn begin(&mut self, open: &Open) {
        self.tongue = self.run.tongue(&open.target);
        let mut voice = self.run.voice.borrow_mut();
        let is_native = self.tongue == voice.dialect();
        if !self.committed {
            voice.begin();
            self.beyond_text = false;
        }
        voice.forward_signatures(is_native);
        self.is_raw = is_native && voice.lets_pass();
    }

    /// The next block within its time. None when the answer has ended, or has said everything and stays silent.
    async fn read(&mut self, open: &mut Open, answer: &mut Followed) -> Result<Option<Bytes>, Stop> {
        let over = answer.is_whole();
        // Where data is always at hand, no timer is ever looked at.
        if !over && Instant::now() >= open.limits.total {
            return Err(Stop::Fault(timed_out(Sub::Total)));
        }
        let (limit, sub) = answer.limit(&open.limits);
        let run = self.run;
        let head = || stream_head(run.story, &run.facts());
        let breath = || run.voice.borrow_mut().breath();
        let body = &mut open.body;
        let next = pin!(timeout_at(limit, body.next_joined()));
        match self.hold.during(head, breath, next).await {
            Ok(Some(Ok(block))) => Ok(Some(block)),
            Ok(None) => Ok(None),
            // Everything was said: how the connection ended does not matter.
            Ok(Some(Err(_))) | Err(_) if over && !answer.ends_often => Ok(None),
            Ok(Some(Err(fault))) => Err(Stop::Fault(fault)),
            Err(_) => Err(Stop::Fault(timed_out(sub))),
        }
    }

    /// Looks at a frame: what goes on, and whether it was the last.
    fn look(
        &mut self,
        frame: &Frame,
        open: &mut Open,
        resume: Option<&mut Resume>,
        journey: &Journey<'_>,
        answer: &mut Followed,
    ) -> Result<Looked, Stop> {
        let malformed = || Box::new(Fault::of(Kind::ResponseInvalid, "gateway.malformed_chunk"));
        let Some(data) = answer.events.data(frame).map_err(|_| malformed())? else {
            return Ok(Looked::Quiet);
        };
        let mut step = answer.events.read(frame.event(), &data).map_err(|_| malformed())?;
        // No other dialect can say sounds and pictures of a model: an answer of those alone would be empty.
        let is_native = self.tongue == self.run.request.dialect();
        if step.audio && !is_native {
            self.run.note_lost_media(&open.target);
            step.audio = false;
        }
        step.hosted &= is_native;
        let is_chat = self.tongue == Dialect::Chat;
        if step.done && is_chat {
            return Ok(Looked::End);
        }
        if step.error {
            let fault = journey.classify(&open.head, 200, &data, false);
            return Err(Stop::Fault(fault.unwrap_or_else(malformed)));
        }
        if let Some((_, reason)) = step.finish.iter().find(|(_, reason)| finish::is_error(reason)) {
            let said = format!("{}{}", self.sent, answer.text);
            return Err(Stop::Fault(journey.ended_for_error(&open.head, &said, reason)));
        }
        // Some of Gemini's models say at every chunk that they have ended: only the end of the body is the end.
        answer.is_done = step.done && self.tongue != Dialect::Gemini;
        self.learn_names(&step, open);
        self.collect(&step, open, answer)?;
        if is_chat && step.usage.is_some() && step.choices == 0 {
            // The last frame of all has nothing but the usage; ours goes out instead, with what all answers cost.
            self.run.voice.borrow_mut().tells_cost();
            return Ok(if answer.is_whole() { Looked::End } else { Looked::Quiet });
        }
        if step.finish.iter().any(|(_, reason)| reason == finish::CONTENT_FILTER) {
            let fault = journey.classify(&open.head, 200, &data, false).unwrap_or_else(filtered);
            // The client gets it as a finish reason. A call that the filter cut must not go out, and another target may be asked where the
            // policy says so.
            if !self.committed && (!answer.calls.is_empty() || journey.goes_around_filters()) {
                return Err(Stop::Fault(fault));
            }
            answer.filtered = Some(fault);
        }
        if step.finish.iter().any(|(_, reason)| is_broken_call(reason)) {
            return Err(Stop::BrokenCall);
        }
        let mute = resume.is_none() && !self.is_raw && !self.committed && !is_heard(&step);
        let holds = !answer.calls.is_empty() || !self.flows() || !answer.has_content || mute;
        if !holds && !self.committed {
            self.tell_held(answer);
        }
        let pass = match resume {
            Some(resume) => self.anew(&step, resume, answer.has_content)?,
            None if !self.is_raw && holds => for_later(&step),
            None if !self.is_raw => self.translated(&step),
            None if holds => Some(Pass::Frame(self.raw(frame, &data), Box::new(step.clone().into_owned()))),
            None => Some(self.at_once(frame, &data, &step)),
        };
        let Some(pass) = pass else { return Ok(Looked::Quiet) };
        let text = match &pass {
            Pass::Text(text) => text,
            _ => step.text.as_deref().unwrap_or_default(),
        };
        if holds {
            answer.text.push_str(text);
            answer.hold(pass)?;
            return Ok(Looked::Quiet);
        }
        // A stream that cannot be resumed any more needs no memory either.
        if self.can_resume() {
            self.sent.push_str(text);
        }
        self.commit(journey);
        Ok(Looked::Pass(pass))
    }

    /// Takes what a frame brings into the answer.
    fn collect(&mut self, step: &Step<'_>, open: &mut Open, answer: &mut Followed) -> Result<(), Stop> {
        if !answer.has_content && step.has_content() {
            answer.has_content = true;
            open.saw_content();
        }
        if step.has_content() {
            let calls = step.calls.iter().filter_map(|piece| piece.arguments.as_deref());
            open.stake.saw(step.text.as_deref().map_or(0, str::len) + calls.map(str::len).sum::<usize>());
        }
        if let Some(usage) = step.usage {
            open.stake.told(usage);
        }
        answer.has_hosted |= step.hosted;
        answer.speaks |= step.has_content() || !step.finish.is_empty();
        self.beyond_text |= step.refusal || step.audio || step.other_text;
        for piece in &step.calls {
            collect(&mut answer.calls, piece, self.run.plan.config.args.most_bytes).ok_or_else(too_long)?;
        }
        answer.begun |= step.speaking;
        if !step.finish.is_empty() {
            answer.ended_alone = !step.has_content();
        }
        for (choice, reason) in &step.finish {
            answer.ended(*choice, reason, self.tongue);
        }
        answer.usage = step.usage.or(answer.usage);
        Ok(())
    }

    /// A frame after a change of target, in our own words.
    fn anew(&self, step: &Step<'_>, resume: &mut Resume, has_content: bool) -> Result<Option<Pass>, Stop> {
        let mut on = String::new();
        let text = step.text.as_deref().map(|text| resume.take(&self.sent, text));
        let ends = !step.finish.is_empty() || !step.calls.is_empty();
        let end = if ends { Some(resume.end(&self.sent)) } else { None };
        for passed in [text, end].into_iter().flatten() {
            match passed {
                Passed::On(text) => on.push_str(&text),
                // Nothing at all is no other answer, but none.
                Passed::Differs if !has_content => return Err(not_an_answer().into()),
                Passed::Differs => return Err(Stop::Differs(cut("the second answer is not the first one"))),
            }
        }
        // The end itself follows when the answer is settled. Thinking of another run of the model is not shown twice.
        Ok((!on.is_empty()).then_some(Pass::Text(on)))
    }

    fn learn_names(&mut self, step: &Step<'_>, open: &Open) {
        let mut voice = self.run.voice.borrow_mut();
        // An id of another vendor is none of the client's.
        if self.is_raw
            && voice.names.id.is_empty()
            && let Some(id) = step.id.as_deref()
        {
            id.clone_into(&mut voice.names.id);
        }
        match step.model.as_deref() {
            Some(model) if model != voice.names.model => model.clone_into(&mut voice.names.model),
            None if voice.names.model.is_empty() => voice.names.model = open.target.model.to_string(),
            _ => {}
        }
    }

    /// The stream has ended: is the answer whole?
    fn end(&self, resumed: bool, answer: Followed) -> Result<Followed, Stop> {
        if !answer.is_whole() {
            return Err(Stop::Fault(cut("the stream ended before the answer was whole")));
        }
        let says_nothing = !answer.has_content && !answer.has_hosted;
        if says_nothing && !resumed && !answer.may_be_empty() {
            return Err(Stop::Fault(not_an_answer()));
        }
        Ok(answer)
    }
}

/// The connection can be used again only if its answer was read to the end, which is often there already.
pub(crate) async fn finish_reading(body: &mut Body) {
    let soon = Instant::now() + Duration::from_millis(5);
    while let Ok(Some(Ok(_))) = timeout_at(soon, body.next()).await {}
}
