//! The paths of the admin API and what is done at each, written once: routing, the `Allow` of a wrong method and the OpenAPI document use them.

use http::Method;

pub(super) const TARGETS: &str = "/koboshi/targets";
pub(super) const BREAKERS: &str = "/koboshi/breakers";
pub(super) const COOLDOWNS: &str = "/koboshi/cooldowns";
pub(super) const STATUS: &str = "/koboshi/status";
pub(super) const KEYS: &str = "/koboshi/keys";
pub(super) const JOURNAL: &str = "/koboshi/journal";
pub(super) const FEED: &str = "/koboshi/feed";
pub(super) const CONFIG: &str = "/koboshi/config";
pub(super) const OPENAPI: &str = "/koboshi/openapi.json";

/// What an operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Targets,
    ChangeBreakers,
    ChangeCooldowns,
    Status,
    Keys,
    Journal,
    PruneJournal,
    Feed,
    Config,
    OpenApi,
}

/// What is done at a path.
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

const PATHS: [AdminPath; 9] = [
    get(TARGETS, Operation::Targets),
    post(BREAKERS, Operation::ChangeBreakers),
    post(COOLDOWNS, Operation::ChangeCooldowns),
    get(STATUS, Operation::Status),
    get(KEYS, Operation::Keys),
    AdminPath { path: JOURNAL, get: Some(Operation::Journal), post: Some(Operation::PruneJournal) },
    get(FEED, Operation::Feed),
    get(CONFIG, Operation::Config),
    get(OPENAPI, Operation::OpenApi),
];

/// What a path and a method name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Operation(Operation),
    /// A path, but not with this method; these are allowed.
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
        let document = serde_json::to_value(openapi::document()).unwrap();
        let described = document["paths"].as_object().unwrap();
        assert_eq!(described.len(), PATHS.len());
        for known in &PATHS {
            let methods = &described[known.path];
            assert_eq!(methods.get("get").is_some(), known.get.is_some(), "{}", known.path);
            assert_eq!(methods.get("post").is_some(), known.post.is_some(), "{}", known.path);
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert_eq!(find(JOURNAL, &Method::HEAD), Lookup::Operation(Operation::Journal));
        assert_eq!(find(JOURNAL, &Method::DELETE), Lookup::WrongMethod("GET, HEAD, POST"));
        assert_eq!(find(BREAKERS, &Method::GET), Lookup::WrongMethod("POST"));
        assert_eq!(find(STATUS, &Method::POST), Lookup::WrongMethod("GET, HEAD"));
        assert_eq!(find("/koboshi/nothing", &Method::GET), Lookup::UnknownPath);
    }
}
