//! `koboshi explain`: what went wrong, what to do, and until when to wait.
//!
//! Options and the look of the text choose the reader; the classifier decides; the
//! [`render`] module prints. An input that is empty or no text is an error of its own: a pipeline that lost its log must not
//! look healthy.

mod http;
pub(crate) mod layout;
mod lesson;
mod own;
mod render;
mod zone;

use std::io::Write;

use jiff::{Timestamp, Zoned};
use koboshi::classify::{AgentLog, Answer, Classifier, ToolOutput};
use koboshi::fault::{Confidence, Fault, Kind};
use koboshi_report::phrase::{Lang, Phrases};

use self::lesson::Lesson;
use self::zone::{Clocks, CountedFrom};
use crate::args::{ExplainArgs, Format, InputKind};
use crate::input::Input;
use crate::say::Say;
use crate::{Exit, Failure, clock, input, rules, settings};

/// What was read, and how.
pub(crate) struct Explanation<'a> {
    pub(crate) fault: Option<Fault>,
    pub(crate) read_as: &'static str,
    /// The text that was read.
    pub(crate) text: &'a str,
    /// The offset of the evidence's span in that text.
    pub(crate) offset: usize,
    /// The text is the end of a longer input.
    pub(crate) cut: bool,
    /// What the wait was counted from, and when that was.
    pub(crate) counted: (CountedFrom, Timestamp),
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit, Failure> {
    let found = settings::find_or_go_on(args.config.file.as_deref(), &args.lang)?;
    let config = found.map(|(_, loaded)| loaded.config).unwrap_or_default();
    let lang = args.lang.get(&config);
    let rules: Vec<_> = config.rules.iter().chain(&args.rules.files).cloned().collect();
    let classifier = Classifier::new(rules::load(&rules)?, clock::zones());
    let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
    let input = read(args, &phrases, lang)?;
    let clocks = zone::clocks(args, &input);
    let headers = headers(&args.headers)?;
    if input.is_cut() && kind_of(args, &input) == InputKind::Answer {
        return Err(Failure::new(say(&phrases, lang, "input-answer-too-long", &[])));
    }
    let mut explanation = explain(&classifier, args, &headers, &input, &clocks);
    explanation.fault = explanation.fault.map(|fault| fault.left_at(clocks.showing.timestamp()));
    let telling = render::Renderer {
        phrases: &phrases,
        rules: classifier.rules(),
        lang,
        prefix: args.prefix.as_deref().unwrap_or(&config.code_prefix),
        now: &clocks.showing,
        assumed: &clocks.reading,
        exit_code: args.exit_code,
    };
    match args.format {
        Format::Text => telling.text(&explanation)?,
        Format::Json => telling.json(&explanation)?,
    }
    if let Some(should) = &args.should_be {
        let say = Say::new(lang)?;
        let (input, classifier) = (&input, &classifier);
        let lesson = Lesson { args, headers: &headers, input, clocks: &clocks, classifier, say: &say };
        // Beside the answer, which a program may be reading.
        writeln!(anstream::stderr(), "{}", lesson.write(&explanation, should)?)?;
    }
    Ok(if explanation.fault.is_some() { Exit::Found } else { Exit::Good })
}

/// The input, or why it cannot be judged.
fn read(args: &ExplainArgs, phrases: &Phrases, lang: Lang) -> Result<Input, Failure> {
    let name = input::name_of(args.file.as_deref(), lang);
    let name = name.unwrap_or_else(|| say(phrases, lang, "input-stdin", &[]));
    let failure = |id: &str, why: &str| {
        Failure::new(say(phrases, lang, id, &[("name", name.as_str()), ("why", why), ("command", "explain")]))
    };
    let input = Input::read(args.file.as_deref())
        .map_err(|error| failure(input::why_unreadable(&error), &error.to_string()))?;
    // A status, an exit code or an error flag is evidence even without text.
    let told = args.status.is_some() || args.exit_code.is_some() || args.is_error.is_some();
    if input.is_empty() && !told {
        return Err(failure("input-empty", ""));
    }
    if input.is_binary() {
        return Err(failure("input-binary", ""));
    }
    Ok(input)
}

