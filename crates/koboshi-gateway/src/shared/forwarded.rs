//! What proxies say of their clients: `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` (RFC 7239).
//!
//! Every proxy appends the peer that it saw, so the list is read from its end: the first address that is no trusted proxy is the client, and what
//! stands before it was written by that client. Where both headers are there and differ, a proxy wrote one and passed on the other: none is
//! believed then.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use koboshi_wire::http1::Fields;

/// Whether this peer may say who the client is.
pub(crate) fn is_trusted(proxies: &[IpNet], address: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(&address))
}

/// The client by these headers; none where they do not say it, or not in one voice.
pub(crate) fn client(proxies: &[IpNet], headers: &Fields) -> Option<IpAddr> {
    let plain: Vec<&str> = elements(headers, "x-forwarded-for").collect();
    let standard: Vec<&str> = elements(headers, "forwarded")
        .map(|element| parameter(element, "for").unwrap_or("unknown"))
        .collect();
    match (plain.is_empty(), standard.is_empty()) {
        (false, true) => client_in(proxies, &plain),
        (true, false) => client_in(proxies, &standard),
        (true, true) => None,
        (false, false) => {
            client_in(proxies, &plain).filter(|client| client_in(proxies, &standard) == Some(*client))
        }
    }
}

/// Whether the client used TLS towards the proxy that is next to this gateway.
pub(crate) fn is_https(headers: &Fields) -> bool {
    let plain = elements(headers, "x-forwarded-proto").last();
    let standard = elements(headers, "forwarded").last().and_then(|element| parameter(element, "proto"));
    plain.or(standard).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The last address that is no proxy; the first one where all are.
fn client_in(proxies: &[IpNet], list: &[&str]) -> Option<IpAddr> {
    let mut client = None;
    for text in list.iter().rev() {
        let address = address(text)?;
        client = Some(address);
        if !is_trusted(proxies, address) {
            break;
        }
    }
    client
}

/// The elements of a list, over all headers of this name. An unreadable header is an element that no one can read.
fn elements<'h>(headers: &'h Fields, name: &'h str) -> impl Iterator<Item = &'h str> {
    let lists = headers.all(name).map(|list| std::str::from_utf8(list).unwrap_or("unknown"));
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

/// A parameter of an element of `Forwarded`, without its quotes.
fn parameter<'e>(element: &'e str, name: &str) -> Option<&'e str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| known.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"'))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_wire::http1::head::Head;

    fn said(lines: &str) -> (Option<IpAddr>, bool) {
        let text = format!("GET / HTTP/1.1\r\nhost: h\r\n{lines}\r\n");
        let (head, _) = Head::parse(text.as_bytes()).unwrap().unwrap();
        let proxies = ["127.0.0.1/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        (client(&proxies, &head.fields), is_https(&head.fields))
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client_and_what_it_wrote_before_does_not_count() {
        for (lines, client) in [
            ("x-forwarded-for: 203.0.113.9\r\n", Some("203.0.113.9")),
            ("x-forwarded-for: 127.0.0.1, 203.0.113.9, 10.1.2.3\r\n", Some("203.0.113.9")),
            ("x-forwarded-for: 127.0.0.1\r\nx-forwarded-for: 203.0.113.9:5050\r\n", Some("203.0.113.9")),
            ("x-forwarded-for: 127.0.0.1\r\n", Some("127.0.0.1")),
            ("x-forwarded-for: 127.0.0.1, unknown\r\n", None),
            ("x-forwarded-for: \r\n", None),
            ("forwarded: for=\"[2001:db8::1]:4711\";proto=https, for=10.0.0.1\r\n", Some("2001:db8::1")),
            ("forwarded: for=_hidden;proto=https\r\n", None),
            ("forwarded: proto=https\r\n", None),
            ("forwarded: for=127.0.0.1\r\nx-forwarded-for: 203.0.113.9\r\n", None),
            ("x-forwarded-for: ::ffff:203.0.113.9\r\nforwarded: for=203.0.113.9\r\n", Some("203.0.113.9")),
            ("x-real-ip: 127.0.0.1\r\n", None),
        ] {
            assert_eq!(said(lines).0, client.map(|text| text.parse().unwrap()), "{lines}");
        }
    }

    #[test]
    fn the_proxy_next_to_the_gateway_says_whether_its_client_used_tls() {
        for (lines, is_https) in [
            ("x-forwarded-proto: https\r\n", true),
            ("x-forwarded-proto: https, http\r\n", false),
            ("forwarded: for=10.0.0.9;proto=http, for=10.0.0.1; Proto=\"HTTPS\"\r\n", true),
            ("", false),
        ] {
            assert_eq!(said(lines).1, is_https, "{lines}");
        }
    }
}
