//! What is known of agent programs, as data: which variables point one at the gateway, how its session goes on, what it says while it runs.
//!
//! A program that is not known is `custom`: it is started, watched and judged like the others, and nothing is added to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::Deserialize;

/// The name of the kind that knows nothing.
pub const CUSTOM: &str = "custom";
/// Larger files of kinds are refused.
const LARGEST_FILE: usize = 256 * 1024;

/// What is known of one program. Every list is empty where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kind {
    /// Names of the program.
    pub programs: Vec<String>,
    /// Whose account it uses.
    pub vendor: Option<String>,
    /// Variables that tame it.
    pub env: BTreeMap<String, String>,
    /// What points it at the gateway.
    pub gateway: Pointing,
    /// What makes it print events.
    pub events: Events,
    /// How its session goes on.
    pub session: Option<Session>,
    /// Words in events about limits.
    pub live: Vec<String>,
    /// What it prints without a network.
    pub offline: Vec<String>,
}

/// What points a program at the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pointing {
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Arguments behind the program's name.
    pub args: Vec<String>,
}

/// What makes a program print events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    /// Arguments at the end.
    pub args: Vec<String>,
    /// Left out where one of these is given.
    pub unless: Vec<String>,
}

/// How a session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Begins one with an id of ours.
    pub start: Vec<String>,
    /// Continues it.
    pub resume: Vec<String>,
    /// Arguments by which the user has chosen a session: then nothing is added.
    pub given: Vec<String>,
    /// Arguments before the prompt.
    pub prompt: Vec<String>,
    /// The prompt of a continued session.
    pub say: String,
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

    /// These and the ones of a user's file, which replace those of the same name.
    ///
    /// # Errors
    /// The text cannot be read.
    pub fn with(mut self, text: &str) -> Result<Self, KindsError> {
        self.0.extend(read(text)?);
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
    if text.len() > LARGEST_FILE {
        return Err(KindsError(format!("more than {LARGEST_FILE} bytes")));
    }
    serde_saphyr::from_str(text).map_err(|error| KindsError(error.to_string()))
}

impl Kind {
    /// Variables to add to an environment: those of the kind, and those that point at a gateway. What is set already stays.
    pub fn variables(&self, gateway: Option<&str>) -> impl Iterator<Item = (String, String)> {
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let pointing = gateway.into_iter().flat_map(|address| {
            let filled =
                |(name, value): (&String, &String)| (name.clone(), value.replace("{gateway}", address));
            self.gateway.env.iter().map(filled)
        });
        own.chain(pointing)
    }

    /// The command with what points it at a gateway.
    #[must_use]
    pub fn pointed(&self, command: &[OsString], gateway: Option<&str>) -> Vec<OsString> {
        let Some((program, rest)) = command.split_first() else { return Vec::new() };
        let added = gateway.into_iter().flat_map(|address| {
            self.gateway.args.iter().map(move |argument| argument.replace("{gateway}", address).into())
        });
        std::iter::once(program.clone()).chain(added).chain(rest.iter().cloned()).collect()
    }

    /// The command with structured events.
    #[must_use]
    pub fn with_events(&self, command: &[OsString]) -> Vec<OsString> {
        let mut command = command.to_vec();
        if !self.events.unless.iter().any(|given| has(&command, given)) {
            command.extend(self.events.args.iter().map(OsString::from));
        }
        command
    }
}

impl Session {
    /// Whether the command's session can be continued by us: it has a prompt, and chooses no session itself.
    #[must_use]
    pub fn fits(&self, command: &[OsString]) -> bool {
        self.prompt_at(command).is_some() && !self.given.iter().any(|given| has(command, given))
    }

    /// The command that begins a session with this id.
    #[must_use]
    pub fn started(&self, command: &[OsString], id: &str) -> Vec<OsString> {
        let mut command = command.to_vec();
        command.extend(self.start.iter().map(|argument| argument.replace("{session}", id).into()));
        command
    }

    /// The command that continues it: the same with another prompt.
    #[must_use]
    pub fn continued(&self, command: &[OsString], id: &str) -> Vec<OsString> {
        let mut command = command.to_vec();
        if let Some(prompt) = self.prompt_at(&command).and_then(|at| command.get_mut(at)) {
            *prompt = OsString::from(&self.say);
        }
        command.extend(self.resume.iter().map(|argument| argument.replace("{session}", id).into()));
        command
    }

    /// Where the prompt stands: behind its argument.
    fn prompt_at(&self, command: &[OsString]) -> Option<usize> {
        let at =
            command.iter().position(|argument| self.prompt.iter().any(|flag| argument == flag.as_str()))?;
        let prompt = command.get(at + 1)?.to_str()?;
        (!prompt.starts_with('-')).then_some(at + 1)
    }
}

/// Whether an argument is given, as `--name value` or `--name=value`.
fn has(command: &[OsString], name: &str) -> bool {
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
    fn a_kind_points_its_program_at_the_gateway() {
        let variables: Vec<_> = kind("claude").variables(Some("http://127.0.0.1:4141")).collect();
        assert!(variables.contains(&("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:4141".to_owned())));
        assert!(!kind("claude").variables(None).any(|(name, _)| name == "ANTHROPIC_BASE_URL"));
        let codex = kind("codex").pointed(&command(&["codex", "exec", "hi"]), Some("http://g"));
        assert_eq!(codex.len(), 7);
        assert!(codex[2].to_str().unwrap().contains("base_url=\"http://g/v1\""));
        assert_eq!(codex[5..], command(&["exec", "hi"]));
    }

    #[test]
    fn events_are_asked_for_unless_the_user_chose_a_form() {
        let with = kind("claude").with_events(&command(&["claude", "-p", "x"]));
        assert_eq!(with[3..], command(&["--output-format", "stream-json", "--verbose"]));
        for own in [&["claude", "--output-format", "json"][..], &["claude", "--output-format=text"]] {
            assert_eq!(kind("claude").with_events(&command(own)), command(own));
        }
    }

    #[test]
    fn a_session_is_begun_with_our_id_and_continued_with_a_short_word() {
        let session = kind("claude").session.unwrap();
        let given = command(&["claude", "-p", "write a file", "--model", "opus"]);
        assert!(session.fits(&given));
        assert_eq!(session.started(&given, "ID")[5..], command(&["--session-id", "ID"]));
        let continued = session.continued(&given, "ID");
        assert_eq!(continued[2], OsString::from("Continue where you stopped."));
        assert_eq!(continued[5..], command(&["--resume", "ID"]));
        for own in [&["claude", "-p", "x", "--resume", "y"][..], &["claude"], &["claude", "-p", "--verbose"]]
        {
            assert!(!session.fits(&command(own)), "{own:?}");
        }
    }
}
