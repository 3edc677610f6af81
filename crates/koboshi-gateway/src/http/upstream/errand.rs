//! A small question of the gateway's own to some server, answered whole: what a token endpoint is asked.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use koboshi::fault::Fault;

use super::ask::Ask;
use super::origin::Origin;
use super::pool::Pool;
use super::sends::Sends;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Runs errands over the connections of one core. How long one may take is for the caller to say.
pub(crate) struct Errand {
    pool: Rc<Pool>,
}

impl Errand {
    pub(super) fn new(pool: Rc<Pool>) -> Self {
        Self { pool }
    }

    /// Sends a form. Of the answer only so many bytes are read.
    pub(crate) async fn send_form(
        &self,
        origin: &Origin,
        path: &PathAndQuery,
        form: Bytes,
        most: usize,
    ) -> Result<(StatusCode, Vec<u8>), Box<Fault>> {
        let ask = Ask {
            origin,
            path,
            headers: &|tell| {
                tell(&CONTENT_TYPE, &HeaderValue::from_static("application/x-www-form-urlencoded"));
                tell(&ACCEPT, &HeaderValue::from_static("application/json"));
                tell(&USER_AGENT, &super::OURSELVES);
            },
            body: &form,
            connect_limit: CONNECT,
            sends: &Sends::default(),
            on_resend: &|| {},
        };
        let mut answer = self.pool.send(&ask).await?;
        let mut body = Vec::new();
        while body.len() < most
            && let Some(block) = answer.body.next().await
        {
            body.extend_from_slice(&block?);
        }
        body.truncate(most);
        Ok((answer.status, body))
    }
}
