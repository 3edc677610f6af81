//! What an operator meets: a running gateway, its store file, and the commands on the file and over the network.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Out, Running, json, koboshi, run_with};
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_testkit::{Answer, Authority, Client, Protocol, RedisServer, Upstream, signal, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// SHA-256 of `test`.
const HASH_OF_TEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// The first target fails, the second one answers.
const CHAIN: &str = "routes: {talk: [sim/fail-503, sim/ok], steady: [sim/ok]}\nserve: {threads: 1}\n";

/// A gateway as a process, with what it says.
struct Gateway {
    child: Running,
    address: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    fn start(args: &[&str]) -> Self {
        let args: Vec<&str> =
            ["serve", "--lang", "en", "--listen", "127.0.0.1:0"].iter().chain(args).copied().collect();
        let mut child = Running::start(koboshi(&args).stderr(Stdio::piped()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let place = first.split("http://").nth(1).unwrap_or_else(|| panic!("{first}"));
        let address = place.trim_end_matches("/v1").parse().unwrap();
        let said = Arc::new(Mutex::new(vec![first]));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Self { child, address, said }
    }

    /// What it has said so far.
    fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    /// Waits until it has said this.
    fn says(&self, words: &str) {
        until(&format!("{words:?} in:\n{}", self.said()), || self.said().contains(words).then_some(()));
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn chat(&self, model: &str) -> Answer {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
        let mut client = Client::to(self.address);
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.read()
    }

    /// A client whose stream has begun and never ends.
    fn open_stream(&self) -> Client {
        let mut client = Client::to(self.address);
        let body =
            json!({"model": "slow", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        until("the stream is open", || {
            let mut other = Client::to(self.address);
            other.send("GET", "/metrics", &[], b"");
            // The question itself is one of those that are open.
            let metrics = other.read().body;
            String::from_utf8_lossy(&metrics)
                .lines()
                .any(|line| line == "koboshi_open_requests 2")
                .then_some(())
        });
        client
    }

    fn ended(&mut self) -> Option<i32> {
        until("the gateway ends", || self.child.try_wait().unwrap()).code()
    }
}

/// A folder with a config and a store, and the gateway that uses them.
struct Scene {
    folder: TempDir,
    gateway: Gateway,
}

impl Scene {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
        std::fs::write(&file, config).unwrap();
        let gateway = Gateway::start(&["--config", text(&file), "--store", text(&store)]);
        Self { folder, gateway }
    }

    /// A command on the store file, without the gateway's config.
    fn on_file(&self, args: &[&str]) -> Out {
        let store = self.folder.path().join("store.db");
        let args: Vec<&str> =
            args.iter().chain(&["--store", text(&store), "--lang", "en"]).copied().collect();
        run_with(&args, &[], "")
    }

    /// A command to the gateway.
    fn on_url(&self, args: &[&str]) -> Out {
        let url = self.gateway.url();
        let args: Vec<&str> = args.iter().chain(&["--url", &url, "--lang", "en"]).copied().collect();
        run_with(&args, &[], "")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Opens the breaker of `sim/fail-503`.
fn open_the_breaker(scene: &Scene) {
    until("the breaker opens", || {
        let answer = scene.gateway.chat("talk");
        assert_eq!(answer.status, 200);
        (answer.header("x-koboshi-attempts") == Some("1")).then_some(())
    });
}

#[test]
fn a_key_means_what_a_person_expects_and_the_target_really_gets_no_requests() {
    let scene = Scene::start(CHAIN);
    for on in [Scene::on_file, Scene::on_url] {
        for key in
            ["model:ok", "model:sim/ok", "account:sim", "account:sim/ok", "target:sim/ok", "provider:sim"]
        {
            let cooled = on(&scene, &["cool", key, "--for", "2m", "--reason", "incident 4711"]);
            assert_eq!(cooled.status, 0, "{key}: {}", cooled.error);
            assert!(cooled.text.contains("is in cooldown until"), "{}", cooled.text);
            let refused = until(&format!("{key} keeps requests away"), || {
                Some(scene.gateway.chat("steady")).filter(|answer| answer.status != 200)
            });
            assert!(String::from_utf8_lossy(&refused.body).contains("incident 4711"), "{refused:?}");
            let status = on(&scene, &["status", key]);
            assert_eq!(status.status, 1, "{key}: {}", status.text);
            assert!(
                status.text.contains("incident 4711") && status.text.contains("set by an operator"),
                "{}",
                status.text
            );
            let resumed = on(&scene, &["resume", key]);
            assert_eq!(resumed.status, 0, "{key}: {}", resumed.text);
            until(&format!("{key} is used again"), || {
                (scene.gateway.chat("steady").status == 200).then_some(())
            });
            assert_eq!(on(&scene, &["status", key]).status, 0, "{key}");
            assert_eq!(on(&scene, &["resume", key]).status, 1, "{key}: nothing is left to resume");
        }
    }
}

#[test]
fn a_key_that_no_target_has_is_refused_with_near_ones() {
    let scene = Scene::start(CHAIN);
    for on in [Scene::on_file, Scene::on_url] {
        for (key, near) in [
            ("model:okk", "model:sim/ok"),
            ("account:main", "account:sim/ok"),
            ("provider:smi", "provider:sim"),
            ("target:simm/ok", "target:sim/ok"),
            ("model:talk", "target:sim/fail-503"),
        ] {
            let refused = on(&scene, &["cool", key, "--for", "2m"]);
            assert_eq!((refused.status, refused.text.as_str()), (1, ""), "{key}");
            let said = refused.error;
            assert!(
                said.contains("No target has the key") && said.contains(near) && said.contains("--force"),
                "{said}"
            );
            let refused = on(&scene, &["resume", key]);
            assert_eq!(refused.status, 1, "{key}");
            assert!(refused.error.contains(near), "{}", refused.error);
            assert_eq!(on(&scene, &["status", key]).status, 2, "{key}");
        }
        let machine = on(&scene, &["cool", "model:okk", "--for", "2m", "--format", "json"]);
        assert_eq!((machine.status, &json(&machine)["error"]), (1, &json!("unknown_key")));
        assert_eq!(on(&scene, &["status"]).status, 0, "nothing was changed");
        let wrong = on(&scene, &["cool", "sim/ok", "--for", "2m"]);
        assert!(wrong.error.contains("target:") && !wrong.error.contains("rung"), "{}", wrong.error);
    }
    let forced = scene.on_url(&["cool", "model:sim/later", "--for", "2m", "--force"]);
    assert_eq!(forced.status, 0, "{}", forced.error);
    assert_ne!(scene.gateway.chat("sim/later").status, 200);
    assert_eq!(scene.on_url(&["resume", "model:sim/later"]).status, 0);
    // A name that only an operator wrote, and whose cooldown is over, stays unknown.
    let past = ["cool", "model:sim/never", "--for", "1m", "--force", "--now", "2020-01-01T00:00:00Z"];
    assert_eq!(scene.on_file(&past).status, 0);
    assert_eq!(scene.on_file(&["cool", "model:sim/never", "--for", "2m"]).status, 1);
    // One that a client asked for is known.
    scene.gateway.chat("sim/fail-500");
    until("the gateway has reported it", || {
        (scene.on_file(&["cool", "target:sim/fail-500", "--for", "2m"]).status == 0).then_some(())
    });
}

#[test]
fn what_exists_is_known_from_the_config_before_any_gateway_ran() {
    let folder = tempfile::tempdir().unwrap();
    let (config, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
    let yaml = "providers: {openai: {kind: openai, keys: [first-key, second-key]}, azure: {kind: azure, base_url: \"https://a.example\", keys: [k], account: work}}\nroutes: {talk: [openai/gpt-4o, azure/gpt-4o]}\n";
    std::fs::write(&config, yaml).unwrap();
    let cool = |key: &str, config: Option<&Path>, force: bool| {
        let mut args =
            vec!["cool", key, "--for", "1h", "--store", text(&store), "--lang", "en", "--format", "json"];
        args.extend(config.iter().flat_map(|config| ["--config", text(config)]));
        args.extend(force.then_some("--force"));
        run_with(&args, &[], "")
    };
    let keys = |key: &str| json(&cool(key, Some(&config), false))["keys"].clone();
    assert_eq!(keys("model:gpt-4o"), json!(["model:azure/gpt-4o", "model:openai/gpt-4o"]));
    assert_eq!(keys("account:openai"), json!(["account:openai#1", "account:openai#2"]));
    assert_eq!(keys("account:work"), json!(["account:work"]));
    assert_eq!(keys("target:openai/gpt-4o").as_array().map(Vec::len), Some(2), "one for each API key");
    assert_eq!(cool("provider:openia", Some(&config), false).status, 1);

    std::fs::remove_file(&store).unwrap();
    let unknowable = run_with(&["cool", "provider:openai", "--for", "1h", "--store", text(&store)], &[], "");
    assert_eq!(unknowable.status, 1);
    assert!(
        unknowable.error.contains("cannot be checked") && unknowable.error.contains("--force"),
        "{}",
        unknowable.error
    );
    assert!(!store.exists(), "nothing was written");
    assert_eq!(cool("provider:openai", None, true).status, 0);
    assert!(store.exists());
}

#[test]
fn status_shows_an_open_breaker_since_when_until_when_and_why() {
    let scene = Scene::start(CHAIN);
    let clear = scene.on_file(&["status"]);
    assert_eq!(clear.status, 0);
    assert!(clear.text.contains("The store has no record of a target that is out of use."), "{}", clear.text);
    assert!(
        clear.text.contains(&format!("The gateway at {} reported", scene.gateway.address)),
        "{}",
        clear.text
    );
    open_the_breaker(&scene);
    // The gateway itself knows it at once; in the file it is as soon as it is written.
    let asked = scene.on_url(&["status"]);
    assert_eq!(asked.status, 1, "{}", asked.text);
    let of_file =
        until("the file shows it", || Some(scene.on_file(&["status"])).filter(|out| out.status == 1));
    for out in [&asked, &of_file] {
        let text = &out.text;
        assert!(text.contains("● breaker open  target:sim/fail-503#none  until "), "{text}");
        assert!(text.contains("failures in a row") || text.contains("requests failed"), "{text}");
        assert!(text.contains(" · since ") && text.contains("│ unavailable: sim/fail-503"), "{text}");
    }
    let rows = |text: &str| text.split("\n\n").next().unwrap().replace(|c: char| c.is_ascii_digit(), "");
    assert_eq!(rows(&asked.text), rows(&of_file.text), "the same from both");
    assert!(of_file.text.contains("Read from the store") && asked.text.contains("Read from the gateway at"));
    let japanese = run_with(&["status", "--url", &scene.gateway.url(), "--lang", "ja"], &[], "").text;
    assert!(japanese.contains("ブレーカーがオープン") && japanese.contains("から · "), "{japanese}");
    let of_target = scene.on_url(&["status", "target:sim/fail-503", "--format", "json"]);
    assert_eq!((of_target.status, &json(&of_target)["rows"][0]["state"]), (1, &json!("open")));
    assert_eq!(scene.on_url(&["status", "target:sim/ok"]).status, 0);
}

/// A limit and a cooldown under one key end with one order, and the second one has nothing left to do.
#[test]
fn resume_does_everything_the_first_time_and_nothing_the_second() {
    let limited = "routes: {talk: [\"sim/rate-429?retry_after=50\"]}\nserve: {threads: 1}\n";
    for on_file in [true, false] {
        let scene = Scene::start(limited);
        let run = |args: &[&str]| if on_file { scene.on_file(args) } else { scene.on_url(args) };
        assert_eq!(scene.gateway.chat("talk").status, 429);
        assert_eq!(run(&["cool", "provider:sim", "--for", "2h"]).status, 0);
        until("both are known", || {
            (json(&scene.on_file(&["status", "--format", "json"]))["rows"].as_array()?.len() == 2)
                .then_some(())
        });
        let first = run(&["resume", "provider:sim"]);
        assert_eq!((first.status, first.text.lines().count()), (0, 2), "{}", first.text);
        let second = run(&["resume", "provider:sim"]);
        assert_eq!(second.status, 1, "{}", second.text);
        assert!(second.text.contains("Nothing was held for provider:sim"), "{}", second.text);
        assert!(
            scene
                .on_file(&["status"])
                .text
                .contains("The store has no record of a target that is out of use.")
        );
    }
}

/// How many targets were asked for a request.
/// A provider whose account is in cooldown by itself is not said to be available.
#[test]
fn resume_names_what_still_stops_requests() {
    let scene = Scene::start(CHAIN);
    for key in ["provider:sim", "account:sim/ok"] {
        assert_eq!(scene.on_url(&["cool", key, "--for", "1h"]).status, 0);
    }
    until("the file shows both", || {
        let shown = scene.on_file(&["status"]).text;
        (shown.contains("provider:sim") && shown.contains("account:sim/ok")).then_some(())
    });
    let first = scene.on_file(&["resume", "provider:sim"]);
    assert_eq!(first.status, 0, "{}", first.text);
    assert!(first.text.contains("provider:sim was resumed."), "{}", first.text);
    assert!(!first.text.contains("available again"), "{}", first.text);
    assert!(first.text.contains("account:sim/ok still stops requests"), "{}", first.text);
    assert!(first.text.contains("koboshi resume account:sim/ok"), "the command is named: {}", first.text);
    let second = scene.on_file(&["resume", "provider:sim", "--format", "json"]);
    assert_eq!(json(&second)["still_held"], json!(["account:sim/ok"]), "{}", second.text);
    let last = scene.on_file(&["resume", "account:sim/ok"]);
    assert!(last.text.contains("account:sim/ok is available again"), "{}", last.text);
}

fn asked(scene: &Scene, model: &str) -> Option<String> {
    scene.gateway.chat(model).header("x-koboshi-attempts").map(str::to_owned)
}

/// A stated wait is what `status` shows and what `resume` ends, on the file as over the network, and a restart does not forget it.
#[test]
fn a_target_that_said_when_it_is_back_is_shown_and_can_be_resumed() {
    let config = "routes: {talk: [\"sim/fail-503?retry_after=2m\"]}\nserve: {threads: 1}\n";
    for key in ["provider:sim", "target:sim/fail-503?retry_after=2m"] {
        for on_file in [true, false] {
            let mut scene = Scene::start(config);
            assert_eq!(asked(&scene, "talk").as_deref(), Some("1"));
            until("the file shows it", || (scene.on_file(&["status"]).status == 1).then_some(()));
            signal(&scene.gateway.child, "-TERM");
            scene.gateway.ended();
            let (file, store) =
                (scene.folder.path().join("koboshi.yaml"), scene.folder.path().join("store.db"));
            scene.gateway = Gateway::start(&["--config", text(&file), "--store", text(&store)]);
            let again = scene.gateway.chat("talk");
            assert_eq!(
                (again.status, again.header("x-koboshi-attempts")),
                (503, Some("0")),
                "after a restart"
            );
            assert!(String::from_utf8_lossy(&again.body).contains("\"unavailable\""), "with the same fault");
            for shown in [scene.on_file(&["status"]), scene.on_url(&["status"])] {
                assert_eq!(shown.status, 1, "{}", shown.text);
                let line = "● in cooldown  target:sim/fail-503?retry_after=2m#none  until ";
                assert!(shown.text.contains(line), "{}", shown.text);
                assert!(shown.text.contains("provider overloaded or unavailable"), "{}", shown.text);
            }
            let run = |args: &[&str]| if on_file { scene.on_file(args) } else { scene.on_url(args) };
            let first = run(&["resume", key]);
            assert_eq!(first.status, 0, "{}", first.text);
            assert_eq!(run(&["resume", key]).status, 1);
            until("it is asked again", || (asked(&scene, "talk").as_deref() == Some("1")).then_some(()));
        }
    }
}

/// A model that its provider does not have is shown as such. Names that no route has are kept out of the store, and the gateway itself shows them.
#[test]
fn a_model_that_is_not_there_is_shown_and_can_be_resumed() {
    let upstream = Upstream::start();
    let provider = format!("{{kind: openai, base_url: \"{}\"}}", upstream.url());
    let config =
        format!("providers: {{one: {provider}}}\nroutes: {{talk: [one/nope]}}\nserve: {{threads: 1}}\n");
    let scene = Scene::start(&config);
    for _ in 0..2 {
        let answer = scene.gateway.chat("talk");
        assert_eq!((answer.status, answer.header("retry-after")), (404, None));
        assert_eq!(scene.gateway.chat("one/made-up").status, 404);
    }
    let on_file =
        until("the file shows it", || Some(scene.on_file(&["status"])).filter(|out| out.status == 1));
    assert!(on_file.text.contains("● no such model  target:one/nope#none  until "), "{}", on_file.text);
    assert!(!on_file.text.contains("made-up"), "{}", on_file.text);
    let on_url = scene.on_url(&["status"]);
    assert!(
        on_url.text.contains("target:one/nope") && on_url.text.contains("target:one/made-up"),
        "{}",
        on_url.text
    );
    let of_one = scene.on_url(&["status", "target:one/nope"]);
    assert_eq!(of_one.status, 1, "{}", of_one.text);
    assert_eq!(scene.on_file(&["resume", "target:one/nope"]).status, 0);
    until("it is asked again", || (asked(&scene, "talk").as_deref() == Some("1")).then_some(()));
    let all = scene.on_url(&["resume", "--all"]);
    assert!(all.text.contains("target:one/nope") && all.text.contains("target:one/made-up"), "{}", all.text);
    assert_eq!(scene.on_url(&["status"]).status, 0);
}

/// A breaker that is open, or that an operator forced open, ends with `resume`, on the file as over the network.
#[test]
fn resume_closes_breakers() {
    for (orders, key) in [(false, "target:sim/fail-503"), (true, "target:sim/fail-503"), (true, "--all")] {
        for on_file in [true, false] {
            let scene = Scene::start(CHAIN);
            if orders {
                let mut client = Client::to(scene.gateway.address);
                let order = json!({"target": "sim/fail-503", "action": "open"});
                client.send("POST", "/koboshi/breakers", &[], order.to_string().as_bytes());
                assert_eq!(client.read().status, 200);
            } else {
                open_the_breaker(&scene);
            }
            until("the file shows it", || (scene.on_file(&["status"]).status == 1).then_some(()));
            let shown = scene.on_file(&["status"]).text;
            let command = "koboshi resume 'target:sim/fail-503#none'";
            assert_eq!(shown.contains(command), orders, "the way out of what an operator did: {shown}");
            let run = |args: &[&str]| if on_file { scene.on_file(args) } else { scene.on_url(args) };
            let first = run(&["resume", key]);
            assert_eq!(first.status, 0, "{}", first.text);
            assert!(first.text.contains("target:sim/fail-503#none is available again"), "{}", first.text);
            let second = run(&["resume", key]);
            assert_eq!(second.status, 1, "{}", second.text);
            until("it is asked again", || (asked(&scene, "talk").as_deref() == Some("2")).then_some(()));
        }
    }
}

/// What a stopped gateway saw and what a replaced key did are over.
#[test]
fn status_shows_only_what_is_in_force() {
    let mut scene = Scene::start(CHAIN);
    open_the_breaker(&scene);
    until("the file shows it", || Some(scene.on_file(&["status"])).filter(|out| out.status == 1));
    signal(&scene.gateway.child, "-TERM");
    scene.gateway.ended();
    let stopped = scene.on_file(&["status"]);
    assert!(!stopped.text.contains("breaker"), "{}", stopped.text);
    assert_eq!(stopped.status, 0, "{}", stopped.text);

    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
    let start = |key: &str| {
        let provider = format!("{{kind: openai, base_url: \"{}\", keys: [{key}]}}", upstream.url());
        let config = format!("providers: {{one: {provider}}}\nroutes: {{talk: [one/auth-401]}}\n");
        std::fs::write(&file, config).unwrap();
        Gateway::start(&["--config", text(&file), "--store", text(&store)])
    };
    let status = || run_with(&["status", "--store", text(&store), "--lang", "en"], &[], "");
    let mut gateway = start("sk-first");
    assert_eq!(gateway.chat("talk").status, 502);
    let parked = until("it is parked", || Some(status()).filter(|out| out.status == 1));
    assert!(parked.text.contains("parked  key:one/"), "{}", parked.text);
    signal(&gateway.child, "-TERM");
    gateway.ended();
    let gateway = start("sk-second");
    let url = gateway.url();
    for out in [status(), run_with(&["status", "--url", &url, "--lang", "en"], &[], "")] {
        assert!(!out.text.contains("key:one/"), "{}", out.text);
        assert_eq!(out.status, 0, "{}", out.text);
    }
}

#[test]
fn the_journal_says_in_order_what_happened_rescues_included() {
    let scene = Scene::start(CHAIN);
    open_the_breaker(&scene);
    let entries = |on: fn(&Scene, &[&str]) -> Out| -> Vec<Value> {
        let out = on(&scene, &["journal", "--format", "json"]);
        assert_eq!(out.status, 0, "{}", out.error);
        out.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let asked = entries(Scene::on_url);
    let opened = asked.iter().position(|entry| entry["kind"] == "open").unwrap();
    let before: Vec<_> = asked[..opened].iter().filter(|entry| entry["what"] == "fault").collect();
    assert_eq!(before.len(), 5, "the fault that opened it stands before it: {asked:#?}");
    assert!(!asked[opened..].iter().any(|entry| entry["what"] == "fault"), "{asked:#?}");
    let rescued = asked.iter().find(|entry| entry["kind"] == "rescued").unwrap();
    assert_eq!((&rescued["what"], &rescued["key"]), (&json!("remedy"), &json!("target:sim/ok#none")));
    let text = rescued["text"].as_str().unwrap();
    assert!(
        text.starts_with("sim/ok answered as the second target after ") && text.contains(" ms and "),
        "{text}"
    );
    assert_eq!((&rescued["data"]["place"], &rescued["data"]["first"]), (&json!(2), &json!("sim/fail-503")));
    let passed = asked.iter().rfind(|entry| entry["kind"] == "rescued").unwrap();
    assert!(passed["text"].as_str().unwrap().contains("sim/fail-503 was not asked"), "{passed}");
    until("the file has the same", || (entries(Scene::on_file) == asked).then_some(()));
    let of_target = |on: fn(&Scene, &[&str]) -> Out| {
        on(&scene, &["journal", "--target", "target:sim/fail-503", "--what", "fault", "--format", "json"])
            .text
            .lines()
            .count()
    };
    assert_eq!((of_target(Scene::on_file), of_target(Scene::on_url)), (5, 5));
    let pruned = scene.on_url(&["journal", "--prune", "--format", "json"]);
    assert_eq!((pruned.status, &json(&pruned)["forgotten"]), (0, &json!(0)));
}

#[test]
fn a_retry_that_succeeds_is_in_the_journal_too() {
    let scene = Scene::start("routes: {talk: ['sim/fail-503?times=1']}\nserve: {threads: 1}\n");
    assert_eq!(scene.gateway.chat("talk").status, 200);
    let out = scene.on_url(&["journal", "--kind", "rescued"]);
    assert!(out.text.contains("answered after ") && out.text.contains(" ms and 2 attempts"), "{}", out.text);
}

#[test]
fn a_gateway_that_keeps_everything_in_memory_is_asked_over_the_network_with_its_admin_key() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let yaml = format!("{CHAIN}store: memory\nadmin: {{sha256: {HASH_OF_TEST}}}\n");
    std::fs::write(&config, yaml).unwrap();
    let gateway = Gateway::start(&["--config", text(&config)]);
    let url = gateway.url();
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let args: Vec<&str> = args.iter().chain(&["--lang", "en"]).copied().collect();
        run_with(&args, environment, "")
    };
    let refused = run(&["status", "--config", text(&config)], &[]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("store: memory") && refused.error.contains("--url"), "{}", refused.error);

    let without = run(&["status", "--url", &url], &[]);
    assert_eq!(without.status, 2);
    assert!(
        without.error.contains("KOBOSHI_ADMIN_KEY") && without.error.contains("--admin-key-file"),
        "{}",
        without.error
    );
    let wrong = run(&["status", "--url", &url], &[("KOBOSHI_ADMIN_KEY", "hunter2")]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.error.contains("does not accept") && !wrong.error.contains("hunter2"), "{}", wrong.error);

    let key = folder.path().join("key");
    std::fs::write(&key, "test\n").unwrap();
    let by_file = run(&["status", "--url", &format!("{url}/v1/"), "--admin-key-file", text(&key)], &[]);
    assert_eq!((by_file.status, by_file.error.as_str()), (0, ""));
    assert!(by_file.text.contains("Read from the gateway at"), "{}", by_file.text);
    let environment = [("KOBOSHI_URL", url.as_str()), ("KOBOSHI_ADMIN_KEY", "test")];
    let cooled = run(&["cool", "model:ok", "--for", "1h", "--why", "incident 4711"], &environment);
    assert_eq!(cooled.status, 0, "{}", cooled.error);
    assert_ne!(gateway.chat("steady").status, 200);
    let status = run(&["status"], &environment);
    assert!(status.status == 1 && status.text.contains("incident 4711"), "{}", status.text);
    let journal = run(&["journal", "--what", "operator"], &environment);
    assert!(journal.text.contains("incident 4711"), "{}", journal.text);
    assert_eq!(run(&["resume", "--all"], &environment).status, 0);
    assert_eq!(gateway.chat("steady").status, 200);
}

#[test]
fn a_gateway_and_a_store_exclude_each_other_and_what_is_no_gateway_is_said_to_be_none() {
    let both = run_with(&["status", "--url", "http://127.0.0.1:1", "--store", "x.db"], &[], "");
    assert!(both.status == 2 && both.error.contains("--store"), "{}", both.error);
    let variables = [("KOBOSHI_URL", "http://127.0.0.1:1"), ("KOBOSHI_STORE", "/none/x.db")];
    let both = run_with(&["status"], &variables, "");
    assert!(both.status == 2 && both.error.contains("KOBOSHI_STORE"), "{}", both.error);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    assert_eq!(run_with(&["status", "--store", text(&store)], &variables, "").status, 0, "a flag beats both");

    let away = run_with(&["status", "--url", "http://127.0.0.1:1"], &[], "");
    assert!(
        away.status == 2 && away.error.contains("cannot reach the gateway at http://127.0.0.1:1"),
        "{}",
        away.error
    );
    let no_address = run_with(&["journal", "--url", "ftp://nowhere"], &[], "");
    assert!(
        no_address.status == 2 && no_address.error.contains("http://127.0.0.1:4141"),
        "{}",
        no_address.error
    );
    let missing =
        run_with(&["status", "--url", "http://127.0.0.1:1", "--admin-key-file", "/none/key"], &[], "");
    assert!(missing.status == 2 && missing.error.contains("/none/key"), "{}", missing.error);

    // Something that speaks HTTP and is no gateway.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ =
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
    });
    let other = run_with(&["status", "--url", &url], &[], "");
    assert!(other.status == 2 && other.error.contains("is not a Koboshi gateway"), "{}", other.error);
}

#[test]
fn a_gateway_behind_tls_is_asked_where_its_authority_is_trusted() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    // A server behind TLS that is no gateway: that it says so was read through the TLS connection.
    let server = Upstream::start_secure(&authority, Protocol::Http1);
    let file = authority.write_to(folder.path()).display().to_string();
    let asked = run_with(&["status", "--url", &server.url()], &[("SSL_CERT_FILE", &file)], "");
    assert!(asked.status == 2 && asked.error.contains("is not a Koboshi gateway"), "{}", asked.error);
    let stranger = Authority::new().write_to(folder.path()).display().to_string();
    let refused = run_with(&["status", "--url", &server.url()], &[("SSL_CERT_FILE", &stranger)], "");
    assert!(refused.status == 2 && refused.error.contains("cannot reach the gateway"), "{}", refused.error);
}

#[test]
fn what_a_gateway_knows_is_found_in_redis_too() {
    let server = RedisServer::start();
    let url = server.url();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, CHAIN).unwrap();
    let gateway = Gateway::start(&["--config", text(&config), "--store", &url]);
    let run = |args: &[&str]| {
        let args: Vec<&str> = args.iter().chain(&["--store", &url, "--lang", "en"]).copied().collect();
        run_with(&args, &[], "")
    };
    assert_eq!(run(&["cool", "model:okk", "--for", "1h"]).status, 1);
    assert_eq!(run(&["cool", "model:ok", "--for", "1h"]).status, 0);
    until("it is in cooldown", || (gateway.chat("steady").status != 200).then_some(()));
    let status = run(&["status", "target:sim/ok"]);
    assert!(status.status == 1 && status.text.contains(&gateway.address.to_string()), "{}", status.text);
}

#[test]
fn start_drain_and_stop_are_logged() {
    let mut scene =
        Scene::start("routes: {slow: [\"sim/stall?after=3\"]}\nserve: {threads: 1, drain: 30s}\n");
    let gateway = &mut scene.gateway;
    gateway.says("\"message\":\"started\"");
    let started = gateway.said();
    let started = started.lines().find(|line| line.contains("\"started\"")).unwrap();
    let line: Value = serde_json::from_str(started).unwrap();
    assert_eq!(line["address"], gateway.address.to_string());
    assert!(line["config"].as_str().unwrap().ends_with("koboshi.yaml"), "{line}");
    assert!(line["store"].as_str().unwrap().ends_with("store.db") && line["version"].is_string(), "{line}");

    let client = gateway.open_stream();
    signal(&gateway.child, "-TERM");
    gateway.says("stopping: draining 1 request");
    drop(client);
    assert_eq!(gateway.ended(), Some(0));
    gateway.says("stopped after ");
}

#[test]
fn a_second_signal_does_not_wait_for_streams() {
    let mut scene =
        Scene::start("routes: {slow: [\"sim/stall?after=3\"]}\nserve: {threads: 1, drain: 10m}\n");
    let gateway = &mut scene.gateway;
    let client = gateway.open_stream();
    signal(&gateway.child, "-TERM");
    gateway.says("stopping: draining 1 request");
    signal(&gateway.child, "-TERM");
    assert_eq!(gateway.ended(), Some(130));
    drop(client);
}

#[test]
fn sighup_without_a_config_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let gateway = Gateway::start(&["--store", text(&store)]);
    gateway.says("\"message\":\"started\"");
    signal(&gateway.child, "-HUP");
    gateway.says("there is no config file to read again");
    let scene = Scene::start(CHAIN);
    scene.gateway.says("\"message\":\"started\"");
    signal(&scene.gateway.child, "-HUP");
    scene.gateway.says("nothing has changed");
}

#[test]
fn what_keeps_it_from_starting_is_said_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (place, store) = (taken.local_addr().unwrap().to_string(), folder.path().join("store.db"));
    let out = run_with(&["serve", "--listen", &place, "--store", text(&store)], &[], "");
    assert!(
        out.status == 2 && out.error.contains("cannot listen") && out.error.contains("--listen"),
        "{}",
        out.error
    );
    for args in [["serve", "--listen", "127.0.0.1:0"].as_slice(), &["status"], &["journal"]] {
        let args: Vec<&str> = args.iter().chain(&["--store", text(folder.path())]).copied().collect();
        let out = run_with(&args, &[], "");
        assert!(out.status == 2 && out.error.contains("it is a folder"), "{args:?}: {}", out.error);
    }
}

#[test]
fn the_command_to_try_it_has_a_place_for_the_key_where_keys_are_needed() {
    let with = Scene::start(&format!("{CHAIN}keys: {{me: {{sha256: {HASH_OF_TEST}}}}}\n"));
    with.gateway.says("-H 'authorization: Bearer YOUR_KEY'");
    let without = Scene::start(CHAIN);
    without.gateway.says("curl -s");
    assert!(!without.gateway.said().contains("authorization"), "{}", without.gateway.said());
}

/// The usual soft limit of open files is far below what a gateway needs; the hard one is what the administrator allows.
#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db").display().to_string();
    let command = format!(
        "ulimit -S -n 64; exec {} serve --listen 127.0.0.1:0 --store {store}",
        env!("CARGO_BIN_EXE_koboshi")
    );
    let mut shell = std::process::Command::new("sh");
    let child = Running::start(shell.args(["-c", &command]).stderr(std::process::Stdio::null()));
    let limits = koboshi_testkit::until("the limit is raised", || {
        let text = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).ok()?;
        let line = text.lines().find(|line| line.starts_with("Max open files"))?.to_owned();
        let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
        (numbers.len() == 2 && numbers[0] == numbers[1]).then_some(line)
    });
    assert!(!limits.contains(" 64 "), "{limits}");
}

