//! The command line of `status`, `resume`, `cool` and `journal`.

use clap::Args;
use koboshi::key::ScopeKey;
use koboshi_store::What;

use crate::args::{ConfigFileArgs, Format, LangArgs};

use super::journal::{Since, parse_what};
use super::person::parse_length;

pub(crate) const STATUS_EXAMPLES: &str = "\
Examples:
  koboshi status
  koboshi status account:main                     one key; the exit status tells a script
  koboshi status --format json --store redis://localhost

Exit status: 0 nothing stands still, 1 something rests, is parked or open, 2 the store cannot be read.";

pub(crate) const RESUME_EXAMPLES: &str = "\
Examples:
  koboshi resume agent:reviewer/website           start again what was parked
  koboshi resume --all

Exit status: 0 resumed, 1 there was nothing to resume, 2 the store cannot be written.";

pub(crate) const COOL_EXAMPLES: &str = "\
Examples:
  koboshi cool account:main --for 2h
  koboshi cool provider:openai --until 2026-11-15T18:00:00+09:00 --reason \"incident 4711\"";

pub(crate) const JOURNAL_EXAMPLES: &str = "\
Examples:
  koboshi journal --since 2h
  koboshi journal --what operator --format json   one JSON object a line
  koboshi journal --target account:main --kind quota_exceeded
  koboshi journal --prune                         forget what the config says is too old";

/// What all of these commands take.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The store: a file, or `redis://…` [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) lang: LangArgs,
    /// The instant to look from or act at [default: now]
    #[arg(long, value_name = "TIME", value_parser = crate::clock::parse)]
    pub(crate) now: Option<jiff::Zoned>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// One key, such as `account:main`
    pub(crate) key: Option<ScopeKey>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The key, such as `account:main`
    #[arg(required_unless_present = "all")]
    pub(crate) key: Option<ScopeKey>,
    /// Everything that rests or is parked
    #[arg(long, conflicts_with = "key")]
    all: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CoolArgs {
    /// The key, such as `account:main`
    pub(crate) key: ScopeKey,
    /// For how long: 30s, 45m, 2h, 1d
    #[arg(long = "for", value_name = "LENGTH", value_parser = parse_length, required_unless_present = "until")]
    pub(crate) length: Option<std::time::Duration>,
    /// Until when
    #[arg(long, value_name = "TIME", value_parser = crate::clock::parse, conflicts_with = "length")]
    pub(crate) until: Option<jiff::Zoned>,
    /// Why, for whoever looks at the status
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    /// From then on: a length of time ago, or an instant
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    pub(crate) since: Option<Since>,
    /// Before then: a length of time ago, or an instant
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    pub(crate) until: Option<Since>,
    /// What it tells of: fault, remedy, breaker, gate, cooldown, lease, store, operator
    #[arg(long, value_name = "WHAT", value_parser = parse_what)]
    pub(crate) what: Option<What>,
    /// The kind of fault or step, such as `rate_limited`
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// What it happened to, such as `account:main`
    #[arg(long, value_name = "KEY")]
    pub(crate) target: Option<ScopeKey>,
    /// Which agent it happened to
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Forget entries beyond what the config keeps (`store.journal`), and show nothing
    #[arg(long)]
    pub(crate) prune: bool,
    /// At most so many entries, the newest
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}
