//! `koboshi run` as its user meets it: the real binary, real processes, a real gateway beside it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::served::Served;
use common::{Running, json, koboshi, on_terminal, on_terminal_whole, run};
use koboshi_testkit::{ScriptedAgent, Upstream, signal, until};
use serde_json::{Value, json};
use tempfile::TempDir;

const QUOTA: &str = "echo \"TerminalQuotaError: Your quota will reset after 22m55s.\" >&2; exit 1";

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> String {
        self.file("koboshi.db")
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// `koboshi run` with these flags and this command.
    fn command(&self, flags: &[&str], command: &[String]) -> Command {
        let store = self.store();
        let mut args = vec!["run", "--store", &store, "--gateway", "off"];
        args.extend(flags);
        args.push("--");
        args.extend(command.iter().map(String::as_str));
        let mut command = koboshi(&args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, flags: &[&str], command: &[&str]) -> Output {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        self.command(flags, &command).output().unwrap()
    }

    fn agent(&self, flags: &[&str], agent: &ScriptedAgent) -> Output {
        self.command(flags, &agent.command()).output().unwrap()
    }

    fn status(&self) -> Value {
        json(&run(&["status", "--format", "json", "--store", &self.store()]))
    }

    /// Nothing of a run is left on the disk.
    fn has_no_runs(&self) -> bool {
        std::fs::read_dir(self.path("runs")).is_ok_and(|mut runs| runs.next().is_none())
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_quota_is_known_to_the_next_run_and_to_the_gateway() {
    let home = Home::new();
    let upstream = Upstream::start();
    let config = home.path("koboshi.yaml");
    let yaml = format!(
        "providers: {{one: {{kind: openai, base_url: \"{}\", keys: [k], account: main}}}}\nroutes: {{talk: [one/ok]}}\nserve: {{threads: 1}}\n",
        upstream.url()
    );
    std::fs::write(&config, yaml).unwrap();
    let gateway = Served::start(&config, Path::new(&home.store()));
    assert_eq!(chat(&gateway), 200);

    let first = home.run(&["--account", "main", "--patience", "1s"], &["sh", "-c", QUOTA]);
    assert_eq!(code(&first), 75, "{}", said(&first));
    assert!(said(&first).contains("Not started again: account:main"), "{}", said(&first));
    let status = home.status();
    let row = &status["rows"][0];
    assert_eq!(
        (&row["key"], &row["state"], &row["reason"]),
        (&json!("account:main"), &json!("cooling"), &json!("quota")),
        "{status}"
    );
    let instant = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let length = instant(&row["until"]).duration_since(instant(&row["since"])).as_secs();
    assert_eq!(length, 1512, "22 min 55 s and a tenth");
    let until_said = instant(&row["until"]).strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    assert!(said(&first).contains(&until_said), "{} in {}", until_said, said(&first));

    let witness = home.file("started");
    let second = home.run(&["--account", "main", "--patience", "1s"], &["touch", &witness]);
    assert_eq!(code(&second), 75, "{}", said(&second));
    assert!(!Path::new(&witness).exists(), "a second run starts nothing");
    assert!(said(&second).contains("Not started: account:main"), "{}", said(&second));
    let japanese = home.run(&["--account", "main", "--patience", "1s", "--lang", "ja"], &["true"]);
    assert!(said(&japanese).contains("koboshi: 起動しませんでした"), "{}", said(&japanese));

    until("the gateway refuses the account", || (chat(&gateway) != 200).then_some(()));
    let asked = upstream.all_calls();
    assert_ne!(chat(&gateway), 200);
    assert_eq!(upstream.all_calls(), asked, "the provider is not asked while its account rests");
}

/// Without a terminal a wait is told once, however long it is.
#[test]
fn without_a_terminal_a_wait_is_one_line() {
    let home = Home::new();
    let store = home.store();
    let cooled = run(&["cool", "account:main", "--for", "3s", "--force", "--store", &store]);
    assert_eq!(cooled.status, 0, "{}", cooled.error);
    let waited = home.run(&["--account", "main", "--lang", "en"], &["echo", "done"]);
    assert_eq!((code(&waited), waited.stdout.as_slice()), (0, b"done\n".as_slice()), "{}", said(&waited));
    let lines: Vec<String> = said(&waited).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("koboshi: account:main is in cooldown") && lines[0].contains("Waiting until"),
        "{lines:?}"
    );
    assert!(!said(&waited).contains(['\r', '\x1b']), "{lines:?}");
}

/// The login of Claude Code reaches its provider through the gateway that it is pointed at, as it is.
#[test]
fn the_programs_own_login_reaches_the_provider_through_the_gateway() {
    let home = Home::new();
    let upstream = Upstream::start();
    let config = home.path("koboshi.yaml");
    let yaml = format!(
        "providers: {{anthropic: {{kind: anthropic, base_url: \"{}\"}}}}\nroutes: {{claude-opus-4-1: [anthropic/ok]}}\nserve: {{threads: 1, passthrough: true}}\n",
        upstream.origin()
    );
    std::fs::write(&config, yaml).unwrap();
    let gateway = Served::start(&config, Path::new(&home.store()));
    // A stand-in that asks as the real one does when it is signed in.
    let body = r#"{"model":"claude-opus-4-1","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}"#;
    let script = format!(
        "#!/bin/sh\nexec curl -s -H \"authorization: Bearer $ANTHROPIC_AUTH_TOKEN\" -H 'anthropic-beta: oauth-2025-04-20' \
         -H 'anthropic-version: 2023-06-01' -H \"$ANTHROPIC_CUSTOM_HEADERS\" -H 'content-type: application/json' \
         -d '{body}' \"$ANTHROPIC_BASE_URL/v1/messages?beta=true\"\n"
    );
    let claude = home.path("claude");
    std::fs::write(&claude, script).unwrap();
    assert!(Command::new("chmod").arg("755").arg(&claude).status().unwrap().success());
    let address = format!("http://{}", gateway.address);
    let (store, claude) = (home.store(), claude.display().to_string());
    let mut command =
        koboshi(&["run", "--store", &store, "--gateway", &address, "--agent", "writer", "--", &claude]);
    command.env("ANTHROPIC_AUTH_TOKEN", "sk-ant-oat01-the-login-of-a-person").env_remove("ANTHROPIC_API_KEY");
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"type\":\"message\""), "{output:?}");
    let asked = upstream.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-ant-oat01-the-login-of-a-person"));
    assert_eq!(asked[0].header("anthropic-beta"), Some("oauth-2025-04-20"));
    assert_eq!((asked[0].header("x-api-key"), asked[0].header("x-koboshi-agent")), (None, None));
}

