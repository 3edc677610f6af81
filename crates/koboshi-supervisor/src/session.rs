//! Continues the session of an agent program: begun with an id of ours, or with an id that the program prints.
//!
//! A continued session keeps the tool calls that were finished, so that none is run twice: the program gets a short prompt in place of
//! its task. A command that chooses a session itself, or whose prompt cannot be found among its arguments, is left as it is.

use std::ffi::OsString;

use memchr::memmem;
use serde::Deserialize;

use crate::kinds::has;

/// Longer ids are refused.
const MAX_ID: usize = 64;

/// How a program begins and continues sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Arguments that begin one with an id of ours; none where the program has ids of its own.
    pub start: Vec<String>,
    /// Arguments that continue it.
    pub resume: Vec<String>,
    /// Arguments by which a user chooses a session: then we add nothing.
    pub given: Vec<String>,
    /// Arguments before the prompt; none where the prompt is the last argument.
    pub prompt: Vec<String>,
    /// Arguments without a value: a last argument behind one of these is the prompt.
    pub switches: Vec<String>,
    /// The command that has sessions, where the program has several.
    pub command: Option<String>,
    /// Where the program prints its own id.
    pub own_id: Option<OwnId>,
    /// The prompt of a continued session.
    pub say: String,
}

/// Where a program prints the id of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnId {
    /// The type of an event.
    pub event: String,
    /// The field of that event.
    pub field: String,
    /// What stands before the id in a line, where it prints no events.
    pub line: String,
}

impl Session {
    /// Whether we can continue the command's session: it has a prompt, and chooses no session itself.
    #[must_use]
    pub fn fits(&self, command: &[OsString]) -> bool {
        let is_meant = self.command.as_ref().is_none_or(|name| has(command, name));
        is_meant && self.prompt_at(command).is_some() && !self.given.iter().any(|given| has(command, given))
    }

    /// The command that begins a session with this id.
    #[must_use]
    pub fn started(&self, command: &[OsString], id: &str) -> Vec<OsString> {
        let mut command = command.to_vec();
        command.extend(self.start.iter().map(|argument| argument.replace("{session}", id).into()));
        command
    }

    /// The command that continues it: the same with a short prompt.
    #[must_use]
    pub fn continued(&self, command: &[OsString], id: &str) -> Vec<OsString> {
        let mut command = command.to_vec();
        let added = self.resume.iter().map(|argument| OsString::from(argument.replace("{session}", id)));
        match self.prompt_at(&command) {
            Some(at) if self.prompt.is_empty() => {
                command.truncate(at);
                command.extend(added);
                command.push(OsString::from(&self.say));
            }
            at => {
                if let Some(prompt) = at.and_then(|at| command.get_mut(at)) {
                    *prompt = OsString::from(&self.say);
                }
                command.extend(added);
            }
        }
        command
    }

    /// Where the prompt stands: behind its argument, or at the end.
    fn prompt_at(&self, command: &[OsString]) -> Option<usize> {
        let is_word = |at: usize| command.get(at)?.to_str().map(|text| !text.starts_with('-'));
        let at = if self.prompt.is_empty() {
            let last = command.len().checked_sub(1).filter(|last| *last > 0)?;
            let before = command.get(last - 1)?.to_str()?;
            let is_switch = self.switches.iter().any(|switch| switch == before);
            // Behind another flag it may be the value of that flag.
            (is_switch || !before.starts_with('-') || before.contains('=')).then_some(last)?
        } else {
            let is_flag = |argument: &OsString| self.prompt.iter().any(|flag| argument == flag.as_str());
            command.iter().position(is_flag)? + 1
        };
        is_word(at)?.then_some(at)
    }
}

impl OwnId {
    /// The session id in these lines, if they print one.
    #[must_use]
    pub fn in_lines(&self, lines: &[u8]) -> Option<String> {
        let mark = [&self.event, &self.line].into_iter().filter(|mark| !mark.is_empty());
        if !mark.into_iter().any(|mark| memmem::find(lines, mark.as_bytes()).is_some()) {
            return None;
        }
        lines
            .split(|byte| *byte == b'\n')
            .find_map(|line| self.in_line(std::str::from_utf8(line).ok()?.trim()))
    }

    fn in_line(&self, line: &str) -> Option<String> {
        let id = if line.starts_with('{') {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            (event.get("type")?.as_str()? == self.event)
                .then(|| event.get(&self.field))??
                .as_str()?
                .to_owned()
        } else {
            line.strip_prefix(self.line.as_str()).filter(|_| !self.line.is_empty())?.trim().to_owned()
        };
        // It becomes an argument: anything but an id is refused.
        let is_id = |id: &String| {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !id.is_empty() && id.len() <= MAX_ID && !id.starts_with('-') && id.bytes().all(sound)
        };
        Some(id).filter(is_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn session(kind: &str) -> Session {
        Kinds::builtin().unwrap().get(kind).unwrap().session.clone().unwrap()
    }

    #[test]
    fn a_session_is_begun_with_our_id_and_continued_with_a_short_word() {
        let session = session("claude");
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

    #[test]
    fn a_session_with_an_id_of_its_own_is_continued_with_it() {
        let session = session("codex");
        let given = command(&["codex", "exec", "--model", "m", "--json", "write a file"]);
        assert!(session.fits(&given));
        assert_eq!(session.started(&given, ""), given, "nothing is added at first");
        let continued = session.continued(&given, "0199-ab");
        let expected = ["codex", "exec", "--model", "m", "--json", "resume", "0199-ab"];
        assert_eq!(continued[..7], command(&expected));
        assert_eq!(continued[7..], command(&["Continue where you stopped."]));
        for other in [
            &["codex", "exec", "resume", "ID", "go on"][..],
            &["codex", "exec", "write", "--model", "m"],
            &["codex", "exec", "--ephemeral", "write"],
            &["codex", "login"],
            &["codex", "exec", "-"],
        ] {
            assert!(!session.fits(&command(other)), "{other:?}");
        }
    }

    #[test]
    fn an_id_is_read_from_an_event_or_a_line_and_nothing_else_is_taken_for_one() {
        let own = session("codex").own_id.unwrap();
        let events =
            b"{\"type\":\"thread.started\",\"thread_id\":\"0199-ab\"}\n{\"type\":\"turn.started\"}\n";
        assert_eq!(own.in_lines(events).as_deref(), Some("0199-ab"));
        assert_eq!(own.in_lines(b"workdir: /x\nsession id: 0199-cd\n--------\n").as_deref(), Some("0199-cd"));
        for other in [
            "thread.started",
            r#"{"type":"item.completed","item":{"text":"thread.started"},"thread_id":"x"}"#,
            r#"{"type":"thread.started","thread_id":"--last"}"#,
            r#"{"type":"thread.started","thread_id":"a b"}"#,
            "session id: ; rm -rf /",
        ] {
            assert_eq!(own.in_lines(other.as_bytes()), None, "{other}");
        }
    }
}
