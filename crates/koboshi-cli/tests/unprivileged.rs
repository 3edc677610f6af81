//! The gateway where nothing may be written: a read-only container, a user without a home.
//!
//! The process is another user's where the tests run as root, since root may write everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Running, run_with};
use koboshi_testkit::{Client, signal, until};
use serde_json::json;
use tempfile::TempDir;

/// The user and group `nobody` of every Linux.
const NOBODY: u32 = 65534;

/// A folder with the program and a home in which nothing can be written.
struct Bare {
    folder: TempDir,
}

impl Bare {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o755);
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        mode(&home, 0o555);
        // The folder of the build may be closed to other users. Copied by another process: while this one has the copy open for
        // writing, a child that another test starts at that moment has it too, and the copy cannot be run.
        let copied =
            Command::new("cp").args([env!("CARGO_BIN_EXE_koboshi")]).arg(folder.path()).status().unwrap();
        assert!(copied.success());
        Self { folder }
    }

    /// `koboshi serve` as a user without rights, with no variables but these.
    fn serve(&self, args: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = Command::new(self.folder.path().join("koboshi"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(args);
        command.env_clear().envs(environment.iter().copied()).current_dir(self.home());
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        Running::start(command.stderr(Stdio::piped()))
    }

    fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn where_no_store_file_can_be_made_the_error_names_the_ways_out() {
    let bare = Bare::new();
    let home = bare.home().display().to_string();
    let missing = format!("{home}/data/koboshi.db");
    let cases = [
        (None, None, "no home folder"),
        (None, Some(home.as_str()), home.as_str()),
        // A file system that cannot be written refuses root too.
        (None, Some("/proc"), "/proc"),
        (Some(missing.as_str()), None, missing.as_str()),
    ];
    for (store, home, cause) in cases {
        let args: Vec<&str> = store.map_or_else(Vec::new, |store| vec!["--store", store]);
        let environment: Vec<_> = home.map(|home| ("HOME", home)).into_iter().collect();
        let mut child = bare.serve(&args, &environment);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
        for word in [cause, "--store PATH", "--store memory", "koboshi.yaml", "store: memory"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[test]
fn with_the_store_in_memory_it_starts_and_answers() {
    let bare = Bare::new();
    for (args, environment) in
        [(&["--store", "memory"][..], &[][..]), (&[][..], &[("KOBOSHI_STORE", "memory")][..])]
    {
        let mut child = bare.serve(args, environment);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = address(&lines.next().unwrap());
        let said: Vec<String> = lines.by_ref().take_while(|line| !line.contains("curl")).collect();
        assert!(said.iter().any(|line| line.contains("memory (a restart forgets it)")), "{said:?}");
        std::thread::spawn(move || lines.for_each(drop));
        let mut client = Client::to(address);
        let body = json!({"model": "sim/ok", "messages": [{"role": "user", "content": "hello"}]});
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        let answer = client.read();
        assert_eq!(answer.status, 200);
        assert!(!answer.content().is_empty());
        signal(&child, "-TERM");
        let ended = until("the gateway ends", || child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0));
    }
    assert_eq!(std::fs::read_dir(bare.home()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_store_in_memory_cannot_be_looked_at_from_outside() {
    for command in ["status", "journal"] {
        let out = run_with(&[command, "--store", "memory"], &[], "");
        assert_eq!(out.status, 2);
        assert!(out.error.contains("the store is `memory`") && out.error.contains("--url"), "{}", out.error);
    }
    assert!(!Path::new("memory").exists(), "it is no file");
}

/// The address in the first line that it says.
fn address(line: &str) -> SocketAddr {
    let rest = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
    rest.split('/').next().unwrap().parse().unwrap()
}
