//! `koboshi repair`: validates the arguments of a tool call, and repairs them if there is one way to read them.
//!
//! Standard output gets the arguments and nothing else, so that a pipe can use them; changes and refusals go to
//! standard error. Nothing is printed where more than one reading exists. A repair is a success: a `set -e` script continues.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};
use clap::Args;
use koboshi::args::{ArgsPolicy, Change, Finish, Position, Refusal, ToolSchema, Verdict, check};
use koboshi::redact::{Redactor, shorten};
use serde_json::{Value, json};

use crate::args::{Format, LangArgs};
use crate::input::{self, Input};
use crate::say::Say;
use crate::{Exit, Failure, settings};

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
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(args: &RepairArgs) -> Result<Exit, Failure> {
    // Arguments can be repaired without a valid config.
    let config = settings::load_without_keys(None, &args.lang).unwrap_or_default();
    let say = Say::new(args.lang.get(&config))?;
    let input = read(args.file.as_deref(), &say)?;
    if input.is_cut() {
        let name = name(args.file.as_deref(), &say);
        return Err(Failure::new(say.text("repair-too-long", &[("name", &name)])));
    }
    let schema = args.schema.as_deref().map(|path| schema(path, &say)).transpose()?;
    // The line end of a file or of `echo` is not the model's.
    let text = input.head.strip_suffix('\n').unwrap_or(&input.head);
    let policy = if args.strict { ArgsPolicy::strict() } else { ArgsPolicy::default() };
    let finish = args.finish.as_deref().map_or(Ok(Finish::Unknown), |reason| finish(reason, &say))?;
    let verdict = check(text, schema.as_ref(), finish, &policy);
    match args.format {
        Format::Text => print(text, &verdict, args.explain, &say)?,
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

fn name(path: Option<&Path>, say: &Say) -> String {
    input::name_of(path, say.lang).unwrap_or_else(|| say.text("input-stdin", &[]))
}

fn read(path: Option<&Path>, say: &Say) -> Result<Input, Failure> {
    let name = || name(path, say);
    let input = Input::read(path).map_err(|error| {
        let why = error.to_string();
        Failure::new(say.text(input::why_unreadable(&error), &[("name", &name()), ("why", &why)]))
    })?;
    if input.is_binary() {
        return Err(Failure::new(say.text("input-binary", &[("name", &name()), ("command", "repair")])));
    }
    Ok(input)
}

/// The finish reason. An unknown one has no effect, and a warning says so.
fn finish(reason: &str, say: &Say) -> io::Result<Finish> {
    let finish = Finish::of(reason);
    if finish == Finish::Unknown {
        let known: Vec<&str> = Finish::WORDS.iter().map(|(word, _)| *word).collect();
        let args = [("reason", &*printable(reason)), ("known", &*say.list(&known))];
        writeln!(stderr().lock(), "{CHANGED}{}{CHANGED:#}", say.text("repair-finish-unknown", &args))?;
    }
    Ok(finish)
}

fn schema(path: &Path, say: &Say) -> Result<ToolSchema, Failure> {
    let text = read(Some(path), say)?.head;
    let failure = |id: &str, why: String| {
        Failure::new(say.text(id, &[("name", &name(Some(path), say)), ("why", &why)]))
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| failure("repair-not-json", say.json_error(&error.to_string())))?;
    ToolSchema::compile(&value).map_err(|error| failure("repair-not-schema", error.to_string()))
}

fn print(text: &str, verdict: &Verdict, explain: bool, say: &Say) -> io::Result<()> {
    if let Some(json) = verdict.json(text) {
        writeln!(stdout().lock(), "{json}")?;
    }
    let mut err = stderr().lock();
    match verdict {
        Verdict::Repaired { changes, .. } if explain => {
            changes.iter().try_for_each(|change| writeln!(err, "{}", changed(text, change, say)))
        }
        Verdict::Refused(refusal) => refused(&mut err, text, refusal, say),
        _ => Ok(()),
    }
}

/// A change: its description, its stable name, and its place.
fn changed(text: &str, change: &Change, say: &Say) -> String {
    let name = change.what.name();
    let what = format!("{CHANGED}{}{CHANGED:#}", say.text(&format!("repair-change-{name}"), &[]));
    let place = Position::of(text, change.span.start);
    let (line, column, said) = (place.line.to_string(), place.column.to_string(), shown(text, change));
    let args =
        [("what", what.as_str()), ("name", name), ("line", &line), ("column", &column), ("said", &said)];
    say.text("repair-changed", &args)
}

fn refused(err: &mut impl Write, text: &str, refusal: &Refusal, say: &Say) -> io::Result<()> {
    let name = refusal.defect.name();
    let what = say.text(&format!("repair-defect-{name}"), &[]);
    let (line, column) = (refusal.position.line.to_string(), refusal.position.column.to_string());
    let args = [("what", what.as_str()), ("name", name), ("line", &line), ("column", &column)];
    let label = say.text("repair-refused-label", &[]);
    writeln!(err, "{BAD}{label}{BAD:#} {}", say.text("repair-refused", &args))?;
    let excerpt = excerpt(text, refusal);
    if !excerpt.is_empty() {
        writeln!(err, "  │ {excerpt}")?;
    }
    // The core has English texts only, which are more precise than the name of the defect.
    writeln!(err, "  {}", say.text("repair-detail", &[("reason", &refusal.reason)]))?;
    for miss in &refusal.misses {
        let path = if miss.path.is_empty() { "/" } else { &miss.path };
        writeln!(err, "  {}: {}", printable(path), printable(&miss.demand))?;
    }
    Ok(())
}

/// The changed text, short and safe for a terminal.
fn shown(text: &str, change: &Change) -> String {
    plain(&shorten(&Redactor::new().excerpt_of(text, change.span.clone()), 80))
}

/// The surroundings of the refused place, redacted.
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
