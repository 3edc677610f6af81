//! Prints an explanation: for a person in their language, for a program as JSON.

use anstream::stdout;
use anstyle::{AnsiColor, Style};
use jiff::{Timestamp, Zoned};
use koboshi::classify::{EXIT_CODE, OWN_ERROR, Rules, TAIL_BYTES};
use koboshi::fault::{Confidence, Fault, Kind, Origin, Other, Scope};
use koboshi::guard::{Step, steps_for};
use koboshi::redact::Redactor;
use koboshi::wait::{Form, Wait, WaitZone};
use koboshi_report::fault_words::{meanwhile, short_of_the_reset};
use koboshi_report::guard::step_words;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_report::when;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

use super::Explanation;
use super::layout::{Layout, line_width};
use super::own;
use super::zone::CountedFrom;

const STRONG: Style = Style::new().bold();
const FAULT: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const QUIET: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();
/// How much of the evidence is shown.
const SHOWN_CHARS: usize = 160;
/// A text that was written within this time is read as it comes.
const PRESENT_SECONDS: i64 = 60;
/// Within this a time of day comes again.
const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of an error's words is looked for in the input.
const SOUGHT_BYTES: usize = 40;
/// The margin of the evidence.
const MARGIN: &str = "  │ ";
/// Every label that may be shown: all texts begin after the longest of them.
const LABELS: &[&str] = &[
    "label-what", "label-do", "label-wait", "label-whose", "label-affects", "label-retry", "label-said",
    "label-sure",
];

/// What printing needs.
pub(super) struct Renderer<'a> {
    pub(super) phrases: &'a Phrases,
    pub(super) rules: &'a Rules,
    pub(super) lang: Lang,
    pub(super) prefix: &'a str,
    /// Now, in the zone that times are shown in.
    pub(super) now: &'a Zoned,
    /// Now, in the zone of times without one.
    pub(super) assumed: &'a Zoned,
    /// The exit code of the run, where the caller knows it.
    pub(super) exit_code: Option<i32>,
}

/// The place of the evidence.
struct Evidence {
    /// Line from the beginning, or from the end if the beginning was not read.
    line: usize,
    from_end: bool,
    text: String,
}

