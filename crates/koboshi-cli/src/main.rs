//! The `koboshi` command: a thin shell around the core.
//!
//! Each command reads what it needs, asks the core, and says the answer. Exit status: 0 good, 1 the answer
//! is "something is wrong" (a fault was found, a measure is too low), 2 the command itself could not be
//! carried out.

mod args;
mod check;
mod clock;
mod codes;
mod corpus;
mod experts;
mod explain;
mod follow;
mod import;
mod init;
mod input;
mod limits;
mod manual;
mod models;
#[cfg(test)]
mod pages;
mod repair;
mod rules;
mod say;
mod serve;
mod settings;
mod shell;
mod sim_names;
mod state;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, CorpusCommand};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Good,
    /// What was looked for was found, and it is not good.
    Found,
    /// It may not be used at all.
    Refused,
}

/// Why a command could not be carried out, in words for a person.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // Whoever reads our output has had enough of it: no failure, and nobody left to tell.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self(String::new())
        } else {
            Self(format!("cannot write the output: {error}"))
        }
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(Exit::Good) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Ok(Exit::Refused) => ExitCode::from(2),
        Err(Failure(message)) if message.is_empty() => ExitCode::SUCCESS,
        Err(Failure(message)) => {
            let mut out = anstream::stderr().lock();
            // Standard error is the last resort: if it is gone too, the exit status still tells.
            let _ = writeln!(out, "koboshi: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Init(args) => init::run(args),
        Command::Import(command) => import::run(command),
        Command::Explain(args) => explain::run(args),
        Command::Check(args) => check::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Codes(args) => codes::run(args),
        Command::Models(args) => models::run(args),
        Command::Status(args) => state::status(args),
        Command::Resume(args) => state::resume(args),
        Command::Cool(args) => state::cool(args),
        Command::Journal(args) => state::journal(args),
        Command::Corpus(CorpusCommand::Check(args)) => corpus::run(args),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { folder } => manual::pages(folder),
    }
}
