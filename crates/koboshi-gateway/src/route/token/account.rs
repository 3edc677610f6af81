//! A service account of Google: its key file, and the exchange of a signed claim for a token.
//!
//! The claim is signed with the TLS library's own RSA (RS256), so no other cryptography is needed. The private key stays in this module.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::uri::PathAndQuery;
use koboshi::fault::{Fault, Kind};
use koboshi_store::{Clock, SystemClock};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde::Deserialize;
use serde_json::json;

use super::{Grant, MAX_BYTES, fault};
use crate::http::upstream::{FormClient, Origin};
use crate::route::auth::fingerprint;

/// Longer key files are refused.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// The token endpoint if the file does not name one.
const DEFAULT_ADDRESS: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// How long the claim is valid: the longest that is accepted.
const CLAIM_SECONDS: i64 = 3600;

/// A service account.
pub(crate) struct Account {
    id: String,
    email: String,
    key_id: Option<String>,
    key: Arc<dyn SigningKey>,
    /// The project that it belongs to.
    project: Option<String>,
    /// The token endpoint.
    address: String,
    origin: Origin,
    path: PathAndQuery,
}

#[derive(Deserialize)]
struct KeyFile {
    #[serde(rename = "type")]
    kind: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    project_id: Option<String>,
    token_uri: Option<String>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account(..)")
    }
}

impl Account {
    /// Reads a key file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let said = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(|error| said(&error))?.len();
        if length > MAX_FILE_BYTES {
            return Err(said(&"the file is too long for the key of a service account"));
        }
        let text = std::fs::read(path).map_err(|error| said(&error))?;
        Self::parse(&text).map_err(|error| said(&error))
    }

    /// Parses a key file. Its errors repeat nothing of the file.
    fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let file: KeyFile =
            serde_json::from_slice(text).map_err(|_| "this is no key file of a service account (JSON)")?;
        match file.kind.as_deref() {
            Some("service_account") => {}
            Some("authorized_user") => {
                return Err(
                    "these are the credentials of a person; write `token_command: [gcloud, auth, application-default, print-access-token]` in its place",
                );
            }
            _ => return Err("its `type` is not `service_account`"),
        }
        let email = file.client_email.ok_or("it has no `client_email`")?;
        let pem = file.private_key.ok_or("it has no `private_key`")?;
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "its `private_key` is no private key (PEM)")?;
        let key = rustls::crypto::ring::sign::any_supported_type(&der)
            .map_err(|_| "its `private_key` cannot be used")?;
        key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).ok_or("its `private_key` is no RSA key")?;
        let address = file.token_uri.unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        let origin = Origin::parse(&address).map_err(|_| "its `token_uri` is no address")?;
        if !origin.is_secure() && !origin.is_loopback() {
            return Err("its `token_uri` must begin with `https://`");
        }
        let path = origin.path("").ok_or("its `token_uri` makes no path")?;
        let id = fingerprint(&format!("{email}\n{address}\n{pem}"));
        Ok(Self {
            id,
            email,
            key_id: file.private_key_id,
            key,
            project: file.project_id,
            address,
            origin,
            path,
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The project that it belongs to.
    pub(crate) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Exchanges a claim for a token.
    pub(super) async fn ask(&self, form_client: &FormClient) -> Result<Grant, Box<Fault>> {
        let claim = self
            .claim(SystemClock.wall().as_second())
            .ok_or_else(|| fault(Kind::Unauthorized, "the claim of the service account cannot be signed"))?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("assertion", &claim)
            .finish();
        let sent = form_client.send_form(&self.origin, &self.path, form.into(), MAX_BYTES).await;
        let (status, body) = sent.map_err(|mut fault| {
            fault.detail = format!("the token endpoint: {}", fault.detail);
            fault
        })?;
        if status.is_success() {
            return Grant::of_json(&body)
                .ok_or_else(|| fault(Kind::Unavailable, "the token endpoint gave no token"));
        }
        let kind = match status.as_u16() {
            408 | 429 | 500.. => Kind::Unavailable,
            _ => Kind::Unauthorized,
        };
        let mut refused =
            fault(kind, &format!("the token endpoint says {}{}", status.as_u16(), reason(&body)));
        refused.status = Some(status.as_u16());
        Err(refused)
    }

    /// The signed claim.
    fn claim(&self, now: i64) -> Option<String> {
        let head = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.address,
            "iat": now,
            "exp": now.saturating_add(CLAIM_SECONDS),
        });
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        let text =
            format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signer = self.key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?;
        let signature = signer.sign(text.as_bytes()).ok()?;
        Some(format!("{text}.{}", encode(&signature)))
    }
}

