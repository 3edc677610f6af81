//! The paths of the admin API with their operations, written once: routing, the `Allow` header of a wrong method, the OpenAPI document and the
//! clients of the API use them.

use http::Method;

pub(super) use crate::reply::endpoints::OPENAPI;

/// Every path below this one belongs to operators.
pub(crate) const ROOT: &str = "/koboshi";
/// Every target and its health.
pub const TARGETS: &str = "/koboshi/targets";
/// Forces breakers open or closed.
pub(super) const BREAKERS: &str = "/koboshi/breakers";
/// Begins and ends cooldowns.
pub const COOLDOWNS: &str = "/koboshi/cooldowns";
/// What cannot be used now.
pub const STATUS: &str = "/koboshi/status";
/// The keys that exist.
pub const KEYS: &str = "/koboshi/keys";
/// What answers cost.
pub const SPEND: &str = "/koboshi/spend";
/// The journal.
pub const JOURNAL: &str = "/koboshi/journal";
/// The journal as it is written.
pub(super) const FEED: &str = "/koboshi/feed";
/// The agents that the same process keeps.
pub const AGENTS: &str = "/koboshi/agents";
/// What an agent wrote.
pub const LOGS: &str = "/koboshi/logs";
/// The effective settings.
pub(super) const CONFIG: &str = "/koboshi/config";
/// Who looks; and signs in or out.
pub(super) const SESSION: &str = "/koboshi/session";
/// The gateway at a glance.
pub const OVERVIEW: &str = "/koboshi/overview";
/// Sessions in memory.
pub(super) const SESSIONS: &str = "/koboshi/sessions";
/// What `koboshi check` says.
pub(super) const CHECK: &str = "/koboshi/check";
/// Reads the config again.
pub(super) const RELOAD: &str = "/koboshi/reload";
/// Ends the process.
pub(super) const PROCESS: &str = "/koboshi/process";

/// An operation of the admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Targets,
    ChangeBreakers,
    ChangeCooldowns,
    Status,
    Keys,
    Spend,
    Journal,
    PruneJournal,
    Feed,
    Agents,
    ChangeAgents,
    Logs,
    Config,
    OpenApi,
    Session,
    ChangeSession,
    Overview,
    Sessions,
    Check,
    Reload,
    Process,
}

/// The operations at a path.
struct AdminPath {
    path: &'static str,
    get: Option<Operation>,
    post: Option<Operation>,
}

const fn get(path: &'static str, operation: Operation) -> AdminPath {
    AdminPath { path, get: Some(operation), post: None }
}

const fn post(path: &'static str, operation: Operation) -> AdminPath {
    AdminPath { path, get: None, post: Some(operation) }
}

const PATHS: [AdminPath; 18] = [
    get(TARGETS, Operation::Targets),
    post(BREAKERS, Operation::ChangeBreakers),
    post(COOLDOWNS, Operation::ChangeCooldowns),
    get(STATUS, Operation::Status),
    get(KEYS, Operation::Keys),
    get(SPEND, Operation::Spend),
    AdminPath { path: JOURNAL, get: Some(Operation::Journal), post: Some(Operation::PruneJournal) },
    get(FEED, Operation::Feed),
    AdminPath { path: AGENTS, get: Some(Operation::Agents), post: Some(Operation::ChangeAgents) },
    get(LOGS, Operation::Logs),
    get(CONFIG, Operation::Config),
    get(OPENAPI, Operation::OpenApi),
    AdminPath { path: SESSION, get: Some(Operation::Session), post: Some(Operation::ChangeSession) },
    get(OVERVIEW, Operation::Overview),
    get(SESSIONS, Operation::Sessions),
    get(CHECK, Operation::Check),
    post(RELOAD, Operation::Reload),
    post(PROCESS, Operation::Process),
];

/// What a path and a method lead to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Operation(Operation),
    /// The path exists, but not with this method; these are allowed.
    WrongMethod(&'static str),
    UnknownPath,
}

pub(super) fn find(path: &str, method: &Method) -> Lookup {
    let Some(known) = PATHS.iter().find(|known| known.path == path) else { return Lookup::UnknownPath };
    let operation = match *method {
        Method::GET | Method::HEAD => known.get,
        Method::POST => known.post,
        _ => None,
    };
    match operation {
        Some(operation) => Lookup::Operation(operation),
        None => Lookup::WrongMethod(known.allowed()),
    }
}

impl AdminPath {
    const fn allowed(&self) -> &'static str {
        match (self.get, self.post) {
            (Some(_), Some(_)) => "GET, HEAD, POST",
            (Some(_), None) => "GET, HEAD",
            (None, _) => "POST",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::openapi;

    #[test]
    fn the_document_describes_every_path_and_method() {
        let document: serde_json::Value = serde_json::from_slice(&openapi::document()).unwrap();
        let described = document["paths"].as_object().unwrap();
        assert_eq!(described.len(), PATHS.len());
        for known in &PATHS {
            let methods = &described[known.path];
            assert_eq!(methods.get("get").is_some(), known.get.is_some(), "{}", known.path);
            assert_eq!(methods.get("post").is_some(), known.post.is_some(), "{}", known.path);
        }
    }

    #[test]
    fn a_wrong_method_is_answered_with_the_right_ones() {
        assert_eq!(find(JOURNAL, &Method::HEAD), Lookup::Operation(Operation::Journal));
        assert_eq!(find(JOURNAL, &Method::DELETE), Lookup::WrongMethod("GET, HEAD, POST"));
        assert_eq!(find(BREAKERS, &Method::GET), Lookup::WrongMethod("POST"));
        assert_eq!(find(STATUS, &Method::POST), Lookup::WrongMethod("GET, HEAD"));
        assert_eq!(find("/koboshi/nothing", &Method::GET), Lookup::UnknownPath);
    }
}
