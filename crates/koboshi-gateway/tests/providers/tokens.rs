//! Tokens that run out: from a scripted endpoint, and from a real command.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi_config::Config;
use koboshi_config::gateway::{LogFormat, ProviderConfig, ProviderKind};
use koboshi_gateway::{Gateway, Setup};
use koboshi_store::{MemoryStore, Query, Store};
use koboshi_testkit::until;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::Server;

/// What the gateway writes to its log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A gateway with one provider, `p`, and all that it reports.
struct TokenStage {
    gateway: Gateway,
    store: MemoryStore,
    lines: Lines,
    config: Config,
}

impl TokenStage {
    fn by(provider: ProviderConfig, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        config.providers.insert("p".to_owned(), provider);
        change(&mut config);
        let (store, lines) = (MemoryStore::default(), Lines::default());
        let gateway = Gateway::start(Setup {
            config: config.clone(),
            store: Arc::new(store.clone()),
            node: "test".parse().unwrap(),
            lookup: Arc::new(|_: &str| None),
            zones: TimeZoneDatabase::none(),
            zone: TimeZone::UTC,
            log: Some(Box::new(lines.clone())),
            log_format: LogFormat::Json,
            seed: 7,
            demo: false,
            operator: koboshi_gateway::Operator::default(),
        })
        .unwrap();
        Self { gateway, store, lines, config }
    }

    fn ask(&self, model: &str) -> Answer {
        let mut body = chat(false);
        body["model"] = model.into();
        let mut client = Client::to(self.gateway.address());
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.read()
    }

    /// Everything that the gateway wrote, except to the provider.
    fn everything(&self, answer: &Answer) -> String {
        let entries = until("the journal has the fault", || {
            let all = self.store.query(&Query { limit: 1000, ..Query::default() }).unwrap();
            (!all.is_empty()).then_some(all)
        });
        let lines = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
        format!("{}\n{entries:?}\n{lines}", answer.text())
    }
}

fn refusal() -> (u16, Value) {
    (400, json!({"error": {"message": "no", "type": "invalid_request_error"}}))
}

/// As Google says it.
fn expired() -> (u16, Value) {
    let reason =
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_EXPIRED"}]);
    let said = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
    let error = json!({"code": 401, "message": said, "status": "UNAUTHENTICATED", "details": reason});
    (401, json!({"error": error}))
}

/// Gives `ya29.1`, `ya29.2` and so on.
fn endpoint(lasts: u64) -> Server {
    Server::start(move |_, before| {
        let token = format!("ya29.{}", before + 1);
        (200, json!({"access_token": token, "expires_in": lasts, "token_type": "Bearer"}))
    })
}

/// A service account whose tokens come from there.
fn account(folder: &Path, endpoint: &Server) -> PathBuf {
    account_of("me", folder, endpoint)
}

fn account_of(user: &str, folder: &Path, endpoint: &Server) -> PathBuf {
    let pem = include_str!("../../src/route/token/rsa-for-tests.pem");
    let file = json!({
        "type": "service_account",
        "project_id": "proj-1",
        "private_key_id": "k1",
        "private_key": pem,
        "client_email": format!("{user}@proj-1.iam.gserviceaccount.com"),
        "token_uri": endpoint.url("/token"),
    });
    let path = folder.join("account.json");
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

fn vertex(server: &Server, credentials: PathBuf) -> ProviderConfig {
    let mut provider = ProviderConfig::new(ProviderKind::Vertex);
    provider.base_url = Some(server.url("/v1"));
    provider.credentials_file = Some(credentials);
    provider.location = Some("europe-west1".to_owned());
    provider
}

#[test]
fn a_service_account_gets_one_token_for_many_requests() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(3600));
    let server = Server::refusing();
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    assert!(endpoint.asked().is_empty(), "nothing is fetched before it is needed");
    for _ in 0..3 {
        stage.ask("p/gemini-3");
    }
    let path = "/v1/projects/proj-1/locations/europe-west1/publishers/google/models/gemini-3:generateContent";
    assert_eq!(server.asked()[0].path, path, "the project comes with the account");
    assert_eq!(server.bearers(), ["ya29.1"; 3]);
    assert_eq!(endpoint.asked().len(), 1);
    let asked = &endpoint.asked()[0];
    assert_eq!(asked.path, "/token");
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=eyJ";
    assert!(asked.body.starts_with(grant), "{}", asked.body);
}

