//! `koboshi run`: one command under protection.
//!
//! What the command says goes where it would go without us; what we say goes to standard error, in the reader's language.

pub(crate) mod gateway;
mod tell;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use koboshi::classify::Classifier;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::supervise::Ladder;
use koboshi_config::Config;
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::folder::Refusal;
use koboshi_supervisor::protected::{self, Task, Verdict};
use koboshi_supervisor::spawn::own_binary;
use koboshi_supervisor::{Kind, Kinds, Knowledge};

use crate::args::{ConfigFileArgs, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, clock, rules, settings, state};

use tell::Telling;

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi run -- claude -p \"fix the tests\"                 waits for the reset when the limit is reached, then continues
  koboshi run --account main --patience 6h -- codex exec \"…\"
  koboshi run --agent reviewer --project website -- gemini -p \"…\"
  koboshi run --gateway off -- ./my-agent

Everything is passed through: input, output, the terminal, Ctrl-C. After a failure that passes by itself (a limit, an overloaded
provider, a lost connection, a crash) the command is started again. What is learned of an account holds for every other
`koboshi run` and for the gateway, and theirs for this one.

Exit status: that of the command (128+n for a signal), or
   75  in cooldown for longer than --patience: try again at the time that is named
   69  parked: resume it with the command that is named
  126  the command cannot be run, 127 it was not found
    2  koboshi itself could not be used";

/// In cooldown: an outer supervisor may try again later (EX_TEMPFAIL).
const RESTS: u8 = 75;
/// Parked: nothing helps but a person (EX_UNAVAILABLE).
const PARKED: u8 = 69;

/// So long the store is waited for at the beginning and at the end.
const STORE: Duration = Duration::from_secs(5);

