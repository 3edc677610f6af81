//! HTTP/1.1, towards clients and towards providers.
//!
//! ```text
//!   bytes ──► head (what is asked, how long its body is) ──► edge ──► Response<Flow> ──► out (head, chunks) ──► bytes
//!             chunks (a body whose length is not said)
//!   reply (the head of a provider's answer) is read by `upstream::link`
//! ```
//!
//! [`head`], [`reply`], [`chunks`] and [`out`] are pure: they look at bytes and say what they mean. [`serve`] moves the bytes. A connection that waits, for a
//! request or for the next word of a stream, holds no buffer at all: reading and writing go through one room per core, and only what
//! is left over is kept. That, and a head that is looked up and not put into a map, is why this is not a library's: the two buffers of
//! hyper's connections were two thirds of what an open stream cost (decision 7).
//!
//! What could be read in two ways is refused: two lengths, a length beside chunks, a line end inside a header. Whoever stands in front of
//! us may have read it the other way.

pub(crate) mod body;
pub(crate) mod chunks;
mod fields;
mod head;
mod out;
pub(crate) mod reply;
pub(crate) mod serve;

pub(crate) use fields::Fields;
pub(crate) use head::{BadHead, Coming, Head, LARGEST};
pub(crate) use serve::Request;
