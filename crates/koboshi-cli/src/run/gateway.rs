//! Which gateway a command is pointed at.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use koboshi_config::Config;

/// A gateway of this machine answers sooner, or is not there.
const PATIENCE: Duration = Duration::from_millis(500);

/// The address of the gateway, if there is one to use.
pub(crate) fn choose(asked: &str, config: &Config) -> Option<String> {
    match asked {
        "off" => None,
        "auto" => {
            // A command that has no key of the gateway's would be refused by it.
            let address = reachable(config.serve.listen);
            (config.keys.is_empty() && answers(address)).then(|| format!("http://{address}"))
        }
        address => Some(address.trim_end_matches('/').trim_end_matches("/v1").to_owned()),
    }
}

/// One that listens everywhere is reached on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Whether a Koboshi gateway is there.
fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET / HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\nconnection: close\r\n\r\n"
        )?;
        let mut said = Vec::new();
        stream.take(16 * 1024).read_to_end(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    ask().is_ok_and(|said| said.starts_with("HTTP/1.1 200") && said.contains("Koboshi"))
}
