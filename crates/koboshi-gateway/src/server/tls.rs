//! The certificate that clients see: read from the files of `serve.tls`, and read again when they change.
//!
//! A thread of its own checks the files, because a disk may hang. What cannot be read is logged and the certificate in use stays: a renewal
//! replaces two files one after the other, and in between they do not match.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use koboshi_config::gateway::TlsConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, crypto};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::observe::log::{Level, Log};

/// HTTP/2, in the handshake.
pub(super) const HTTP2: &[u8] = b"h2";
/// HTTP/1.1, in the handshake.
const HTTP1: &[u8] = b"http/1.1";
/// How often the files are checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// Longer files are refused.
const MAX_BYTES: u64 = 1024 * 1024;

/// The certificate in use, with its key.
pub(crate) struct Certificate {
    files: Mutex<TlsConfig>,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

/// What a handshake uses.
struct Current(ArcSwap<CertifiedKey>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current(..)")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificate {
    /// Reads the files; none where clients use plain HTTP.
    ///
    /// # Errors
    /// Which of them cannot be used, and why.
    pub(crate) fn of(tls: &TlsConfig) -> Result<Option<Arc<Self>>, String> {
        let Some(certified) = read(tls)? else { return Ok(None) };
        let current = Arc::new(Current(ArcSwap::from_pointee(certified)));
        let provider = Arc::new(ring::default_provider());
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(&current) as _;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("serve.tls: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Some(Arc::new(Self { files: Mutex::new(tls.clone()), current, config: Arc::new(config) })))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Uses these files from now on.
    ///
    /// # Errors
    /// They cannot be used; those before stay in use.
    pub(crate) fn use_files(&self, tls: &TlsConfig) -> Result<(), String> {
        if let Some(certified) = read(tls)? {
            self.current.0.store(Arc::new(certified));
            *self.files() = tls.clone();
        }
        Ok(())
    }

    fn files(&self) -> std::sync::MutexGuard<'_, TlsConfig> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that checks the files. It ends when this is dropped.
pub(crate) struct CertificateWatch {
    _stop: SyncSender<()>,
}

impl CertificateWatch {
    pub(crate) fn start(certificate: Arc<Certificate>, log: Log) -> io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(0);
        let seen = stamp(&certificate.files());
        let mut watch = Watch { certificate, log, seen, trouble: None };
        std::thread::Builder::new().name("koboshi-certificate".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(CHECK_EVERY) {
                watch.check();
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

struct Watch {
    certificate: Arc<Certificate>,
    log: Log,
    seen: Stamp,
    /// What was logged last, while the files cannot be used.
    trouble: Option<String>,
}

impl Watch {
    fn check(&mut self) {
        let files = self.certificate.files().clone();
        let now = stamp(&files);
        if now == self.seen && self.trouble.is_none() {
            return;
        }
        self.seen = now;
        match self.certificate.use_files(&files) {
            Ok(()) => {
                self.trouble = None;
                self.log.line(Level::Info, "a new certificate is in use", &json!({}));
            }
            Err(why) if self.trouble.as_ref() == Some(&why) => {}
            Err(why) => {
                let text = "the certificate cannot be read again: the one before stays in use";
                self.log.line(Level::Warn, text, &json!({"why": why}));
                self.trouble = Some(why);
            }
        }
    }
}

/// What changes with the content of the files.
type Stamp = [Option<(SystemTime, u64)>; 2];

fn stamp(tls: &TlsConfig) -> Stamp {
    let of = |path: Option<&Path>| {
        let facts = std::fs::metadata(path?).ok()?;
        Some((facts.modified().ok()?, facts.len()))
    };
    [of(tls.certificate.as_deref()), of(tls.key.as_deref())]
}

/// Certificate and key, where both are named.
fn read(tls: &TlsConfig) -> Result<Option<CertifiedKey>, String> {
    let Some((certificate, key)) = tls.files() else { return Ok(None) };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&bytes("serve.tls.certificate", certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|error| wrong("serve.tls.certificate", certificate, &error))?;
    if chain.is_empty() {
        let why = "there is no certificate in it (PEM, `-----BEGIN CERTIFICATE-----`)";
        return Err(wrong("serve.tls.certificate", certificate, &why));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes("serve.tls.key", key)?)
        .map_err(|_| wrong("serve.tls.key", key, &"there is no private key in it (PEM, not encrypted)"))?;
    let provider: crypto::CryptoProvider = ring::default_provider();
    let certified = CertifiedKey::from_der(chain, private, &provider);
    let certified = certified.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            wrong("serve.tls.key", key, &format!("it is not the key of {}", certificate.display()))
        }
        rustls::Error::InvalidCertificate(_) => wrong("serve.tls.certificate", certificate, &error),
        _ => wrong("serve.tls.key", key, &error),
    })?;
    Ok(Some(certified))
}

/// The content of a file. Private keys are never part of an error.
fn bytes(name: &str, path: &Path) -> Result<Vec<u8>, String> {
    let length = std::fs::metadata(path).map_err(|error| wrong(name, path, &error))?.len();
    if length > MAX_BYTES {
        return Err(wrong(name, path, &"the file is too long"));
    }
    std::fs::read(path).map_err(|error| wrong(name, path, &error))
}

fn wrong(name: &str, path: &Path, why: &dyn fmt::Display) -> String {
    format!("{name}: {}: {why}", path.display())
}
