//! What cannot be used now and which keys exist, for commands that query a gateway over the network.
//!
//! The rows are those of the store, as the command line reads them from a file. If the store is unreachable, the rows are those that this
//! process knows, and the answer says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::notice::ChannelState;
use koboshi_store::supervisors::{Supervisor, supervisors};
use koboshi_store::{Ledger, Named, Record, Row, RowState, Slot, Store, notices, standing};
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::{AdminRequest, REDACTOR, no_answer};
use crate::admin::known::KnownKeys;
use crate::admin::presence::{self, Presence};
use crate::reply::refusal::Refusal;
use crate::route::target::Target;

/// How long an answer waits for records that are not yet written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of a provider's message is shown.
const MAX_DETAIL: usize = 300;
/// How many unwritten models are shown: clients may make up any number of names.
const MAX_UNWRITTEN: usize = 200;

/// What cannot be used now.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Status {
    /// Where the state is stored.
    store: String,
    /// When this was read.
    #[cfg_attr(test, schema(value_type = String))]
    now: Timestamp,
    /// The process that answers.
    node: String,
    /// Worst first.
    #[cfg_attr(test, schema(value_type = Vec<RowView>))]
    rows: Vec<Row>,
    /// Records that this Koboshi cannot read.
    unreadable: Vec<UnreadableView>,
    /// The processes that share the store and have reported.
    #[cfg_attr(test, schema(value_type = Vec<GatewayView>))]
    gateways: Vec<Presence>,
    /// The supervisors that share the store and have reported.
    #[cfg_attr(test, schema(value_type = Vec<SupervisorView>))]
    supervisors: Vec<Supervisor>,
    /// How the channels of notices fare.
    #[cfg_attr(test, schema(value_type = Vec<ChannelView>))]
    channels: Vec<ChannelState>,
    /// Why the store cannot be read; the rows are then what this process knows.
    trouble: Option<String>,
}

/// A key that is out of use, or nearly.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RowView {
    key: String,
    /// `parked`, `cooling`, `absent`, `held`, `forced_open`, `open`, `probing`, `due`, `disabled` or `forced_closed`.
    state: String,
    /// Whether it stops all requests.
    stops: bool,
    /// Class of the cooldown, or the limit; none for a breaker.
    reason: Option<String>,
    /// Failures, or openings of the breaker, in a row.
    consecutive: u32,
    since: Option<String>,
    until: Option<String>,
    /// The provider's message, the operator's reason, or the last fault before a breaker opened.
    detail: String,
    /// Whose breaker it is.
    node: Option<String>,
    /// Why a breaker is in its mode, such as `{"consecutive": {"failures": 5}}`.
    why: Option<serde_json::Value>,
}

/// A record that this Koboshi cannot read.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct UnreadableView {
    slot: String,
    why: String,
}

/// A gateway that shares the store.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GatewayView {
    node: String,
    address: String,
    version: String,
    started: String,
    /// When it reported last.
    at: String,
    stopped: bool,
    /// A few digits that differ where the config in force differs.
    config: Option<String>,
}

/// A supervisor that shares the store.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SupervisorView {
    node: String,
    version: String,
    started: String,
    /// When it reported last.
    at: String,
    stopped: bool,
    /// How many agents it keeps, each project counted.
    agents: u64,
    /// How many of them run.
    running: u64,
    /// A few digits that differ where its config differs.
    config: String,
}

/// A channel of notices.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChannelView {
    channel: String,
    /// Notices that did not arrive yet.
    waiting: usize,
    /// Messages that it took.
    sent: u64,
    /// How often it did not take one.
    failed: u64,
    /// Notices that were lost, and that no message has told of yet.
    dropped: u64,
    /// When it took one last.
    last_sent: Option<String>,
    /// When it is tried again, where it did not take the last one.
    next: Option<String>,
    /// Why it did not take the last one.
    trouble: Option<String>,
}

/// What is in cooldown, parked, limited or open: since when, until when, why.
#[cfg_attr(test, utoipa::path(get, path = super::paths::STATUS, tag = "targets",
    responses((status = 200, description = "What cannot be used now, worst first", body = Status))))]
pub(super) async fn read(request: &AdminRequest<'_>) -> Result<Status, Refusal> {
    let state = &request.core.state;
    state.sync_with_store();
    let now = state.wall();
    let own = KnownKeys::of_state(state, request.plan);
    let mut status =
        match request.ask_store(move |ledger, store| Ok(read_status(ledger, store, &own, now))).await {
            Ok(status) => status,
            Err(_) => Status::from_memory(&state.ledger, &*state.store, no_answer(&*state.store), now),
        };
    status.rows.extend(unwritten(request));
    Ok(status)
}

