//! `agents` and `accounts`: what a supervisor keeps.

use std::time::Duration;

use super::super::{Field, Key, Range, Shape};
use super::build::{
    NONE, SOME_COUNT, SOME_LENGTH, always_of_entry, entries, flag, length, narrow, of_entry, optional_count,
    optional_length, secret, section, text, text_or_texts, texts, word,
};
use super::forms::{
    AGENT, ARGUMENT, GATEWAY, KEY, NAME, PROJECT_NAME, SIZE, URL, VARIABLE, VARIABLE_NAME, WHEN, WORD,
};
use crate::agents::{AccountConfig, AgentConfig, MISSED, OVERLAP, STOP_SIGNALS};
use crate::size;

/// A lease that is shorter would be lost in every pause of the network.
const TAKEOVER: Range<Duration> = Range::of(Duration::from_secs(2), Duration::from_secs(60 * 60));

pub(super) fn agents() -> Vec<Key> {
    vec![
        section("agents", "Agents that `koboshi supervise` keeps running, each under a name of your choice"),
        Key {
            path: "agents.*",
            shape: entries!(agents, AgentConfig::default(), AGENT, required: &["command"], short: None),
            meaning: "One agent",
            unset: NONE,
        },
        texts(
            "agents.*.command",
            WORD,
            Range::of(1, 1000),
            always_of_entry!(agents, command),
            "The program and its arguments, as a list; no shell reads them",
        ),
        text(
            "agents.*.kind",
            NAME,
            of_entry!(agents, kind),
            "Which kind of program it is: `claude`, `codex`, `gemini`, `qwen`, `opencode`, `aider`, `custom`, or one of the files in `kinds`",
        )
        .unset("by the program's name", "プログラム名による"),
        text_or_texts(
            "agents.*.account",
            NAME,
            Range::of(0, 100),
            always_of_entry!(agents, account),
            "Account whose limits it uses, as `providers.*.account` names it; several are tried in this order, the next when one is in cooldown or parked; without any, the vendor of its kind",
        ),
        text(
            "agents.*.model",
            NAME,
            of_entry!(agents, model),
            "Model that it asks, so that a limit of one model does not stop the agents of others",
        ),
        texts(
            "agents.*.projects",
            PROJECT_NAME,
            Range::of(1, 1000),
            always_of_entry!(agents, projects),
            "Projects that it works on; one run at a time in each",
        ),
        Key {
            path: "agents.*.dir",
            shape: Shape::Path { field: of_entry!(agents, dir) },
            meaning: "Folder that it runs in; `{project}` stands for the project",
            unset: NONE,
        }
        .unset("the supervisor's own", "スーパーバイザーと同じ"),
        Key {
            path: "agents.*.env",
            shape: Shape::Secrets {
                form: VARIABLE,
                range: Range::of(0, 1000),
                field: always_of_entry!(agents, env),
            },
            meaning: "Variables for it, each as `NAME=value`; take secrets from environment variables",
            unset: NONE,
        },
        texts(
            "agents.*.pass_env",
            VARIABLE_NAME,
            Range::of(0, 1000),
            always_of_entry!(agents, pass_env),
            "Names of variables that it gets from the supervisor's environment, besides the usual ones (PATH, HOME, LANG and so on)",
        ),
        Key {
            path: "agents.*.when",
            shape: Shape::Section { word: None, short: Some("schedule") },
            meaning: "When it is started; a text is short for its `schedule`",
            unset: NONE,
        },
        text(
            "agents.*.when.schedule",
            WHEN,
            always_of_entry!(agents, when.schedule),
            "`always` (again after every end), `once`, `every 10m`, or the five fields of cron, with a time zone behind them if it is not the local one: `0 3 * * 1-5 Asia/Tokyo`",
        ),
        word(
            "agents.*.when.missed",
            MISSED,
            always_of_entry!(agents, when.missed),
            "Times of a cron schedule that passed while no supervisor ran or the machine slept: `skip`, or `run` once for all of them",
        ),
        word(
            "agents.*.when.overlap",
            OVERLAP,
            always_of_entry!(agents, when.overlap),
            "A time of a cron schedule that comes while it still runs: `skip`, `wait` for the end, or `replace` the running one",
        ),
        texts(
            "agents.*.when.command",
            ARGUMENT,
            Range::of(0, 1000),
            always_of_entry!(agents, when.command),
            "A program that is run again and again while the agent does not run; exit status 0 means that it is to be started",
        ),
        section("agents.*.when.mcp", "An MCP server that is asked what is to be done with the agent"),
        texts(
            "agents.*.when.mcp.command",
            ARGUMENT,
            Range::of(0, 1000),
            always_of_entry!(agents, when.mcp.command),
            "A program that speaks MCP on its standard streams; it gets the environment of the agent",
        ),
        text(
            "agents.*.when.mcp.url",
            URL,
            of_entry!(agents, when.mcp.url),
            "Address of an MCP server that speaks streamable HTTP, in place of `command`",
        ),
        secret(
            "agents.*.when.mcp.token",
            KEY,
            of_entry!(agents, when.mcp.token),
            "Sent to `url` as `Authorization: Bearer`",
        ),
        text(
            "agents.*.when.mcp.tool",
            NAME,
            always_of_entry!(agents, when.mcp.tool),
            "Tool that is called with `agent_id` and `project_id`; it answers with `action`: `start`, `stop` or `none`",
        ),
        length(
            "agents.*.when.interval",
            SOME_LENGTH,
            always_of_entry!(agents, when.interval),
            "How often `command` is run, or `mcp` is asked",
        ),
        optional_count(
            "agents.*.concurrency",
            SOME_COUNT,
            Field {
                get: |c, name| c.agents.get(name).and_then(|one| one.concurrency).map(u64::from),
                set: |c, name, value| {
                    if let Some(one) = c.agents.get_mut(name) {
                        one.concurrency = value.map(narrow);
                    }
                },
            },
            "In how many of its projects it may run at once, on this machine",
        ),
        section("agents.*.limits", "What one run may take: time, memory, processes"),
        optional_length("agents.*.limits.run", SOME_LENGTH, of_entry!(agents, limits.run), "In all"),
        optional_length(
            "agents.*.limits.silent",
            SOME_LENGTH,
            of_entry!(agents, limits.silent),
            "Without any output, or with nothing but lines that it has written before (numbers aside)",
        ),
        optional_length(
            "agents.*.limits.offline",
            SOME_LENGTH,
            of_entry!(agents, limits.offline),
            "In waiting for the network, where its kind says so",
        ),
        text(
            "agents.*.limits.memory",
            SIZE,
            Field {
                get: |c, name| c.agents.get(name).and_then(|one| one.limits.memory).map(size::text),
                set: |c, name, text| {
                    if let Some(one) = c.agents.get_mut(name) {
                        one.limits.memory = text.as_deref().and_then(size::bytes);
                    }
                },
            },
            "Memory of the agent and of everything that it started; above it they are killed",
        )
        .unset("no limit", "制限なし"),
        optional_count(
            "agents.*.limits.pids",
            SOME_COUNT,
            Field {
                get: |c, name| c.agents.get(name).and_then(|one| one.limits.pids).map(u64::from),
                set: |c, name, value| {
                    if let Some(one) = c.agents.get_mut(name) {
                        one.limits.pids = value.map(narrow);
                    }
                },
            },
            "Number of processes, the agent and everything that it started; above it they are killed",
        ),
        section("agents.*.stop", "How it is stopped"),
        word("agents.*.stop.signal", STOP_SIGNALS, always_of_entry!(agents, stop.signal), "Signal that asks it to end"),
        length(
            "agents.*.stop.grace",
            SOME_LENGTH,
            always_of_entry!(agents, stop.grace),
            "Time until it is killed if it does not end",
        ),
        flag(
            "agents.*.survives",
            always_of_entry!(agents, survives),
            "Whether it goes on when the supervisor ends or dies, so that the next one takes it over; otherwise it is stopped",
        ),
        flag(
            "agents.*.resume",
            always_of_entry!(agents, resume),
            "Whether its session is continued after a failure, where its kind says how",
        ),
        text(
            "agents.*.gateway",
            GATEWAY,
            always_of_entry!(agents, gateway),
            "The gateway that it is pointed at: the one of this config, if that answers when it is started and can serve its kind (`auto`, or `true`), one at an address, or none (`off`, or `false`)",
        ),
        text_or_texts(
            "agents.*.run_on",
            AGENT,
            Range::of(0, 1000),
            always_of_entry!(agents, run_on),
            "Host names of the machines that it runs on, on each of them; `any` for one machine at a time, whichever it is: that needs `store.redis`",
        )
        .unset("every machine whose supervisor has this config", "この設定を読むすべてのマシン"),
        length(
            "agents.*.takeover",
            TAKEOVER,
            always_of_entry!(agents, takeover),
            "With `run_on: any`: time after which another machine starts it, when the one that runs it is no longer heard of",
        ),
        Key {
            path: "kinds",
            shape: Shape::Paths {
                field: Field {
                    get: |c, _| Some(c.kinds.clone()),
                    set: |c, _, paths| c.kinds = paths.unwrap_or_default(),
                },
            },
            meaning: "Your own files with what is known of agent programs, in order (see supervisor.md)",
            unset: NONE,
        },
        section("accounts", "Accounts of agents"),
        Key {
            path: "accounts.*",
            shape: entries!(accounts, AccountConfig::default(), NAME, required: &[], short: None),
            meaning: "One account",
            unset: NONE,
        },
        optional_count(
            "accounts.*.concurrency",
            SOME_COUNT,
            Field {
                get: |c, name| c.accounts.get(name).and_then(|one| one.concurrency).map(u64::from),
                set: |c, name, value| {
                    if let Some(one) = c.accounts.get_mut(name) {
                        one.concurrency = value.map(narrow);
                    }
                },
            },
            "Maximum number of agents that run on it at once; fewer after a limit was reached, until runs succeed again",
        ),
        Key {
            path: "accounts.*.env",
            shape: Shape::Secrets {
                form: VARIABLE,
                range: Range::of(0, 1000),
                field: always_of_entry!(accounts, env),
            },
            meaning: "Variables that sign an agent in with this account, each as `NAME=value`; they replace the agent's own. Take secrets from environment variables",
            unset: NONE,
        },
    ]
}
