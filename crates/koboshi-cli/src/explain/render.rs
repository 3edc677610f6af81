//! Says an explanation: to a person in their language, to a program as JSON.

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use jiff::{Timestamp, Zoned};
use koboshi::classify::{EXIT_CODE, OWN_ERROR, Rules, TAIL_BYTES};
use koboshi::fault::{Confidence, Fault, Kind, Origin, Other, Scope, Sub};
use koboshi::guard::{Step, steps_for};
use koboshi::redact::Redactor;
use koboshi::wait::{Wait, WaitZone};
use koboshi_report::guard::step_words;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_report::when;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

use super::Explained;
use super::layout::{Layout, line_width};
use super::own;

const STRONG: Style = Style::new().bold();
const FAULT: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const QUIET: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();
/// How much of the evidence is shown.
const SHOWN_CHARS: usize = 160;
/// A shorter wait is hardly the end of a day.
const SHORT_OF_A_DAY: Duration = Duration::from_secs(3600);
/// How much of an error's words is looked for in the input.
const SOUGHT_BYTES: usize = 40;
/// What stands before the evidence.
const MARGIN: &str = "  │ ";
/// Every label that may be shown: all texts begin behind the longest of them.
const LABELS: &[&str] = &[
    "label-what", "label-do", "label-wait", "label-whose", "label-affects", "label-retry", "label-said",
    "label-sure",
];

