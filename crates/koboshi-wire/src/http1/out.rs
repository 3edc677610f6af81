//! Writes heads and chunks.

use std::io::Write as _;

use http::{StatusCode, Version};

use super::heading::{Heading, line};

/// How the body of an answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// There is none, and no length is stated: 204 and 304.
    Never,
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Until the connection ends: HTTP/1.0 has no chunks.
    UntilEnd,
}

impl AnswerBody {
    /// How the answer to a request of this version goes out, whose body has this length if it is known.
    #[must_use]
    pub fn of(asked: Version, status: StatusCode, length: Option<u64>) -> Self {
        match length {
            _ if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => Self::Never,
            Some(length) => Self::Length(length),
            None if asked == Version::HTTP_10 => Self::UntilEnd,
            None => Self::Chunked,
        }
    }
}

/// The head of an answer. `stays` says whether another request may follow.
pub fn head(
    out: &mut Vec<u8>,
    asked: Version,
    heading: &Heading,
    going: AnswerBody,
    stays: bool,
    date: &[u8],
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(heading.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(heading.status.canonical_reason().unwrap_or("Unknown").as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(heading.lines.as_bytes());
    match going {
        AnswerBody::Never => {}
        AnswerBody::Length(length) => content_length(out, length),
        AnswerBody::Chunked => line(out, "transfer-encoding", b"chunked"),
        AnswerBody::UntilEnd => {}
    }
    if !stays {
        line(out, "connection", b"close");
    } else if asked == Version::HTTP_10 {
        line(out, "connection", b"keep-alive");
    }
    line(out, "date", date);
    out.extend_from_slice(b"\r\n");
}

/// The line that says how long a body is.
pub fn content_length(out: &mut Vec<u8>, length: u64) {
    line(out, "content-length", itoa::Buffer::new().format(length).as_bytes());
}

/// What stands before a chunk of this length.
pub fn chunk(out: &mut Vec<u8>, length: usize) {
    hex(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

/// A number in small hexadecimal digits. By hand: every piece of a stream has one before it.
pub fn hex(out: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = u8::try_from((number >> (place * 4)) & 0xf).unwrap_or_default();
        out.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
    }
}

/// What stands behind a chunk.
pub const CHUNK_END: &[u8] = b"\r\n";
/// What stands behind the last one.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// An answer to something that is no request, after which the connection ends.
#[must_use]
pub fn refusal(status: u16, message: &str, date: &[u8]) -> Vec<u8> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let body =
        serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
    let mut out = Vec::with_capacity(256);
    // Writing into memory cannot fail.
    let _ =
        write!(out, "HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("Unknown"));
    line(&mut out, "content-type", b"application/json");
    content_length(&mut out, body.len() as u64);
    line(&mut out, "connection", b"close");
    line(&mut out, "date", date);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    fn written(asked: Version, status: u16, length: Option<u64>, stays: bool) -> String {
        let mut heading = Heading::of(status);
        heading.add("x-a", "b");
        let mut out = Vec::new();
        let going = AnswerBody::of(asked, heading.status, length);
        head(&mut out, asked, &heading, going, stays, b"now");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads_say_how_the_body_goes_out_and_what_follows() {
        let new = Version::HTTP_11;
        assert_eq!(
            written(new, 200, Some(5), true),
            "HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 5\r\ndate: now\r\n\r\n"
        );
        assert_eq!(
            written(new, 404, None, false),
            "HTTP/1.1 404 Not Found\r\nx-a: b\r\ntransfer-encoding: chunked\r\nconnection: close\r\ndate: now\r\n\r\n"
        );
        assert_eq!(
            written(new, 204, Some(0), true),
            "HTTP/1.1 204 No Content\r\nx-a: b\r\ndate: now\r\n\r\n"
        );
        let old = Version::HTTP_10;
        assert_eq!(AnswerBody::of(old, StatusCode::OK, None), AnswerBody::UntilEnd);
        assert!(written(old, 200, Some(1), true).contains("connection: keep-alive\r\n"));
    }

    #[test]
    fn numbers_are_written_as_others_write_them() {
        for number in [0, 1, 9, 10, 15, 16, 255, 256, 4096, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            hex(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number:x}"));
        }
        let mut out = Vec::new();
        chunk(&mut out, 0x1f0);
        content_length(&mut out, 90);
        assert_eq!(out, b"1f0\r\ncontent-length: 90\r\n");
    }

    #[test]
    fn a_refusal_is_a_whole_answer() {
        let text = String::from_utf8(refusal(431, "no", b"now")).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    }
}
