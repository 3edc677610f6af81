//! The client of the admin API (`/koboshi/…`): queries a running gateway and sends it orders, from another process.
//!
//! It blocks, and is made for a command that asks once. The admin key is sent as a bearer token and appears in no message. The caller
//! interprets the answers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request};
use koboshi::redact::Redactor;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::http::upstream::one_shot::{ConnectFailure, OneShotError};
use crate::http::upstream::{OneShotClient, USER_AGENT_VALUE};

/// How long a gateway may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longer answers are refused.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// How much of a gateway's error message is shown.
const MAX_MESSAGE: usize = 500;

/// A gateway that is queried over the network.
pub struct Remote {
    client: OneShotClient,
    address: String,
    key: Option<HeaderValue>,
    /// The language that its answers are to be in.
    language: Option<&'static str>,
    runtime: Runtime,
}

/// Why a gateway did not answer or obey.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address is invalid.
    #[error("{0}")]
    Address(String),
    /// The key cannot be sent.
    #[error("the admin key must be printable text without line breaks")]
    Key,
    /// There was no answer.
    #[error("cannot reach the gateway at {0}: {1}")]
    Away(String, String),
    /// The connection was refused.
    #[error(
        "cannot reach the gateway at {0}: nothing listens there. Is `koboshi serve` running? If it listens elsewhere, name its address with --url \
         (or KOBOSHI_URL); `koboshi serve` prints it when it starts"
    )]
    Refused(String),
    /// The caller used TLS and the gateway does not.
    #[error("cannot reach the gateway at {0}: it speaks plain HTTP, not TLS. Ask it with --url {1}")]
    Plain(String, String),
    /// It wants the admin key; what it said.
    #[error(
        "the gateway at {0} refused: {1} (This command reads the admin key from KOBOSHI_ADMIN_KEY, or from a file that --admin-key-file names; \
         none was sent.)"
    )]
    NoKey(String, String),
    /// It does not take this admin key; what it said.
    #[error("the gateway at {0} does not accept this admin key: {1}")]
    WrongKey(String, String),
    /// There is no such interface.
    #[error("{0} is not a Koboshi gateway, or an older one: it does not know {1}")]
    Unknown(String, String),
    /// It refuses the request.
    #[error("the gateway at {0} answered {1}: {2}")]
    Denied(String, u16, String),
}

impl Remote {
    /// The gateway at this address, such as `http://127.0.0.1:4141`, with or without the `/v1` of a client's address.
    ///
    /// # Errors
    /// The address or the key cannot be used.
    pub fn new(address: &str, key: Option<&str>) -> Result<Self, RemoteError> {
        let bare = address.trim_end_matches('/');
        let bare = bare.strip_suffix("/v1").unwrap_or(bare).trim_end_matches('/');
        let whole = if bare.contains("://") { bare.to_owned() } else { format!("http://{bare}") };
        let client = OneShotClient::at(&whole, MAX_ANSWER_BYTES).map_err(|_| {
            RemoteError::Address(format!(
                "{:?} is not the address of a gateway: write it like http://127.0.0.1:4141",
                Redactor::new().excerpt(address, MAX_MESSAGE)
            ))
        })?;
        let key = key.map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| RemoteError::Key)?;
            value.set_sensitive(true);
            Ok(value)
        });
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RemoteError::Away(whole.clone(), error.to_string()))?;
        Ok(Self { client, address: whole, key: key.transpose()?, language: None, runtime })
    }

    /// The same, and what it says is to be in this language: a tag such as `ja`.
    #[must_use]
    pub fn in_language(mut self, tag: &'static str) -> Self {
        self.language = Some(tag);
        self
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Queries.
    ///
    /// # Errors
    /// It cannot be reached or refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        self.ask(Method::GET, path, Bytes::new())
    }

    /// Sends an order.
    ///
    /// # Errors
    /// It cannot be reached or refuses.
    pub fn post<T: DeserializeOwned>(&self, path: &str, order: &Value) -> Result<T, RemoteError> {
        self.ask(Method::POST, path, order.to_string().into())
    }

    fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<T, RemoteError> {
        let away = |why: String| RemoteError::Away(self.address.clone(), why);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        let whole = self.client.origin.path(path).and_then(|path| self.client.origin.absolute(&path));
        *request.uri_mut() = whole.ok_or_else(|| away("its address cannot be written".to_owned()))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, USER_AGENT_VALUE.clone());
        if let Some(tag) = self.language {
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(tag));
        }
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let answered =
            self.runtime.block_on(async { timeout(ANSWER_TIMEOUT, self.client.send(request)).await });
        let answer = answered
            .map_err(|_| away(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())))?
            .map_err(|error| self.unanswered(&error))?;
        let (status, body) = (answer.status().as_u16(), answer.into_body());
        match status {
            200 => serde_json::from_slice(&body).map_err(|_| self.unknown(path)),
            401 => Err(self.unauthorized(&body, path)),
            _ => Err(self.refused(status, &body, path)),
        }
    }

    /// Why there was no answer, with what to do where that is known.
    fn unanswered(&self, error: &OneShotError) -> RemoteError {
        let address = self.address.clone();
        match error.downcast_ref::<ConnectFailure>() {
            Some(failed) if failed.is_refused() => RemoteError::Refused(address),
            Some(failed) if failed.is_plain() => {
                let plain = address.replacen("https://", "http://", 1);
                RemoteError::Plain(address, plain)
            }
            _ => RemoteError::Away(address, error.to_string()),
        }
    }

    fn unknown(&self, path: &str) -> RemoteError {
        let path = path.split('?').next().unwrap_or_default();
        RemoteError::Unknown(self.address.clone(), path.to_owned())
    }

    /// Why the gateway wants another key, in its own words: whether it has an admin key at all, only it knows.
    fn unauthorized(&self, body: &[u8], path: &str) -> RemoteError {
        let RemoteError::Denied(address, _, said) = self.refused(401, body, path) else {
            return self.unknown(path);
        };
        if self.key.is_none() {
            RemoteError::NoKey(address, said)
        } else {
            RemoteError::WrongKey(address, said)
        }
    }

    /// The gateway's error message, or that it is no gateway.
    fn refused(&self, status: u16, body: &[u8], path: &str) -> RemoteError {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error");
        let message = error.and_then(|error| error.get("message")).and_then(Value::as_str);
        // A gateway names what is wrong in an order; where it names nothing, it has no such path.
        let param = error.and_then(|error| error.get("param")).is_some_and(|param| !param.is_null());
        match message {
            Some(message) if status != 404 || param => {
                let message = Redactor::new().excerpt(message, MAX_MESSAGE);
                RemoteError::Denied(self.address.clone(), status, message)
            }
            _ => self.unknown(path),
        }
    }
}
