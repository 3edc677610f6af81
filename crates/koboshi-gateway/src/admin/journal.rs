//! Queries of the journal in the store.
//!
//! A store blocks, so the worker thread for it asks. Entries of this process that are not yet written are written first, so that an operator
//! finds what just happened.

use std::time::Duration;

use jiff::Timestamp;
use koboshi::wait::parse_duration;
use koboshi_store::{Entry, EntryKind, Query};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use utoipa::ToSchema;

use super::AdminRequest;
use crate::reply::refusal::Refusal;
use crate::shared::retention::retention;

/// How many entries an answer has by default, and at most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
/// How long an answer waits for entries that are not yet written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Journal entries.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Journal {
    /// Newest last.
    #[cfg_attr(test, schema(value_type = Vec<EntryView>))]
    entries: Vec<Entry>,
}

/// One journal entry.
#[cfg(test)]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryView {
    at: Timestamp,
    /// The process that wrote it.
    node: String,
    /// `fault`, `remedy`, `breaker`, `gate`, `cooldown`, `lease`, `store` or `operator`.
    what: String,
    /// Such as `rate_limited`.
    kind: Option<String>,
    /// What it happened to.
    key: Option<String>,
    agent: Option<String>,
    /// One sentence for people.
    text: String,
    /// Details for programs.
    data: Option<serde_json::Value>,
}

/// Journal entries, newest last.
#[cfg_attr(test, utoipa::path(get, path = super::paths::JOURNAL, tag = "journal",
    params(("what" = Option<String>, Query, description = "fault, remedy, breaker, gate, cooldown, lease, store or operator"),
           ("kind" = Option<String>, Query, description = "Such as rate_limited"),
           ("key" = Option<String>, Query, description = "Such as account:openai"),
           ("agent" = Option<String>, Query, description = "Which agent it happened to"),
           ("since" = Option<String>, Query, description = "An instant, or a length of time such as 2h"),
           ("until" = Option<String>, Query, description = "An instant, or a length of time such as 2h"),
           ("limit" = Option<u32>, Query, description = "How many entries, the newest ones: 100 by default, 10000 at most")),
    responses((status = 200, description = "Entries, newest last", body = Journal),
              (status = 503, description = "The store cannot be read now"))))]
pub(super) async fn read(request: &AdminRequest<'_>, query: &str) -> Result<Journal, Refusal> {
    let state = &request.core.state;
    let query = parse(query, state.wall())?;
    let entries = request.ask_store(move |ledger, store| {
        // If the store is unreachable, its own answer says so.
        let _ = ledger.flush(FLUSH_TIMEOUT);
        store.query(&query)
    });
    Ok(Journal { entries: entries.await? })
}

/// An order about the journal.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JournalOrder {
    #[expect(dead_code, reason = "there is one, and it must be named")]
    action: JournalAction,
}

/// What an operator may do with the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalAction {
    /// Delete what is older than the config keeps it (`store.journal`).
    Prune,
}

/// The result of a prune.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct PruneResult {
    forgotten: u64,
}

/// Deletes entries beyond what the config keeps.
#[cfg_attr(test, utoipa::path(post, path = super::paths::JOURNAL, tag = "journal", request_body = JournalOrder,
    responses((status = 200, description = "How many were forgotten", body = PruneResult),
              (status = 503, description = "The store cannot be written now"))))]
pub(super) async fn prune(request: &AdminRequest<'_>, _order: &JournalOrder) -> Result<PruneResult, Refusal> {
    let state = &request.core.state;
    let (keep, now) = (retention(&request.plan.config.store), state.wall());
    let forgotten = request.ask_store(move |ledger, store| {
        let _ = ledger.flush(FLUSH_TIMEOUT);
        store.prune(&keep, now)
    });
    Ok(PruneResult { forgotten: forgotten.await? })
}

/// Parses the query of an address.
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Query, Refusal> {
    let mut query = Query { limit: DEFAULT_LIMIT, ..Query::default() };
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match &*name {
            "what" => {
                let what = EntryKind::from_name(&value).ok_or_else(|| {
                    let names: Vec<&str> = EntryKind::ALL.iter().map(|what| what.name()).collect();
                    Refusal::query_choice("what", &names.join(", "))
                })?;
                query.what = Some(what);
            }
            "kind" => query.kind = Some(value.into_owned()),
            "agent" => query.agent = Some(value.into_owned()),
            "key" => {
                query.key = Some(value.parse().map_err(|_| Refusal::scope_key(&value))?);
            }
            "since" => query.from = Some(instant("since", &value, now)?),
            "until" => query.to = Some(instant("until", &value, now)?),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                query.limit = limit.ok_or_else(|| Refusal::query_number("limit", MAX_LIMIT))?;
            }
            _ => return Err(Refusal::query(&name, "what, kind, key, agent, since, until, limit")),
        }
    }
    Ok(query)
}

/// An instant, or a length of time before now.
fn instant(name: &'static str, text: &str, now: Timestamp) -> Result<Timestamp, Refusal> {
    if let Ok(instant) = text.parse() {
        return Ok(instant);
    }
    parse_duration(text)
        .map(|length| now.saturating_sub(length).unwrap_or(Timestamp::MIN))
        .ok_or_else(|| Refusal::query_time(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Query, String> {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        parse(text, now).map_err(|refusal| refusal.param.unwrap())
    }

    #[test]
    fn a_question_is_read_from_its_address() {
        let query = parsed("what=fault&kind=rate_limited&key=account%3Aopen+ai&since=2h&limit=5").unwrap();
        assert_eq!((query.what, query.kind.as_deref()), (Some(EntryKind::Fault), Some("rate_limited")));
        assert_eq!(query.key.unwrap().to_string(), "account:open ai");
        assert_eq!(query.from.unwrap().to_string(), "2026-11-15T10:00:00Z");
        assert_eq!((query.limit, parsed("").unwrap().limit), (5, DEFAULT_LIMIT));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, param) in [
            ("what=nothing", "what"),
            ("key=nothing", "key"),
            ("since=soon", "since"),
            ("limit=0", "limit"),
            ("limit=10001", "limit"),
            ("wat=fault", "query"),
        ] {
            assert_eq!(parsed(text), Err(param.to_owned()), "{text}");
        }
    }
}
