//! What an operator asks of agents and their runs: pause and resume, status, logs, journal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use common::supervised::{Home, QUICK, mark};
use common::{Out, Running, json as document, koboshi, run};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

/// A command with the store and the config of this home.
fn on(home: &Home, args: &[&str]) -> Out {
    let (store, config) = (home.store(), home.config());
    run(&[args, &["--store", &store, "--config", &config]].concat())
}

#[test]
fn an_agent_is_paused_and_resumed_by_its_name() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("paused")).notes(&notes).lives_on();
    home.agent("worker", &agent, json!({"projects": ["one", "two"], "account": "main", "survives": false}));
    assert_eq!(on(&home, &["pause", "worker/one", "--for", "2h", "--reason", "release day"]).status, 0);
    let supervisor = home.supervise();
    until("the other one runs", || (home.state_of("worker/two") == "running").then_some(()));
    until("it is held", || (home.state_of("worker/one") == "held").then_some(()));
    let status = on(&home, &["status", "agent:worker"]);
    assert!(status.status == 1 && status.text.contains("release day"), "{}", status.text);
    assert_eq!(on(&home, &["resume", "worker"]).status, 0);
    until("it runs, too", || (home.state_of("worker/one") == "running").then_some(()));
    assert_eq!(on(&home, &["status", "agent:worker"]).status, 0);
    for unknown in [&["pause", "nobody", "--for", "1h"][..], &["resume", "nobody"]] {
        assert_eq!(on(&home, unknown).status, 1, "{unknown:?}");
    }
    let unknown = on(&home, &["status", "agent:nobody"]);
    assert!(unknown.status == 2 && unknown.error.contains("nobody"), "{}{}", unknown.text, unknown.error);
    assert_eq!(on(&home, &["cool", "account:main", "--for", "1h"]).status, 0, "an account of agents");
    supervisor.end();
}

#[test]
fn logs_are_shown_of_each_run_and_followed_to_the_end() {
    let mut home = Home::new(QUICK);
    let (go, end) = (home.path("go"), home.path("end"));
    let agent = ScriptedAgent::new(&mark("logs"))
        .says("first words")
        .waits_for(&go)
        .says("last words")
        .waits_for(&end)
        .exits(0);
    home.agent("talker", &agent, json!({"projects": ["one", "two"], "when": "once", "survives": false}));
    let supervisor = home.supervise();
    let shown = |args: &[&str]| on(&home, &[&["logs"], args].concat());
    until("it talks", || shown(&["talker/one"]).text.contains("first words").then_some(()));
    for (lang, words) in [("en", "several projects"), ("ja", "複数のプロジェクト")] {
        let several = shown(&["talker", "--lang", lang]);
        assert!(several.status == 2 && several.error.contains(words), "{}", several.error);
        assert!(several.error.contains("talker/one, talker/two"), "{}", several.error);
    }
    let store = home.store();
    let mut command = koboshi(&["logs", "talker/one", "-f", "--store", &store]);
    let mut follower = Running::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
    let mut command = koboshi(&["logs", "talker/one", "-f", "--format", "json", "--store", &store]);
    let mut machine = Running::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
    fs::write(&go, "").unwrap();
    until("it says more", || shown(&["talker/one"]).text.contains("last words").then_some(()));
    fs::write(&end, "").unwrap();
    let mut text = String::new();
    follower.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(follower.wait().unwrap().success(), "it ends with the run");
    assert_eq!(text, "first words\nlast words\n");
    let mut objects = String::new();
    machine.stdout.take().unwrap().read_to_string(&mut objects).unwrap();
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let over = json!({"agent": "talker/one", "run": 1, "over": true});
    assert_eq!(objects, [json!({"line": "first words"}), json!({"line": "last words"}), over]);
    fs::remove_file(&end).unwrap();
    fs::remove_file(&go).unwrap();
    assert_eq!(home.order("start", "talker/one").status, 0);
    until("the next run is the newest", || (shown(&["talker/one"]).text == "first words\n").then_some(()));
    assert_eq!(shown(&["talker/one", "--run", "2"]).text, text);
    let whole = document(&shown(&["talker/one", "--run", "2", "--format", "json"]));
    assert_eq!(whole["lines"], json!(["first words", "last words"]));
    let beyond = shown(&["talker/one", "--run", "9"]);
    assert!(beyond.status == 2 && beyond.error.contains("has no run 9"), "{}", beyond.error);
    supervisor.end();
}

