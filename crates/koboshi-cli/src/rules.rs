//! Loads the built-in rules and the user's rule files.

use std::path::PathBuf;

use koboshi::classify::{RuleSource, Rules};

use crate::Failure;

/// A rule file is written by hand; one larger than this is something else.
const LARGEST: u64 = 4 * 1024 * 1024;

pub(crate) fn load(files: &[PathBuf]) -> Result<Rules, Failure> {
    let mut texts = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let unreadable = |reason: String| Failure::new(format!("cannot read rule file {name}: {reason}"));
        let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
        if size > LARGEST {
            return Err(unreadable(format!("it has {size} bytes, {LARGEST} are the most")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        texts.push((name, text));
    }
    let sources: Vec<_> = texts.iter().map(|(name, text)| RuleSource { name, text }).collect();
    Rules::with_user(&sources).map_err(|error| Failure::new(error.to_string()))
}