/// Everything needed to say something.
pub(super) struct Telling<'a> {
    pub(super) phrases: &'a Phrases,
    pub(super) rules: &'a Rules,
    pub(super) lang: Lang,
    pub(super) prefix: &'a str,
    /// Now, in the zone that times are shown in.
    pub(super) now: &'a Zoned,
    /// Now, in the zone that times without one were read in.
    pub(super) assumed: &'a Zoned,
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
        let labels: Vec<String> = LABELS.iter().map(|label| self.say(label, &[])).collect();
        let rows =
            Rows { telling: self, layout: Layout::of(labels.iter().map(String::as_str), line_width()) };
        let (message, suggestion) = self.words(explained, fault);
        let place = place(explained, fault);
        let said = self.said(fault, place.as_ref(), &message);
        rows.row(&mut out, "label-what", STRONG, &[message])?;
        let steps: Vec<String> = [suggestion].into_iter().chain(self.further_steps(fault)).collect();
        rows.row(&mut out, "label-do", PLAIN, &steps)?;
        if let Some(wait) = fault.wait {
            let mut words = self.wait_words(wait);
            words.extend(is_before_the_reset(fault).then(|| self.say("wait-not-the-day", &[])));
            rows.row(&mut out, "label-wait", PLAIN, &words)?;
        }
        rows.row(&mut out, "label-whose", PLAIN, &[self.phrases.cause(self.lang, fault)])?;
        rows.row(
            &mut out,
            "label-affects",
            PLAIN,
            &[self.say(&format!("scope-{}", fault.scope.name()), &[])],
        )?;
        rows.row(&mut out, "label-retry", PLAIN, &[self.advice_words(fault)])?;
        if let Some(said) = said {
            rows.row(&mut out, "label-said", PLAIN, &[said])?;
        }
        rows.row(&mut out, "label-sure", PLAIN, &[self.say(&confidence_id(fault), &[])])?;
        self.evidence(&mut out, rows.layout, place.as_ref(), fault)
    }

    /// The other side's words, where nothing else that is shown holds them.
    fn said(&self, fault: &Fault, place: Option<&Place>, message: &str) -> Option<String> {
        let said = fault.detail.split_whitespace().collect::<Vec<_>>().join(" ");
        let ours = |lang: &Lang| {
            [fault.sub, None].into_iter().any(|sub| self.phrases.message(*lang, fault.kind, sub) == said)
        };
        let told = said == message || Lang::ALL.iter().any(ours);
        let shown = place.is_some_and(|place| place.text.contains(fault.detail.as_str()));
        (!said.is_empty() && !told && !shown).then_some(said)
    }

    fn evidence(
        &self,
        out: &mut impl Write,
        layout: Layout,
        place: Option<&Place>,
        fault: &Fault,
    ) -> io::Result<()> {
        writeln!(out)?;
        let Some(place) = place else {
            let seen = self.say("label-seen-exit-code", &[("rule", &fault.evidence.rule)]);
            return writeln!(out, "{QUIET}{seen}{QUIET:#}");
        };
        let id = if place.from_end { "label-seen-from-end" } else { "label-seen" };
        let seen = self.say(id, &[("line", &place.line.to_string()), ("rule", &fault.evidence.rule)]);
        writeln!(out, "{QUIET}{seen}{QUIET:#}")?;
        if !place.text.is_empty() {
            for line in layout.broken(&place.text, MARGIN.chars().count()) {
                writeln!(out, "{QUIET}{MARGIN}{line}{QUIET:#}")?;
            }
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
        let (message, suggestion) = self.words(explained, fault);
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
                "until_local": self.local(wait.until).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
                "form": wait.form.name(),
                "zone": match wait.zone {
                    WaitZone::Stated(offset) => json!({"stated": offset.to_string()}),
                    WaitZone::Assumed => json!({"assumed": when::zone_name(Lang::En, self.assumed)}),
                    _ => Value::Null,
                },
            })),
            "confidence": fault.confidence.name(),
            "message": message,
            "suggestion": suggestion,
            "further_steps": self.further_steps(fault),
            "evidence": {
                "rule": &*fault.evidence.rule,
                "line": place.as_ref().map(|place| place.line),
                "line_from_end": place.as_ref().is_some_and(|place| place.from_end),
                "text": place.as_ref().map_or("", |place| place.text.as_str()),
            },
            "detail": fault.detail,
        })
    }

    /// Message and suggestion; a category that the user added brings its own, and so does an answer of Koboshi itself.
    fn words(&self, explained: &Explained<'_>, fault: &Fault) -> (String, String) {
        if &*fault.evidence.rule == OWN_ERROR
            && let Some(words) = own::words(explained.text, self.lang)
        {
            return words;
        }
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
        let suggestion = if fault.kind == Kind::AgentError && explained.text.trim().is_empty() {
            self.say("log-is-empty", &[])
        } else {
            self.phrases.suggestion(self.lang, fault.kind, fault.sub)
        };
        // A provider's answer in a log: Koboshi took no part in it.
        let is_theirs = fault.kind == Kind::Internal && fault.origin == Origin::Provider;
        let theirs = is_theirs.then(|| self.phrases.text(self.lang, "explain-internal", &[])).flatten();
        (theirs.unwrap_or_else(|| self.phrases.message(self.lang, fault.kind, fault.sub)), suggestion)
    }

    /// What else helps against a tool's failure: the steps that the loop guard would name.
    fn further_steps(&self, fault: &Fault) -> Vec<String> {
        let Some(category) = fault.category.as_deref() else { return Vec::new() };
        let own = self.rules.own_category(category);
        let further = steps_for(category).into_iter().filter(|step| *step != Step::Category);
        further.map(|step| step_words(self.phrases, self.lang, step, category, own)).collect()
    }

    /// Until when, as the text said it where that was another zone, and which zone was assumed where it named none.
    fn wait_words(&self, wait: Wait) -> Vec<String> {
        if wait.after.is_zero() {
            return vec![self.say("wait-over", &[])];
        }
        let until = self.local(wait.until);
        let left = self.phrases.countdown(self.lang, wait.after);
        // Rounded up to the minute, the time would contradict the few seconds that are left.
        let is_near = wait.after < Duration::from_secs(120);
        let time = if is_near { when::exact_time } else { when::local_time }(self.lang, &until);
        let mut lines = vec![self.say("wait-until", &[("time", &time), ("left", &left)])];
        match wait.zone {
            WaitZone::Stated(offset) if offset != until.offset() => {
                let stated = wait.until.to_zoned(offset.to_time_zone());
                lines.push(self.say("wait-stated", &[("time", &when::local_hour(self.lang, &stated))]));
            }
            WaitZone::Assumed => {
                let zone = when::zone_name(self.lang, &wait.until.to_zoned(self.assumed.time_zone().clone()));
                lines.push(self.say("wait-assumed", &[("zone", &zone)]));
            }
            _ => {}
        }
        lines
    }

    fn local(&self, at: Timestamp) -> Zoned {
        at.to_zoned(self.now.time_zone().clone())
    }

    /// Whether to try again, in sentences. Tools and processes have no other provider to go to.
    fn advice_words(&self, fault: &Fault) -> String {
        let advice = fault.advice;
        let waits = fault.wait.is_some_and(|wait| !wait.after.is_zero());
        let id = match fault.origin {
            Origin::Tool if advice.same => "retry-tool-yes",
            Origin::Tool => "retry-tool-no",
            Origin::Process if advice.same || advice.later => "retry-process-yes",
            Origin::Process => "retry-process-no",
            _ if is_before_the_reset(fault) => "retry-later",
            _ if waits && (advice.same || advice.later) => "retry-after-wait",
            _ if advice.same => "retry-yes",
            _ if advice.later => "retry-later",
            _ => "retry-no",
        };
        let other = match fault.kind.row().other {
            _ if matches!(fault.origin, Origin::Tool | Origin::Process) => None,
            Other::NotApplicable => None,
            _ if advice.other && fault.scope == Scope::Network => Some("retry-other-network"),
            _ if advice.other => Some("retry-other-yes"),
            _ => Some("retry-other-no"),
        };
        let between = if self.lang == Lang::Ja { "" } else { " " };
        let sentences: Vec<String> =
            [Some(id), other].into_iter().flatten().map(|id| self.say(id, &[])).collect();
        sentences.join(between)
    }

    fn say(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }
}

