//! `koboshi up` with real agents, the reload of their config, and agents with several accounts.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::Path;

use common::supervised::{Home, QUICK, Supervisor, mark};
use common::{json as document, run};
use koboshi_testkit::{Client, RedisServer, ScriptedAgent, Upstream, signal, until};
use serde_json::{Value, json};

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_asks_its_model_through_the_gateway_of_the_same_process_and_both_end() {
    let mut home = Home::new(&format!("{QUICK}kinds: [kinds.yaml]\n"));
    let kind = "asker: {gateway: {env: {ASKER_URL: \"{gateway}/v1\"}}}\n";
    fs::write(home.path("kinds.yaml"), kind).unwrap();
    let answer = home.path("answer");
    let ask = format!(
        "curl -s -H 'content-type: application/json' -d '{{\"model\":\"sim/ok\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}' \
         \"$ASKER_URL/chat/completions\" > {0}.new; mv {0}.new {0}; sleep 3600",
        answer.display()
    );
    home.agents["asker"] = json!({"command": ["sh", "-c", ask], "kind": "asker", "survives": false});
    let mut up = home.up();
    let said = until("it was answered", || fs::read_to_string(&answer).ok());
    assert!(said.contains("chat.completion") && said.contains("choices"), "{said}\n{}", home.log());
    assert_eq!(home.state_of("asker/default"), "running");
    let address = address_of(&home);
    signal(&up.0, "-TERM");
    assert_eq!(up.0.wait().unwrap().code(), Some(0), "{}", home.log());
    assert!(std::net::TcpStream::connect(address).is_err(), "the gateway is gone");
    assert!(home.log().contains("stopping: 1 running agents are stopped"), "{}", home.log());
    assert_eq!(home.state_of("asker/default"), "");
}

/// Where the gateway of a running `up` listens.
fn address_of(home: &Home) -> std::net::SocketAddr {
    let address = until("its address", || {
        let log = home.log();
        let at = log.find("\"address\":\"")? + 11;
        log[at..].split('"').next().map(str::to_owned)
    });
    address.parse().unwrap()
}

/// `up` with one agent, which runs: from then on it handles signals.
fn up_with_an_agent(home: &mut Home) -> Supervisor {
    home.agents["sleeper"] = json!({"command": ["sleep", "3600"], "gateway": false, "survives": false});
    let up = home.up();
    until("its agent runs", || (home.state_of("sleeper/default") == "running").then_some(()));
    up
}

