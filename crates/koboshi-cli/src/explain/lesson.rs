//! `koboshi explain --should-be`: a wording that was misread becomes a labelled case in a local file, in the form of the corpus.
//!
//! Nothing is sent anywhere, and nothing is written that is read right already. Keys are masked; names, hosts and numbers are not, since no program can say
//! which of them are private: the message asks the person to look. `koboshi corpus add` checks the file and takes its cases into a corpus.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use koboshi::classify::{CATEGORIES, Classifier};
use koboshi::fault::{Fault, Kind};
use koboshi::redact::Redactor;
use serde_json::{Value, json};

use super::zone::Clocks;
use super::{Explanation, http};
use crate::Failure;
use crate::args::ExplainArgs;
use crate::corpus::{Case, REASONS, score};
use crate::input::Input;
use crate::say::Say;

/// How much of a long text is kept: the end, which decides.
const MAX_BYTES: usize = 16 * 1024;

/// Headers that say something about limits, and nothing about who asked.
const HEADERS: [&str; 4] = ["retry", "ratelimit", "content-type", "date"];

/// What is needed to make a case of a text that was read.
pub(super) struct Lesson<'a> {
    pub(super) args: &'a ExplainArgs,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) input: &'a Input,
    pub(super) clocks: &'a Clocks,
    pub(super) classifier: &'a Classifier,
    pub(super) say: &'a Say,
}

impl Lesson<'_> {
    /// Writes the case, and says what was done.
    pub(super) fn write(&self, explanation: &Explanation<'_>, should: &str) -> Result<String, Failure> {
        let file = &self.args.cases;
        let name = file.display().to_string();
        let failed = |error: &io::Error| {
            Failure::new(self.say.text("case-unwritable", &[("name", &name), ("why", &error.to_string())]))
        };
        let count = lines(file).map_err(|error| failed(&error))?;
        let id = format!("own-{should}-{}", count + 1);
        let case = self.case(explanation, should, &id)?;
        let line = case.to_string();
        let read = Case::read(&line).map_err(Failure::new)?;
        let score = score(self.classifier, &read, true).map_err(Failure::new)?;
        if score.right {
            return Ok(self.say.text("case-known", &[("should", should)]));
        }
        append(file, &line).map_err(|error| failed(&error))?;
        Ok(self.say.text("case-written", &[("file", &name), ("id", &id), ("got", &score.got)]))
    }

    fn case(&self, explanation: &Explanation<'_>, should: &str, id: &str) -> Result<Value, Failure> {
        let now = &self.clocks.reading;
        let now = now.timestamp().display_with_offset(now.offset()).to_string();
        let wait =
            explanation.fault.as_ref().and_then(|fault| fault.wait).map(|wait| wait.after.as_secs_f64());
        let text = Redactor::new().redact(end(explanation.text)).into_owned();
        let case = match explanation.read_as {
            "log" => {
                self.known(should, "log", REASONS)?;
                let expect = json!({"reason": should, "wait_seconds": wait, "wait_tolerance": 60});
                json!({"id": id, "source": "run", "log": text, "exit_code": self.args.exit_code, "now": now, "expect": expect})
            }
            "tool" => {
                let names: Vec<&str> = CATEGORIES.iter().copied().chain(["none"]).collect();
                self.known(should, "tool", &names)?;
                let category = (should != "none").then_some(should);
                let is_error = self.args.is_error.unwrap_or(category.is_some());
                json!({"id": id, "source": "run", "output": text, "is_error": is_error, "expect": {"category": category}})
            }
            _ => {
                let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).chain(["ok"]).collect();
                self.known(should, "answer", &names)?;
                self.answer(explanation, should, id, &now, wait)
            }
        };
        Ok(case)
    }

    fn answer(
        &self,
        explanation: &Explanation<'_>,
        should: &str,
        id: &str,
        now: &str,
        wait: Option<f64>,
    ) -> Value {
        let redactor = Redactor::new();
        let head = http::read(&self.input.head);
        let masked = |text: &str| redactor.redact(text).into_owned();
        let is_told = |name: &str| HEADERS.iter().any(|part| name.to_ascii_lowercase().contains(part));
        let headers = self.headers.iter().chain(&head.headers).filter(|(name, _)| is_told(name));
        let headers: serde_json::Map<String, Value> =
            headers.map(|(name, value)| ((*name).to_owned(), masked(value).into())).collect();
        let status = self.args.status.or(head.status);
        let body = masked(head.body);
        let (transport, body, status) = if super::is_plain_text(status, head.body) {
            (Some(body), String::new(), None)
        } else {
            (None, body, Some(status.unwrap_or(200)))
        };
        // The flags of this text, if it was read as this kind; else those that are usual for it.
        let own = explanation.fault.as_ref().filter(|fault| fault.kind.name() == should);
        let usual = Kind::from_name(should).map(|kind| Fault::of(kind, "case"));
        let advice = own.or(usual.as_ref()).map(|fault| &fault.advice);
        let [same, other, health] =
            advice.map_or([false; 3], |advice| [advice.same, advice.other, advice.health]);
        let wait = wait.filter(|_| should != "ok");
        let expect = json!({"kind": should, "retry_after_seconds": wait, "retry_tolerance": 60,
            "same_provider_retry": same, "failover": other, "counts_against_health": health});
        json!({"id": id, "source": "run", "transport": transport, "status": status, "headers": headers, "body": body,
            "stream": self.args.stream, "now": now, "expect": expect})
    }

    fn known(&self, should: &str, form: &str, names: &[&str]) -> Result<(), Failure> {
        if names.contains(&should) {
            return Ok(());
        }
        let names = self.say.list(names);
        let form = self.say.text(&format!("case-form-{form}"), &[]);
        Err(Failure::new(
            self.say.text("case-label", &[("should", should), ("form", &form), ("names", &names)]),
        ))
    }
}

/// The last lines of a text.
fn end(text: &str) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_BYTES));
    let tail = text.get(from..).unwrap_or_default();
    if from == 0 { tail } else { tail.split_once('\n').map_or(tail, |(_, rest)| rest) }
}

fn lines(file: &Path) -> io::Result<usize> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().filter(|line| !line.trim().is_empty()).count()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// The file is for its owner alone: what a program printed may be private.
fn append(file: &Path, line: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(format!("{line}\n").as_bytes())
}
