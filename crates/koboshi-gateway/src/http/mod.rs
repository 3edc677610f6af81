//! Connections with clients and providers: requests come in, answers go out, one after the other.
//!
//! [`koboshi_wire::http1`] parses and formats; this room moves the bytes. A connection that waits, for a request or for the next piece of a
//! stream, holds no buffer at all: reading and writing use one shared buffer per core, and only leftovers are kept. That, and heads
//! that are searched in place and not put into a map, is why this is not a library's (decision 7).

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod exchange;
pub(crate) mod memory;
pub(crate) mod pace;
pub(crate) mod response_future;
pub(crate) mod upstream;
