//! The `koboshi` command: a thin shell around the core.
//!
//! Each command reads its input, asks the core, and prints the answer. Exit status: 0 good, 1 the answer
//! is "something is wrong" (a fault was found, a measure is too low), 2 the command itself failed.
//! `koboshi run` ends with the status of the command that it ran.

mod args;
mod check;
mod clock;
mod codes;
mod corpus;
mod drill;
mod experts;
mod explain;
mod follow;
mod heap;
mod host;
mod import;
mod init;
mod input;
mod key;
mod kinds;
mod limits;
mod manual;
mod models;
mod notify;
#[cfg(test)]
mod pages;
mod repair;
mod replay;
mod rules;
mod run;
mod say;
mod serve;
mod settings;
mod shell;
mod sim_names;
mod state;
mod supervise;
mod trouble;
mod up;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use koboshi_config::config::Language;
use koboshi_config::words::Text;
use koboshi_report::phrase::Lang;

use args::{Cli, Command, CorpusCommand};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Good,
    /// The answer is bad: a fault was found.
    Found,
    /// The input may not be used at all.
    Refused,
    /// The exit status of another command.
    Code(u8),
}

/// Why a command failed, as a text for a person.
#[derive(Debug)]
pub(crate) struct Failure(Text);

impl Failure {
    /// In the reader's language, or in words that are the same in every language.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Text::new(message.clone(), message))
    }

    /// In both languages, where the reader's is not known yet.
    pub(crate) fn of(message: Text) -> Self {
        Self(message)
    }

    /// The same with more text after it.
    pub(crate) fn and(self, more: &Text) -> Self {
        let said = |language| format!("{}{}", self.0.get(language), more.get(language));
        Self(Text::new(said(Language::En), said(Language::Ja)))
    }

    pub(crate) fn text(&self, language: Language) -> &str {
        self.0.get(language)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // The reader of our output has closed the pipe: no failure, and no one reads a message.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::new("")
        } else {
            Self::of(Text::new(
                format!("cannot write the output: {error}"),
                format!("出力を書き込めません: {error}"),
            ))
        }
    }
}

fn main() -> ExitCode {
    // Before anything else: the shim between us and an agent must stay small.
    if let Some(code) = koboshi_supervisor::shim::of_arguments(std::env::args_os().skip(1)) {
        return ExitCode::from(code);
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| args::with_hint(error).exit());
    match run(&cli) {
        Ok(Exit::Good) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Ok(Exit::Refused) => ExitCode::from(2),
        Ok(Exit::Code(code)) => ExitCode::from(code),
        Err(failure) if failure.text(Language::En).is_empty() => ExitCode::SUCCESS,
        Err(failure) => {
            let mut out = anstream::stderr().lock();
            // If standard error is gone too, the exit status still shows the failure.
            let _ = writeln!(out, "koboshi: {}", failure.text(language_of(&cli)));
            ExitCode::from(2)
        }
    }
}

/// The reader's language. A config that cannot be used names none.
fn language_of(cli: &Cli) -> Language {
    let file = match &cli.command {
        Command::Serve(args) => args.config_file(),
        Command::Run(args) => args.config_file(),
        Command::Supervise(args) => args.config_file(),
        Command::Up(args) => args.config_file(),
        Command::Drill(args) => args.config_file(),
        Command::Explain(args) => args.config.file.as_deref(),
        Command::Status(args) => args.state.config.file.as_deref(),
        Command::Top(args) => args.place.config.file.as_deref(),
        Command::Resume(args) => args.state.config.file.as_deref(),
        Command::Cool(args) => args.state.config.file.as_deref(),
        Command::Pause(args) => args.state.config.file.as_deref(),
        Command::Journal(args) => args.state.config.file.as_deref(),
        Command::Spend(args) => args.place.config.file.as_deref(),
        Command::Notify(command) => command.config_file(),
        _ => None,
    };
    let config = settings::load_without_keys(file, &cli.lang).unwrap_or_default();
    match cli.lang.get(&config) {
        Lang::En => Language::En,
        Lang::Ja => Language::Ja,
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Run(args) => run::run(args),
        Command::Supervise(args) => supervise::run(args),
        Command::Up(args) => up::run(args),
        Command::Reload(args) => supervise::reload(args),
        Command::Start(args) => supervise::start(args),
        Command::Stop(args) => supervise::stop(args),
        Command::Restart(args) => supervise::restart(args),
        Command::Logs(args) => supervise::logs(args),
        Command::Init(args) => init::run(args),
        Command::Import(command) => import::run(command),
        Command::Explain(args) => explain::run(args),
        Command::Check(args) => check::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Drill(args) => drill::run(args),
        Command::Codes(args) => codes::run(args),
        Command::Models(args) => models::run(args),
        Command::Status(args) => state::status(args),
        Command::Top(args) => state::top(args),
        Command::Resume(args) => state::resume(args),
        Command::Cool(args) => state::cool(args),
        Command::Pause(args) => state::pause(args),
        Command::Journal(args) => state::journal(args),
        Command::Spend(args) => state::spend(args),
        Command::Key(command) => key::run(command),
        Command::Notify(command) => notify::run(command),
        Command::Corpus(CorpusCommand::Check(args)) => corpus::run(args),
        Command::Corpus(CorpusCommand::Add(args)) => corpus::add(args),
        Command::Guard(command) => replay::run(command),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { folder } => manual::pages(folder),
    }
}
