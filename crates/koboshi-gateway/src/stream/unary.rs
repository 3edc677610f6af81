//! An answer that is not streamed: read completely, judged, and forwarded unchanged.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use koboshi::args::Finish;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::remedy::Remedy;
use koboshi_wire::Dialect;
use koboshi_wire::any::answer;
use koboshi_wire::dialect::finish;
use koboshi_wire::form::free_text;
use koboshi_wire::step::Usage;
use koboshi_wire::whole::{Choice, Whole};
use koboshi_wire::writer::Head;
use tokio::time::{Instant, timeout_at};

use crate::attempt::Limits;
use crate::attempt::journey::{Journey, JourneyEnd, OpenAttempt};
use crate::attempt::not_an_answer;
use crate::http::upstream::Body;
use crate::http::upstream::connection_fault::timed_out;
use crate::route::target::Target;
use crate::stream::blocks::Blocks;
use crate::stream::firewall::{CallsError, ToolCall, broken_call, is_broken_call, is_made_whole};
use crate::stream::forbidden::mode_after;
use crate::stream::run::Run;
use crate::stream::writer::own_id;

/// Larger answers are refused.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A whole answer for the client.
pub(crate) struct UnaryAnswer {
    pub(crate) body: Bytes,
    /// Its id, where a later request may refer to it.
    pub(crate) id: Option<String>,
}

/// Reads an answer to its end.
pub(crate) async fn read_whole(open: &mut OpenAttempt) -> Result<Bytes, Box<Fault>> {
    let OpenAttempt { limits, body, attempt_guard, .. } = open;
    read_blocks(body, limits, |read| attempt_guard.count_partial(read)).await
}

/// Reads a body to its end, within these limits. `count` gets the number of bytes after each block.
async fn read_blocks(
    body: &mut Body,
    limits: &Limits,
    mut count: impl FnMut(usize),
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
        read += block.len();
        count(read);
        let too_long = || Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long"));
        blocks.push(block).ok_or_else(too_long)?;
    }
    Ok(blocks.whole())
}

/// The deadline of the next block, and the name of that timeout.
fn next_block(limits: &Limits) -> (Instant, Sub) {
    let now = Instant::now();
    let idle = now + limits.idle.max(limits.first.saturating_duration_since(now));
    if idle < limits.total { (idle, Sub::Idle) } else { (limits.total, Sub::Total) }
}