#[test]
fn the_journal_of_an_agent_has_all_of_its_projects_and_a_mistyped_kind_is_refused() {
    let mut home = Home::new("cooldown: {min_run: 0s}\n");
    let agent = ScriptedAgent::new(&mark("journal")).exits(0);
    for name in ["writer", "writer2"] {
        home.agent(name, &agent, json!({"projects": ["one", "two"], "when": "once"}));
    }
    let supervisor = home.supervise();
    for name in ["writer", "writer2"] {
        until("both projects ended", || {
            let lines =
                on(&home, &["journal", "--agent", name, "--kind", "succeeded", "--format", "json"]).text;
            (lines.lines().count() == 2).then_some(())
        });
    }
    let of_one = on(&home, &["journal", "--agent", "writer/one", "--format", "json"]).text;
    let kinds: Vec<Value> =
        of_one.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].take()).collect();
    assert_eq!(kinds, ["started", "succeeded"]);
    let wrong = on(&home, &["journal", "--kind", "rate_limit_"]);
    assert!(wrong.status == 2 && wrong.error.contains("rate_limited"), "{}{}", wrong.text, wrong.error);
    assert_eq!(on(&home, &["journal", "--kind", "rate_limited"]).status, 0, "an error that never came");
    supervisor.end();
}

#[test]
fn a_program_that_does_not_exist_is_named_by_status_and_journal() {
    let mut home = Home::new("");
    home.agents["typo"] = json!({"command": ["no-such-program", "-p"], "gateway": false});
    let supervisor = home.supervise();
    until("it is parked", || (home.state_of("typo/default") == "parked").then_some(()));
    for command in [&["status"][..], &["journal", "--agent", "typo"]] {
        // Entries of the journal reach the store a little later.
        until("the program is named", || {
            on(&home, command).text.contains("no-such-program was not found").then_some(())
        });
    }
    supervisor.end();
}

/// `koboshi status` tells of each agent how its last run ended, and why that was believed.
#[test]
fn status_shows_the_last_end_with_the_rule_and_the_line_that_decided() {
    let mut home = Home::new("");
    let line = "TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.";
    let dry = ScriptedAgent::new(&mark("told")).says("before").complains(line).exits(3);
    home.agent("dry", &dry, json!({"account": "main", "when": "once"}));
    let supervisor = home.supervise();
    home.says("dry/default: ended with exit code 3 (quota)");
    let said = on(&home, &["status", "--lang", "en"]).text;
    let at = said.lines().position(|line| line.starts_with("dry/default")).unwrap();
    let told: Vec<&str> = said.lines().skip(at + 1).take(2).collect();
    assert!(told[0].starts_with("    last run: ended ") && told[0].contains("exit code 3: quota"), "{said}");
    let whole = home.status();
    let rule = whole["agents"][0]["last"]["rule"].as_str().unwrap();
    assert!(told[0].ends_with(&format!(" · rule {rule}")), "{said}");
    assert_eq!(told[1], format!("    │ {line}"), "{said}");
    let japanese = on(&home, &["status", "--lang", "ja"]).text;
    assert!(japanese.contains("前回の実行: ") && japanese.contains("終了コード 3"), "{japanese}");
    supervisor.end();
}

