//! What is known of agent programs, as data: the variables that point one at the gateway, how its sessions continue, what its output means.
//!
//! A program that is not listed is `custom`: it is started, watched and judged like the others, and nothing is added to its command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Zoned;
use koboshi::classify::{AgentLog, Classifier};
use koboshi::fault::{Confidence, Fault, Kind as FaultKind};
use serde::Deserialize;

pub use crate::session::{OwnId, Session};

/// The kind of programs that are not listed.
pub const CUSTOM: &str = "custom";
/// Larger files of kinds are refused.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// What is known of one program. Lists are empty where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kind {
    /// Names of the program.
    pub programs: Vec<String>,
    /// Whose account it uses.
    pub vendor: Option<String>,
    /// Variables that disable what disturbs a supervised run.
    pub env: BTreeMap<String, String>,
    /// Variables that name a file with such content, which each run has in its folder.
    pub files: BTreeMap<String, GivenFile>,
    /// What points it at the gateway.
    pub gateway: Pointing,
    /// What makes it print events.
    pub events: Events,
    /// How its session goes on.
    pub session: Option<Session>,
    /// Words that occur in events about limits.
    pub live: Vec<String>,
    /// The event that it prints while it has no network.
    pub offline: Option<OfflineEvent>,
    /// What it exits with, and what that tells.
    pub exits: Exits,
}

/// The event of a program that waits for the network. Lines in any other form say nothing about that: they may be the agent's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfflineEvent {
    /// The type of the event.
    pub event: String,
    /// The field of that event with the message.
    pub field: String,
    /// How the message begins.
    pub says: String,
}

impl OfflineEvent {
    /// Whether a line is this event.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { return false };
        let text = |name: &str| event.get(name).and_then(serde_json::Value::as_str);
        let begins = |message: &str| !self.says.is_empty() && message.starts_with(&self.says);
        text("type") == Some(&self.event) && text(&self.field).is_some_and(begins)
    }
}

/// A file for a program that takes its settings from nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GivenFile {
    /// What it says.
    pub text: String,
    /// Where the program reads it without the variable: a file that is there is the user's, and the program is given no other one.
    pub in_place_of: Option<PathBuf>,
}

/// What a program exits with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Exits {
    /// It exits with 0 also where it failed: what it printed counts.
    pub zero_lies: bool,
    /// Codes with a meaning of their own, as names of faults.
    pub codes: BTreeMap<i32, String>,
}

/// What points a program at the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pointing {
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Arguments behind the program's name.
    pub args: Vec<String>,
    /// Variables that must be set: without them it could not ask a gateway, and is left as it is.
    pub needs: Vec<String>,
    /// Variables with a key of its user. Where none of them is set, the program signs in by itself, if at all.
    pub user_keys: Vec<String>,
    /// Variables with the key of a gateway that wants one. They replace what is set: that is a key for another place.
    pub key: BTreeMap<String, String>,
}

/// The gateway that a program is pointed at, and who asks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointedAt<'p> {
    /// The address of the gateway.
    pub address: &'p str,
    /// The agent, as `name/project`, or the program.
    pub agent: &'p str,
    /// The key that it wants, if it wants one.
    pub key: Option<&'p str>,
}

impl PointedAt<'_> {
    /// Fills in a variable or an argument. A name that is no plain word could end a header or a quoted text: it is left out.
    fn fill(&self, text: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.@+".contains(c);
        let agent = if self.agent.chars().all(is_plain) { self.agent } else { "" };
        text.replace("{gateway}", self.address).replace("{agent}", agent)
    }
}

impl Pointing {
    /// Whether there is anything that points the program at a gateway.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.env.is_empty() || !self.args.is_empty()
    }

    /// Whether the program can be given the key of a gateway.
    #[must_use]
    pub fn takes_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// The variables with a gateway's key.
    pub fn keyed(&self, key: &str) -> impl Iterator<Item = (String, String)> {
        self.key.iter().map(move |(name, value)| (name.clone(), value.replace("{key}", key)))
    }

    /// The first variable that is missing in an environment.
    #[must_use]
    pub fn missing(&self, environment: &[(OsString, OsString)]) -> Option<&str> {
        self.needs.iter().map(String::as_str).find(|name| !is_set(environment, name))
    }

    /// Whether a program with this environment can only use a login of its own.
    #[must_use]
    pub fn signs_in(&self, environment: &[(OsString, OsString)]) -> bool {
        !self.user_keys.is_empty() && !self.user_keys.iter().any(|name| is_set(environment, name))
    }
}

