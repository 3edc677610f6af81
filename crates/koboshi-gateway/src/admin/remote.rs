//! Asks a running gateway what operators ask and tells it what they order, from another process: the client of `/koboshi/…`.
//!
//! It blocks, and is made for a command that asks once. The admin key is sent as a bearer token and stands in no message. What the answers mean is the
//! caller's business.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request};
use koboshi::redact::Redactor;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::http::upstream::one_shot::{ConnectFailure, OneShotError};
use crate::http::upstream::{OneShotClient, USER_AGENT_VALUE};

/// Until a gateway has answered.
const ANSWER: Duration = Duration::from_secs(15);
/// No answer of a gateway is longer.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;
/// So much of what a gateway says against an order is shown.
const MAX_MESSAGE: usize = 500;

/// A gateway that is asked over the network.
pub struct Remote {
    client: OneShotClient,
    address: String,
    key: Option<HeaderValue>,
    runtime: Runtime,
}

/// Why a gateway did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address is none.
    #[error("{0}")]
    Address(String),
    /// The key cannot be sent.
    #[error("the admin key must be printable text without line breaks")]
    Key,
    /// Nobody answered.
    #[error("cannot reach the gateway at {0}: {1}")]
    Away(String, String),
    /// Nobody listens there.
    #[error(
        "cannot reach the gateway at {0}: nothing listens there. Is `koboshi serve` running? If it listens elsewhere, name its address with --url \
         (or KOBOSHI_URL); `koboshi serve` prints it when it starts"
    )]
    Refused(String),
    /// It was asked over TLS and does not speak it.
    #[error("cannot reach the gateway at {0}: it speaks plain HTTP, not TLS. Ask it with --url {1}")]
    Plain(String, String),
    /// It wants the admin key.
    #[error(
        "the gateway at {0} wants its admin key: put it into KOBOSHI_ADMIN_KEY, or into a file for --admin-key-file. \
         (Without `admin.sha256` in its config it only answers on its own machine.)"
    )]
    NoKey(String),
    /// The admin key is another one.
    #[error(
        "the gateway at {0} does not accept this admin key: `admin.sha256` of its config is that of another one"
    )]
    WrongKey(String),
    /// There is no such interface.
    #[error("{0} is not a Koboshi gateway, or an older one: it does not know {1}")]
    Unknown(String, String),
    /// It refuses what was asked.
    #[error("the gateway at {0} answered {1}: {2}")]
    Denied(String, u16, String),
}

impl Remote {
    /// The gateway at this address, such as `http://127.0.0.1:4141`; the `/v1` of a client's address may stand at its end.
    ///
    /// # Errors
    /// The address or the key cannot be used.
    pub fn new(address: &str, key: Option<&str>) -> Result<Self, RemoteError> {
        let bare = address.trim_end_matches('/');
        let bare = bare.strip_suffix("/v1").unwrap_or(bare).trim_end_matches('/');
        let whole = if bare.contains("://") { bare.to_owned() } else { format!("http://{bare}") };
        let client = OneShotClient::at(&whole, LONGEST_ANSWER).map_err(|_| {
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
        Ok(Self { client, address: whole, key: key.transpose()?, runtime })
    }

    /// What to call it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks.
    ///
    /// # Errors
    /// It cannot be reached or refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        self.ask(Method::GET, path, Bytes::new())
    }

    /// Orders.
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
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let answered = self.runtime.block_on(async { timeout(ANSWER, self.client.send(request)).await });
        let answer = answered
            .map_err(|_| away(format!("no answer within {} s", ANSWER.as_secs())))?
            .map_err(|error| self.unanswered(&error))?;
        let (status, body) = (answer.status().as_u16(), answer.into_body());
        match status {
            200 => serde_json::from_slice(&body).map_err(|_| self.unknown(path)),
            401 if self.key.is_none() => Err(RemoteError::NoKey(self.address.clone())),
            401 => Err(RemoteError::WrongKey(self.address.clone())),
            _ => Err(self.refused(status, &body, path)),
        }
    }

    /// Why nobody answered, with what to do where that is known.
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

    /// What the gateway said, or that it is none.
    fn refused(&self, status: u16, body: &[u8], path: &str) -> RemoteError {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error");
        let message = error.and_then(|error| error.get("message")).and_then(Value::as_str);
        // A gateway names what is wrong in an order; where it names nothing, it has no such interface.
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
