//! TLS for a test: an authority of its own, made when the test runs, and trusted only by clients that are configured for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// The names that a secure upstream answers to; the last does not exist and can only be reached through a proxy.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "provider.test"];

/// The protocols of a secure upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/2 with at most this many streams on a connection.
    Http2AtMost(u32),
}

/// The TLS settings of a secure upstream.
#[derive(Clone)]
pub(super) struct Secure {
    pub(super) tls: Arc<ServerConfig>,
    /// Streams on a connection.
    pub(super) streams: u32,
}

/// An authority that signs the certificates of upstreams.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its certificate, as files hold it.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes its certificate to a file in this folder.
    #[must_use]
    pub fn write_to(&self, folder: &Path) -> PathBuf {
        let path = folder.join("authority.pem");
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    /// Writes a certificate of this authority and its key to files in this folder.
    #[must_use]
    pub fn write_server_to(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
        // With the name of its authority it would look signed by itself.
        params.distinguished_name.push(DnType::CommonName, "server");
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let (certificate_file, key_file) = (folder.join("server.pem"), folder.join("server.key"));
        std::fs::write(&certificate_file, certificate).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        (certificate_file, key_file)
    }

    /// The settings of a server with a certificate of this authority.
    pub(super) fn server(&self, protocol: Protocol) -> Secure {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        config.alpn_protocols = vec![match protocol {
            Protocol::Http1 => b"http/1.1".to_vec(),
            _ => b"h2".to_vec(),
        }];
        let streams = if let Protocol::Http2AtMost(streams) = protocol { streams } else { 100 };
        Secure { tls: Arc::new(config), streams }
    }
}