fn is_set(environment: &[(OsString, OsString)], name: &str) -> bool {
    environment.iter().any(|(known, value)| known == name && !value.is_empty())
}

/// What makes a program print events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    /// Arguments.
    pub args: Vec<String>,
    /// The argument that they follow; without one they go to the end.
    pub behind: Option<String>,
    /// Left out where one of these is given.
    pub unless: Vec<String>,
}

/// Why a file of kinds cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the kinds of agents cannot be read: {0}")]
pub struct KindsError(String);

/// All kinds, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds(BTreeMap<String, Kind>);

impl Kinds {
    /// The built-in ones.
    ///
    /// # Errors
    /// They cannot be read; a test rules it out for a build.
    pub fn builtin() -> Result<Self, KindsError> {
        read(include_str!("kinds.yaml")).map(Self)
    }

    /// These and the ones of a user's file: what it says of a kind replaces what is known of it, key by key.
    ///
    /// # Errors
    /// The text cannot be read.
    pub fn with(mut self, text: &str) -> Result<Self, KindsError> {
        let own = read(text)?;
        let keys: BTreeMap<String, serde_json::Value> =
            serde_saphyr::from_str(text).map_err(|error| KindsError(error.to_string()))?;
        for (name, kind) in own {
            let given = |key: &str| keys.get(&name).is_some_and(|keys| keys.get(key).is_some());
            let known = self.0.entry(name.clone()).or_default();
            known.take_over(kind, given);
        }
        Ok(self)
    }

    /// The kind with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.0.get(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The kind of a program, by its file's name.
    #[must_use]
    pub fn of_program(&self, program: &OsStr) -> (&str, Kind) {
        let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
        let known = self.0.iter().find(|(_, kind)| kind.programs.iter().any(|program| program == name));
        known.map_or((CUSTOM, Kind::default()), |(name, kind)| (name, kind.clone()))
    }
}

fn read(text: &str) -> Result<BTreeMap<String, Kind>, KindsError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(KindsError(format!("more than {MAX_FILE_BYTES} bytes")));
    }
    let kinds: BTreeMap<String, Kind> =
        serde_saphyr::from_str(text).map_err(|error| KindsError(error.to_string()))?;
    for (name, kind) in &kinds {
        let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if let Some(variable) = kind.files.keys().find(|variable| !is_name(variable)) {
            return Err(KindsError(format!("{name}.files: `{variable}` is no name of a variable")));
        }
        if let Some(fault) = kind.exits.codes.values().find(|fault| FaultKind::from_name(fault).is_none()) {
            return Err(KindsError(format!("{name}.exits.codes: there is no fault `{fault}`")));
        }
    }
    Ok(kinds)
}

impl Kind {
    /// Takes over the keys of another one that were given.
    fn take_over(&mut self, other: Self, given: impl Fn(&str) -> bool) {
        macro_rules! take {
            ($($key:ident),+) => {
                $(if given(stringify!($key)) {
                    self.$key = other.$key;
                })+
            };
        }
        take!(programs, vendor, env, files, gateway, events, session, live, offline, exits);
    }

    /// Why a run failed, by what it printed and what it exited with.
    #[must_use]
    pub fn read_end(&self, classifier: &Classifier, log: &AgentLog<'_>, now: &Zoned) -> Option<Fault> {
        let code = log.exit_code.unwrap_or_default();
        let exit_code = log.exit_code.filter(|code| *code != 0 || !self.exits.zero_lies);
        let read = classifier.log(&AgentLog { exit_code, ..*log }, now);
        if read.as_ref().is_some_and(|fault| fault.confidence > Confidence::Low) {
            return read;
        }
        let kind = self.exits.codes.get(&code).and_then(|name| FaultKind::from_name(name));
        let of_code = kind.map(|kind| {
            let mut fault = Fault::of(kind, "supervise.exit_of_kind");
            fault.confidence = Confidence::Medium;
            fault
        });
        of_code.or(read)
    }

    /// Variables to add to an environment: those of the kind, and those that point at a gateway. The caller keeps variables that are already set.
    pub fn variables(&self, gateway: Option<PointedAt<'_>>) -> impl Iterator<Item = (String, String)> {
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let pointing = gateway
            .into_iter()
            .flat_map(|at| self.gateway.env.iter().map(move |(name, value)| (name.clone(), at.fill(value))));
        own.chain(pointing)
    }

