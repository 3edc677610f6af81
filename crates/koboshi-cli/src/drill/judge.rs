//! What a client got: an answer, a lesser one, a clear error, or something that it cannot use.

use std::time::Duration;

use koboshi_config::Config;
use koboshi_gateway::RehearsedAnswer;
use koboshi_sim::{Ask, Asks, Scenario, play};
use serde::Serialize;
use serde_json::{Value, json};

/// A request may end this much after its deadline: what runs by then is asked to end.
const SLACK: Duration = Duration::from_secs(5);

/// How a scenario ends for the client, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// The answer that the provider would have given.
    Answer,
    /// What the config has for such times.
    LesserAnswer,
    /// An error that says what happened.
    Error,
    /// An answer that looks whole and is not: words are missing, or a tool call cannot be used or repeats itself.
    Damaged,
    /// Neither an answer nor an error.
    Nothing,
}

/// What the client of a scenario got; of several requests the worst.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) ending: Ending,
    pub(super) status: u16,
    /// The kind of the error.
    pub(super) kind: Option<String>,
    /// What the error says.
    pub(super) message: Option<String>,
    /// The longest that a request took.
    pub(super) took: Duration,
    /// The targets that were asked, in order, in all requests together.
    pub(super) asked: Vec<String>,
    pub(super) is_good: bool,
}

/// What the requests of a scenario led to.
pub(super) fn outcome(
    scenario: &Scenario,
    config: &Config,
    questions: &[Value],
    answers: &[RehearsedAnswer],
) -> Outcome {
    let limit = config.serve.deadline.saturating_add(SLACK);
    let mut worst = Outcome {
        ending: Ending::Answer,
        status: 200,
        kind: None,
        message: None,
        took: Duration::ZERO,
        asked: Vec::new(),
        is_good: true,
    };
    for (question, answer) in questions.iter().zip(answers) {
        let (ending, error) = ending(scenario.asks, question, answer);
        if ending > worst.ending {
            let text = |name: &str| error.as_ref().and_then(|error| found(error, name));
            (worst.ending, worst.status) = (ending, answer.status);
            (worst.kind, worst.message) = (text("kind"), text("message"));
        }
        worst.took = worst.took.max(answer.took);
        worst.asked.extend(answer.asked.iter().map(ToString::to_string));
    }
    worst.is_good = worst.took <= limit
        && match worst.ending {
            Ending::Answer | Ending::LesserAnswer => true,
            Ending::Error => scenario.error_is_right,
            Ending::Damaged | Ending::Nothing => false,
        };
    worst
}

/// A text of an error, of Koboshi's part first.
fn found(error: &Value, name: &str) -> Option<String> {
    let own = error.get("koboshi").and_then(|own| own.get(name));
    own.or_else(|| error.get(name)).and_then(Value::as_str).map(str::to_owned)
}

fn ending(asks: Asks, question: &Value, answer: &RehearsedAnswer) -> (Ending, Option<Value>) {
    if !answer.has_ended || answer.status == 0 {
        return (Ending::Nothing, None);
    }
    let got = Got::of(answer);
    if let Some(error) = got.error {
        // An error that names neither its kind nor its cause is none that a client can act on.
        let is_clear = found(&error, "kind").is_some() && found(&error, "message").is_some();
        return (if is_clear { Ending::Error } else { Ending::Nothing }, Some(error));
    }
    if answer.status != 200 || got.finish.is_none() || !got.is_done {
        return (Ending::Nothing, None);
    }
    if got.finish.as_deref() == Some("content_filter") {
        // Some vendors refuse a prompt in a 200, by the reason why the answer ended: that is as clear as a status.
        let refusal = json!({"kind": "content_filtered", "message": "finish_reason: content_filter"});
        return (Ending::Error, Some(refusal));
    }
    if answer.headers.iter().any(|(name, _)| name == "x-koboshi-degraded") || got.is_lesser {
        return (Ending::LesserAnswer, None);
    }
    let is_whole = match asks {
        Asks::Loop => got.calls.iter().all(|(_, arguments)| !arguments.contains("Aizu")),
        Asks::Tool => {
            !got.calls.is_empty()
                && got.calls.iter().all(|(name, arguments)| {
                    let arguments: Result<Value, _> = serde_json::from_str(arguments);
                    let city = arguments.ok().and_then(|read| Some(read.get("city")?.is_string()));
                    name == "look_up" && city == Some(true)
                })
        }
        Asks::Stream | Asks::Whole => got.text == healthy(question),
    };
    (if is_whole { Ending::Answer } else { Ending::Damaged }, None)
}

/// What a healthy provider says to this question: the same words under every name and in every dialect.
fn healthy(question: &Value) -> String {
    let mut whole = question.clone();
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("stream".to_owned(), false.into());
    }
    let body = whole.to_string();
    let played = play(&Ask { model: "ok", body: body.as_bytes(), ..Ask::default() });
    let answer: Vec<u8> = played.beats.flat_map(|beat| beat.bytes).collect();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    answer.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An answer of chat completions, in one piece or as a stream.
#[derive(Default)]
struct Got {
    text: String,
    /// Names and arguments of tool calls.
    calls: Vec<(String, String)>,
    finish: Option<String>,
    error: Option<Value>,
    is_done: bool,
    is_lesser: bool,
}

impl Got {
    fn of(answer: &RehearsedAnswer) -> Self {
        let body = String::from_utf8_lossy(&answer.body);
        let is_stream = answer
            .headers
            .iter()
            .any(|(name, value)| name == "content-type" && value.starts_with("text/event-stream"));
        let mut got = Self { is_done: !is_stream, ..Self::default() };
        if is_stream {
            for data in body.lines().filter_map(|line| line.strip_prefix("data:")) {
                match data.trim() {
                    "[DONE]" => got.is_done = true,
                    data => got.add(&serde_json::from_str(data).unwrap_or_default()),
                }
            }
        } else {
            got.add(&serde_json::from_str(&body).unwrap_or_default());
        }
        got
    }

    fn add(&mut self, piece: &Value) {
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            self.error.get_or_insert_with(|| error.clone());
        }
        self.is_lesser |= piece.pointer("/koboshi/source").is_some();
        let Some(choice) = piece.pointer("/choices/0") else { return };
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        let Some(part) = choice.get("delta").or_else(|| choice.get("message")) else { return };
        self.text.push_str(part.get("content").and_then(Value::as_str).unwrap_or_default());
        for call in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| call.pointer(name).and_then(Value::as_str).unwrap_or_default();
            let (name, arguments) = (text("/function/name"), text("/function/arguments"));
            // A piece with a name begins a call, one without continues it.
            if !name.is_empty() || self.calls.is_empty() {
                self.calls.push((name.to_owned(), String::new()));
            }
            if let Some((_, so_far)) = self.calls.last_mut() {
                so_far.push_str(arguments);
            }
        }
    }
}
