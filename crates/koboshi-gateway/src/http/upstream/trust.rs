//! The certificate authorities of TLS connections: those of the machine, and one that a provider's config names.
//!
//! The machine's list is the system's, or the file in `SSL_CERT_FILE`. Connections are shared only by providers with the same authorities.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use sha2::{Digest, Sha256};

/// Longer certificate files are refused.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A certificate authority that is trusted besides those of the machine.
#[derive(Clone)]
pub(crate) struct Trust {
    /// Of the file: the same certificates are the same trust.
    digest: [u8; 32],
    tls: Arc<ClientConfig>,
}

impl Trust {
    /// Reads the certificates in a file (PEM).
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let said = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(|error| said(&error))?.len();
        if length > MAX_BYTES {
            return Err(said(&"the file is too long for certificates"));
        }
        let text = std::fs::read(path).map_err(|error| said(&error))?;
        Self::of(&text).map_err(|error| said(&error))
    }

    fn of(pem: &[u8]) -> Result<Self, String> {
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("these are no certificates (PEM): {error}"))?;
        if certificates.is_empty() {
            return Err("there is no certificate in it (PEM, `-----BEGIN CERTIFICATE-----`)".to_owned());
        }
        let tls = tls_config(certificates).map_err(|error| error.to_string())?;
        Ok(Self { digest: Sha256::digest(pem).into(), tls })
    }

    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Trust {}

impl Hash for Trust {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust(..)")
    }
}

/// The usual TLS settings: the machine's authorities and these, HTTP/2 where the server has it.
pub(crate) fn tls_config(
    more: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(more, Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        // The API calls every verifier other than its own dangerous; this one asks the machine.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused_with_the_reason() {
        for wrong in ["", "hello", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            let error = Trust::of(wrong.as_bytes()).unwrap_err();
            assert!(error.contains("PEM"), "{error}");
        }
        let error = Trust::read(Path::new("/there/is/none.pem")).unwrap_err();
        assert!(error.starts_with("/there/is/none.pem: "), "{error}");
    }
}