    /// The files that a run of it is given: by their variables, which are not set, and in place of no file of the user's.
    pub fn files(&self, environment: &[(OsString, OsString)]) -> impl Iterator<Item = (&str, &str)> {
        let is_own = |name: &String, file: &GivenFile| {
            environment.iter().any(|(known, _)| *known == **name)
                || file.in_place_of.as_ref().is_some_and(|place| place.exists())
        };
        let given = self.files.iter().filter(move |(name, file)| !is_own(name, file));
        given.map(|(name, file)| (name.as_str(), file.text.as_str()))
    }

    /// The command with what points it at a gateway.
    #[must_use]
    pub fn pointed(&self, command: &[OsString], gateway: Option<PointedAt<'_>>) -> Vec<OsString> {
        let Some((program, rest)) = command.split_first() else { return Vec::new() };
        let added = gateway
            .into_iter()
            .flat_map(|at| self.gateway.args.iter().map(move |argument| at.fill(argument).into()));
        std::iter::once(program.clone()).chain(added).chain(rest.iter().cloned()).collect()
    }

    /// The command with structured events.
    #[must_use]
    pub fn with_events(&self, command: &[OsString]) -> Vec<OsString> {
        let mut command = command.to_vec();
        if !self.events.unless.iter().any(|given| has(&command, given)) {
            let behind = |word: &String| command.iter().position(|argument| argument == word.as_str());
            let at = self.events.behind.as_ref().and_then(behind).map_or(command.len(), |at| at + 1);
            command.splice(at..at, self.events.args.iter().map(OsString::from));
        }
        command
    }
}

