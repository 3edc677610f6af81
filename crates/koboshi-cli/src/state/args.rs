//! The command line of `status`, `resume`, `cool` and `journal`.

use clap::builder::TypedValueParser as _;
use clap::{ArgGroup, Args, ValueEnum};
use jiff::civil::Date;
use koboshi::key::{KeyError, ScopeKey, ScopeLevel};
use koboshi_gateway::SpendBy;
use koboshi_store::EntryKind;
use std::num::NonZeroUsize;
use std::ops::Deref;

use crate::args::{ConfigFileArgs, Format, LangArgs};

use super::journal::parse_what;
use super::spend::parse_by;

pub(crate) const STATUS_EXAMPLES: &str = "\
Examples:
  koboshi status
  koboshi status provider:openai                  one key; the exit status is for scripts
  koboshi status --format json --store redis://localhost
  koboshi status --url http://gateway.internal:4141    a gateway on another machine, or one with `store: memory`

Exit status: 0 available, 1 something is in cooldown, parked or open, 2 the store or the gateway cannot be read,
or no target has this key.";

pub(crate) const TOP_EXAMPLES: &str = "\
Examples:
  koboshi top --url http://127.0.0.1:4141         a running gateway: also requests a second, and what it never writes down
  koboshi top                                     the store alone, as `koboshi status` reads it
  koboshi top --format json                       one reading, for programs; it needs no terminal

Keys: q ends it, the arrows choose a line, tab goes to the next list. What is known of the chosen line stands below the lists.

Exit status: 0 ended, 2 this is no terminal, or (with --format json) the store or the gateway cannot be read. A gateway that is away is asked again.";

pub(crate) const RESUME_EXAMPLES: &str = "\
Examples:
  koboshi resume provider:openai
  koboshi resume reviewer/website                 start again what was parked or paused
  koboshi resume --all

Exit status: 0 something was resumed, 1 nothing was held (so it is the second time), or no target has this key,
2 the store or the gateway cannot be used.";

pub(crate) const COOL_EXAMPLES: &str = "\
Examples:
  koboshi cool provider:openai --for 2h --reason \"incident 4711\"
  koboshi cool model:gpt-4o --for 30m             this model, at every provider
  koboshi cool target:openai/gpt-4o --for 30m     this model at this provider, with every API key
  koboshi cool account:openai --until 2026-11-15T18:00:00+09:00

A key is what it names, a colon and the name: provider, account, model, target, key (an API key) or agent.
Targets under it get no requests until then, and clients get the reason.

Exit status: 0 in cooldown, 1 no target has this key and nothing was changed, 2 the store or the gateway cannot be used.";

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  koboshi pause reviewer --for 2h                 all projects of this agent
  koboshi pause reviewer/website --until 2026-11-15T18:00:00+09:00 --reason \"release day\"
  koboshi resume reviewer                         end it early

A run that goes on is not stopped; the next one starts when the time is over.
Exit status: 0 paused, 1 there is no such agent and nothing was changed, 2 the store or the gateway cannot be used.";

pub(crate) const JOURNAL_EXAMPLES: &str = "\
Examples:
  koboshi journal --since 2h
  koboshi journal --what operator --format json   one JSON object a line
  koboshi journal --target target:openai/gpt-4o --kind rate_limited
  koboshi journal --kind rescued                  requests that another target or a retry answered
  koboshi journal --prune                         delete what is older than the config keeps it";

pub(crate) const SPEND_EXAMPLES: &str = "\
Examples:
  koboshi spend                                   this month, by key, and how much of each budget is used
  koboshi spend --by model --from 2026-11-01 --to 2026-11-18
  koboshi spend --by day --format csv > spend.csv
  koboshi spend --by agent --url http://gateway.internal:4141

Costs are list prices times the tokens that providers stated; docs/models.md says how to set your own. Tokens without a known
price are named, and are in no cost. Tokens of answers that were cut are estimated, and counted as such.";

/// Where the state is, and for whom it is shown.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The store: a file, or `redis://…` [default: from the config, else the file of this user] [env: KOBOSHI_STORE]
    #[arg(long, value_name = "PLACE", conflicts_with = "url")]
    pub(crate) store: Option<String>,
    /// Ask a running gateway instead of the store, such as http://127.0.0.1:4141 [env: KOBOSHI_URL]. Its admin key is read from
    /// KOBOSHI_ADMIN_KEY or --admin-key-file
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A file with the gateway's admin key [default: the variable KOBOSHI_ADMIN_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_key_file: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
    /// The instant that counts as now [default: the clock]
    #[arg(long, value_name = "TIME", value_parser = crate::clock::parse)]
    pub(crate) now: Option<jiff::Zoned>,
}

