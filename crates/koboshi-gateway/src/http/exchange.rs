//! A request as it came in, and an answer as it goes out.

use koboshi_wire::http1::Heading;
use koboshi_wire::http1::head::Head;

use crate::http::flow::Flow;
use crate::http::line::Line;

/// A request, and the line it came on.
pub(crate) struct Request {
    pub(crate) head: Head,
    pub(crate) line: Line,
}

/// An answer: its head, and what makes its body.
pub(crate) struct Response {
    pub(crate) heading: Heading,
    pub(crate) flow: Flow,
}