fn chat(gateway: &Served) -> u16 {
    let body = json!({"model": "talk", "messages": [{"role": "user", "content": "hello"}]});
    let mut client = koboshi_testkit::Client::to(gateway.address);
    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
    client.read().status
}

#[test]
fn on_success_nothing_rests_and_nothing_is_left() {
    let home = Home::new();
    let output = home.run(&["--account", "main", "--agent", "a"], &["sh", "-c", "echo out; echo error >&2"]);
    assert_eq!(
        (code(&output), output.stdout.as_slice(), output.stderr.as_slice()),
        (0, b"out\n".as_slice(), b"error\n".as_slice())
    );
    assert_eq!(home.status()["rows"], json!([]));
    assert!(home.has_no_runs());
}

#[test]
fn the_exit_status_is_the_commands_or_says_why_it_is_ours() {
    let home = Home::new();
    assert_eq!(code(&home.run(&[], &["sh", "-c", "exit 7"])), 7);
    for (command, expected, en) in
        [(&["there-is-no-such-program"][..], 127, "was not found"), (&["/etc/passwd"], 126, "cannot be run")]
    {
        let output = home.run(&[], command);
        assert_eq!(code(&output), expected);
        assert!(said(&output).starts_with("koboshi: ") && said(&output).contains(en), "{}", said(&output));
        let japanese = home.run(&["--lang", "ja"], command);
        assert!(said(&japanese).contains("終了ステータス"), "{}", said(&japanese));
    }
}

