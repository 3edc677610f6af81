//! Clients that go away, and what they leave behind.

use std::io::Write;
use std::net::TcpStream;

use koboshi_testkit::until;

use crate::common::*;

/// nginx speaks HTTP/1.0 to what is behind it unless it is told otherwise, and closes when its client is gone.
#[test]
fn a_client_of_the_old_protocol_that_goes_away_is_noticed() {
    let stage = Stage::of(&["one/silence"]);
    let body = chat(false).to_string();
    let mut client = TcpStream::connect(stage.gateway.address()).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.0\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
    write!(client, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    until("it is on its way", || (stage.calls() == (1, 0)).then_some(()));
    drop(client);
    until("the provider is let go", || (stage.one.cancelled() == 1).then_some(()));
}
