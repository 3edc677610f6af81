//! `koboshi logs`: what an agent wrote, read from the files of its runs.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use koboshi_config::words::Text;

use crate::args::{ConfigFileArgs, LangArgs};
use crate::{Exit, Failure, settings, state};

pub(crate) const EXAMPLES: &str = "\
Examples:
  koboshi logs reviewer/website          the newest run
  koboshi logs reviewer/website --run 2  the run before it
  koboshi logs reviewer/website -f       as it is written, until Ctrl-C

Secrets are taken out before anything is written.
Exit status: 0 shown, 2 there is no such agent or run.";

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The agent: `agent/project`; the project may be left out where there is one only
    agent: String,
    /// Go on as it is written
    #[arg(short, long)]
    follow: bool,
    /// Which run: 1 is the newest, 2 the one before it
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    run: u32,
    /// The store whose supervisor is meant [default: from the config, else the file of this user]
    #[arg(long, value_name = "PLACE", env = "KOBOSHI_STORE", hide_env_values = true)]
    store: Option<String>,
    #[command(flatten)]
    config: ConfigFileArgs,
    #[command(flatten)]
    lang: LangArgs,
}

pub(crate) fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
    let agents = state::runs_folder(args.store.as_deref(), &config)?.join("agents");
    let home = home(&agents, &args.agent).ok_or_else(|| unknown(&agents, &args.agent))?;
    let at = usize::try_from(args.run).unwrap_or(usize::MAX);
    let runs = folders(&home);
    let folder = runs.len().checked_sub(at).and_then(|at| runs.get(at)).ok_or_else(|| {
        Failure::of(Text::new(
            format!("{} has no run {}: {} are kept", args.agent, args.run, runs.len()),
            format!(
                "{} に {} 番目の実行はありません（保存されているのは {} 件）",
                args.agent,
                args.run,
                runs.len()
            ),
        ))
    })?;
    let mut out = anstream::stdout().lock();
    for number in (1..10).rev() {
        if let Ok(older) = fs::read(folder.join(format!("log.{number}"))) {
            out.write_all(&older)?;
        }
    }
    let mut place = show(&folder.join("log"), 0, &mut out)?;
    while args.follow && !folder.join("judged").exists() {
        out.flush()?;
        let _ = rustix::event::poll(&mut [], rustix::event::Timespec::try_from(LOOK).ok().as_ref());
        place = show(&folder.join("log"), place, &mut out)?;
    }
    if args.follow {
        show(&folder.join("log"), place, &mut out)?;
    }
    Ok(Exit::Good)
}

/// Writes a file from a place on; says how far it came. A file that is shorter than that has been rotated.
fn show(path: &Path, from: u64, out: &mut impl Write) -> std::io::Result<u64> {
    let Ok(mut file) = File::open(path) else { return Ok(0) };
    let from = if file.metadata()?.len() < from { 0 } else { from };
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    let count = file.read_to_end(&mut text)?;
    out.write_all(&text)?;
    Ok(from.saturating_add(count as u64))
}

/// Where the runs of an agent are.
fn home(agents: &Path, name: &str) -> Option<PathBuf> {
    if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return None;
    }
    let path = agents.join(name);
    if name.contains('/') {
        return path.is_dir().then_some(path);
    }
    let [project] = &folders(&path)[..] else { return None };
    Some(project.clone())
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn unknown(agents: &Path, name: &str) -> Failure {
    let projects = folders(agents).into_iter().flat_map(|agent| folders(&agent));
    let known: Vec<String> =
        projects.filter_map(|path| Some(path.strip_prefix(agents).ok()?.display().to_string())).collect();
    let known = known.join(", ");
    Failure::of(Text::new(
        format!("there are no runs of `{name}`; there are runs of: {known}"),
        format!("`{name}` の実行記録はありません。記録があるのは次のとおりです: {known}"),
    ))
}