/// The next run would not start: whoever reads why this one did not must read that too.
#[test]
fn a_missing_program_says_that_its_agent_is_parked() {
    for (command, code_of_it) in [("there-is-no-such-program", 127), ("/etc/passwd", 126)] {
        let home = Home::new();
        let first = home.run(&["--agent", "a", "--project", "p"], &[command]);
        assert_eq!(code(&first), code_of_it, "{}", said(&first));
        let resume = format!("koboshi resume agent:a/p --store {}", home.store());
        assert!(said(&first).contains("agent:a/p is parked now"), "{}", said(&first));
        assert!(said(&first).contains(&resume), "{}", said(&first));
        assert_eq!(code(&home.run(&["--agent", "a", "--project", "p"], &["true"])), 69, "it is");
        let unnamed = home.run(&[], &[command]);
        assert!(!said(&unnamed).contains("parked"), "{}", said(&unnamed));
    }
}

#[test]
fn a_login_that_is_refused_parks_the_agent_and_the_command_that_is_named_resumes_it() {
    let home = Home::new();
    let login = "echo '{\"type\":\"result\",\"is_error\":true,\"api_error_status\":401,\"result\":\"Invalid API key\"}'; exit 1";
    let parked = home.run(&["--agent", "a", "--project", "p"], &["sh", "-c", login]);
    assert_eq!(code(&parked), 69, "{}", said(&parked));
    assert!(said(&parked).contains("Not started again: agent:a/p"), "{}", said(&parked));
    let command = format!("koboshi resume agent:a/p --store {}", home.store());
    assert!(said(&parked).contains(&command), "it leads to the same store: {}", said(&parked));
    assert_eq!(code(&home.run(&["--agent", "a", "--project", "p"], &["true"])), 69);
    assert_eq!(run(&["resume", "agent:a/p", "--store", &home.store()]).status, 0);
    assert_eq!(code(&home.run(&["--agent", "a", "--project", "p"], &["true"])), 0);
    let unnamed = home.run(&[], &["sh", "-c", login]);
    assert_eq!(code(&unnamed), 1, "without a name there is nothing to park: {}", said(&unnamed));
}

#[test]
fn a_failure_that_passes_is_tried_again_and_one_of_its_own_is_not() {
    let home = Home::new();
    let config = home.file("koboshi.yaml");
    std::fs::write(&config, "cooldown: {overloaded: {initial: 50ms, max: 100ms}}\n").unwrap();
    let notes = home.path("notes");
    let overloaded = ScriptedAgent::new("again")
        .notes(&notes)
        .complains("API Error: 529 Overloaded. This is a server-side issue")
        .exits(1);
    let output = home.agent(&["--config", &config, "--tries", "3"], &overloaded);
    assert_eq!(code(&output), 1);
    assert_eq!(std::fs::read_to_string(&notes).unwrap().lines().count(), 3, "{}", said(&output));
    std::fs::remove_file(&notes).unwrap();
    home.agent(
        &["--config", &config],
        &ScriptedAgent::new("once").notes(&notes).complains("I am broken").exits(3),
    );
    assert_eq!(std::fs::read_to_string(&notes).unwrap().lines().count(), 1);
}

#[test]
fn a_limit_is_waited_out_and_the_command_started_again() {
    let home = Home::new();
    let config = home.file("koboshi.yaml");
    std::fs::write(&config, "cooldown: {margin: {min: 0s, share: 0}}\n").unwrap();
    let notes = home.path("notes");
    let script = format!(
        "echo x >> {0}; if [ $(wc -l < {0}) = 1 ]; then echo 'RateLimitError: Too many requests. Please retry after 1 seconds.' >&2; exit 1; fi; echo done",
        notes.display()
    );
    let output = home.run(&["--account", "main", "--config", &config], &["sh", "-c", &script]);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, b"done\n".as_slice()), "{}", said(&output));
    assert!(said(&output).contains("account:main is in cooldown"), "{}", said(&output));
}