/// Whether a session is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resume {
    /// Continue the session where it is known how
    Auto,
    /// Start the same command again
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of the agent: its failures are remembered under `agent:NAME/PROJECT`
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Project that the agent works on [default: the name of this folder]
    #[arg(long, value_name = "NAME", requires = "agent")]
    project: Option<String>,
    /// Account whose limits it uses [default: the vendor of the program, if it is known]
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Model that it asks, so that a limit of one model does not stop the others
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Starts at most, for failures that may pass; waiting for a limit does not count
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// Longest cooldown that is waited for
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_length)]
    patience: Duration,
    /// What happens to the session of a command that is started again
    #[arg(long, value_enum, default_value = "auto")]
    resume: Resume,
    /// Gateway that the command is pointed at: `auto` (the one of this config, if it answers), an address, or `off`
    #[arg(long, value_name = "auto|URL|off", default_value = "auto")]
    gateway: String,
    /// The store: a file or `redis://…` [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
    /// The command and its arguments, behind `--`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl RunArgs {
    /// The config file that was asked for.
    pub(crate) fn config_file(&self) -> Option<&std::path::Path> {
        self.config.file.as_deref()
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
    let say = Say::new(args.lang.get(&config))?;
    let (store, runs) = state::for_runs(args.store.as_deref(), &config)?;
    let node = state::run_node()?;
    let ledger = Arc::new(Ledger::open(store, LedgerOptions::new(node))?);
    // A store that is away is gone on without: the ledger merges when it is back.
    let _ = ledger.wait_loaded(STORE);
    let task = task(args, &config, runs)?;
    let knowledge = Knowledge::new(Arc::clone(&ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?;
    let knowledge = match (&args.agent, &task.ladder.agent) {
        (None, Some(own)) => knowledge.keeping_private(own.clone()),
        _ => knowledge,
    };
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let mut telling = Telling::new(&say);
    let verdict = protected::run(&task, &knowledge, &classifier, &mut telling);
    // What was learned is there for the next command, before this one ends.
    ledger.finish(STORE);
    exit(&say, args, &task, verdict?)
}

fn task(args: &RunArgs, config: &Config, runs: PathBuf) -> Result<Task, Failure> {
    let kinds = Kinds::builtin().map_err(|error| Failure::new(error.to_string()))?;
    let program = args.command.first().cloned().unwrap_or_default();
    let (_, kind) = kinds.of_program(&program);
    let ladder = ladder(args, &kind)?;
    let label = match (&args.agent, &ladder.agent) {
        (Some(_), Some(key)) => key.name().to_owned(),
        _ => PathBuf::from(&program)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
    };
    Ok(Task {
        command: args.command.clone(),
        gateway: gateway::choose(&args.gateway, config),
        kind,
        ladder,
        label,
        tries: args.tries,
        patience: args.patience,
        resume: args.resume == Resume::Auto,
        runs,
        environment: std::env::vars_os().collect(),
        binary: own_binary(),
        zone: clock::now().time_zone().clone(),
    })
}

/// What the command stands on. One without a name has a key of its own all the same, which nobody else sees.
fn ladder(args: &RunArgs, kind: &Kind) -> Result<Ladder, Failure> {
    let wrong = |error: koboshi::key::KeyError| Failure::new(error.to_string());
    let folder = || {
        let here = std::env::current_dir().unwrap_or_default();
        here.file_name().map_or_else(|| "here".to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let project = args.project.clone().unwrap_or_else(folder);
    let agent = match &args.agent {
        Some(agent) => ScopeKey::agent(agent, &project),
        None => ScopeKey::agent("run", &std::process::id().to_string()),
    };
    let account = args.account.as_ref().or(kind.vendor.as_ref());
    let key = |rung, name: &String| ScopeKey::new(rung, name).map_err(wrong);
    let whose = kind.vendor.as_ref().or(account);
    let model = args
        .model
        .as_ref()
        .zip(whose)
        .map(|(model, whose)| key(ScopeLevel::Model, &format!("{whose}/{model}")));
    Ok(Ladder {
        agent: Some(agent.map_err(wrong)?),
        model: model.transpose()?,
        account: account.map(|name| key(ScopeLevel::Account, name)).transpose()?,
        provider: kind.vendor.as_ref().map(|name| key(ScopeLevel::Provider, name)).transpose()?,
    })
}

/// Says why it ends like this, where the reason is ours.
fn exit(say: &Say, args: &RunArgs, task: &Task, verdict: Verdict) -> Result<Exit, Failure> {
    let told = |text: String| {
        // Standard error is the last resort: if it is gone too, the exit status still tells.
        let _ = writeln!(anstream::stderr().lock(), "koboshi: {text}");
    };
    let program = task.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Exit::Code(match verdict {
        Verdict::Ended(status) => u8::try_from(status.shell_code() & 0xff).unwrap_or(1),
        Verdict::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        Verdict::Rests(held, until) => {
            let patience = say.phrases().countdown(say.lang, args.patience);
            let until = tell::time(say, until);
            told(say.text(
                "run-rests",
                &[
                    ("key", &held.event.key.to_string()),
                    ("until", &until),
                    ("reason", &tell::reason(say, &held)),
                    ("patience", &patience),
                ],
            ));
            RESTS
        }
        Verdict::Parked(held) => {
            let command = format!("koboshi resume {}", crate::shell::word(&held.event.key.to_string()));
            told(say.text(
                "run-parked",
                &[
                    ("key", &held.event.key.to_string()),
                    ("reason", &tell::reason(say, &held)),
                    ("command", &command),
                ],
            ));
            PARKED
        }
        Verdict::NotStarted(Refusal::Missing, _) => {
            told(say.text("run-missing", &[("program", &program)]));
            127
        }
        Verdict::NotStarted(_, why) => {
            told(say.text("run-refused", &[("program", &program), ("why", &why)]));
            126
        }
    }))
}

fn parse_length(text: &str) -> Result<Duration, String> {
    if text == "0" || text == "0s" {
        return Ok(Duration::ZERO);
    }
    state::length(text)
        .ok_or_else(|| format!("`{text}` is not a length of time: write it like 30s, 45m, 2h or 1d"))
}
