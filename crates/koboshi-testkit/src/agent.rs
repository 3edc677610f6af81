//! An agent that does what a test says: a real process with real children.
//!
//! Each step is a line of a shell script, so nothing but `sh` and the usual tools is needed. Everything that an agent starts carries its mark
//! in the environment: what is left of it can be found, in whatever session it is.

use std::fs;
use std::path::Path;

/// The variable that holds the mark.
pub const MARK: &str = "KOBOSHI_TEST_MARK";

/// What an agent does, step by step.
#[derive(Debug, Clone, Default)]
pub struct ScriptedAgent {
    steps: Vec<String>,
    mark: String,
}

impl ScriptedAgent {
    /// One that does nothing; `mark` must be unique among the agents that run at the same time.
    #[must_use]
    pub fn new(mark: &str) -> Self {
        Self { steps: Vec::new(), mark: mark.to_owned() }
    }

    fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Writes a line to standard output.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.step(format!("printf '%s\\n' {}", quoted(text)))
    }

    /// Writes a line again and again, some in every second.
    #[must_use]
    pub fn says_for_ever(self, text: &str) -> Self {
        self.step(format!("while :; do printf '%s\\n' {}; sleep 0.1; done", quoted(text)))
    }

    /// Writes a line to standard error.
    #[must_use]
    pub fn complains(self, text: &str) -> Self {
        self.step(format!("printf '%s\\n' {} >&2", quoted(text)))
    }

    /// Writes an incomplete UTF-8 character.
    #[must_use]
    pub fn says_half_a_character(self) -> Self {
        self.step("printf '\\350\\265'")
    }

    /// Writes this many bytes as fast as it can.
    #[must_use]
    pub fn floods(self, bytes: u64) -> Self {
        self.step(format!("yes 'a line of an agent that never stops talking' | head -c {bytes}"))
    }

    /// Writes one line of this many bytes, without an end.
    #[must_use]
    pub fn says_without_end(self, bytes: u64) -> Self {
        self.step(format!("head -c {bytes} /dev/zero | tr '\\0' x"))
    }

    /// Takes this much memory, in a process that it starts, and keeps it.
    #[must_use]
    pub fn eats(self, bytes: u64) -> Self {
        // One line without an end: `tail` must keep all of it.
        self.step(format!("{{ head -c {bytes} /dev/zero; sleep 3600; }} | tail -n 1 >/dev/null"))
    }

    /// Starts processes as fast as it can, each in a session of its own, and never stops.
    #[must_use]
    pub fn breeds(self) -> Self {
        self.step("while :; do setsid sleep 3600 </dev/null >/dev/null 2>&1 & done")
    }

    /// Starts this many processes and waits for them.
    #[must_use]
    pub fn has_children(self, count: u32) -> Self {
        self.step(format!("for each in $(seq {count}); do sleep 3600 & done; wait"))
    }

    /// Starts a process in a session of its own, which ignores TERM and runs for an hour.
    #[must_use]
    pub fn leaves_a_stubborn_child_behind(self) -> Self {
        self.step("setsid sh -c \"trap '' TERM HUP INT; sleep 3600 & wait; sleep 3600\" </dev/null >/dev/null 2>&1 &")
    }

    /// The same, and the child keeps the agent's streams open.
    #[must_use]
    pub fn leaves_a_child_with_its_streams(self) -> Self {
        self.step("setsid sleep 3600 &")
    }

    /// Ignores the signals that ask it to end.
    #[must_use]
    pub fn ignores_requests_to_end(self) -> Self {
        self.step("trap '' TERM INT HUP")
    }

    /// Closes its streams and keeps running.
    #[must_use]
    pub fn closes_its_streams(self) -> Self {
        self.step("exec >&- 2>&- <&-")
    }

    /// Makes a file, so that a test can see how far it came; a second time it is a line longer.
    #[must_use]
    pub fn notes(self, file: &Path) -> Self {
        self.step(format!("echo $$ >> {}", quoted(&file.display().to_string())))
    }

    /// Waits until a file is there.
    #[must_use]
    pub fn waits_for(self, file: &Path) -> Self {
        self.step(format!("while [ ! -e {} ]; do sleep 0.02; done", quoted(&file.display().to_string())))
    }

    /// Runs for an hour.
    #[must_use]
    pub fn lives_on(self) -> Self {
        self.step("sleep 3600 & wait $!; sleep 3600")
    }

    /// Ends itself by this signal, such as `KILL`.
    #[must_use]
    pub fn dies_of(self, signal: &str) -> Self {
        self.step(format!("ulimit -c 0; kill -{signal} $$; sleep 5"))
    }

    /// Exits with this code.
    #[must_use]
    pub fn exits(self, code: i32) -> Self {
        self.step(format!("exit {code}"))
    }

    /// The command, without a file.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let script = format!("export {MARK}={}\n{}", quoted(&self.mark), self.steps.join("\n"));
        vec!["sh".to_owned(), "-c".to_owned(), script]
    }

    /// The processes of this agent and of everything that it started, as far as they still run.
    #[must_use]
    pub fn left(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let carries = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
        };
        processes().filter(carries).collect()
    }
}

/// Zombie children of a process.
#[must_use]
pub fn zombies_of(parent: u32) -> Vec<i32> {
    let is_zombie = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.first() == Some(&"Z") && fields.get(1).and_then(|parent| parent.parse().ok()) == Some(parent)
    };
    processes().filter(is_zombie).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
