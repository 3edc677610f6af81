//! Kinds of agent programs that users describe themselves, through the running binary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use common::supervised::{Home, QUICK};
use common::{Running, koboshi, run, scratch};
use koboshi_testkit::until;
use serde_json::json;

const KINDS: &str = "\
mine:
  programs: [my-agent]
  vendor: acme
  env: {MY_AGENT_RETRIES: \"0\"}
  exits: {zero_lies: true, codes: {3: quota_exceeded}}
  session: {start: [--id, \"{session}\"], resume: [--again, \"{session}\"], prompt: [--task], say: Go on.}
";

#[test]
fn a_kind_of_the_users_file_is_started_read_and_resumed_as_it_says() {
    let mut home = Home::new(&format!("kinds: [kinds.yaml]\n{QUICK}"));
    fs::write(home.path("kinds.yaml"), KINDS).unwrap();
    let program = home.path("my-agent");
    let notes = home.path("calls");
    let script = format!(
        "#!/bin/sh\necho \"$MY_AGENT_RETRIES $*\" >> {}\ncase \"$*\" in *--again*) sleep 3600;; esac\n\
         echo 'API Error: 529 Overloaded. This is a server-side issue'; exit 0\n",
        notes.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = json!([program.display().to_string(), "--task", "write"]);
    home.agents["a"] = json!({"command": command, "gateway": false, "survives": false});
    // Overloaded providers are waited for.
    let config = fs::read_to_string(home.config()).unwrap();
    assert!(config.contains("kinds"));
    let supervisor = home.supervise();
    home.says("a/default: ended with exit code 0 (overloaded)");
    home.order("resume", "agent:a/default");
    let calls = until("it goes on", || {
        let text = fs::read_to_string(&notes).ok()?;
        text.contains("--again").then_some(text)
    });
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("0 --task write --id "), "{calls:?}");
    assert!(calls[1].starts_with("0 --task Go on. --again "), "{calls:?}");
    assert_eq!(calls[0].rsplit(' ').next(), calls[1].rsplit(' ').next(), "the same session");
    supervisor.end();
}

#[test]
fn an_exit_code_with_a_meaning_rests_the_account_of_the_kind() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    fs::write(home.path().join("kinds.yaml"), KINDS).unwrap();
    fs::write(home.path().join("koboshi.yaml"), "kinds: [kinds.yaml]\n").unwrap();
    let program = home.path().join("my-agent");
    fs::write(&program, "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (config, store, program) = (at("koboshi.yaml"), at("koboshi.db"), at("my-agent"));
    let args = [
        "run", "--config", &config, "--store", &store, "--gateway", "off", "--patience", "1s", "--", &program,
    ];
    let output = koboshi(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("account:acme"), "{said}");
}

#[test]
fn a_file_of_kinds_that_cannot_be_used_is_refused_with_its_place() {
    let broken = scratch("broken-kinds.yaml", "mine:\n  program: [x]\n");
    let config = scratch("with-kinds.yaml", &format!("kinds: [{broken}]\n"));
    let out = run(&["check", &config]);
    let all = out.text + &out.error;
    assert!(out.status == 1 && all.contains("broken-kinds.yaml") && all.contains("program"), "{all}");
    let config = scratch("no-kind.yaml", "agents:\n  a:\n    command: [x]\n    kind: clause\n");
    let out = run(&["check", &config]);
    let all = out.text + &out.error;
    assert!(out.status == 1 && all.contains("`clause`") && all.contains(":4:"), "{all}");
}

/// A program that tells where it was pointed at, its kind, and a config for a gateway of its own.
struct Asker {
    home: tempfile::TempDir,
    port: u16,
}

impl Asker {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let kind = "asker: {programs: [asker], vendor: anthropic, gateway: {env: {ASKER_URL: \"{gateway}\"}, needs: [ASKER_KEY]}}\n";
        fs::write(home.path().join("kinds.yaml"), kind).unwrap();
        let program = home.path().join("asker");
        fs::write(&program, "#!/bin/sh\necho \"url=$ASKER_URL\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let asker = Self { home, port };
        asker.config("");
        asker
    }

    fn at(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn config(&self, more: &str) {
        let text = format!("kinds: [kinds.yaml]\nserve: {{listen: \"127.0.0.1:{}\"}}\n{more}", self.port);
        fs::write(self.at("koboshi.yaml"), text).unwrap();
    }

    fn serve(&self) -> Running {
        let (config, store) = (self.at("koboshi.yaml"), self.at("gateway.db"));
        let mut command = koboshi(&["serve", "--config", &config, "--store", &store]);
        let child = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        until("the gateway listens", || std::net::TcpStream::connect(("127.0.0.1", self.port)).ok());
        child
    }

    /// Runs it; the status, where it was pointed at, and what was said.
    fn run(&self, gateway: &str, key: &str) -> (Option<i32>, String, String) {
        let (config, store, program) = (self.at("koboshi.yaml"), self.at("koboshi.db"), self.at("asker"));
        let args = ["run", "--config", &config, "--store", &store, "--gateway", gateway, "--", &program];
        let output = koboshi(&args).env("ASKER_KEY", key).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn a_command_is_pointed_at_its_gateway_only_where_that_can_serve_it() {
    let asker = Asker::new();
    let ours = format!("url=http://127.0.0.1:{}", asker.port);
    assert_eq!(asker.run("auto", "key"), (Some(0), "url=".to_owned(), String::new()), "none answers");
    asker.config("providers: {other: {kind: openai, keys: [not-used]}}\n");
    let gateway = asker.serve();
    let (status, url, said) = asker.run("auto", "key");
    assert_eq!((status, url.as_str()), (Some(0), "url="), "{said}");
    assert!(said.contains("has no key for anthropic") && said.lines().count() == 1, "{said}");
    drop(gateway);
    asker.config("providers: {mine: {kind: anthropic, keys: [not-used]}}\n");
    let _gateway = asker.serve();
    assert_eq!(asker.run("auto", "key"), (Some(0), ours, String::new()));
    let (status, url, said) = asker.run("auto", "");
    assert_eq!((status, url.as_str()), (Some(0), "url="), "{said}");
    assert!(said.contains("ASKER_KEY is not set"), "{said}");
}

/// A program that is signed in by itself is not put on the gateway's key without a word.
#[test]
fn a_login_of_its_own_is_not_replaced_by_the_key_of_the_gateway() {
    let asker = Asker::new();
    let kinds = fs::read_to_string(asker.at("kinds.yaml")).unwrap();
    let login = kinds.replace("needs: [ASKER_KEY]", "user_keys: [ASKER_KEY, ASKER_TOKEN]");
    fs::write(asker.at("kinds.yaml"), login).unwrap();
    let ours = format!("url=http://127.0.0.1:{}", asker.port);
    let provider = "providers: {mine: {kind: anthropic, keys: [not-used]}}\n";
    asker.config(provider);
    let gateway = asker.serve();
    assert_eq!(asker.run("auto", "key"), (Some(0), ours.clone(), String::new()));
    let (status, url, said) = asker.run("auto", "");
    assert_eq!((status, url.as_str()), (Some(0), "url="), "{said}");
    assert!(said.contains("ASKER_KEY, ASKER_TOKEN") && said.lines().count() == 1, "{said}");
    let named = ours.trim_start_matches("url=");
    assert_eq!(asker.run(named, ""), (Some(0), ours.clone(), String::new()), "as it was asked");
    drop(gateway);
    let through = format!("127.0.0.1:{}\", passthrough: true}}", asker.port);
    let config = fs::read_to_string(asker.at("koboshi.yaml")).unwrap();
    let config = config.replace(&format!("127.0.0.1:{}\"}}", asker.port), &through);
    fs::write(asker.at("koboshi.yaml"), config).unwrap();
    let gateway = asker.serve();
    assert_eq!(asker.run("auto", ""), (Some(0), ours, String::new()), "the login goes through");
    drop(gateway);
    asker.config(&format!("{provider}keys: {{one: {{sha256: 261f7142fa75b93474041fbd7a4db894b10dea7c5a5f9c2a911133b4e372910b}}}}\n"));
    let _gateway = asker.serve();
    let (status, url, said) = asker.run("auto", "key");
    assert_eq!((status, url.as_str()), (Some(0), "url="), "{said}");
    assert!(said.contains("wants a key of its own"), "{said}");
}

#[test]
fn a_gateway_that_is_no_address_is_refused_and_a_silent_one_is_named() {
    let asker = Asker::new();
    for wrong in ["foo", "127.0.0.1:4141", "http://", "ftp://host"] {
        let (status, url, said) = asker.run(wrong, "key");
        assert_eq!((status, url.as_str()), (Some(2), ""), "{said}");
        assert!(said.contains("is no address"), "{said}");
    }
    let silent = format!("http://127.0.0.1:{}", asker.port);
    let (status, url, said) = asker.run(&format!("{silent}/v1/"), "key");
    assert_eq!((status, url), (Some(0), format!("url={silent}")));
    assert!(said.contains(&format!("Nothing answers at {silent}")), "{said}");
}

#[test]
fn a_supervisor_asks_for_the_gateway_at_each_start_of_an_agent() {
    let asker = Asker::new();
    let seen = asker.at("seen");
    let script = format!("echo \"url=$ASKER_URL\" >> {seen}; sleep 3600");
    let agents = |gateway: &str| {
        format!(
            "providers: {{mine: {{kind: anthropic, keys: [not-used]}}}}\nagents: {{a: {{command: [sh, -c, '{script}'], kind: asker, env: [ASKER_KEY=key], survives: false{gateway}}}}}\n"
        )
    };
    asker.config(&agents(""));
    let (config, store) = (asker.at("koboshi.yaml"), asker.at("koboshi.db"));
    let mut command = koboshi(&["supervise", "--config", &config, "--store", &store]);
    let _supervisor = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let count = || fs::read_to_string(&seen).unwrap_or_default().lines().count();
    until("it was started without one", || (count() == 1).then_some(()));
    let _gateway = asker.serve();
    assert_eq!(run(&["restart", "a", "--store", &store]).status, 0);
    until("it was started again", || (count() == 2).then_some(()));
    for (at, gateway) in
        [(3, ", gateway: false"), (4, ", gateway: 'http://127.0.0.1:9/v1'"), (5, ", gateway: off")]
    {
        asker.config(&agents(gateway));
        assert_eq!(run(&["reload", "--store", &store, "--config", &config]).status, 0);
        until("it was started again", || (count() == at).then_some(()));
    }
    let ours = format!("url=http://127.0.0.1:{}", asker.port);
    let lines = fs::read_to_string(&seen).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), ["url=", &ours, "url=", "url=http://127.0.0.1:9", "url="]);
}

/// A config with an agent of a kind that tells what its kind gives it.
fn with_kind(home: &mut Home, value: &str) -> String {
    fs::write(home.path("kinds.yaml"), format!("mine: {{env: {{GIVEN: {value}}}}}\n")).unwrap();
    let script = format!("echo \"$GIVEN\" >> {}; sleep 3600", home.path("given").display());
    home.agents["a"] =
        json!({"command": ["sh", "-c", script], "kind": "mine", "gateway": false, "survives": false});
    home.config()
}

#[test]
fn a_changed_file_of_kinds_is_followed_and_one_that_cannot_be_used_stays_refused() {
    for together in [false, true] {
        let mut home = Home::new(&format!("kinds: [kinds.yaml]\n{QUICK}"));
        let config = with_kind(&mut home, "one");
        let supervisor = if together { home.up() } else { home.supervise() };
        let given = || fs::read_to_string(home.path("given")).unwrap_or_default();
        until("it runs", || (given() == "one\n").then_some(()));
        fs::write(home.path("kinds.yaml"), "mine: {env: {GIVEN: two}}\n").unwrap();
        let reload = || run(&["reload", "--lang", "en", "--store", &home.store(), "--config", &config]);
        let taken = reload();
        assert!(
            taken.status == 0 && taken.text.contains("Restarted: a/default"),
            "{}{}",
            taken.text,
            taken.error
        );
        until("it runs with the new kind", || (given() == "one\ntwo\n").then_some(()));

        // The file itself is fine, what it names is not: every time it is asked, until that is mended.
        fs::write(&config, fs::read_to_string(&config).unwrap().replace("kinds.yaml", "more.yaml")).unwrap();
        for _ in 0..3 {
            let refused = reload();
            assert!(
                refused.status == 1 && refused.error.contains("more.yaml"),
                "{}{}",
                refused.text,
                refused.error
            );
        }
        fs::write(home.path("more.yaml"), "mine: {env: {GIVEN: three}}\n").unwrap();
        until("it runs with the mended kind", || (given() == "one\ntwo\nthree\n").then_some(()));
        assert_eq!(reload().status, 0);
        supervisor.end();
    }
}

#[test]
fn a_reload_names_what_counts_after_a_restart_alone() {
    for together in [false, true] {
        let mut home = Home::new(&format!("kinds: [kinds.yaml]\n{QUICK}"));
        let config = with_kind(&mut home, "one");
        let supervisor = if together { home.up() } else { home.supervise() };
        until("it runs", || home.path("given").exists().then_some(()));
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace("max_starts: 100000", "max_starts: 3")).unwrap();
        let args = ["reload", "--lang", "en", "--store", &home.store(), "--config", &config];
        let taken = run(&args);
        let words = "In use after a restart of the supervisor: cooldown";
        assert!(taken.status == 0 && taken.text.contains(words), "{}{}", taken.text, taken.error);
        supervisor.end();
    }
}