/// An agent of the config is a key, whether or not it ever failed, and the refusal of another one speaks of agents.
#[test]
fn agents_of_the_config_can_be_cooled_and_others_are_refused_as_agents() {
    let folder = tempfile::tempdir().unwrap();
    let (config, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
    std::fs::write(&config, "agents: {reviewer: {command: [\"true\"], projects: [website]}}\n").unwrap();
    let run = |args: &[&str]| {
        let more = ["--config", text(&config), "--store", text(&store), "--lang", "en"];
        run_with(&args.iter().chain(&more).copied().collect::<Vec<_>>(), &[], "")
    };
    let cooled = run(&["cool", "agent:reviewer/website", "--for", "2h"]);
    assert_eq!(cooled.status, 0, "{}", cooled.error);
    assert_eq!(run(&["status", "agent:reviewer/website"]).status, 1);
    assert_eq!(run(&["resume", "agent:reviewer/website"]).status, 0);
    let refused = run(&["cool", "agent:reviewer/websit", "--for", "2h"]);
    assert_eq!(refused.status, 1);
    assert!(refused.error.contains("No agent has the key agent:reviewer/websit"), "{}", refused.error);
    assert!(
        refused.error.contains("agent:reviewer/website") && !refused.error.contains("No target"),
        "{}",
        refused.error
    );
}

/// An API key whose variable is not set here is not known here: it makes no target beside the real one.
#[test]
fn a_key_whose_variable_is_not_set_makes_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let (config, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
    let yaml = "providers: {openai: {kind: openai, base_url: \"http://127.0.0.1:9/v1\", keys: [\"${KEY_OF_TEST}\"]}}\nroutes: {talk: [openai/gpt-4o]}\nserve: {threads: 1}\n";
    std::fs::write(&config, yaml).unwrap();
    let args = ["cool", "target:openai/gpt-4o", "--for", "1h", "--format", "json"];
    let more = ["--config", text(&config), "--store", text(&store), "--lang", "en"];
    let args: Vec<&str> = args.iter().chain(&more).copied().collect();
    let unknown = run_with(&args, &[], "");
    assert_eq!((unknown.status, &json(&unknown)["error"]), (1, &json!("unknown_key")));
    let provider: Vec<&str> =
        ["cool", "provider:openai", "--for", "1s"].iter().chain(&more).copied().collect();
    assert_eq!(run_with(&provider, &[], "").status, 0, "the provider is known all the same");
    let set = [("KEY_OF_TEST", "sk-test")];
    let with_key = json(&run_with(&args, &set, ""))["keys"].clone();
    assert_eq!(with_key.as_array().map(Vec::len), Some(1), "{with_key}");
    // What was learned of the real one is known where its variable is not.
    let without = json(&run_with(&args, &[], ""))["keys"].clone();
    assert_eq!(without, with_key);
}

/// Only the gateway knows why it refuses: with keys for clients and none for operators, no admin key is right.
#[test]
fn a_gateway_without_an_admin_key_is_quoted() {
    let yaml = format!("{CHAIN}store: memory\nkeys: {{me: {{sha256: {HASH_OF_TEST}}}}}\n");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, yaml).unwrap();
    let gateway = Gateway::start(&["--config", text(&config)]);
    for environment in [&[][..], &[("KOBOSHI_ADMIN_KEY", "test")]] {
        for (lang, reason) in
            [("en", "needs one too, and none is set"), ("ja", "管理用キーが必要ですが、設定されていません")]
        {
            let refused = run_with(&["status", "--url", &gateway.url(), "--lang", lang], environment, "");
            assert_eq!(refused.status, 2);
            assert!(refused.error.contains(reason), "{}", refused.error);
            assert!(
                !refused.error.contains("another one") && !refused.error.contains("own machine"),
                "{}",
                refused.error
            );
        }
    }
}

