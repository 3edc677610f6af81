//! `koboshi guard replay`: where the loop guard would have noted and stopped in recorded runs.
//!
//! ```text
//!   file, .xz or pipe ──► source (lines, bounded) ──► record (which form?) ──► calls of a run ──► judge ──► text or JSON
//! ```
//!
//! It judges as the gateway does by default: after each response of the model, with the number of calls only observed. The run continues after
//! a stop as it was recorded, so within one user turn only the first stop counts.

mod judge;
mod messages;
mod progress;
mod record;
mod render;
mod source;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{Guard, GuardPolicy, Rule, RulePolicy};

use crate::args::{Format, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, clock, settings};
use progress::Progress;
use render::Output;
use source::Source;

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi guard replay ~/.claude/projects/*/*.jsonl      sessions of Claude Code
  koboshi guard replay ~/.codex/sessions/2026/11/*/*.jsonl
  koboshi guard replay messages.json                     a list of messages, or a request with one: OpenAI or Anthropic
  xz -dc runs.jsonl.xz | koboshi guard replay - --format json

The form is recognised by the content: a message list, a Codex rollout, a session of Claude Code, or JSON lines with `id` and `calls`
(`tool`, `args`, `output`, and where they are known `is_error`, `turn`, `batch`). Files may be compressed with xz.

With --format json there is one object per line and run: `id`, `calls`, `notes` and `stops`, each of these with `turn`, `at` (the call,
from 0), `rule` and `why`.

Exit status: 0 everything was read, 2 a file or a line could not be read; the rest is still shown.";

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Show where the guard would have noted and stopped in recorded runs
    #[command(after_help = EXAMPLES)]
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// RecordedCall runs; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Another limit, such as `similar_errors=5`. NAME is similar_errors, alternating_errors, any_errors, same_call, cycle, stagnation, width,
    /// after_changes, window or waiting; `preset=source` sets all of them
    #[arg(long = "set", value_name = "NAME=N", value_parser = parse_setting)]
    settings: Vec<Setting>,
    /// Judge as if no result carried an error flag
    #[arg(long)]
    no_flags: bool,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(command: &GuardCommand) -> Result<Exit, Failure> {
    let GuardCommand::Replay(args) = command;
    let config = settings::load_without_keys(None, &args.lang).unwrap_or_default();
    let say = Say::new(args.lang.get(&config))?;
    let mut policy = GuardPolicy::default();
    args.settings.iter().for_each(|setting| setting.apply(&mut policy));
    policy.depth = RulePolicy::OFF;
    let wrong = |error: &dyn std::error::Error| Failure::new(error.to_string());
    let guard = Guard::new(policy).map_err(|error| wrong(&error))?;
    let rules = Rules::builtin().map_err(|error| wrong(&error))?;
    let judge = judge::Judge {
        guard,
        classifier: Classifier::new(rules, clock::zones()),
        flags: !args.no_flags,
        say: &say,
    };
    let mut output = Output::new(args.format, &say);
    let mut progress = Progress::new(&say);
    for path in &args.files {
        let mut source = match Source::open(path) {
            Ok(source) => source,
            Err(error) => {
                output.unreadable(path, &error)?;
                continue;
            }
        };
        let has_any = record::each_run(&mut source, path, |run| {
            progress.clear();
            match run.calls {
                Ok(calls) => output.run(&judge.judge(&run.id, &calls))?,
                Err(why) => output.wrong(path, run.line, &why)?,
            }
            progress.step(run.bytes, output.calls());
            Ok(())
        })?;
        if !has_any {
            progress.clear();
            output.empty(path)?;
        }
    }
    progress.clear();
    output.end()?;
    Ok(if output.is_wrong() { Exit::Refused } else { Exit::Good })
}

/// A limit from the command line.
#[derive(Debug, Clone, Copy)]
enum Setting {
    Source,
    Rule(Rule, u32),
    AfterChanges(u32),
    Window(u32),
    Waiting(u32),
}

impl Setting {
    fn apply(self, policy: &mut GuardPolicy) {
        match self {
            Self::Source => *policy = GuardPolicy::source(),
            Self::AfterChanges(limit) => policy.after_changes = limit,
            Self::Window(limit) => policy.window = limit,
            Self::Waiting(limit) => policy.waiting = limit,
            Self::Rule(rule, limit) => {
                let own = match rule {
                    Rule::SimilarErrors => &mut policy.similar_errors,
                    Rule::AlternatingErrors => &mut policy.alternating_errors,
                    Rule::AnyErrors => &mut policy.any_errors,
                    Rule::SameCall => &mut policy.same_call,
                    Rule::Cycle => &mut policy.cycle,
                    Rule::Stagnation => &mut policy.stagnation,
                    Rule::Width => &mut policy.width,
                    _ => return,
                };
                own.limit = limit;
            }
        }
    }
}

/// Settings besides the limits of rules.
const OTHERS: &[&str] = &["after_changes", "window", "waiting"];

/// The rules whose limit can be set; the number of calls is only observed here.
fn rules() -> impl Iterator<Item = Rule> {
    Rule::ALL.iter().copied().filter(|rule| *rule != Rule::Depth)
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    if text == "preset=source" {
        return Ok(Setting::Source);
    }
    let (name, number) = text.split_once('=').ok_or("it needs the form NAME=N")?;
    // The spelling of the config is accepted too.
    let name = name.strip_prefix("guard.").unwrap_or(name);
    let name = name.strip_suffix(".limit").or_else(|| name.strip_prefix("max_")).unwrap_or(name);
    let number: u32 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    match name {
        "after_changes" => Ok(Setting::AfterChanges(number)),
        "window" => Ok(Setting::Window(number)),
        "waiting" => Ok(Setting::Waiting(number)),
        _ => match rules().find(|rule| rule.name() == name) {
            Some(rule) => Ok(Setting::Rule(rule, number)),
            None => {
                let names: Vec<&str> = rules().map(Rule::name).chain(OTHERS.iter().copied()).collect();
                Err(format!("`{name}` is no limit that can be set here; there are {}", names.join(", ")))
            }
        },
    }
}
