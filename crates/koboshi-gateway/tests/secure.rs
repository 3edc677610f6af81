//! Clients on TLS: HTTP/1.1 and HTTP/2 by a real client, certificates that change, handshakes that never end.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::*;
use koboshi_config::Config;
use koboshi_store::MemoryStore;
use koboshi_testkit::{Authority, DEADLINE, Upstream, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const VERSIONS: [(&str, &str); 2] = [("--http1.1", "1.1"), ("--http2", "2")];

/// A gateway with a certificate, and the authority that its clients trust.
struct Secure {
    stage: Stage,
    authority: PathBuf,
    log: Lines,
    folder: TempDir,
}

/// What curl got.
struct Got {
    status: String,
    version: String,
    head: String,
    body: String,
}

impl Secure {
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let (one, two) = (Upstream::start(), Upstream::start());
        let mut config = config();
        config.providers.insert("one".to_owned(), provider(one.url()));
        config.providers.insert("two".to_owned(), provider(two.url()));
        config.routes.insert("m".to_owned(), route(&["one/ok"]));
        let (certificate, key) = authority.write_server_to(folder.path());
        (config.serve.tls.certificate, config.serve.tls.key) = (Some(certificate), Some(key));
        change(&mut config);
        let (store, log) = (MemoryStore::default(), Lines::default());
        let gateway =
            start_on(config.clone(), std::sync::Arc::new(store.clone()), Some(log.clone())).unwrap();
        let stage = Stage { gateway, one, two, store, config };
        Self { stage, authority: authority.write_to(folder.path()), log, folder }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.stage.gateway.address().port())
    }

    fn command(&self, path: &str, args: &[&str]) -> Command {
        let mut command = Command::new("curl");
        command.args(["-sS", "-N", "--max-time", "60", "-D", "-", "-w", "\n\n%{http_code} %{http_version}"]);
        command.arg("--cacert").arg(&self.authority).args(args).arg(self.url(path));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Asks for a path. None where curl fails.
    fn try_get(&self, path: &str, args: &[&str]) -> Option<Got> {
        let done = self
            .command(path, args)
            .output()
            .unwrap_or_else(|error| panic!("curl must be installed (Debian: curl): {error}"));
        let text = String::from_utf8_lossy(&done.stdout).replace('\r', "");
        let (rest, end) = text.rsplit_once("\n\n")?;
        let (status, version) = end.split_once(' ')?;
        let (head, body) = rest.split_once("\n\n")?;
        let own = |text: &str| text.to_owned();
        done.status.success().then(|| Got {
            status: own(status),
            version: own(version),
            head: own(head),
            body: own(body),
        })
    }

    fn get(&self, path: &str, args: &[&str]) -> Got {
        self.try_get(path, args).unwrap_or_else(|| {
            let said = self.command(path, args).output().unwrap().stderr;
            panic!("curl failed at {path}: {}", String::from_utf8_lossy(&said))
        })
    }

    fn ask(&self, body: &Value, args: &[&str]) -> Got {
        let file = self.folder.path().join("body.json");
        std::fs::write(&file, body.to_string()).unwrap();
        let data = format!("@{}", file.display());
        let own = ["-H", "content-type: application/json", "--data-binary", &data];
        self.get("/v1/chat/completions", &[args, &own[..]].concat())
    }
}

#[test]
fn every_client_gets_whole_answers_in_the_version_that_it_chose() {
    let secure = Secure::start(|_| {});
    for (version, name) in VERSIONS {
        let whole = secure.ask(&chat(false), &[version]);
        assert_eq!((whole.status.as_str(), whole.version.as_str()), ("200", name), "{}", whole.head);
        let answer: Value = serde_json::from_str(&whole.body).unwrap();
        assert!(answer["choices"][0]["message"]["content"].is_string(), "{answer}");
        let stream = secure.ask(&chat(true), &[version]);
        assert_eq!(stream.status, "200");
        assert!(stream.body.contains("data: [DONE]"), "{}", stream.body);
        assert_eq!(secure.get("/v1/nothing", &[version]).status, "404");
        // Large enough for the cores of large requests, and for many frames.
        let mut large = chat(false);
        large["messages"][0]["content"] = "word ".repeat(500_000).into();
        assert_eq!(secure.ask(&large, &[version]).status, "200");
        // A body that is refused before it is read.
        large["messages"][0]["content"] = "x".repeat(40 << 20).into();
        assert_eq!(secure.ask(&large, &[version]).status, "413", "{version}");
    }
}

#[test]
fn many_streams_of_one_connection_are_served_at_once() {
    let secure = Secure::start(|config| {
        config.routes.insert("slow".to_owned(), route(&["one/ok?latency=300ms"]));
    });
    let mut body = chat(true);
    body["model"] = "slow".into();
    let data = body.to_string();
    let mut args =
        vec!["--http2", "-Z", "--parallel-max", "20", "-H", "content-type: application/json", "-d", &data];
    let url = secure.url("/v1/chat/completions");
    args.extend(std::iter::repeat_n(url.as_str(), 19));
    let done = secure.command("/v1/chat/completions", &args).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(text.matches("data: [DONE]").count(), 20);
}

