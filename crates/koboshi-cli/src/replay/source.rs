//! Reads recorded runs line by line: from a file, from one that is compressed with xz, or from a pipe. Memory is bounded by the
//! longest accepted line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;

/// Longer lines are refused; a run of three hundred calls with long outputs has a tenth of it.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// The largest dictionary of a compressed file, in KiB: that of the highest usual level.
const MAX_DICTIONARY_KIB: u32 = 128 * 1024;
/// What compressed files begin with.
const XZ: &[u8] = b"\xfd7zXZ\0";

/// Lines of an input.
pub(super) struct Source {
    reader: Box<dyn BufRead>,
    line: usize,
}

/// A line, or why it is invalid.
pub(super) enum Line {
    Text(String),
    TooLong,
    NoText,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::of(io::stdin().lock());
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Self::of(file)
    }

    fn of(inner: impl Read + 'static) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(256 * 1024, inner);
        let is_packed = reader.fill_buf()?.starts_with(XZ);
        let reader: Box<dyn BufRead> = if is_packed {
            Box::new(BufReader::with_capacity(
                256 * 1024,
                XzReader::new_mem_limit(reader, true, MAX_DICTIONARY_KIB),
            ))
        } else {
            Box::new(reader)
        };
        Ok(Self { reader, line: 0 })
    }

    /// Number of the line that was read last, from 1.
    pub(super) fn number(&self) -> usize {
        self.line
    }

    /// The next line without its end; none at the end of the input.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_add(1);
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if bytes.len() > MAX_LINE && !bytes.ends_with(b"\n") {
            drop(bytes);
            self.skip_line()?;
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(String::from_utf8(bytes).map_or(Line::NoText, Line::Text)))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}
