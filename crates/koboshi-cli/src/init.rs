//! `koboshi init`: a first config, short and commented, in a file that was not there.
//!
//! What somebody has written is never written over without being told so.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anstream::stdout;
use clap::Args;
use koboshi_config::{Config, init_text};
use koboshi_report::phrase::Phrases;

use crate::args::LangArgs;
use crate::{Exit, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi init                     writes ./koboshi.yaml, with comments
  koboshi init --print             shows it instead
  koboshi init ~/.config/koboshi/koboshi.yaml
  koboshi init --force             overwrites the one that is there

Exit status: 0 written, 2 there is one already, or it cannot be written.";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = koboshi_config::file::FILE_NAME)]
    file: PathBuf,
    /// Overwrite the file that is there
    #[arg(long)]
    force: bool,
    /// Print it, and write nothing
    #[arg(long, conflicts_with_all = ["force", "file"])]
    print: bool,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let mut out = stdout().lock();
    if args.print {
        out.write_all(init_text().as_bytes())?;
        return Ok(Exit::Good);
    }
    write(args)?;
    let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
    // The config that is there may be broken: that is why somebody writes a new one.
    let lang = args.lang.get(&Config::default());
    let file = args.file.display().to_string();
    for (id, args) in [("init-done", &[("place", file.as_str())][..]), ("init-next", &[])] {
        writeln!(out, "{}", phrases.text(lang, id, args).unwrap_or_else(|| id.to_owned()))?;
    }
    Ok(Exit::Good)
}

fn write(args: &InitArgs) -> Result<(), Failure> {
    let file = args.file.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        // Asking first and writing then would leave a moment for somebody else.
        options.create_new(true);
    }
    let mut opened = options.open(&args.file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(format!(
            "{file} is there already and was left as it is: use --force to overwrite it, or --print to look at the new one"
        )),
        _ => Failure::new(format!("cannot write {file}: {error}")),
    })?;
    opened
        .write_all(init_text().as_bytes())
        .map_err(|error| Failure::new(format!("cannot write {file}: {error}")))
}
