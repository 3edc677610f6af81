//! The way out, as the environment says: whom TLS trusts, and the proxy.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::served::Served;
use koboshi_testkit::questions::{assert_whole, chat};
use koboshi_testkit::{Authority, Protocol, Proxy, Upstream, until};
use serde_json::json;
use tempfile::TempDir;

/// `user:word` as proxies want it.
const SIGNED: &str = "Basic dXNlcjp3b3Jk";

/// A gateway before one provider, with these variables and no others about proxies.
struct Outbound {
    served: Served,
    folder: TempDir,
}

impl Outbound {
    fn start(base_url: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), base_url, None, environment)
    }

    fn start_in(
        folder: TempDir,
        base_url: &str,
        ca_file: Option<&str>,
        environment: &[(&str, &str)],
    ) -> Self {
        let config = folder.path().join("koboshi.yaml");
        let mut one = json!({
            "kind": "openai", "base_url": base_url, "keys": ["sk-own"], "timeouts": {"connect": "2s"},
        });
        if let Some(file) = ca_file {
            one["ca_file"] = file.into();
        }
        let text = json!({
            "providers": {"one": one},
            "routes": {"m": ["one/ok"]},
            "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
            "breaker": {"open": {"initial": "50ms", "max": "50ms"}},
        });
        std::fs::write(&config, text.to_string()).unwrap();
        let mut all = vec![("NO_PROXY", ""), ("HTTP_PROXY", ""), ("HTTPS_PROXY", ""), ("ALL_PROXY", "")];
        all.extend(environment);
        let served = Served::start_with(&config, &folder.path().join("store.db"), &all);
        Self { served, folder }
    }

    fn answers(&self) {
        for stream in [true, false] {
            assert_whole(&self.served.post(&chat(stream), &[]), &chat(stream));
        }
    }

    /// No provider is reached; the gateway reports it, with this in its journal.
    fn fails(&self, sub: &str) {
        let answer = self.served.post(&chat(false), &[]);
        assert_eq!(answer.status, 502, "{answer:?}");
        assert_eq!(answer.json()["error"]["koboshi"]["kind"], "connection_failed", "{answer:?}");
        let entries = until("the fault is in the journal", || {
            let journal = self.served.get("/koboshi/journal?what=fault").json();
            journal["entries"].as_array().filter(|entries| !entries.is_empty()).cloned()
        });
        assert_eq!(entries[0]["data"]["sub"], sub, "{entries:?}");
    }
}

#[test]
fn an_authority_in_ssl_cert_file_is_trusted() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let upstream = Upstream::start_secure(&authority, Protocol::Http2);
    let file = authority.write_to(folder.path()).display().to_string();
    Outbound::start(&upstream.url(), &[("SSL_CERT_FILE", &file)]).answers();
    let stranger = Authority::new().write_to(folder.path()).display().to_string();
    Outbound::start(&upstream.url(), &[("SSL_CERT_FILE", &stranger)]).fails("certificate");
    assert_eq!(upstream.all_calls(), 2);
}

#[test]
fn an_authority_is_found_beside_the_config_and_followed() {
    let (old, new) = (Authority::new(), Authority::new());
    let upstream = Upstream::start_secure(&new, Protocol::Http1);
    let folder = tempfile::tempdir().unwrap();
    let _ = old.write_to(folder.path());
    let outbound = Outbound::start_in(folder, &upstream.url(), Some("authority.pem"), &[]);
    outbound.fails("certificate");
    let _ = new.write_to(outbound.folder.path());
    until("the new authority is trusted", || {
        let answer = outbound.served.post(&chat(false), &[]);
        (answer.status == 200).then_some(())
    });
    outbound.answers();
}

#[test]
fn a_secure_provider_is_asked_through_a_tunnel() {
    for speaks in [Protocol::Http1, Protocol::Http2] {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let upstream = Upstream::start_secure(&authority, speaks);
        let proxy = Proxy::to(upstream.port());
        let file = authority.write_to(folder.path()).display().to_string();
        let place = proxy.url("user:word");
        let environment = [("HTTPS_PROXY", place.as_str()), ("SSL_CERT_FILE", &file)];
        let outbound = Outbound::start("https://provider.test/v1", &environment);
        outbound.answers();
        assert_eq!(upstream.all_calls(), 2);
        for seen in upstream.requests() {
            assert_eq!(seen.header("proxy-authorization"), None, "that is not for the provider: {seen:?}");
        }
        // Each core has a connection of its own.
        for head in proxy.heads() {
            assert!(head.starts_with("CONNECT provider.test:443 HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(SIGNED), "{head}");
        }
        assert!(!proxy.heads().is_empty());
    }
}

#[test]
fn a_plain_provider_is_asked_by_the_proxy_that_knows_who_asks() {
    let upstream = Upstream::start();
    let proxy = Proxy::to(upstream.port());
    let place = proxy.url("user:word");
    Outbound::start("http://provider.test/v1", &[("HTTP_PROXY", &place)]).answers();
    let requests = upstream.requests();
    assert_eq!(requests.len(), 2);
    for seen in requests {
        assert_eq!(seen.path, "http://provider.test/v1/chat/completions");
        assert_eq!(
            (seen.header("host"), seen.header("proxy-authorization")),
            (Some("provider.test"), Some(SIGNED))
        );
    }
    assert!(!proxy.heads().is_empty());
}

#[test]
fn a_proxy_that_says_no_is_said() {
    let upstream = Upstream::start();
    let proxy = Proxy::to(upstream.port());
    proxy.refuse();
    let place = proxy.url("");
    Outbound::start("https://provider.test/v1", &[("ALL_PROXY", &place)]).fails("proxy");
    assert_eq!(upstream.all_calls(), 0);
}

#[test]
fn who_is_excepted_is_not_asked_through_the_proxy() {
    let upstream = Upstream::start();
    let proxy = Proxy::to(upstream.port());
    let place = proxy.url("");
    // This machine needs no exception.
    Outbound::start(&upstream.url(), &[("HTTP_PROXY", &place)]).answers();
    let environment = [("HTTP_PROXY", place.as_str()), ("NO_PROXY", "other.test, provider.test")];
    let outbound = Outbound::start("http://provider.test/v1", &environment);
    let answer = outbound.served.post(&chat(false), &[]);
    assert!(answer.status >= 500, "there is no such name: {answer:?}");
    assert!(proxy.heads().is_empty(), "{:?}", proxy.heads());
}