impl Renderer<'_> {
    pub(super) fn text(&self, explanation: &Explanation<'_>) -> io::Result<()> {
        let mut out = stdout().lock();
        let Some(fault) = &explanation.fault else {
            return writeln!(out, "{GOOD}✓{GOOD:#} {}", self.say("nothing-wrong", &[]));
        };
        let sub = fault.sub.map(|sub| format!(" / {}", sub.name())).unwrap_or_default();
        let category = fault.category.as_deref().map(|category| format!(" / {category}")).unwrap_or_default();
        let name = format!("{}{sub}{category}", fault.kind.name());
        writeln!(out, "{FAULT}✗ {name}{FAULT:#}  {QUIET}{}{QUIET:#}", fault.kind.code(self.prefix))?;
        writeln!(out)?;
        let labels: Vec<String> = LABELS.iter().map(|label| self.say(label, &[])).collect();
        let rows = LabelledTexts {
            telling: self,
            layout: Layout::of(labels.iter().map(String::as_str), line_width()),
        };
        let (message, suggestion) = self.words(explanation, fault);
        let place = place(explanation, fault);
        let said = self.other_sides_words(fault, place.as_ref(), &message);
        let what: Vec<String> = [message].into_iter().chain(self.signal(fault)).collect();
        rows.row(&mut out, "label-what", STRONG, &what)?;
        let from = fault.wait.and_then(|wait| self.counted_from(explanation, wait));
        let over = from.clone().filter(|_| is_over(fault));
        let steps: Vec<String> =
            [suggestion].into_iter().chain(over).chain(self.further_steps(fault)).collect();
        rows.row(&mut out, "label-do", PLAIN, &steps)?;
        // That a wait is over is part of the suggestion.
        if let Some(wait) = fault.wait.filter(|_| !is_over(fault)) {
            let mut words = self.wait_words(wait);
            words.extend(from);
            words.extend(short_of_the_reset(fault, wait.after).map(|id| self.say(id, &[])));
            rows.row(&mut out, "label-wait", PLAIN, &words)?;
        }
        rows.row(&mut out, "label-whose", PLAIN, &[self.phrases.cause(self.lang, fault)])?;
        rows.row(&mut out, "label-affects", PLAIN, &[self.say(&scope_id(fault), &[])])?;
        rows.row(&mut out, "label-retry", PLAIN, &[self.advice_words(fault)])?;
        if let Some(said) = said {
            rows.row(&mut out, "label-said", PLAIN, &[said])?;
        }
        rows.row(&mut out, "label-sure", PLAIN, &[self.say(&confidence_id(fault), &[])])?;
        self.evidence(&mut out, rows.layout, place.as_ref(), fault)
    }

    /// The provider's message, where no other shown text contains it.
    fn other_sides_words(&self, fault: &Fault, place: Option<&Evidence>, message: &str) -> Option<String> {
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
        place: Option<&Evidence>,
        fault: &Fault,
    ) -> io::Result<()> {
        writeln!(out)?;
        let Some(place) = place else {
            let id = if is_exit_code(fault) { "label-seen-exit-code" } else { "label-seen-no-text" };
            let seen = self.say(id, &[("rule", &fault.evidence.rule)]);
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

    pub(super) fn json(&self, explanation: &Explanation<'_>) -> io::Result<()> {
        let fault = explanation.fault.as_ref().map(|fault| self.fault_json(explanation, fault));
        let document = json!({
            "ok": explanation.fault.is_none(),
            "read_as": explanation.read_as,
            "lang": self.lang.name(),
            "now": self.now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "fault": fault,
        });
        let mut out = stdout().lock();
        serde_json::to_writer_pretty(&mut out, &document)?;
        writeln!(out)
    }

    fn fault_json(&self, explanation: &Explanation<'_>, fault: &Fault) -> Value {
        let (message, suggestion) = self.words(explanation, fault);
        let place = place(explanation, fault);
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
                "counted_from": {
                    "what": explanation.counted.0.name(),
                    "time": explanation.counted.1.to_string(),
                },
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

    /// Message and suggestion; a category of the user has its own, and so has an answer of Koboshi itself.
    fn words(&self, explanation: &Explanation<'_>, fault: &Fault) -> (String, String) {
        if &*fault.evidence.rule == OWN_ERROR
            && let Some(words) = own::words(explanation.text, self.lang)
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
            if let Some(words) = self.phrases.of_rule(self.lang, fault) {
                return words;
            }
            let said = (
                self.phrases.tool_message(self.lang, category),
                self.phrases.tool_suggestion(self.lang, category),
            );
            if let (Some(message), Some(suggestion)) = said {
                return (message, suggestion);
            }
        }
        let suggestion = if fault.kind == Kind::AgentError && explanation.text.trim().is_empty() {
            self.say("log-is-empty", &[])
        } else if is_over(fault) {
            self.say("wait-over", &[])
        } else if is_before_the_reset(fault) {
            // "Until the day ends" above "38 s left" would contradict it.
            self.sentences(&["wait-then-try", meanwhile(fault)])
        } else {
            self.phrases.fault_suggestion(self.lang, fault)
        };
        // A provider's answer in a log: Koboshi was not involved.
        let is_theirs = fault.kind == Kind::Internal && fault.origin == Origin::Provider;
        let theirs = is_theirs.then(|| self.phrases.text(self.lang, "explain-internal", &[])).flatten();
        (theirs.unwrap_or_else(|| self.phrases.fault_message(self.lang, fault)), suggestion)
    }

    /// Which signal an exit code stands for.
    fn signal(&self, fault: &Fault) -> Option<String> {
        let code = self.exit_code.filter(|_| fault.kind == Kind::ProcessFailed)?;
        let name = signal_name(code.checked_sub(128)?)?;
        let shown = [("code", code.to_string()), ("name", name.to_owned())];
        let shown: Vec<_> = shown.iter().map(|(name, text)| (*name, text.as_str())).collect();
        Some(self.say(if name == KILL { "exit-signal-kill" } else { "exit-signal" }, &shown))
    }

    /// What else helps: the sign-in that the program itself names, and against a tool's failure the steps that the loop guard would name.
    fn further_steps(&self, fault: &Fault) -> Vec<String> {
        let is_of_key = matches!(fault.kind, Kind::Unauthorized | Kind::TokenExpired);
        if is_of_key && fault.detail.contains("/login") {
            return vec![self.say("step-login", &[])];
        }
        let Some(category) = fault.category.as_deref() else { return Vec::new() };
        let own = self.rules.own_category(category);
        if own.is_none() && self.phrases.of_rule(self.lang, fault).is_some() {
            // The steps of a category are for all of its causes, and this one is known.
            return Vec::new();
        }
        let further = steps_for(category).into_iter().filter(|step| *step != Step::Category);
        further.map(|step| step_words(self.phrases, self.lang, step, category, own)).collect()
    }

    /// The end of the wait, in the zone of the text where it differs, and the assumed zone where the text named none.
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
                // Between Latin letters and Japanese stands a space.
                let is_latin = self.lang == Lang::Ja && zone.is_ascii();
                let zone = if is_latin { format!("{zone} ") } else { zone };
                lines.push(self.say("wait-assumed", &[("zone", &zone)]));
            }
            _ => {}
        }
        lines
    }

    /// What the wait was counted from, where that is not the present or nothing says when the text was written.
    fn counted_from(&self, explanation: &Explanation<'_>, wait: Wait) -> Option<String> {
        // An epoch or a timestamp is the same instant whenever it is read.
        if wait.form != Form::Countdown && wait.zone == WaitZone::Unneeded {
            return None;
        }
        let (from, at) = explanation.counted;
        // A bare time of day is the next such time, so what is further away had its date.
        if wait.form != Form::Countdown && wait.after >= ONE_DAY {
            return None;
        }
        let is_past = self.now.timestamp().duration_since(at).as_secs() >= PRESENT_SECONDS;
        let from = match from {
            CountedFrom::Text | CountedFrom::File if is_past => from.name(),
            CountedFrom::Now => from.name(),
            CountedFrom::Text | CountedFrom::File | CountedFrom::Option => return None,
        };
        // A time of day is not counted: only its date is not stated.
        let what = if wait.form == Form::Countdown { "wait-from" } else { "wait-date-from" };
        let id = &format!("{what}-{from}");
        Some(self.say(id, &[("time", &when::exact_time(self.lang, &self.local(at)))]))
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
            // "Yes" beside "sign in first" would contradict it.
            _ if fault.kind == Kind::TokenExpired => "retry-after-sign-in",
            _ if is_before_the_reset(fault) => "retry-later",
            _ if waits && (advice.same || advice.later) => "retry-after-wait",
            _ if advice.same || advice.later && is_over(fault) => "retry-yes",
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
        let said: Vec<&str> = [Some(id), other].into_iter().flatten().collect();
        self.sentences(&said)
    }

    /// Sentences one after the other.
    fn sentences(&self, ids: &[&str]) -> String {
        let said: Vec<String> = ids.iter().map(|id| self.say(id, &[])).collect();
        said.join(if self.lang == Lang::Ja { "" } else { " " })
    }

    fn say(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }
}

