//! `koboshi run`: one command under protection.
//!
//! The command's output goes where it would go without us; our own messages go to standard error, in the reader's language.

pub(crate) mod gateway;
mod progress;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use koboshi::classify::Classifier;
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::redact::Redactor;
use koboshi::supervise::{Ladder, WatchPolicy};
use koboshi_config::Config;
use koboshi_store::{Ledger, LedgerOptions};
use koboshi_supervisor::folder::Refusal;
use koboshi_supervisor::protected::{self, Task, Verdict};
use koboshi_supervisor::spawn::own_binary;
use koboshi_supervisor::{Kind, Knowledge};

use crate::args::{ConfigFileArgs, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, clock, kinds, rules, settings, state};

use progress::WaitReporter;

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi run -- claude -p \"fix the tests\"                 waits for the reset when the limit is reached, then continues
  koboshi run --account main --patience 6h -- codex exec \"…\"
  koboshi run --agent reviewer --project website -- gemini -p \"…\"
  koboshi run --gateway off -- ./my-agent

Everything is passed through: input, output, the terminal, Ctrl-C. After a failure that passes by itself (a limit, an overloaded
provider, a lost connection, an end by a signal) the command is started again: after the stated wait of a limit, else after about one
minute, then two (`cooldown`). An exit status without a reason that is known is passed on, and not tried again. What is learned of an account holds for every other
`koboshi run` and for the gateway, and theirs for this one.

Exit status: that of the command (128+n for a signal), or
   75  in cooldown for longer than --patience: try again at the time that is named
   69  parked: resume it with the command that is named
  126  the command cannot be run, 127 it was not found
    2  koboshi itself could not be used";

/// In cooldown: an outer supervisor may try again later (EX_TEMPFAIL).
const RESTS: u8 = 75;
/// Parked: an operator must act (EX_UNAVAILABLE).
const PARKED: u8 = 69;

/// How long to wait for the store at the beginning and at the end.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A length of time, or none.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<Duration>);

impl Limit {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let length = state::length(text).filter(|length| !length.is_zero());
        length.map(|length| Self(Some(length))).ok_or_else(|| {
            format!("`{text}` is not a length of time: write it like 30s, 45m, 2h or 1d, or `off`")
        })
    }
}

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
    /// Longest run: after it the command is stopped, and started again as after a failure that may pass
    #[arg(long, value_name = "TIME|off", default_value = "off", value_parser = Limit::parse)]
    limit_run: Limit,
    /// Longest time in which it may say nothing but that it waits for the network (codex); after it the command is stopped in the same way
    #[arg(long, value_name = "TIME|off", default_value = "10m", value_parser = Limit::parse)]
    limit_offline: Limit,
    /// What happens to the session of a command that is started again
    #[arg(long, value_enum, default_value = "auto")]
    resume: Resume,
    /// Gateway that the command is pointed at: `auto` (the one of this config, if it answers), an address, or `off`
    #[arg(long, value_name = "auto|URL|off", default_value = "auto", value_parser = gateway::parse)]
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
    /// The config file of the command line.
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
    // Without the store the command runs all the same: the ledger merges when the store is back.
    let _ = ledger.wait_loaded(STORE_TIMEOUT);
    let task = task(args, &config, runs, &say)?;
    let knowledge = Knowledge::new(Arc::clone(&ledger), config.cooldown)
        .map_err(|error| Failure::new(error.to_string()))?
        .on_a_fleet(state::is_fleet(args.store.as_deref(), &config));
    let knowledge = match (&args.agent, &task.ladder.agent) {
        (None, Some(own)) => knowledge.keeping_private(own.clone()),
        _ => knowledge,
    };
    let classifier = Classifier::new(rules::load(&config.rules)?, clock::zones());
    let mut telling = WaitReporter::new(&say, &ledger, flags_of(args));
    telling.unnamed = task.ladder.agent.clone().filter(|_| args.agent.is_none());
    let verdict = protected::run(&task, &knowledge, &classifier, &mut telling);
    // What was learned is stored for the next command, before this one ends.
    ledger.finish(STORE_TIMEOUT);
    exit(&say, &telling, args, &task, verdict?)
}

