//! An answer that is not streamed: read completely, judged, and forwarded unchanged.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use koboshi::args::Finish;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::remedy::Remedy;
use koboshi_wire::form::free_text;
use koboshi_wire::step::Usage;
use koboshi_wire::writer::Head;
use tokio::time::{Instant, timeout_at};

use crate::attempt::Limits;
use crate::attempt::journey::{Journey, JourneyEnd, OpenAttempt};
use crate::attempt::not_an_answer;
use crate::http::memory::MemoryShare;
use crate::http::pace::{LARGE, Pace};
use crate::http::upstream::Body;
use crate::http::upstream::connection_fault::{no_memory, timed_out};
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::core_state::CoreState;
use crate::stream::blocks::Blocks;
use crate::stream::firewall::{CallsError, ToolCall, broken_call, is_made_whole};
use crate::stream::forbidden::mode_after;
use crate::stream::routed_request::RoutedRequest;
use crate::stream::whole::{self, Dialects, ReadAnswer, WholeAnswer, WrittenFor, on_a_large_core};
use crate::stream::writer::answer_id;

/// Larger answers are refused.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A whole answer for the client.
pub(crate) struct UnaryAnswer {
    pub(crate) body: Bytes,
    /// Its id, where a later request may refer to it.
    pub(crate) id: Option<String>,
    /// Held until the client has it.
    pub(crate) _memory: Option<MemoryShare>,
}

/// Reads an answer to its end. A large one has its share of `serve.memory` as long as its attempt is open.
pub(crate) async fn read_whole(
    core: &CoreState,
    plan: &Plan,
    open: &mut OpenAttempt,
) -> Result<Bytes, Box<Fault>> {
    let OpenAttempt { limits, body, attempt_guard, memory, .. } = open;
    let state = &core.state;
    let limit = state.memory_limit(plan);
    read_blocks(core.connections.pace(), body, limits, |read| {
        attempt_guard.count_partial(read);
        if state.memory.fit_answer(memory, read, limit) { Ok(()) } else { Err(no_memory()) }
    })
    .await
}

/// Reads a body to its end, within these limits. `count` gets the number of bytes after each block, and may refuse it.
async fn read_blocks(
    pace: &Pace,
    body: &mut Body,
    limits: &Limits,
    mut count: impl FnMut(usize) -> Result<(), Box<Fault>>,
) -> Result<Bytes, Box<Fault>> {
    let mut blocks = Blocks::up_to(MAX_ANSWER_BYTES);
    let mut read = 0;
    loop {
        let block = match body.next_if_ready().await {
            Some(block) => block,
            None => {
                let (limit, sub) = next_block(limits);
                timeout_at(limit, body.next()).await.map_err(|_| timed_out(sub))?
            }
        };
        let Some(block) = block else { break };
        let block = block?;
        // While data is always available, no timer is ever polled. The first block comes before any limit can be over.
        if read > 0 && Instant::now() >= limits.total {
            return Err(timed_out(Sub::Total));
        }
        let length = block.len();
        read += length;
        count(read)?;
        let too_long = || Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long"));
        blocks.push(block).ok_or_else(too_long)?;
        if read > LARGE {
            pace.after_reading(length).await;
        }
    }
    Ok(blocks.whole())
}

/// The deadline of the next block, and the name of that timeout.
fn next_block(limits: &Limits) -> (Instant, Sub) {
    let now = Instant::now();
    let idle = now + limits.idle.max(limits.first.saturating_duration_since(now));
    if idle < limits.total { (idle, Sub::Idle) } else { (limits.total, Sub::Total) }
}

