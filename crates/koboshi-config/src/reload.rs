//! A config that follows its file, and keeps the old one when the new one is bad.
//!
//! When to look is the caller's business, so there is no thread and no clock in here. [`Reloader::poll`] is for timers and
//! watchers: a new content counts when two looks in a row saw the same, so a file that is being written does no harm, be it cut
//! in a place where its first half is a good config too. [`Reloader::check_now`] is for SIGHUP and buttons: somebody says
//! that the file is complete, and it is taken at once. [`Reloader::current`] is cheap and never waits for the disk.
//!
//! * What counts is the content, not the time stamp: a file that was touched has not changed.
//! * A file that is bad, empty, gone or unreadable keeps the old config, and is reported once, not at every look. It is
//!   looked at again each time all the same: a missing rule file or permission may come back without a change of the text.
//! * An empty file means the defaults at the start, but never on the way: editors and full disks leave those behind.
//!
//! *Not here*: the content of rule files. The config names them; whoever uses them reads them again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::check::{Problem, Problems};
use crate::config::Config;
use crate::file::{load_bytes, read};
use crate::load::{Experts, Outside};
use crate::words::words;

/// Gives the values of variables.
pub type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What came of a look at the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Reload {
    /// Nothing new.
    Unchanged,
    /// The file changed, and this config holds from now on.
    Changed(Arc<Config>),
    /// The file cannot be used; the old config goes on.
    Bad(Problems),
    /// The file could not be used, and is again what it was when the config in use was read.
    Restored,
}

/// A config that follows its file.
pub struct Reloader {
    path: PathBuf,
    lookup: Lookup,
    experts: Experts,
    current: RwLock<Arc<Config>>,
    seen: Mutex<Seen>,
}

/// What is known about the file.
#[derive(Debug)]
struct Seen {
    /// The content that the current config came from.
    good: Vec<u8>,
    /// What the last look of a timer saw, when that was something else.
    pending: Option<Result<Vec<u8>, Problems>>,
    /// What was wrong at the last look.
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

    /// The same, held against what others know too.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn asking(experts: Experts, path: impl Into<PathBuf>, lookup: Lookup) -> Result<Self, Problems> {
        let path = path.into();
        let good = read(&path)?;
        let config = load_bytes(&path, &good, Outside { lookup: &*lookup, experts })?.config;
        Ok(Self {
            path,
            lookup,
            experts,
            current: RwLock::new(Arc::new(config)),
            seen: Mutex::new(Seen { good, pending: None, problems: None }),
        })
    }

    /// The file that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The config that holds now.
    #[must_use]
    pub fn current(&self) -> Arc<Config> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was wrong with the file at the last look, for status pages; none when it was good.
    #[must_use]
    pub fn problems(&self) -> Option<Problems> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).problems.clone()
    }

    /// Looks at the file now, and takes it as it is.
    pub fn check_now(&self) -> Reload {
        // Held over the whole look: of two looks at once, the later must not put back an older content.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.judge(&mut seen, read(&self.path))
    }

    /// Looks at the file, and takes what two looks in a row saw the same.
    pub fn poll(&self) -> Reload {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found = read(&self.path);
        let settled =
            found.as_ref().is_ok_and(|bytes| *bytes == seen.good) || seen.pending.as_ref() == Some(&found);
        if !settled {
            seen.pending = Some(found);
            return Reload::Unchanged;
        }
        self.judge(&mut seen, found)
    }

    fn judge(&self, seen: &mut Seen, found: Result<Vec<u8>, Problems>) -> Reload {
        let loaded = match found {
            Ok(bytes) if bytes == seen.good => {
                seen.pending = None;
                let was_bad = seen.problems.take().is_some();
                return if was_bad { Reload::Restored } else { Reload::Unchanged };
            }
            Ok(bytes) => self.load(seen, &bytes).map(|config| (bytes, config)),
            Err(problems) => Err(problems),
        };
        match loaded {
            Ok((bytes, config)) => {
                *seen = Seen { good: bytes, pending: None, problems: None };
                let config = Arc::new(config);
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&config);
                Reload::Changed(config)
            }
            Err(problems) if seen.problems.as_ref() == Some(&problems) => Reload::Unchanged,
            Err(problems) => {
                seen.problems = Some(problems.clone());
                Reload::Bad(problems)
            }
        }
    }

    fn load(&self, seen: &Seen, bytes: &[u8]) -> Result<Config, Problems> {
        if bytes.trim_ascii().is_empty() && !seen.good.trim_ascii().is_empty() {
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
        let outside = Outside { lookup: &*self.lookup, experts: self.experts };
        load_bytes(&self.path, bytes, outside).map(|loaded| loaded.config)
    }
}
