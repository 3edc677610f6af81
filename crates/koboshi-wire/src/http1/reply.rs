//! Reads the head of an answer: its status and headers, and how its body will come.

use std::mem::MaybeUninit;

use http::{StatusCode, Version};
use httparse::{Header, ParserConfig, Status};

use super::fields::Fields;
use super::head::{MAX_HEAD, MAX_HEADERS, has_odd_line_end, length_of, stays};

/// The head of an answer.
#[derive(Debug)]
pub struct ReplyHead {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub fields: Fields,
    /// How the body comes.
    pub body: ReplyBody,
    /// Another request may be sent on the connection.
    pub stays: bool,
}

/// How the body of an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyBody {
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Until the connection ends.
    UntilEnd,
}

/// It is no answer of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the provider sent is no answer of HTTP/1.1")]
pub struct NoReply;

impl ReplyHead {
    /// The head at the beginning of this text and its length, if all of it is there. Heads that only announce another one are among them.
    ///
    /// # Errors
    /// It is no answer.
    pub fn parse(text: &[u8]) -> Result<Option<(Self, usize)>, NoReply> {
        let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
        let mut reply = httparse::Response::new(&mut []);
        let mut reading = ParserConfig::default();
        // Servers that are not well made; what they mean is plain.
        reading
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true);
        let length = match reading.parse_response_with_uninit_headers(&mut reply, text, &mut room) {
            // No provider is known to end its lines by LF alone; the clients that Node programs have refuse it too.
            Ok(Status::Complete(length)) if length <= MAX_HEAD && !has_odd_line_end(text, length) => length,
            Ok(Status::Partial) if text.len() < MAX_HEAD => return Ok(None),
            _ => return Err(NoReply),
        };
        let status = reply.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(NoReply)?;
        let version = if reply.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
        let fields = Fields::found(text.get(..length).unwrap_or_default(), reply.headers);
        let body = body(&fields, status)?;
        // A proxy on the way may have believed the other of two lengths; RFC 9112, 6.3 wants the connection closed.
        let has_two_lengths = body == ReplyBody::Chunked && fields.has("content-length");
        let stays = body != ReplyBody::UntilEnd && !has_two_lengths && stays(&fields, version);
        Ok(Some((Self { status, stays, body, fields }, length)))
    }

    /// Whether it only announces another one. 101 does not: after it the connection speaks something else.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

fn body(fields: &Fields, status: StatusCode) -> Result<ReplyBody, NoReply> {
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(ReplyBody::Length(0));
    }
    let mut encodings = fields.all("transfer-encoding");
    match (encodings.next(), encodings.next()) {
        (Some(only), None) if only.eq_ignore_ascii_case(b"chunked") => Ok(ReplyBody::Chunked),
        (Some(_), _) => Err(NoReply),
        _ => {
            let length = length_of(fields).map_err(|_| NoReply)?;
            Ok(length.map_or(ReplyBody::UntilEnd, ReplyBody::Length))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<ReplyHead, NoReply> {
        ReplyHead::parse(text.as_bytes()).map(|found| found.unwrap().0)
    }

    #[test]
    fn a_head_says_how_the_body_comes_and_whether_the_connection_stays() {
        for (text, status, body, stays) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, ReplyBody::Length(5), true),
            (
                "HTTP/1.1 200\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
                200,
                ReplyBody::Length(5),
                false,
            ),
            ("HTTP/1.1 429 Slow\r\ntransfer-encoding: Chunked\r\n\r\n", 429, ReplyBody::Chunked, true),
            // The length is not what counts, RFC 9112, 6.3.
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                200,
                ReplyBody::Chunked,
                false,
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", 200, ReplyBody::UntilEnd, false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 200, ReplyBody::Length(5), false),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n",
                200,
                ReplyBody::Length(5),
                true,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, ReplyBody::Length(0), true),
        ] {
            let head = head(text).unwrap();
            assert_eq!((head.status.as_u16(), head.body, head.stays), (status, body, stays), "{text}");
        }
        assert!(head("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").unwrap().is_interim());
        assert!(!head("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").unwrap().is_interim());
    }

    #[test]
    fn part_of_a_head_is_none_yet_and_other_things_are_no_head() {
        let text = "HTTP/1.1 200 OK\r\nx: y\r\n\r\n";
        for end in 0..text.len() {
            assert!(ReplyHead::parse(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
        }
        for text in [
            "SSH-2.0-x\r\n",
            "<html>",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            // Lines that do not end as lines do.
            "HTTP/1.1 200 OK\r\nx: a\ncontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\rcontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nnot a header\rcontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\n\n",
        ] {
            assert!(ReplyHead::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
