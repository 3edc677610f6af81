//! `koboshi check`: is the config valid, and what does it change?
//!
//! Problems go to standard output like every other answer of a command; standard error and exit status 2 are for
//! a file that cannot be read at all. Warnings (old names of keys, an address without its usual path) do not change the exit status.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use koboshi_config::Config;
use koboshi_config::check::{Problem, Problems};
use koboshi_config::config::Language;
use koboshi_config::file::{check_file, locate, usual_places};
use koboshi_config::load::{Environment, LoadedConfig};
use koboshi_config::schema::{Difference, differences_in, json_schema};
use serde_json::{Value as Json, json};

use crate::args::{ConfigArgs, Format};
use crate::say::{Say, width};
use crate::{Exit, Failure, experts};

const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const MARK: Style = AnsiColor::Yellow.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

pub(crate) fn run(args: &ConfigArgs) -> Result<Exit, Failure> {
    let mut out = stdout().lock();
    if args.schema {
        serde_json::to_writer_pretty(&mut out, &json_schema()).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Good);
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let file = locate(args.file.as_deref(), &lookup);
    let outside = Environment { lookup: &lookup, experts: experts::OF_CHECK };
    let (loaded, warnings) = match file.as_deref().map(|file| check_file(file, outside)) {
        None => (Ok(Config::default()), Vec::new()),
        Some(Ok(LoadedConfig { config, warnings, .. })) => (Ok(config), warnings),
        Some(Err(problems)) => {
            let warnings = problems.warnings().to_vec();
            (Err(problems), warnings)
        }
    };
    let named = match &loaded {
        Ok(config) => config.language,
        Err(problems) => problems.language(),
    };
    let lang = args.lang.get_with(named);
    let say = Say::new(lang)?;
    if let Err(problems) = &loaded
        && problems.is_unreadable()
    {
        return Err(Failure::new(problems.show(say.language())));
    }
    match args.format {
        Format::Text => {
            for warning in &warnings {
                let label = say.text("check-warning", &[]);
                writeln!(
                    out,
                    "{WARNING}{label}{WARNING:#} {}\n",
                    coloured(warning, say.language(), WARNING)
                )?;
            }
            match &loaded {
                Ok(config) => {
                    good(&mut out, file.as_deref(), config, &say, &usual_places(&lookup), warnings.len())?;
                }
                Err(problems) => bad(&mut out, problems, &say)?,
            }
        }
        Format::Json => {
            let answer = as_json(file.as_deref(), &loaded, &warnings, say.language());
            serde_json::to_writer_pretty(&mut out, &answer).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(if loaded.is_ok() { Exit::Good } else { Exit::Found })
}

fn good(
    out: &mut impl Write,
    file: Option<&Path>,
    config: &Config,
    say: &Say,
    looked_in: &[PathBuf],
    warnings: usize,
) -> io::Result<()> {
    match file {
        Some(file) => {
            let verdict = say.text("check-good", &[]);
            let count = warnings.to_string();
            let noted = match warnings {
                0 => String::new(),
                1 => say.text("check-one-warning", &[]),
                _ => say.text("check-warnings", &[("count", &count)]),
            };
            writeln!(out, "{}: {GOOD}{verdict}{GOOD:#}{noted}", file.display())?;
        }
        None => {
            let places: Vec<String> = looked_in.iter().map(|place| place.display().to_string()).collect();
            writeln!(out, "{}", say.text("check-no-file", &[("places", &say.list(&places))]))?;
        }
    }
    let changes = differences_in(config, say.language());
    if file.is_some() && changes.is_empty() {
        writeln!(out, "{}", say.text("check-all-defaults", &[]))?;
    }
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", say.text("check-differs", &[]))?;
    let wide =
        |text: fn(&Difference) -> &str| changes.iter().map(|one| width(text(one))).max().unwrap_or_default();
    let (keys, values) = (wide(|one| &one.path), wide(|one| &one.value));
    for change in &changes {
        let (path, value) = (&change.path, &change.value);
        let default = say.text("check-default", &[("value", &change.default)]);
        let (after_path, after_value) = (keys - width(path), values - width(value));
        writeln!(out, "  {path}{:after_path$}  {value}{:after_value$}  {default}", "", "")?;
    }
    Ok(())
}

fn bad(out: &mut impl Write, problems: &Problems, say: &Say) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "{}\n", coloured(problem, say.language(), BAD))?;
    }
    let (count, left_out) = (problems.count().to_string(), problems.left_out());
    let counted = match problems.count() {
        1 => say.text("check-one-problem", &[]),
        _ => say.text("check-problems", &[("count", &count)]),
    };
    let more = match left_out {
        0 => String::new(),
        _ => say.text("check-not-shown", &[("count", &left_out.to_string())]),
    };
    let described = say.text("check-described", &[]);
    writeln!(out, "{BAD}{counted}{BAD:#}{more}{described}")
}

/// A problem with its message and its marks in colour.
fn coloured(problem: &Problem, language: Language, style: Style) -> String {
    let plain = problem.show(language);
    let said = problem.message.get(language);
    let message = format!("{style}{said}{style:#}");
    let mut lines = plain.lines();
    let first = lines.next().unwrap_or_default().replacen(said, &message, 1);
    let rest = lines.map(|line| match line.trim_start().strip_prefix("| ") {
        Some(marks) if marks.trim_start().starts_with('^') => {
            line.replacen(marks.trim(), &format!("{MARK}{}{MARK:#}", marks.trim()), 1)
        }
        _ => line.to_owned(),
    });
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")
}

/// What `check` says about a file, as JSON.
pub(crate) fn checked(file: Option<&Path>, language: Language) -> Json {
    let lookup = |name: &str| std::env::var(name).ok();
    let outside = Environment { lookup: &lookup, experts: experts::OF_CHECK };
    match file.map(|file| check_file(file, outside)) {
        None => as_json(None, &Ok(Config::default()), &[], language),
        Some(Ok(LoadedConfig { config, warnings, .. })) => as_json(file, &Ok(config), &warnings, language),
        Some(Err(problems)) => {
            let warnings = problems.warnings().to_vec();
            as_json(file, &Err(problems), &warnings, language)
        }
    }
}

fn as_json(
    file: Option<&Path>,
    loaded: &Result<Config, Problems>,
    warnings: &[Problem],
    language: Language,
) -> Json {
    let file = file.map(|file| file.display().to_string());
    let changed: Vec<Json> = loaded
        .as_ref()
        .map(|config| differences_in(config, language))
        .unwrap_or_default()
        .iter()
        .map(|one| json!({"key": one.path, "value": one.value, "default": one.default}))
        .collect();
    let all = |problems: &mut dyn Iterator<Item = &Problem>| -> Vec<Json> {
        problems.map(|problem| problem_json(problem, language)).collect()
    };
    let problems = loaded.as_ref().err().map(|problems| all(&mut problems.iter())).unwrap_or_default();
    json!({
        "file": file,
        "good": loaded.is_ok(),
        "problems": problems,
        "warnings": all(&mut warnings.iter()),
        "differs": changed,
    })
}

fn problem_json(problem: &Problem, language: Language) -> Json {
    json!({
        "file": problem.file,
        "line": problem.place.map(|place| place.line),
        "column": problem.place.map(|place| place.column),
        "key": problem.path,
        "message": problem.message.get(language),
        "hint": problem.hint.as_ref().map(|hint| hint.get(language)),
    })
}
