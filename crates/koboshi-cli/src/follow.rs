//! Files that a config names (rules, facts of models, prepared answers, certificates): when what is in them changes, the config is to be taken anew.
//!
//! What counts is the content, as with the config itself, and a new content counts when two looks in a row saw the same: a file that is
//! being written does no harm. Whether the new content is good is found out by whoever takes it.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use koboshi_config::Config;

/// No file that a config names is longer; of one that is, the beginning is looked at.
const LONGEST: u64 = 4 * 1024 * 1024;

/// The files of one config.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    taken: u64,
    pending: Option<u64>,
}

impl Files {
    /// The files as they are now.
    pub(crate) fn of(config: &Config) -> Self {
        let of_providers =
            config.providers.values().flat_map(|one| one.ca_file.iter().chain(&one.credentials_file));
        let named =
            config.rules.iter().chain(&config.models_file).chain(&config.degrade.answers).chain(of_providers);
        let paths: Vec<PathBuf> = named.cloned().collect();
        Self { taken: look(&paths), paths, pending: None }
    }

    /// Looks at them; says whether something new is to be taken. `now`: somebody says that they are complete.
    pub(crate) fn changed(&mut self, now: bool) -> bool {
        let seen = look(&self.paths);
        if seen == self.taken {
            self.pending = None;
            return false;
        }
        let settled = now || self.pending == Some(seen);
        self.pending = (!settled).then_some(seen);
        if settled {
            self.taken = seen;
        }
        settled
    }
}

/// What is in all of them, as a number.
fn look(paths: &[PathBuf]) -> u64 {
    let mut hash = DefaultHasher::new();
    for path in paths {
        content(path).hash(&mut hash);
    }
    hash.finish()
}

/// None for a file that cannot be read; that it can be read again is a change too.
fn content(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_counts_when_two_looks_saw_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.yaml");
        std::fs::write(&path, "one").unwrap();
        let mut config = Config::default();
        config.degrade.answers = Some(path.clone());
        let mut files = Files::of(&config);
        assert!(!files.changed(false));
        std::fs::write(&path, "half").unwrap();
        assert!(!files.changed(false), "it may be being written");
        std::fs::write(&path, "whole").unwrap();
        assert!(!files.changed(false));
        assert!(files.changed(false));
        assert!(!files.changed(false), "told once");
        std::fs::write(&path, "told").unwrap();
        assert!(files.changed(true));
        std::fs::remove_file(&path).unwrap();
        assert!(files.changed(true), "gone");
        assert!(!Files::of(&Config::default()).changed(true), "a config without files");
    }
}
