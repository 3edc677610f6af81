//! A config that follows its file, and keeps the old one when the new one is bad.
//!
//! [`Reloader::check_now`] looks at the file and says what came of it; when to look (a timer, SIGHUP, a file watcher)
//! is the caller's business, so there is no thread and no clock in here. [`Reloader::current`] is cheap and never waits for
//! the disk.
//!
//! * What counts is the content, not the time stamp: a file that was touched has not changed.
//! * A file that is bad, gone or unreadable keeps the old config, and is reported once, not at every look. It is looked
//!   at again each time all the same: a missing rule file or permission may have come back without a change of the text.
//! * An editor that empties a file and then writes it does no harm: an empty file keeps the old config, and so does, at
//!   the first look, a text that ends in the middle of a line where the old one did not. At the second look the same
//!   text is what the user wrote.
//!
//! *Not here*: the content of rule files. The config names them; whoever uses them reads them again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::check::{Problem, Problems};
use crate::config::Config;
use crate::file::{load_bytes, read};

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
}

/// A config that follows its file.
pub struct Reloader {
    path: PathBuf,
    lookup: Lookup,
    current: RwLock<Arc<Config>>,
    seen: Mutex<Seen>,
}

/// What is known about the file.
#[derive(Debug)]
struct Seen {
    /// The content that the current config came from.
    good: Vec<u8>,
    /// A content that looked half-written at the last look.
    half: Option<Vec<u8>>,
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
        let path = path.into();
        let good = read(&path)?;
        let config = load_bytes(&path, &good, &*lookup)?;
        Ok(Self {
            path,
            lookup,
            current: RwLock::new(Arc::new(config)),
            seen: Mutex::new(Seen { good, half: None, problems: None }),
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

    /// Looks at the file now.
    pub fn check_now(&self) -> Reload {
        // Held over the whole look: of two looks at once, the later must not put back an older content.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = read(&self.path).and_then(|bytes| {
            if bytes == seen.good {
                return Ok(None);
            }
            self.refuse_unfinished(&mut seen, &bytes)?;
            let config = load_bytes(&self.path, &bytes, &*self.lookup)?;
            Ok(Some((bytes, config)))
        });
        match loaded {
            Ok(None) => {
                seen.half = None;
                seen.problems = None;
                Reload::Unchanged
            }
            Ok(Some((bytes, config))) => {
                *seen = Seen { good: bytes, half: None, problems: None };
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

    /// A file that is being written is not judged by its first half.
    fn refuse_unfinished(&self, seen: &mut Seen, bytes: &[u8]) -> Result<(), Problems> {
        let name = self.path.display().to_string();
        if bytes.trim_ascii().is_empty() && !seen.good.trim_ascii().is_empty() {
            let message = "the file is empty now; the config from before goes on";
            let hint = Some("to go back to the defaults, write `{}` or a comment".to_owned());
            return Err(Problems::new(vec![Problem::of_file(&name, message, hint)]));
        }
        let cut = seen.good.ends_with(b"\n") && !bytes.ends_with(b"\n");
        if cut && seen.half.as_deref() != Some(bytes) {
            seen.half = Some(bytes.to_vec());
            let message = "the file ends in the middle of a line, as if it were still being written";
            let hint = Some("if it is complete, it is taken at the next look".to_owned());
            return Err(Problems::new(vec![Problem::of_file(&name, message, hint)]));
        }
        Ok(())
    }
}
