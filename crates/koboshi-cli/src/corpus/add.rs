//! `koboshi corpus add`: checks cases that `koboshi explain --should-be` or a person wrote, and files each with those of its form.
//!
//! All or nothing: if one case cannot be taken, no file is changed. A case whose text is there already is passed over, so that the command can be given again.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anstream::stdout;
use koboshi::classify::{CATEGORIES, Classifier};
use koboshi::fault::Kind;
use koboshi::redact::Redactor;
use koboshi_config::config::Config;

use super::case::Case;
use super::score::score;
use crate::args::AddArgs;
use crate::say::Say;
use crate::{Exit, Failure, clock, rules};

/// What the log of an agent can be labelled.
pub(crate) const REASONS: &[&str] =
    &["quota", "rate_limit", "overloaded", "auth", "billing", "context", "network", "error", "none"];

/// A line that will be filed.
struct NewCase {
    id: String,
    line: String,
    file: PathBuf,
    is_right: bool,
}

/// What a corpus file has already.
#[derive(Default)]
struct KnownCases {
    ids: HashSet<String>,
    texts: HashSet<String>,
}

pub(crate) fn run(args: &AddArgs) -> Result<Exit, Failure> {
    let say = Say::new(args.lang.get(&Config::default()))?;
    let classifier = Classifier::new(rules::load(&args.rules.files)?, clock::zones());
    let mut known: BTreeMap<PathBuf, KnownCases> = BTreeMap::new();
    let mut new = Vec::new();
    let mut passed = 0;
    for source in &args.files {
        for (line, at) in lines(source)? {
            let place = format!("{}:{at}", source.display());
            let refused = |why: String| Failure::new(format!("{place}: {why}"));
            let case = Case::read(&line).map_err(refused)?;
            let file = args.to.join(format!("{}.jsonl", case.form().name()));
            let there = match known.entry(file.clone()) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(unread) => unread.insert(known_in(&file)?),
            };
            checked(&case, &say).map_err(refused)?;
            if !there.texts.insert(case.text()) {
                passed += 1;
                continue;
            }
            if !there.ids.insert(case.id().to_owned()) {
                return Err(refused(say.text("case-id-taken", &[("id", case.id())])));
            }
            let score = score(&classifier, &case, true).map_err(refused)?;
            new.push(NewCase { id: case.id().to_owned(), line, file, is_right: score.right });
        }
    }
    for case in &new {
        append(&case.file, &case.line)?;
    }
    let mut out = stdout().lock();
    for NewCase { id, file, is_right, .. } in &new {
        let state = if *is_right { "case-added-right" } else { "case-added-wrong" };
        writeln!(out, "{}", say.text(state, &[("id", id), ("file", &file.display().to_string())]))?;
    }
    let counts = [("new", new.len().to_string()), ("passed", passed.to_string())];
    let counts: Vec<(&str, &str)> = counts.iter().map(|(name, count)| (*name, count.as_str())).collect();
    writeln!(out, "{}", say.text("cases-added", &counts))?;
    Ok(Exit::Good)
}

/// An error where a case has a label that does not exist, or something like a key in it.
fn checked(case: &Case, say: &Say) -> Result<(), String> {
    let unknown = match case {
        Case::Provider(case) => {
            let kind = case.expect.kind.as_str();
            (kind != "ok" && Kind::from_name(kind).is_none()).then(|| kind.to_owned())
        }
        Case::Log(case) => {
            let reason = case.expect.reason.as_str();
            (!REASONS.contains(&reason)).then(|| reason.to_owned())
        }
        Case::Tool(case) => case.expect.category.clone().filter(|name| !CATEGORIES.contains(&name.as_str())),
        Case::Args(_) | Case::Sequence(_) => None,
    };
    if let Some(name) = unknown {
        return Err(say.text("case-label-unknown", &[("should", &name)]));
    }
    let text = case.text();
    if Redactor::new().redact(&text) != text {
        return Err(say.text("case-secret", &[]));
    }
    Ok(())
}

fn known_in(file: &Path) -> Result<KnownCases, Failure> {
    if !file.exists() {
        return Ok(KnownCases::default());
    }
    let mut known = KnownCases::default();
    for (line, at) in lines(file)? {
        let case =
            Case::read(&line).map_err(|error| Failure::new(format!("{}:{at}: {error}", file.display())))?;
        known.ids.insert(case.id().to_owned());
        known.texts.insert(case.text());
    }
    Ok(known)
}

/// The lines of a file that are not empty, with their numbers.
fn lines(path: &Path) -> Result<Vec<(String, usize)>, Failure> {
    let name = path.display();
    let unreadable = |error: std::io::Error| Failure::new(format!("{name}: {error}"));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut lines = Vec::new();
    for (line, at) in BufReader::new(file).lines().zip(1..) {
        let line = line.map_err(unreadable)?;
        if !line.trim().is_empty() {
            lines.push((line, at));
        }
    }
    Ok(lines)
}

fn append(file: &Path, line: &str) -> Result<(), Failure> {
    let name = file.display();
    let failed = |error: std::io::Error| Failure::new(format!("{name}: {error}"));
    // A last line without its end would swallow the new one.
    let before = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let gap = if before.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
    let mut file = OpenOptions::new().create(true).append(true).open(file).map_err(failed)?;
    file.write_all(format!("{gap}{line}\n").as_bytes()).map_err(failed)
}
