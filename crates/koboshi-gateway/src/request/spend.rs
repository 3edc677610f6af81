//! Whether a client's key may make this request: its routes, its budget, its rate. A refusal rests nothing and asks no provider.

use crate::reply::refusal::Refusal;
use crate::route::plan::{Plan, Route};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::spend::SpendRefusal;

/// Counts the request for its key, or says why it may not be made.
pub(crate) fn admit(
    core: &CoreState,
    plan: &Plan,
    context: &RequestContext,
    route: &Route,
    model: &str,
) -> Result<(), Refusal> {
    if let Some(name) = &route.name {
        // Set once: a request has one route.
        let _ = context.route.set(name.clone());
    }
    // A session outlives its key: what was revoked asks for nothing more.
    let is_session = context.notices.is_some();
    if is_session && !plan.keys.still_admit(Some(&*context.key)) {
        return Err(Refusal::key_unknown());
    }
    if !plan.allows(&context.key, route.name.as_deref(), model) {
        return Err(Refusal::key_route(model));
    }
    core.state.spending.admit(&context.key, context.wall).map_err(|denied| {
        let wait = |until: jiff::Timestamp| until.duration_since(context.wall).unsigned_abs();
        match denied {
            SpendRefusal::Budget(over, until) => {
                let zone = core.state.spend_zone(plan);
                Refusal::budget(&over, &plan.config.spend.currency, &until.to_zoned(zone), wait(until))
            }
            SpendRefusal::Rate(rate, until) => Refusal::rate(rate, wait(until)),
        }
    })
}