fn say(phrases: &Phrases, lang: Lang, id: &str, args: &[(&str, &str)]) -> String {
    phrases.text(lang, id, args).unwrap_or_else(|| id.to_owned())
}

/// `name: value` as given on the command line. Errors do not repeat the value: it may be a key.
fn headers(given: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let mut headers = Vec::new();
    for (text, number) in given.iter().zip(1..) {
        match text.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => headers.push((name.trim(), value.trim())),
            _ => return Err(Failure::new(format!("header {number} is not written `name: value`"))),
        }
    }
    Ok(headers)
}

fn explain<'a>(
    classifier: &Classifier,
    args: &ExplainArgs,
    headers: &[(&str, &str)],
    input: &'a Input,
    clocks: &Clocks,
) -> Explanation<'a> {
    match kind_of(args, input) {
        InputKind::Answer => answer(classifier, args, headers, input, clocks),
        InputKind::Tool => tool(classifier, args.is_error, input, clocks),
        InputKind::Log => log(classifier, args, input, clocks),
        InputKind::Auto => best(classifier, args, input, clocks),
    }
}

/// The kind that the caller named, or that the options or the text suggest.
fn kind_of(args: &ExplainArgs, input: &Input) -> InputKind {
    if args.kind != InputKind::Auto {
        return args.kind;
    }
    if args.status.is_some() || !args.headers.is_empty() || args.stream {
        return InputKind::Answer;
    }
    if args.is_error.is_some() {
        return InputKind::Tool;
    }
    if args.exit_code == Some(0) || input.is_cut() {
        return InputKind::Log;
    }
    if args.exit_code.is_some() {
        // The run failed; either reading may find what failed.
        return InputKind::Auto;
    }
    if http::looks_like_answer(&input.head) { InputKind::Answer } else { InputKind::Auto }
}

fn answer<'a>(
    classifier: &Classifier,
    args: &ExplainArgs,
    given: &[(&str, &str)],
    input: &'a Input,
    clocks: &Clocks,
) -> Explanation<'a> {
    let head = http::read(&input.head);
    let headers: Vec<(&str, &str)> = given.iter().copied().chain(head.headers).collect();
    let sent = http::date(&headers).filter(|sent| *sent <= clocks.showing.timestamp());
    let (from, written) = counted(sent, clocks);
    let status = args.status.or(head.status);
    let stream = args.stream
        || headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.contains("event-stream"))
        || http::is_event_stream(head.body);
    let answer = if is_plain_text(status, head.body) {
        Answer { transport: Some(head.body), ..Answer::default() }
    } else {
        Answer {
            status: Some(status.unwrap_or(200)),
            headers: &headers,
            body: head.body,
            stream,
            transport: None,
        }
    };
    let offset = input.head.len() - head.body.len();
    Explanation {
        fault: classifier.answer(&answer, &written),
        read_as: "answer",
        text: &input.head,
        offset,
        cut: false,
        counted: (from, written.timestamp()),
    }
}

/// Whether this is the error of an HTTP client, and no answer.
fn is_plain_text(status: Option<u16>, body: &str) -> bool {
    status.is_none() && !http::looks_like_answer(body) && !body.trim_start().starts_with(['{', '[', '<'])
}

/// The time that the text gives, or else the time of writing as far as it is known.
fn counted(stated: Option<Timestamp>, clocks: &Clocks) -> (CountedFrom, Zoned) {
    match stated {
        Some(at) => (CountedFrom::Text, at.to_zoned(clocks.reading.time_zone().clone())),
        None => (clocks.from, clocks.reading.clone()),
    }
}

