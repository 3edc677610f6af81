//! An agent loop with the guard in it: a scripted model, scripted tools, three user turns.
//!
//! Run with `cargo run -p koboshi --example agent_loop`. Nothing is called for real: the model is a list of what it
//! would say, and the tools answer from a table. What matters are the four places where the loop meets the guard: it
//! reports every result to the tracker, adds the note to the last result, ends the turn at a stop, and starts over when the
//! user writes.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{CallAdvice, Guard, GuardPolicy, NOTE_MARK, Outcome, Tracker, Verdict};

/// A tool call as a model makes it.
type Call = (&'static str, &'static str);

/// What the user writes, and what the model then does: one list of parallel calls after the other.
const SCRIPT: &[(&str, &[&[Call]])] = &[
    (
        "Draw the sales of this year.",
        &[
            &[("read_file", r#"{"path":"sales.csv"}"#)],
            &[("run_code", r#"{"code":"plot(font='IPAexGothic')"}"#)],
            &[("run_code", r#"{"code":"plot(font='Noto Sans CJK JP')"}"#)],
            &[("run_code", r#"{"code":"plot(font='TakaoGothic')"}"#)],
            &[("run_code", r#"{"code":"plot(font='MS Gothic')"}"#)],
        ],
    ),
    (
        "Use a font that is there.",
        &[&[
            ("run_code", r#"{"code":"plot(font='DejaVu Sans')"}"#),
            ("read_file", r#"{"path":"sales.csv"}"#),
        ]],
    ),
    (
        "Is the build through?",
        &[
            &[("get_build", r#"{"id":7}"#)],
            &[("get_build", r#"{"id":7}"#)],
            &[("get_build", r#"{"id":7}"#)],
            &[("get_build", r#"{"id":7}"#)],
            &[("get_build", r#"{"id":7}"#)],
            &[("get_build", r#"{"id":7}"#)],
        ],
    ),
];

/// What a tool gives back, and whether it failed.
fn run((tool, args): Call) -> Result<String, String> {
    match tool {
        "read_file" => Ok("month,sales\n1,120\n2,140".to_owned()),
        "get_build" => Ok(r#"{"state":"running"}"#.to_owned()),
        _ if args.contains("DejaVu") => Ok("figure.png written".to_owned()),
        _ => {
            let font = args.split('\'').nth(1).unwrap_or_default();
            Err(format!("findfont: Font family '{font}' not found."))
        }
    }
}

/// Runs the example.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let classifier = Classifier::new(Rules::builtin()?, TimeZoneDatabase::none());
    let mut tracker = Tracker::new(Guard::new(GuardPolicy::source())?);
    // Scripted too: the core never reads a clock.
    let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);

    for (message, responses) in SCRIPT {
        println!("\nuser:  {message}");
        tracker.user_turn();
        turn(&mut tracker, responses, &classifier, &now);
    }
    println!("\nwhat the tracker knows:\n{}", serde_json::to_string_pretty(&tracker.dump())?);
    Ok(())
}

/// One user turn: responses of the model until it has no more calls or the guard stops it.
fn turn(tracker: &mut Tracker, responses: &[&[Call]], classifier: &Classifier, now: &Zoned) {
    for (batch, calls) in (0..).zip(responses) {
        for call in *calls {
            let result = run(*call);
            let output = result.as_ref().unwrap_or_else(|failure| failure);
            println!("tool:  {}({}) -> {}", call.0, call.1, output.replace('\n', " | "));
            let outcome = Outcome { tool: call.0, args: call.1, output, batch: Some(batch) };
            let handled = match result {
                Ok(_) => tracker.handle_function_success(&outcome, classifier, now),
                Err(_) => tracker.handle_function_error(&outcome, classifier, now),
            };
            say(&handled);
        }
        // After the whole response: its parallel calls have all been answered.
        if tracker.stop_retrying() {
            println!("model: (answers without tools, from what it knows)");
            return;
        }
    }
    println!("model: (answers)");
}

/// A program for people would print `koboshi_report::guard::suggestion_block` instead.
fn say(handled: &CallAdvice) {
    let Some(finding) = handled.judgement.gravest() else { return };
    let line = format!(
        "{}: {} of {}, calls {:?}, {}",
        finding.rule.name(),
        finding.count,
        finding.limit,
        finding.entries,
        finding.fingerprint.text
    );
    match handled.judgement.verdict {
        Verdict::Note => println!("guard: {NOTE_MARK} note to the model: {line}"),
        Verdict::Stop => println!("guard: stop: {line}"),
        Verdict::Pass => {}
    }
    if let Some(suggestion) = &handled.suggestion {
        let steps: Vec<&str> = suggestion.steps.iter().map(|step| step.name()).collect();
        let category = suggestion.category.as_deref().unwrap_or("none");
        println!(
            "guard: category {category}, next steps {steps:?}, then asks {}",
            suggestion.question.name()
        );
    }
}
