//! Reads the logs of runs, for `koboshi logs` and for the admin API.
//!
//! A log is written while it is read, and rotated: a reader keeps its place as a file and an offset in it, so that a rotation neither repeats
//! nor leaves out a line that is still on the disk. It reads files only; the supervisor need not run.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use crate::keep::{AGENTS, JUDGED};

/// A run has at most this many older files.
const MAX_OLDER: u32 = 9;
/// The length of a run's id: the nanosecond of its start, with zeros before it.
const ID_LENGTH: usize = 20;

/// The logs of all agents of a folder of runs.
#[derive(Debug, Clone)]
pub struct Logs {
    agents: PathBuf,
}

/// Why there is no such log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLog {
    /// No agent of this name has run; these have.
    Agent(Vec<String>),
    /// The agent has several projects, and one must be named.
    Project(Vec<String>),
    /// There is no such run; this is how many are kept.
    Run(usize),
}

/// Which run is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// 1 is the newest, 2 the one before it.
    Nth(usize),
    /// By its id.
    Id(u64),
}

/// The log of one run.
#[derive(Debug, Clone)]
pub struct RunLog {
    /// `agent/project`.
    pub agent: String,
    folder: PathBuf,
}

/// How far a reader is: which file, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    file: u64,
    offset: u64,
}

/// A piece of a log.
#[derive(Debug)]
pub struct Piece {
    /// Whole lines, unless a line is longer than a piece.
    pub bytes: Vec<u8>,
    /// Where the next piece begins; none before the first line was written.
    pub next: Option<Place>,
    /// There is more to read at once.
    pub more: bool,
}

impl Logs {
    /// Of the supervisor that has this folder of runs.
    #[must_use]
    pub fn of(runs: &Path) -> Self {
        Self { agents: runs.join(AGENTS) }
    }

    /// The log of a run of an agent: `agent/project`; the project may be left out where there is one only.
    ///
    /// # Errors
    /// There is no such agent or run.
    pub fn find(&self, name: &str, which: Which) -> Result<RunLog, NoLog> {
        let home = self.home(name)?;
        let runs = folders(&home);
        let at = match which {
            Which::Nth(nth) => runs.len().checked_sub(nth),
            Which::Id(id) => runs.iter().position(|run| id_of(run) == Some(id)),
        };
        let folder = at.and_then(|at| runs.get(at)).ok_or(NoLog::Run(runs.len()))?;
        Ok(RunLog { agent: self.name_of(&home), folder: folder.clone() })
    }

    /// The folder of an agent's runs.
    fn home(&self, name: &str) -> Result<PathBuf, NoLog> {
        if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
            return Err(NoLog::Agent(self.known()));
        }
        let path = self.agents.join(name);
        if name.contains('/') {
            let is_home = name.matches('/').count() == 1 && path.is_dir();
            return if is_home { Ok(path) } else { Err(NoLog::Agent(self.known())) };
        }
        let projects = folders(&path);
        match &projects[..] {
            [] => Err(NoLog::Agent(self.known())),
            [project] => Ok(project.clone()),
            projects => Err(NoLog::Project(projects.iter().map(|path| self.name_of(path)).collect())),
        }
    }

    /// The agents that have run.
    fn known(&self) -> Vec<String> {
        let projects = folders(&self.agents).into_iter().flat_map(|agent| folders(&agent));
        projects.map(|path| self.name_of(&path)).collect()
    }

    fn name_of(&self, home: &Path) -> String {
        home.strip_prefix(&self.agents).unwrap_or(home).display().to_string()
    }
}

impl RunLog {
    /// The id of the run, which stays the same when newer ones follow.
    #[must_use]
    pub fn id(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the agent has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.folder.join("end.json").exists()
    }

    /// Whether its end was judged: nothing more is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.folder.join(JUDGED).exists()
    }

    /// Reads at most about this many bytes from a place on, or from the oldest line that is kept.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, from: Option<Place>, max: usize) -> io::Result<Piece> {
        let mut piece = Piece { bytes: Vec::new(), next: from, more: false };
        let files = self.files();
        // Where the file of the place is gone, so are the lines up to the oldest one.
        let begun = from.and_then(|place| files.iter().position(|(_, known)| *known == place.file));
        for (file, identity) in files.into_iter().skip(begun.unwrap_or(0)) {
            let offset = from.filter(|place| place.file == identity).map_or(0, |place| place.offset);
            let room = max.saturating_sub(piece.bytes.len());
            if room == 0 {
                piece.more = true;
                break;
            }
            let (read, more) = read_lines(file, offset, room, &mut piece.bytes)?;
            piece.next = Some(Place { file: identity, offset: offset.saturating_add(read) });
            piece.more = more;
            if more {
                break;
            }
        }
        Ok(piece)
    }

    /// Its files, oldest first, opened at once: a rotation meanwhile moves none of them.
    fn files(&self) -> Vec<(File, u64)> {
        let older = (1..=MAX_OLDER).rev().map(|number| self.folder.join(format!("log.{number}")));
        let mut found: Vec<(File, u64)> = Vec::new();
        for path in older.chain([self.folder.join("log")]) {
            let Ok(file) = File::open(path) else { continue };
            let Ok(facts) = file.metadata() else { continue };
            // One that was renamed between two of these steps would be there twice.
            let identity = identity(&facts);
            if found.iter().all(|(_, known)| *known != identity) {
                found.push((file, identity));
            }
        }
        found
    }
}

