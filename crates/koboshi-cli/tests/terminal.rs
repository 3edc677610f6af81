//! `koboshi run` on a terminal of its own: keys, the size of the window, and the countdown of a wait, as a person meets them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use common::{Running, koboshi, run};
use koboshi_testkit::until;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal with `koboshi run` on it, in a session of its own, as a terminal program starts it.
struct Screen {
    keys: File,
    name: String,
    shown: Arc<Mutex<Vec<u8>>>,
    process: Running,
    _folder: tempfile::TempDir,
}

impl Screen {
    fn of(flags: &[&str], command: &[&str], prepare: impl FnOnce(&str)) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        size(&name, 24, 80);
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("koboshi.db").display().to_string();
        prepare(&store);
        let ours =
            koboshi(&[&["run", "--store", &store, "--gateway", "off", "--lang", "en"], flags].concat());
        let mut session = Command::new("setsid");
        session
            .args(["--ctty", "--wait"])
            .arg(ours.get_program())
            .args(ours.get_args())
            .arg("--")
            .args(command);
        session.env("TZ", "UTC").env("XDG_CONFIG_HOME", "/there/is/none").env_remove("KOBOSHI_STORE");
        let side = || Stdio::from(OpenOptions::new().read(true).write(true).open(&name).unwrap());
        let process = Running::start(session.stdin(side()).stdout(side()).stderr(side()));
        drop(session);
        let keys = File::from(terminal);
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

    fn ended(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
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
    // The terminal is as it was: not raw.
    let state = Command::new("stty").args(["-F", &screen.name, "-a"]).output().unwrap();
    let state = String::from_utf8(state.stdout).unwrap();
    let has = |word: &str| state.split_whitespace().any(|one| one == word);
    assert!(has("icanon") && has("isig") && has("echo"), "{state}");
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
