//! The HTTP client for a collector: one connection per batch, made like those to providers.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::time::timeout;

use crate::http::upstream::{OneShotClient, OriginError};

/// How long the collector may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// Longer answers are refused.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// A collector.
pub(super) struct Collector(OneShotClient);

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collector({:?})", self.0.origin)
    }
}

impl Collector {
    /// The collector at this address.
    pub(super) fn at(address: &str) -> Result<Self, OriginError> {
        Ok(Self(OneShotClient::at(address, MAX_ANSWER_BYTES)?))
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        timeout(ANSWER_TIMEOUT, self.0.send(request)).await?
    }
}
