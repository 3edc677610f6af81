//! `agents` and `accounts`: what a supervisor keeps.

use super::super::{Field, Key, Range, Shape};
use super::build::{
    NONE, SOME_COUNT, SOME_LENGTH, always_of_entry, entries, flag, length, narrow, of_entry, optional_count,
    optional_length, section, text, texts, word,
};
use super::forms::{AGENT, ARGUMENT, NAME, PROJECT_NAME, VARIABLE, VARIABLE_NAME, WHEN, WORD};
use crate::agents::{AccountConfig, AgentConfig, STOP_SIGNALS};

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
            "Which kind of program it is: `claude`, `codex`, `gemini`, `qwen`, `opencode`, `aider` or `custom`",
        )
        .unset("by the program's name", "プログラム名による"),
        text(
            "agents.*.account",
            NAME,
            of_entry!(agents, account),
            "Account whose limits it uses, as `providers.*.account` names it",
        )
        .unset("the vendor of its kind", "種類に応じたベンダー"),
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
        text(
            "agents.*.when",
            WHEN,
            always_of_entry!(agents, when),
            "When it is started: `always` (again after every end), `once`, `every 10m`, or `asked` (the program in `ask` decides)",
        ),
        texts(
            "agents.*.ask",
            ARGUMENT,
            Range::of(0, 1000),
            always_of_entry!(agents, ask),
            "With `when: asked`: a program that is run every 2 s; exit status 0 means that the agent is to be started",
        ),
        section("agents.*.limits", "How long one run may take"),
        optional_length("agents.*.limits.run", SOME_LENGTH, of_entry!(agents, limits.run), "In all"),
        optional_length("agents.*.limits.silent", SOME_LENGTH, of_entry!(agents, limits.silent), "Without any output"),
        optional_length(
            "agents.*.limits.offline",
            SOME_LENGTH,
            of_entry!(agents, limits.offline),
            "In waiting for the network, where its kind says so",
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
        flag(
            "agents.*.gateway",
            always_of_entry!(agents, gateway),
            "Whether it is pointed at the gateway of this config, if that answers",
        ),
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
    ]
}
