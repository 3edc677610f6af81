//! The log of one run: bounded, rotated, without secrets.
//!
//! `log` is the newest file, `log.1` the one before. When a run writes more than its logs may hold, the oldest lines go; the beginning of a
//! run is seldom what is looked for. Lines are masked before they are written, so that no secret is ever on the disk.
//!
//! Masking costs time, and must not hold an agent up. So both the bytes and the time spent per second are limited; output beyond that is
//! counted and left out, except for its last lines, and the log says how much it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use koboshi::redact::Redactor;
use koboshi::time::Moment;

/// How large the logs of a run may be, and how fast they may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPolicy {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files of one run.
    pub files: u32,
    /// Bytes a second.
    pub bytes_per_second: u64,
    /// Bytes that may come at once.
    pub burst: u64,
    /// The share of time that masking and writing may take: one part in this number.
    pub time_share: u32,
    /// How much time they may take at once.
    pub time_burst: Duration,
}

impl Default for LogPolicy {
    fn default() -> Self {
        Self {
            file_bytes: 10 * 1024 * 1024,
            files: 3,
            bytes_per_second: 4 * 1024 * 1024,
            burst: 16 * 1024 * 1024,
            time_share: 4,
            time_burst: Duration::from_millis(500),
        }
    }
}

/// The log of one run.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    policy: LogPolicy,
    /// Opened with the first line: an agent that says nothing needs no file.
    file: Option<(File, u64)>,
    budget: Budget,
    left_out: LeftOut,
}

/// What may be written now.
#[derive(Debug)]
struct Budget {
    bytes: u64,
    /// Nanoseconds; below zero after a write that took longer than there was.
    time: i64,
    since: Moment,
}

/// Output that came too fast.
#[derive(Debug, Default)]
struct LeftOut {
    /// The last lines of it.
    last: Vec<u8>,
    /// Bytes that are not in the log yet, its last lines included.
    bytes: u64,
    /// Bytes that were left out for good.
    in_all: u64,
}

/// How much of the end of such output is kept.
const LAST_LINES: usize = 64 * 1024;

impl Log {
    /// The log at this path; existing content stays.
    #[must_use]
    pub fn new(path: &Path, policy: LogPolicy, now: Moment) -> Self {
        let budget = Budget { bytes: policy.burst, time: nanos(policy.time_burst), since: now };
        Self { path: path.to_owned(), policy, file: None, budget, left_out: LeftOut::default() }
    }

    /// Adds lines, with their secrets taken out.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(&mut self, lines: &[u8], redactor: &Redactor, clock: &dyn Fn() -> Moment) -> io::Result<()> {
        let begun = clock();
        if !self.budget.take(lines.len() as u64, &self.policy, begun) {
            self.left_out.add(lines);
            return Ok(());
        }
        let written = self.write_last_lines(redactor).and_then(|()| self.write(lines, redactor));
        self.budget.time = self.budget.time.saturating_sub(nanos(clock().since(begun)));
        written
    }

    /// Writes what is pending: no more lines come.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self, redactor: &Redactor) -> io::Result<()> {
        self.write_last_lines(redactor)
    }

    /// Bytes that came too fast and are not in the log.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out.in_all.saturating_add(self.left_out.bytes)
    }

    /// The fast output is over: writes how much was left out, and its last lines.
    fn write_last_lines(&mut self, redactor: &Redactor) -> io::Result<()> {
        if self.left_out.bytes == 0 {
            return Ok(());
        }
        let last = std::mem::take(&mut self.left_out.last);
        let gone = self.left_out.bytes.saturating_sub(last.len() as u64);
        self.left_out.bytes = 0;
        self.left_out.in_all = self.left_out.in_all.saturating_add(gone);
        if gone > 0 {
            self.write(
                format!("[koboshi: {gone} bytes left out, they came too fast]\n").as_bytes(),
                redactor,
            )?;
        }
        self.write(&last, redactor)
    }

    fn write(&mut self, lines: &[u8], redactor: &Redactor) -> io::Result<()> {
        let text = String::from_utf8_lossy(lines);
        let masked = redactor.redact(&text);
        let (file, size) = self.open()?;
        *size = size.saturating_add(masked.len() as u64);
        file.write_all(masked.as_bytes())
    }

    /// The file to write to, rotated when full.
    fn open(&mut self) -> io::Result<&mut (File, u64)> {
        if self.file.as_ref().is_some_and(|(_, size)| *size >= self.policy.file_bytes) {
            self.file = None;
            self.rotate()?;
        }
        let opened = match self.file.take() {
            Some(opened) => opened,
            None => {
                let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
                let size = file.metadata()?.len();
                (file, size)
            }
        };
        Ok(self.file.insert(opened))
    }

    fn rotate(&self) -> io::Result<()> {
        let numbered = |number: u32| self.path.with_extension(number.to_string());
        for number in (1..self.policy.files.saturating_sub(1)).rev() {
            // A file that does not exist need not be moved.
            let _ = fs::rename(numbered(number), numbered(number + 1));
        }
        if self.policy.files > 1 { fs::rename(&self.path, numbered(1)) } else { fs::remove_file(&self.path) }
    }
}

