//! A fleet of three machines with a Redis on a fourth, each in a network of its own: what they do when the network between them fails.
//!
//! The test makes the networks itself, as `unshare` and `ip` can; where that is not allowed it says so and tests nothing. The clock of one machine
//! is 90 s ahead.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Running, koboshi};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{Answer, Client, Line, Upstream, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Set where the test runs in a network of its own.
const INSIDE: &str = "KOBOSHI_TEST_HOSTS";
/// The test's own end of the network.
const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
const REDIS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 10);
const PORT: u16 = 4141;
/// What the quotas of the first two providers are about.
const ONE: &str = "model:one/quota?retry_after=2h";
const TWO: &str = "model:two/quota?retry_after=2h";
const KEY: &str = "Bearer kbs-secret";
const ADMIN: &str = "Bearer op-secret";
const KEY_HASH: &str = "77191cd6e5a0e3a1a2cedc39f4fb9aff35eaa1e783c9255a14ff51d59c6ca216";
const ADMIN_HASH: &str = "1404ccb7e370497229e0478ebfe329b1067563cb646826f6ef685a04d02431de";

/// Moves the clock of a process by the seconds in CLOCK_AHEAD. Nothing but the wall clock is changed.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    const char *ahead = getenv("CLOCK_AHEAD");
    if (id == CLOCK_REALTIME && ahead) at->tv_sec += atol(ahead);
    return result;
}
"#;

