//! When an agent is wanted, and who is asked, as the config says it.

use std::ffi::OsString;

use koboshi::supervise::{MissedTimes, Overlap, Schedule, ScheduleError, ScheduleRule, When};
use koboshi_config::Config;
use koboshi_config::agents::WhenConfig;
use koboshi_config::load::Unservable;
use koboshi_config::words::Text;
use koboshi_supervisor::keep::{Question, ServerPlace, Token, Whom};

use crate::clock;

pub(super) fn of(config: &WhenConfig) -> Result<When, ScheduleError> {
    if question(config).is_some() {
        return Ok(When::Asked);
    }
    Ok(match (config.schedule.as_str(), config.every()) {
        (_, Some(length)) => When::Every(length),
        ("once", _) => When::Once,
        ("always", _) => When::Always,
        (fields, _) => When::Scheduled(ScheduleRule {
            schedule: Schedule::parse(fields, &clock::zones(), clock::now().time_zone())?,
            missed: if config.missed == "run" { MissedTimes::Run } else { MissedTimes::Skip },
            overlap: match config.overlap {
                "wait" => Overlap::Wait,
                "replace" => Overlap::Replace,
                _ => Overlap::Skip,
            },
        }),
    })
}

pub(super) fn question(config: &WhenConfig) -> Option<Question> {
    let words = |command: &[String]| command.iter().map(OsString::from).collect::<Vec<_>>();
    let mcp = &config.mcp;
    let whom = if config.asks_server() {
        let address = |url: &String| {
            let token = mcp.token.as_ref().map(|token| Token::new(token.expose().to_owned()));
            ServerPlace::Address { url: url.clone(), token }
        };
        let place = mcp.url.as_ref().map_or_else(|| ServerPlace::Command(words(&mcp.command)), address);
        Whom::Server { place, tool: mcp.tool.clone() }
    } else {
        Whom::Program(Some(words(&config.command)).filter(|command| !command.is_empty())?)
    };
    Some(Question { whom, every: config.interval })
}

/// Why a field of a schedule cannot be read. The parser has English only: of its sentences, those with a range are translated.
fn field_in_japanese(said: &str) -> String {
    let range = said.split_once("in range ").and_then(|(_, rest)| {
        let (range, found) = rest.split_once("; found ")?;
        let (first, last) = range.split_once("..=")?;
        Some(format!(
            "スケジュールの欄の値が範囲外です。{first} から {last} までの値にしてください（現在: {found}）"
        ))
    });
    range.unwrap_or_else(|| {
        "スケジュールの欄を読み取れません。`0 3 * * 1-5` のように、分、時、日、月、曜日を書いてください"
            .to_owned()
    })
}

/// Schedules that cannot be used, with their places.
pub(crate) fn unusable(config: &Config) -> Vec<Unservable> {
    let wrong = |(name, error): (&String, ScheduleError)| {
        let ja = match &error {
            ScheduleError::Fields => {
                "スケジュールは 5 つの欄（分、時、日、月、曜日）で書き、必要なら最後にタイムゾーンを付けてください".to_owned()
            }
            ScheduleError::Zone(zone) => format!("`{zone}` というタイムゾーンはありません"),
            ScheduleError::Never => "この日時は決して来ません".to_owned(),
            other => field_in_japanese(&other.to_string()),
        };
        let why = Text::new(error.to_string(), ja);
        Unservable { key: "agents.*.when.schedule", entry: name.clone(), why }
    };
    let errors = config.agents.iter().filter_map(|(name, agent)| Some((name, of(&agent.when).err()?)));
    errors.map(wrong).collect()
}
