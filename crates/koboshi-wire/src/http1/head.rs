//! Reads the head of a request: what is asked, and how its body will come.

use std::mem::MaybeUninit;

use http::uri::PathAndQuery;
use http::{Method, Uri, Version};
use httparse::{Header, ParserConfig, Status};

use super::fields::Fields;

/// Headers of one head; more are refused.
pub(super) const MAX_HEADERS: usize = 200;
/// Bytes of a head; more are refused.
pub const MAX_HEAD: usize = 64 * 1024;

/// The largest accepted content length. Other programs give the last few values of the type a special meaning.
const MAX_BODY: u64 = u64::MAX >> 1;

/// The head of a request.
#[derive(Debug, Clone)]
pub struct Head {
    /// What is to be done.
    pub method: Method,
    /// 1.0 or 1.1.
    pub version: Version,
    /// Host and port where the target is a whole address.
    authority: Option<String>,
    target: PathAndQuery,
    /// The headers.
    pub fields: Fields,
    /// How the body comes.
    pub coming: RequestBody,
    /// The client waits for `100 Continue` before it sends its body.
    pub expects: bool,
    /// The client may send another request on this connection.
    pub stays: bool,
}

/// How a body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    /// There is none, or nothing more of it.
    Nothing,
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// The body was not fully read, so the connection cannot be reused.
    Abandoned,
}

/// Why a head cannot be taken: a status, and a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHead {
    /// The status to answer with.
    pub status: u16,
    /// A sentence for a person.
    pub message: &'static str,
}

const fn bad(message: &'static str) -> BadHead {
    BadHead { status: 400, message }
}

const TOO_LARGE: BadHead =
    BadHead { status: 431, message: "the headers of this request are too many or too long" };

const ODD_LINE_END: BadHead = bad("a line of the head ends without CR LF");

impl Head {
    /// The head at the beginning of this text and its length, if all of it is there.
    ///
    /// # Errors
    /// It is no head, or one that could be read in two ways, or too large.
    pub fn parse(text: &[u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut []);
        let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut request, text, &mut room);
        let length = match parsed {
            Ok(Status::Complete(length)) if length > MAX_HEAD => return Err(TOO_LARGE),
            Ok(Status::Complete(length)) if has_odd_line_end(text, length) => return Err(ODD_LINE_END),
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if text.len() >= MAX_HEAD => return Err(TOO_LARGE),
            Ok(Status::Partial) if has_odd_line_end(text, text.len()) => return Err(ODD_LINE_END),
            Ok(Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
            Err(httparse::Error::Version) => return Err(bad("only HTTP/1.0 and HTTP/1.1 are spoken here")),
            Err(_) => return Err(bad("this is not the head of an HTTP request")),
        };
        let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version)
        else {
            return Err(bad("this is not the head of an HTTP request"));
        };
        let version = if version == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| bad("this method is none"))?;
        let authority = authority_in(target).map(str::to_owned);
        let target = own_part(target).ok_or(bad("the target of this request is no path and no address"))?;
        let fields = Fields::found(text.get(..length).unwrap_or_default(), request.headers);
        let head = Self {
            coming: coming(&fields, version)?,
            expects: version == Version::HTTP_11
                && fields.get("expect").is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue")),
            stays: stays(&fields, version),
            method,
            version,
            authority,
            target,
            fields,
        };
        Ok(Some((head, length)))
    }

    /// The path that is asked for.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.path()
    }

    /// Host and port, where the request was for a whole address and not for a path alone.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// What follows the question mark.
    #[must_use]
    pub fn query(&self) -> &str {
        self.target.query().unwrap_or_default()
    }
}

/// Path and query. A proxy may be asked for a whole address. What follows a `#` is for the client alone: a target has none.
fn own_part(target: &str) -> Option<PathAndQuery> {
    if target.contains('#') {
        return None;
    }
    if target.starts_with('/') {
        return PathAndQuery::try_from(target).ok();
    }
    let address = Uri::try_from(target).ok()?.into_parts();
    match address.path_and_query {
        Some(asked) if asked.as_str().starts_with('/') => Some(asked),
        Some(asked) => PathAndQuery::try_from(format!("/?{}", asked.query().unwrap_or_default())).ok(),
        None => Some(PathAndQuery::from_static("/")),
    }
}

/// Whether a CR or an LF stands alone in a head of this length at the beginning of this text. httparse takes an LF alone for the end of a
/// line; a proxy in front of us may have taken it for a part of one. A CR at the very end of the text may still get its LF.
pub(super) fn has_odd_line_end(text: &[u8], length: usize) -> bool {
    let head = text.get(..length).unwrap_or_default();
    let next = head.get(1..).unwrap_or_default();
    // Every byte is checked, because a loop that may stop early cannot be vectorised.
    let in_pairs = head
        .iter()
        .zip(next)
        .fold(true, |in_pairs, (byte, next)| in_pairs & ((*byte == b'\r') == (*next == b'\n')));
    head.first() == Some(&b'\n') || !in_pairs
}

/// Host and port of a whole address.
fn authority_in(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return None;
    }
    let (_, rest) = target.split_once("://")?;
    Some(rest.split(['/', '?', '#']).next().unwrap_or(rest))
}

/// How the body comes. Whatever could be read in two ways is refused.
fn coming(fields: &Fields, version: Version) -> Result<RequestBody, BadHead> {
    let length = length_of(fields)?;
    let mut encodings = fields.all("transfer-encoding");
    let Some(encoding) = encodings.next() else {
        return Ok(length.filter(|length| *length > 0).map_or(RequestBody::Nothing, RequestBody::Length));
    };
    if length.is_some() || version == Version::HTTP_10 {
        return Err(bad("transfer-encoding cannot stand beside content-length or in HTTP/1.0"));
    }
    if encodings.next().is_some() || !encoding.eq_ignore_ascii_case(b"chunked") {
        return Err(bad("only one transfer-encoding is known here: chunked"));
    }
    Ok(RequestBody::Chunked)
}

