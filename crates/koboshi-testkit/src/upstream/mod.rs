//! A provider on a real socket: plays what `koboshi-sim` would in every dialect, breaks anywhere, and counts what it is asked.
//!
//! It has a thread and a port of its own, and its HTTP is written by hand, because a server library would never reset a
//! connection in the middle of a chunk. An attempt is counted when its request has come in whole. Plays that have no
//! end (silence, a stall) last until the client goes.

mod count;
mod http;
mod serve;
mod streams;
mod tls;

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use bytes::Bytes;
use koboshi_sim::{Ask, Play};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub use self::count::ReceivedRequest;
use self::count::SharedState;
use self::serve::{Command, serve};
use self::streams::Shutdown;
use self::tls::Secure;
pub use self::tls::{Authority, Protocol};

/// A provider on a free port of this machine, gone with the test.
#[derive(Debug)]
pub struct Upstream {
    port: u16,
    secure: bool,
    shared: Arc<SharedState>,
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Starts one.
    ///
    /// # Panics
    /// There is no free port or no thread.
    #[must_use]
    pub fn start() -> Self {
        Self::start_as(None)
    }

    /// Starts one that is reached by TLS, with a certificate of this authority.
    ///
    /// # Panics
    /// There is no free port or no thread.
    #[must_use]
    pub fn start_secure(authority: &Authority, protocol: Protocol) -> Self {
        Self::start_as(Some(authority.server(protocol)))
    }

    fn start_as(tls: Option<Secure>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(SharedState::new());
        let (commands, received) = unbounded_channel();
        let (served, secure) = (Arc::clone(&shared), tls.is_some());
        // Made before it is returned: a test may take all descriptors then.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = std::thread::Builder::new()
            .name("upstream".to_owned())
            .spawn(move || runtime.block_on(serve(listener, tls, served, received)))
            .unwrap();
        Self { port, secure, shared, commands, thread: Some(thread) }
    }

    /// Its base address, `http://127.0.0.1:…/v1`, or with `https`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Its address without a path: every dialect has its own path (`/v1/messages`, `/v1beta/models/…`), whatever stands before it.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How often this model, parameters included, was asked.
    #[must_use]
    pub fn calls(&self, model: &str) -> u64 {
        self.shared.lock().calls.get(model).copied().unwrap_or(0)
    }

    /// How often any model was asked.
    #[must_use]
    pub fn all_calls(&self) -> u64 {
        self.shared.lock().calls.values().sum()
    }

    /// What was asked, in order; the last hundred thousand.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.lock().requests.iter().cloned().collect()
    }

    /// How many connections are open.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        self.shared.open()
    }

    /// How many connections wait for a request.
    #[must_use]
    pub fn idle_connections(&self) -> u64 {
        self.shared.idle().len() as u64
    }

    /// How many plays the client left before their end; a play without an end is always left.
    #[must_use]
    pub fn cancelled(&self) -> u64 {
        self.shared.lock().cancelled
    }

    /// Resets counts and requests, and with them everything that depends on a count (`times=1`, `flap`).
    pub fn reset_counts(&self) {
        self.shared.reset();
    }

    /// Plays something else for this model: the sim's play with another header, or a play of one's own.
    pub fn set(&self, model: &str, play: impl Fn(&Ask<'_>) -> Play + Send + Sync + 'static) {
        self.shared.lock().plays.insert(model.to_owned(), Arc::new(play));
    }

    /// Stops listening: new connections are refused, open ones stay.
    pub fn stop_listening(&self) {
        self.run_command(Command::StopListening);
    }

    /// Listens on the same port again.
    pub fn listen_again(&self) {
        self.run_command(Command::ListenAgain);
    }

    /// Closes every connection that waits for a request, as servers do after a while.
    pub fn stale(&self) {
        self.run_command(Command::Stale);
    }

    /// Connections that wait for a request now are reset when one arrives, unread and uncounted: the race that a
    /// client with a pool loses now and then. Behind TLS they are closed without
    /// `close_notify`, and on HTTP/2 the stream is refused.
    pub fn stale_on_use(&self) {
        self.run_command(Command::StaleOnUse);
    }

    /// Sends these bytes on every connection that waits for a request, without a request: what a hostile or a
    /// confused server does. They have arrived when this returns. HTTP/2 knows no such thing.
    pub fn send_unsolicited(&self, bytes: &str) {
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        self.run_command(|done| Command::SpeakUnasked(bytes, done));
    }

    /// Sends GOAWAY on every HTTP/2 connection: no new streams, those that run may end.
    pub fn go_away(&self) {
        self.run_command(|done| Command::Shutdown(Shutdown::Graceful, done));
    }

    /// Ends every HTTP/2 connection at once, with an error.
    pub fn go_away_at_once(&self) {
        self.run_command(|done| Command::Shutdown(Shutdown::Abrupt, done));
    }

    /// Gives a command and waits until it is done.
    fn run_command(&self, command: impl FnOnce(mpsc::Sender<()>) -> Command) {
        let (done, heard) = mpsc::channel();
        assert!(self.commands.send(command(done)).is_ok(), "the upstream's thread has died");
        heard.recv().expect("the upstream's thread has died");
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::End);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the upstream's thread has died");
        }
    }
}
