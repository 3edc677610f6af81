//! Reads as much of an input as is needed.
//!
//! The last lines of a log show why it ended, even of a gigabyte: files are read from the end, of pipes only
//! head and tail are kept. Memory stays bounded for any input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use koboshi_report::phrase::Lang;

/// How much of the beginning is kept: enough for any answer that is worth judging as a whole.
const HEAD: usize = 4 * 1024 * 1024;
/// How much of the end is kept.
const TAIL: usize = koboshi::classify::TAIL_BYTES + 4096;

/// How much is examined to distinguish text from other data.
const SAMPLE: usize = 64 * 1024;

/// How ISO-2022-JP shifts to Japanese letters. No terminal knows these sequences.
const SHIFTS: [&str; 2] = ["\u{1b}$B", "\u{1b}$@"];

/// An input, as far as it was read.
#[derive(Debug)]
pub(crate) struct Input {
    /// The beginning, or all of it.
    pub(crate) head: String,
    /// The end, where the input is longer than the head.
    tail: Option<String>,
    /// When the file was last changed; standard input does not say.
    pub(crate) changed: Option<Timestamp>,
}

impl Input {
    /// Reads a file, or standard input.
    pub(crate) fn read(path: Option<&Path>) -> io::Result<Self> {
        match path {
            Some(path) if path != Path::new("-") => {
                let mut file = File::open(path)?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
                }
                if !metadata.is_file() {
                    return from_pipe(file);
                }
                let changed = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
                Ok(Self { changed, ..from_file(&mut file, metadata.len())? })
            }
            _ => from_pipe(io::stdin().lock()),
        }
    }

    /// The end of the input, which decides for a log.
    pub(crate) fn end(&self) -> &str {
        self.tail.as_deref().unwrap_or(&self.head)
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.end().trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty()
    }

    /// Whether the end of it, which decides, is not readable text: more than one character in ten is
    /// invalid, or ISO-2022-JP shifts to letters of two bytes each.
    pub(crate) fn is_binary(&self) -> bool {
        let end = self.end();
        let sample = end.get(end.ceil_char_boundary(end.len().saturating_sub(SAMPLE))..).unwrap_or_default();
        if SHIFTS.iter().any(|shift| sample.contains(shift)) {
            return true;
        }
        let other = sample.chars().filter(|c| is_no_text(*c)).count();
        other * 10 > sample.chars().count()
    }

    /// Whether a part between head and end was not read.
    pub(crate) fn is_cut(&self) -> bool {
        self.tail.is_some()
    }
}

/// The phrase for why an input cannot be read.
pub(crate) fn why_unreadable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::IsADirectory => "input-directory",
        io::ErrorKind::NotFound => "input-missing",
        io::ErrorKind::PermissionDenied => "input-denied",
        _ => "input-unreadable",
    }
}

/// The name of an input; none for standard input.
pub(crate) fn name_of(path: Option<&Path>, lang: Lang) -> Option<String> {
    let path = path.filter(|path| *path != Path::new("-"))?;
    Some(if lang == Lang::Ja { format!("「{}」", path.display()) } else { path.display().to_string() })
}

fn from_file(file: &mut File, len: u64) -> io::Result<Input> {
    let (head_len, tail_len) = (HEAD as u64, TAIL as u64);
    if len <= head_len {
        let mut bytes = Vec::new();
        file.take(head_len).read_to_end(&mut bytes)?;
        return Ok(Input { head: text(&bytes), tail: None, changed: None });
    }
    // A long file is a log: its beginning only shows its form.
    let mut head = vec![0; 4096];
    file.read_exact(&mut head)?;
    file.seek(SeekFrom::Start(len.saturating_sub(tail_len)))?;
    let mut tail = Vec::new();
    file.take(tail_len).read_to_end(&mut tail)?;
    Ok(Input { head: text(&head), tail: Some(text(&tail)), changed: None })
}

fn from_pipe(mut pipe: impl Read) -> io::Result<Input> {
    let mut head = Vec::new();
    (&mut pipe).take(HEAD as u64).read_to_end(&mut head)?;
    if head.len() < HEAD {
        return Ok(Input { head: text(&head), tail: None, changed: None });
    }
    let mut tail = head.get(HEAD - TAIL..).unwrap_or_default().to_vec();
    let mut buffer = vec![0; 64 * 1024];
    let mut more = false;
    loop {
        let count = match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        more = true;
        tail.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if tail.len() > 2 * TAIL {
            tail.drain(..tail.len() - TAIL);
        }
    }
    let tail = more.then(|| text(tail.get(tail.len().saturating_sub(TAIL)..).unwrap_or_default()));
    Ok(Input { head: text(&head), tail, changed: None })
}

/// Control characters that no terminal output contains, and the replacement of bytes that are no UTF-8.
fn is_no_text(c: char) -> bool {
    c == '\u{fffd}'
        || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{7}' | '\u{8}' | '\u{c}' | '\u{1b}'))
}

/// Bytes that are no UTF-8 become replacement characters: any log can be read. UTF-16 is recognised by its mark: Windows
/// shells write it into redirected files.
fn text(bytes: &[u8]) -> String {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(unit);
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_pipe_is_kept_whole() {
        let input = from_pipe(&b"one\ntwo\n"[..]).unwrap();
        assert_eq!((input.head.as_str(), input.end()), ("one\ntwo\n", "one\ntwo\n"));
        assert!(!input.is_cut());
    }

    #[test]
    fn a_long_pipe_keeps_its_two_ends() {
        let long = io::repeat(b'x').take(20 * 1024 * 1024).chain(&b"\nthe end"[..]);
        let input = from_pipe(long).unwrap();
        assert!(input.is_cut() && input.end().ends_with("the end"));
        assert!(input.end().len() <= TAIL);
    }

    #[test]
    fn text_differs_from_other_data() {
        let is_binary = |bytes: &[u8]| from_pipe(bytes).unwrap().is_binary();
        let noise: Vec<u8> = (0..4096u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        assert!(is_binary(&noise));
        assert!(is_binary(b"\x7fELF\0\0\0\0\x01\0\0"));
        for text in
            ["plain", "", "日本語のログ\r\n", "\u{1b}[31mError\u{1b}[0m\u{8}", "a log with one \0 in it"]
        {
            assert!(!is_binary(text.as_bytes()), "{text:?}");
        }
        assert!(is_binary(b"\x1b$B%(%i!<\x1b(B: 429\n"), "ISO-2022-JP");
        assert!(!is_binary(b"mostly ASCII with one \xff byte"));
    }

    #[test]
    fn the_files_of_windows_shells_are_read() {
        let wide: Vec<u8> = "\u{feff}Error: 429\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let input = from_pipe(&wide[..]).unwrap();
        assert_eq!((input.head.as_str(), input.is_binary()), ("Error: 429\n", false));
    }

    #[test]
    fn blank_inputs_are_empty() {
        for blank in ["", "\n", " \r\n\t", "\u{feff}"] {
            assert!(from_pipe(blank.as_bytes()).unwrap().is_empty(), "{blank:?}");
        }
        assert!(!from_pipe(&b"x"[..]).unwrap().is_empty());
    }

    #[test]
    fn broken_utf8_is_read_all_the_same() {
        assert_eq!(from_pipe(&b"a\xffb"[..]).unwrap().head, "a\u{fffd}b");
    }
}
