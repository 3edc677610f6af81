//! `koboshi check`: is the config good, and what does it change?
//!
//! What is wrong goes to standard output like every other answer of a command; standard error and exit status 2 are for
//! a file that cannot be read at all.

use std::io::{self, Write};
use std::path::Path;

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use koboshi_config::Config;
use koboshi_config::check::{Problem, Problems};
use koboshi_config::file::{load_file, locate, usual_places};
use koboshi_config::schema::{Difference, differences, json_schema};
use serde_json::{Value as Json, json};

use crate::args::{ConfigArgs, Format};
use crate::{Exit, Failure};

const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const MARK: Style = AnsiColor::Yellow.on_default();

pub(crate) fn run(args: &ConfigArgs) -> Result<Exit, Failure> {
    let mut out = stdout().lock();
    if args.schema {
        serde_json::to_writer_pretty(&mut out, &json_schema()).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Good);
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let file = locate(args.file.as_deref(), &lookup);
    let loaded = match &file {
        Some(file) => load_file(file, &lookup),
        None => Ok(Config::default()),
    };
    if let Err(problems) = &loaded
        && problems.is_unreadable()
    {
        return Err(Failure::new(problems.to_string()));
    }
    match args.format {
        Format::Text => match &loaded {
            Ok(config) => good(&mut out, file.as_deref(), config, &usual_places(&lookup))?,
            Err(problems) => bad(&mut out, problems)?,
        },
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &as_json(file.as_deref(), &loaded))
                .map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(if loaded.is_ok() { Exit::Good } else { Exit::Found })
}

fn good(
    out: &mut impl Write,
    file: Option<&Path>,
    config: &Config,
    looked_in: &[std::path::PathBuf],
) -> io::Result<()> {
    match file {
        Some(file) => writeln!(out, "{}: {GOOD}good{GOOD:#}", file.display())?,
        None => {
            let places: Vec<String> = looked_in.iter().map(|place| place.display().to_string()).collect();
            writeln!(out, "no config file, so all defaults hold (looked for {})", places.join(", "))?;
        }
    }
    let changes = differences(config);
    if file.is_some() && changes.is_empty() {
        writeln!(out, "All values are the defaults.")?;
    }
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWhat differs from the defaults:")?;
    let wide = |text: fn(&Difference) -> String| {
        changes.iter().map(|one| text(one).chars().count()).max().unwrap_or(0)
    };
    let (keys, values) = (wide(|one| one.path.clone()), wide(|one| one.value.clone()));
    for change in &changes {
        let (path, value, default) = (&change.path, &change.value, &change.default);
        writeln!(out, "  {path:<keys$}  {value:<values$}  (default {default})")?;
    }
    Ok(())
}

fn bad(out: &mut impl Write, problems: &Problems) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "{}\n", coloured(problem))?;
    }
    let count = problems.count();
    let (noun, left_out) = (if count == 1 { "problem" } else { "problems" }, problems.left_out());
    let more = if left_out > 0 { format!(", {left_out} of them not shown") } else { String::new() };
    writeln!(out, "{BAD}{count} {noun}{BAD:#}{more}. The keys are described in docs/config.md.")
}

/// The problem as it says itself, with its message and its marks in colour.
fn coloured(problem: &Problem) -> String {
    let plain = problem.to_string();
    let message = format!("{BAD}{}{BAD:#}", problem.message);
    let mut lines = plain.lines();
    let first = lines.next().unwrap_or_default().replacen(&problem.message, &message, 1);
    let rest = lines.map(|line| match line.trim_start().strip_prefix("| ") {
        Some(marks) if marks.trim_start().starts_with('^') => {
            line.replacen(marks.trim(), &format!("{MARK}{}{MARK:#}", marks.trim()), 1)
        }
        _ => line.to_owned(),
    });
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")
}

fn as_json(file: Option<&Path>, loaded: &Result<Config, Problems>) -> Json {
    let file = file.map(|file| file.display().to_string());
    let changed: Vec<Json> = loaded
        .as_ref()
        .map(differences)
        .unwrap_or_default()
        .iter()
        .map(|one| json!({"key": one.path, "value": one.value, "default": one.default}))
        .collect();
    let problems: Vec<Json> =
        loaded.as_ref().err().map(|all| all.iter().map(problem_json).collect()).unwrap_or_default();
    json!({"file": file, "good": loaded.is_ok(), "problems": problems, "differs": changed})
}

fn problem_json(problem: &Problem) -> Json {
    json!({
        "file": problem.file,
        "line": problem.place.map(|place| place.line),
        "column": problem.place.map(|place| place.column),
        "key": problem.path,
        "message": problem.message,
        "hint": problem.hint,
    })
}
