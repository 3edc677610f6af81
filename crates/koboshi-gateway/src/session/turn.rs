//! A segment of a turn: one chat request on the same path as those of HTTP clients, in this process.
//!
//! The request is served by `request::generate`, like every other; what it would send to a socket is read here and becomes parts for the
//! log. What HTTP has no place for (a retry before its wait, a rewind) comes as notices, in order with the pieces.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi::gate::Tenant;
use koboshi::session::{DoneReason, ErrorBody, Source, Texts, Usage};
use koboshi_report::phrase::Lang;
use koboshi_wire::Dialect;
use koboshi_wire::chat::event;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::Step;
use serde_json::Value;

use super::frames;
use crate::http::body::BodyError;
use crate::http::response_future::ResponseFuture;
use crate::http::upstream::Sends;
use crate::reply::refusal::Refusal;
use crate::request::generate::{self, Intake, OpenRequest};
use crate::route::answers::Hints;
use crate::route::plan::Plan;
use crate::shared::context::{RequestContext, new_request_id};
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::DegradeSource;
use crate::shared::notice::{Notice, Notices};
use crate::shared::program::Program;
use crate::shared::trace::Trace;

/// Frames of an answer are not longer.
const MAX_FRAME: usize = 32 * 1024 * 1024;

/// A call as the model made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MadeCall {
    index: u32,
    pub(crate) name: String,
    arguments: String,
}

impl MadeCall {
    pub(crate) fn arguments(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}

/// What a turn says next.
#[derive(Debug)]
pub(crate) enum Part {
    Text(String, Source),
    Thought(String),
    Notice(Notice),
    /// A lesser answer follows.
    Degraded {
        source: Source,
        kind: String,
        age_ms: Option<u64>,
    },
    /// The answer is whole.
    Whole {
        reason: DoneReason,
        calls: Vec<MadeCall>,
        usage: Option<Usage>,
    },
    Failed(Box<ErrorBody>),
}

/// One request on its way.
pub(crate) struct Segment {
    future: ResponseFuture,
    notices: Arc<Notices>,
    plan: Arc<Plan>,
    lang: Lang,
    request: String,
    framer: Framer,
    status: u16,
    /// A body that is no stream.
    whole: Vec<u8>,
    source: Source,
    calls: Vec<MadeCall>,
    usage: Option<Usage>,
    finish: Option<DoneReason>,
    failed: Option<Box<ErrorBody>>,
    /// What was read and not given out yet.
    parts: std::collections::VecDeque<Part>,
    is_over: bool,
}

impl Segment {
    /// Asks for the answer to this request.
    pub(crate) fn ask(
        core: &Rc<CoreState>,
        (tenant, key): (&str, Option<&str>),
        lang: Lang,
        can_rewind: bool,
        body: Bytes,
    ) -> Self {
        let state = &core.state;
        let plan = state.plan();
        let notices = Arc::new(Notices::new(can_rewind));
        let (began, wall) = (state.now(), state.wall());
        let context = RequestContext {
            id: new_request_id(),
            tenant: Tenant::new(tenant),
            key: key.map_or_else(|| plan.keys.local_name(), Arc::from),
            lang,
            began,
            wall,
            deadline: began.after(plan.config.serve.deadline),
            is_clients_deadline: false,
            agent: None,
            trace: Trace::default(),
            dialect: Dialect::Chat,
            method: "session",
            program: Program::default(),
            is_local: false,
            list: false,
            betas: None,
            sends: Sends::default(),
            attempts: std::cell::Cell::default(),
            route: std::cell::OnceCell::new(),
            is_lesser: std::cell::Cell::default(),
            notices: Some(Arc::clone(&notices)),
        };
        let request = context.id.to_string();
        let mut memory = state.memory.share();
        let has_memory = memory.fit(body.len(), state.memory_limit(&plan));
        let intake = Intake {
            context,
            plan: Arc::clone(&plan),
            body,
            client_key: None,
            hints: Hints::default(),
            path_model: None,
            _memory: memory,
        };
        let (core, open) = (Rc::clone(core), OpenRequest::on(core));
        let future = ResponseFuture::of(move |sender| async move {
            let _open = open;
            if !has_memory {
                let refusal = Refusal::body_error(BodyError::NoMemory, 0);
                let error_reply = refusal.reply(&core.state, &intake.plan, &intake.context);
                return Box::pin(generate::send_error(&core, &sender, error_reply)).await;
            }
            generate::serve(&core, &intake, &sender).await;
        });
        Self {
            future,
            notices,
            plan,
            lang,
            request,
            framer: Framer::new(MAX_FRAME),
            status: 0,
            whole: Vec::new(),
            source: Source::Model,
            calls: Vec::new(),
            usage: None,
            finish: None,
            failed: None,
            parts: std::collections::VecDeque::new(),
            is_over: false,
        }
    }

