//! Opens connections to providers: direct or through a proxy, plain or with TLS.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderValue;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use koboshi::fault::{Fault, Sub};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::connection_fault::{
    NoLocalPort, Stage, fault_of, is_shortage_error, proxy_refused, timed_out, unresolved,
};
use super::origin::Origin;
use super::race::race;
use super::trust::tls_config;

/// A proxy's answer to CONNECT is short.
const MAX_PROXY_ANSWER: usize = 8 * 1024;

/// A connection with or without TLS.
pub(crate) enum Wire {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// A new connection and its protocol.
pub(crate) struct NewConnection {
    pub(crate) wire: Wire,
    pub(crate) http2: bool,
    /// The proxy that forwards the requests.
    pub(crate) via: Option<Arc<ForwardProxy>>,
}

/// A proxy that forwards plain requests: it needs absolute addresses, and may need credentials.
#[derive(Debug, Clone)]
pub(crate) struct ForwardProxy {
    auth: Option<HeaderValue>,
}

impl ForwardProxy {
    /// The credentials for it.
    pub(crate) fn auth(&self) -> Option<&HeaderValue> {
        self.auth.as_ref()
    }
}

/// Makes connections.
pub(crate) struct Connector {
    /// Made when first needed: a reload may bring the first provider with TLS.
    tls: OnceLock<Arc<ClientConfig>>,
    proxies: Arc<Matcher>,
}

impl Connector {
    pub(crate) fn new(tls: Option<Arc<ClientConfig>>, proxies: Arc<Matcher>) -> Self {
        Self { tls: tls.map_or_else(OnceLock::new, OnceLock::from), proxies }
    }

    /// Opens a connection within this time.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        limit: Duration,
    ) -> Result<NewConnection, Box<Fault>> {
        let made = timeout(limit, self.make(origin)).await;
        made.unwrap_or_else(|_| Err(timed_out(Sub::Connect)))
    }

    async fn make(&self, origin: &Origin) -> Result<NewConnection, Box<Fault>> {
        let proxy = self.proxy_for(origin);
        let tcp = match &proxy {
            Some(proxy) => {
                let (host, port) = place_of(proxy)?;
                tcp(host, port).await?
            }
            None => tcp(origin.host(), origin.port()).await?,
        };
        if !origin.is_secure() {
            let via = proxy.map(|proxy| Arc::new(ForwardProxy { auth: proxy.basic_auth().cloned() }));
            return Ok(NewConnection { wire: Wire::Plain(tcp), http2: false, via });
        }
        let tcp = match &proxy {
            Some(proxy) => tunnel(tcp, origin, proxy).await?,
            None => tcp,
        };
        let secure = self.secure(tcp, origin).await?;
        let http2 = secure.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(NewConnection { wire: Wire::Secure(Box::new(secure)), http2, via: None })
    }

    /// The proxy for an address; never for this machine itself.
    fn proxy_for(&self, origin: &Origin) -> Option<Intercept> {
        if origin.is_loopback() {
            return None;
        }
        self.proxies.intercept(&origin.absolute(&origin.path("/")?)?)
    }

    fn tls(&self, origin: &Origin) -> io::Result<Arc<ClientConfig>> {
        if let Some(trust) = origin.trust() {
            return Ok(trust.tls());
        }
        if let Some(known) = self.tls.get() {
            return Ok(Arc::clone(known));
        }
        let made = tls_config([])
            .map_err(|error| io::Error::other(format!("TLS cannot be set up on this machine: {error}")))?;
        Ok(Arc::clone(self.tls.get_or_init(|| made)))
    }

    async fn secure(&self, tcp: TcpStream, origin: &Origin) -> Result<TlsStream<TcpStream>, Box<Fault>> {
        let config = self.tls(origin).map_err(|error| fault_of(&error, Stage::Connect))?;
        let name = ServerName::try_from(origin.host().to_owned())
            .map_err(|error| fault_of(&io::Error::other(error), Stage::Connect))?;
        let made = TlsConnector::from(config).connect(name, tcp).await;
        made.map_err(|error| fault_of(&error, Stage::Connect))
    }
}