/// The arguments of most of these commands.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

impl Deref for StateArgs {
    type Target = PlaceArgs;

    fn deref(&self) -> &PlaceArgs {
        &self.place
    }
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpendFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// What to add up by: key, model, route, agent or day
    #[arg(long, value_name = "WHAT", default_value = "key", value_parser = parse_by)]
    pub(crate) by: SpendBy,
    /// The first day, such as 2026-11-01 [default: the first of this month]
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<Date>,
    /// The last day [default: today]
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<Date>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SpendFormat,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// One key, such as `provider:openai`
    pub(crate) key: Option<ScopeKey>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Print one reading instead of drawing
    #[arg(long, value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(["json"]).map(|_| Format::Json))]
    pub(crate) format: Option<Format>,
}

#[derive(Debug, Args)]
#[command(override_usage = "koboshi resume [OPTIONS] <KEY | --all>")]
pub(crate) struct ResumeArgs {
    /// The key, such as `provider:openai`, or an agent as `agent/project`
    #[arg(required_unless_present = "all", value_parser = parse_key)]
    pub(crate) key: Option<ScopeKey>,
    /// Everything that is in cooldown or parked
    #[arg(long, conflicts_with = "key")]
    all: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("time").required(true).args(["length", "until"])))]
pub(crate) struct CoolArgs {
    /// The key, such as `provider:openai`, `model:gpt-4o` or `target:openai/gpt-4o`
    pub(crate) key: ScopeKey,
    /// For how long: 30s, 45m, 2h, 1d
    // Parsed later, so that its errors are in the reader's language; so are the other times.
    #[arg(long = "for", value_name = "LENGTH")]
    pub(crate) length: Option<String>,
    /// Until when, with the zone: `2026-11-18T18:00+09:00` or `2026-11-18T09:00Z`
    #[arg(long, value_name = "TIME", conflicts_with = "length")]
    pub(crate) until: Option<String>,
    /// Why: `koboshi status` and errors for clients show it
    #[arg(long, value_name = "TEXT", visible_alias = "why")]
    pub(crate) reason: Option<String>,
    /// Do it although no target or agent is known to have this key
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// `koboshi pause`: the same as `koboshi cool agent:…`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("time").required(true).args(["length", "until"])))]
pub(crate) struct PauseArgs {
    /// The agent: `agent/project`, or `agent` for all of its projects
    #[arg(value_name = "AGENT[/PROJECT]", value_parser = parse_agent)]
    pub(crate) agent: ScopeKey,
    /// For how long: 30s, 45m, 2h, 1d
    #[arg(long = "for", value_name = "LENGTH")]
    pub(crate) length: Option<String>,
    /// Until when, with the zone: `2026-11-18T18:00+09:00` or `2026-11-18T09:00Z`
    #[arg(long, value_name = "TIME", conflicts_with = "length")]
    pub(crate) until: Option<String>,
    /// Why: `koboshi status` shows it
    #[arg(long, value_name = "TEXT", visible_alias = "why")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// An agent, with `agent:` or without.
fn parse_agent(text: &str) -> Result<ScopeKey, String> {
    let name = text.strip_prefix("agent:").unwrap_or(text);
    ScopeKey::new(ScopeLevel::Agent, name).map_err(|error| error.to_string())
}

/// A key; a name alone is an agent's.
fn parse_key(text: &str) -> Result<ScopeKey, String> {
    if text.contains(':') {
        text.parse().map_err(|error: KeyError| error.to_string())
    } else {
        parse_agent(text)
    }
}

#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    /// Only entries from then on: a length of time ago, or an instant
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only entries before then: a length of time ago, or an instant
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// What it is about: fault, remedy, breaker, gate, cooldown, lease, store, operator, run, budget
    #[arg(long, value_name = "WHAT", value_parser = parse_what)]
    pub(crate) what: Option<EntryKind>,
    /// The kind of error or step, such as `rate_limited`
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// What it happened to, such as `target:openai/gpt-4o` or `account:openai`
    #[arg(long, value_name = "KEY")]
    pub(crate) target: Option<ScopeKey>,
    /// Which agent it happened to: `agent/project`, or `agent` for all of its projects
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Delete entries beyond what the config keeps (`store.journal`), and show nothing
    #[arg(long)]
    pub(crate) prune: bool,
    /// Show at most this many entries, the newest
    #[arg(long, value_name = "N", default_value = "200")]
    pub(crate) limit: NonZeroUsize,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}