/// The reason of a refusal: `invalid_grant: the account is disabled`.
fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: Option<String>,
        error_description: Option<String>,
    }
    let Ok(said) = serde_json::from_slice::<Refusal>(body) else { return String::new() };
    let words: Vec<String> = [said.error, said.error_description].into_iter().flatten().collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_wrong_file_repeats_no_secret() {
        let pem = "-----BEGIN PRIVATE KEY-----\\naHVudGVyMg==\\n-----END PRIVATE KEY-----\\n";
        for (text, wanted) in [
            ("hunter2", "no key file"),
            ("{}", "`type`"),
            (r#"{"type": "authorized_user", "refresh_token": "hunter2"}"#, "token_command"),
            (r#"{"type": "service_account"}"#, "client_email"),
            (r#"{"type": "service_account", "client_email": "a"}"#, "private_key"),
            (r#"{"type": "service_account", "client_email": "a", "private_key": "hunter2"}"#, "PEM"),
            (
                &format!(r#"{{"type": "service_account", "client_email": "a", "private_key": "{pem}"}}"#),
                "cannot be used",
            ),
        ] {
            let error = Account::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(wanted) && !error.contains("hunter2"), "{text}: {error}");
        }
        let error = Account::read(Path::new("/there/is/none.json")).unwrap_err();
        assert!(error.starts_with("/there/is/none.json: "), "{error}");
    }

    /// A fixed key, which protects nothing: ring signs with RSA keys and makes none.
    fn rsa_key() -> rcgen::KeyPair {
        rcgen::KeyPair::from_pem_and_sign_algo(include_str!("rsa-for-tests.pem"), &rcgen::PKCS_RSA_SHA256)
            .unwrap()
    }

    #[test]
    fn a_claim_names_the_account_and_is_signed() {
        let key = rsa_key();
        let file = json!({
            "type": "service_account",
            "client_email": "me@p.iam.gserviceaccount.com",
            "private_key": key.serialize_pem(),
            "private_key_id": "k1",
            "project_id": "p",
        });
        let account = Account::parse(file.to_string().as_bytes()).unwrap();
        assert_eq!((account.project(), account.origin.to_string().as_str()), (Some("p"), DEFAULT_ADDRESS));
        let claim = account.claim(1_000).unwrap();
        let (text, signature) = claim.rsplit_once('.').unwrap();
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let (head, claims) = text.split_once('.').unwrap();
        let read = |part: &str| serde_json::from_slice::<serde_json::Value>(&decode(part)).unwrap();
        assert_eq!(read(head), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
        let wanted = json!({
            "iss": "me@p.iam.gserviceaccount.com",
            "scope": SCOPE,
            "aud": DEFAULT_ADDRESS,
            "iat": 1000,
            "exp": 4600,
        });
        assert_eq!(read(claims), wanted);
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let (_, verifiers) = algorithms
            .mapping
            .iter()
            .find(|(scheme, _)| *scheme == SignatureScheme::RSA_PKCS1_SHA256)
            .unwrap();
        let verified =
            verifiers[0].verify_signature(key.public_key_raw(), text.as_bytes(), &decode(signature));
        assert!(verified.is_ok(), "the endpoint would refuse it");
    }

    #[test]
    fn a_claim_goes_out_secured() {
        let key = rsa_key();
        let at = |address: &str| {
            let file = json!({
                "type": "service_account", "client_email": "a", "private_key": key.serialize_pem(),
                "token_uri": address,
            });
            Account::parse(file.to_string().as_bytes()).map(|account| account.path.to_string())
        };
        assert_eq!(at("https://h/a/token"), Ok("/a/token".to_owned()));
        assert_eq!(at("http://127.0.0.1:1/token"), Ok("/token".to_owned()));
        assert_eq!(at("http://h/token"), Err("its `token_uri` must begin with `https://`"));
        let curve = rcgen::KeyPair::generate().unwrap();
        let file =
            json!({"type": "service_account", "client_email": "a", "private_key": curve.serialize_pem()});
        let error = Account::parse(file.to_string().as_bytes()).unwrap_err();
        assert!(error.contains("RSA"), "{error}");
    }

    #[test]
    fn a_refusal_has_the_endpoints_own_reason() {
        let body = br#"{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}"#;
        assert_eq!(reason(body), ": invalid_grant: Invalid JWT Signature.");
        assert_eq!(reason(b"<html>"), "");
    }
}
