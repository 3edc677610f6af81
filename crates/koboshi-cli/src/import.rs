//! `koboshi import`: configs of other gateways, translated into ours.
//!
//! The config goes to standard output or into a file; what could not be carried over goes to standard error, so that a pipe can separate
//! the two, and as comments into the config. Where both end up on one terminal, only the comments are printed.

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use koboshi_config::config::Language;
use koboshi_config::litellm::{Level, Translation, translate};
use koboshi_config::load::MAX_BYTES;
use serde_json::json;

use crate::args::{Format, LangArgs};
use crate::init::{make_folder, next_commands};
use crate::input::why_unreadable;
use crate::say::Say;
use crate::{Exit, Failure, settings};

const EXAMPLES: &str = "\
Examples:
  koboshi import litellm config.yaml                    shows the translation, with notes as comments
  koboshi import litellm config.yaml -o koboshi.yaml    writes it; notes also go to standard error
  koboshi import litellm config.yaml --format json      for programs: the config, what is not the same, the variables

Keys that the file holds never appear in the translation: a variable is named in their place.

Exit status: 0 everything was translated, 1 written, but something could not be translated,
2 the file cannot be read, is none of LiteLLM's, or nothing in it can be translated.";

const LEFT: Style = AnsiColor::Yellow.on_default().bold();
const ACTION: Style = Style::new().bold();

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Translate the config.yaml of LiteLLM's proxy
    #[command(after_help = EXAMPLES)]
    Litellm(LitellmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LitellmArgs {
    /// LiteLLM's config.yaml; `-` reads standard input
    file: PathBuf,
    /// Where to write the translation [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file that is there
    #[arg(long, requires = "output")]
    force: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(command: &ImportCommand) -> Result<Exit, Failure> {
    let ImportCommand::Litellm(args) = command;
    let say = Say::new(settings::language(&args.lang))?;
    let language = say.language();
    let name = args.file.display().to_string();
    let bytes = read(&args.file).map_err(|error| {
        let shown = [("name", name.as_str()), ("why", &error.to_string())];
        Failure::new(say.text(why_unreadable(&error), &shown))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::new(say.text("input-binary", &[("name", &name), ("command", "import litellm -")]))
    })?;
    let translation =
        translate(&name, &text, language).map_err(|problems| Failure::new(problems.show(language)))?;
    if let Some(output) = &args.output {
        write(output, &translation.text, args.force).map_err(|error| {
            let place = output.display().to_string();
            match error.kind() {
                ErrorKind::AlreadyExists => Failure::new(say.text("import-there", &[("place", &place)])),
                _ => {
                    let reason = error.to_string();
                    Failure::new(say.text("init-cannot-write", &[("place", &place), ("reason", &reason)]))
                }
            }
        })?;
    }
    match args.format {
        Format::Json => {
            let answer = as_json(&name, args.output.as_deref(), &translation, language);
            let mut out = stdout().lock();
            serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Text => {
            if args.output.is_none() {
                stdout().lock().write_all(translation.text.as_bytes())?;
            }
            if !shown_in_comments(args) {
                notes(&translation, &name, &say)?;
            }
            if let Some(output) = &args.output {
                let place = output.display().to_string();
                let (check, serve) = next_commands(output);
                let named = [("place", place.as_str()), ("check", &check), ("serve", &serve)];
                writeln!(stderr().lock(), "{}", say.text("import-done", &named))?;
            }
        }
    }
    Ok(if translation.is_complete() { Exit::Good } else { Exit::Found })
}

/// Whether the reader of the notes sees them already, as comments of the config.
fn shown_in_comments(args: &LitellmArgs) -> bool {
    args.output.is_none() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// What differs from before, and what to do.
fn notes(translation: &Translation, name: &str, say: &Say) -> Result<(), Failure> {
    let mut out = stderr().lock();
    for note in &translation.notes {
        let (style, label) = match note.level {
            Level::Left => (LEFT, say.text("import-left", &[])),
            Level::Changed => (Style::new(), say.text("import-changed", &[])),
            Level::Todo => (ACTION, say.text("import-todo", &[])),
        };
        let (line, key, reason) = (note.line, &note.key, note.reason.get(say.language()));
        writeln!(out, "{name}:{line}: {style}{label}{style:#} `{key}`: {reason}")?;
    }
    if !translation.variables.is_empty() {
        let names: Vec<&str> = translation.variables.iter().map(String::as_str).collect();
        writeln!(out, "{}", say.text("import-variables", &[("names", &say.list(&names))]))?;
    }
    Ok(())
}

fn as_json(
    name: &str,
    output: Option<&Path>,
    translation: &Translation,
    language: Language,
) -> serde_json::Value {
    let notes: Vec<_> = translation
        .notes
        .iter()
        .map(|note| {
            json!({
                "line": note.line,
                "key": note.key,
                "level": note.level.name(),
                "reason": note.reason.get(language),
            })
        })
        .collect();
    json!({
        "file": name,
        "written": output.map(|output| output.display().to_string()),
        "complete": translation.is_complete(),
        "variables": translation.variables,
        "notes": notes,
        "config": translation.text,
    })
}

/// At most as much as a config may have, so that a device or a log is not read to its end.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map(|_| bytes)
}

fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    make_folder(path)?;
    options.open(path)?.write_all(text.as_bytes())
}