fn log<'a>(
    classifier: &Classifier,
    args: &ExplainArgs,
    input: &'a Input,
    clocks: &Clocks,
) -> Explanation<'a> {
    let log = AgentLog { text: input.end(), exit_code: args.exit_code, since: None };
    let fault = classifier.log(&log, &clocks.reading);
    let stamp = fault
        .as_ref()
        .and_then(|fault| classifier.written_at(&log, fault.evidence.span.start, &clocks.reading));
    let (from, written) = counted(stamp, clocks);
    Explanation {
        fault,
        read_as: "log",
        text: log.text,
        offset: 0,
        cut: input.is_cut(),
        counted: (from, written.timestamp()),
    }
}

fn tool<'a>(
    classifier: &Classifier,
    is_error: Option<bool>,
    input: &'a Input,
    clocks: &Clocks,
) -> Explanation<'a> {
    let text = input.end();
    let stamp = |fault: &Fault| {
        let log = AgentLog { text, exit_code: None, since: None };
        classifier.written_at(&log, fault.evidence.span.start, &clocks.reading)
    };
    let output = ToolOutput { text, is_error };
    let fault = classifier.tool(&output, &clocks.reading);
    let (from, written) = counted(fault.as_ref().and_then(stamp), clocks);
    // Where its own lines say when, the wait is counted from there.
    let fault = if from == CountedFrom::Text { classifier.tool(&output, &written) } else { fault };
    Explanation {
        fault,
        read_as: "tool",
        text,
        offset: 0,
        cut: input.is_cut(),
        counted: (from, written.timestamp()),
    }
}

/// Whether the last lines have the error of a provider's SDK, as Python prints it: such a traceback is no output of a tool, even if its
/// words about arguments sound like one.
fn ends_with_an_sdks_error(text: &str) -> bool {
    const LAST_LINES: usize = 20;
    const RAISED_BY: [&str; 4] = ["openai.", "anthropic.", "google.genai.errors.", "litellm."];
    text.lines().rev().take(LAST_LINES).any(|line| {
        let line = line.trim_start();
        let error = RAISED_BY.iter().find_map(|prefix| line.strip_prefix(prefix));
        error.and_then(|error| error.split_once(": ")).is_some_and(|(name, _)| name.ends_with("Error"))
    })
}

/// A log of an agent and the output of a tool look alike: the reading that recognises something wins.
fn best<'a>(
    classifier: &Classifier,
    args: &ExplainArgs,
    input: &'a Input,
    clocks: &Clocks,
) -> Explanation<'a> {
    let as_log = log(classifier, args, input, clocks);
    let recognised = as_log
        .fault
        .as_ref()
        .is_some_and(|fault| fault.confidence > Confidence::Low && fault.kind != Kind::AgentError);
    let is_tools = as_log.fault.as_ref().is_some_and(|fault| fault.kind == Kind::ToolFailed);
    let is_of_sdk = as_log.fault.is_some() && ends_with_an_sdks_error(input.end());
    // A signal or a time limit ended the run, whatever its output reports.
    let is_ended = as_log.fault.as_ref().is_some_and(|fault| fault.kind == Kind::ProcessFailed);
    if recognised && !is_tools || is_of_sdk || is_ended {
        return as_log;
    }
    // Where the log already says that a tool failed, its whole output says more than one line.
    let as_tool = tool(classifier, args.is_error.or(is_tools.then_some(true)), input, clocks);
    // The last line of a compiler has no cause, and is a tool's all the same.
    let is_known =
        |fault: &Fault| fault.category.as_deref() != Some("other") || &*fault.evidence.rule == "tool.build";
    let better = as_tool.fault.as_ref().is_some_and(|fault| is_known(fault) && !counts_none(&fault.detail));
    if better { as_tool } else { as_log }
}

/// Whether a line counts failures and found none: `Failures: 0`.
fn counts_none(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    let Some((name, count)) = line.split_once(':') else { return false };
    let is_count = ["errors", "failures", "failed", "failing"].contains(&name.trim());
    is_count && count.split_whitespace().next().is_some_and(|count| count.trim_end_matches(',') == "0")
}
