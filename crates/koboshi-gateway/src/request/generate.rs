//! Serves a generation request, in any dialect, from the body to the last byte.
//!
//! intake → guard → route → journey (attempts) → stream or whole answer → degrade → error in the client's dialect and language.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use koboshi::fault::{Fault, Kind, Origin, Sub};
use koboshi_wire::IntakeError;
use koboshi_wire::any::Request;

use crate::attempt::Shape;
use crate::attempt::journey::{ChangeRequest, JourneyEnd};
use crate::degrade;
use crate::http::memory::MemoryShare;
use crate::http::response_future::ResponseSender;
use crate::http::upstream::interface::Interface;
use crate::reply::refusal::Refusal;
use crate::reply::simulated;
use crate::reply::{self, ErrorReply};
use crate::request::{guard, spend};
use crate::route::answers::Hints;
use crate::route::capability::{self, Lack};
use crate::route::plan::Plan;
use crate::route::target::{Target, prefer};
use crate::shared::chains::{Candidates, Chain};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure;
use crate::shared::disclosure::Disclosure;
use crate::shared::state::SharedState;
use crate::stream::machine::{Outcome, Stream};
use crate::stream::run::Run;
use crate::stream::writer::{LazyStreamWriter, separate_error};

/// When a client may retry after the gateway has stopped: another one may answer at once.
const RETRY_ELSEWHERE: Duration = Duration::from_secs(1);

/// A request that was admitted.
pub(crate) struct Intake {
    pub(crate) context: RequestContext,
    pub(crate) plan: Arc<Plan>,
    pub(crate) body: Bytes,
    /// The client's own key, where it may be sent to its vendor.
    pub(crate) own_key: Option<HeaderValue>,
    /// Headers that choose a static answer.
    pub(crate) hints: Hints,
    /// The model and whether a stream is requested, where the path states them.
    pub(crate) path_model: Option<(String, bool)>,
    /// The memory share of its body, held while the request lives.
    pub(crate) _memory: MemoryShare,
}

/// Counts a request while it lives.
pub(crate) struct OpenRequest(Rc<CoreState>);

impl OpenRequest {
    pub(crate) fn on(core: &Rc<CoreState>) -> Self {
        core.state.meters.open.inc();
        Self(Rc::clone(core))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.state.meters.open.dec();
    }
}

/// Serves one request.
pub(crate) async fn serve(core: &CoreState, intake: &Intake, sender: &ResponseSender) {
    let Intake { context, plan, body, own_key, hints, path_model, .. } = intake;
    let path_model = path_model.as_ref().map(|(model, stream)| (model.as_str(), *stream));
    let request = match Request::parse(context.dialect, body, path_model) {
        Ok(request) => request,
        Err(error) => return unreadable(core, intake, sender, &error).await,
    };
    context.trace.asks_for(request.model());
    let Some(chain) = core.chains.of(&core.state, plan, request.model()) else {
        let error_reply = Refusal::model(plan, request.model()).reply(&core.state, plan, context);
        return Box::pin(send_error(core, sender, error_reply)).await;
    };
    let route = &chain.route;
    if let Err(refusal) = spend::admit(core, plan, context, route, request.model()) {
        let error_reply = refusal.reply(&core.state, plan, context);
        return Box::pin(send_error(core, sender, error_reply)).await;
    }
    let (candidates, too_long) =
        match capable_targets(core, plan, context, &chain, &request, own_key.as_ref()) {
            Ok(candidates) => candidates,
            Err(fault) => {
                let ended = JourneyEnd::unasked(fault);
                let facts = Disclosure { lacks: lacks(core, &chain, &request), ..Disclosure::default() };
                let error_reply = reply::failure_reply(&core.state, plan, context, &[], &ended, &facts);
                return Box::pin(send_error(core, sender, error_reply)).await;
            }
        };
    if all_translate(&candidates.targets, &request)
        && let Some(error) = request.unreadable_number()
    {
        return unreadable(core, intake, sender, &error).await;
    }
    let guard = guard::judge(&core.state, plan, context, route.guard, &request);
    let degraded = degrade::DegradedAnswers::of(core, plan, context, &chain, &request, body, hints);
    if let Some(kept) = degraded.fresh(core) {
        return Box::pin(degraded.send_cached(core, sender, kept, context, &request, guard.header)).await;
    }
    let writer = LazyStreamWriter::new(context, &request, plan.config.serve.keep_alive);
    let run = Run {
        core,
        plan,
        context,
        request: &request,
        body,
        targets: &candidates.targets,
        breakers: &candidates.breakers,
        shape: Shape {
            interface: Interface::Generate(request.dialect()),
            streams: request.stream(),
            max_output: request.max_output().unwrap_or(1024),
        },
        commit: route.commit,
        guard_changes: guard.guard_changes,
        can_degrade: degraded.is_there(),
        facts: RefCell::new(Disclosure { guard: guard.header, ..Disclosure::default() }),
        writer: &writer,
        noted: Cell::new(false),
        lost_media: Cell::new(false),
        trimmed: Cell::new(None),
        mending: Cell::new(None),
        refused: RefCell::default(),
        refusals: Cell::new(0),
    };
    if too_long && !candidates.targets.first().is_some_and(|target| run.trim(target)) {
        let fault = Box::new(Fault::of(Kind::ContextTooLarge, "gateway.preflight"));
        let ended = JourneyEnd::unasked(fault);
        let error_reply = reply::failure_reply(&core.state, plan, context, run.targets, &ended, &run.facts());
        return Box::pin(send_error(core, sender, error_reply)).await;
    }
    let served = pin!(async {
        let ended = if request.stream() {
            Box::pin(streamed(&run, sender, &degraded)).await
        } else {
            Box::pin(whole(&run, sender, &degraded)).await
        };
        if let Err(ended) = ended {
            Box::pin(chain_exhausted(&run, sender, ended, &degraded)).await;
        }
    });
    if core.until_end(served).await.is_none() {
        Box::pin(send_end_error(&run, sender, &stopping(&run.core.state))).await;
    }
}

