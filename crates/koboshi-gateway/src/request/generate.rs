//! Serves a generation request, in any dialect, from the body to the last byte.
//!
//! intake → guard → route → journey (attempts) → stream or whole answer → degrade → error in the client's dialect and language.

use std::cell::RefCell;
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
use crate::stream::routed_request::{ASSUMED_OUTPUT_TOKENS, Progress, RoutedRequest};
use crate::stream::writer::{LazyStreamWriter, separate_error};

/// When a client may retry after the gateway has stopped: another one may answer at once.
const RETRY_ELSEWHERE: Duration = Duration::from_secs(1);

/// A request that was admitted.
pub(crate) struct Intake {
    pub(crate) context: RequestContext,
    pub(crate) plan: Arc<Plan>,
    pub(crate) body: Bytes,
    /// The client's own key, where it may be sent to its vendor.
    pub(crate) client_key: Option<HeaderValue>,
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
    let Intake { context, plan, body, client_key, hints, path_model, .. } = intake;
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
        match capable_targets(core, plan, context, &chain, &request, client_key.as_ref()) {
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
    let routed = RoutedRequest {
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
            max_output: request.max_output().unwrap_or(ASSUMED_OUTPUT_TOKENS),
        },
        commit: route.commit,
        guard_changes: guard.guard_changes,
        can_degrade: degraded.is_there(),
        facts: RefCell::new(Disclosure { guard: guard.header, ..Disclosure::default() }),
        writer: &writer,
        progress: Progress::default(),
    };
    if too_long && !candidates.targets.first().is_some_and(|target| routed.trim(target)) {
        let fault = Box::new(Fault::of(Kind::ContextTooLarge, "gateway.preflight"));
        let ended = JourneyEnd::unasked(fault);
        let error_reply =
            reply::failure_reply(&core.state, plan, context, routed.targets, &ended, &routed.facts());
        return Box::pin(send_error(core, sender, error_reply)).await;
    }
    let serving = pin!(async {
        let ended = if request.stream() {
            Box::pin(streamed(&routed, sender, &degraded)).await
        } else {
            Box::pin(unstreamed(&routed, sender, &degraded)).await
        };
        if let Err(ended) = ended {
            Box::pin(chain_exhausted(&routed, sender, ended, &degraded)).await;
        }
    });
    if core.until_end(serving).await.is_none() {
        Box::pin(send_end_error(&routed, sender, &stopping(&routed.core.state))).await;
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
    targets.iter().all(|target| target.dialect_for(request.dialect()) != request.dialect())
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
    routed: &RoutedRequest<'_>,
    sender: &ResponseSender,
    degraded: &degrade::DegradedAnswers<'_>,
) -> Result<(), JourneyEnd> {
    let mut journey = routed.journey();
    let mut stream = Stream::new(routed, sender);
    let outcome = stream.serve(&mut journey).await;
    routed.disclose(|facts| facts.note_last_fault(&journey));
    if outcome? == Outcome::Whole {
        remember_target(routed, &routed.writer.borrow_mut().names.id);
        if let Some(text) = stream.plain_text() {
            degraded.keep_text(routed, text, &routed.writer.borrow_mut().names.model);
        }
    }
    Ok(())
}

async fn unstreamed(
    routed: &RoutedRequest<'_>,
    sender: &ResponseSender,
    degraded: &degrade::DegradedAnswers<'_>,
) -> Result<(), JourneyEnd> {
    let mut journey = routed.journey();
    let answered = routed.answer(&mut journey).await;
    routed.disclose(|facts| facts.note_last_fault(&journey));
    let answered = answered?;
    remember_target(routed, answered.id.as_deref().unwrap_or_default());
    sender.head(reply::head(200, "application/json", routed.context, &routed.facts.borrow()));
    degraded.keep_whole(routed, &answered.body);
    let body = simulated::marked(routed.request.dialect(), answered.body, &routed.facts.borrow());
    sender.send(body).await;
    Ok(())
}

/// Remembers which target answered: it serves the conversation's next request best. A request that names this answer can only be served by
/// it.
fn remember_target(routed: &RoutedRequest<'_>, id: &str) {
    let state = &routed.core.state;
    state.meters.whole.inc();
    if routed.targets.len() > 1
        && let Some(target) = routed.facts.borrow().served.clone()
    {
        let (affinity, tenant) = (&state.affinity, routed.context.tenant.name());
        if routed.request.dialect().has_stored_answers() && !id.is_empty() {
            affinity.note(affinity.conversation(tenant, id.as_bytes()), target.clone());
        }
        affinity.note(affinity.conversation(tenant, routed.request.opening()), target);
    }
}

/// Sends a lesser answer, or the error.
async fn chain_exhausted(
    routed: &RoutedRequest<'_>,
    sender: &ResponseSender,
    ended: JourneyEnd,
    degraded: &degrade::DegradedAnswers<'_>,
) {
    let may_degrade = ended.fault.advice.other || ended.fault.advice.later;
    // As in the remedy: a lesser answer would hide what the client can change.
    let client_can_fix = matches!(ended.fault.kind, Kind::ContentFiltered | Kind::ContextTooLarge);
    routed.disclose(|facts| facts.fault = Some(ended.fault.kind.name()));
    if may_degrade && !client_can_fix && degraded.send(routed, sender, &ended).await {
        return;
    }
    send_end_error(routed, sender, &ended).await;
}

/// Sends the error: in the stream where one has begun, else as an answer of its own.
async fn send_end_error(routed: &RoutedRequest<'_>, sender: &ResponseSender, ended: &JourneyEnd) {
    let state = &routed.core.state;
    let error_reply =
        reply::failure_reply(state, routed.plan, routed.context, routed.targets, ended, &routed.facts());
    if sender.has_head() {
        state.meters.answer(if error_reply.status < 500 { "refused" } else { "failed" });
        let frame = routed.writer.borrow_mut().error(&error_reply.failure());
        separate_error(routed.context).await;
        return sender.send(frame).await;
    }
    send_error(routed.core, sender, error_reply).await;
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
    client_key: Option<&HeaderValue>,
) -> Result<(Rc<Candidates>, bool), Box<Fault>> {
    let state = &core.state;
    let needs = request.needs();
    // `previous_response_id` is only known to the provider that issued it; default to the first target.
    let is_bound = request.is_bound_to_provider();
    let can = |target: &Arc<Target>| {
        capability::lack(&target.facts, &needs).is_none()
            && (!is_bound || target.dialect_for(request.dialect()) == request.dialect())
    };
    // Nearly always there is nothing to choose.
    if let (None, Some(only)) = (client_key, chain.only())
        && only.targets.iter().all(can)
    {
        return Ok((Rc::clone(only), false));
    }
    let mut targets = match client_key {
        Some(client_key) => chain.borrowed(state, plan, client_key),
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
    if is_bound {
        let previous = request.previous_answer_id();
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
    if targets.len() > 1 && !is_bound {
        let conversation = state.affinity.conversation(context.tenant.name(), request.opening());
        if let Some(served) = state.affinity.served_by(conversation) {
            prefer(&mut targets, &served, request.ends_with_tool_result(), request.has_earlier_answer());
        }
    }
    Ok((Candidates::of(targets), false))
}

/// Why no target can serve a request: only a provider of its dialect could, or its model is known not to support it.
fn lacks(core: &CoreState, chain: &Chain, request: &Request<'_>) -> Vec<disclosure::Lack> {
    let (bound_by, needs) = (request.bound_by(), request.needs());
    let lack = |target: &Arc<Target>| {
        let (rule, at) = match (bound_by, capability::lack(&target.facts, &needs)) {
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
