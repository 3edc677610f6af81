//! Waits for a turn after a rest, and at a gate: in order, and no longer than patience allows.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use koboshi::gate::{Cost, Entry, Gate, Reservation, Tenant, TicketState};
use tokio::time::{Instant, sleep, sleep_until};

use crate::attempt::unavailable::Unavailable;
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::reopenings::{self, Admission, FirstRequest};
use crate::shared::state::SharedState;

/// How often a request asks whether the one that goes first has found out.
const TURN_POLL: Duration = Duration::from_millis(20);

/// The turn of a request that comes to a target.
pub(crate) enum Turn {
    /// No rest is ending.
    Free,
    /// It goes first after a rest.
    First(FirstRequest),
    /// It follows the first one, at a time of its own.
    Following,
}

/// Waits for the turn of a request to this target; where it does not come in time, why the target is not asked.
pub(crate) async fn turn(
    state: &SharedState,
    plan: &Plan,
    target: &Target,
    patience: Duration,
) -> Result<Turn, Unavailable> {
    let policy = reopenings::policy(&plan.config);
    let latest = state.now().after(patience);
    let mut waited = false;
    loop {
        match state.reopenings.take(&target.scopes, &policy, latest) {
            // The rest may have begun again.
            Admission::Free => {
                let now = state.now();
                return match Unavailable::of(state, target, now).filter(|_| waited) {
                    Some(unavailable) => Err(unavailable),
                    None => Ok(Turn::Free),
                };
            }
            Admission::First(first) => return Ok(Turn::First(first)),
            Admission::At(time) => {
                sleep(time.since(state.now())).await;
                return match Unavailable::of(state, target, state.now()) {
                    Some(unavailable) => Err(unavailable),
                    None => Ok(Turn::Following),
                };
            }
            Admission::Wait if state.now() < latest => sleep(TURN_POLL).await,
            Admission::Wait | Admission::TooLate => return Err(Unavailable::by_reopening(state)),
        }
        waited = true;
    }
}

/// A place at the target's gate, if one becomes free in time.
pub(crate) async fn wait(
    state: &SharedState,
    target: &Target,
    tenant: &Tenant,
    cost: Cost,
    patience: Duration,
) -> Option<Reservation<Arc<Gate>>> {
    let now = state.now();
    let mut ticket = match target.gate.enter_owned(tenant, cost, now.after(patience), now) {
        Entry::In(reservation) => return Some(reservation),
        Entry::Wait(ticket) => ticket,
        Entry::Refused(_) => return None,
    };
    let mut alarm = pin!(sleep_until(Instant::now()));
    poll_fn(|context| {
        loop {
            let now = state.now();
            match ticket.poll_woken(now, context.waker()) {
                TicketState::In(reservation) => return Poll::Ready(Some(reservation)),
                TicketState::Expired => return Poll::Ready(None),
                TicketState::Wait { poll_at } => {
                    // At least a moment: a gate that says "now" but is not open yet must not make us spin.
                    let pause = poll_at.since(now).max(Duration::from_millis(1));
                    alarm.as_mut().reset(Instant::now() + pause);
                    if alarm.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    })
    .await
}
