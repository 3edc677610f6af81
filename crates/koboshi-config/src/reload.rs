//! A config that follows its file, and stays unchanged when the new file is bad.
//!
//! The caller decides when to check, so there is no thread and no clock here. [`Reloader::poll`] is for timers and
//! watchers: new content counts when two checks in a row read the same, so a file that is being written does no harm, even if
//! its first half is a valid config too. [`Reloader::check_now`] is for SIGHUP and buttons: the user says
//! that the file is complete, and it is used at once. [`Reloader::current`] is cheap and never waits for the disk.
//!
//! * The content counts, not the time stamp: a file that was touched has not changed.
//! * If the file is bad, empty, gone or unreadable, the old config stays in use, and the problem is reported once, not at every check. The
//!   file is checked again each time all the same: a missing rule file or permission may come back without a change of the text.
//! * An empty file means the defaults at the start, but never at a reload: editors and full disks leave empty files behind.
//!
//! *Not here*: the content of rule files. The config names them; the code that uses them reads them again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::check::{Problem, Problems};
use crate::config::Config;
use crate::file::{load_bytes, read};
use crate::load::{Environment, Experts};
use crate::words::words;

/// Returns the values of variables.
pub type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The result of checking the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Reload {
    /// Nothing new.
    Unchanged,
    /// The file changed, and this config is used from now on.
    Changed(Arc<Config>),
    /// The file cannot be used; the old config stays in use.
    Bad(Problems),
    /// The file could not be used, and now has again the content of the config in use.
    Restored,
}

/// A config that follows its file.
pub struct Reloader {
    path: PathBuf,
    lookup: Lookup,
    experts: Experts,
    current: RwLock<Arc<Config>>,
    state: Mutex<FileState>,
}

/// What is known about the file.
#[derive(Debug)]
struct FileState {
    /// The content of the current config.
    good: Vec<u8>,
    /// What the last poll read, where it differed.
    pending: Option<Result<Vec<u8>, Problems>>,
    /// The problems of the last check.
    problems: Option<Problems>,
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Reloader {
    /// Loads the file for the first time.
    ///
    /// # Errors
    /// There is no old config to keep, so a bad file is an error here.
    pub fn new(path: impl Into<PathBuf>, lookup: Lookup) -> Result<Self, Problems> {
        Self::asking(Experts::NONE, path, lookup)
    }

    /// The same, with further checks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn asking(experts: Experts, path: impl Into<PathBuf>, lookup: Lookup) -> Result<Self, Problems> {
        let path = path.into();
        let good = read(&path)?;
        let config = load_bytes(&path, &good, Environment { lookup: &*lookup, experts })?.config;
        Ok(Self {
            path,
            lookup,
            experts,
            current: RwLock::new(Arc::new(config)),
            state: Mutex::new(FileState { good, pending: None, problems: None }),
        })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current config.
    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The problems of the file at the last check, for status pages; none when it was good.
    #[must_use]
    pub fn problems(&self) -> Option<Problems> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problems.clone()
    }

    /// Checks the file now, and uses it unchanged.
    pub fn check_now(&self) -> Reload {
        // Locked during the whole check: of two concurrent checks, the later must not restore older content.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.judge(&mut state, read(&self.path))
    }

    /// Checks the file, and uses content that two checks in a row read the same.
    pub fn poll(&self) -> Reload {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = read(&self.path);
        let settled =
            found.as_ref().is_ok_and(|bytes| *bytes == state.good) || state.pending.as_ref() == Some(&found);
        if !settled {
            state.pending = Some(found);
            return Reload::Unchanged;
        }
        self.judge(&mut state, found)
    }

    fn judge(&self, state: &mut FileState, found: Result<Vec<u8>, Problems>) -> Reload {
        let loaded = match found {
            Ok(bytes) if bytes == state.good => {
                state.pending = None;
                let was_bad = state.problems.take().is_some();
                return if was_bad { Reload::Restored } else { Reload::Unchanged };
            }
            Ok(bytes) => self.load(state, &bytes).map(|config| (bytes, config)),
            Err(problems) => Err(problems),
        };
        match loaded {
            Ok((bytes, config)) => {
                *state = FileState { good: bytes, pending: None, problems: None };
                let config = Arc::new(config);
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&config);
                Reload::Changed(config)
            }
            Err(problems) if state.problems.as_ref() == Some(&problems) => Reload::Unchanged,
            Err(problems) => {
                state.problems = Some(problems.clone());
                Reload::Bad(problems)
            }
        }
    }

    fn load(&self, state: &FileState, bytes: &[u8]) -> Result<Config, Problems> {
        if bytes.trim_ascii().is_empty() && !state.good.trim_ascii().is_empty() {
            let message = words(
                "the file is empty now; the config from before goes on",
                "ファイルが空になりました。以前の設定のまま動作します",
            );
            let hint = words(
                "to go back to the defaults, write `{}` or a comment",
                "既定値に戻すには、`{}` かコメントを書いてください",
            );
            let name = self.path.display().to_string();
            return Err(Problems::new(vec![Problem::of_file(&name, message, Some(hint.into()))]));
        }
        let outside = Environment { lookup: &*self.lookup, experts: self.experts };
        load_bytes(&self.path, bytes, outside).map(|loaded| loaded.config)
    }
}
