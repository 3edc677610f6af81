//! Reads a body that comes in chunks.
//!
//! A state for each place where the bytes may be cut. Extensions and trailers are passed over, up to a limit, once they are seen to be
//! some; a bare line feed in place of a line end is refused. Others might read either differently.

use bytes::{Buf, BytesMut};

/// Bytes of extensions and trailers in one body; more are refused.
const MOST_BESIDES: u32 = 16 * 1024;

/// Where in a body in chunks the reading stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    besides: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
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
pub struct Broken;

impl Default for Chunks {
    fn default() -> Self {
        Self { at: At::Size { size: 0, digits: 0 }, besides: 0 }
    }
}

impl Chunks {
    /// All of the body was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Takes what is there out of `from`, and its content, up to `most` bytes, into `into`. Bytes behind the body stay.
    ///
    /// # Errors
    /// It is not in chunks.
    pub fn read(&mut self, from: &mut BytesMut, into: &mut BytesMut, most: usize) -> Result<(), Broken> {
        let taken = self.take(from, into, most)?;
        from.advance(taken);
        Ok(())
    }

    /// The same, and says how much was taken.
    ///
    /// # Errors
    /// It is not in chunks.
    pub fn take(&mut self, from: &[u8], into: &mut BytesMut, most: usize) -> Result<usize, Broken> {
        let (mut at, mut room) = (0, most);
        while room > 0
            && !self.is_done()
            && let Some(byte) = from.get(at)
        {
            if let At::Data { left } = self.at {
                let rest = from.get(at..).unwrap_or_default();
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len()).min(room);
                into.extend_from_slice(rest.get(..length).unwrap_or_default());
                at += length;
                room -= length;
                let left = left.saturating_sub(length as u64);
                self.at = if left == 0 { At::DataCr } else { At::Data { left } };
            } else {
                self.at = self.after(*byte)?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn after(&mut self, byte: u8) -> Result<At, Broken> {
        let next = match (self.at, byte) {
            (At::Size { digits: 1.., size } | At::SizeSpace { size }, b'\r') => At::SizeEnd { size },
            (At::Size { digits: 1.., size } | At::SizeSpace { size }, b';') => At::Extension { size },
            (At::Size { digits: 1.., size } | At::SizeSpace { size }, b' ' | b'\t') => {
                self.besides(At::SizeSpace { size })?
            }
            (At::Size { size, digits }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Broken)?;
                // Sixteen digits would not fit.
                if digits >= 15 {
                    return Err(Broken);
                }
                At::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (At::Extension { size }, b'\r') => At::SizeEnd { size },
            (At::Extension { .. }, b'\n') => return Err(Broken),
            (At::Extension { size }, _) => self.besides(At::Extension { size })?,
            (At::SizeEnd { size: 0 }, b'\n') | (At::TrailerLf, b'\n') => At::TrailerStart,
            (At::SizeEnd { size }, b'\n') => At::Data { left: size },
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size { size: 0, digits: 0 },
            (At::TrailerStart, b'\r') => At::LastLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerName, b':') => self.besides(At::Trailer)?,
            (At::TrailerStart | At::TrailerName, _) if is_of_a_name(byte) => self.besides(At::TrailerName)?,
            (At::Trailer, b'\t' | b' '..=b'~' | 0x80..) => self.besides(At::Trailer)?,
            (At::LastLf, b'\n') => At::Done,
            _ => return Err(Broken),
        };
        Ok(next)
    }

    fn besides(&mut self, next: At) -> Result<At, Broken> {
        self.besides += 1;
        if self.besides > MOST_BESIDES { Err(Broken) } else { Ok(next) }
    }
}

/// Whether this may stand in the name of a header.
fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, step: usize) -> Result<(String, String, bool), Broken> {
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
            assert_eq!(read(text, 1), Err(Broken), "{text:?}");
            assert_eq!(read(text, 100), Err(Broken), "{text:?}");
        }
        assert_eq!(read(&format!("5;{}", "x".repeat(20_000)), 1000), Err(Broken));
        assert_eq!(read(&format!("0\r\n{}", "x: y\r\n".repeat(5000)), 1000), Err(Broken));
    }

    #[test]
    fn no_more_is_taken_than_there_is_room() {
        let (mut chunks, mut into) = (Chunks::default(), BytesMut::new());
        let mut from = BytesMut::from(&b"ff\r\nabcdefgh"[..]);
        chunks.read(&mut from, &mut into, 3).unwrap();
        assert_eq!((&into[..], &from[..]), (&b"abc"[..], &b"defgh"[..]));
    }
}
