//! The command line, as clap sees it.

use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use koboshi_config::Config;
use koboshi_config::config::Language;
use koboshi_report::phrase::Lang;

use crate::drill::DrillArgs;
use crate::import::ImportCommand;
use crate::init::InitArgs;
use crate::key::KeyCommand;
use crate::notify::NotifyCommand;
use crate::repair::RepairArgs;
use crate::replay::GuardCommand;
use crate::run::RunArgs;
use crate::serve::ServeArgs;
use crate::shell;
use crate::state::args::{
    self as state, CoolArgs, JournalArgs, PauseArgs, ResumeArgs, SpendArgs, StatusArgs, TopArgs,
};
use crate::supervise::{LogsArgs, OrderArgs, ReloadArgs, SuperviseArgs};
use crate::up::UpArgs;

const EXAMPLES: &str = "\
Examples:
  koboshi serve                              start the gateway: point your program's base_url at it
  koboshi run -- claude -p task              run an agent: wait for its limits, start it again after failures that pass
  koboshi init                               write a first koboshi.yaml, with comments
  koboshi explain agent.log --exit-code 1    why did this run fail, what to do, how long to wait?
  koboshi check                              is koboshi.yaml correct?
  koboshi models openai/gpt-5.1              what is known of this model, and from where?
  koboshi status                             which targets are in cooldown, stopped or failing?
  koboshi top --url http://127.0.0.1:4141    the same of a running gateway, live
  koboshi codes                              every kind of error, with its code
  koboshi help explain                       more about one command

Words:
  target     a provider and a model, with the API key that is used, such as openai/gpt-4o
  cooldown   a pause after failures: no requests are sent to a target, an account or a provider until it ends
  retry      sending the same request again; fallback: sending it to the next target
  key        the name of what a cooldown is about, such as `provider:openai` or `account:main`. It is not an API key";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  koboshi explain agent.log --exit-code 1         why did this run fail, and how long to wait?
  claude -p \"…\" 2>&1 | koboshi explain            the same, from a pipe
  koboshi explain body.json --status 429 --header 'retry-after: 20'
  curl -si https://api.example.com/v1/models | koboshi explain
  koboshi explain out.txt --kind tool --lang ja   what did this tool report? in Japanese
  koboshi explain agent.log --should-be quota     it was misread: write it down as a case, for `koboshi corpus add`

Times are shown in your time zone: --zone, else TZ, else the machine's. Where none is set, times in a Japanese text are read as Japan's. Lines are wrapped to the width of the terminal
or to COLUMNS; output to a file or a pipe is not wrapped unless COLUMNS is set.

Exit status: 0 no problem was found, 1 an error was found, 2 the input is empty, no text or cannot be read.";

const KEY_EXAMPLES: &str = "\
Examples:
  koboshi key new laptop                          print a new key, and write its hash into koboshi.yaml
  koboshi key new intern --budget-day 2 --rate 30 --route assistant
  koboshi key revoke laptop

A running gateway takes the change by itself when its file changes, or after `koboshi reload`.

Exit status: 0 done, 2 the config cannot be changed, and why.";

const CHECK_EXAMPLES: &str = "\
Examples:
  koboshi check                        check the config in use, and show what differs from the defaults
  koboshi check koboshi.yaml           check this file
  koboshi check --lang ja              in Japanese
  koboshi check --format json          for programs
  koboshi check --schema > koboshi.schema.json   for editors: completion, descriptions and checks

The file is the one given here, else the one that KOBOSHI_CONFIG names, else ./koboshi.yaml,
else koboshi/koboshi.yaml in XDG_CONFIG_HOME or ~/.config. Without a file the defaults are used.

Exit status: 0 valid, perhaps with warnings, 1 something is wrong in the file, 2 the file cannot be read.";

const MODELS_EXAMPLES: &str = "\
Examples:
  koboshi models                        the models that the routes of koboshi.yaml name
  koboshi models openai/gpt-5.1         a model of a provider
  koboshi models claude-opus-4-6 fast   a model by its name alone, and the models of the route `fast`
  koboshi models gpt-4o --format json   for programs

A fact comes from `models` in koboshi.yaml, else from its models_file, else from the built-in table; what no one states is assumed.
docs/models.md says what each means and how to add a model.";