/// The end of a journey because the gateway stops.
fn stopping(state: &SharedState) -> JourneyEnd {
    let mut fault = Box::new(Fault::of(Kind::Unavailable, "gateway.stopping"));
    (fault.sub, fault.origin) = (Some(Sub::Stopping), Origin::Koboshi);
    JourneyEnd { until: state.wall().checked_add(RETRY_ELSEWHERE).ok(), ..JourneyEnd::unasked(fault) }
}

/// Whether no target speaks the client's dialect.
fn all_translate(targets: &[Arc<Target>], request: &Request<'_>) -> bool {
    targets.iter().all(|target| target.speaks(request.dialect()) != request.dialect())
}

/// Sends the error for a body that is not a valid request.
fn unreadable<'t>(
    core: &'t CoreState,
    intake: &Intake,
    sender: &'t ResponseSender,
    error: &IntakeError,
) -> Pin<Box<impl Future<Output = ()> + use<'t>>> {
    let Intake { context, plan, body, .. } = intake;
    let error_reply = Refusal::body(error, body).reply(&core.state, plan, context);
    Box::pin(send_error(core, sender, error_reply))
}

async fn streamed(
    run: &Run<'_>,
    sender: &ResponseSender,
    degraded: &degrade::DegradedAnswers<'_>,
) -> Result<(), JourneyEnd> {
    let mut journey = run.journey();
    let mut stream = Stream::new(run, sender);
    let outcome = stream.serve(&mut journey).await;
    run.disclose(|facts| facts.tried(&journey));
    if outcome? == Outcome::Whole {
        served(run, &run.writer.borrow_mut().names.id);
        if let Some(text) = stream.plain_text() {
            degraded.keep_text(run, text, &run.writer.borrow_mut().names.model);
        }
    }
    Ok(())
}

async fn whole(
    run: &Run<'_>,
    sender: &ResponseSender,
    degraded: &degrade::DegradedAnswers<'_>,
) -> Result<(), JourneyEnd> {
    let mut journey = run.journey();
    let answered = run.answer(&mut journey).await;
    run.disclose(|facts| facts.tried(&journey));
    let answered = answered?;
    served(run, answered.id.as_deref().unwrap_or_default());
    sender.head(reply::head(200, "application/json", run.context, &run.facts.borrow()));
    degraded.keep_whole(run, &answered.body);
    let body = simulated::marked(run.request.dialect(), answered.body, &run.facts.borrow());
    sender.send(body).await;
    Ok(())
}

/// Remembers which target answered: it serves the conversation's next request best. A request that names this answer can only be served by
/// it.
fn served(run: &Run<'_>, id: &str) {
    let state = &run.core.state;
    state.meters.whole.inc();
    if run.targets.len() > 1
        && let Some(target) = run.facts.borrow().served.clone()
    {
        let (affinity, tenant) = (&state.affinity, run.context.tenant.name());
        if run.request.dialect().has_stored_answers() && !id.is_empty() {
            affinity.note(affinity.conversation(tenant, id.as_bytes()), target.clone());
        }
        affinity.note(affinity.conversation(tenant, run.request.opening()), target);
    }
}

/// Sends a lesser answer, or the error.
async fn chain_exhausted(
    run: &Run<'_>,
    sender: &ResponseSender,
    ended: JourneyEnd,
    degraded: &degrade::DegradedAnswers<'_>,
) {
    let deserves = ended.fault.advice.other || ended.fault.advice.later;
    // As in the remedy: a lesser answer would hide what the client can change.
    let own = matches!(ended.fault.kind, Kind::ContentFiltered | Kind::ContextTooLarge);
    run.disclose(|facts| facts.fault = Some(ended.fault.kind.name()));
    if deserves && !own && degraded.send(run, sender, &ended).await {
        return;
    }
    send_end_error(run, sender, &ended).await;
}