/// Whether the stated wait ends long before a day's quota is likely to open: providers state seconds for it too.
fn is_before_the_reset(fault: &Fault) -> bool {
    let is_day = fault.kind == Kind::QuotaExceeded && fault.sub == Some(Sub::Day);
    is_day && fault.wait.is_some_and(|wait| !wait.after.is_zero() && wait.after < SHORT_OF_A_DAY)
}

/// The phrase that says how sure a fault is. A line that looks like an error is more than a status or an exit code.
fn confidence_id(fault: &Fault) -> String {
    let by_line =
        fault.confidence == Confidence::Low && fault.status.is_none() && &*fault.evidence.rule != EXIT_CODE;
    format!("confidence-{}{}", fault.confidence.name(), if by_line { "-line" } else { "" })
}

/// Labels with their texts.
struct Rows<'a> {
    telling: &'a Telling<'a>,
    layout: Layout,
}

impl Rows<'_> {
    /// One label and the texts that belong to it, each from the same column on.
    fn row(&self, out: &mut impl Write, label: &str, style: Style, texts: &[String]) -> io::Result<()> {
        let mut before = self.layout.label(&self.telling.say(label, &[]));
        for line in texts.iter().flat_map(|text| self.layout.lines(text)) {
            writeln!(out, "{before}{style}{line}{style:#}")?;
            before = self.layout.indent();
        }
        Ok(())
    }
}

/// The line of the evidence, fit to be shown. An exit code stands in no line.
fn place(explained: &Explained<'_>, fault: &Fault) -> Option<Place> {
    if &*fault.evidence.rule == EXIT_CODE {
        return None;
    }
    let text = explained.text;
    let mut start = text.floor_char_boundary(explained.offset.saturating_add(fault.evidence.span.start));
    // The span may begin with blank lines.
    start += text.get(start..).unwrap_or_default().len()
        - text.get(start..).unwrap_or_default().trim_start().len();
    let start = beginning_of_line(text, start);
    let start = words_above(text, start, &fault.detail).unwrap_or(start);
    let before = text.get(..start).unwrap_or_default();
    let rest = text.get(start..).unwrap_or_default();
    let number = if explained.cut { rest.lines().count() } else { before.matches('\n').count() + 1 };
    let line = rest.lines().next().unwrap_or_default();
    // As it stands there, without the colours of a terminal and what was overwritten on it.
    let text: String =
        Redactor::new().excerpt(&shown(line), SHOWN_CHARS).chars().filter(|c| !c.is_control()).collect();
    Some(Place { line: number, from_end: explained.cut, text })
}

fn beginning_of_line(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// An object over several lines is found by its last one, which is a bracket: the line of it that has the words is meant.
fn words_above(text: &str, start: usize, detail: &str) -> Option<usize> {
    let is_bracket = |line: &str| matches!(line.trim(), "}" | "]" | "},");
    text.get(start..)?.lines().next().filter(|line| is_bracket(line))?;
    let first = detail.split(" · ").next().filter(|words| !words.is_empty())?;
    let words = first.get(..first.floor_char_boundary(SOUGHT_BYTES))?;
    let from = text.floor_char_boundary(start.saturating_sub(TAIL_BYTES));
    let at = from + text.get(from..start)?.rfind(words)?;
    Some(beginning_of_line(text, at))
}

/// What a terminal would show of a line.
fn shown(line: &str) -> String {
    let last =
        line.trim_end_matches('\r').rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
    anstream::adapter::strip_str(last).to_string()
}
