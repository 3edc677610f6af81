//! A connection that is cut after any byte, in either direction: the same conversation, asked for once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use koboshi_testkit::SessionClient;
use serde_json::json;

use crate::common::*;

const QUESTION: &str = "富士山の高さは? 🗻";

/// Which way is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

/// A relay for one connection that lets this many bytes through one way, and cuts both then.
struct Relay {
    address: SocketAddr,
    was_cut: Arc<AtomicBool>,
}

impl Relay {
    fn start(server: SocketAddr, way: Way, bytes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, was_cut) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let cut = Arc::clone(&was_cut);
        std::thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(server).unwrap();
            let limit = |other: Way| if way == other { bytes } else { usize::MAX };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (there, noted) = (limit(Way::ToServer), Arc::clone(&cut));
            std::thread::spawn(move || copy(from, to, there, &noted));
            copy(server, client, limit(Way::ToClient), &cut);
        });
        Self { address, was_cut }
    }
}

/// Copies this many bytes; then both sides are cut.
fn copy(mut from: TcpStream, mut to: TcpStream, mut left: usize, cut: &AtomicBool) {
    let mut buffer = [0; 4096];
    loop {
        if left == 0 {
            cut.store(true, Ordering::SeqCst);
            break;
        }
        let room = left.min(buffer.len());
        match from.read(&mut buffer[..room]) {
            Ok(count) if count > 0 && to.write_all(&buffer[..count]).is_ok() => left -= count,
            _ => break,
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// One conversation through a relay; what the client shows at its end, and whether it was cut.
fn conversation(stage: &Stage, way: Way, bytes: usize) -> (serde_json::Value, bool) {
    let relay = Relay::start(stage.gateway.address(), way, bytes);
    let direct = stage.gateway.address();
    let mut client = match SessionClient::try_begin(relay.address, "tab-1", &json!({})) {
        Ok(client) => client,
        Err(_) => SessionClient::begin(direct, "tab-1"),
    };
    client.chat("c-1", QUESTION);
    let is_done = |client: &SessionClient| client.transcript.messages.len() == 2;
    while !is_done(&client) {
        if client.next().is_err() {
            // What was not acknowledged is sent again, as the outbox of a page does.
            client.come_back_at(direct);
            client.chat("c-1", QUESTION);
        }
    }
    (json!(client.transcript.messages), relay.was_cut.load(Ordering::SeqCst))
}

fn a_cut_after_every_byte(way: Way) {
    let stage = Stage::of(&["one/ok"]);
    let (whole, _) = conversation(&stage, way, usize::MAX);
    let mut cuts = 0;
    for bytes in 0.. {
        stage.reset();
        let (shown, was_cut) = conversation(&stage, way, bytes);
        assert_eq!(shown, whole, "cut after {bytes} bytes {way:?}");
        assert_eq!(stage.calls().0, 1, "cut after {bytes} bytes {way:?}: the provider is asked once");
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn a_cut_after_every_byte_to_the_server_changes_nothing() {
    a_cut_after_every_byte(Way::ToServer);
}

#[test]
fn a_cut_after_every_byte_to_the_client_changes_nothing() {
    a_cut_after_every_byte(Way::ToClient);
}
