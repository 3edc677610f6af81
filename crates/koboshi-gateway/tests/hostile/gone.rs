//! Clients that go away, and what they leave behind.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use koboshi_testkit::until;

use crate::common::*;

/// By default nginx speaks HTTP/1.0 to its upstreams, and closes when its client is gone. Others say nothing of the connection, or reset it.
#[test]
fn a_client_of_the_old_protocol_that_goes_away_is_noticed() {
    for (connection, is_reset) in
        [("connection: close\r\n", false), ("", false), ("", true), ("connection: keep-alive\r\n", true)]
    {
        let stage = Stage::of(&["one/silence"]);
        let body = chat(false).to_string();
        let mut client = TcpStream::connect(stage.gateway.address()).unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.0\r\nhost: localhost\r\n{connection}content-type: application/json"
        );
        write!(client, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        until("it is on its way", || (stage.calls() == (1, 0)).then_some(()));
        if is_reset {
            rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        }
        drop(client);
        until(&format!("the provider is let go: {connection:?}, reset {is_reset}"), || {
            (stage.one.cancelled() == 1).then_some(())
        });
    }
}
