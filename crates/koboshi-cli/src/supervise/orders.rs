//! `koboshi start`, `stop`, `restart` and `reload`: orders for a running supervisor, over its local socket or the admin API of `koboshi up`.

use std::io::Write;

use clap::Args;
use jiff::Timestamp;
use koboshi_config::words::Text;
use koboshi_report::when::exact_time;
use koboshi_supervisor::keep::{Action, Order, ask};
use serde_json::{Value, json};

use crate::args::Format;
use crate::say::Say;
use crate::state::plain;
use crate::{Exit, Failure, clock, settings, state};

use super::kept::names;
use super::place::SupervisorArgs;

#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The agent: `agent/project`, or `agent` for all of its projects
    agent: String,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    place: SupervisorArgs,
}

pub(crate) fn start(args: &OrderArgs) -> Result<Exit, Failure> {
    order(args, Action::Start)
}

pub(crate) fn stop(args: &OrderArgs) -> Result<Exit, Failure> {
    order(args, Action::Stop)
}

pub(crate) fn restart(args: &OrderArgs) -> Result<Exit, Failure> {
    order(args, Action::Restart)
}

fn order(args: &OrderArgs, action: Action) -> Result<Exit, Failure> {
    let (supervisor, config) = args.place.open(false)?;
    let say = Say::new(args.place.lang.get(&config))?;
    let said = supervisor.order(action, Some(&args.agent))?;
    if said.get("error").is_some() {
        let known = names(&said);
        let (known, known_ja) = (known.join(", "), known.join("、"));
        return Err(Failure::of(Text::new(
            format!("no agent is called `{}`: there are {known}", args.agent),
            format!("`{}` というエージェントはありません（あるのは {known_ja}）", args.agent),
        )));
    }
    let mut out = anstream::stdout().lock();
    if args.format == Format::Json {
        writeln!(out, "{said}")?;
    } else {
        lines(&say, &said).iter().try_for_each(|line| writeln!(out, "{}", plain(line)))?;
    }
    Ok(Exit::Good)
}

#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    place: SupervisorArgs,
}

pub(crate) const RELOAD_EXAMPLES: &str = "\
Examples:
  koboshi reload                  the config is checked first: a bad one changes nothing
  koboshi reload --format json    which agents were added, removed, restarted or changed

Exit status: 0 in use, 1 the config cannot be used and the old one goes on, 2 no supervisor.";

/// `koboshi reload`.
pub(crate) fn reload(args: &ReloadArgs) -> Result<Exit, Failure> {
    // Where the store is stands in the config: the supervisor of another store must not answer in its place.
    if let Some(failure) = args.place.unreadable_config() {
        let say = Say::new(settings::language(&args.place.lang))?;
        let why = failure.text(say.language());
        if args.format == Format::Json {
            writeln!(anstream::stdout().lock(), "{}", json!({"why": why}))?;
        } else {
            writeln!(anstream::stderr().lock(), "koboshi: {why}")?;
        }
        return Ok(Exit::Found);
    }
    // The supervisor has a config of its own: a mistake in it is the supervisor's to tell.
    let (supervisor, config) = args.place.open(true)?;
    let say = Say::new(args.place.lang.get(&config))?;
    let said = supervisor.order(Action::Reload, None)?;
    let why = said.get("why").or_else(|| said.get("error")).and_then(Value::as_str);
    let mut out = anstream::stdout().lock();
    if args.format == Format::Json {
        writeln!(out, "{said}")?;
    } else if let Some(why) = why {
        writeln!(anstream::stderr().lock(), "koboshi: {}", say.text("reload-refused", &[("why", why)]))?;
    } else {
        for what in ["added", "removed", "restarted", "changed", "restart_for"] {
            let names = said.get(what).and_then(Value::as_array).into_iter().flatten();
            let names: Vec<&str> = names.filter_map(Value::as_str).collect();
            if !names.is_empty() {
                writeln!(
                    out,
                    "{}",
                    say.text(&format!("reload-{}", what.replace('_', "-")), &[("names", &names.join(", "))])
                )?;
            }
        }
        writeln!(out, "{}", say.text("reload-done", &[]))?;
    }
    Ok(if why.is_some() { Exit::Found } else { Exit::Good })
}

/// The state of the agents of a store's supervisor; none where none runs.
pub(crate) fn rows(store: Option<&str>, config: &koboshi_config::Config) -> Option<Value> {
    let runs = state::runs_folder(store, config).ok()?;
    let order = Order::new(Action::Status, None);
    ask(&runs, &order).ok()??.get("agents").cloned()
}

/// How lines about agents are worded.
pub(crate) trait AgentWords {
    /// The phrase with this id.
    fn phrase(&self, id: &str, args: &[(&str, &str)]) -> String;
    /// A time, as its reader knows it.
    fn time(&self, at: Timestamp) -> String;
}

impl AgentWords for Say {
    fn phrase(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.text(id, args)
    }

    fn time(&self, at: Timestamp) -> String {
        exact_time(self.lang, &at.to_zoned(clock::now().time_zone().clone()))
    }
}

/// What each agent does, and how its last run ended: with the rule and the line that decided, where it failed.
pub(crate) fn lines(words: &dyn AgentWords, said: &Value) -> Vec<String> {
    let agents = said.get("agents").unwrap_or(said).as_array().cloned().unwrap_or_default();
    agents.iter().flat_map(|agent| lines_of(words, agent)).collect()
}

fn text_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn lines_of(words: &dyn AgentWords, agent: &Value) -> Vec<String> {
    let state = words.phrase(&format!("agent-{}", text_of(agent, "state")), &[]);
    let held = text_of(agent, "held_by");
    let held = if held.is_empty() { String::new() } else { format!("  {held}") };
    let mut lines = vec![format!("{}  {state}{held}", text_of(agent, "agent"))];
    let Some(last) = agent.get("last").filter(|last| last.is_object()) else { return lines };
    let Ok(ended) = text_of(last, "ended").parse() else { return lines };
    let outcome = text_of(last, "outcome");
    let outcome = match outcome {
        "succeeded" | "idle" | "stopped" => words.phrase(&format!("agent-end-{outcome}"), &[]),
        reason => words.phrase(&format!("reason-{}", reason.replace('_', "-")), &[]),
    };
    let code = last.get("exit_code").map(ToString::to_string).unwrap_or_default();
    let known = [("time", words.time(ended)), ("code", code), ("outcome", outcome)];
    let known: Vec<_> = known.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut end = words.phrase("agent-last", &known);
    let rule = text_of(last, "rule");
    if !rule.is_empty() {
        end += &format!(" · {}", words.phrase("agent-rule", &[("rule", rule)]));
    }
    lines.push(format!("    {end}"));
    let line = text_of(last, "line");
    if !line.is_empty() {
        lines.push(format!("    │ {line}"));
    }
    lines
}