#[test]
fn a_limit_in_mid_run_holds_the_others_while_the_command_still_runs() {
    let home = Home::new();
    let go_on = home.path("go-on");
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"}}"#;
    let agent = ScriptedAgent::new("mid-run").says(event).waits_for(&go_on).exits(0);
    // The kind is known by the program's name.
    let program = home.path("claude");
    std::fs::write(&program, format!("#!/bin/sh\n{}\n", agent.command()[2])).unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let mut running =
        Running::start(&mut home.command(&["--account", "main"], &[program.display().to_string()]));
    until("the account rests", || {
        home.status()["rows"].as_array().is_some_and(|rows| !rows.is_empty()).then_some(())
    });
    assert!(running.try_wait().unwrap().is_none(), "it still runs");
    assert_eq!(code(&home.run(&["--account", "main", "--patience", "1s"], &["true"])), 75);
    std::fs::write(go_on, "").unwrap();
    running.wait().unwrap();
}

/// A program that waits for the network for ever is stopped, as one of a config is.
#[test]
fn a_command_that_only_waits_for_the_network_is_stopped_and_one_that_runs_too_long_too() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let kind = "waiter: {programs: [waiter], offline: {event: error, field: message, says: No network}}\n";
    std::fs::write(at("kinds.yaml"), kind).unwrap();
    std::fs::write(at("koboshi.yaml"), "kinds: [kinds.yaml]\n").unwrap();
    let waits = r#"while :; do echo '{"type":"error","message":"No network (refused)"}'; sleep 0.05; done"#;
    let tells = r#"echo '{"type":"item","message":"No network"}'; exec sleep 3600"#;
    for (script, limits, why) in [
        (waits, &["--limit-offline", "500ms"][..], "\"reason\":\"network\""),
        (tells, &["--limit-offline", "500ms", "--limit-run", "2s"], "\"rule\":\"supervise.run_time\""),
    ] {
        std::fs::write(at("waiter"), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(at("waiter"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (config, store) = (at("koboshi.yaml"), at("koboshi.db"));
        let mut command = koboshi(&["run", "--config", &config, "--store", &store, "--gateway", "off"]);
        let program = at("waiter");
        command.args(["--agent", "one", "--tries", "1"]).args(limits);
        let output = command.args(["--", &program]).output().unwrap();
        assert_eq!(code(&output), 143, "{}", said(&output));
        let journal = run(&["journal", "--store", &store, "--format", "json"]).text;
        let end = journal.lines().find(|line| line.contains("ended with exit code 143")).unwrap().to_owned();
        assert!(end.contains(why), "{end}");
        run(&["resume", "agent:one", "--store", &store]);
        std::fs::remove_file(&store).unwrap();
    }
    let wrong = run(&["run", "--limit-run", "0s", "--", "true"]);
    assert!(wrong.status == 2 && wrong.error.contains("or `off`"), "{}", wrong.error);
}

#[test]
fn input_and_half_characters_pass_untouched() {
    let home = Home::new();
    let mut running = Running::start(home.command(&[], &["cat".to_owned()]).stdin(Stdio::piped()));
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut input = running.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let mut came = Vec::new();
    running.stdout.take().unwrap().read_to_end(&mut came).unwrap();
    writer.join().unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(came, bytes);
    let half = home.agent(&[], &ScriptedAgent::new("half").says_half_a_character().exits(0));
    assert_eq!(half.stdout, [0o350, 0o265]);
}

#[test]
fn on_a_terminal_the_command_has_one_too() {
    let home = Home::new();
    let command = home.command(
        &[],
        &[
            "sh".to_owned(),
            "-c".to_owned(),
            "test -t 0 && test -t 1 && test -t 2 && tty && echo on a terminal".to_owned(),
        ],
    );
    let screen = on_terminal_whole(command);
    assert!(screen.contains("/dev/pts/") && screen.contains("on a terminal\r\n"), "{screen}");
    let plain = on_terminal(
        home.command(&[], &["sh".to_owned(), "-c".to_owned(), "test -t 0 || echo no terminal".to_owned()]),
    );
    assert!(plain.contains("no terminal"), "{plain}");
}

#[test]
fn ctrl_c_reaches_the_command_and_a_request_to_end_takes_everything_along() {
    let home = Home::new();
    let ready = home.path("ready");
    let agent = ScriptedAgent::new("ctrl-c").leaves_a_stubborn_child_behind().notes(&ready).lives_on();
    for name in ["-INT", "-TERM", "-HUP"] {
        let mut running = Running::start(&mut home.command(&[], &agent.command()));
        until("the agent runs", || ready.exists().then_some(()));
        signal(&running, name);
        let status = running.wait().unwrap();
        assert!(matches!(status.code(), Some(130 | 143 | 129)), "{name}: {status}");
        assert_eq!(agent.left(), [0_i32; 0], "{name}");
        assert!(home.has_no_runs());
        std::fs::remove_file(&ready).unwrap();
    }
    assert_eq!(home.status()["rows"], json!([]), "a stop that was asked for is no failure");
}

#[test]
fn a_command_whose_protector_is_killed_ends_with_all_that_it_started() {
    let home = Home::new();
    let ready = home.path("ready");
    let agent = ScriptedAgent::new("killed")
        .ignores_requests_to_end()
        .leaves_a_stubborn_child_behind()
        .notes(&ready)
        .lives_on();
    let mut running = Running::start(&mut home.command(&[], &agent.command()));
    until("the agent runs", || ready.exists().then_some(()));
    running.kill().unwrap();
    running.wait().unwrap();
    until("nothing of it is left", || agent.left().is_empty().then_some(()));
}

/// One line says what was read of the end, and what the next run meets.
#[test]
fn a_failure_that_is_not_tried_again_is_told_with_what_follows() {
    let home = Home::new();
    let refused = "echo 'Error: 401 Unauthorized: invalid api key' >&2; exit 1";
    let unnamed = home.run(&[], &["sh", "-c", refused]);
    let last = said(&unnamed).lines().last().unwrap().to_owned();
    assert_eq!(code(&unnamed), 1);
    assert!(last.starts_with("koboshi: The command failed (API key"), "{last}");
    assert!(!last.contains("cooldown"), "without a name nothing follows: {last}");

    let broken = "echo 'Error: the parser is broken' >&2; exit 3";
    let named = home.run(&["--agent", "a", "--project", "p"], &["sh", "-c", broken]);
    let last = said(&named).lines().last().unwrap().to_owned();
    assert_eq!(code(&named), 3);
    assert!(
        last.contains("the parser is broken") && last.contains("agent:a/p is in cooldown until"),
        "{last}"
    );
    let resume = format!("koboshi resume agent:a/p --store {}", home.store());
    assert!(last.ends_with(&resume), "the command reaches this store: {last}");
    let next = home.run(&["--agent", "a", "--project", "p", "--patience", "0"], &["true"]);
    assert!(code(&next) == 75 && said(&next).contains("the parser is broken"), "{}", said(&next));
    let japanese = home.run(&["--lang", "ja"], &["sh", "-c", refused]);
    assert!(said(&japanese).contains("コマンドが失敗しました"), "{}", said(&japanese));
}

/// A run without a name has a key that no other command knows: none is told of it.
#[test]
fn a_run_without_a_name_names_no_key_that_cannot_be_seen() {
    let home = Home::new();
    let limited = home.run(&["--patience", "1s"], &["sh", "-c", QUOTA]);
    let words = said(&limited);
    assert_eq!(code(&limited), 75, "{words}");
    assert!(!words.contains("agent:run/") && words.contains("--account NAME"), "{words}");
    assert!(words.contains("quota") && words.contains("--patience 1s"), "{words}");
    let named = home.run(&["--agent", "mine", "--project", "p", "--patience", "1s"], &["sh", "-c", QUOTA]);
    assert!(said(&named).contains("agent:mine/p is in cooldown"), "{}", said(&named));
}

/// Agents need a store that outlasts a process; no option that the command lacks is advised.
#[test]
fn a_store_in_memory_is_refused_with_options_that_exist() {
    for command in [&["run", "--store", "memory", "--", "true"][..], &["stop", "--store", "memory", "mine"]] {
        let out = run(command);
        assert_eq!(out.status, 2, "{}", out.error);
        assert!(
            out.error.contains("agents need a file or Redis") && !out.error.contains("--url"),
            "{}",
            out.error
        );
    }
}