    /// The next part. After the answer is whole or has failed there is none, and this waits for ever.
    pub(crate) async fn next(&mut self) -> Part {
        poll_fn(|context| {
            loop {
                if let Some(part) = self.parts.pop_front() {
                    return Poll::Ready(part);
                }
                if self.is_over {
                    return Poll::Pending;
                }
                let goes_on = self.future.poll_run(context);
                self.parts.extend(self.notices.take().into_iter().map(Part::Notice));
                if self.parts.iter().any(|part| matches!(part, Part::Notice(Notice::Rewind { .. }))) {
                    self.forget();
                }
                if let Some(heading) = self.future.take_head() {
                    self.status = heading.status.as_u16();
                }
                match self.future.take_piece() {
                    Some(piece) => self.read(piece),
                    None if goes_on && self.parts.is_empty() => return Poll::Pending,
                    None if goes_on => {}
                    None => self.end(),
                }
            }
        })
        .await
    }

    /// The answer begins again.
    fn forget(&mut self) {
        self.framer = Framer::new(MAX_FRAME);
        (self.calls, self.finish, self.source) = (Vec::new(), None, Source::Model);
    }

    fn read(&mut self, piece: Bytes) {
        if self.status != 0 && self.status != 200 && !piece.starts_with(b"data:") && !piece.starts_with(b":")
        {
            self.whole.extend_from_slice(&piece);
            return;
        }
        self.framer.push(piece);
        while let Some(Ok(frame)) = self.framer.next_frame() {
            let Ok(Some(data)) = frame.data() else { continue };
            let data = data.into_owned();
            match event::read(&data) {
                Ok(step) if step.error => self.failed = Some(self.error(data.as_bytes())),
                Ok(step) => self.step(&step, &data),
                Err(_) => {}
            }
        }
    }

    fn step(&mut self, step: &Step<'_>, data: &str) {
        // The gateway says in the first frame where a lesser answer comes from.
        if data.contains("\"koboshi\"") {
            self.note(data);
        }
        if let Some(thought) = &step.thought {
            self.parts.push_back(Part::Thought(thought.to_string()));
        }
        if let Some(text) = &step.text {
            self.parts.push_back(Part::Text(text.to_string(), self.source));
        }
        for piece in step.calls.iter().filter(|piece| piece.choice == 0) {
            let at = self.calls.iter().position(|call| call.index == piece.index);
            let at = at.unwrap_or_else(|| {
                self.calls.push(MadeCall { index: piece.index, ..MadeCall::default() });
                self.calls.len() - 1
            });
            if let Some(call) = self.calls.get_mut(at) {
                call.name.push_str(piece.name.as_deref().unwrap_or_default());
                call.arguments.push_str(piece.arguments.as_deref().unwrap_or_default());
            }
        }
        if let Some((_, reason)) = step.finish.iter().find(|(choice, _)| *choice == 0) {
            self.finish = Some(match &**reason {
                "length" => DoneReason::Length,
                "content_filter" => DoneReason::Filtered,
                _ => DoneReason::Stop,
            });
        }
        if let Some(usage) = step.usage {
            self.usage = Some(Usage { input: usage.input, output: usage.output });
        }
    }

    fn note(&mut self, data: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(data) else { return };
        let Some(note) = frame.get("koboshi").filter(|note| note.get("source").is_some()) else { return };
        let word = |name: &str| note.get(name).and_then(Value::as_str).unwrap_or_default();
        let source = word("source");
        let degraded = DegradeSource::ORDER.into_iter().find(|known| known.name() == source);
        self.source = match degraded {
            Some(DegradeSource::Cache) => Source::Cache,
            Some(DegradeSource::Simple) => Source::Simple,
            Some(DegradeSource::Static) => Source::Fallback,
            None => Source::Model,
        };
        if note.get("degraded") == Some(&Value::Bool(true)) {
            let kind = note.pointer("/reason/kind").and_then(Value::as_str).unwrap_or("unavailable");
            let age = note.get("ageSeconds").and_then(Value::as_u64);
            let part = Part::Degraded {
                source: self.source,
                kind: kind.to_owned(),
                age_ms: age.map(|age| age.saturating_mul(1000)),
            };
            self.parts.push_back(part);
        }
    }

    /// Everything was read.
    fn end(&mut self) {
        self.is_over = true;
        let whole = std::mem::take(&mut self.whole);
        let part = match (self.failed.take(), self.finish) {
            (Some(error), _) => Part::Failed(error),
            (None, _) if !whole.is_empty() => Part::Failed(self.error(&whole)),
            (None, Some(reason)) => {
                Part::Whole { reason, calls: std::mem::take(&mut self.calls), usage: self.usage }
            }
            (None, None) => Part::Failed(self.error(b"")),
        };
        self.parts.push_back(part);
    }

    /// The error in an answer, as the log keeps it.
    fn error(&self, body: &[u8]) -> Box<ErrorBody> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let own = body.pointer("/error/koboshi").unwrap_or(&Value::Null);
        let word = |name: &str| own.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = Kind::from_name(&word("kind")).unwrap_or(Kind::Internal);
        let mut error = frames::error(&self.plan, kind, "turn");
        error.retry.later = own.get("retryable").and_then(Value::as_bool).unwrap_or(error.retry.later);
        let seconds = own.get("retryAfterSeconds").and_then(Value::as_u64);
        error.retry.after_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
        error.recoverable = !self.plan.config.sessions.seed_errors;
        error.request = Some(self.request.clone());
        error.texts = Texts {
            lang: self.lang.name().to_owned(),
            message: word("message"),
            suggestion: word("suggestion"),
        };
        Box::new(error)
    }
}
