//! `koboshi start`, `stop` and `restart`: orders for a running supervisor, over its local socket.

use std::io::Write;

use clap::Args;
use koboshi_config::words::Text;
use koboshi_supervisor::keep::{Action, Order, ask};
use serde_json::Value;

use crate::args::{ConfigFileArgs, Format, LangArgs};
use crate::say::Say;
use crate::{Exit, Failure, settings, state};

#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The agent: `agent/project`, or `agent` for all of its projects
    agent: String,
    /// The store whose supervisor is meant [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
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
    let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
    let say = Say::new(args.lang.get(&config))?;
    let runs = state::runs_folder(args.store.as_deref(), &config)?;
    let order = Order { action, agent: Some(args.agent.clone()) };
    let Some(said) = ask(&runs, &order)? else {
        return Err(Failure::of(Text::new(
            "no supervisor is running for this store: start one with koboshi supervise",
            "このストアのスーパーバイザーは動いていません。koboshi supervise で起動してください",
        )));
    };
    if said.get("error").is_some() {
        let known: Vec<&str> = said
            .get("agents")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let known = known.join(", ");
        return Err(Failure::of(Text::new(
            format!("no agent is called `{}`: there are {known}", args.agent),
            format!("`{}` というエージェントはありません（あるのは {known}）", args.agent),
        )));
    }
    let mut out = anstream::stdout().lock();
    if args.format == Format::Json {
        writeln!(out, "{said}")?;
    } else {
        lines(&|id| say.text(id, &[]), &said).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(Exit::Good)
}

/// What the supervisor of a store says of its agents; none where there is none.
pub(crate) fn rows(store: Option<&str>, config: &koboshi_config::Config) -> Option<Value> {
    let runs = state::runs_folder(store, config).ok()?;
    let order = Order { action: Action::Status, agent: None };
    ask(&runs, &order).ok()??.get("agents").cloned()
}

/// One line for each agent.
pub(crate) fn lines(say: &dyn Fn(&str) -> String, said: &Value) -> Vec<String> {
    let agents = said.get("agents").unwrap_or(said).as_array().cloned().unwrap_or_default();
    let text =
        |agent: &Value, name: &str| agent.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    agents
        .iter()
        .map(|agent| {
            let state = say(&format!("agent-{}", text(agent, "state")));
            let held = text(agent, "held_by");
            let held = if held.is_empty() { held } else { format!("  {held}") };
            format!("{}  {state}{held}", text(agent, "agent"))
        })
        .collect()
}
