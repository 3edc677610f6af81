//! A small forward proxy: tunnels and plain requests, all to one upstream, whatever name was asked for.
//!
//! With it a test can use a provider's real host name without the network. It records its requests, and can refuse them.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A proxy on a free port of this machine. Its threads end with their connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState {
    heads: Mutex<Vec<String>>,
    refuses: AtomicBool,
    over: AtomicBool,
}

impl Proxy {
    /// A proxy that connects every host to this port.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = SharedState {
            heads: Mutex::default(),
            refuses: AtomicBool::new(false),
            over: AtomicBool::new(false),
        };
        let shared = Arc::new(shared);
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                if served.over.load(Ordering::SeqCst) {
                    return;
                }
                let served = Arc::clone(&served);
                // A side that closes its connection ends the other one too.
                std::thread::spawn(move || drop(serve(client, port, &served)));
            }
        });
        Self { address, shared }
    }

    /// Its address, as the environment variables want it, with a user and a password where some are given as `user:password`.
    #[must_use]
    pub fn url(&self, user: &str) -> String {
        let at = if user.is_empty() { "" } else { "@" };
        format!("http://{user}{at}{}", self.address)
    }

    /// The heads of its requests, in order.
    #[must_use]
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap().clone()
    }

    /// Refuses every request from now on.
    pub fn refuse(&self) {
        self.shared.refuses.store(true, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The accepting thread checks the flag at each connection.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut client: TcpStream, port: u16, shared: &SharedState) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let tunnel = text.starts_with("CONNECT ");
    shared.heads.lock().unwrap().push(text);
    if shared.refuses.load(Ordering::SeqCst) {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    }
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    if tunnel {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        server.write_all(&head)?;
    }
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let copied = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    copied.map(drop)
}
