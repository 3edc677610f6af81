//! Requests of the chat dialect, the forms they are read into, and the bodies that are written from these forms.
//!
//! `UPDATE_GOLDEN=1 cargo test -p koboshi-wire --test chat_golden` writes the files anew; what changed is then to be reviewed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use koboshi_wire::chat::ChatRequest;
use koboshi_wire::chat::body::{Flavor, write};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat")
}

/// A line for each message and each tool; the rest as it was written.
fn lines(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap();
    ["{\"role\":", "{\"type\":\"function\",\"function\":{\"name\":", "],\""]
        .iter()
        .fold(text.to_owned(), |text, start| text.replace(start, &format!("\n{start}")))
}

fn agrees(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, found).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(golden, found, "{}", path.display());
}

#[test]
fn requests_are_read_and_written_as_reviewed() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        seen += 1;
        let body = std::fs::read(&path).unwrap();
        let form = ChatRequest::parse(&body).unwrap().form();
        agrees(&path.with_extension("form"), &format!("{form:#?}\n"));
        let mut written = String::new();
        for (name, flavor) in [("openai", Flavor::of(true, &form.model)), ("compatible", Flavor::default())] {
            let found = write(&form, flavor);
            written += &format!("# {name}\n{}\n{:#?}\n", lines(&found.body), found.left);
        }
        agrees(&path.with_extension("written"), &written);
    }
    assert!(seen >= 6, "the files are there");
}