impl RoutedRequest<'_> {
    /// Asks targets until there is a complete, valid answer.
    pub(crate) async fn answer(&self, journey: &mut Journey<'_>) -> Result<UnaryAnswer, JourneyEnd> {
        // The cost of refused answers.
        let mut refused = Usage::default();
        loop {
            let mut open = self.open_whole(journey).await?;
            self.served_by(&open);
            let judged = match read_whole(self.core, self.plan, &mut open).await {
                Ok(body) => self.judge(journey, &open, &body).await.map(|judged| (body, judged)),
                Err(fault) => Err(fault),
            };
            let (body, AnswerFacts { mut calls, finish, usage, id, filtered }) = match judged {
                Ok(judged) => judged,
                Err(fault) => {
                    if let Some(ended) = self.failed(journey, open, fault) {
                        return Err(ended);
                    }
                    continue;
                }
            };
            if let Some(usage) = usage {
                open.attempt_guard.set_usage(usage, true);
            }
            if let Some(fault) = filtered {
                journey.note_filtered(&open.target, &fault);
            }
            let mut sum = usage.unwrap_or_default();
            if calls.is_empty() {
                let sum = Some(refused.plus(sum)).filter(|_| refused != Usage::default());
                let body = self.for_reader(&open.target, body, calls, sum, false).await;
                let memory = open.memory.take();
                journey.succeeded(open, usage);
                return Ok(UnaryAnswer { body, id, _memory: memory });
            }
            // The target that wrote the answer; another one may have to correct a call.
            let author = Arc::clone(&open.target);
            let memory = open.memory.take();
            match Box::pin(self.settle_calls(journey, open, &mut calls, finish, &mut sum, true)).await {
                Ok(mut open) => {
                    let changed = Some(refused.plus(sum)).filter(|sum| usage != Some(*sum));
                    let made_whole = is_made_whole(&calls, finish);
                    let body = self.for_reader(&author, body, calls, changed, made_whole).await;
                    let memory = memory.or_else(|| open.memory.take());
                    journey.succeeded(open, Some(sum));
                    return Ok(UnaryAnswer { body, id, _memory: memory });
                }
                Err(CallsError::Elsewhere) => {}
                Err(CallsError::Refused) => refused = refused.plus(sum),
                Err(CallsError::Ended(ended)) => return Err(ended),
            }
        }
    }

    /// Requests a whole answer; after a refused one the model reads why.
    async fn open_whole(&self, journey: &mut Journey<'_>) -> Result<Box<OpenAttempt>, JourneyEnd> {
        let refused = self.progress.guard_refused.take();
        let calls = refused.corrected();
        let opened =
            journey.open(&self.shape, &mut |target| self.write(target, &mode_after(&calls, ""))).await;
        drop(calls);
        self.progress.guard_refused.replace(refused);
        opened
    }

    /// Records a failed attempt; returns the end where no attempt is left.
    pub(crate) fn failed(
        &self,
        journey: &mut Journey<'_>,
        open: Box<OpenAttempt>,
        fault: Box<Fault>,
    ) -> Option<JourneyEnd> {
        let (target, place) = (Arc::clone(&open.target), open.place);
        match journey.after(open, fault.clone()) {
            // There is nothing to show the model: another target is asked.
            remedy @ Remedy::Reask => {
                journey.leave(place, remedy);
                None
            }
            remedy if journey.trim(&target, remedy) => None,
            Remedy::Stop | Remedy::Degrade | Remedy::Trim => Some(journey.give_up_before_content(fault)),
            _ => None,
        }
    }

    /// Whether an answer with status 200 is valid.
    async fn judge(
        &self,
        journey: &Journey<'_>,
        open: &OpenAttempt,
        body: &Bytes,
    ) -> Result<AnswerFacts, Box<Fault>> {
        let fault_of_text = || journey.classify(&open.head, 200, &String::from_utf8_lossy(body), false);
        let (dialects, bytes) = (self.dialects(&open.target), body.clone());
        let read = on_a_large_core(self.core, body.len(), move || whole::read(dialects, &bytes)).await;
        let read = match read.ok_or_else(not_an_answer)? {
            WholeAnswer::Read(read) => read,
            WholeAnswer::None => return Err(fault_of_text().unwrap_or_else(not_an_answer)),
            WholeAnswer::OnlyMedia => return Err(not_an_answer()),
            WholeAnswer::Failed(text, reason) => {
                return Err(journey.ended_for_error(&open.head, &text, &reason));
            }
            WholeAnswer::BrokenCall => return Err(broken_call()),
        };
        if read.lost_media {
            self.note_lost_media(&open.target);
        }
        // A filter is reported as the vendor's own API does: as a finish reason, with the text before it.
        let filtered = read.is_filtered.then(|| fault_of_text().unwrap_or_else(filtered));
        if let Some(fault) =
            filtered.as_ref().filter(|_| !read.calls.is_empty() || journey.goes_around_filters())
        {
            return Err(fault.clone());
        }
        if !read.is_complete {
            match fault_of_text() {
                Some(fault) => return Err(fault),
                // Cut by the client's own limit before any text: that is an answer.
                None if read.has_end => {}
                None => return Err(not_an_answer()),
            }
        }
        let ReadAnswer { calls, finish, usage, id, .. } = read;
        Ok(AnswerFacts { calls, finish, usage, id, filtered })
    }

    fn dialects(&self, target: &Target) -> Dialects {
        Dialects { target: self.target_dialect(target), client: self.request.dialect() }
    }
}

