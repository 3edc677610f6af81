//! A gateway as a process of its own, gone with the test.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use koboshi_testkit::{Answer, Client};
use serde_json::Value;

use super::{Running, koboshi};

/// A running gateway.
pub(crate) struct Served {
    pub(crate) child: Running,
    pub(crate) address: SocketAddr,
    config: PathBuf,
    store: PathBuf,
    environment: Vec<(String, String)>,
    shell: Option<&'static str>,
}

/// A file that must not grow is then an error of the write, as a full disk is, and no signal.
const WITHOUT_SIGNAL: &str = "trap '' XFSZ; exec \"$@\"";

impl Served {
    /// Starts one with this config and this store.
    pub(crate) fn start(config: &Path, store: &Path) -> Self {
        Self::start_with(config, store, &[])
    }

    /// Starts one that a [`Served::limit_files`] does not end.
    pub(crate) fn start_limited(config: &Path, store: &Path) -> Self {
        Self::start_by(Some(WITHOUT_SIGNAL), config, store, &[])
    }

    /// The same, with more variables.
    pub(crate) fn start_with(config: &Path, store: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_by(None, config, store, environment)
    }

    fn start_by(
        shell: Option<&'static str>,
        config: &Path,
        store: &Path,
        environment: &[(&str, &str)],
    ) -> Self {
        // A port of its own, so that it can be used again; if another process takes it before the gateway does, another port is tried.
        for _ in 0..20 {
            let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
            if let Some(child) = spawn(shell, address, config, store, environment) {
                let environment =
                    environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                return Self {
                    child,
                    address,
                    config: config.to_owned(),
                    store: store.to_owned(),
                    environment: environment.collect(),
                    shell,
                };
            }
        }
        panic!("no gateway would start")
    }

    /// Ends it as a crash would: no handler runs, nothing is written any more.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it on the same port with the same config and the same store.
    pub(crate) fn start_again(&mut self) {
        let environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.child = spawn(self.shell, self.address, &self.config, &self.store, &environment).unwrap();
    }

    pub(crate) fn post(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut client = Client::to(self.address);
        client.send("POST", "/v1/chat/completions", headers, body.to_string().as_bytes());
        client.read()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        let mut client = Client::to(self.address);
        client.send("GET", path, &[], b"");
        client.read()
    }

    /// A target as operators see it.
    pub(crate) fn target(&self, name: &str) -> Value {
        let targets = self.targets();
        targets.into_iter().find(|target| target["target"] == name).unwrap()
    }

    /// All of them.
    pub(crate) fn targets(&self) -> Vec<Value> {
        self.get("/koboshi/targets").json()["targets"].as_array().unwrap().clone()
    }

    /// Lets its files not grow beyond this, such as `4096` or `unlimited`: a full disk, for this process.
    pub(crate) fn limit_files(&self, bytes: &str) {
        let id = self.child.id().to_string();
        let set =
            Command::new("prlimit").args(["--pid", &id, &format!("--fsize={bytes}:")]).status().unwrap();
        assert!(set.success());
    }

    /// Bytes of memory that it has now.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:").trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// The most that it ever had.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status("VmHWM:").trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Threads that it has now.
    pub(crate) fn threads(&self) -> u64 {
        self.status("Threads:").parse().unwrap()
    }

    /// What the system says of the process.
    fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        status.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_owned()
    }
}

/// The same command, started by a shell.
fn by_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// A process that serves; none if the port is taken.
fn spawn(
    shell: Option<&str>,
    address: SocketAddr,
    config: &Path,
    store: &Path,
    environment: &[(&str, &str)],
) -> Option<Running> {
    let (address, config, store) =
        (address.to_string(), config.display().to_string(), store.display().to_string());
    let args = ["serve", "--listen", &address, "--config", &config, "--store", &store];
    let mut command = koboshi(&args);
    if let Some(shell) = shell {
        command = by_shell(shell, &command);
    }
    let mut child = Running::start(command.envs(environment.iter().copied()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    if !first.contains("://") {
        child.wait().unwrap();
        assert!(first.contains("cannot listen"), "{first}");
        return None;
    }
    // The output must be read, or the gateway would block.
    std::thread::spawn(move || lines.for_each(drop));
    Some(child)
}
