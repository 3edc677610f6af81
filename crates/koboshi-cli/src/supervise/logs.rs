//! `koboshi logs`: the output of an agent, from the files of its runs, or from a running `koboshi up`.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use koboshi_config::words::Text;
use koboshi_gateway::LogPiece;
use koboshi_supervisor::logs::{Logs, NoLog, Place, RunLog, Which};
use serde_json::json;

use crate::args::Format;
use crate::{Exit, Failure};

use super::kept::PIECE;
use super::place::{Supervisor, SupervisorArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi logs reviewer/website          the newest run
  koboshi logs reviewer/website --run 2  the run before it
  koboshi logs reviewer/website -f       as it is written, until the run ends
  koboshi logs reviewer --url http://gateway.internal:4141    of a `koboshi up` on another machine

Secrets are taken out before anything is written.
Exit status: 0 shown, 2 there is no such agent or run.";

/// How often a followed log is checked, here and over the network.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const REMOTE_POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The agent: `agent/project`; the project may be left out where there is one only
    agent: String,
    /// Go on as it is written, until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Which run: 1 is the newest, 2 the one before it
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    run: u32,
    /// How to print: `json` is one object with the lines of the run; with --follow one object for each line as it comes, and one at the end
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    place: SupervisorArgs,
}

/// The log of one run, wherever it is.
enum Source {
    Local(RunLog),
    Remote { supervisor: Supervisor, agent: String, run: String },
}

impl Source {
    fn open(args: &LogsArgs) -> Result<Self, Failure> {
        let (supervisor, _) = args.place.open(false)?;
        let Supervisor::Local(runs) = &supervisor else {
            return Ok(Self::Remote { supervisor, agent: args.agent.clone(), run: args.run.to_string() });
        };
        let nth = Which::Nth(usize::try_from(args.run).unwrap_or(usize::MAX));
        Logs::of(runs).find(&args.agent, nth).map(Self::Local).map_err(|none| unknown(args, &none))
    }

    /// The piece that begins there.
    fn read(&mut self, from: Option<&str>) -> Result<LogPiece, Failure> {
        match self {
            Self::Local(log) => {
                // Asked before the lines are read: what was written before the end is in them.
                let (ended, over) = (log.has_ended(), log.is_over());
                let piece = log.read(from.and_then(|place| place.parse::<Place>().ok()), PIECE)?;
                Ok(LogPiece {
                    agent: log.agent.clone(),
                    run: log.id(),
                    text: String::from_utf8_lossy(&piece.bytes).into_owned(),
                    next: piece.next.map(|place| place.to_string()),
                    more: piece.more,
                    ended,
                    over,
                })
            }
            Self::Remote { supervisor: Supervisor::Remote(gateway), agent, run } => {
                let piece = gateway.log_of_agent(agent, run, from)?;
                // A newer run may begin meanwhile: this one goes by its id.
                (*agent, *run) = (piece.agent.clone(), piece.run.clone());
                Ok(piece)
            }
            Self::Remote { .. } => {
                Err(Failure::new("this supervisor is not asked over the network".to_owned()))
            }
        }
    }

    const fn poll_interval(&self) -> Duration {
        match self {
            Self::Local(_) => POLL_INTERVAL,
            Self::Remote { .. } => REMOTE_POLL_INTERVAL,
        }
    }
}

pub(crate) fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let mut source = Source::open(args)?;
    let mut out = anstream::stdout().lock();
    let is_json = args.format == Format::Json;
    let mut lines: Vec<String> = Vec::new();
    // A line that is not whole yet.
    let mut begun = String::new();
    let mut place: Option<String> = None;
    loop {
        let piece = source.read(place.as_deref())?;
        if is_json && args.follow {
            begun.push_str(&piece.text);
            let whole = begun.rfind('\n').map_or(0, |end| end + 1);
            let rest = begun.split_off(whole);
            begun.lines().try_for_each(|line| writeln!(out, "{}", json!({"line": line})))?;
            begun = rest;
        } else if is_json {
            lines.extend(piece.text.lines().map(str::to_owned));
        } else {
            out.write_all(piece.text.as_bytes())?;
        }
        place = piece.next.or(place);
        if piece.more {
            continue;
        }
        if !args.follow || piece.over {
            let LogPiece { agent, ended, .. } = piece;
            if is_json && args.follow {
                if !begun.is_empty() {
                    writeln!(out, "{}", json!({"line": begun}))?;
                }
                writeln!(out, "{}", json!({"agent": agent, "run": args.run, "over": ended}))?;
            } else if is_json {
                writeln!(out, "{}", json!({"agent": agent, "run": args.run, "over": ended, "lines": lines}))?;
            }
            return Ok(Exit::Good);
        }
        out.flush()?;
        let pause = rustix::event::Timespec::try_from(source.poll_interval()).ok();
        let _ = rustix::event::poll(&mut [], pause.as_ref());
    }
}

fn unknown(args: &LogsArgs, none: &NoLog) -> Failure {
    let name = &args.agent;
    Failure::of(match none {
        NoLog::Run(kept) => Text::new(
            format!("{name} has no run {}: {kept} are kept", args.run),
            format!("{name} に {} 番目の実行はありません（保存されているのは {kept} 件）", args.run),
        ),
        NoLog::Project(projects) => {
            let projects = projects.join(", ");
            Text::new(
                format!("`{name}` runs in several projects; name one of them: {projects}"),
                format!(
                    "`{name}` には複数のプロジェクトがあります。次のいずれかを指定してください: {projects}"
                ),
            )
        }
        NoLog::Agent(known) if known.is_empty() => Text::new(
            format!(
                "there are no runs of `{name}`: no agent has been started with this store yet. `koboshi supervise` starts those of the config; a store is chosen with --store or --config"
            ),
            format!(
                "`{name}` の実行記録はありません。このストアで起動されたエージェントはまだありません。設定のエージェントは `koboshi supervise` で起動します。別のストアは --store または --config で指定してください"
            ),
        ),
        NoLog::Agent(known) => {
            let known = known.join(", ");
            Text::new(
                format!("there are no runs of `{name}`; there are runs of: {known}"),
                format!("`{name}` の実行記録はありません。記録があるのは次のとおりです: {known}"),
            )
        }
    })
}
