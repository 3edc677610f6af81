//! Reads a body that comes in chunks.
//!
//! A state for each place where the bytes may be cut. Extensions and trailers are skipped, up to a limit, after a check of their
//! form; a bare line feed in place of a line end is refused, because other parsers read it differently.

use bytes::{Buf, BytesMut};

/// Bytes of extensions and trailers in one body; more are refused.
const MAX_EXTRA_BYTES: u32 = 16 * 1024;

/// The parser state of a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    at: ChunkState,
    besides: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// In the length of a chunk, of which this many digits were read.
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind it, where only spaces may stand before an extension.
    SizeSpace {
        size: u64,
    },
    /// In an extension.
    Extension {
        size: u64,
    },
    /// At the line feed behind it.
    SizeEnd {
        size: u64,
    },
    /// This many bytes of a chunk are missing.
    Data {
        left: u64,
    },
    /// Behind a chunk.
    DataCr,
    DataLf,
    /// At the beginning of a trailer, or of the last line end.
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerLf,
    LastLf,
    Done,
}

/// The body is not in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadChunks;

impl Default for Chunks {
    fn default() -> Self {
        Self { at: ChunkState::Size { size: 0, digits: 0 }, besides: 0 }
    }
}

impl Chunks {
    /// All of the body was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at == ChunkState::Done
    }

    /// Takes what is there out of `from`, and its content, up to `max` bytes, into `into`. Bytes behind the body stay.
    ///
    /// # Errors
    /// It is not in chunks.
    pub fn read(&mut self, from: &mut BytesMut, into: &mut BytesMut, max: usize) -> Result<(), BadChunks> {
        let taken = self.take(from, into, max)?;
        from.advance(taken);
        Ok(())
    }

    /// The same, and says how much was taken.
    ///
    /// # Errors
    /// It is not in chunks.
    pub fn take(&mut self, from: &[u8], into: &mut BytesMut, max: usize) -> Result<usize, BadChunks> {
        let (mut at, mut room) = (0, max);
        while room > 0
            && !self.is_done()
            && let Some(byte) = from.get(at)
        {
            if let ChunkState::Data { left } = self.at {
                let rest = from.get(at..).unwrap_or_default();
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len()).min(room);
                into.extend_from_slice(rest.get(..length).unwrap_or_default());
                at += length;
                room -= length;
                let left = left.saturating_sub(length as u64);
                self.at = if left == 0 { ChunkState::DataCr } else { ChunkState::Data { left } };
            } else {
                self.at = self.after(*byte)?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn after(&mut self, byte: u8) -> Result<ChunkState, BadChunks> {
        let next = match (self.at, byte) {
            (ChunkState::Size { digits: 1.., size } | ChunkState::SizeSpace { size }, b'\r') => {
                ChunkState::SizeEnd { size }
            }
            (ChunkState::Size { digits: 1.., size } | ChunkState::SizeSpace { size }, b';') => {
                ChunkState::Extension { size }
            }
            (ChunkState::Size { digits: 1.., size } | ChunkState::SizeSpace { size }, b' ' | b'\t') => {
                self.besides(ChunkState::SizeSpace { size })?
            }
            (ChunkState::Size { size, digits }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(BadChunks)?;
                // Sixteen digits would not fit.
                if digits >= 15 {
                    return Err(BadChunks);
                }
                ChunkState::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (ChunkState::Extension { size }, b'\r') => ChunkState::SizeEnd { size },
            (ChunkState::Extension { .. }, b'\n') => return Err(BadChunks),
            (ChunkState::Extension { size }, _) => self.besides(ChunkState::Extension { size })?,
            (ChunkState::SizeEnd { size: 0 }, b'\n') | (ChunkState::TrailerLf, b'\n') => {
                ChunkState::TrailerStart
            }
            (ChunkState::SizeEnd { size }, b'\n') => ChunkState::Data { left: size },
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::Size { size: 0, digits: 0 },
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastLf,
            (ChunkState::Trailer, b'\r') => ChunkState::TrailerLf,
            (ChunkState::TrailerName, b':') => self.besides(ChunkState::Trailer)?,
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if is_of_a_name(byte) => {
                self.besides(ChunkState::TrailerName)?
            }
            (ChunkState::Trailer, b'\t' | b' '..=b'~' | 0x80..) => self.besides(ChunkState::Trailer)?,
            (ChunkState::LastLf, b'\n') => ChunkState::Done,
            _ => return Err(BadChunks),
        };
        Ok(next)
    }

    fn besides(&mut self, next: ChunkState) -> Result<ChunkState, BadChunks> {
        self.besides += 1;
        if self.besides > MAX_EXTRA_BYTES { Err(BadChunks) } else { Ok(next) }
    }
}

/// Whether this may stand in the name of a header.
fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, step: usize) -> Result<(String, String, bool), BadChunks> {
        let (mut chunks, mut from, mut into) = (Chunks::default(), BytesMut::new(), BytesMut::new());
        for piece in text.as_bytes().chunks(step) {
            from.extend_from_slice(piece);
            chunks.read(&mut from, &mut into, usize::MAX)?;
        }
        let text = |bytes: BytesMut| String::from_utf8(bytes.to_vec()).unwrap();
        Ok((text(into), text(from), chunks.is_done()))
    }

    #[test]
    fn chunks_are_joined_wherever_they_are_cut() {
        let text = "5\r\nhello\r\n00A ; name=\"x\"\r\n, my world\r\n0;last\r\nTrailer: 1\r\n\r\nGET /";
        for step in 1..text.len() {
            assert_eq!(read(text, step), Ok(("hello, my world".into(), "GET /".into(), true)), "{step}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for text in [
            "\r\n", "zz\r\n", "-1\r\n", "5\nhello", "5\r\nhelloX", "5\r\nhello\n", "0x5\r\n", "5\r\rh",
            "fffffffffffffffff\r\n", "0\r\nA: b\n\r\n", "5;a\n", "5 5\r\nhello", "5 a=b\r\nhello",
            "0\r\nnot a trailer\r\n\r\n", "0\r\n: x\r\n\r\n", "0\r\nA : x\r\n\r\n", "0\r\nA: \0\r\n\r\n",
            "0\r\nA: b\r\n folded\r\n\r\n",
        ] {
            assert_eq!(read(text, 1), Err(BadChunks), "{text:?}");
            assert_eq!(read(text, 100), Err(BadChunks), "{text:?}");
        }
        assert_eq!(read(&format!("5;{}", "x".repeat(20_000)), 1000), Err(BadChunks));
        assert_eq!(read(&format!("0\r\n{}", "x: y\r\n".repeat(5000)), 1000), Err(BadChunks));
    }

    #[test]
    fn no_more_is_taken_than_there_is_room() {
        let (mut chunks, mut into) = (Chunks::default(), BytesMut::new());
        let mut from = BytesMut::from(&b"ff\r\nabcdefgh"[..]);
        chunks.read(&mut from, &mut into, 3).unwrap();
        assert_eq!((&into[..], &from[..]), (&b"abc"[..], &b"defgh"[..]));
    }
}