fn system(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_fleet_goes_on_while_its_network_fails_and_agrees_when_it_is_back() {
    if std::env::var_os(INSIDE).is_some() {
        return in_networks_of_ones_own();
    }
    let apart = ["--user", "--map-root-user", "--net", "--mount"];
    let try_out = "mount -t tmpfs none /run && mkdir /run/netns && ip netns add a";
    let tried = Command::new("unshare").args(apart).args(["sh", "-c", try_out]).output();
    if !tried.is_ok_and(|done| done.status.success()) {
        eprintln!("this system allows no networks of one's own");
        return;
    }
    let script = "mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(apart)
        .args(["sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .env(INSIDE, "1");
    let done = command.arg("--nocapture").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// A machine: a network, joined to the others by one cable.
struct Machine {
    name: &'static str,
    address: Ipv4Addr,
}

impl Machine {
    fn new(name: &'static str, address: Ipv4Addr) -> Self {
        system(&format!("ip netns add {name}"));
        system(&format!("ip link add {name}0 type veth peer name eth0 netns {name}"));
        system(&format!("ip link set {name}0 master switch"));
        system(&format!("ip link set {name}0 up"));
        for words in ["link set lo up", &format!("addr add {address}/24 dev eth0"), "link set eth0 up"] {
            system(&format!("ip -n {name} {words}"));
        }
        Self { name, address }
    }

    /// What this machine sends to that one is lost from now on.
    fn lose(&self, to: &Self) {
        system(&format!("ip -n {} route add blackhole {}/32", self.name, to.address));
    }

    /// It arrives again.
    fn heal(&self, to: &Self) {
        system(&format!("ip -n {} route del blackhole {}/32", self.name, to.address));
    }

    /// The way to this machine carries little, so that everything on it is late.
    fn delay(&self) {
        system(&format!("tc qdisc add dev {}0 root tbf rate 64kbit burst 4kb latency 5s", self.name));
    }

    fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", self.name]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

/// A gateway on a machine of its own.
struct Host {
    machine: Machine,
    _gateway: Running,
}

impl Host {
    fn start(machine: Machine, config: &Path, clock: Option<&Path>) -> Self {
        let listen = format!("{}:{PORT}", machine.address);
        let store = format!("redis://{REDIS}:6379/0");
        let config = config.display().to_string();
        let mut command = koboshi(&["serve", "--listen", &listen, "--config", &config, "--store", &store]);
        if let Some(clock) = clock {
            command.env("LD_PRELOAD", clock).env("CLOCK_AHEAD", "90");
        }
        let mut gateway = Running::start(machine.command(&command).stderr(Stdio::piped()));
        let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("http://"), "{first}");
        std::thread::spawn(move || lines.for_each(drop));
        Self { machine, _gateway: gateway }
    }

    fn send(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        let mut client = Client::to(SocketAddr::from((self.machine.address, PORT)));
        client.send(method, path, &[("authorization", key)], body.as_bytes());
        client.read()
    }

    /// Asks for a model, and returns the target that answered. No client ever gets an error.
    fn ask(&self, model: &str) -> String {
        let mut body = chat(false);
        body["model"] = model.into();
        let answer = self.send("POST", "/v1/chat/completions", KEY, &body.to_string());
        assert_eq!(answer.status, 200, "{}: {}", self.machine.name, answer.text());
        answer.header("x-koboshi-target").unwrap_or_default().to_owned()
    }

    fn operator(&self, method: &str, path: &str, order: &Value) -> Answer {
        let body = if order.is_null() { String::new() } else { order.to_string() };
        self.send(method, path, ADMIN, &body)
    }

    fn knows(&self, text: &str) -> bool {
        self.operator("GET", "/koboshi/status", &Value::Null).text().contains(text)
    }

    fn is_connected(&self) -> bool {
        let ready = self.operator("GET", "/ready", &Value::Null).json();
        ready["store"]["connected"] == true
    }
}

/// The library that moves the clock.
fn clock(folder: &TempDir) -> PathBuf {
    let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
    std::fs::write(&source, CLOCK).unwrap();
    let done =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(done.unwrap().success(), "a C compiler is needed");
    library
}

fn config(folder: &TempDir, providers: &[(&str, &str, u16)]) -> PathBuf {
    let provider = |port: &u16| json!({"kind": "openai", "base_url": format!("http://{SWITCH}:{port}/v1"), "keys": ["sk-own"]});
    let all: serde_json::Map<String, Value> =
        providers.iter().map(|(name, _, port)| ((*name).to_owned(), provider(port))).collect();
    let routes: serde_json::Map<String, Value> = providers
        .iter()
        .map(|(name, model, _)| ((*name).to_owned(), json!([format!("{name}/{model}"), "sim/ok"])))
        .collect();
    let text = json!({
        "serve": {"threads": 1},
        "keys": {"laptop": {"sha256": KEY_HASH}},
        "admin": {"sha256": ADMIN_HASH},
        "providers": all,
        "routes": routes,
        "breaker": {"preset": "consecutive", "consecutive_failures": 2, "open": {"initial": "10m", "max": "10m"}},
    });
    let path = folder.path().join("koboshi.yaml");
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

fn in_networks_of_ones_own() {
    system("ip link add switch type bridge");
    system(&format!("ip addr add {SWITCH}/24 dev switch"));
    system("ip link set switch up");
    let folder = tempfile::tempdir().unwrap();
    let redis = Machine::new("redis", REDIS);
    let mut server = Command::new("redis-server");
    server.args(["--bind", &REDIS.to_string(), "--protected-mode", "no", "--save", "", "--dir"]);
    let _server = Running::start(redis.command(server.arg(folder.path())).stdout(Stdio::null()));
    let upstreams = [Upstream::start(), Upstream::start(), Upstream::start()];
    let lines: Vec<Line> = upstreams.iter().map(|one| Line::from(SWITCH, one.port())).collect();
    let config = config(
        &folder,
        &[
            ("one", "quota?retry_after=2h", lines[0].port()),
            ("two", "quota?retry_after=2h", lines[1].port()),
            ("three", "fail-503", lines[2].port()),
        ],
    );
    let clock = clock(&folder);
    let machine = |name, last| Machine::new(name, Ipv4Addr::new(10, 77, 0, last));
    let hosts = [
        Host::start(machine("a", 1), &config, None),
        Host::start(machine("b", 2), &config, None),
        Host::start(machine("c", 3), &config, Some(&clock)),
    ];
    for host in &hosts {
        until("every gateway has its store", || host.is_connected().then_some(()));
    }
    let calls = |number: usize| upstreams[number].all_calls();
    let [a, b, c] = &hosts;

    // Cut off: the machine goes on with what it knows, and the others share what they learn.
    a.machine.lose(&redis);
    redis.lose(&a.machine);
    until("it notices", || (!a.is_connected()).then_some(()));
    assert_eq!(b.ask("one"), "sim/ok");
    until("the other knows the quota", || c.knows(ONE).then_some(()));
    let before = calls(0);
    assert_eq!(c.ask("one"), "sim/ok");
    assert_eq!(calls(0), before, "a quota holds on a machine whose clock is ahead");
    assert_eq!(a.ask("two"), "sim/ok");
    let before = calls(1);
    assert_eq!(a.ask("two"), "sim/ok");
    assert_eq!(calls(1), before, "what it learned itself holds without a store");
    // Three fails everywhere; each has its own breaker.
    for host in &hosts {
        for _ in 0..4 {
            assert_eq!(host.ask("three"), "sim/ok");
        }
    }

    // Healed: they agree, and nobody asks again because of it.
    let before = [calls(0), calls(1), calls(2)];
    a.machine.heal(&redis);
    redis.heal(&a.machine);
    until("it has its store again", || a.is_connected().then_some(()));
    until("all know both quotas", || {
        let know = |host: &Host| host.knows(ONE) && host.knows(TWO);
        hosts.iter().all(know).then_some(())
    });
    for host in &hosts {
        for model in ["one", "two", "three"] {
            assert_eq!(host.ask(model), "sim/ok");
        }
    }
    assert_eq!([calls(0), calls(1), calls(2)], before, "no probe after the healing");

    // What one machine sends is lost, what it gets is not.
    b.machine.lose(&redis);
    until("it notices", || (!b.is_connected()).then_some(()));
    let order = json!({"key": TWO, "action": "clear"});
    assert_eq!(c.operator("POST", "/koboshi/cooldowns", &order).status, 200);
    until("the others know", || (!a.knows(TWO)).then_some(()));
    assert_eq!(b.ask("two"), "sim/ok");
    b.machine.heal(&redis);
    until("it knows too", || (!b.knows(TWO)).then_some(()));

    // Everything is late for one machine: its clients notice nothing, and it learns all the same.
    c.machine.delay();
    let order =
        json!({"key": "account:three", "action": "cool", "until": "2099-01-01T00:00:00Z", "force": true});
    assert_eq!(a.operator("POST", "/koboshi/cooldowns", &order).status, 200);
    until("it learns it", || {
        assert_eq!(c.ask("three"), "sim/ok");
        c.knows("account:three").then_some(())
    });
}
