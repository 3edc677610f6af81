//! What several tests need: golden files, and a failure to start from.

#![allow(dead_code, clippy::unwrap_used, reason = "shared by several tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use koboshi::fault::Kind;
use koboshi::models::{Facts, Models};
use koboshi_wire::failure::Failure;

/// A file of `tests/golden`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// What was recorded.
pub(crate) fn recorded(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

/// Compares with a file of `tests/golden`; `KOBOSHI_GOLDEN=write` writes it again, for review.
pub(crate) fn golden(name: &str, found: &str) {
    let path = path(name);
    if std::env::var_os("KOBOSHI_GOLDEN").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, known, "{name}: KOBOSHI_GOLDEN=write writes it again");
}

/// A failure of which nothing more is known.
pub(crate) fn failure(kind: Kind, status: u16, message: &str) -> Failure<'_> {
    Failure {
        kind,
        status,
        message,
        code: None,
        param: None,
        request_id: None,
        retry_after: None,
        resets_at: None,
        is_final: false,
        koboshi: None,
    }
}

/// What is known of a model by its name, but for its limits: tests of them say them.
pub(crate) fn facts(model: &str) -> Facts {
    static MODELS: LazyLock<Models> = LazyLock::new(|| Models::builtin().unwrap());
    MODELS.facts("", model).with(|facts| (facts.max_output_tokens, facts.context_window) = (None, None))
}

/// The same of a model that thinks.
pub(crate) fn thinking(model: &str) -> Facts {
    facts(model).with(|facts| facts.reasoning = Some(true))
}
