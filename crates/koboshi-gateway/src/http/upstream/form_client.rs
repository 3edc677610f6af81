//! Sends a small form of the gateway itself to a server and reads the whole answer: for token endpoints.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use koboshi::fault::Fault;
use tokio::time::Instant;

use super::origin::Origin;
use super::pool::Pool;
use super::sends::Sends;
use super::server_request::ServerRequest;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends forms over the connections of one core. The caller limits the time.
pub(crate) struct FormClient {
    pool: Rc<Pool>,
}

impl FormClient {
    pub(super) fn new(pool: Rc<Pool>) -> Self {
        Self { pool }
    }

    /// Sends a form. At most `max_bytes` of the answer are read.
    pub(crate) async fn send_form(
        &self,
        origin: &Origin,
        path: &PathAndQuery,
        form: Bytes,
        max_bytes: usize,
    ) -> Result<(StatusCode, Vec<u8>), Box<Fault>> {
        let request = ServerRequest {
            origin,
            path,
            headers: &|write_header| {
                write_header(&CONTENT_TYPE, &HeaderValue::from_static("application/x-www-form-urlencoded"));
                write_header(&ACCEPT, &HeaderValue::from_static("application/json"));
                write_header(&USER_AGENT, &super::USER_AGENT_VALUE);
            },
            body: &form,
            began: Instant::now(),
            connect_limit: CONNECT_TIMEOUT,
            sends: &Sends::default(),
            on_resend: &|| {},
        };
        let mut answer = self.pool.send(&request).await?;
        let mut body = Vec::new();
        while body.len() < max_bytes
            && let Some(block) = answer.body.next().await
        {
            body.extend_from_slice(&block?);
        }
        body.truncate(max_bytes);
        Ok((answer.status, body))
    }
}