/// Host and port of a proxy. Only proxies with plain HTTP are supported.
fn place_of(proxy: &Intercept) -> Result<(&str, u16), Box<Fault>> {
    let address = proxy.uri();
    match (address.scheme_str(), address.host()) {
        (Some("http") | None, Some(host)) => Ok((host, address.port_u16().unwrap_or(80))),
        (Some(scheme), _) => Err(proxy_refused(&format!(
            "the address of the proxy begins with {scheme}://, only http:// can be used"
        ))),
        _ => Err(proxy_refused("the address of the proxy names no host")),
    }
}

/// Connects to whichever address of the host answers first.
async fn tcp(host: &str, port: u16) -> Result<TcpStream, Box<Fault>> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| match local_shortage() {
        Some(lack) => fault_of(&lack, Stage::Connect),
        None => unresolved(&error),
    })?;
    let stream = race(found.collect(), dial).await.map_err(|error| {
        let is_unresolved = error.kind() == io::ErrorKind::NotFound;
        if is_unresolved { unresolved(&error) } else { fault_of(&error, Stage::Connect) }
    })?;
    // Without it small frames wait for acknowledgements; a connection that refuses it still works.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(address).await.map_err(|cause| match cause.kind() {
        // A machine without an address of the family reports the same error.
        io::ErrorKind::AddrNotAvailable if has_route(address) => {
            io::Error::other(NoLocalPort { to: address, cause })
        }
        _ => cause,
    })
}

/// Whether this machine has an address from which that one can be reached. Sends nothing.
fn has_route(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0)).is_ok_and(|socket| socket.connect(address).is_ok())
}

/// Why this machine cannot open a socket now: a resolver needs one too, and does not report it.
fn local_shortage() -> Option<io::Error> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).err().filter(is_shortage_error)
}

/// Asks a proxy for a tunnel.
async fn tunnel(mut tcp: TcpStream, origin: &Origin, proxy: &Intercept) -> Result<TcpStream, Box<Fault>> {
    let (host, port) = (origin.host(), origin.port());
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut ask = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
    if let Some(auth) = proxy.basic_auth().and_then(|auth| auth.to_str().ok()) {
        ask.push_str(&format!("Proxy-Authorization: {auth}\r\n"));
    }
    ask.push_str("\r\n");
    let broke = |error: io::Error| fault_of(&error, Stage::Connect);
    tcp.write_all(ask.as_bytes()).await.map_err(broke)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_PROXY_ANSWER {
            return Err(proxy_refused("the proxy's answer is too long"));
        }
        answer.push(tcp.read_u8().await.map_err(broke)?);
    }
    let line =
        String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    match line.split_whitespace().nth(1) {
        Some("200") => Ok(tcp),
        _ => Err(proxy_refused(&line)),
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_port_differs_from_a_missing_route() {
        assert!(has_route("127.0.0.1:9".parse().unwrap()));
        // The broadcast address, which no socket may use by default.
        assert!(!has_route("255.255.255.255:9".parse().unwrap()));
        assert!(local_shortage().is_none());
    }

    #[test]
    fn an_unsupported_proxy_is_named() {
        let target = "https://provider.test/v1".parse().unwrap();
        let place = |address: &str| {
            let proxy = Matcher::builder().all(address).build().intercept(&target).unwrap();
            place_of(&proxy).map(|(host, port)| (host.to_owned(), port))
        };
        assert_eq!(place("http://proxy.test:3128").unwrap(), ("proxy.test".to_owned(), 3128));
        assert_eq!(place("proxy.test").unwrap(), ("proxy.test".to_owned(), 80));
        for other in ["https://proxy.test", "socks5://proxy.test:1080"] {
            let fault = place(other).unwrap_err();
            assert_eq!(fault.sub, Some(Sub::Proxy));
            assert!(fault.detail.contains("only http://"), "{}", fault.detail);
        }
    }
}