/// The relevant facts of a whole answer.
struct AnswerFacts {
    calls: Vec<ToolCall>,
    finish: Finish,
    usage: Option<Usage>,
    id: Option<String>,
    /// A content filter ended it.
    filtered: Option<Box<Fault>>,
}

/// The fault of a content filter that ended an answer.
pub(crate) fn filtered() -> Box<Fault> {
    Box::new(Fault::of(Kind::ContentFiltered, "gateway.filter"))
}

impl RoutedRequest<'_> {
    /// An answer as the client gets it; with its cost, where that is another one than it says.
    async fn for_reader(
        &self,
        target: &Target,
        body: Bytes,
        calls: Vec<ToolCall>,
        usage: Option<Usage>,
        made_whole: bool,
    ) -> Bytes {
        let head = match self.is_native(target) {
            true => Head::default(),
            false => Head {
                id: answer_id(self.request.dialect(), &self.context.id),
                model: target.model.to_string(),
                created: self.context.wall.as_second(),
                fingerprint: None,
            },
        };
        let written = WrittenFor {
            dialects: self.dialects(target),
            calls: self.for_client(target, calls),
            usage,
            head,
            is_legacy: self.request.is_legacy(),
            made_whole,
        };
        let as_it_came = body.clone();
        on_a_large_core(self.core, body.len(), move || whole::write(&written, body))
            .await
            .unwrap_or(as_it_came)
    }

    /// Calls of a target as the client knows them: in another dialect with ids of our own where they have none or duplicates, and free text where
    /// the client's tool takes that; tools of a group get both their names again.
    pub(crate) fn for_client(&self, target: &Target, mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
        if self.is_native(target) {
            return calls;
        }
        let mut known = HashSet::new();
        for (number, call) in (0_usize..).zip(&mut calls) {
            // Clients match results to calls by these alone.
            if call.id.is_empty() || !known.insert(call.id.clone()) {
                call.id = call_id(&self.context.id, number);
            }
            if !call.free_text
                && self.takes_text(&call.name)
                && let Some(text) = free_text::unwrapped(&call.arguments)
            {
                call.arguments = text;
                call.free_text = true;
            }
            if let Some((namespace, name)) = self.request.in_group(&call.name) {
                call.name = name.into_owned();
                call.namespace = Some(namespace.into_owned());
            }
        }
        calls
    }
}

/// An id for a call without one: unique within the request, and nearly so among requests.
fn call_id(request: &str, number: usize) -> String {
    format!("call_{}{number}", crate::route::auth::fingerprint(request))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use koboshi_sim::{Beat, Beats, End};

    use super::*;

    /// The runtime polls no timer while a body yields one block after the other: only a check of the clock ends such an answer.
    #[tokio::test(start_paused = true)]
    async fn the_total_timeout_is_kept_while_data_is_at_hand() {
        let beat = Beat { after: Duration::ZERO, bytes: Bytes::from_static(b"and so on ") };
        let at_hand = || Body::played(Beats::from(vec![beat.clone(); 1000]), End::Clean, None);
        let (pace, now) = (Pace::default(), Instant::now());
        let idle = Duration::from_secs(30);
        let limits = |total: Instant| Limits { first: now + idle, idle, total };
        let whole = read_blocks(&pace, &mut at_hand(), &limits(now + idle), |_| Ok(())).await;
        assert_eq!(whole.unwrap().len(), 10_000);
        let late = read_blocks(&pace, &mut at_hand(), &limits(now), |_| Ok(())).await;
        assert_eq!(late.unwrap_err().sub, Some(Sub::Total));
    }
}