fn task(args: &RunArgs, config: &Config, runs: PathBuf, say: &Say) -> Result<Task, Failure> {
    let kinds = kinds::load(config)?;
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
    let environment: Vec<_> = std::env::vars_os().collect();
    let gateway::GatewayAddress { address, notice } =
        gateway::choose(&args.gateway, config, &kind, &environment);
    if let Some((id, values)) = notice {
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Where standard error is gone, no one reads it.
        let _ = writeln!(anstream::stderr().lock(), "koboshi: {}", say.text(id, &values));
    }
    Ok(Task {
        command: args.command.clone(),
        gateway: address,
        kind,
        ladder,
        label,
        tries: args.tries,
        patience: args.patience,
        limits: WatchPolicy::default().with(|limits| {
            limits.run = args.limit_run.0;
            limits.offline = args.limit_offline.0;
        }),
        resume: args.resume == Resume::Auto,
        runs,
        environment,
        binary: own_binary(),
        zone: clock::now().time_zone().clone(),
    })
}

/// The keys of the command. One without a name has a key of its own all the same, which no other process sees.
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

/// Explains the exit status, where the reason is ours.
fn exit(
    say: &Say,
    telling: &WaitReporter<'_>,
    args: &RunArgs,
    task: &Task,
    verdict: Verdict,
) -> Result<Exit, Failure> {
    let told = |text: String| {
        // If standard error is gone too, the exit status still shows the reason.
        let _ = writeln!(anstream::stderr().lock(), "koboshi: {text}");
    };
    let program = task.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Exit::Code(match verdict {
        Verdict::Ended(status) => u8::try_from(status.shell_code() & 0xff).unwrap_or(1),
        Verdict::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        Verdict::Rests { held, until, ran } => {
            let patience = say.phrases().countdown(say.lang, args.patience);
            let until = progress::time(say, until);
            told(say.text(
                match (is_private(args, task, &held.event.key), ran) {
                    (true, _) => "run-rests-unnamed",
                    (false, true) => "run-rests-again",
                    (false, false) => "run-rests",
                },
                &[
                    ("key", &held.event.key.to_string()),
                    ("until", &until),
                    ("reason", &telling.reason(&held)),
                    ("patience", &patience),
                ],
            ));
            RESTS
        }
        Verdict::Parked { held, ran } => {
            let command = telling.resume_command(&held.event.key);
            told(say.text(
                match (is_private(args, task, &held.event.key), ran) {
                    (true, _) => "run-parked-unnamed",
                    (false, true) => "run-parked-again",
                    (false, false) => "run-parked",
                },
                &[
                    ("key", &held.event.key.to_string()),
                    ("reason", &telling.reason(&held)),
                    ("command", &command),
                ],
            ));
            PARKED
        }
        Verdict::NotStarted { why, said, held } => {
            let (id, code) = match why {
                Refusal::Missing => ("run-missing", 127),
                _ => ("run-refused", 126),
            };
            told(say.text(id, &[("program", &program), ("why", &said)]));
            if let Some(held) = held {
                told(telling.next_run(&held));
            }
            code
        }
    }))
}

/// Whether a key is that of a run without a name: no other command sees it, so no text names it.
fn is_private(args: &RunArgs, task: &Task, key: &ScopeKey) -> bool {
    args.agent.is_none() && task.ladder.agent.as_ref() == Some(key)
}

/// The flags that lead another command to the same store. A password in its address is not repeated.
fn flags_of(args: &RunArgs) -> String {
    let config = args.config.file.as_ref().map(|path| path.display().to_string());
    let given = [("--store", args.store.clone()), ("--config", config)];
    let redactor = Redactor::new();
    let one = |(flag, value): (&str, Option<String>)| {
        Some(format!(" {flag} {}", crate::shell::word(&redactor.redact(&value?))))
    };
    given.into_iter().filter_map(one).collect()
}

fn parse_length(text: &str) -> Result<Duration, String> {
    if text == "0" || text == "0s" {
        return Ok(Duration::ZERO);
    }
    state::length(text)
        .ok_or_else(|| format!("`{text}` is not a length of time: write it like 30s, 45m, 2h or 1d"))
}