/// A client that asks and is then gone.
fn leave(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_a_client_gave_up_is_given_up_at_the_provider_too() {
    let secure = Secure::start(|config| {
        config.routes.insert("silent".to_owned(), route(&["one/ok?latency=10m"]));
        config.routes.insert("stalls".to_owned(), route(&["one/stall?after=3"]));
        timeouts(config, "one", |limits| {
            let long = Some(ms(600_000));
            (limits.first_token, limits.unary, limits.idle) = (long, long, long);
        });
    });
    for (version, _) in VERSIONS {
        for model in ["silent", "stalls"] {
            let (before, left) = (secure.stage.one.all_calls(), secure.stage.one.cancelled());
            let mut body = chat(true);
            body["model"] = model.into();
            let data = body.to_string();
            let args = [version, "-H", "content-type: application/json", "-d", &data];
            let child = secure.command("/v1/chat/completions", &args).spawn().unwrap();
            until("the provider is asked", || (secure.stage.one.all_calls() > before).then_some(()));
            leave(child);
            until("the provider is left", || (secure.stage.one.cancelled() > left).then_some(()));
        }
    }
}

#[test]
fn a_changed_certificate_is_used_and_a_broken_one_is_not() {
    let mut secure = Secure::start(|_| {});
    assert_eq!(secure.get("/health", &["--http2"]).status, "200");
    let files = secure.stage.config.serve.tls.clone();
    std::fs::write(files.certificate.unwrap(), "half a file").unwrap();
    let lines =
        until("it is logged", || Some(secure.log.like("the one before stays")).filter(|all| !all.is_empty()));
    assert!(lines[0]["why"].as_str().unwrap().contains("server.pem"), "{lines:?}");
    assert_eq!(secure.get("/health", &["--http1.1"]).status, "200");
    let other = Authority::new();
    let _ = other.write_server_to(secure.folder.path());
    secure.authority = other.write_to(secure.folder.path());
    until("the new certificate is in use", || secure.try_get("/health", &["--http2"]));
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_at_the_start() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (certificate, key) = Authority::new().write_server_to(folder.path());
    let (_, foreign) = Authority::new().write_server_to(other.path());
    let (empty, none) = (folder.path().join("empty.pem"), folder.path().join("none.pem"));
    std::fs::write(&empty, "").unwrap();
    let refused = |certificate: &Path, key: &Path| {
        let mut config = config();
        let own = |path: &Path| Some(path.to_owned());
        (config.serve.tls.certificate, config.serve.tls.key) = (own(certificate), own(key));
        start(config, &MemoryStore::default()).err().unwrap().to_string()
    };
    for (certificate, key, says) in [
        (&none, &key, ["serve.tls.certificate", "none.pem"]),
        (&empty, &key, ["serve.tls.certificate", "empty.pem: there is no certificate in it"]),
        (&key, &key, ["serve.tls.certificate", "server.key: there is no certificate in it"]),
        (&certificate, &none, ["serve.tls.key", "none.pem"]),
        (&certificate, &certificate, ["serve.tls.key", "server.pem: there is no private key in it"]),
        (&certificate, &foreign, ["serve.tls.key", "it is not the key of"]),
    ] {
        let error = refused(certificate, key);
        assert!(says.iter().all(|part| error.contains(part)), "{error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
}

#[test]
fn a_handshake_has_the_time_of_a_head_and_plain_http_is_not_served() {
    let secure = Secure::start(|config| config.serve.head_time = ms(500));
    let connect = || {
        let stream = TcpStream::connect(secure.stage.gateway.address()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    };
    let mut silent = connect();
    let mut plain = connect();
    plain.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut text = Vec::new();
    let _ = plain.read_to_end(&mut text);
    assert!(!String::from_utf8_lossy(&text).contains("HTTP/1.1"), "an alert of TLS at most");
    assert_eq!(silent.read(&mut [0; 16]).unwrap(), 0, "it was closed");
    assert_eq!(secure.get("/health", &["--http2"]).status, "200");
}

#[test]
fn the_cookie_of_the_dashboard_is_for_tls_only() {
    let hash = Sha256::digest(b"op-secret").iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let secure = Secure::start(|config| config.admin.sha256 = Some(hash));
    let data = json!({"key": "op-secret"}).to_string();
    for (version, _) in VERSIONS {
        let got =
            secure.get("/koboshi/session", &[version, "-H", "content-type: application/json", "-d", &data]);
        assert_eq!(got.status, "200", "{}", got.body);
        let set =
            got.head.lines().find(|line| line.to_lowercase().starts_with("set-cookie")).unwrap().to_owned();
        assert!(set.contains("; Secure"), "{set}");
        // HTTP/2 sends it in pieces where there are several.
        let cookie = set.split_once(": ").unwrap().1.split(';').next().unwrap().to_owned();
        let cookie = format!("cookie: a=b; {cookie}; c=d");
        let visitor = secure.get("/koboshi/session", &[version, "-H", &cookie]);
        assert!(visitor.body.contains("\"signed_in\":true"), "{}", visitor.body);
    }
}
