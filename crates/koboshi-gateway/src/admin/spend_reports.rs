//! The thread that takes what was spent to the store, reads what the fleet spent, and tells when little is left of a budget.
//!
//! Of a fleet, one process tells: the one that gets the lease of that news, which ends when the budget is renewed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use koboshi_store::EntryKind;
use serde_json::json;

use crate::observe::log::Level;
use crate::shared::panics::{caught, despite_panics};
use crate::shared::spend::BudgetNews;
use crate::shared::state::SharedState;

/// How often what was counted is sent.
const TICK: Duration = Duration::from_millis(250);
/// In how many ticks the spending of the fleet is read once.
const TICKS_PER_READ: u32 = 2;
/// How long a start waits for the first reading: a budget that is spent must hold from the first request on.
const FIRST_READ_TIMEOUT: Duration = Duration::from_millis(500);

const FAILED: &str = "the thread that counts what is spent failed and goes on";

/// Reports until it is dropped.
pub(crate) struct SpendReports {
    stop: Option<SyncSender<()>>,
    /// Receives when the last report is made.
    ended: Mutex<Receiver<()>>,
}

impl SpendReports {
    /// Begins to report.
    pub(crate) fn start(state: &Arc<SharedState>) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(1);
        let (first, read) = sync_channel::<()>(1);
        let (end, ended) = sync_channel::<()>(1);
        let state = Arc::clone(state);
        std::thread::Builder::new().name("koboshi-spend".to_owned()).spawn(move || {
            despite_panics(&state.log, FAILED, || {
                tick(&state, true);
                // The start may have stopped waiting.
                let _ = first.try_send(());
                let mut ticks: u32 = 0;
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                    ticks = ticks.wrapping_add(1);
                    tick(&state, ticks.is_multiple_of(TICKS_PER_READ));
                }
                true
            });
            // An unreachable store is reported elsewhere.
            let _ = caught(&state.log, FAILED, || {
                state.spending.sync(&*state.store, false, state.wall()).is_ok()
            });
            drop(state);
            let _ = end.try_send(());
        })?;
        let _ = read.recv_timeout(FIRST_READ_TIMEOUT);
        Ok(Self { stop: Some(stop), ended: Mutex::new(ended) })
    }

    /// Begins to send what is left.
    pub(crate) fn close(&mut self) {
        drop(self.stop.take());
    }

    /// Waits at most this long for that, also if the store hangs.
    pub(crate) fn finish(&mut self, timeout: Duration) {
        self.close();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(timeout);
    }
}

fn tick(state: &SharedState, reads: bool) {
    // An unreachable store is reported elsewhere; the next tick tries again.
    let _ = state.spending.sync(&*state.store, reads, state.wall());
    for news in state.spending.news(state.wall()) {
        tell(state, &news);
    }
}

/// Writes the news into the log and the journal, unless another process of the fleet did.
fn tell(state: &SharedState, news: &BudgetNews) {
    let BudgetNews { key, of, renewal } = news;
    let (now, plan) = (state.wall(), state.plan());
    let kind = if of.is_exhausted() { "budget_spent" } else { "budget_near" };
    let name = format!("budget:{key}:{}:{}:{kind}", of.period.name(), renewal.as_second());
    let length = renewal.duration_since(now).unsigned_abs();
    let lease = state.store.lease(&name, &state.ledger.node().to_string(), length, now);
    // Where the store cannot say, it is better told twice than not at all.
    if matches!(lease, Ok(None)) {
        return;
    }
    let currency = &plan.config.spend.currency;
    let text = format!(
        "key {key}: {:.0} % of its budget for the {} is spent ({:.2} of {:.2} {currency}); it is renewed at {:.0}",
        of.share() * 100.0,
        of.period.name(),
        of.spent.units(),
        of.limit.units(),
        renewal,
    );
    let data = json!({
        "key": &**key, "period": of.period.name(), "limit": of.limit.units(), "spent": of.spent.units(),
        "share": of.share(), "currency": currency, "renews_at": renewal,
    });
    state.log.line(Level::Warn, &text, &data);
    state.note(EntryKind::Budget, kind, None, text, data);
}