/// Which file it is, whatever its name. Numbers of removed files are used again, so the time of its birth belongs to it, where the system tells
/// that.
fn identity(facts: &fs::Metadata) -> u64 {
    let born = facts.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born = born.and_then(|age| u64::try_from(age.as_nanos()).ok()).unwrap_or_default();
    facts.ino().rotate_left(40) ^ born
}

/// Reads up to `room` bytes from an offset, to the end of a line where more follows; returns how many, and whether more follows.
fn read_lines(mut file: File, offset: u64, room: usize, into: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    file.seek(SeekFrom::Start(offset))?;
    let begin = into.len();
    let limit = u64::try_from(room).unwrap_or(u64::MAX).saturating_add(1);
    let read = file.take(limit).read_to_end(into)?;
    if read <= room {
        return Ok((read as u64, false));
    }
    let piece = into.get(begin..begin.saturating_add(room)).unwrap_or_default();
    let whole = memchr::memrchr(b'\n', piece).map_or(piece.len(), |end| end + 1);
    into.truncate(begin.saturating_add(whole));
    Ok((whole as u64, true))
}

fn id_of(run: &Path) -> Option<u64> {
    run.file_name()?.to_str()?.parse().ok()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

impl FromStr for Which {
    type Err = ();

    /// A number of few digits counts from the newest; one as long as an id is one.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number: u64 = text.parse().map_err(|_| ())?;
        if text.len() == ID_LENGTH {
            return Ok(Self::Id(number));
        }
        usize::try_from(number).ok().filter(|nth| *nth > 0).map(Self::Nth).ok_or(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.file, self.offset)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (file, offset) = text.split_once('-').ok_or(())?;
        Ok(Self { file: file.parse().map_err(|_| ())?, offset: offset.parse().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const RUN: &str = "01794900000000000000";

    fn home() -> (TempDir, Logs, PathBuf) {
        let runs = tempfile::tempdir().unwrap();
        let folder = runs.path().join("agents/writer/site").join(RUN);
        fs::create_dir_all(&folder).unwrap();
        let logs = Logs::of(runs.path());
        (runs, logs, folder)
    }

    fn text(piece: &Piece) -> String {
        String::from_utf8_lossy(&piece.bytes).into_owned()
    }

    #[test]
    fn a_reader_keeps_its_place_over_rotations() {
        let (_runs, logs, folder) = home();
        let log = logs.find("writer", Which::Nth(1)).unwrap();
        assert_eq!((log.agent.as_str(), log.id().as_str()), ("writer/site", RUN));
        let empty = log.read(None, 1000).unwrap();
        assert!(empty.bytes.is_empty() && empty.next.is_none());
        fs::write(folder.join("log"), "one\ntwo\n").unwrap();
        let first = log.read(empty.next, 5).unwrap();
        assert_eq!((text(&first).as_str(), first.more), ("one\n", true));
        fs::rename(folder.join("log"), folder.join("log.1")).unwrap();
        fs::write(folder.join("log"), "three, which is longer than all before it\n").unwrap();
        let second = log.read(first.next, 1000).unwrap();
        assert_eq!(text(&second), "two\nthree, which is longer than all before it\n");
        assert!(!second.more && log.read(second.next, 1000).unwrap().bytes.is_empty());
        // Its file is gone: what is kept is read from its beginning.
        fs::rename(folder.join("log"), folder.join("log.1")).unwrap();
        fs::write(folder.join("log"), "four\n").unwrap();
        let place = first.next.map(|place| place.to_string().parse().unwrap());
        assert_eq!(
            text(&log.read(place, 1000).unwrap()),
            "three, which is longer than all before it\nfour\n"
        );
    }

    #[test]
    fn every_line_comes_once_whatever_the_size_of_pieces() {
        let (_runs, logs, folder) = home();
        let all: String = (0..200).map(|number| format!("line {number}\n")).collect();
        let (older, newer) = all.split_at(all.find("line 90").unwrap());
        fs::write(folder.join("log.1"), older).unwrap();
        fs::write(folder.join("log"), newer).unwrap();
        let log = logs.find("writer/site", RUN.parse().unwrap()).unwrap();
        for size in [1, 7, 8, 64, 10_000] {
            let (mut got, mut place) = (String::new(), None);
            loop {
                let piece = log.read(place, size).unwrap();
                got += &text(&piece);
                place = piece.next;
                if !piece.more {
                    break;
                }
            }
            assert_eq!(got, all, "{size}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let (runs, logs, _) = home();
        let known = vec!["writer/site".to_owned()];
        for name in ["nobody", "writer/shop", "", "..", "../agents", "writer/site/x", "writer/..", "/etc"] {
            assert_eq!(logs.find(name, Which::Nth(1)).unwrap_err(), NoLog::Agent(known.clone()), "{name}");
        }
        assert_eq!(logs.find("writer", Which::Nth(2)).unwrap_err(), NoLog::Run(1));
        assert_eq!(logs.find("writer", Which::Id(7)).unwrap_err(), NoLog::Run(1));
        fs::create_dir_all(runs.path().join("agents/writer/shop")).unwrap();
        let both = vec!["writer/shop".to_owned(), "writer/site".to_owned()];
        assert_eq!(logs.find("writer", Which::Nth(1)).unwrap_err(), NoLog::Project(both));
        for wrong in ["0", "-1", "x", "", "123456789012345678901"] {
            assert!(wrong.parse::<Which>().is_err(), "{wrong}");
        }
    }
}
