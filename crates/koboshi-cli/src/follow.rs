//! Follows the files that a config names (rules, facts of models, prepared answers, certificates, kinds of agents): when their content changes, the config
//! is reloaded.
//!
//! The content counts, as with the config itself, and new content counts when two checks in a row read the same: a file that is
//! being written does no harm. The reload itself checks whether the new content is good.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use koboshi_config::Config;

/// Of longer files only the beginning is read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The files of one config.
#[derive(Debug, Clone)]
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
        let named = config
            .rules
            .iter()
            .chain(&config.models_file)
            .chain(&config.degrade.answers_file)
            .chain(&config.kinds)
            .chain(of_providers);
        Self::at(named.cloned().collect())
    }

    /// The files that say something of agents alone, as they are now.
    pub(crate) fn of_agents(config: &Config) -> Self {
        Self::at(config.kinds.clone())
    }

    fn at(paths: Vec<PathBuf>) -> Self {
        Self { taken: hash_contents(&paths), paths, pending: None }
    }

    /// Checks them; returns whether to reload. `now`: the user says that they are complete.
    pub(crate) fn changed(&mut self, now: bool) -> bool {
        let seen = hash_contents(&self.paths);
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

/// A hash of all contents.
fn hash_contents(paths: &[PathBuf]) -> u64 {
    let mut hash = DefaultHasher::new();
    for path in paths {
        content(path).hash(&mut hash);
    }
    hash.finish()
}

/// The content; none for a file that cannot be read, so that becoming readable is a change too.
fn content(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_when_two_checks_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.yaml");
        std::fs::write(&path, "one").unwrap();
        let mut config = Config::default();
        config.degrade.answers_file = Some(path.clone());
        let mut files = Files::of(&config);
        assert!(!files.changed(false));
        std::fs::write(&path, "half").unwrap();
        assert!(!files.changed(false), "it may be being written");
        std::fs::write(&path, "whole").unwrap();
        assert!(!files.changed(false));
        assert!(files.changed(false));
        assert!(!files.changed(false), "reported once");
        std::fs::write(&path, "changed").unwrap();
        assert!(files.changed(true));
        std::fs::remove_file(&path).unwrap();
        assert!(files.changed(true), "gone");
        assert!(!Files::of(&Config::default()).changed(true), "a config without files");
    }
}
