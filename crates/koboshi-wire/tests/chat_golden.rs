//! Requests of the chat dialect, the forms they are read into, and the bodies that are written from these forms.
//!
//! `KOBOSHI_GOLDEN=write` writes the files anew; what changed is then to be reviewed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::chat::ChatRequest;
use koboshi_wire::chat::body::write;
use koboshi_wire::chat::model::Flavor;

use crate::common;
use crate::common::golden;

/// A line for each message and each tool; the rest as it was written.
fn lines(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap();
    ["{\"role\":", "{\"type\":\"function\",\"function\":{\"name\":", "],\""]
        .iter()
        .fold(text.to_owned(), |text, start| text.replace(start, &format!("\n{start}")))
}

#[test]
fn requests_are_read_and_written_as_reviewed() {
    let mut seen = 0;
    for entry in std::fs::read_dir(common::path("chat")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        seen += 1;
        let body = std::fs::read(&path).unwrap();
        let form = ChatRequest::parse(&body).unwrap().form();
        let name = path.file_stem().unwrap().to_string_lossy();
        golden(&format!("chat/{name}.form"), &format!("{form:#?}\n"));
        let mut written = String::new();
        for (name, flavor) in
            [("openai", Flavor::of(true, common::facts(&form.model))), ("compatible", Flavor::default())]
        {
            let found = write(&form, flavor);
            written += &format!("# {name}\n{}\n{:#?}\n", lines(&found.body), found.left);
        }
        golden(&format!("chat/{name}.written"), &written);
    }
    assert!(seen >= 6, "the files are there");
}