impl Run<'_> {
    /// Asks targets until there is a complete, valid answer.
    pub(crate) async fn answer(&self, journey: &mut Journey<'_>) -> Result<UnaryAnswer, JourneyEnd> {
        // The cost of refused answers.
        let mut refused = Usage::default();
        loop {
            let mut open = self.open_whole(journey).await?;
            self.served_by(&open);
            let read = read_whole(&mut open).await;
            let judged = read.and_then(|body| {
                let judged = self.judge(journey, &open, &body)?;
                Ok((body, judged))
            });
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
                let body = self.for_reader(&open.target, body, &calls, sum.as_ref());
                journey.succeeded(open, usage);
                return Ok(UnaryAnswer { body, id });
            }
            // The target that wrote the answer; another one may have to correct a call.
            let author = Arc::clone(&open.target);
            match Box::pin(self.settle_calls(journey, open, &mut calls, finish, &mut sum, true)).await {
                Ok(open) => {
                    let changed = Some(refused.plus(sum)).filter(|sum| usage != Some(*sum));
                    let answer = match is_made_whole(&calls, finish) {
                        true => answer::ended_for_calls(self.target_dialect(&author), &body),
                        false => body,
                    };
                    let body = self.for_reader(&author, answer, &calls, changed.as_ref());
                    journey.succeeded(open, Some(sum));
                    return Ok(UnaryAnswer { body, id });
                }
                Err(CallsError::Elsewhere) => {}
                Err(CallsError::Refused) => refused = refused.plus(sum),
                Err(CallsError::Ended(ended)) => return Err(ended),
            }
        }
    }

    /// Requests a whole answer; after a refused one the model reads why.
    async fn open_whole(&self, journey: &mut Journey<'_>) -> Result<Box<OpenAttempt>, JourneyEnd> {
        let refused = self.refused.take();
        let calls = refused.corrected();
        let opened =
            journey.open(&self.shape, &mut |target| self.write(target, &mode_after(&calls, ""))).await;
        drop(calls);
        self.refused.replace(refused);
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
    fn judge(
        &self,
        journey: &Journey<'_>,
        open: &OpenAttempt,
        body: &Bytes,
    ) -> Result<AnswerFacts, Box<Fault>> {
        let text = || String::from_utf8_lossy(body);
        let fault_of_text = || journey.classify(&open.head, 200, &text(), false);
        let read = answer::read(self.target_dialect(&open.target), body);
        let Ok(mut whole) = read else { return Err(fault_of_text().unwrap_or_else(not_an_answer)) };
        if !self.is_native(&open.target) {
            // No other dialect can express a model's sound and pictures: an answer of those alone would be empty.
            for choice in whole.choices.iter_mut().filter(|choice| choice.audio) {
                choice.audio = false;
                if !choice.has_content() {
                    return Err(not_an_answer());
                }
                self.note_lost_media(&open.target);
            }
        }
        if whole.error || whole.choices.is_empty() {
            return Err(fault_of_text().unwrap_or_else(not_an_answer));
        }
        let mut reasons = whole.choices.iter().filter_map(|choice| Some((choice, choice.finish.as_deref()?)));
        if let Some((choice, reason)) = reasons.find(|(_, reason)| finish::is_error(reason)) {
            return Err(journey.ended_for_error(
                &open.head,
                choice.text.as_deref().unwrap_or_default(),
                reason,
            ));
        }
        let broken = |choice: &Choice<'_>| choice.finish.as_deref().is_some_and(is_broken_call);
        if whole.choices.iter().any(broken) {
            return Err(broken_call());
        }
        let is_filtered = |choice: &Choice<'_>| choice.finish.as_deref() == Some(finish::CONTENT_FILTER);
        // A filter is reported as the vendor's own API does: as a finish reason, with the text before it.
        let filtered =
            whole.choices.iter().any(is_filtered).then(|| fault_of_text().unwrap_or_else(filtered));
        let has_calls = whole.choices.iter().any(|choice| !choice.calls.is_empty());
        if let Some(fault) = filtered.as_ref().filter(|_| has_calls || journey.goes_around_filters()) {
            return Err(fault.clone());
        }
        let fine = |choice: &Choice<'_>| choice.has_content() || is_filtered(choice);
        let goes_on = self.request.dialect().has_stored_answers() && self.is_native(&open.target);
        let judged = || AnswerFacts {
            calls: tool_calls(&whole),
            finish: finish_of(&whole),
            usage: whole.usage,
            id: whole.id.as_deref().filter(|_| goes_on).map(str::to_owned),
            filtered: filtered.clone(),
        };
        if whole.choices.iter().all(fine) {
            return Ok(judged());
        }
        match fault_of_text() {
            Some(fault) => Err(fault),
            // Cut by the client's own limit before any text: that is an answer.
            None if whole.choices.iter().any(|choice| choice.finish.is_some()) => Ok(judged()),
            None => Err(not_an_answer()),
        }
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

fn tool_calls(whole: &Whole<'_>) -> Vec<ToolCall> {
    let of_choice = |choice: &Choice<'_>| {
        let calls = (0..).zip(&choice.calls).map(|(index, call)| ToolCall {
            choice: choice.index,
            index,
            id: call.id.as_deref().unwrap_or_default().to_owned(),
            name: call.name.as_deref().unwrap_or_default().to_owned(),
            namespace: call.namespace.as_deref().map(str::to_owned),
            arguments: call.arguments.clone().into_owned(),
            free_text: call.free_text,
            signature: call.signature.as_ref().map(|signature| signature.data.clone().into_owned()),
            ..ToolCall::default()
        });
        calls.collect::<Vec<_>>()
    };
    whole.choices.iter().flat_map(of_choice).collect()
}

fn finish_of(whole: &Whole<'_>) -> Finish {
    let reasons = whole.choices.iter().filter_map(|choice| choice.finish.as_deref()).map(Finish::of);
    reasons.fold(Finish::Unknown, |known, reason| {
        if reason == Finish::Cut {
            reason
        } else if known == Finish::Cut {
            known
        } else {
            reason
        }
    })
}

impl Run<'_> {
    /// An answer as the client gets it: repaired calls in place of the broken ones, the cost of all attempts, and in its own dialect.
    fn for_reader(&self, target: &Target, body: Bytes, calls: &[ToolCall], usage: Option<&Usage>) -> Bytes {
        let dialect = self.target_dialect(target);
        if self.is_native(target) {
            let body = with_changes(dialect, body, calls);
            return match usage {
                Some(usage) => answer::with_usage(dialect, &body, usage),
                None => body,
            };
        }
        let Ok(mut whole) = answer::read(dialect, &body) else { return body };
        let own = self.for_client(target, calls.to_vec());
        let mut written = own.iter();
        for call in whole.choices.iter_mut().flat_map(|choice| &mut choice.calls) {
            let Some(own) = written.next() else { break };
            call.id = Some(own.id.as_str().into());
            call.name = Some(own.name.as_str().into());
            call.namespace = own.namespace.as_deref().map(Into::into);
            call.arguments = own.arguments.as_str().into();
            call.free_text = own.free_text;
            call.signature = None;
        }
        for choice in &mut whole.choices {
            let has_calls = !choice.calls.is_empty();
            let fitting = |reason: Cow<'_, str>| finish::fitting(&reason, has_calls).to_owned().into();
            choice.finish = choice.finish.take().map(fitting);
        }
        whole.usage = usage.copied().or(whole.usage);
        let head = Head {
            id: own_id(self.request.dialect(), &self.context.id),
            model: whole.model.as_deref().unwrap_or(&target.model).to_owned(),
            created: self.context.wall.as_second(),
            fingerprint: None,
        };
        answer::write(self.request.dialect(), &head, &whole, None, self.request.is_legacy())
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

/// The answer with repaired arguments in place of the broken ones.
fn with_changes(dialect: Dialect, body: Bytes, calls: &[ToolCall]) -> Bytes {
    if calls.iter().all(|call| !call.changed) {
        return body;
    }
    let Ok(whole) = answer::read(dialect, &body) else { return body };
    let spans = whole.choices.iter().flat_map(|choice| choice.calls.iter().map(|call| call.span.clone()));
    let changes: Vec<_> = spans
        .zip(calls)
        .filter_map(|(span, call)| Some((span.filter(|_| call.changed)?, call.arguments.as_str())))
        .collect();
    answer::with_arguments(dialect, &body, &changes)
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
        let now = Instant::now();
        let idle = Duration::from_secs(30);
        let limits = |total: Instant| Limits { first: now + idle, idle, total };
        let whole = read_blocks(&mut at_hand(), &limits(now + idle), |_| {}).await;
        assert_eq!(whole.unwrap().len(), 10_000);
        let late = read_blocks(&mut at_hand(), &limits(now), |_| {}).await;
        assert_eq!(late.unwrap_err().sub, Some(Sub::Total));
    }
}
