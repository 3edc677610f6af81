//! Says an explanation: to a person in their language, to a program as JSON.

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use jiff::Zoned;
use koboshi::classify::Rules;
use koboshi::fault::{Fault, Later, Other};
use koboshi::guard::{Step, steps_for};
use koboshi::redact::Redactor;
use koboshi::wait::Wait;
use koboshi_report::guard::step_words;
use koboshi_report::phrase::{Lang, Phrases};
use serde_json::{Value, json};
use std::io::{self, Write};

use super::Explained;

const STRONG: Style = Style::new().bold();
const FAULT: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const QUIET: Style = Style::new().dimmed();
/// How much of the evidence is shown.
const SHOWN_CHARS: usize = 160;
/// Columns for the labels.
const LABEL_WIDTH: usize = 22;

/// Everything needed to say something.
pub(super) struct Telling<'a> {
    pub(super) phrases: &'a Phrases,
    pub(super) rules: &'a Rules,
    pub(super) lang: Lang,
    pub(super) prefix: &'a str,
    pub(super) now: &'a Zoned,
}

/// Where the evidence stands.
struct Place {
    /// Line from the beginning, or from the end if the beginning was not read.
    line: usize,
    from_end: bool,
    text: String,
}

impl Telling<'_> {
    pub(super) fn text(&self, explained: &Explained<'_>) -> io::Result<()> {
        let mut out = stdout().lock();
        let Some(fault) = &explained.fault else {
            return writeln!(out, "{GOOD}✓{GOOD:#} {}", self.say("nothing-wrong", &[]));
        };
        let sub = fault.sub.map(|sub| format!(" / {}", sub.name())).unwrap_or_default();
        let category = fault.category.as_deref().map(|category| format!(" / {category}")).unwrap_or_default();
        let name = format!("{}{sub}{category}", fault.kind.name());
        writeln!(out, "{FAULT}✗ {name}{FAULT:#}  {QUIET}{}{QUIET:#}", fault.kind.code(self.prefix))?;
        writeln!(out)?;
        let (message, suggestion) = self.words(fault);
        self.row(&mut out, "label-what", &format!("{STRONG}{message}{STRONG:#}"))?;
        self.row(&mut out, "label-do", &suggestion)?;
        for step in self.further_steps(fault) {
            writeln!(out, "{}{step}", " ".repeat(LABEL_WIDTH))?;
        }
        if let Some(wait) = fault.wait {
            self.row(&mut out, "label-wait", &self.wait_words(wait))?;
        }
        self.row(&mut out, "label-whose", &self.say(&format!("origin-{}", fault.origin.name()), &[]))?;
        self.row(&mut out, "label-affects", &self.say(&format!("scope-{}", fault.scope.name()), &[]))?;
        self.row(&mut out, "label-retry", &self.advice_words(fault))?;
        let place = place(explained, fault);
        if !fault.detail.is_empty() && !place.text.contains(fault.detail.as_str()) {
            self.row(&mut out, "label-said", &fault.detail.replace(['\n', '\r'], " "))?;
        }
        self.row(&mut out, "label-sure", &self.say(&format!("confidence-{}", fault.confidence.name()), &[]))?;
        self.evidence(&mut out, &place, fault)
    }

    fn evidence(&self, out: &mut impl Write, place: &Place, fault: &Fault) -> io::Result<()> {
        writeln!(out)?;
        let id = if place.from_end { "label-seen-from-end" } else { "label-seen" };
        let seen = self.say(id, &[("line", &place.line.to_string()), ("rule", &fault.evidence.rule)]);
        writeln!(out, "{QUIET}{seen}{QUIET:#}")?;
        if !place.text.is_empty() {
            writeln!(out, "{QUIET}  │ {}{QUIET:#}", place.text)?;
        }
        Ok(())
    }

    pub(super) fn json(&self, explained: &Explained<'_>) -> io::Result<()> {
        let fault = explained.fault.as_ref().map(|fault| self.fault_json(explained, fault));
        let document = json!({
            "ok": explained.fault.is_none(),
            "read_as": explained.read_as,
            "lang": self.lang.name(),
            "now": self.now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "fault": fault,
        });
        let mut out = stdout().lock();
        serde_json::to_writer_pretty(&mut out, &document)?;
        writeln!(out)
    }

    fn fault_json(&self, explained: &Explained<'_>, fault: &Fault) -> Value {
        let (message, suggestion) = self.words(fault);
        let place = place(explained, fault);
        json!({
            "kind": fault.kind.name(),
            "sub": fault.sub.map(|sub| sub.name()),
            "category": fault.category.as_deref(),
            "code": fault.kind.code(self.prefix),
            "stream_code": fault.kind.row().stream_code,
            "http_status": fault.kind.row().http_status,
            "status": fault.status,
            "reason": fault.log_reason(),
            "origin": fault.origin.name(),
            "scope": fault.scope.name(),
            "advice": {
                "same": fault.advice.same,
                "other": fault.advice.other,
                "later": fault.advice.later,
            },
            "health": fault.advice.health,
            "wait": fault.wait.map(|wait| json!({
                "seconds": wait.after.as_secs_f64(),
                "until": wait.until.to_string(),
                "form": wait.form.name(),
            })),
            "confidence": fault.confidence.name(),
            "message": message,
            "suggestion": suggestion,
            "further_steps": self.further_steps(fault),
            "evidence": {
                "rule": &*fault.evidence.rule,
                "line": place.line,
                "line_from_end": place.from_end,
                "text": place.text,
            },
            "detail": fault.detail,
        })
    }

    /// Message and suggestion; a category that the user added brings its own.
    fn words(&self, fault: &Fault) -> (String, String) {
        if let Some(category) = fault.category.as_deref() {
            if let Some(own) = self.rules.own_category(category) {
                return match self.lang {
                    Lang::Ja => (own.message.ja.clone(), own.suggestion.ja.clone()),
                    Lang::En => (own.message.en.clone(), own.suggestion.en.clone()),
                };
            }
            let said = (
                self.phrases.tool_message(self.lang, category),
                self.phrases.tool_suggestion(self.lang, category),
            );
            if let (Some(message), Some(suggestion)) = said {
                return (message, suggestion);
            }
        }
        (
            self.phrases.message(self.lang, fault.kind, fault.sub),
            self.phrases.suggestion(self.lang, fault.kind, fault.sub),
        )
    }

    /// What else helps against a tool's failure: the steps that the loop guard would name.
    fn further_steps(&self, fault: &Fault) -> Vec<String> {
        let Some(category) = fault.category.as_deref() else { return Vec::new() };
        let own = self.rules.own_category(category);
        let further = steps_for(category).into_iter().filter(|step| *step != Step::Category);
        further.map(|step| step_words(self.phrases, self.lang, step, category, own)).collect()
    }

    fn wait_words(&self, wait: Wait) -> String {
        if wait.after.is_zero() {
            return self.say("wait-over", &[]);
        }
        let until = wait.until.to_zoned(self.now.time_zone().clone());
        let same_day = until.date() == self.now.date();
        let pattern = if same_day { "%H:%M:%S %Z" } else { "%Y-%m-%d %H:%M:%S %Z" };
        let left = self.phrases.countdown(self.lang, wait.after);
        self.say("wait-until", &[("time", &until.strftime(pattern).to_string()), ("left", &left)])
    }

    fn advice_words(&self, fault: &Fault) -> String {
        let row = fault.kind.row();
        let answer = |asked: bool, yes: bool| match (asked, yes) {
            (false, _) => "-".to_owned(),
            (true, true) => self.say("answer-yes", &[]),
            (true, false) => self.say("answer-no", &[]),
        };
        let parts = [
            ("label-same", true, fault.advice.same),
            ("label-other", row.other != Other::NotApplicable, fault.advice.other),
            ("label-later", row.later != Later::NotApplicable, fault.advice.later),
        ];
        parts
            .map(|(label, asked, yes)| format!("{}: {}", self.say(label, &[]), answer(asked, yes)))
            .join(" · ")
    }

    fn row(&self, out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
        let label = self.say(label, &[]);
        let width = label.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        let gap = " ".repeat(LABEL_WIDTH.saturating_sub(width).max(1));
        writeln!(out, "{label}{gap}{text}")
    }

    fn say(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }
}

/// The line of the evidence, fit to be shown.
fn place(explained: &Explained<'_>, fault: &Fault) -> Place {
    let text = explained.text;
    let mut start = text.floor_char_boundary(explained.offset.saturating_add(fault.evidence.span.start));
    // The span may begin with blank lines.
    start += text.get(start..).unwrap_or_default().len()
        - text.get(start..).unwrap_or_default().trim_start().len();
    let start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let before = text.get(..start).unwrap_or_default();
    let rest = text.get(start..).unwrap_or_default();
    let number = if explained.cut { rest.lines().count() } else { before.matches('\n').count() + 1 };
    let line = rest.lines().next().unwrap_or_default();
    // Of a log the fault carries the line itself, without the colours of a terminal.
    let shown =
        if explained.read_as == "log" && !fault.detail.is_empty() { fault.detail.as_str() } else { line };
    let text: String =
        Redactor::new().excerpt(shown, SHOWN_CHARS).chars().filter(|c| !c.is_control()).collect();
    Place { line: number, from_end: explained.cut, text }
}
