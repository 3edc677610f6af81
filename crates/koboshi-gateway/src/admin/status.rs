//! What cannot be used now and which keys there are: what the command line shows and needs, for a gateway that is asked over the network.
//!
//! The rows are those of the store, as the command line reads them from a file. If the store is away, they are those that this process knows,
//! and the answer says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi_store::{Ledger, Named, Record, Row, RowState, Slot, Store, standing};
use serde::Serialize;
use utoipa::ToSchema;

use super::{AdminRequest, REDACTOR, no_answer};
use crate::admin::known::Known;
use crate::admin::presence::{self, Presence};
use crate::reply::refusal::Refusal;
use crate::route::target::Target;

/// An answer waits no longer for what is not yet written.
const PATIENCE: Duration = Duration::from_secs(1);
/// So much is shown of what a provider said.
const LONGEST_DETAIL: usize = 300;
/// Clients may make up any number of names.
const MAX_UNWRITTEN: usize = 200;

/// What cannot be used now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Status {
    /// Where it is kept.
    store: String,
    /// When this was read.
    #[schema(value_type = String)]
    now: Timestamp,
    /// The process that answers.
    node: String,
    /// Worst first.
    #[schema(value_type = Vec<RowView>)]
    rows: Vec<Row>,
    /// Records that this Koboshi cannot read.
    unreadable: Vec<UnreadableView>,
    /// The processes that share the store, as far as they reported.
    #[schema(value_type = Vec<GatewayView>)]
    gateways: Vec<Presence>,
    /// Why the store cannot be read; the rows are then what this process knows.
    trouble: Option<String>,
}

/// One key that does not just work.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RowView {
    key: String,
    /// `parked`, `cooling`, `absent`, `held`, `forced_open`, `open`, `probing`, `due`, `disabled` or `forced_closed`.
    state: String,
    /// Nothing goes through.
    stops: bool,
    /// Class of the cooldown, or the limit; none for a breaker.
    reason: Option<String>,
    /// Failures, or openings of the breaker, in a row.
    consecutive: u32,
    since: Option<String>,
    until: Option<String>,
    /// What was said: the provider's message, the operator's reason, the last fault before a breaker opened.
    detail: String,
    /// Whose breaker it is.
    node: Option<String>,
    /// Why a breaker is as it is, such as `{"consecutive": {"failures": 5}}`.
    why: Option<serde_json::Value>,
}

/// A record that this Koboshi cannot read.
#[derive(Debug, Serialize, ToSchema)]
struct UnreadableView {
    slot: String,
    why: String,
}

/// A gateway that shares the store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GatewayView {
    node: String,
    address: String,
    version: String,
    started: String,
    /// When it reported last.
    at: String,
    stopped: bool,
}

/// What is in cooldown, parked, limited or open: since when, until when, why.
#[utoipa::path(get, path = super::paths::STATUS, tag = "targets",
    responses((status = 200, description = "What cannot be used now, worst first", body = Status)))]
pub(super) async fn read(request: &AdminRequest<'_>) -> Result<Status, Refusal> {
    let state = &request.core.state;
    state.keep_in_step();
    let now = state.wall();
    let own = Known::of_state(state, request.plan);
    let mut status =
        match request.ask_store(move |ledger, store| Ok(read_status(ledger, store, &own, now))).await {
            Ok(status) => status,
            Err(_) => Status::from_memory(&state.ledger, &*state.store, no_answer(&*state.store), now),
        };
    status.rows.extend(unwritten(request));
    Ok(status)
}

/// EntryKind this gateway knows and does not write down: models that clients ask for, that no route names and that their provider does not have.
fn unwritten(request: &AdminRequest<'_>) -> Vec<Row> {
    let state = &request.core.state;
    let (now, wall) = (state.now(), state.wall());
    let row = |target: Arc<Target>| {
        let left = target.absent_until(now)?.since(now);
        let detail = target.causes.absent().map(|fault| fault.detail).unwrap_or_default();
        Some(Row {
            detail: REDACTOR.excerpt(&detail, LONGEST_DETAIL),
            until: wall.checked_add(left).ok(),
            ..Row::new(target.scopes.target.clone()?, RowState::Absent)
        })
    };
    state.targets.all().into_iter().filter_map(row).take(MAX_UNWRITTEN).collect()
}

fn read_status(ledger: &Ledger, store: &dyn Store, own: &Known, now: Timestamp) -> Status {
    // A store that is away says so in its own answer.
    let _ = ledger.flush(PATIENCE);
    let loaded = match store.load() {
        Ok(loaded) => loaded,
        Err(error) => return Status::from_memory(ledger, store, error.to_string(), now),
    };
    let mut rows = standing::rows(&loaded.records, now);
    let more = standing::explain(store, &mut rows).and_then(|()| presence::gateways(store, now));
    let more = more.and_then(|found| Ok((presence::known_now(store, &found, now)?, found)));
    let (gateways, trouble) = match more {
        Ok((mut known, found)) => {
            // What this gateway has now may not be written yet.
            known.add(own.clone());
            rows.retain(|row| presence::is_in_force(row, &found, &known));
            (found, None)
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let unreadable = loaded.unreadable.into_iter();
    Status {
        store: store.place().to_owned(),
        now,
        node: ledger.node().to_string(),
        rows,
        unreadable: unreadable.map(|one| UnreadableView { slot: one.slot, why: one.why }).collect(),
        gateways,
        trouble,
    }
}

impl Status {
    /// What this process knows, where its store cannot be read.
    fn from_memory(ledger: &Ledger, store: &dyn Store, trouble: String, now: Timestamp) -> Self {
        Self {
            store: store.place().to_owned(),
            now,
            node: ledger.node().to_string(),
            rows: standing::rows(&in_memory(ledger), now),
            unreadable: Vec::new(),
            gateways: Vec::new(),
            trouble: Some(trouble),
        }
    }
}

/// What this process knows without its store.
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
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    /// One for each target and for each API key of a provider: what knowledge about it is filed under (`target`, `key`, `account`, `model`,
    /// `provider`, `limits`).
    targets: Vec<serde_json::Value>,
    /// Names that clients ask for, each with its chain.
    routes: Vec<serde_json::Value>,
    /// Other keys of which something was learned.
    learned: Vec<String>,
}

/// Every key that an order can be about.
#[utoipa::path(get, path = super::paths::KEYS, tag = "targets",
    responses((status = 200, description = "The keys of all targets that the config names or that were asked for", body = KeyList)))]
pub(super) fn keys(request: &AdminRequest<'_>) -> Known {
    known(request)
}

/// Every key that this gateway knows of.
pub(super) fn known(request: &AdminRequest<'_>) -> Known {
    let mut known = Known::of_state(&request.core.state, request.plan);
    known.add_ledger(&request.core.state.ledger, request.core.state.wall());
    known
}