/// Sends the error: in the stream where one has begun, else as an answer of its own.
async fn send_end_error(run: &Run<'_>, sender: &ResponseSender, ended: &JourneyEnd) {
    let state = &run.core.state;
    let error_reply = reply::failure_reply(state, run.plan, run.context, run.targets, ended, &run.facts());
    if sender.has_head() {
        state.meters.answer(if error_reply.status < 500 { "refused" } else { "failed" });
        let frame = run.writer.borrow_mut().error(&error_reply.failure());
        separate_error(run.context).await;
        return sender.send(frame).await;
    }
    send_error(run.core, sender, error_reply).await;
}

/// Sends an error as an answer of its own.
pub(crate) async fn send_error(core: &CoreState, sender: &ResponseSender, error_reply: ErrorReply) {
    core.state.meters.answer(if error_reply.status < 500 { "refused" } else { "failed" });
    let body = error_reply.body();
    sender.head(error_reply.heading);
    sender.send(body).await;
}

/// The targets that can serve this request, best first, and whether it must be shortened for them.
fn capable_targets(
    core: &CoreState,
    plan: &Plan,
    context: &RequestContext,
    chain: &Chain,
    request: &Request<'_>,
    own_key: Option<&HeaderValue>,
) -> Result<(Rc<Candidates>, bool), Box<Fault>> {
    let state = &core.state;
    let needs = request.needs();
    // `previous_response_id` is only known to the provider that issued it; default to the first target.
    let is_pinned = request.is_pinned();
    let can = |target: &Arc<Target>| {
        capability::lack(&target.facts, &needs).is_none()
            && (!is_pinned || target.speaks(request.dialect()) == request.dialect())
    };
    // Nearly always there is nothing to choose.
    if let (None, Some(only)) = (own_key, chain.only())
        && only.targets.iter().all(can)
    {
        return Ok((Rc::clone(only), false));
    }
    let mut targets = match own_key {
        Some(own_key) => chain.borrowed(state, plan, own_key),
        None => chain.targets(state),
    };
    let lack = targets.iter().find_map(|target| capability::lack(&target.facts, &needs));
    if plan.config.remedy.max_trims > 0 && !targets.iter().any(can) {
        // Only its length prevents them, and that can be changed.
        targets.retain(|target| matches!(capability::lack(&target.facts, &needs), Some(Lack::Context(..))));
        targets.sort_by_key(|target| std::cmp::Reverse(target.facts.context_window));
        return if targets.is_empty() {
            Err(incapable_fault(lack))
        } else {
            Ok((Candidates::of(targets), true))
        };
    }
    targets.retain(can);
    if is_pinned {
        let previous = request.goes_on_with();
        let previous = previous.map(|id| state.affinity.conversation(context.tenant.name(), id.as_bytes()));
        let served = previous.and_then(|id| state.affinity.served_by(id));
        let gave = |target: &&Arc<Target>| served.is_some() && target.scopes.target == served;
        let holder = targets.iter().find(gave).or(targets.first()).cloned();
        if let Some(holder) = holder {
            targets.retain(|target| Arc::ptr_eq(&target.provider, &holder.provider));
            // Another key of that provider may belong to another account, which does not know the answer.
            targets.sort_by_key(|target| !Arc::ptr_eq(target, &holder));
        }
    }
    if targets.is_empty() {
        return Err(incapable_fault(lack));
    }
    if targets.len() > 1 && !is_pinned {
        let conversation = state.affinity.conversation(context.tenant.name(), request.opening());
        if let Some(served) = state.affinity.served_by(conversation) {
            prefer(&mut targets, &served, request.is_in_a_loop(), request.goes_on());
        }
    }
    Ok((Candidates::of(targets), false))
}

/// Why no target can serve a request: only a provider of its dialect could, or its model is known not to support it.
fn lacks(core: &CoreState, chain: &Chain, request: &Request<'_>) -> Vec<disclosure::Lack> {
    let (pinned, needs) = (request.pinned_by(), request.needs());
    let lack = |target: &Arc<Target>| {
        let (rule, at) = match (pinned, capability::lack(&target.facts, &needs)) {
            (Some(field), _) => ("held_by_the_provider", field),
            (None, Some(Lack::Tools)) => ("not_supported_by_the_model", "tools"),
            (None, Some(Lack::Images)) => ("not_supported_by_the_model", "images"),
            (None, Some(Lack::Json)) => ("not_supported_by_the_model", "structured output"),
            (None, Some(Lack::Context(..)) | None) => return None,
        };
        Some(disclosure::Lack { target: target.name.to_string(), rule, at: at.to_owned() })
    };
    chain.targets(&core.state).iter().filter_map(lack).collect()
}

/// The fault where no target of the chain can serve the request.
fn incapable_fault(lack: Option<Lack>) -> Box<Fault> {
    match lack {
        Some(Lack::Context(..)) => Box::new(Fault::of(Kind::ContextTooLarge, "gateway.preflight")),
        _ => {
            let mut fault = Box::new(Fault::of(Kind::InvalidRequest, "gateway.preflight"));
            (fault.sub, fault.advice.other) = (Some(Sub::Capability), true);
            fault
        }
    }
}
