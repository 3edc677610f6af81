//! A request with its connection, and the answer to it.

use koboshi_wire::http1::Heading;
use koboshi_wire::http1::head::Head;

use crate::http::client::Connection;
use crate::http::response_future::ResponseFuture;

/// A request, and the connection that it came on.
pub(crate) struct Request {
    pub(crate) head: Head,
    pub(crate) connection: Connection,
}

/// An answer: its head, and the future that makes its body.
pub(crate) struct Response {
    pub(crate) heading: Heading,
    pub(crate) future: ResponseFuture,
}
