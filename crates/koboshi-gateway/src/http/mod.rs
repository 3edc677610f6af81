//! Connections with clients and providers: requests come in, answers go out, one after the other.
//!
//! What the bytes mean is said by [`koboshi_wire::http1`]; here they are moved. A connection that waits, for a request or for the next word of a
//! stream, holds no buffer at all: reading and writing go through one room per core, and only what is left over is kept. That, and heads
//! that are looked up and not put into a map, is why this is not a library's (decision 7).

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod exchange;
pub(crate) mod memory;
pub(crate) mod response_future;
pub(crate) mod upstream;
