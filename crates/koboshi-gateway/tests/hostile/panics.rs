//! A panic costs the connection that it happened on, and the log says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use koboshi_gateway::{AgentOrder, AgentsError, KeptAgents, LogPiece, LogQuestion};
use koboshi_testkit::until;
use serde_json::Value;

use crate::common::*;

/// Agents whose first metrics are a panic. The thread of a core writes them.
#[derive(Default)]
struct Panicking(AtomicBool);

impl KeptAgents for Panicking {
    fn order(&self, _: AgentOrder, _: Option<&str>) -> Result<Value, AgentsError> {
        Err(AgentsError::Away("test".to_owned()))
    }

    fn log(&self, _: &LogQuestion) -> Result<LogPiece, AgentsError> {
        Err(AgentsError::Away("test".to_owned()))
    }

    fn metrics(&self) -> String {
        assert!(self.0.swap(true, Ordering::SeqCst), "not this time");
        "# EOF\n".to_owned()
    }
}

#[test]
fn a_panic_costs_one_connection_and_is_logged() {
    let log = Lines::default();
    let stage = Stage::logging(&["one/ok?gap=20ms&chunks=5000"], Some(&log), |config| {
        config.routes.insert("fine".to_owned(), route(&["two/ok"]));
    });
    stage.gateway.keep_agents(Arc::new(Panicking::default()));
    let mut other = stage.client();
    other.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    let head = other.head().unwrap();
    other.piece(&head).unwrap().unwrap();
    let mut client = stage.client();
    client.send("GET", "/metrics", &[], b"");
    assert!(client.head().is_err(), "its connection is closed");
    let said = until("the log says it", || log.like("a request failed").into_iter().next());
    assert_eq!((&said["level"], &said["thread"]), (&"error".into(), &"koboshi-0".into()), "{said}");
    assert!(said["panic"].as_str().unwrap().contains("not this time"), "{said}");
    // There is one core, so nothing else can answer these.
    assert!(other.piece(&head).unwrap().is_some(), "a stream of the same core goes on");
    let mut fine = chat(false);
    fine["model"] = "fine".into();
    assert_whole(&stage.ask(&fine), &fine);
    assert_eq!(stage.get("/metrics").status, 200);
    assert_eq!(log.like("a request failed").len(), 1);
}
