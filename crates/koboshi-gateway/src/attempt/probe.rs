//! Probes a target beside the requests that other targets serve.
//!
//! A probe of a target that was silent may wait for its whole limit. No client is made to wait for that while another target
//! answers: such a target is passed over, and a task sends it a tiny request of our own at the pace that its breaker gives
//! (`breaker.probe.beside_interval`). A probe does not wait for the one before it, which may be silent for long: so a target
//! that is back is found within that pace. Once one is answered, the requests of clients probe it: it is known to answer. A
//! target that fails quickly is probed by requests of clients, which lose little.

use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::Fault;
use koboshi::remedy::RemedyPolicy;
use koboshi_wire::Dialect;
use koboshi_wire::any::{self, Edits, Request};
use koboshi_wire::step::Usage;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::attempt::journey::{Journey, OpenAttempt};
use crate::attempt::{Shape, not_an_answer, read_error};
use crate::http::upstream::interface::Interface;
use crate::route::plan::Plan;
use crate::route::prober::ProbeShift;
use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;

/// Some models refuse a smaller limit.
const MAX_TOKENS: u64 = 16;
/// A target is not asked whether it may be probed more often than this.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Nor more seldom, so that a task ends soon after nothing wants it.
const MAX_PAUSE: Duration = Duration::from_secs(10);

const SHAPE: Shape =
    Shape { interface: Interface::Generate(Dialect::Chat), streams: false, max_output: MAX_TOKENS };

static QUESTION: LazyLock<Bytes> = LazyLock::new(|| {
    let text = format!(
        r#"{{"model":"probe","messages":[{{"role":"user","content":"ping"}}],"max_tokens":{MAX_TOKENS}}}"#
    );
    text.into()
});

/// Passes the target over and lets a task probe it, if a probe of it may cost a client a long wait. Returns whether that is so.
pub(crate) fn is_beside(core: &CoreState, target: &Arc<Target>) -> bool {
    if target.is_borrowed || target.prober.is_refused() || !target.breaker.probe_is_dear() {
        return false;
    }
    target.prober.want(core.state.now());
    if let Some(shift) = ProbeShift::begin(target) {
        spawn_local(probe(Weak::clone(&core.weak), shift));
    }
    true
}

async fn probe(core: Weak<CoreState>, shift: ProbeShift) {
    let target = shift.target();
    loop {
        let pause = {
            let Some(core) = core.upgrade() else { return };
            let now = core.state.now();
            let breaker = &target.breaker;
            if core.connections.are_ending() || !target.prober.is_wanted(now) || !breaker.probe_is_dear() {
                return;
            }
            match breaker.refusal_beside(now) {
                None => {
                    spawn_local(ask(core, Arc::clone(target)));
                    MIN_PAUSE
                }
                Some(refused) => refused.wait(now).unwrap_or(MAX_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE),
            }
        };
        sleep(pause).await;
    }
}

async fn ask(core: Rc<CoreState>, target: Arc<Target>) {
    let asked = pin!(ask_once(&core, &target));
    let _ended = core.until_end(asked).await;
}

/// Sends the small request once. What comes of it is learned like that of any other.
async fn ask_once(core: &CoreState, target: &Arc<Target>) {
    let plan = core.state.plan();
    let context = context(core, &plan);
    let (targets, breakers) = ([Arc::clone(target)], [Arc::clone(&target.breaker)]);
    let policy = once(&plan.config.remedy);
    let mut journey =
        Journey::new(core, &plan, &context, &targets, &breakers, false).beside(&policy, &breakers);
    let opened = journey.open(&SHAPE, &mut |target| question(target)).await;
    let Ok(mut open) = opened else { return judge_refusal(target, &journey) };
    let answer = read_error(&mut open, Bytes::new()).await;
    match judge(&journey, &open, answer.as_bytes()) {
        Ok(usage) => journey.succeeded(open, usage),
        Err(fault) => {
            let _remedy = journey.after(open, fault);
            judge_refusal(target, &journey);
        }
    }
}

/// A fault that says nothing about the health of the target: our own request does not suit it.
fn judge_refusal(target: &Target, journey: &Journey<'_>) {
    if journey.last_failure().is_some_and(|fault| !fault.advice.health && !fault.advice.later) {
        target.prober.mark_refused();
    }
}

fn judge(journey: &Journey<'_>, open: &OpenAttempt, answer: &[u8]) -> Result<Option<Usage>, Box<Fault>> {
    let dialect = open.target.dialect_for(Dialect::Chat);
    match any::answer::read(dialect, answer) {
        Ok(whole) => Ok(whole.usage),
        Err(_) => Err(journey.fault_in(open, answer).unwrap_or_else(not_an_answer)),
    }
}

fn question(target: &Target) -> Option<Bytes> {
    let request = Request::parse(Dialect::Chat, &QUESTION, None).ok()?;
    Some(request.write(&QUESTION, target.traits_for(Dialect::Chat), &Edits::plain(&target.model)).body)
}

/// One attempt, without retries.
fn once(policy: &RemedyPolicy) -> RemedyPolicy {
    let mut policy = *policy;
    policy.request.in_all = Some(1);
    policy.backoff.attempts = 1;
    policy
}

/// The request is the gateway's own. What takes longer than a probe may is given up.
fn context(core: &CoreState, plan: &Plan) -> RequestContext {
    let (began, wall) = (core.state.now(), core.state.wall());
    let payer = (plan.keys.local(), plan.keys.local_name());
    let length = plan.config.serve.deadline.min(plan.config.breaker.probe.timeout);
    RequestContext::of_own(payer, "probe", (began, wall), began.after(length))
}
