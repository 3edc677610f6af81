//! The file of the error log: lines are added until it is full, then it is renamed and a new one begins.
//!
//! `errors.log` is the newest, `errors.log.1` the one before, and so on; what is beyond the number of kept files is deleted. All files together
//! take at most their number times the size, however many errors there are. A file that cannot be written is tried again with the next
//! line: the log of the process itself goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is renamed when it is full.
pub(crate) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    /// How many full files are kept beside it.
    kept: u32,
    out: Option<(File, u64)>,
}

impl RotatingFile {
    /// Opens the file, readable by this user only.
    pub(crate) fn open(path: &Path, max_bytes: u64, kept: u32) -> io::Result<Self> {
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

    fn rotate(&mut self) -> io::Result<()> {
        self.out = None;
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
}

/// The file and its size.
fn append(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

impl Write for RotatingFile {
    /// Writes a line, whole into one file.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self
            .out
            .as_ref()
            .is_some_and(|(_, size)| *size > 0 && size.saturating_add(length) > self.max_bytes)
        {
            self.rotate()?;
        }
        let (mut file, size) = match self.out.take() {
            Some(out) => out,
            None => append(&self.path)?,
        };
        file.write_all(line)?;
        self.out = Some((file, size.saturating_add(length)));
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