/// The stated length, if there is exactly one.
pub(super) fn length_of(fields: &Fields) -> Result<Option<u64>, BadHead> {
    let mut length = None;
    for value in fields.all("content-length") {
        let stated = number(value).filter(|stated| *stated <= MAX_BODY);
        let stated = stated.ok_or(bad("content-length must be a number"))?;
        if length.is_some_and(|known| known != stated) {
            return Err(bad("two different values of content-length"));
        }
        length = Some(stated);
    }
    Ok(length)
}

/// A number of digits alone: without a sign, a space or a second value.
fn number(text: &[u8]) -> Option<u64> {
    let mut digits = text.iter().map(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
    let add = |known: u64, digit: Option<u64>| known.checked_mul(10)?.checked_add(digit?);
    if text.is_empty() { None } else { digits.try_fold(0, add) }
}

/// Whether the connection may be used again.
pub(super) fn stays(fields: &Fields, version: Version) -> bool {
    let says = |word: &str| {
        fields.all("connection").any(|value| {
            value
                .split(|byte| *byte == b',')
                .any(|one| one.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    // A client that sends both gets the reading that cannot affect another request.
    !says("close") && (version == Version::HTTP_11 || says("keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Head, BadHead> {
        Head::parse(text.as_bytes()).map(|found| found.unwrap().0)
    }

    #[test]
    fn a_head_says_what_is_asked_and_how_the_body_comes() {
        let text = "POST /v1/chat?beta=true&x=? HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\nbody";
        let (head, length) = Head::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((head.path(), head.query()), ("/v1/chat", "beta=true&x=?"));
        assert_eq!((head.method.as_str(), head.version), ("POST", Version::HTTP_11));
        assert_eq!(head.coming, RequestBody::Length(12));
        assert!(head.expects && head.stays);
        assert_eq!(&text[length..], "body");
        assert_eq!(head.fields.text("host"), Some("a"));
    }

    #[test]
    fn a_part_of_a_head_is_no_head_yet() {
        let text = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        for end in 0..text.len() {
            assert!(Head::parse(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn addresses_and_stars_have_a_path_too() {
        for (target, path, query) in [
            ("http://a.b:1/v1/x?y", "/v1/x", "y"),
            ("http://a.b?y", "/", "y"),
            ("http://a.b", "/", ""),
            ("*", "/", ""),
            ("/", "/", ""),
        ] {
            let head = head(&format!("GET {target} HTTP/1.1\r\n\r\n")).unwrap();
            assert_eq!((head.path(), head.query()), (path, query), "{target}");
        }
    }

    #[test]
    fn a_target_is_a_path_or_an_address() {
        for target in ["/a#b", ":/", "/a<b", "http://a.b/x#", "x y"] {
            let refused = Head::parse(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes());
            assert_eq!(refused.map(|_| ()).unwrap_err().status, 400, "{target}");
        }
    }

    #[test]
    fn who_stays_is_said_in_two_ways() {
        for (version, header, stays) in [
            ("1.1", "", true),
            ("1.1", "Connection: foo, Close\r\n", false),
            ("1.0", "", false),
            ("1.0", "connection: keep-alive\r\n", true),
            ("1.0", "connection: keep-alive\r\nconnection: close\r\n", false),
        ] {
            let head = head(&format!("GET / HTTP/{version}\r\n{header}\r\n")).unwrap();
            assert_eq!(head.stays, stays, "{version} {header}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for headers in [
            "content-length: 5\r\ncontent-length: 6\r\n",
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            "content-length: +5\r\n",
            "content-length: 5, 5\r\n",
            "content-length: \r\n",
            "content-length: 99999999999999999999\r\n",
            "content-length: 18446744073709551615\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: identity\r\n",
            "x: a\r\n b\r\n",
            "x : a\r\n",
        ] {
            let refused = head(&format!("POST / HTTP/1.1\r\n{headers}\r\n")).unwrap_err();
            assert_eq!(refused.status, 400, "{headers}");
        }
        assert_eq!(head("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n").unwrap_err().status, 400);
        let same = head("POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n").unwrap();
        assert_eq!(same.coming, RequestBody::Length(5));
    }

    /// A proxy in front of us may have read it as one line.
    #[test]
    fn a_line_feed_or_a_carriage_return_alone_ends_no_line() {
        for text in [
            "POST / HTTP/1.1\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\n\n",
            "\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\rHost: a\r\n\r\n",
            // Not complete, but it can become no head any more.
            "POST / HTTP/1.1\r\nX: a\nTransfer-Enc",
        ] {
            let refused = Head::parse(text.as_bytes()).map(|_| ()).unwrap_err();
            assert_eq!(refused.status, 400, "{text:?}");
        }
        assert!(head("\r\n\r\nGET / HTTP/1.1\r\n\r\nbody\nwith\rboth").is_ok());
    }

    #[test]
    fn too_much_is_refused_also_before_it_ends() {
        let many: String = (0..300).map(|number| format!("x-{number}: y\r\n")).collect();
        assert_eq!(Head::parse(format!("GET / HTTP/1.1\r\n{many}").as_bytes()).unwrap_err(), TOO_LARGE);
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(MAX_HEAD));
        assert_eq!(Head::parse(long.as_bytes()).unwrap_err(), TOO_LARGE);
        assert_eq!(Head::parse(format!("{long}\r\n\r\n").as_bytes()).unwrap_err(), TOO_LARGE);
    }
}