impl Budget {
    /// Takes this many bytes if they are available.
    fn take(&mut self, bytes: u64, policy: &LogPolicy, now: Moment) -> bool {
        let passed = now.since(self.since);
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let earned = policy.bytes_per_second.saturating_mul(millis) / 1000;
        if earned > 0 {
            self.bytes = self.bytes.saturating_add(earned).min(policy.burst);
            let time = self.time.saturating_add(nanos(passed / policy.time_share.max(1)));
            self.time = time.min(nanos(policy.time_burst));
            self.since = now;
        }
        if self.time <= 0 {
            return false;
        }
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                true
            }
            None => false,
        }
    }
}

fn nanos(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

impl LeftOut {
    fn add(&mut self, lines: &[u8]) {
        self.bytes = self.bytes.saturating_add(lines.len() as u64);
        let from = lines.len().saturating_sub(LAST_LINES);
        let lines = lines.get(from..).unwrap_or_default();
        let beyond = (self.last.len() + lines.len()).saturating_sub(LAST_LINES);
        self.last.drain(..beyond.min(self.last.len()));
        self.last.extend_from_slice(lines);
        if beyond > 0 || from > 0 {
            // The rest of a cut line is useless.
            let begun = memchr::memchr(b'\n', &self.last).map_or(0, |end| end + 1);
            self.last.drain(..begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const START: Moment = Moment::START;

    fn sizes(home: &Path) -> Vec<u64> {
        fs::read_dir(home).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
    }

    #[test]
    fn logs_are_bounded_and_the_newest_lines_stay() {
        let home = tempfile::tempdir().unwrap();
        let policy = LogPolicy { file_bytes: 200_000, files: 3, ..LogPolicy::default() };
        let redactor = Redactor::new();
        let mut log = Log::new(&home.path().join("log"), policy, START);
        assert_eq!(sizes(home.path()), [0_u64; 0], "silence needs no file");
        for number in 0..100_000 {
            log.add(format!("line {number}\n").as_bytes(), &redactor, &|| START).unwrap();
        }
        log.finish(&redactor).unwrap();
        let sizes = sizes(home.path());
        assert!(sizes.len() == 3 && sizes.iter().sum::<u64>() < 3 * 200_100, "{sizes:?}");
        let newest = fs::read_to_string(home.path().join("log")).unwrap();
        assert!(newest.ends_with("line 99999\n"));
    }

    #[test]
    fn what_comes_too_fast_is_counted_and_its_last_lines_stay() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let policy = LogPolicy { bytes_per_second: 1000, burst: 100_000, ..LogPolicy::default() };
        let redactor = Redactor::new();
        let mut log = Log::new(&path, policy, START);
        let line = format!("{}\n", "x".repeat(99));
        for _ in 0..10_000 {
            log.add(line.as_bytes(), &redactor, &|| START).unwrap();
        }
        let last = format!("the last words\n{line}");
        log.add(last.as_bytes(), &redactor, &|| START).unwrap();
        assert!(fs::metadata(&path).unwrap().len() <= 100_000);
        log.finish(&redactor).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("the last words\n"), "the end is there");
        let written = 10_000 * 100 + last.len() as u64;
        let note = text.lines().find(|line| line.starts_with("[koboshi: ")).unwrap();
        let in_log = text.len() as u64 - note.len() as u64 - 1;
        assert_eq!(log.left_out(), written - in_log, "what is not there is counted");
        assert!(note.contains(&log.left_out().to_string()), "{note}");
        let later = START.after(Duration::from_secs(60));
        log.add(b"slow again\n", &redactor, &|| later).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("slow again\n"));
    }

    #[test]
    fn masking_that_takes_long_is_done_for_a_part_of_the_time_only() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let redactor = Redactor::new();
        let mut log = Log::new(&path, LogPolicy::default(), START);
        // Every call of the clock is half a second later: a slow machine.
        let now = Cell::new(START);
        let slow = || {
            now.set(now.get().after(Duration::from_millis(500)));
            now.get()
        };
        let line = |number: u32| format!("line {number} {}\n", "x".repeat(40_000));
        for number in 0..80 {
            log.add(line(number).as_bytes(), &redactor, &slow).unwrap();
        }
        log.finish(&redactor).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let written = text.lines().filter(|line| line.starts_with("line")).count();
        assert!((2..60).contains(&written) && log.left_out() > 0, "{written}");
        assert!(text.ends_with(&line(79)));
    }

    #[test]
    fn a_secret_is_never_on_the_disk_and_the_file_is_its_owners() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let mut log = Log::new(&path, LogPolicy::default(), START);
        log.add(format!("using {key} now\n").as_bytes(), &Redactor::new(), &|| START).unwrap();
        log.add(b"half a character: \xe8\xb5\n", &Redactor::new(), &|| START).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(key) && text.contains("using") && text.contains("half a character"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
