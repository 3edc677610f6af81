//! `koboshi repair`: validates the arguments of a tool call, and repairs them if there is one way to read them.
//!
//! Standard output gets the arguments and nothing else, so that a pipe can use them; what was changed or refused goes to
//! standard error. Nothing is printed where more than one reading exists. A repair is a success: a `set -e` script goes on.

use std::io::{self, Write};
use std::path::PathBuf;

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};
use clap::Args;
use koboshi::args::{ArgsPolicy, Change, Finish, Refusal, ToolSchema, Verdict, check};
use koboshi::redact::{Redactor, shorten};
use serde_json::{Value, json};

use crate::args::Format;
use crate::input::Input;
use crate::{Exit, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi repair args.txt --schema tool.json
  echo \"{x: 1, y: 2,}\" | koboshi repair --explain
  koboshi repair args.txt --finish max_tokens       the output limit cut it off: it is never completed
  koboshi repair args.txt --strict                  validate only

  koboshi repair args.txt --exit-code               for scripts: exit 1 if something had to be repaired

Exit status: 0 valid or repaired, 2 refused or not readable; with --exit-code 1 if it was repaired.";

const BAD: Style = AnsiColor::Red.on_default().bold();
const CHANGED: Style = AnsiColor::Yellow.on_default();

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The file to read; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// The tool's JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The finish or stop reason of the answer, such as `length`
    #[arg(long, value_name = "REASON")]
    finish: Option<String>,
    /// Validate only, repair nothing
    #[arg(long)]
    strict: bool,
    /// Print what was changed to standard error
    #[arg(long)]
    explain: bool,
    /// Exit with 1 where something was repaired, so that a script can tell it from arguments that were valid
    #[arg(long)]
    exit_code: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

pub(crate) fn run(args: &RepairArgs) -> Result<Exit, Failure> {
    let name = |path: Option<&PathBuf>| {
        path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string())
    };
    let read = |path: Option<&PathBuf>| {
        let input = Input::read(path.map(PathBuf::as_path));
        input.map_err(|error| Failure::new(format!("cannot read {}: {error}", name(path))))
    };
    let input = read(args.file.as_ref())?;
    if input.is_cut() {
        return Err(Failure::new(format!(
            "{} is too long for the arguments of a call",
            name(args.file.as_ref())
        )));
    }
    let schema =
        args.schema.as_ref().map(|path| schema(&read(Some(path))?.head, &name(Some(path)))).transpose()?;
    // The line end of a file or of `echo` is not the model's.
    let text = input.head.strip_suffix('\n').unwrap_or(&input.head);
    let policy = if args.strict { ArgsPolicy::strict() } else { ArgsPolicy::default() };
    let finish = args.finish.as_deref().map_or(Ok(Finish::Unknown), finish)?;
    let verdict = check(text, schema.as_ref(), finish, &policy);
    match args.format {
        Format::Text => print(text, &verdict, args.explain)?,
        Format::Json => {
            let mut out = stdout().lock();
            serde_json::to_writer_pretty(&mut out, &as_json(text, &verdict)).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(match verdict {
        Verdict::Valid => Exit::Good,
        Verdict::Repaired { .. } if args.exit_code => Exit::Found,
        Verdict::Repaired { .. } => Exit::Good,
        Verdict::Refused(_) => Exit::Refused,
    })
}

/// The finish reason. An unknown one is as good as none, and whoever gave it should know that.
fn finish(reason: &str) -> io::Result<Finish> {
    let finish = Finish::of(reason);
    if finish == Finish::Unknown {
        let known: Vec<&str> = Finish::WORDS.iter().map(|(word, _)| *word).collect();
        let (reason, known) = (printable(reason), known.join(", "));
        writeln!(
            stderr().lock(),
            "{CHANGED}--finish {reason}{CHANGED:#} is not known and changes nothing; known are: {known}"
        )?;
    }
    Ok(finish)
}

fn schema(text: &str, name: &str) -> Result<ToolSchema, Failure> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Failure::new(format!("{name} is no JSON: {error}")))?;
    ToolSchema::compile(&value)
        .map_err(|error| Failure::new(format!("{name} is no usable JSON Schema: {error}")))
}

fn print(text: &str, verdict: &Verdict, explain: bool) -> io::Result<()> {
    if let Some(json) = verdict.json(text) {
        writeln!(stdout().lock(), "{json}")?;
    }
    let mut err = stderr().lock();
    match verdict {
        Verdict::Repaired { changes, .. } if explain => {
            for change in changes {
                let (what, at) = (change.what.name(), change.span.start);
                writeln!(err, "{CHANGED}{what}{CHANGED:#} at byte {at}: {}", shown(text, change))?;
            }
            Ok(())
        }
        Verdict::Refused(refusal) => refused(&mut err, text, refusal),
        _ => Ok(()),
    }
}

fn refused(err: &mut impl Write, text: &str, refusal: &Refusal) -> io::Result<()> {
    writeln!(err, "{BAD}refused{BAD:#}: {refusal}")?;
    let excerpt = excerpt(text, refusal);
    if !excerpt.is_empty() {
        writeln!(err, "  │ {excerpt}")?;
    }
    for miss in &refusal.misses {
        let path = if miss.path.is_empty() { "/" } else { &miss.path };
        writeln!(err, "  {}: {}", printable(path), printable(&miss.demand))?;
    }
    Ok(())
}

/// The changed text, short and fit for a terminal.
fn shown(text: &str, change: &Change) -> String {
    plain(&shorten(&Redactor::new().excerpt_of(text, change.span.clone()), 80))
}

/// Around the place that was refused, without the secrets of the text around it.
fn excerpt(text: &str, refusal: &Refusal) -> String {
    plain(refusal.redacted_excerpt(text, &Redactor::new()).trim())
}

fn printable(text: &str) -> String {
    plain(&Redactor::new().excerpt(text, 80))
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn as_json(text: &str, verdict: &Verdict) -> Value {
    let outcome = match verdict {
        Verdict::Valid => "valid",
        Verdict::Repaired { .. } => "repaired",
        Verdict::Refused(_) => "refused",
    };
    let changes: Vec<Value> = match verdict {
        Verdict::Repaired { changes, .. } => changes.iter().map(|change| json!({"what": change.what.name(), "from": change.span.start, "to": change.span.end})).collect(),
        _ => Vec::new(),
    };
    let refusal = verdict.refusal().map(|refusal| {
        json!({
            "defect": refusal.defect.name(),
            "reason": refusal.reason,
            "byte": refusal.position.byte,
            "line": refusal.position.line,
            "column": refusal.position.column,
            "excerpt": excerpt(text, refusal),
            "misses": refusal.misses.iter().map(|miss| json!({"path": miss.path, "demand": miss.demand})).collect::<Vec<_>>(),
        })
    });
    // As text: numbers keep every digit.
    json!({"outcome": outcome, "json": verdict.json(text), "changes": changes, "refusal": refusal})
}
