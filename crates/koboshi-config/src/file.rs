//! Finds and reads the file, and checks the rule files and the models file that it names.
//!
//! This is the shell around [`load`](crate::load::load): it reads the disk and decides nothing. At max a mebibyte is
//! read, whatever the file claims to be.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use koboshi::classify::{RuleSource, Rules};
use koboshi::models::{ModelSource, Models};

use crate::check::{Problem, Problems};
use crate::config::Config;
use crate::load::{Environment, LoadedConfig, MAX_BYTES, load_located, too_large};
use crate::source::Source;
use crate::tree::{self, Spot, without_place};
use crate::words::{Text, Words, text, tr, words};

/// The name of the file.
pub const FILE_NAME: &str = "koboshi.yaml";
/// The variable that names the file.
pub const VARIABLE: &str = "KOBOSHI_CONFIG";
/// Larger files that the config names are refused: they are written by hand.
const MAX_NAMED_BYTES: usize = 4 * 1024 * 1024;

/// Which file to read: the one given, else the one that `KOBOSHI_CONFIG` names, else `./koboshi.yaml`, else
/// `koboshi/koboshi.yaml` in `$XDG_CONFIG_HOME` or `~/.config`. None: there is no file, and the defaults apply.
///
/// A file that was named must exist; of the default places, the first that exists is used. One that exists but cannot
/// be read is used too, so that it is reported and not skipped.
#[must_use]
pub fn locate(asked: Option<&Path>, lookup: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = || lookup(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = || usual_places(lookup).into_iter().find(|path| path.symlink_metadata().is_ok());
    asked.map(Path::to_path_buf).or_else(named).or_else(usual)
}

/// The default places of the file, in order.
#[must_use]
pub fn usual_places(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let folder = |name: &str| lookup(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // A relative path is invalid by the specification.
    let home = folder("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| folder("HOME").map(|home| home.join(".config")));
    let mut places = vec![PathBuf::from(FILE_NAME)];
    places.extend(home.map(|home| home.join("koboshi").join(FILE_NAME)));
    places
}

/// Reads a config file and the rule files that it names.
///
/// # Errors
/// Everything that is wrong, with its place; [`Problems::is_unreadable`] when the file itself could not be read.
pub fn load_file(path: &Path, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Config, Problems> {
    load_bytes(path, &read(path)?, Environment::new(lookup)).map(|loaded| loaded.config)
}

/// The same with warnings, and with all checks that the file's surroundings allow.
///
/// # Errors
/// As [`load_file`].
pub fn check_file(path: &Path, outside: Environment<'_>) -> Result<LoadedConfig, Problems> {
    load_bytes(path, &read(path)?, outside)
}

/// Reads the bytes of a config file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problems> {
    let name = path.display().to_string();
    match read_at_most(path, MAX_BYTES) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(Problems::unreadable(too_large(&name))),
        Err(error) => {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => Some(words(
                    "is the path right? It is relative to the current folder",
                    "パスは正しいですか？ 現在のフォルダーからの相対パスです",
                )),
                io::ErrorKind::PermissionDenied => Some(words(
                    "the user that runs koboshi must be able to read it",
                    "koboshi を実行するユーザーに読み取り権限が必要です",
                )),
                _ => None,
            };
            let message = Text::of(|language| {
                let reason = reason(&error).get(language).to_owned();
                tr!(language, "cannot be read: {reason}", "読み込めません: {reason}")
            });
            Err(Problems::unreadable(Problem::of_file(&name, message, hint.map(Text::from))))
        }
    }
}

/// Loads a config from the bytes of its file, and checks the rule files that it names.
pub(crate) fn load_bytes(
    path: &Path,
    bytes: &[u8],
    outside: Environment<'_>,
) -> Result<LoadedConfig, Problems> {
    let name = path.display().to_string();
    let text = as_text(&name, bytes)?;
    let loaded = load_located(&name, text, outside)?;
    if loaded.config.rules.is_empty() && loaded.config.models_file.is_none() {
        return Ok(loaded);
    }
    let root = tree::parse(text).ok().flatten();
    let source = Source::of_tree(&name, text, root.as_ref());
    let mut problems = check_rules(&source, &loaded.config.rules, &loaded.rules);
    if let (Some(path), Some(spot)) = (&loaded.config.models_file, loaded.models_file) {
        problems.extend(check_models(&source, path, spot));
    }
    if problems.is_empty() { Ok(loaded) } else { Err(Problems::new(problems).beside(loaded.warnings)) }
}

fn as_text<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, Problems> {
    let nothing = bytes.iter().position(|byte| *byte == 0);
    let error = match (std::str::from_utf8(bytes), nothing) {
        (Ok(text), None) => return Ok(text),
        (Ok(_), Some(at)) => at,
        (Err(error), at) => at.map_or(error.valid_up_to(), |at| at.min(error.valid_up_to())),
    };
    let before = bytes.get(..error).unwrap_or_default();
    let text = String::from_utf8_lossy(before);
    let line = u64::try_from(text.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1);
    let column = text.rsplit('\n').next().map_or(0, |last| last.chars().count());
    let column = u64::try_from(column).unwrap_or(u64::MAX).saturating_add(1);
    let spot = Spot { line, column, start: None, chars: 1 };
    // The line is not shown: it is no text.
    let problem = Source::plain(name, "").problem(
        spot,
        "",
        words("this is no text in UTF-8", "UTF-8 のテキストではありません"),
        Some(
            words(
                "is this the right file? If it is, save it as UTF-8 in your editor",
                "ファイルは正しいですか？ 正しければ、エディターで UTF-8 として保存してください",
            )
            .into(),
        ),
    );
    Err(Problems::new(vec![problem]))
}

/// Reads and compiles the rule files: a config that names a broken one is broken.
fn check_rules(source: &Source<'_>, paths: &[PathBuf], spots: &[Spot]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut texts = Vec::new();
    for (path, spot) in paths.iter().zip(spots) {
        match text_of(path) {
            Ok(text) => texts.push((path.display().to_string(), text)),
            Err(reason) => problems.push(unusable(source, *spot, (path, "rules", RULE_FILE), &reason)),
        }
    }
    let sources: Vec<_> = texts.iter().map(|(name, text)| RuleSource { name, text }).collect();
    if let Err(error) = Rules::with_user(&sources) {
        let text = texts.iter().find(|(name, _)| *name == error.file).map_or("", |(_, text)| text.as_str());
        let hint = words(
            "how rule files are written is described in docs/rules.md",
            "ルールファイルの書き方は docs/rules.md にあります",
        );
        let message = Text::new(without_place(&error.message), without_place(&error.message_ja));
        problems.push(Source::plain(&error.file, text).problem(
            at(error.line, error.column),
            "rules",
            message,
            Some(hint.into()),
        ));
    }
    problems
}

/// Reads and compiles the models file.
fn check_models(source: &Source<'_>, path: &Path, spot: Spot) -> Option<Problem> {
    let text = match text_of(path) {
        Ok(text) => text,
        Err(reason) => {
            return Some(unusable(source, spot, (path, "models_file", MODELS_FILE), &reason));
        }
    };
    let name = path.display().to_string();
    let error = Models::with_user(&[ModelSource { name: &name, text: &text }]).err()?;
    let hint = words(
        "how models files are written is described in docs/models.md",
        "モデルファイルの書き方は docs/models.md にあります",
    );
    // The core has this message in English only.
    let said = without_place(&error.message);
    let message = text!("{said}", "モデルファイルに誤りがあります: {said}");
    let problem = Source::plain(&name, &text);
    Some(problem.problem(at(error.line, error.column), "models_file", message, Some(hint.into())))
}

fn at(line: u64, column: u64) -> Spot {
    Spot { line: line.max(1), column: column.max(1), start: None, chars: 1 }
}

/// The names of kinds of files.
const RULE_FILE: Words = words("rule file", "ルールファイル");
const MODELS_FILE: Words = words("models file", "モデルファイル");

/// The text of a file that the config names.
fn text_of(path: &Path) -> Result<String, Text> {
    let bytes = match read_at_most(path, MAX_NAMED_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(words("it is too large for such a file", "大きすぎます").into()),
        Err(error) => return Err(reason(&error)),
    };
    String::from_utf8(bytes)
        .map_err(|_| words("it is no text in UTF-8", "UTF-8 のテキストではありません").into())
}

fn unusable(
    source: &Source<'_>,
    spot: Spot,
    (path, key, what): (&Path, &str, Words),
    reason: &Text,
) -> Problem {
    let name = path.display();
    let message = Text::of(|language| {
        let (what, reason) = (what.get(language), reason.get(language));
        tr!(language, "the {what} {name} cannot be used: {reason}", "{what} {name} を使えません: {reason}")
    });
    let hint = words(
        "paths are relative to the folder of the config file",
        "パスは設定ファイルのフォルダーからの相対パスです",
    );
    source.problem(spot, key, message, Some(hint.into()))
}

/// The whole file, or none if it is larger.
fn read_at_most(path: &Path, max: usize) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= max).then_some(bytes))
}

/// The reason, in words that do not differ between systems.
fn reason(error: &io::Error) -> Text {
    let known: Option<Words> = match error.kind() {
        io::ErrorKind::NotFound => Some(words("there is no such file", "ファイルがありません")),
        io::ErrorKind::PermissionDenied => Some(words("permission denied", "権限がありません")),
        io::ErrorKind::IsADirectory => Some(words("it is a folder", "フォルダーです")),
        _ => None,
    };
    known.map_or_else(|| text!("{error}", "{error}"), Text::from)
}
