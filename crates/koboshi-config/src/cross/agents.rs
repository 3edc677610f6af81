//! Keys of an agent that do not go together: several answers to the question when it is started, and machines without a common store.

use crate::agents::{ANY_MACHINE, AgentConfig};
use crate::check::Problem;
use crate::config::{Config, StorePlace};
use crate::walk::{GivenKey, Walk};
use crate::words::{Text, text, words};

/// Everything that says when an agent is started.
const STARTERS: &[&str] = &[
    "agents.*.when.schedule", "agents.*.when.command", "agents.*.when.mcp.command", "agents.*.when.mcp.url",
];
/// Keys that say something about a cron schedule.
const OF_CRON: &[&str] = &["agents.*.when.missed", "agents.*.when.overlap"];

pub(super) fn check(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, agent) in &config.agents {
        let of = Of { walk, name, agent };
        found.extend(of.two_starters());
        found.extend(of.machines(config));
        found.extend(of.too_short_takeover());
    }
    found
}

/// Keys that are read only together with others.
pub(super) fn warn(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, agent) in &config.agents {
        let of = Of { walk, name, agent };
        found.extend(of.nothing_to_miss());
        found.extend(of.without_question());
        found.extend(of.token_without_url());
    }
    found
}

/// One agent.
struct Of<'o> {
    walk: &'o Walk<'o>,
    name: &'o str,
    agent: &'o AgentConfig,
}

impl Of<'_> {
    fn problem(&self, given: &GivenKey, message: Text, hint: Text) -> Problem {
        self.walk.problem(&given.at, given.spot, message, Some(hint))
    }

    fn two_starters(&self) -> Option<Problem> {
        let mut given: Vec<&GivenKey> =
            STARTERS.iter().filter_map(|path| self.walk.given(path, self.name)).collect();
        given.sort_by_key(|given| given.spot);
        let [first, second, ..] = given[..] else { return None };
        let (late, early, line) = (&second.at.shown, &first.at.shown, first.spot.line);
        let message = text!(
            "`{late}` says when the agent is started, and so does `{early}` in line {line}",
            "`{late}` と {line} 行目の `{early}` は、どちらも起動する時を決める設定です"
        );
        Some(self.problem(
            second,
            message,
            words("keep one of the two", "どちらか一方を残してください").into(),
        ))
    }

    fn nothing_to_miss(&self) -> Vec<Problem> {
        if self.agent.when.cron().is_some() || self.walk.failed("agents.*.when.schedule", self.name) {
            return Vec::new();
        }
        let given = OF_CRON.iter().filter_map(|path| self.walk.given(path, self.name));
        given
            .map(|given| {
                let message = text!(
                    "`{}` is read only together with a cron schedule",
                    "`{}` は cron 形式の `schedule` と一緒に設定したときだけ使われます",
                    given.at.shown
                );
                let hint = words(
                    "write the times as `schedule`, such as `0 3 * * 1-5`, or take this key out",
                    "時刻を `0 3 * * 1-5` のように `schedule` に書くか、このキーを削除してください",
                );
                self.problem(given, message, hint.into())
            })
            .collect()
    }

    fn without_question(&self) -> Option<Problem> {
        let when = &self.agent.when;
        let asks = !when.command.is_empty() || when.asks_server();
        let others = STARTERS.iter().any(|path| self.walk.failed(path, self.name));
        let tool = self.walk.given("agents.*.when.mcp.tool", self.name).filter(|_| !when.asks_server());
        let interval = self.walk.given("agents.*.when.interval", self.name).filter(|_| !asks);
        let given = tool.or(interval).filter(|_| !others)?;
        let message = text!(
            "`{}` is read only where somebody is asked",
            "`{}` は問い合わせ先を設定したときだけ使われます",
            given.at.shown
        );
        let hint = words(
            "add `command` or `mcp` to `when`, or take this key out",
            "`when` に `command` か `mcp` を追加するか、このキーを削除してください",
        );
        Some(self.problem(given, message, hint.into()))
    }

    fn token_without_url(&self) -> Option<Problem> {
        let given = self.walk.given("agents.*.when.mcp.token", self.name)?;
        if self.agent.when.mcp.url.is_some() || self.walk.failed("agents.*.when.mcp.url", self.name) {
            return None;
        }
        let message = text!(
            "`{}` is sent to `url`, which is not set",
            "`{}` は `url` に送られますが、`url` が設定されていません",
            given.at.shown
        );
        let hint = words(
            "add `url`, or give the token to the program of `command` in `env` of the agent",
            "`url` を追加するか、`command` のプログラムにはエージェントの `env` で渡してください",
        );
        Some(self.problem(given, message, hint.into()))
    }

    fn machines(&self, config: &Config) -> Option<Problem> {
        let given = self.walk.given("agents.*.run_on", self.name)?;
        if !self.agent.run_on.iter().any(|machine| machine == ANY_MACHINE) {
            return None;
        }
        if self.agent.run_on.len() > 1 {
            let message = text!(
                "`{}` names machines beside `any`",
                "`{}` で `any` とホスト名の両方が指定されています",
                given.at.shown
            );
            let hint =
                words("write `any`, or the host names", "`any` か、ホスト名だけのどちらかにしてください");
            return Some(self.problem(given, message, hint.into()));
        }
        if self.walk.failed("store.redis", "") || config.store.place.is_shared_by_machines() {
            return None;
        }
        // `--store` and `KOBOSHI_STORE` may name another store than the file does.
        if config.store.place == StorePlace::Usual {
            return None;
        }
        let message = text!(
            "`{}` is `any`, and the store is not one that several machines share",
            "`{}` が `any` ですが、ストアは複数のマシンで共有されていません",
            given.at.shown
        );
        let hint = words(
            "set `store: {redis: \"${REDIS_URL}\"}`",
            "`store: {redis: \"${REDIS_URL}\"}` を設定してください",
        );
        Some(self.problem(given, message, hint.into()))
    }

    /// An agent must be gone before another machine may start it.
    fn too_short_takeover(&self) -> Option<Problem> {
        let is_any = self.agent.run_on.iter().any(|machine| machine == ANY_MACHINE);
        if !is_any || self.agent.stop.grace * 2 <= self.agent.takeover {
            return None;
        }
        let given = self
            .walk
            .given("agents.*.takeover", self.name)
            .or_else(|| self.walk.given("agents.*.stop.grace", self.name))?;
        let message = words(
            "`takeover` must be at least twice `stop.grace`: the agent must have ended before another machine starts it",
            "`takeover` は `stop.grace` の 2 倍以上にしてください。別のマシンが起動する前に、エージェントが終了している必要があります",
        );
        let hint = words(
            "make `takeover` longer or `stop.grace` shorter",
            "`takeover` を長くするか、`stop.grace` を短くしてください",
        );
        Some(self.problem(given, message.into(), hint.into()))
    }
}