#[test]
fn an_expired_token_is_refreshed_once_and_the_request_sent_again() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(3600));
    let server = Server::start(|asked, _| if asked.bearer() == "ya29.1" { expired() } else { refusal() });
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    assert_error(&stage.ask("p/gemini-3"), 400, "invalid_request");
    assert_eq!(server.bearers(), ["ya29.1", "ya29.2"]);
    assert_eq!(endpoint.asked().len(), 2);
    stage.ask("p/gemini-3");
    assert_eq!(server.bearers()[2], "ya29.2", "the new one stays");
}

#[test]
fn a_provider_that_takes_no_token_is_asked_twice_and_no_more() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(3600));
    let server = Server::start(|_, _| expired());
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    let answer = stage.ask("p/gemini-3");
    assert_eq!((answer.status, answer.header("x-koboshi-fault")), (502, Some("token_expired")));
    assert_eq!(server.bearers(), ["ya29.1", "ya29.2"]);
    let everything = stage.everything(&answer);
    assert!(!everything.contains("ya29.") && !everything.contains("PRIVATE KEY"), "{everything}");
}

#[test]
fn the_next_token_is_fetched_without_a_request() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(2));
    let server = Server::refusing();
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    stage.ask("p/gemini-3");
    until("the next token was fetched", || (endpoint.asked().len() >= 2).then_some(()));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_reload_keeps_the_token() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(3600));
    let server = Server::refusing();
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    stage.ask("p/gemini-3");
    stage.gateway.reload(stage.config.clone()).unwrap();
    stage.ask("p/gemini-3");
    assert_eq!((server.bearers(), endpoint.asked().len()), (vec!["ya29.1".to_owned(); 2], 1));
    // Another account is another token.
    let mut other = stage.config.clone();
    let more = tempfile::tempdir().unwrap();
    other.providers.get_mut("p").unwrap().credentials_file =
        Some(account_of("another", more.path(), &endpoint));
    stage.gateway.reload(other).unwrap();
    stage.ask("p/gemini-3");
    assert_eq!((server.bearers()[2].as_str(), endpoint.asked().len()), ("ya29.2", 2));
}

#[test]
fn credentials_of_another_kind_in_the_environment_do_not_prevent_a_start() {
    let (folder, endpoint) = (tempfile::tempdir().unwrap(), endpoint(3600));
    let person = folder.path().join("person.json");
    std::fs::write(&person, json!({"type": "authorized_user"}).to_string()).unwrap();
    let providers = |credentials: PathBuf| {
        let lookup = move |name: &str| match name {
            "GOOGLE_APPLICATION_CREDENTIALS" => Some(credentials.display().to_string()),
            "GOOGLE_CLOUD_PROJECT" => Some("proj-1".to_owned()),
            _ => None,
        };
        Gateway::start(Setup {
            config: config(),
            store: Arc::new(MemoryStore::default()),
            node: "test".parse().unwrap(),
            lookup: Arc::new(lookup),
            zones: TimeZoneDatabase::none(),
            zone: TimeZone::UTC,
            log: None,
            log_format: LogFormat::Json,
            seed: 7,
            demo: false,
            operator: koboshi_gateway::Operator::default(),
        })
        .unwrap()
        .providers()
    };
    assert_eq!(providers(person), ["sim"]);
    assert_eq!(providers(account(folder.path(), &endpoint)), ["sim", "vertex"]);
}

