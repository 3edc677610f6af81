//! A machine that is out of local ports towards one provider: that is no fault of the provider.
//!
//! In a network of its own that has few ports: the test starts itself there, as `unshare` can.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::process::Command;

use common::*;
use koboshi_store::{EntryKind, Query, Store};
use koboshi_testkit::until;

const FEW_PORTS: &str =
    "ip link set lo up && echo 40000 40255 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";

/// Set where the test runs in a network with few ports.
const INSIDE: &str = "KOBOSHI_TEST_FEW_PORTS";

/// Set on machines that allow no network of one's own.
const NO_NAMESPACES: &str = "KOBOSHI_TEST_NO_NAMESPACES";

#[test]
fn without_local_ports_no_provider_is_blamed_and_another_one_answers() {
    if std::env::var_os(INSIDE).is_some() {
        return in_a_network_with_few_ports();
    }
    let test = std::env::current_exe().unwrap();
    let apart = ["--user", "--map-root-user", "--net"];
    if !Command::new("unshare").args(apart).arg("true").status().is_ok_and(|status| status.success()) {
        // What cannot be tested must not look as if it were. A container that allows no namespaces says so itself.
        assert!(
            std::env::var_os(NO_NAMESPACES).is_some(),
            "unshare is refused here, so nothing was tested: set {NO_NAMESPACES}=1 if this machine allows no namespaces"
        );
        return;
    }
    let mut command = Command::new("unshare");
    command.args(apart).args(["sh", "-c", FEW_PORTS, "sh"]).arg(test).env(INSIDE, "1");
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn in_a_network_with_few_ports() {
    let stage = Stage::with(&["one/ok", "two/ok"], |config| {
        config.routes.insert("only".to_owned(), route(&["one/ok"]));
    });
    let mut taken = Vec::new();
    let place = ("127.0.0.1", stage.one.port());
    let none_left = loop {
        match TcpStream::connect(place) {
            Ok(one) => taken.push(one),
            Err(error) => break error.kind(),
        }
        assert!(taken.len() < 1000, "this network has many ports");
    };
    assert_eq!(none_left, ErrorKind::AddrNotAvailable);
    let mut only = chat(false);
    only["model"] = "only".into();
    for _ in 0..8 {
        let answer = stage.ask(&only);
        let error = assert_error(&answer, 503, "unavailable");
        assert_eq!(error["koboshi"]["sub"], "resources", "{error}");
        assert_eq!(answer.number("x-koboshi-sends"), Some(0), "{answer:?}");
    }
    let answer = stage.ask(&chat(false));
    assert_whole(&answer, &chat(false));
    assert_eq!(answer.header("x-koboshi-target"), Some("two/ok"));
    assert_eq!(
        (stage.breaker("one/ok"), stage.breaker("two/ok")),
        ("closed".to_owned(), "closed".to_owned())
    );
    let faults = until("the journal tells it", || {
        let all = stage.store.query(&Query { limit: 1000, ..Query::default() }).unwrap();
        let faults: Vec<_> = all.into_iter().filter(|entry| entry.what == EntryKind::Fault).collect();
        (!faults.is_empty()).then_some(faults)
    });
    assert!(faults.iter().all(|entry| entry.data.as_ref().unwrap()["origin"] == "koboshi"), "{faults:?}");
    drop(taken);
    until("ports are free again", || (stage.ask(&only).status == 200).then_some(()));
}
