//! The log of one run: bounded, rotated, without secrets.
//!
//! `log` is the newest file, `log.1` the one before. When a run writes more than its logs may hold, the oldest lines go; the beginning of a
//! run is seldom what anybody looks for. Lines are masked as they come, so that no secret is on the disk for a moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use koboshi::redact::Redactor;

/// How large the logs of a run may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPolicy {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files of one run.
    pub files: u32,
}

impl Default for LogPolicy {
    fn default() -> Self {
        Self { file_bytes: 10 * 1024 * 1024, files: 3 }
    }
}

/// The log of one run.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    policy: LogPolicy,
    file: File,
    size: u64,
    waiting: Vec<u8>,
}

/// So much is put together before it is written.
const BATCH: usize = 64 * 1024;

impl Log {
    /// Opens the log at this place; what is there stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path, policy: LogPolicy) -> io::Result<Self> {
        let file = open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), policy, file, size, waiting: Vec::new() })
    }

    /// One more line; its secrets are taken out here.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn line(&mut self, line: &[u8], redactor: &Redactor) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        self.waiting.extend_from_slice(redactor.redact(&text).as_bytes());
        self.waiting.push(b'\n');
        if self.waiting.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if self.size >= self.policy.file_bytes {
            self.rotate()?;
        }
        let written = self.file.write_all(&self.waiting);
        self.size = self.size.saturating_add(self.waiting.len() as u64);
        self.waiting.clear();
        written
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: u32| self.path.with_extension(number.to_string());
        for number in (1..self.policy.files.saturating_sub(1)).rev() {
            // What is not there need not be moved.
            let _ = fs::rename(numbered(number), numbered(number + 1));
        }
        if self.policy.files > 1 {
            fs::rename(&self.path, numbered(1))?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.file = open(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_bounded_and_the_newest_lines_stay() {
        let home = tempfile::tempdir().unwrap();
        let policy = LogPolicy { file_bytes: 200_000, files: 3 };
        let redactor = Redactor::new();
        let mut log = Log::open(&home.path().join("log"), policy).unwrap();
        for number in 0..100_000 {
            log.line(format!("line {number}").as_bytes(), &redactor).unwrap();
        }
        log.flush().unwrap();
        let sizes: Vec<u64> = fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert!(
            sizes.len() == 3 && sizes.iter().sum::<u64>() < 3 * (200_000 + BATCH as u64 + 100),
            "{sizes:?}"
        );
        let newest = fs::read_to_string(home.path().join("log")).unwrap();
        assert!(newest.ends_with("line 99999\n"));
    }

    #[test]
    fn a_secret_is_never_on_the_disk_and_the_file_is_its_owners() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let mut log = Log::open(&path, LogPolicy::default()).unwrap();
        log.line(format!("using {key} now").as_bytes(), &Redactor::new()).unwrap();
        log.line(b"half a character: \xe8\xb5", &Redactor::new()).unwrap();
        log.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(key) && text.contains("using") && text.contains("half a character"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