#[test]
fn a_second_signal_does_not_wait_for_streams() {
    let more = "routes: {slow: [\"sim/stall?after=3\"]}\nserve: {threads: 1, drain_timeout: 10m}\n";
    let mut home = Home::new(&format!("{QUICK}{more}"));
    let mut up = up_with_an_agent(&mut home);
    let mut client = Client::to(address_of(&home));
    let body = json!({"model": "slow", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
    let head = client.head().unwrap();
    client.piece(&head).unwrap().unwrap();
    signal(&up.0, "-TERM");
    home.says("stopping: draining 1 request");
    signal(&up.0, "-TERM");
    let ended = until("it ends with its stream open", || up.0.try_wait().unwrap());
    assert_eq!(ended.code(), Some(130), "{}", home.log());
    drop(client);
}

#[test]
fn it_stops_while_its_store_stands_still() {
    let server = RedisServer::start();
    let mut home = Home::sharing(&server.url(), &format!("{QUICK}serve: {{drain_timeout: 1s}}\n"));
    let mut up = up_with_an_agent(&mut home);
    server.pause();
    signal(&up.0, "-TERM");
    let ended = until("it ends without its store", || up.0.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", home.log());
    server.resume();
}

#[test]
fn the_gateway_notes_which_agent_asked_and_tells_no_provider() {
    let upstream = Upstream::start();
    let mut home = Home::new(&format!(
        "{QUICK}kinds: [kinds.yaml]\nretry: {{max_attempts: 1}}\nproviders: {{one: {{kind: openai, base_url: \"{}\", keys: [k]}}}}\n",
        upstream.url()
    ));
    let kind = "asker: {gateway: {env: {ASKER_URL: \"{gateway}/v1\", ASKER_HEADER: \"x-koboshi-agent: {agent}\"}}}\n";
    fs::write(home.path("kinds.yaml"), kind).unwrap();
    let done = home.path("done");
    let ask = format!(
        "curl -s -H \"$ASKER_HEADER\" -H 'content-type: application/json' -d '{{\"model\":\"one/no-such-model\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}' \
         \"$ASKER_URL/chat/completions\"; touch {}; sleep 3600",
        done.display()
    );
    home.agents["asker"] =
        json!({"command": ["sh", "-c", ask], "kind": "asker", "projects": ["site"], "survives": false});
    let up = home.up();
    until("it has asked", || done.exists().then_some(()));
    let entry = until("the journal has it", || {
        let said = run(&["journal", "--agent", "asker/site", "--format", "json", "--store", &home.store()]);
        let entries = said.text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries.into_iter().find(|entry| entry["data"]["target"].is_string())
    });
    assert_eq!(entry["agent"], "asker/site", "{entry}");
    let received = upstream.requests();
    assert!(!received.is_empty() && received.iter().all(|one| one.header("x-koboshi-agent").is_none()));
    up.end();
}

/// Where clients need keys, the agents of the same process have one of their own, which stands nowhere.
#[test]
fn agents_of_a_gateway_with_keys_have_a_key_of_their_own_and_ask_under_their_names() {
    let (hash, of_admin) = ("ab".repeat(32), "cd".repeat(32));
    let mut home = Home::new(&format!(
        "{QUICK}kinds: [kinds.yaml]\nkeys: {{laptop: {{sha256: \"{hash}\"}}}}\nadmin: {{sha256: \"{of_admin}\"}}\n"
    ));
    let kind = "asker: {gateway: {env: {ASKER_URL: \"{gateway}/v1\", ASKER_HEADER: \"x-koboshi-agent: {agent}\"}, key: {ASKER_KEY: \"{key}\"}}}\n\
                keyless: {gateway: {env: {ASKER_URL: \"{gateway}/v1\"}}}\n";
    fs::write(home.path("kinds.yaml"), kind).unwrap();
    let body = "{\"model\":\"sim/ok\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    let ask = |answer: &Path| {
        format!(
            "echo \"my key is $ASKER_KEY\"; curl -s -H \"$ASKER_HEADER\" -H \"authorization: Bearer $ASKER_KEY\" \
             -H 'content-type: application/json' -d '{body}' \"$ASKER_URL/chat/completions\" > {0}.new; \
             printf %s \"$ASKER_KEY\" | sha256sum > {0}.hash; mv {0}.new {0}; sleep 3600",
            answer.display()
        )
    };
    let (answer, direct) = (home.path("answer"), home.path("direct"));
    let of = |file: &Path, kind: &str| json!({"command": ["sh", "-c", ask(file)], "kind": kind, "projects": ["site"], "env": ["ASKER_KEY=old"]});
    home.agents["asker"] = of(&answer, "asker");
    home.agents["keyless"] = of(&direct, "keyless");
    home.agents["keyless"]["survives"] = json!(false);
    let mut up = home.up();
    let said = until("it was answered", || fs::read_to_string(&answer).ok());
    assert!(said.contains("chat.completion"), "{said}\n{}", home.log());
    home.says("keyless/site: asks its provider directly, because clients of the gateway need keys");
    until("it has begun", || direct.exists().then_some(()));
    let spent = until("its spend is told", || {
        let said = run(&["spend", "--by", "agent", "--format", "json", "--store", &home.store()]);
        said.text.contains("asker/site").then_some(said.text)
    });
    assert!(!spent.contains("keyless/site"), "{spent}");
    let logs = until("its output is there", || {
        let logs = run(&["logs", "asker", "--store", &home.store()]).text;
        logs.contains("my key is").then_some(logs)
    });
    assert!(!logs.contains("kbs-"), "{logs}");
    let id = home.status()["agents"][0]["pid"].as_i64().unwrap();
    let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap();
    let environment = String::from_utf8(fs::read(format!("/proc/{id}/environ")).unwrap()).unwrap();
    let key = environment.split('\0').find_map(|one| one.strip_prefix("ASKER_KEY=kbs-")).unwrap().to_owned();
    assert!(!String::from_utf8_lossy(&arguments).contains(&key));
    assert_eq!(files_with(&home.path(""), &key), [""; 0], "no file has it");
    // The key ends with the process: an agent that survived it begins again with a new one.
    up.kill();
    fs::remove_file(&answer).unwrap();
    let next = home.up();
    home.says("asker/site: is restarted, because its key of the gateway ended with the previous process");
    let said = until("it was answered again", || fs::read_to_string(&answer).ok());
    assert!(said.contains("chat.completion"), "{said}\n{}", home.log());
    home.order("stop", "asker");
    until("it is stopped", || (home.state_of("asker/site") == "stopped").then_some(()));
    next.end();
}

/// The files below a folder that have these words in them.
fn files_with(folder: &Path, words: &str) -> Vec<String> {
    let said = std::process::Command::new("grep").args(["-rla", words]).arg(folder).output().unwrap();
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_reload_restarts_the_agent_that_changed_and_a_bad_config_changes_nothing() {
    let mut home = Home::new(QUICK);
    let (same, other, new) = (home.path("same"), home.path("other"), home.path("new"));
    let agent = |name: &str, file: &Path| ScriptedAgent::new(&mark(name)).notes(file).lives_on();
    home.agent("same", &agent("same", &same), json!({"survives": false}));
    home.agent("other", &agent("other", &other), json!({"survives": false}));
    let up = home.up();
    until("both run", || (lines(&same).len() == 1 && lines(&other).len() == 1).then_some(()));

    let config = home.config();
    fs::write(&config, "agents: {same: {command: 7, unknown: true}}\n").unwrap();
    for _ in 0..2 {
        let refused = run(&["reload", "--store", &home.store()]);
        assert_eq!(refused.status, 1, "every time: {}{}", refused.text, refused.error);
        assert!(refused.error.contains("agents.same"), "{}", refused.error);
    }
    assert_eq!(home.state_of("same/default"), "running");
    assert_eq!(home.state_of("other/default"), "running");
    let log = home.log();
    let refused =
        log.lines().find(|line| line.contains("the new config of the agents cannot be used")).unwrap();
    assert!(refused.contains("\"level\":\"warn\"") && !refused.contains("[WARNING]"), "its level: {refused}");

    home.agents["other"]["env"] = json!(["CHANGED=1"]);
    home.agents["same"]["limits"] = json!({"run": "3h"});
    home.agent("new", &agent("new", &new), json!({"survives": false}));
    home.config();
    signal(&up.0, "-HUP");
    home.says("added: new/default; restarted: other/default; changed without a restart: same/default");
    until("it runs again", || (lines(&other).len() == 2).then_some(()));
    until("the new one runs", || (lines(&new).len() == 1).then_some(()));
    assert_eq!(lines(&same).len(), 1, "it was not restarted");

    home.agents.as_object_mut().unwrap().remove("new");
    home.config();
    let reloaded = run(&["reload", "--format", "json", "--store", &home.store()]);
    assert_eq!(reloaded.status, 0, "{}", reloaded.error);
    assert_eq!(document(&reloaded)["reloaded"], true);
    until("it is forgotten", || home.state_of("new/default").is_empty().then_some(()));
    assert_eq!((lines(&same).len(), lines(&other).len()), (1, 2));
    up.end();
}

#[test]
fn a_supervisor_without_a_gateway_follows_its_file() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("follows")).notes(&notes).lives_on();
    home.agent("follows", &agent, json!({"survives": false}));
    let supervisor = home.supervise();
    until("it runs", || (lines(&notes).len() == 1).then_some(()));
    home.agents["follows"]["env"] = json!(["CHANGED=1"]);
    home.config();
    home.says("restarted: follows/default");
    until("it runs again", || (lines(&notes).len() == 2).then_some(()));
    supervisor.end();
}

#[test]
fn an_agent_whose_account_is_dry_goes_on_with_the_next_one() {
    let mut home = Home::new("accounts: {first: {env: [\"WHO=one\"]}, second: {env: [\"WHO=two\"]}}\n");
    let seen = home.path("seen");
    let script = format!(
        "echo \"$WHO $KOBOSHI_ACCOUNT\" >> {}; [ \"$WHO\" = two ] && sleep 3600; \
         echo 'TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.' >&2; exit 1",
        seen.display()
    );
    home.agents["worker"] = json!({
        "command": ["sh", "-c", script], "account": ["first", "second"], "survives": false, "gateway": false,
    });
    let up = home.up();
    until("it moved", || (lines(&seen).len() == 2).then_some(()));
    assert_eq!(lines(&seen), ["one first", "two second"]);
    home.says("worker/default: started with the account second");
    assert_eq!(home.state_of("worker/default"), "running");
    let status = home.status();
    assert_eq!(status["rows"][0]["key"], "account:first", "{status}");
    assert_eq!(status["agents"][0]["account"], "second", "{status}");
    up.end();
}

#[test]
fn without_a_store_that_lasts_it_is_refused_before_the_gateway_listens() {
    let mut home = Home::new("store: memory\n");
    home.agent("idle", &ScriptedAgent::new(&mark("idle")).lives_on(), json!({}));
    for (lang, words) in
        [("en", "agents need a file or Redis"), ("ja", "エージェントにはファイルか Redis が必要です")]
    {
        let refused = run(&["up", "--listen", "127.0.0.1:0", "--lang", lang, "--config", &home.config()]);
        assert_eq!(refused.status, 2, "{}", refused.error);
        assert!(refused.error.contains(words), "{}", refused.error);
        assert!(!refused.error.contains("127.0.0.1"), "nothing listened: {}", refused.error);
    }
}
