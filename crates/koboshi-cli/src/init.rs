//! `koboshi init`: writes a first config for the providers whose keys are in the environment, into a new file.
//!
//! On a terminal it asks which providers and which language; elsewhere the environment decides. Whatever is chosen, `koboshi serve` can
//! start with it: a provider without a key is commented out. An existing file is never overwritten unasked.

mod ask;

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstream::stdout;
use clap::Args;
use koboshi_config::file::FILE_NAME;
use koboshi_config::gateway::ProviderKind;
use koboshi_config::init::{Choice, OFFERS, detect, missing, text};

use crate::args::LangArgs;
use crate::say::Say;
use crate::{Exit, Failure, settings, shell};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi init                     writes ./koboshi.yaml; asks on a terminal, else uses the API keys in the environment
  koboshi init --yes               asks nothing
  koboshi init --providers openai,anthropic
  koboshi init --providers ollama  a local Ollama needs no key; OLLAMA_HOST is its address, where it is set
  koboshi init --lang ja           comments in Japanese
  koboshi init --print             shows it and writes nothing
  koboshi init ~/.config/koboshi/koboshi.yaml
  koboshi init --force             overwrites the one that is there

Exit status: 0 written, 2 there is one already, or it cannot be written.";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = FILE_NAME)]
    file: PathBuf,
    /// Overwrite the file that is there
    #[arg(long)]
    force: bool,
    /// Print it, and write nothing
    #[arg(long, conflicts_with_all = ["force", "file"])]
    print: bool,
    /// Ask nothing: use the API keys in the environment
    #[arg(long)]
    yes: bool,
    /// The providers to write, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    providers: Option<Vec<String>>,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    // The existing config may be broken: that may be why the user writes a new one.
    let mut say = Say::new(settings::language(&args.lang))?;
    if !args.print {
        refuse_early(args, &say)?;
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let known: Vec<Choice> = OFFERS.iter().map(|offer| usable(detect(offer, &lookup))).collect();
    let asks = !args.yes && !args.print && args.providers.is_none() && is_terminal();
    let choices = match &args.providers {
        Some(names) => named(names, &known, &say)?,
        None if asks => {
            let mut dialog =
                ask::Dialog { input: &mut std::io::stdin().lock(), output: &mut std::io::stderr().lock() };
            if args.lang.asked().is_none() {
                say.lang = dialog.language(&say)?;
            }
            dialog.providers(&say, &known)?
        }
        None => known.into_iter().filter(Choice::is_found).collect(),
    };
    let written = text(&choices, say.language());
    let mut out = stdout().lock();
    if args.print {
        out.write_all(written.as_bytes())?;
        return Ok(Exit::Good);
    }
    write(args, &written, &say)?;
    let file = args.file.display().to_string();
    writeln!(out, "{}", say.text("init-done", &[("place", &file)]))?;
    for line in summary(&choices, &say) {
        writeln!(out, "{line}")?;
    }
    let (check, serve) = next_commands(&args.file);
    writeln!(out, "{}", say.text("init-next", &[("check", &check), ("serve", &serve)]))?;
    Ok(Exit::Good)
}

/// The commands that check a file and serve it; the default file need not be named.
pub(crate) fn next_commands(file: &Path) -> (String, String) {
    if file == Path::new(FILE_NAME) {
        return ("koboshi check".to_owned(), "koboshi serve".to_owned());
    }
    let file = shell::word(&file.display().to_string());
    (format!("koboshi check {file}"), format!("koboshi serve --config {file}"))
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Which providers can be used, and which not yet.
fn summary(choices: &[Choice], say: &Say) -> Vec<String> {
    let with_key = || choices.iter().filter(|choice| choice.offer.needs_key());
    let found: Vec<&str> = with_key().filter_map(|choice| choice.variable).collect();
    let lacking: Vec<&str> = with_key().flat_map(lacks).collect();
    let keyless = choices.iter().filter(|choice| !choice.offer.needs_key()).map(|choice| choice.offer.name);
    let keyless: Vec<&str> = keyless.collect();
    let lists = [("init-found", found), ("init-keyless", keyless), ("init-without-key", lacking)];
    let named = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let mut lines: Vec<String> =
        named.map(|(id, names)| say.text(id, &[("names", &say.list(&names))])).collect();
    if !choices.iter().any(Choice::is_ready) {
        lines.insert(0, say.text("init-none", &[]));
    }
    lines
}

/// The variables that a choice lacks.
fn lacks(choice: &Choice) -> Vec<&'static str> {
    if choice.is_ready() {
        return Vec::new();
    }
    let missing = missing(choice.offer, &|name| std::env::var(name).ok());
    // A variable that is set, and whose value leads to nothing that can be used.
    if missing.is_empty() { choice.offer.keys.iter().take(1).copied().collect() } else { missing }
}

/// All of Google's programs use the variable for its cloud: only a key file of a service account counts.
fn usable(choice: Choice) -> Choice {
    if choice.offer.kind != ProviderKind::Vertex {
        return choice;
    }
    let path = choice.variable.and_then(|name| std::env::var(name).ok());
    let file = path.and_then(|path| std::fs::read_to_string(path).ok());
    let account: Option<serde_json::Value> = file.and_then(|text| serde_json::from_str(&text).ok());
    let has = |field: &str| account.as_ref().is_some_and(|account| account[field].is_string());
    let good = has("client_email") && has("private_key") && has("token_uri");
    Choice { variable: choice.variable.filter(|_| good), ..choice }
}

/// The providers of these names.
fn named(names: &[String], known: &[Choice], say: &Say) -> Result<Vec<Choice>, Failure> {
    let all: Vec<&str> = known.iter().map(|choice| choice.offer.name).collect();
    let find = |name: &String| {
        let found = known.iter().find(|choice| choice.offer.name == name.trim()).cloned();
        found.ok_or_else(|| {
            Failure::new(say.text("init-unknown-provider", &[("name", name), ("known", &say.list(&all))]))
        })
    };
    let mut once: Vec<&String> = Vec::new();
    for name in names.iter().filter(|name| !name.trim().is_empty()) {
        if !once.iter().any(|before| before.trim() == name.trim()) {
            once.push(name);
        }
    }
    once.into_iter().map(find).collect()
}

/// Checks that the file can be written, before the user answers questions.
fn refuse_early(args: &InitArgs, say: &Say) -> Result<(), Failure> {
    let place = args.file.display().to_string();
    if args.file.is_dir() {
        let file = args.file.join(FILE_NAME).display().to_string();
        return Err(Failure::new(say.text("init-folder", &[("place", &place), ("file", &file)])));
    }
    if !args.force && args.file.symlink_metadata().is_ok() {
        return Err(Failure::new(say.text("init-there", &[("place", &place)])));
    }
    Ok(())
}

fn write(args: &InitArgs, text: &str, say: &Say) -> Result<(), Failure> {
    let place = args.file.display().to_string();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        // Checking first and writing then would leave a race.
        options.create_new(true);
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(say.text("init-there", &[("place", &place)])),
        _ => {
            let reason = error.to_string();
            Failure::new(say.text("init-cannot-write", &[("place", &place), ("reason", &reason)]))
        }
    };
    make_folder(&args.file).map_err(failed)?;
    options.open(&args.file).map_err(failed)?.write_all(text.as_bytes()).map_err(failed)
}

/// Makes the folder of a new file.
pub(crate) fn make_folder(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}