/// Whether an argument is given, as `--name value` or `--name=value`.
pub(crate) fn has(command: &[OsString], name: &str) -> bool {
    command.iter().skip(1).filter_map(|argument| argument.to_str()).any(|argument| {
        argument == name
            || argument.strip_prefix(name).is_some_and(|rest| name.starts_with("--") && rest.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn kind(name: &str) -> Kind {
        Kinds::builtin().unwrap().get(name).unwrap().clone()
    }

    #[test]
    fn programs_are_known_by_their_file_name() {
        let kinds = Kinds::builtin().unwrap();
        for (program, name) in [("/usr/local/bin/claude", "claude"), ("codex", "codex"), ("sh", CUSTOM)] {
            assert_eq!(kinds.of_program(OsStr::new(program)).0, name);
        }
        let all = ["aider", "claude", "codex", "custom", "gemini", "opencode", "qwen"];
        assert_eq!(kinds.names().collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_users_file_adds_and_replaces() {
        let kinds = Kinds::builtin().unwrap().with("mine: {programs: [my-agent], vendor: openai}").unwrap();
        let (name, kind) = kinds.of_program(OsStr::new("my-agent"));
        assert_eq!((name, kind.vendor.as_deref()), ("mine", Some("openai")));
        assert!(
            Kinds::builtin().unwrap().with("mine: {program: x}").unwrap_err().to_string().contains("program")
        );
    }

    #[test]
    fn a_users_file_changes_a_known_kind_key_by_key() {
        let text = "claude: {vendor: company, exits: {codes: {7: quota_exceeded}}}";
        let kinds = Kinds::builtin().unwrap().with(text).unwrap();
        let (own, known) = (kinds.get("claude").unwrap(), kind("claude"));
        assert_eq!(own.vendor.as_deref(), Some("company"));
        assert_eq!((&own.session, &own.env, &own.programs), (&known.session, &known.env, &known.programs));
        let wrong = Kinds::builtin().unwrap().with("mine: {exits: {codes: {7: no_such_fault}}}");
        assert!(wrong.unwrap_err().to_string().contains("no_such_fault"));
    }

    #[test]
    fn exit_codes_that_lie_are_known() {
        let rules = koboshi::classify::Rules::builtin().unwrap();
        let classifier = Classifier::new(rules, jiff::tz::TimeZoneDatabase::bundled());
        let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
        let read = |name: &str, text: &str, code: i32| {
            let log = AgentLog { text, exit_code: Some(code), since: None };
            kind(name).read_end(&classifier, &log, &now).map(|fault| fault.kind)
        };
        let refused = "litellm.AuthenticationError: OpenAIException - Incorrect API key provided.\n";
        assert_eq!(read("aider", refused, 0), Some(FaultKind::Unauthorized));
        assert_eq!(read("custom", refused, 0), None, "a good exit is believed where nothing else is known");
        assert_eq!(read("aider", "Applied edit to a.py\n", 0), None);
        assert_eq!(read("gemini", "", 41), Some(FaultKind::Unauthorized));
        assert_eq!(read("gemini", "", 42), Some(FaultKind::InvalidRequest));
        // What was printed says more than the code.
        let quota = "TerminalQuotaError: You have exhausted your capacity on this model.\n";
        assert_eq!(read("gemini", quota, 41), Some(FaultKind::QuotaExceeded));
    }

    #[test]
    fn a_kind_points_its_program_at_the_gateway() {
        let at = |address| Some(PointedAt { address, agent: "reviewer/site", key: None });
        let variables: Vec<_> = kind("claude").variables(at("http://127.0.0.1:4141")).collect();
        let header = ("ANTHROPIC_CUSTOM_HEADERS".to_owned(), "x-koboshi-agent: reviewer/site".to_owned());
        assert!(variables.contains(&header), "the gateway learns who asks: {variables:?}");
        let hostile = PointedAt { address: "http://g", agent: "a\"b\nx-api-key: c", key: None };
        assert!(kind("claude").variables(Some(hostile)).all(|(_, value)| !value.contains("x-api-key")));
        assert!(variables.contains(&("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:4141".to_owned())));
        assert!(!kind("claude").variables(None).any(|(name, _)| name == "ANTHROPIC_BASE_URL"));
        let codex = kind("codex").pointed(&command(&["codex", "exec", "hi"]), at("http://g"));
        assert_eq!(codex.len(), 7);
        assert!(codex[2].to_str().unwrap().contains("base_url=\"http://g/v1\""));
        assert!(codex[2].to_str().unwrap().contains("http_headers={\"x-koboshi-agent\"=\"reviewer/site\"}"));
        assert_eq!(codex[5..], command(&["exec", "hi"]));
    }

    #[test]
    fn a_kind_gives_a_file_unless_its_user_has_one() {
        let gemini = kind("gemini");
        let variable = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
        let none = Kind { files: gemini.files.clone(), ..Kind::default() };
        let mut mine = Kind { files: gemini.files, ..Kind::default() };
        mine.files.values_mut().for_each(|file| file.in_place_of = Some("/proc/self/exe".into()));
        assert!(none.files(&[]).any(|(name, text)| name == variable && text.contains("maxAttempts")));
        assert_eq!(none.files(&[(variable.into(), "/own".into())]).count(), 0);
        assert_eq!(mine.files(&[]).count(), 0, "the machine has a file of its own there");
        let wrong =
            Kinds::builtin().unwrap().with("mine: {files: {../up: {text: x}}}").unwrap_err().to_string();
        assert!(wrong.contains("`../up` is no name of a variable"), "{wrong}");
    }

    #[test]
    fn a_gateways_key_goes_where_the_program_reads_it_and_never_into_its_arguments() {
        let of = |name: &str| kind(name).gateway.keyed("k").collect::<Vec<_>>();
        assert_eq!(of("claude"), [("ANTHROPIC_AUTH_TOKEN".to_owned(), "k".to_owned())]);
        assert_eq!(of("codex"), [("OPENAI_API_KEY".to_owned(), "k".to_owned())]);
        assert_eq!(of("gemini"), [("GEMINI_API_KEY".to_owned(), "k".to_owned())]);
        assert!(!kind("opencode").gateway.takes_key() && !kind("custom").gateway.takes_key());
        for name in Kinds::builtin().unwrap().names() {
            assert!(!kind(name).gateway.args.iter().any(|argument| argument.contains("{key}")), "{name}");
        }
    }

    #[test]
    fn events_are_asked_for_unless_the_user_chose_a_form() {
        let with = kind("claude").with_events(&command(&["claude", "-p", "x"]));
        assert_eq!(with[3..], command(&["--output-format", "stream-json", "--verbose"]));
        for own in [&["claude", "--output-format", "json"][..], &["claude", "--output-format=text"]] {
            assert_eq!(kind("claude").with_events(&command(own)), command(own));
        }
    }
}
