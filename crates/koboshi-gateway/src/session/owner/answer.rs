//! The answer of the running turn: asked for, shown piece by piece, ended.

use koboshi::fault::{Kind, Sub};
use koboshi::session::{
    Body, DoneReason, ErrorBody, Retry, RetryWhere, Runs, Texts, TurnState, Usage, units,
};
use koboshi_report::phrase::Lang;
use tokio::time::Instant;

use super::{Owner, Stop};
use crate::route::plan::{Backing, Plan};
use crate::session::frames::{self, millis};
use crate::session::turn::{MadeCall, Part, Segment};
use crate::session::{history, storage};
use crate::shared::notice::Notice;

/// Calls of one turn.
const MAX_CALLS: usize = 64;
/// Bytes of one answer: a provider that never ends must not fill the memory.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

impl Owner<'_> {
    /// Begins the next segment, if one is to run.
    pub(super) async fn go_on(&mut self) -> Result<(), Stop> {
        if self.segment.is_some() || self.live.log().state() != TurnState::Running {
            return Ok(());
        }
        let (model, lang, turn, can_rewind, key) = {
            let log = self.live.log();
            let Some((spec, _)) = log.running() else { return Ok(()) };
            let lang = Lang::from_tag(&spec.lang).unwrap_or(Lang::En);
            (
                spec.route.clone().or_else(|| default_model(&self.plan)),
                lang,
                spec.turn,
                spec.can_rewind,
                spec.key.clone(),
            )
        };
        let Some(model) = model else {
            let mut error = frames::error(&self.plan, Kind::ModelNotFound, "turn");
            error.texts = self.no_model(lang);
            return self.end(DoneReason::Error, Some(error)).await;
        };
        let request = history::request(&self.live.log(), &model);
        let Some(request) = request else { return Ok(()) };
        (self.thought, self.turn) = (0, turn);
        self.segment = Some(Segment::ask(
            self.core,
            (&self.live.tenant, key.as_deref()),
            lang,
            can_rewind,
            request.to_string().into(),
        ));
        Ok(())
    }

    fn no_model(&self, lang: Lang) -> Texts {
        let phrases = &self.core.state.phrases;
        let text =
            |part: &str| phrases.text(lang, &format!("session-no-model.{part}"), &[]).unwrap_or_default();
        Texts { lang: lang.name().to_owned(), message: text("message"), suggestion: text("suggestion") }
    }

    /// A part of the running answer.
    pub(super) async fn part(&mut self, part: Part) -> Result<(), Stop> {
        let (attempt, at, bytes) = {
            let log = self.live.log();
            let Some(open) = &log.transcript().open else { return Ok(()) };
            (open.attempt, open.length(), open.text.len())
        };
        match part {
            Part::Text(data, _) if bytes + data.len() > MAX_ANSWER => {
                return self.end(DoneReason::Length, None).await;
            }
            Part::Text(data, source) => self.show(Body::Content { attempt, at, data, source }),
            Part::Thought(data) => {
                let at = self.thought;
                self.thought += units(&data);
                self.show(Body::Reasoning { attempt, at, data });
            }
            Part::Degraded { source, kind, age_ms } => {
                self.show(Body::Degraded { source, kind, age_ms, texts: Texts::default() });
            }
            Part::Notice(notice) => return self.notice(notice, attempt).await,
            Part::Whole { reason, calls, usage } => {
                self.segment = None;
                self.add_usage(usage);
                if calls.is_empty() {
                    return self.end(reason, None).await;
                }
                return self.offer(attempt, calls).await;
            }
            Part::Failed(error) => {
                self.segment = None;
                return self.end(DoneReason::Error, Some(*error)).await;
            }
        }
        Ok(())
    }

    fn add_usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
    }

    async fn notice(&mut self, notice: Notice, answer_attempt: u32) -> Result<(), Stop> {
        let retry = |attempt, max_attempts, delay_ms, kind: Kind, texts| {
            Body::Retry(Retry {
                attempt,
                max_attempts,
                delay_ms,
                kind: kind.name().to_owned(),
                place: RetryWhere::Same,
                answer_attempt,
                texts,
            })
        };
        match notice {
            Notice::Retry { attempt, max_attempts, delay, kind } => {
                self.show(retry(attempt, max_attempts, millis(delay), kind, Texts::default()));
            }
            Notice::Reask { line, attempt, max_attempts } => {
                let lang = self.live.log().running().map(|(spec, _)| spec.lang.clone()).unwrap_or_default();
                let texts = Texts { lang, message: line, suggestion: String::new() };
                self.show(retry(attempt, max_attempts, 0, Kind::ToolArgumentsInvalid, texts));
            }
            Notice::Trimmed { tokens, messages } => {
                let reason = Kind::ContextTooLarge.name().to_owned();
                self.show(Body::Trimmed { messages, tokens, reason });
            }
            Notice::Rewind { kind } => {
                let change = self.live.log().rewind(kind.name());
                if let Some(change) = change {
                    self.record(change).await?;
                }
            }
        }
        Ok(())
    }

    /// The model calls tools: each is offered to the tabs.
    async fn offer(&mut self, attempt: u32, calls: Vec<MadeCall>) -> Result<(), Stop> {
        let deadline = self.plan.config.sessions.tool_timeout;
        let known = self.live.log().transcript().open.as_ref().map_or(0, |open| open.calls.len());
        let runs_once = |call: &MadeCall| !self.live.log().may_run_again(&call.name);
        let is_kept = calls.iter().any(runs_once) && self.keeps_claims().await;
        for call in calls.into_iter().take(MAX_CALLS.saturating_sub(known)) {
            let id = self.live.log().next_call(0);
            let body = Body::ToolCall {
                attempt,
                call: id.clone(),
                name: call.name.clone(),
                arguments: call.arguments(),
                runs: Runs::Client,
                deadline_ms: millis(deadline),
                at_most_once: is_kept && !self.live.log().may_run_again(&call.name),
            };
            let change = self.live.log().tell(body);
            if let Some(change) = change {
                self.record(change).await?;
            }
            self.deadlines.insert(id, Instant::now() + deadline);
        }
        if self.live.log().state() == TurnState::Running && known >= MAX_CALLS {
            let error = self.error(Kind::CallDepthExceeded, None);
            return self.end(DoneReason::Error, Some(error)).await;
        }
        Ok(())
    }

    /// Whether a claim is there after a failure of the store's machine: what Redis has written may be lost with it, unless a replica has it.
    async fn keeps_claims(&self) -> bool {
        storage::ask_of(&self.core.state, self.live, |store| store.sessions().can_confirm())
            .await
            .unwrap_or(false)
    }

    pub(super) fn error(&self, kind: Kind, sub: Option<Sub>) -> ErrorBody {
        let lang = {
            let log = self.live.log();
            log.running().and_then(|(spec, _)| Lang::from_tag(&spec.lang)).unwrap_or(Lang::En)
        };
        let mut error = frames::error(&self.plan, kind, "turn");
        error.texts = frames::texts(&self.core.state, lang, kind, sub);
        error
    }

    /// The running turn ends.
    pub(super) async fn end(&mut self, reason: DoneReason, error: Option<ErrorBody>) -> Result<(), Stop> {
        self.segment = None;
        let change = self.live.log().done(reason, error, self.usage.take());
        self.deadlines.clear();
        match change {
            Some(change) => self.record(change).await,
            None => Ok(()),
        }
    }
}

/// The model that answers where a chat names none.
pub(crate) fn default_model(plan: &Plan) -> Option<String> {
    if let Some(model) = &plan.config.sessions.model {
        return Some(model.clone());
    }
    let mut routes = plan.config.routes.keys().filter(|name| !name.contains('*'));
    match (routes.next(), routes.next()) {
        (Some(only), None) => Some(only.clone()),
        (None, None) if plan.backing() != Backing::Providers => Some("sim/ok".to_owned()),
        _ => None,
    }
}