/// The signal that nothing can catch.
const KILL: &str = "SIGKILL";

/// The name of a signal that ends processes.
const fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => KILL,
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Whether the stated wait has passed: "wait until then" would be wrong.
fn is_over(fault: &Fault) -> bool {
    matches!(fault.kind, Kind::RateLimited | Kind::QuotaExceeded)
        && fault.wait.is_some_and(|wait| wait.after.is_zero())
}

/// Whether the stated wait ends long before a daily quota is likely to reset: providers state seconds for it too.
fn is_before_the_reset(fault: &Fault) -> bool {
    fault.wait.is_some_and(|wait| short_of_the_reset(fault, wait.after).is_some())
}

/// The phrase for the confidence of a fault. A line that looks like an error is more than a status or an exit code.
fn confidence_id(fault: &Fault) -> String {
    let by_line = fault.confidence == Confidence::Low && fault.status.is_none() && !is_exit_code(fault);
    let by_form = fault.confidence == Confidence::Medium && fault.evidence.rule.starts_with(ANSWER_RULES);
    let finer = if by_line {
        "-line"
    } else if by_form {
        "-form"
    } else {
        ""
    };
    format!("confidence-{}{finer}", fault.confidence.name())
}

/// What these rules go by is how an answer ended, or that it is none; no words are involved.
const ANSWER_RULES: &str = "answer.";

fn is_exit_code(fault: &Fault) -> bool {
    &*fault.evidence.rule == EXIT_CODE
}

/// The phrase for what else a fault concerns. Who signs in has no key.
fn scope_id(fault: &Fault) -> String {
    let is_sign_in = fault.kind == Kind::TokenExpired && fault.scope == Scope::Key;
    format!("scope-{}", if is_sign_in { "sign-in" } else { fault.scope.name() })
}

/// Labels with their texts.
struct LabelledTexts<'a> {
    telling: &'a Renderer<'a>,
    layout: Layout,
}

impl LabelledTexts<'_> {
    /// One label with its texts, all in the same column.
    fn row(&self, out: &mut impl Write, label: &str, style: Style, texts: &[String]) -> io::Result<()> {
        let mut before = self.layout.label(&self.telling.say(label, &[]));
        for line in texts.iter().flat_map(|text| self.layout.lines(text)) {
            writeln!(out, "{before}{style}{line}{style:#}")?;
            before = self.layout.indent();
        }
        Ok(())
    }
}

/// The line of the evidence, safe to be shown. An exit code has no line, and neither has an empty body.
fn place(explanation: &Explanation<'_>, fault: &Fault) -> Option<Evidence> {
    let text = explanation.text;
    let is_blank = text.get(explanation.offset..).is_none_or(|body| body.trim().is_empty());
    if is_exit_code(fault) || is_blank {
        return None;
    }
    let mut start = text.floor_char_boundary(explanation.offset.saturating_add(fault.evidence.span.start));
    // The span may begin with blank lines.
    start += text.get(start..).unwrap_or_default().len()
        - text.get(start..).unwrap_or_default().trim_start().len();
    let start = beginning_of_line(text, start);
    let start = words_above(text, start, &fault.detail).unwrap_or(start);
    let before = text.get(..start).unwrap_or_default();
    let rest = text.get(start..).unwrap_or_default();
    let number = if explanation.cut { rest.lines().count() } else { before.matches('\n').count() + 1 };
    let line = rest.lines().next().unwrap_or_default();
    // Without colour codes and overwritten text.
    let text: String =
        Redactor::new().excerpt(&shown(line), SHOWN_CHARS).chars().filter(|c| !c.is_control()).collect();
    Some(Evidence { line: number, from_end: explanation.cut, text })
}

fn beginning_of_line(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// An object over several lines is found by its last line, a bracket: the line with the words is meant.
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
