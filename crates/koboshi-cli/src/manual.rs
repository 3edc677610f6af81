//! `koboshi completions` and `koboshi man`: shell completions and manual pages.
//!
//! Both are generated from the definition of the command line, so they cannot differ from it. The package builds run them.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::{Exit, Failure};

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "koboshi", &mut script);
    anstream::stdout().lock().write_all(&script)?;
    Ok(Exit::Good)
}

/// Writes a manual page for the program and for each command: `koboshi.1`, `koboshi-serve.1` and so on.
pub(crate) fn pages(folder: &Path) -> Result<Exit, Failure> {
    let command = Cli::command().disable_help_subcommand(true);
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", folder.display())))?;
    Ok(Exit::Good)
}