#[test]
fn an_account_that_gets_no_token_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Server::start(|_, _| {
        (400, json!({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}))
    });
    let (server, other) = (Server::refusing(), koboshi_testkit::Upstream::start());
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |config| {
        config.providers.insert("other".to_owned(), provider(other.url()));
        config.routes.insert("m".to_owned(), route(&["p/gemini-3", "other/ok"]));
    });
    for _ in 0..3 {
        let answer = stage.ask("m");
        assert_eq!((answer.status, answer.header("x-koboshi-target")), (200, Some("other/ok")));
    }
    assert!(server.asked().is_empty(), "without a token the provider is not asked");
    assert_eq!(endpoint.asked().len(), 1, "and the account rests");
    let answer = stage.ask("m");
    assert!(stage.everything(&answer).contains("invalid_grant"), "people learn why");
}

#[test]
fn an_endpoint_that_is_down_is_a_passing_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Server::start(|_, before| {
        let token = json!({"access_token": "ya29.late", "expires_in": 3600});
        if before == 0 { (503, json!({})) } else { (200, token) }
    });
    let server = Server::refusing();
    let stage = TokenStage::by(vertex(&server, account(folder.path(), &endpoint)), |_| {});
    assert_error(&stage.ask("p/gemini-3"), 400, "invalid_request");
    assert_eq!(server.bearers(), ["ya29.late"]);
}

// ===== Commands =====

/// A provider of OpenAI's kind with a real command that says this in a shell.
fn commanded(server: &Server, shell: &str) -> ProviderConfig {
    let mut provider = ProviderConfig::new(ProviderKind::Openai);
    provider.base_url = Some(server.url("/v1"));
    provider.token_command = ["sh", "-c", shell].map(str::to_owned).to_vec();
    provider
}

#[test]
fn a_command_prints_the_token_and_is_run_again_when_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("runs").display().to_string();
    let server = Server::start(|asked, _| if asked.bearer() == "cmd-1" { expired() } else { refusal() });
    let shell = format!("echo run >> '{count}'; echo cmd-$(($(wc -l < '{count}')))");
    let stage = TokenStage::by(commanded(&server, &shell), |_| {});
    for _ in 0..3 {
        assert_error(&stage.ask("p/m"), 400, "invalid_request");
    }
    assert_eq!(server.bearers(), ["cmd-1", "cmd-2", "cmd-2", "cmd-2"]);
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 2);
}

#[test]
fn a_command_may_print_json() {
    let server = Server::refusing();
    let shell = r#"echo '{"access_token": "cmd.json", "expires_in": 3600}'"#;
    TokenStage::by(commanded(&server, shell), |_| {}).ask("p/m");
    assert_eq!(server.bearers(), ["cmd.json"]);
}

#[test]
fn a_command_that_fails_says_why_and_no_secret() {
    let server = Server::refusing();
    for shell in [
        "echo 'not logged in; api_key=sk-hunter2hunter2hunter2' >&2; exit 3",
        "echo sk-hunter2hunter2hunter2 and more words",
        "exec /there/is/no/such/program",
    ] {
        let stage = TokenStage::by(commanded(&server, shell), |_| {});
        let answer = stage.ask("p/m");
        assert_eq!(
            (answer.status, answer.header("x-koboshi-fault")),
            (502, Some("token_expired")),
            "{shell}"
        );
        let everything = stage.everything(&answer);
        assert!(everything.contains("token command") && !everything.contains("hunter2"), "{everything}");
    }
    let mut missing = commanded(&server, "");
    missing.token_command = vec!["/there/is/no/such/program".to_owned()];
    let stage = TokenStage::by(missing, |_| {});
    let answer = stage.ask("p/m");
    assert_eq!(answer.header("x-koboshi-fault"), Some("token_expired"));
    assert!(server.asked().is_empty());
}
