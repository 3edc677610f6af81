//! The way to a collector of traces: one connection a batch, made like those to providers.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::time::timeout;

use crate::http::upstream::{OneShotClient, OriginError};

/// Until the collector has answered.
const ANSWER: Duration = Duration::from_secs(8);
/// No answer of a collector is longer.
const LONGEST_ANSWER: usize = 1024 * 1024;

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
        Ok(Self(OneShotClient::at(address, LONGEST_ANSWER)?))
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        timeout(ANSWER, self.0.send(request)).await?
    }
}
