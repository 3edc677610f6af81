//! What an owner looks after every moment: its lease, what is not stored, calls, tabs that are gone, turns without a reader.

use std::time::Duration;

use koboshi::session::{DoneReason, ToolState};
use koboshi_config::sessions::OnDetach;
use tokio::time::Instant;

use super::{Owner, Stop};

/// How often it renews its lease.
const RENEW: Duration = Duration::from_secs(3);
/// Where turns without a reader are cancelled, a client has this long to come back.
const DETACH_GRACE: Duration = Duration::from_secs(10);
/// And never less than it takes another process to say which tabs it has.
const LEAST_DETACH: Duration = Duration::from_secs(2);
/// Tabs at another process count as here for this long after its last report.
const ELSEWHERE: Duration = Duration::from_secs(10);

impl Owner<'_> {
    /// Timers: the lease, what is not stored, calls, tabs that are gone, turns without a reader.
    pub(super) async fn tick(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        self.plan = self.core.state.plan();
        if !self.unstored.is_empty() || self.is_head_old {
            self.flush();
        }
        if now.duration_since(self.renewed) >= RENEW {
            self.renew();
        }
        self.elsewhere.retain(|_, (_, heard)| now.duration_since(*heard) < ELSEWHERE);
        self.expire_calls(now).await?;
        self.watch_readers(now).await
    }

    async fn expire_calls(&mut self, now: Instant) -> Result<(), Stop> {
        let over: Vec<String> =
            self.deadlines.iter().filter(|(_, at)| **at <= now).map(|(call, _)| call.clone()).collect();
        for call in over {
            self.deadlines.remove(&call);
            let change = self.live.log().expire(&call);
            if let Some(change) = change {
                self.record(change).await?;
            }
        }
        let claimed: Vec<(String, String)> = {
            let log = self.live.log();
            let calls = log.transcript().open.iter().flat_map(|open| &open.calls);
            let claimed = calls.filter(|call| call.state == ToolState::Claimed);
            claimed.filter_map(|call| Some((call.call.clone(), call.by.clone()?))).collect()
        };
        for (call, by) in claimed {
            if self.is_here(&by) {
                self.gone.remove(&by);
                continue;
            }
            let since = *self.gone.entry(by).or_insert(now);
            if now.duration_since(since) >= self.plan.config.sessions.claim_grace {
                let change = self.live.log().claimer_is_gone(&call);
                if let Some(change) = change {
                    self.record(change).await?;
                }
            }
        }
        Ok(())
    }

    fn is_here(&self, client: &str) -> bool {
        self.live.has_reader(client) || self.elsewhere.contains_key(client)
    }

    async fn watch_readers(&mut self, now: Instant) -> Result<(), Stop> {
        if self.live.has_readers() || !self.elsewhere.is_empty() {
            self.detached = None;
            return Ok(());
        }
        let since = *self.detached.get_or_insert(now);
        let config = &self.plan.config.sessions;
        let limit = match config.on_detach {
            OnDetach::Cancel => config.detached_for.min(DETACH_GRACE),
            _ => config.detached_for,
        };
        let limit = limit.max(LEAST_DETACH);
        // A client that knows no sessions does not come back.
        if self.is_idle() || !self.live.is_plain() && now.duration_since(since) < limit {
            return Ok(());
        }
        self.segment = None;
        self.end(DoneReason::Cancelled, None).await
    }
}
