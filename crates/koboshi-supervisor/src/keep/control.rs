//! The local socket of a supervisor: a request is one line of JSON, and so is the answer.
//!
//! Only its user can open the socket (0600, in a folder of 0700). A slow caller loses its connection.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the socket in the folder of runs.
pub const SOCKET: &str = "supervisor.sock";
/// Longer orders are refused.
const MAX_ORDER_BYTES: u64 = 64 * 1024;
/// How long a caller may take to send its order.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a supervisor may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a supervisor is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What.
    pub action: Action,
    /// With which agent: `agent/project`, `agent` for all of its projects; none for all.
    #[serde(default)]
    pub agent: Option<String>,
    /// The one who asks notes it in the journal, with more than is known here.
    #[serde(default)]
    pub is_noted: bool,
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Tell what runs.
    Status,
    /// Start it if it is not running; a stopped one is wanted again.
    Start,
    /// Stop it, and do not start it again before a `Start`.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Read the config again, check it, and use it.
    Reload,
}

impl Order {
    /// An order that the supervisor notes in the journal.
    #[must_use]
    pub const fn new(action: Action, agent: Option<String>) -> Self {
        Self { action, agent, is_noted: false }
    }
}

impl Action {
    /// Its name in the journal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
        }
    }
}

pub(super) struct Control {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens. The caller holds the lock of the folder, so an existing socket was left by a dead supervisor.
    pub(super) fn listen(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path })
    }

    /// Answers those who ask.
    pub(super) fn serve(&self, mut answer: impl FnMut(&Order) -> Value) {
        while let Ok((stream, _)) = self.listener.accept() {
            // A broken caller does not concern the supervisor.
            let _ = one(&stream, &mut answer);
        }
    }
}

fn one(stream: &UnixStream, answer: &mut impl FnMut(&Order) -> Value) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ORDER_BYTES)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(order) => answer(&order),
        Err(error) => serde_json::json!({"error": error.to_string()}),
    };
    let mut stream = stream;
    writeln!(stream, "{answer}")
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the supervisor whose runs are in this folder; none if there is none.
///
/// # Errors
/// It does not answer.
pub fn ask(runs: &Path, order: &Order) -> io::Result<Option<Value>> {
    let mut stream = match UnixStream::connect(runs.join(SOCKET)) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    writeln!(stream, "{}", serde_json::to_string(order)?)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(Some(serde_json::from_str(&answer)?))
}