/// What was ordered over the socket, and each start, are in the journal; its text has the rule that decided.
#[test]
fn the_journal_has_orders_starts_and_the_rule_of_an_end() {
    let mut home = Home::new(QUICK);
    let line = "TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.";
    let dry = ScriptedAgent::new(&mark("journal-dry")).complains(line).exits(3);
    home.agent("dry", &dry, json!({"account": "main", "when": "once"}));
    home.agent("quiet", &ScriptedAgent::new(&mark("journal-quiet")).lives_on(), json!({"survives": false}));
    let supervisor = home.supervise();
    home.says("dry/default: ended with exit code 3 (quota)");
    for order in ["stop", "start", "restart"] {
        assert_eq!(home.order(order, "quiet/default").status, 0);
    }
    assert_eq!(home.order("stop", "nobody").status, 2);
    let wanted = [
        "dry/default: started", "quiet/default: started", "quiet/default: stop by an operator",
        "quiet/default: start by an operator", "quiet/default: restart by an operator",
    ];
    until("all is in the journal", || {
        let text = on(&home, &["journal", "--lang", "en"]).text;
        wanted.iter().all(|words| text.contains(words)).then_some(())
    });
    let text = on(&home, &["journal", "--lang", "en"]).text;
    let rule = home.status()["agents"][0]["last"]["rule"].as_str().unwrap().to_owned();
    let end = text.lines().find(|line| line.contains("ended with exit code 3")).unwrap();
    assert!(end.contains(&format!("rule {rule}")), "{text}");
    assert!(!text.contains("nobody"), "a name that no agent has: {text}");
    let orders = on(&home, &["journal", "--what", "operator", "--kind", "restart", "--format", "json"]).text;
    let entry: Value = serde_json::from_str(orders.trim()).unwrap();
    assert_eq!((&entry["agent"], &entry["key"]), (&json!("quiet/default"), &json!("agent:quiet/default")));
    supervisor.end();
}

#[test]
fn the_socket_and_what_runs_wrote_are_for_their_user_alone() {
    let mut home = Home::new(QUICK);
    home.agent(
        "quiet",
        &ScriptedAgent::new(&mark("modes")).says("words").lives_on(),
        json!({"survives": false}),
    );
    let supervisor = home.supervise();
    until("it talks", || on(&home, &["logs", "quiet"]).text.contains("words").then_some(()));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path("runs")), 0o700);
    assert_eq!(mode(&home.path("runs/supervisor.sock")), 0o600);
    let run = fs::read_dir(home.path("runs/agents/quiet/default")).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&run), mode(&run.join("log"))), (0o700, 0o600));
    supervisor.end();
}

#[test]
fn an_agent_is_asked_to_end_with_the_signal_of_its_config() {
    let mut home = Home::new(QUICK);
    let (ready, seen) = (home.path("ready"), home.path("seen"));
    let traps: String = ["HUP", "INT", "QUIT", "TERM"]
        .map(|name| format!("trap 'echo {name} >> {}; exit 0' {name}; ", seen.display()))
        .concat();
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        let script = format!("{traps}touch {}-{name}; while :; do sleep 0.05; done", ready.display());
        home.agents[name] = json!({"command": ["bash", "-c", script], "gateway": false, "survives": false,
            "stop": {"signal": name}});
    }
    let supervisor = home.supervise();
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        until("it runs", || home.path(&format!("ready-{name}")).exists().then_some(()));
        assert_eq!(home.order("stop", name).status, 0);
        until("it was asked", || {
            fs::read_to_string(&seen).is_ok_and(|text| text.lines().last() == Some(name)).then_some(())
        });
        until("it is stopped", || (home.state_of(&format!("{name}/default")) == "stopped").then_some(()));
    }
    assert_eq!(fs::read_to_string(&seen).unwrap(), "HUP\nINT\nQUIT\nTERM\n");
    supervisor.end();
}

#[test]
fn a_supervisor_without_a_gateway_serves_its_metrics() {
    let mut home = Home::new(QUICK);
    home.agent("quiet", &ScriptedAgent::new(&mark("metrics")).lives_on(), json!({"survives": false}));
    let supervisor = home.start(&["supervise", "--metrics", "127.0.0.1:0"]);
    let address = until("it says where", || {
        let log = home.log();
        Some(log.split_once("http://")?.1.split_once("/metrics")?.0.to_owned())
    });
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    // One that asks nothing holds up the others for a moment alone.
    let _silent = TcpStream::connect(&address).unwrap();
    let running = "koboshi_agents{state=\"running\"} 1";
    let page = until("it is counted", || {
        let page = ask("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
        page.contains(running).then_some(page)
    });
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("# EOF\n"), "{page}");
    assert!(page.contains("koboshi_agent_starts_total{agent=\"quiet\",project=\"default\"} 1"), "{page}");
    assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    supervisor.end();
}
