//! The thread that takes what was spent to the store, reads what the fleet spent, and tells when little is left of a budget.
//!
//! Of a fleet, one process tells: the one that gets the lease of that news, which ends when the budget is renewed.

use std::sync::Arc;
use std::time::Duration;

use koboshi_store::EntryKind;
use serde_json::json;

use crate::admin::report_thread::{Report, ReportThread};
use crate::observe::log::Level;
use crate::shared::spend::BudgetNews;
use crate::shared::state::SharedState;

/// How often what was counted is sent.
const TICK: Duration = Duration::from_millis(250);
/// In how many ticks the spending of the fleet is read once.
const TICKS_PER_READ: u32 = 2;
/// How long a start waits for the first reading: a budget that is spent must hold from the first request on.
const FIRST_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// Begins to report.
pub(crate) fn report(state: &Arc<SharedState>) -> std::io::Result<ReportThread> {
    let reporter = SpendReporter { state: Arc::clone(state), ticks: 0 };
    ReportThread::start("koboshi-spend", TICK, FIRST_READ_TIMEOUT, reporter)
}

struct SpendReporter {
    state: Arc<SharedState>,
    ticks: u32,
}

impl Report for SpendReporter {
    const FAILED: &'static str = "the thread that counts what is spent failed and goes on";

    fn state(&self) -> &Arc<SharedState> {
        &self.state
    }

    fn tick(&mut self) {
        let (state, reads) = (&*self.state, self.ticks.is_multiple_of(TICKS_PER_READ));
        self.ticks = self.ticks.wrapping_add(1);
        // An unreachable store is reported elsewhere; the next tick tries again.
        let _ = state.spending.sync(&*state.store, reads, state.wall());
        for news in state.spending.news(state.wall()) {
            tell(state, &news);
        }
    }

    fn end(&mut self) {
        // An unreachable store is reported elsewhere.
        let _ = self.state.spending.sync(&*self.state.store, false, self.state.wall());
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
    // Where the store cannot say, two reports are better than none.
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
