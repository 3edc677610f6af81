//! The shared vectors of the session protocol: the TypeScript client runs the same files.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi::session::Transcript;
use serde_json::{Value, json};

#[test]
fn every_vector_ends_as_it_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/session");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let vector: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut transcript = Transcript::default();
        for (at, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
            let applied = transcript.apply_frame(&step["frame"]);
            assert_eq!(json!(applied), step["expect"], "{}: step {at}", path.display());
        }
        assert_eq!(json!(transcript), vector["transcript"], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 44, "{seen}");
}
