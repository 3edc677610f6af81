//! A real Redis (or Valkey) for a test: on a free port of this machine, in a folder of its own, gone with the test.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::upstream::Authority;
use crate::wait::{signal, until};

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A real server, gone with the test.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    password: Option<&'static str>,
    /// The port of the server whose replica it is.
    replica_of: Option<u16>,
    /// The port with TLS, its certificate and key, and its authority.
    secure: Option<(u16, [PathBuf; 3])>,
    /// Where the other nodes of its Cluster reach it.
    bus: Option<u16>,
    child: Option<Child>,
}

impl RedisServer {
    /// A server without a password.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// A server with this password.
    ///
    /// # Panics
    /// None is installed, or none would start.
    #[must_use]
    pub fn start_with(password: Option<&'static str>) -> Self {
        Self::start_as(password, None, None)
    }

    /// A replica of this server.
    #[must_use]
    pub fn replica(&self) -> Self {
        Self::start_as(self.password, Some(self.port), None)
    }

    /// A replica that reaches this server through another port.
    #[must_use]
    pub fn replica_through(&self, port: u16) -> Self {
        Self::start_as(self.password, Some(port), None)
    }

    /// A server that may become a node of a Cluster.
    #[must_use]
    pub fn start_node() -> Self {
        for _ in 0..20 {
            let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
            let mut node = Self {
                folder,
                port,
                password: None,
                replica_of: None,
                secure: None,
                bus: Some(free_port()),
                child: None,
            };
            if node.restart() {
                return node;
            }
        }
        panic!("no node of a Cluster would start")
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the other nodes of its Cluster reach it.
    ///
    /// # Panics
    /// It is no node.
    #[must_use]
    pub fn bus_port(&self) -> u16 {
        self.bus.unwrap()
    }

    /// A server with TLS on another port, with a certificate of this authority.
    #[must_use]
    pub fn start_secure(authority: &Authority) -> Self {
        Self::start_as(None, None, Some(authority))
    }

    /// Its address with TLS, for this user.
    ///
    /// # Panics
    /// It has no TLS.
    #[must_use]
    pub fn secure_url(&self, user: &str, password: &str) -> String {
        format!("rediss://{user}:{password}@127.0.0.1:{}/0", self.secure.as_ref().unwrap().0)
    }

    fn start_as(
        password: Option<&'static str>,
        replica_of: Option<u16>,
        authority: Option<&Authority>,
    ) -> Self {
        // The port may be taken between our check and the server's start: then another one is used.
        for _ in 0..20 {
            let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
            let secure = authority.map(|authority| {
                let (certificate, key) = authority.write_server_to(folder.path());
                (free_port(), [certificate, key, authority.write_to(folder.path())])
            });
            let mut server = Self { folder, port, password, replica_of, secure, bus: None, child: None };
            if server.restart() {
                return server;
            }
        }
        panic!("no Redis server would start")
    }

    /// Its address, with its password.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_with(self.password.unwrap_or_default())
    }

    /// Its address with another password.
    #[must_use]
    pub fn url_with(&self, password: &str) -> String {
        match password {
            "" => format!("redis://127.0.0.1:{}/0", self.port),
            password => format!("redis://:{password}@127.0.0.1:{}/0", self.port),
        }
    }

    /// Writes what it has to its disk: it has that, and nothing later, when it is started again.
    ///
    /// # Panics
    /// It cannot be reached.
    pub fn save(&self) {
        self.order("SAVE");
    }

    /// Starts it, empty where nothing was saved. Says whether it came up.
    ///
    /// # Panics
    /// None is installed.
    pub fn restart(&mut self) -> bool {
        let spawn = |program: &str| {
            Command::new(program)
                .args([
                    "--port",
                    &self.port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ])
                .args(["--requirepass", self.password.unwrap_or_default()])
                .args(
                    self.replica_of
                        .map(|port| format!("--replicaof 127.0.0.1 {port}"))
                        .iter()
                        .flat_map(|text| text.split(' ')),
                )
                .args(self.secure.iter().flat_map(|(port, [certificate, key, authority])| {
                    let files = ["--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file"];
                    let files = files.into_iter().zip([certificate, key, authority]);
                    let files = files.flat_map(|(name, file)| [name.to_owned(), file.display().to_string()]);
                    let port = ["--tls-port".to_owned(), port.to_string()];
                    port.into_iter().chain(files).chain(["--tls-auth-clients".to_owned(), "no".to_owned()])
                }))
                .args(self.bus.map(node_settings).iter().flatten())
                .arg("--dir")
                .arg(self.folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
        };
        let child = PROGRAMS.into_iter().find_map(spawn);
        let mut child = child
            .expect("there is no redis-server or valkey-server: run scripts/test, it installs redis-server");
        let port = self.port;
        let up = until("the server comes up", || match child.try_wait().unwrap() {
            Some(_) => Some(false),
            None => answers(port).then_some(true),
        });
        self.child = up.then_some(child);
        up
    }

    /// Kills it.
    ///
    /// # Panics
    /// It cannot be ended.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Empties it while all clients stay connected.
    ///
    /// # Panics
    /// It cannot be reached.
    pub fn empty(&self) {
        self.order("FLUSHALL");
    }

    /// Lets it refuse everything that needs memory, or no longer.
    ///
    /// # Panics
    /// It cannot be reached.
    pub fn fill(&self, full: bool) {
        self.order(if full { "CONFIG SET maxmemory 1" } else { "CONFIG SET maxmemory 0" });
    }

    /// Sends it a command and returns what it answers, in one piece.
    ///
    /// # Panics
    /// It cannot be reached.
    #[must_use]
    pub fn ask(&self, words: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        // After QUIT it closes, so that the end of the answer is known.
        stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.trim_end_matches("+OK\r\n").to_owned()
    }

    /// Sends it a command that it answers with OK.
    ///
    /// # Panics
    /// It cannot be reached, or refuses it.
    pub fn order(&self, words: &str) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        if let Some(password) = self.password {
            stream.write_all(format!("AUTH {password}\r\n").as_bytes()).unwrap();
            stream.read_exact(&mut [0; 5]).unwrap();
        }
        stream.write_all(format!("{words}\r\n").as_bytes()).unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+OK\r\n", "{words}");
    }

    /// Pauses it: it accepts connections and never answers.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Resumes it.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap(), name);
    }
}

/// The second port is for the other nodes: without it, it would be the first and 10,000, which may be no port.
fn node_settings(bus: u16) -> Vec<String> {
    let bus = bus.to_string();
    let words = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "2000"];
    words.map(str::to_owned).to_vec()
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Whether the server there answers.
fn answers(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"+PONG\r\n" || &answer == b"-NOAUTH")
    };
    ask().unwrap_or(false)
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