/// That targets are available promises an answer: after the gateway stopped no process gives one.
#[test]
fn status_does_not_promise_answers_after_the_gateway_stopped() {
    let mut scene = Scene::start(CHAIN);
    until("it has reported", || scene.on_file(&["status"]).text.contains("reported").then_some(()));
    assert!(
        scene.on_file(&["status"]).text.contains("The store has no record of a target that is out of use.")
    );
    signal(&scene.gateway.child, "-TERM");
    scene.gateway.ended();
    let stopped = scene.on_file(&["status"]);
    assert_eq!(stopped.status, 0);
    let first = stopped.text.lines().next().unwrap();
    assert!(
        first.contains("No gateway is running") && !stopped.text.contains("are available"),
        "{}",
        stopped.text
    );
}

/// An answer with this body and nothing else.
fn plain_answer(status: u16, body: &'static str) -> Play {
    let headers = vec![("content-type", "application/json".to_owned())];
    Play {
        head: Head::Answer { after: Duration::ZERO, status, headers },
        beats: Beats::from(vec![Beat { after: Duration::ZERO, bytes: body.into() }]),
        end: End::Clean,
    }
}

/// A bare 402 says nothing of a balance, and a region is no key.
#[test]
fn status_claims_no_more_than_the_provider_said() {
    let upstream = Upstream::start();
    upstream.set("bare-402", |_| plain_answer(402, "{}"));
    upstream.set("bare-403", |_| plain_answer(403, "{}"));
    upstream.set("region", |_| plain_answer(403, "{\"error\":{\"code\":\"unsupported_country_region_territory\",\"message\":\"Country, region, or territory not supported\",\"type\":\"request_forbidden\"}}"));
    for (model, said, not) in [
        ("bare-402", "answered 402 and did not say why", "balance"),
        ("bare-403", "answered 403 and did not say why", "permission"),
        ("region", "not available in this country or region", "API key, sign-in"),
    ] {
        let scene = Scene::start(&format!(
            "providers: {{up: {{kind: openai, base_url: \"{}/v1\", keys: [k]}}}}\nroutes: {{talk: [up/{model}]}}\nserve: {{threads: 1}}\n",
            upstream.url()
        ));
        assert_ne!(scene.gateway.chat("talk").status, 200);
        let status =
            until("it is recorded", || Some(scene.on_file(&["status"])).filter(|out| out.status == 1));
        assert!(status.text.contains(said) && !status.text.contains(not), "{model}: {}", status.text);
        let journal = scene.on_file(&["journal"]).text;
        assert!(!journal.contains("no credit left"), "{journal}");
    }
}
