//! Commands on a terminal of their own: keys, the size of the window, the countdown of a wait, and the screen of `koboshi top`, as a person
//! meets them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use common::served::Served;
use common::{Running, koboshi, run};
use koboshi_testkit::until;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

/// A terminal with a command on it, in a session of its own, as a terminal program starts it.
struct Screen {
    keys: File,
    name: String,
    shown: Arc<Mutex<Vec<u8>>>,
    process: Running,
    _folder: tempfile::TempDir,
}

impl Screen {
    /// `koboshi run` with a store of its own.
    fn of(flags: &[&str], command: &[&str], prepare: impl FnOnce(&str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("koboshi.db").display().to_string();
        prepare(&store);
        let ours = ["run", "--store", &store, "--gateway", "off", "--lang", "en"];
        Self::with(&[&ours, flags, &["--"], command].concat(), folder)
    }

    fn with(args: &[&str], folder: tempfile::TempDir) -> Self {
        let (keys, name) = terminal();
        let process = on_terminal(&name, args);
        let (shown, mut screen) = (Arc::new(Mutex::new(Vec::new())), keys.try_clone().unwrap());
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                seen.lock().unwrap().extend_from_slice(buffer.get(..count).unwrap());
            }
        });
        Self { keys, name, shown, process, _folder: folder }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn shows(&self, words: &str) {
        until(&format!("{words:?}"), || self.text().contains(words).then_some(()));
    }

    /// What is written from now on, in a window of another size, which is painted as a whole.
    fn painted(&self, rows: u16, columns: u16, words: &str) {
        let before = self.shown.lock().unwrap().len();
        size(&self.name, rows, columns);
        until(&format!("{words:?}"), || {
            let shown = self.shown.lock().unwrap();
            String::from_utf8_lossy(shown.get(before..).unwrap()).contains(words).then_some(())
        });
    }

    /// The terminal is as it was: not raw.
    fn is_cooked(&self) {
        let state = Command::new("stty").args(["-F", &self.name, "-a"]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        let has = |word: &str| state.split_whitespace().any(|one| one == word);
        assert!(has("icanon") && has("isig") && has("echo"), "{state}");
    }

    fn ended(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

/// A terminal, and its name.
fn terminal() -> (File, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    size(&name, 24, 80);
    (File::from(terminal), name)
}

fn on_terminal(name: &str, args: &[&str]) -> Running {
    by_shell(name, &["-c", "exec \"$@\"", "sh"], args)
}

/// The same, started by a shell of which this is the beginning.
fn by_shell(name: &str, shell: &[&str], args: &[&str]) -> Running {
    let ours = koboshi(args);
    let mut session = Command::new("setsid");
    session.args(["--ctty", "--wait", "sh"]).args(shell).arg(ours.get_program()).args(ours.get_args());
    session.env("TZ", "UTC").env("XDG_CONFIG_HOME", "/there/is/none").env_remove("KOBOSHI_STORE");
    let side = || Stdio::from(OpenOptions::new().read(true).write(true).open(name).unwrap());
    Running::start(session.stdin(side()).stdout(side()).stderr(side()))
}

/// Sets the size of a terminal, as its window does.
fn size(name: &str, rows: u16, columns: u16) {
    let set = Command::new("stty")
        .args(["-F", name, "rows", &rows.to_string(), "cols", &columns.to_string()])
        .status();
    assert!(set.unwrap().success());
}

#[test]
fn the_command_has_the_size_of_the_window_and_hears_of_a_new_one() {
    let script = "trap 'stty size; exit 3' WINCH; stty size; echo ready; while :; do sleep 0.02; done";
    let mut screen = Screen::of(&[], &["sh", "-c", script], |_| ());
    screen.shows("24 80\r\nready");
    size(&screen.name, 40, 132);
    screen.shows("40 132");
    assert_eq!(screen.ended(), Some(3));
}

#[test]
fn keys_reach_the_command_and_its_own_terminal_makes_a_signal_of_ctrl_c() {
    let script =
        "trap 'echo caught; exit 9' INT; read line; echo \"got $line\"; while :; do sleep 0.02; done";
    let mut screen = Screen::of(&[], &["sh", "-c", script], |_| ());
    screen.keys.write_all("起き上がり\n".as_bytes()).unwrap();
    screen.shows("got 起き上がり");
    screen.keys.write_all(b"\x03").unwrap();
    screen.shows("caught");
    assert_eq!(screen.ended(), Some(9), "the command decides what Ctrl-C means");
    screen.is_cooked();
}

#[test]
fn a_wait_counts_down_in_one_line_and_leaves_nothing_of_it() {
    let cool = |store: &str| {
        let out = run(&["cool", "account:main", "--for", "4s", "--force", "--store", store]);
        assert_eq!(out.status, 0, "{}", out.error);
    };
    let mut screen = Screen::of(&["--account", "main"], &["echo", "now"], cool);
    screen.shows("now\r\n");
    assert_eq!(screen.ended(), Some(0));
    let text = screen.text();
    let lines: Vec<&str> = text.split("\r\u{1b}[K").collect();
    let waits = lines.iter().filter(|line| line.starts_with("koboshi: account:main is in cooldown")).count();
    assert!(waits >= 2, "it counts: {text:?}");
    assert!(!lines.iter().take(waits).any(|line| line.contains('\n')), "in one line: {text:?}");
    assert_eq!(lines.last().copied(), Some("now\r\n"), "{text:?}");
}

#[test]
fn ctrl_c_ends_a_wait() {
    let cool = |store: &str| {
        assert_eq!(run(&["cool", "account:main", "--for", "10m", "--force", "--store", store]).status, 0);
    };
    let mut screen = Screen::of(&["--account", "main"], &["echo", "never"], cool);
    screen.shows("account:main is in cooldown");
    screen.keys.write_all(b"\x03").unwrap();
    assert_eq!(screen.ended(), Some(130));
    assert!(!screen.text().contains("never"));
}

/// A gateway whose first target fails as the client wishes, and its folder.
fn gateway() -> (Served, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let text = "providers: {one: {kind: sim}}\nroutes: {assistant: ['one/quota?retry_after=2h', sim/ok]}\n";
    std::fs::write(&config, text).unwrap();
    (Served::start(&config, &folder.path().join("koboshi.db")), folder)
}

fn ask(gateway: &Served) {
    let body = json!({"model": "assistant", "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(gateway.post(&body, &[]).status, 200);
}

#[test]
fn top_shows_a_cooldown_as_it_begins_and_a_gateway_that_comes_back() {
    let (mut gateway, folder) = gateway();
    let url = format!("http://{}", gateway.address);
    let mut screen = Screen::with(&["top", "--url", &url, "--lang", "en"], folder);
    screen.shows("All targets are available.");
    screen.painted(24, 79, "one/quota?retry_after=2h");
    ask(&gateway);
    screen.shows("in cooldown");
    screen.painted(24, 80, "quota_exceeded");
    // The command that resumes it, at this gateway; spaces are not painted.
    screen.painted(24, 81, "--url");
    gateway.kill();
    screen.shows("As of ");
    screen.painted(24, 80, "in cooldown");
    gateway.start_again();
    // The next reading replaces the line about the gateway that was away.
    screen.painted(24, 81, "Every route still has a target");
    screen.keys.write_all(b"\tq").unwrap();
    assert_eq!(screen.ended(), Some(0));
    assert!(screen.text().contains("\u{1b}[?1049l"), "the screen from before is back");
    screen.is_cooked();
}

#[test]
fn a_signal_ends_top_and_the_terminal_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("koboshi.db").display().to_string();
    let mut screen = Screen::with(&["top", "--store", &store, "--lang", "en"], folder);
    screen.shows("The store has no record");
    let top = Command::new("pgrep").args(["-P", &screen.process.id().to_string()]).output().unwrap();
    let top = String::from_utf8(top.stdout).unwrap();
    let pid = if top.trim().is_empty() { screen.process.id().to_string() } else { top.trim().to_owned() };
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert_eq!(screen.ended(), Some(0));
    screen.is_cooked();
}

#[test]
fn top_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("koboshi.db").display().to_string();
    let (mut keys, name) = terminal();
    // As with nohup: the signal that would end it is not taken.
    let nohup = ["-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut process = by_shell(&name, &nohup, &["top", "--store", &store, "--lang", "en"]);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("The store has no record") {
        let count = keys.read(&mut buffer).unwrap();
        shown.extend_from_slice(buffer.get(..count).unwrap());
    }
    drop(keys);
    until("it ends", || process.try_wait().unwrap());
}

#[test]
fn without_a_terminal_top_names_status_and_prints_one_reading_as_json() {
    let (gateway, folder) = gateway();
    ask(&gateway);
    let url = format!("http://{}", gateway.address);
    let out = run(&["top", "--url", &url]);
    assert_eq!(out.status, 2);
    assert!(out.error.contains("koboshi status"), "{}", out.error);
    let out = run(&["top", "--url", &url, "--lang", "ja"]);
    assert!(
        out.error.contains("端末ではありません") && out.error.contains("koboshi status"),
        "{}",
        out.error
    );

    let read = |args: &[&str]| {
        let out = run(&[&["top", "--format", "json"], args].concat());
        assert_eq!(out.status, 0, "{}", out.error);
        serde_json::from_str::<Value>(&out.text).unwrap()
    };
    let first = |snapshot: &Value, name: &str| {
        let targets = snapshot["targets"].as_array().unwrap().clone();
        targets.into_iter().find(|target| target["name"] == name).unwrap()
    };
    let asked = read(&["--url", &url]);
    assert_eq!(asked["counts"]["survived"], 1);
    let target = first(&asked, "one/quota?retry_after=2h");
    assert_eq!((&target["state"], &target["reason"]), (&json!("cooling"), &json!("quota")));
    assert_eq!(target["routes"], json!(["assistant"]));
    assert_eq!(asked["faults"][0]["kind"], "quota_exceeded");
    // The store alone has the same targets and no counters.
    let store = folder.path().join("koboshi.db").display().to_string();
    let alone = until("the store has it", || {
        let alone = read(&["--store", &store]);
        (alone["faults"].as_array().unwrap().len() == 1).then_some(alone)
    });
    assert_eq!(first(&alone, "one/quota?retry_after=2h")["state"], "cooling");
    assert_eq!((&alone["counts"], &alone["faults_last_minute"]), (&Value::Null, &json!(1)));
}
