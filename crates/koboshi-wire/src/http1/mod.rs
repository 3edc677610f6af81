//! HTTP/1.1 as borrowed bytes: heads, chunks, and what we write ourselves.
//!
//! Pure like everything here: it parses bytes; the gateway moves them. What could be read in two ways is
//! refused: two lengths, a length beside chunks, a line end inside a header, a line that ends by CR or LF alone. A proxy in front of us may have read it the other
//! way. The grammar itself is httparse's.

pub mod chunks;
mod fields;
pub mod head;
mod heading;
pub mod out;
pub mod reply;

pub use fields::Fields;
pub use heading::{HeaderLines, Heading};