/// Models that this gateway knows to be absent and does not write down: clients ask for them, no route names them, and their provider does
/// not have them.
fn unwritten(request: &AdminRequest<'_>) -> Vec<Row> {
    let state = &request.core.state;
    let (now, wall) = (state.now(), state.wall());
    let row = |target: Arc<Target>| {
        let left = target.absent_until(now)?.since(now);
        let detail = target.causes.absent().map(|fault| fault.detail).unwrap_or_default();
        Some(Row {
            detail: REDACTOR.excerpt(&detail, MAX_DETAIL),
            until: wall.checked_add(left).ok(),
            ..Row::new(target.scopes.target.clone()?, RowState::Absent)
        })
    };
    state.targets.all().into_iter().filter_map(row).take(MAX_UNWRITTEN).collect()
}

fn read_status(ledger: &Ledger, store: &dyn Store, own: &KnownKeys, now: Timestamp) -> Status {
    // If the store is unreachable, its own answer says so.
    let _ = ledger.flush(FLUSH_TIMEOUT);
    let loaded = match store.load() {
        Ok(loaded) => loaded,
        Err(error) => return Status::from_memory(ledger, store, error.to_string(), now),
    };
    let mut rows = standing::rows(&loaded.records, now);
    let more = standing::explain(store, &mut rows).and_then(|()| presence::gateways(store, now));
    let more = more.and_then(|found| {
        let known = presence::known_now(store, &found, now)?;
        Ok((known, found, supervisors(store, now)?, notices::channels(store, now)?))
    });
    let (gateways, supervisors, channels, trouble) = match more {
        Ok((mut known, found, supervisors, channels)) => {
            // The current keys of this gateway may not be written yet.
            known.add(own.clone());
            rows.retain(|row| presence::is_in_force(row, &found, &known));
            (found, supervisors, channels, None)
        }
        Err(error) => (Vec::new(), Vec::new(), Vec::new(), Some(error.to_string())),
    };
    let unreadable = loaded.unreadable.into_iter();
    Status {
        store: store.place().to_owned(),
        now,
        node: ledger.node().to_string(),
        rows,
        unreadable: unreadable.map(|one| UnreadableView { slot: one.slot, why: one.why }).collect(),
        gateways,
        supervisors,
        channels,
        trouble,
    }
}

impl Status {
    /// The rows that this process knows, where its store cannot be read.
    fn from_memory(ledger: &Ledger, store: &dyn Store, trouble: String, now: Timestamp) -> Self {
        Self {
            store: store.place().to_owned(),
            now,
            node: ledger.node().to_string(),
            rows: standing::rows(&in_memory(ledger), now),
            unreadable: Vec::new(),
            gateways: Vec::new(),
            supervisors: Vec::new(),
            channels: Vec::new(),
            trouble: Some(trouble),
        }
    }
}

/// The records of this process.
fn in_memory(ledger: &Ledger) -> Vec<Named> {
    let mut records = Vec::new();
    for key in ledger.keys() {
        if let Some(cooldown) = ledger.cooldown(&key) {
            records.push((Slot::cooldown(key.clone()), Record::Cooldown((*cooldown).clone())));
        }
        if let Some(holds) = ledger.holds(&key) {
            records.push((Slot::holds(key.clone()), Record::Holds((*holds).clone())));
        }
        for (node, breaker) in ledger.breakers(&key) {
            records.push((Slot::breaker(key.clone(), node), Record::Breaker((*breaker).clone())));
        }
    }
    records
}

/// The keys that exist.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    /// One for each target and for each API key of a provider: the keys under which knowledge about it is stored (`target`, `key`, `account`,
    /// `model`, `provider`, `limits`).
    targets: Vec<serde_json::Value>,
    /// Names that clients ask for, each with its chain.
    routes: Vec<serde_json::Value>,
    /// Other keys that have records.
    learned: Vec<String>,
}

/// Every key that an order can name.
#[cfg_attr(test, utoipa::path(get, path = super::paths::KEYS, tag = "targets",
    responses((status = 200, description = "The keys of all targets that the config names or that were asked for", body = KeyList))))]
pub(super) fn keys(request: &AdminRequest<'_>) -> KnownKeys {
    known(request)
}

/// Every key that this gateway knows.
pub(super) fn known(request: &AdminRequest<'_>) -> KnownKeys {
    let mut known = KnownKeys::of_state(&request.core.state, request.plan);
    known.add_ledger(&request.core.state.ledger, request.core.state.wall());
    known.add_agents(&request.plan.config);
    known
}