const CORPUS_EXAMPLES: &str = "\
Examples:
  koboshi corpus check corpus/*.jsonl
  koboshi corpus check corpus/agent-logs.jsonl --failures --min 97
  koboshi corpus check mine.jsonl --rules my-rules.yaml --format json

Tool errors and sequences are measured in two passes, with and without the error flag; the total counts both.

Exit status: 0 good, 1 below --min, 2 a file cannot be read.";

const ADD_EXAMPLES: &str = "\
Examples:
  koboshi explain agent.log --exit-code 1 --should-be quota
  koboshi corpus add koboshi-cases.jsonl --to corpus

Nothing is sent anywhere. If one case cannot be taken, none is; a text that is there already is passed over.

Exit status: 0 filed, 2 a case cannot be taken, and why.";

const CODES_EXAMPLES: &str = "\
Examples:
  koboshi codes
  koboshi codes --format json --lang ja
  koboshi codes --prefix MIRA";

/// A proxy for LLM APIs that retries, falls back and resumes streams, and a tool that explains failures
#[derive(Debug, Parser)]
#[command(name = "koboshi", version, propagate_version = true, arg_required_else_help = true)]
#[command(about = "A proxy for LLM APIs that retries, falls back and resumes streams, and a tool that explains failures", after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) lang: LangArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the gateway: a proxy that retries failed requests and falls back to other providers
    #[command(after_help = crate::serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Run an agent's command: wait for its limits, start it again after failures that pass
    #[command(after_help = crate::run::EXAMPLES)]
    Run(RunArgs),
    /// Keep the agents of the config running: start them again after failures, wait for their limits
    #[command(after_help = crate::supervise::EXAMPLES)]
    Supervise(SuperviseArgs),
    /// Start the gateway and keep the agents of the config running, in one process
    #[command(after_help = crate::up::EXAMPLES)]
    Up(UpArgs),
    /// Read the config of the running supervisor again: agents are restarted only where they must be
    #[command(after_help = crate::supervise::RELOAD_EXAMPLES)]
    Reload(ReloadArgs),
    /// Start an agent of the supervisor now
    #[command(
        after_help = "Examples:\n  koboshi start reviewer/website\n\nExit status: 0 done, 2 no supervisor or no such agent."
    )]
    Start(OrderArgs),
    /// Stop an agent of the supervisor until it is started again
    #[command(
        after_help = "Examples:\n  koboshi stop reviewer/website\n\nExit status: 0 done, 2 no supervisor or no such agent."
    )]
    Stop(OrderArgs),
    /// Stop an agent of the supervisor and start it again
    #[command(
        after_help = "Examples:\n  koboshi restart reviewer\n\nExit status: 0 done, 2 no supervisor or no such agent."
    )]
    Restart(OrderArgs),
    /// Show what an agent of the supervisor wrote
    #[command(after_help = crate::supervise::LOGS_EXAMPLES)]
    Logs(LogsArgs),
    /// Write a first koboshi.yaml for the API keys that are there
    #[command(after_help = crate::init::EXAMPLES)]
    Init(InitArgs),
    /// Translate the config of another gateway
    #[command(subcommand)]
    Import(ImportCommand),
    /// Explain what went wrong in a log, an HTTP response or a tool's output, what to do and how long to wait
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Validate the JSON arguments of a tool call, and repair them if there is exactly one way to read them
    #[command(after_help = crate::repair::EXAMPLES)]
    Repair(RepairArgs),
    /// Check the config and show mistakes with line and column
    #[command(after_help = CHECK_EXAMPLES)]
    Check(ConfigArgs),
    /// Rehearse failures of providers against the config: what would clients see, and what would make it better?
    #[command(after_help = crate::drill::EXAMPLES)]
    Drill(DrillArgs),
    /// Show what is known of models, and where each fact comes from
    #[command(after_help = MODELS_EXAMPLES)]
    Models(ModelsArgs),
    /// Show what is in cooldown, parked or open: since when, until when, why
    #[command(after_help = state::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Watch targets, requests, errors and agents live, on one screen
    #[command(after_help = state::TOP_EXAMPLES)]
    Top(TopArgs),
    /// End the cooldown of a provider, account, model or target
    #[command(after_help = state::RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// Put a provider, account, model or target into cooldown until a time of your choice
    #[command(after_help = state::COOL_EXAMPLES)]
    Cool(CoolArgs),
    /// Keep an agent from being started until a time of your choice
    #[command(after_help = state::PAUSE_EXAMPLES)]
    Pause(PauseArgs),
    /// Show what happened: errors, retries, cooldowns; newest last
    #[command(after_help = state::JOURNAL_EXAMPLES)]
    Journal(JournalArgs),
    /// Show what answers cost, by key, model, route, agent or day, and how much of each budget is used
    #[command(after_help = state::SPEND_EXAMPLES)]
    Spend(SpendArgs),
    /// Make and revoke the keys of clients, in the config
    #[command(subcommand, after_help = KEY_EXAMPLES)]
    Key(KeyCommand),
    /// Send a test notice to a channel of the config
    #[command(subcommand, after_help = crate::notify::EXAMPLES)]
    Notify(NotifyCommand),
    /// List every kind of error with its codes; as JSON also whether a retry may help
    #[command(after_help = CODES_EXAMPLES)]
    Codes(CodesArgs),
    /// Measure how often errors are recognised, against labelled cases
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// Try the loop guard on recorded runs of agents
    #[command(subcommand)]
    Guard(GuardCommand),
    /// Print shell completions
    #[command(
        after_help = "Examples:\n  koboshi completions bash > ~/.local/share/bash-completion/completions/koboshi\n  \
                      koboshi completions fish > ~/.config/fish/completions/koboshi.fish\n\n\
                      The packages bring the completions of bash, zsh and fish."
    )]
    Completions {
        /// The shell to print them for
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command, into a folder
    #[command(hide = true)]
    Man {
        /// The folder; it is made if it is not there
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CorpusCommand {
    /// Check labelled cases and show where the result differs
    #[command(after_help = CORPUS_EXAMPLES)]
    Check(CheckArgs),
    /// Check new cases, and file each with those of its form
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputKind {
    /// Find out from the text
    Auto,
    /// A provider's response: a body, a response with headers, an SSE stream, or an HTTP client's error text
    Answer,
    /// The log of an agent's run
    Log,
    /// The output of a tool
    Tool,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The file to read; `-` or nothing reads standard input
    pub(crate) file: Option<PathBuf>,
    /// What the input is
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) kind: InputKind,
    /// HTTP status of the response
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub(crate) status: Option<u16>,
    /// A header of the response, `name: value`; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The request asked for a stream
    #[arg(long)]
    pub(crate) stream: bool,
    /// Exit status of the agent (128+n for a signal)
    #[arg(long, value_name = "N")]
    pub(crate) exit_code: Option<i32>,
    /// Whether the tool's result was flagged as an error
    #[arg(long, value_name = "BOOL")]
    pub(crate) is_error: Option<bool>,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The instant that counts as now, and that waits are counted from where no time stands in the text [default: the clock for now;
    /// for waits the last change of the file, or now for standard input]
    #[arg(long, value_name = "TIME", value_parser = crate::clock::Instant::parse)]
    pub(crate) now: Option<crate::clock::Instant>,
    /// Your time zone, for times without one and for times that are shown [default: TZ, else the machine's; where
    /// that is UTC, times in a Japanese text are read as Japan's]
    #[arg(long, value_name = "ZONE", value_parser = crate::clock::parse_zone)]
    pub(crate) zone: Option<jiff::tz::TimeZone>,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Prefix of the codes [default: from the config, else KBS]
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// What it is, if it was misread: a kind for a response, a reason for a log, a category for a tool, `none` or `ok` for no error. Writes a case with keys
    /// masked into a local file
    #[arg(long, value_name = "WHAT")]
    pub(crate) should_be: Option<String>,
    /// Where --should-be writes
    #[arg(long, value_name = "FILE", default_value = "koboshi-cases.jsonl", requires = "should_be")]
    pub(crate) cases: PathBuf,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// A rule file of your own, which adds to, replaces or disables built-in rules
    #[arg(id = "rules", long = "rules", value_name = "FILE", env = "KOBOSHI_RULES")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFileArgs {
    /// The config file [default: as `koboshi check` says]
    #[arg(id = "config", long = "config", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LangArgs {
    /// Language of the texts: en or ja [default: from the config, else LC_ALL, LC_MESSAGES or LANG]
    #[arg(long, global = true, value_name = "LANG", value_parser = parse_lang)]
    lang: Option<Lang>,
}

impl LangArgs {
    /// The language of the command line.
    pub(crate) fn asked(&self) -> Option<Lang> {
        self.lang
    }

    /// The language of the command line, else of the config, else of the environment, else English.
    pub(crate) fn get(&self, config: &Config) -> Lang {
        self.get_with(config.language)
    }

    /// The same, with the language that a config names, even a config that cannot be used.
    pub(crate) fn get_with(&self, named: Option<Language>) -> Lang {
        let from_config = || named.and_then(|language| Lang::from_tag(language.name()));
        let from_environment = || {
            ["LC_ALL", "LC_MESSAGES", "LANG"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
                .and_then(|tag| Lang::from_tag(&tag))
        };
        self.lang.or_else(from_config).or_else(from_environment).unwrap_or(Lang::En)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The config file [default: the one that would be used]
    pub(crate) file: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Print the JSON Schema of the config instead, for editors
    #[arg(long, conflicts_with = "file")]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Models: `provider/model`, a model's name, or a route [default: what the routes of the config name]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CodesArgs {
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CodesFormat,
    /// Prefix of the codes [default: from the config, else KBS]
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
}

/// How to print the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CodesFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For the documentation
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files of labelled cases, one JSON object per line; the form follows from the fields
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Show every case with a wrong result
    #[arg(long)]
    pub(crate) failures: bool,
    /// Lowest acceptable accuracy of each file and each pass, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub(crate) min: f64,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Files of labelled cases, one JSON object per line
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The folder of the corpus, with a file for each form
    #[arg(long, value_name = "FOLDER", default_value = "corpus")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// A file where no argument is expected is most often the config: its flag is named.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_file = [".yaml", ".yml"].iter().any(|end| given.ends_with(end)) && !given.starts_with('-');
    if error.kind() == ErrorKind::UnknownArgument && is_file {
        let hint =
            StyledStr::from(format!("a config is named with its flag: --config {}", shell::word(given)));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    }
    error
}

fn parse_lang(text: &str) -> Result<Lang, String> {
    Lang::from_tag(text).ok_or_else(|| format!("`{text}` is not supported: choose en or ja"))
}
