//! The handshake of WebSocket, as an answer of the gateway's own HTTP.
//!
//! The upgrade is accepted and a refusal sent in-band, because browsers hide what a refused handshake says. Exceptions are what must not
//! become a connection at all: a page of another origin (refused by the edge), and something that is no handshake.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, HeaderName, ORIGIN, UPGRADE};
use koboshi_report::phrase::Lang;
use koboshi_wire::http1::head::Head;

use crate::route::auth::Caller;

/// The name of the protocol.
pub(crate) const PROTOCOL: &str = "koboshi.v1";
/// What stands before a ticket in the list of protocols: the one header that a browser lets a page set.
const TICKET_PROTOCOL: &str = "koboshi.ticket.";
/// What the standard puts behind a key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

static KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
static VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
static PROTOCOLS: HeaderName = HeaderName::from_static("sec-websocket-protocol");

/// A connection that is to become a session's.
pub(crate) struct Upgrade {
    accept: String,
    /// The client speaks the protocol.
    pub(crate) has_protocol: bool,
    pub(crate) ticket: Option<String>,
    pub(crate) caller: Caller,
    pub(crate) origin: Option<String>,
    pub(crate) lang: Lang,
}

impl Upgrade {
    /// What a request asks for; none if it is no handshake.
    pub(crate) fn of(head: &Head, caller: Caller, lang: Lang) -> Option<Self> {
        let fields = &head.fields;
        let has = |name: &HeaderName, word: &str| {
            let mut words = fields.text(name).unwrap_or_default().split(',');
            words.any(|one| one.trim().eq_ignore_ascii_case(word))
        };
        let key = fields.text(&KEY).map(str::trim).filter(|key| key.len() == 24)?;
        let fits = has(&UPGRADE, "websocket") && has(&CONNECTION, "upgrade") && has(&VERSION, "13");
        if !fits {
            return None;
        }
        let hash = sha1_smol::Sha1::from(format!("{key}{GUID}")).digest().bytes();
        let protocols: Vec<&str> =
            fields.text(&PROTOCOLS).unwrap_or_default().split(',').map(str::trim).collect();
        Some(Self {
            accept: STANDARD.encode(hash),
            has_protocol: protocols.contains(&PROTOCOL),
            ticket: protocols.iter().find_map(|one| one.strip_prefix(TICKET_PROTOCOL)).map(str::to_owned),
            caller,
            origin: fields.text(ORIGIN).map(str::to_owned),
            lang,
        })
    }

    /// The answer that ends the handshake.
    pub(crate) fn answer(&self) -> String {
        let protocol =
            if self.has_protocol { format!("sec-websocket-protocol: {PROTOCOL}\r\n") } else { String::new() };
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {}\r\n{protocol}\r\n",
            self.accept
        )
    }
}
