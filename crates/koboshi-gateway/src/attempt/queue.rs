//! Waiting at a gate until there is room: in turn, woken when something changed, and no longer than patience allows.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use koboshi::gate::{Cost, Entry, Gate, Reservation, Tenant, TicketState};
use tokio::time::{Instant, sleep_until};

use crate::route::target::Target;
use crate::shared::state::SharedState;

/// A place at the target's gate, if there is one in time.
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
                TicketState::Wait { look_again } => {
                    // At least a moment: a gate that says "now" and means "not yet" must not spin.
                    let pause = look_again.since(now).max(Duration::from_millis(1));
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
