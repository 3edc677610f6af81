//! The snippets of docs/sessions.md that get a ticket: run as they are shown, at a gateway with keys. A session begins with each ticket, once.

use std::process::Command;

use super::*;
use sha2::Digest as _;

const PAGE: &str = include_str!("../../../../docs/sessions.md");
const ADDRESS: &str = "http://127.0.0.1:4141";
const KEY: &str = "kbs-app";

/// The code of a language in the page.
fn snippet(language: &str) -> &'static str {
    let begin = PAGE.split("\n## Tickets\n").nth(1).unwrap();
    let code =
        begin.split(&format!("```{language}\n")).nth(1).unwrap_or_else(|| panic!("no snippet in {language}"));
    code.split("```").next().unwrap()
}

/// A gateway whose tickets need this key.
fn with_keys(folder: &tempfile::TempDir) -> Served {
    let hash: String =
        sha2::Sha256::digest(KEY.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let config = folder.path().join("koboshi.yaml");
    let text = format!("keys: {{app: {{sha256: \"{hash}\"}}}}\nroutes: {{m: [sim/ok]}}\n");
    fs::write(&config, text).unwrap();
    Served::start(&config, &PathBuf::from("memory"))
}

/// A session begins with this ticket, and none with it a second time.
fn assert_good(gateway: &Served, ticket: &str, language: &str) {
    let hello = json!({"ticket": ticket});
    let mut client = SessionClient::try_begin(gateway.address, "tab", &hello)
        .unwrap_or_else(|end| panic!("{language}: {ticket}: {end:?}"));
    client.chat("c-1", "hello");
    assert!(!client.answer().is_empty());
    let again = SessionClient::try_begin(gateway.address, "tab", &hello);
    assert_eq!(again.err(), Some(SessionEnd::Closed(4401)), "{language}");
}

fn run(gateway: &Served, program: &str, arguments: &[&str], code: &str) -> String {
    let code = code.replace(ADDRESS, &format!("http://{}", gateway.address));
    let output = Command::new(program).args(arguments).arg(&code).env("KOBOSHI_KEY", KEY).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_snippets_for_python_and_node_get_a_ticket() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = with_keys(&folder);
    let python = format!("{}\nprint(ticket)", snippet("python"));
    assert_good(&gateway, &run(&gateway, "python3", &["-c"], &python), "Python");
    let node = format!("{}\nconsole.log(ticket);", snippet("js"));
    assert_good(&gateway, &run(&gateway, "node", &["--input-type=module", "--eval"], &node), "Node.js");
}

/// This file: the function below is the snippet for Rust, word for word.
const SOURCE: &str = include_str!("tickets.rs");

#[test]
fn the_snippet_for_rust_gets_a_ticket() {
    assert!(SOURCE.contains(snippet("text")), "copy the snippet of docs/sessions.md to the end of this file");
    let folder = tempfile::tempdir().unwrap();
    let gateway = with_keys(&folder);
    let secret = ticket(&format!("http://{}", gateway.address), KEY).unwrap();
    assert_good(&gateway, &secret, "Rust");
}

// Rust, with ureq 3 and serde_json
fn ticket(gateway: &str, key: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut answer = ureq::post(format!("{gateway}/v1/session/ticket"))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .send("{}")?;
    let ticket: serde_json::Value = serde_json::from_str(&answer.body_mut().read_to_string()?)?;
    Ok(ticket["ticket"].as_str().ok_or("no ticket")?.to_owned())
}
