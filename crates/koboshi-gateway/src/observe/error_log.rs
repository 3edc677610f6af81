//! The file of the error log: lines are added until it is full, then it is renamed and a new one begins.
//!
//! `errors.log` is the newest, `errors.log.1` the one before, and so on; what is beyond the number of kept files is deleted. All files together
//! take at most their number times the size, however many errors there are. A gateway and a supervisor with one config write the same file: each line
//! is written under the file's lock, so that neither goes on in a file that the other one has renamed. A file that cannot be written is tried
//! again with the next line: the log of the process itself goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use koboshi_config::gateway::{LogConfig, LogFormat};
use serde_json::Value;

use super::log::{Level, Log};

/// How long the end of a process waits for its last lines.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a line looks for the file that another process has begun meanwhile.
const MAX_RENAMES: u32 = 16;

/// The file of errors of a process that has no gateway.
pub struct ErrorLog(Log);

impl std::fmt::Debug for ErrorLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ErrorLog").finish_non_exhaustive()
    }
}

impl ErrorLog {
    /// Opens the file that the config names; none if it names none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(config: &LogConfig) -> io::Result<Option<Self>> {
        let Some(path) = &config.errors else { return Ok(None) };
        let file = RotatingFile::open(path, config.errors_max_bytes, config.errors_kept)?;
        Ok(Some(Self(Log::to(file, LogFormat::Json, Level::Warn))))
    }

    /// Writes a sentence with its fields, if its level (`error`, `warn`, `info` or `debug`) is that of an error or a warning.
    pub fn line(&self, level: &str, message: &str, facts: &Value) {
        self.0.line(Level::from_name(level), message, facts);
    }

    /// Waits briefly until all lines are written.
    pub fn finish(&self) {
        self.0.flush(LAST_LINES_TIMEOUT);
    }

    /// The log itself, which a gateway has beside its own.
    pub(crate) fn into_log(self) -> Log {
        self.0
    }
}

/// A file that is renamed when it is full.
struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    /// How many full files are kept beside it.
    kept: u32,
    out: Option<File>,
}

impl RotatingFile {
    /// Opens the file, readable by this user only.
    fn open(path: &Path, max_bytes: u64, kept: u32) -> io::Result<Self> {
        let out = Some(append(path)?);
        Ok(Self { path: path.to_owned(), max_bytes, kept, out })
    }

    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&self) -> io::Result<()> {
        // The oldest one goes: renaming replaces it.
        for number in (0..self.kept).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.kept == 0 {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }

    /// The file of this name, locked, with room for so many bytes. The lock ends when it is closed or unlocked.
    fn locked(&mut self, length: u64) -> io::Result<File> {
        for _ in 0..MAX_RENAMES {
            let file = match self.out.take() {
                Some(file) => file,
                None => append(&self.path)?,
            };
            lock(&file)?;
            // Another process may have renamed it while this one waited.
            if !is_named(&file, &self.path) {
                continue;
            }
            let size = file.metadata()?.len();
            if size == 0 || size.saturating_add(length) <= self.max_bytes {
                return Ok(file);
            }
            self.rotate()?;
        }
        Err(io::Error::other("the file is renamed again and again"))
    }
}

fn lock(file: &File) -> io::Result<()> {
    match file.lock() {
        // Without locks one process alone still writes whole lines.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        locked => locked,
    }
}

/// Whether a file still has this name.
fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(named)) => is_same(&ours, &named),
        _ => false,
    }
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Write for RotatingFile {
    /// Writes a line, whole into one file.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut file = self.locked(line.len() as u64)?;
        file.write_all(line)?;
        // A file system without locks has none to end.
        let _ = file.unlock();
        self.out = Some(file);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<(String, String)> {
        let mut all: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn full_files_are_renamed_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors.log");
        let mut log = RotatingFile::open(&path, 10, 2).unwrap();
        for number in 0..9 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        let expected =
            [("errors.log", "line 8\n"), ("errors.log.1", "line 7\n"), ("errors.log.2", "line 6\n")];
        assert_eq!(files(folder.path()), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        drop(log);
        let mut log = RotatingFile::open(&path, 20, 2).unwrap();
        log.write_all(b"after a restart\n").unwrap();
        assert_eq!(files(folder.path())[1].1, "line 8\n", "what is there counts");
    }

    /// Two descriptors of one file are to the lock what two processes are.
    #[test]
    fn two_writers_share_a_file_and_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors.log");
        std::thread::scope(|scope| {
            for writer in ["gateway", "supervisor"] {
                let mut log = RotatingFile::open(&path, 2_000, 1_000).unwrap();
                scope.spawn(move || {
                    for number in 0..1_000 {
                        log.write_all(format!("{writer} {number}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let files = files(folder.path());
        assert!(files.iter().all(|(_, text)| text.len() <= 2_000), "a file is larger than it may be");
        let mut lines: Vec<&str> = files.iter().flat_map(|(_, text)| text.lines()).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 2_000);
    }

    #[test]
    fn with_nothing_kept_there_is_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(&folder.path().join("errors.log"), 10, 0).unwrap();
        for number in 0..3 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        assert_eq!(files(folder.path()), [("errors.log".to_owned(), "line 2\n".to_owned())]);
        let long = "x".repeat(100) + "\n";
        log.write_all(long.as_bytes()).unwrap();
        assert_eq!(files(folder.path())[0].1, long, "a line is never cut");
    }
}
