//! Who may start when not all can: one goes first after a shared rest, the others follow, and near its limit an account has fewer places.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::supervised::{Home, mark};
use jiff::Timestamp;
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::json;

/// A rest of a second; an end after no time is work all the same.
const SHORT: &str =
    "cooldown: {min_run: 0s, stagger: 100ms, jitter: 0, rate_limit: {initial: 1s, max: 1s}}\n";
const LIMIT: &str = "API Error: 429 rate_limit_error";

/// How many lines are in a file.
fn lines(file: &PathBuf) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// How many of these agents run.
fn running(home: &Home, names: &[&str]) -> usize {
    names.iter().filter(|name| home.state_of(&format!("{name}/default")) == "running").count()
}

#[test]
fn after_a_shared_rest_one_goes_first_and_the_others_follow_its_success() {
    let mut home = Home::new(SHORT);
    let (starts, go, asked) = (home.path("starts"), home.path("go"), home.path("asked"));
    let limited = ScriptedAgent::new(&mark("turn-limited")).complains(LIMIT).exits(1);
    home.agent(
        "limited",
        &limited,
        json!({"account": "main", "when": {"command": ["test", "!", "-e", asked.display().to_string()]}}),
    );
    let names = ["one", "two", "three"];
    for name in names {
        let agent = ScriptedAgent::new(&mark(name)).notes(&starts).waits_for(&go).exits(0);
        let when = json!({"command": ["test", "-e", asked.display().to_string()]});
        home.agent(name, &agent, json!({"account": "main", "when": when, "survives": false}));
    }
    let supervisor = home.supervise();
    home.says("Cooldown set for account:main");
    fs::write(&asked, "").unwrap();
    until("the first one goes", || (lines(&starts) == 1).then_some(()));
    // By the account, and not for want of places on it: of these it has one left as well.
    let others_wait = || {
        let agents = home.status()["agents"].as_array().cloned().unwrap_or_default();
        let held = agents.iter().filter(|one| one["state"] == "held" && one["held_by"] == "account:main");
        (held.count() == 2).then(|| agents[0]["now"].as_str().unwrap().parse::<Timestamp>().unwrap())
    };
    let since = until("the others wait for it", others_wait);
    // They are asked again every half a second.
    until("they go on waiting", || others_wait().filter(|now| now.duration_since(since).as_secs() >= 1));
    assert_eq!((lines(&starts), running(&home, &names)), (1, 1), "{}", home.log());
    fs::write(&go, "").unwrap();
    until("the others follow", || (lines(&starts) >= 3).then_some(()));
    supervisor.end();
}

#[test]
fn an_account_that_met_its_limit_has_fewer_places_and_gets_them_back() {
    let mut home = Home::new(&format!("{SHORT}accounts: {{main: {{concurrency: 4}}}}\n"));
    let names = ["one", "two", "three"];
    let (limit, begun) = (home.path("limit"), home.path("begun"));
    let go = |name: &str| home.path(&format!("go-{name}"));
    let gates: Vec<PathBuf> = names.iter().map(|name| go(name)).collect();
    for (name, gate) in names.iter().zip(&gates) {
        let agent =
            ScriptedAgent::new(&mark(&format!("place-{name}"))).notes(&begun).waits_for(gate).exits(0);
        home.agent(name, &agent, json!({"account": "main", "when": "once", "survives": false}));
    }
    let tries = home.path("tries");
    let greedy =
        ScriptedAgent::new(&mark("place-greedy")).notes(&tries).waits_for(&limit).complains(LIMIT).exits(1);
    home.agent("greedy", &greedy, json!({"account": "main", "survives": false}));
    home.agent(
        "waits",
        &ScriptedAgent::new(&mark("place-waits")).lives_on(),
        json!({"account": "main", "survives": false}),
    );
    let supervisor = home.supervise();
    let all = ["one", "two", "three", "greedy", "waits"];
    until("four run, as configured", || (running(&home, &all) == 4).then_some(()));
    home.says("waits, held by the concurrency of account:main");
    // The one without a place may be any of them: it is stopped, so that four are left.
    let without = all.iter().find(|name| home.state_of(&format!("{name}/default")) == "held").unwrap();
    assert_eq!(*without, "waits", "those that never ran begin in the order of the config");
    home.order("stop", "waits");
    fs::write(&limit, "").unwrap();
    home.says("Cooldown set for account:main");
    // Four ran when it was met, so two may: the three that go on are one too many.
    until("the rest is over and there is no place", || {
        let log = home.log();
        let after = log.split("Cooldown set for account:main").nth(1)?;
        after.contains("greedy/default: waits, held by the concurrency of account:main").then_some(())
    });
    assert_eq!((lines(&tries), running(&home, &all)), (1, 3), "{}", home.log());
    // An end that went well makes one more place: three, of which two are taken.
    fs::write(&gates[0], "").unwrap();
    until("it is started again", || (lines(&tries) >= 2).then_some(()));
    supervisor.end();
}

#[test]
fn an_exit_with_0_that_did_nothing_over_and_over_is_a_failure() {
    let mut home = Home::new("");
    let starts = home.path("starts");
    home.agent("idle", &ScriptedAgent::new(&mark("turn-idle")).notes(&starts).exits(0), json!({}));
    let supervisor = home.supervise();
    until("it is held", || (home.state_of("idle/default") == "held").then_some(()));
    assert_eq!(lines(&starts), 5, "{}", home.log());
    let status = home.status();
    assert_eq!(
        (&status["rows"][0]["key"], &status["rows"][0]["reason"], &status["agents"][0]["last"]["outcome"]),
        (&json!("agent:idle/default"), &json!("error"), &json!("idle")),
        "{status}"
    );
    supervisor.end();
}
