//! A whole answer as the stream that was asked for: some compatible servers do not know `stream`, and answer well all the same.
//!
//! The frames carry the same fields as the answer: every field of a message becomes a field of a delta, also one that only this vendor has.
//! What the frames mean is then judged like that of any other stream. A body that was read to its end is whole, so a choice that does not
//! say why it ended has ended.
//!
//! Fields are borrowed as the text they are. The fields beside the choices are repeated in every frame, so both are bounded: otherwise
//! a few megabytes of an answer would become as many times more as it has choices.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::frames::DONE;
use crate::MAX_DEPTH;
use crate::intake::{fields, is_text_deeper};
use crate::lenient::{text_of, without_halves};
use crate::raw::{Raw, list};
use crate::splice::quoted;

type RawMembers<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Choices of one answer; no server gives more.
const MAX_CHOICES: usize = 1024;
/// Bytes of all that stands beside the choices. Of more, only the fields that clients read are kept.
const MAX_HEAD: usize = 4 * 1024;
const KEPT_FIELDS: [&str; 5] = ["id", "created", "model", "system_fingerprint", "service_tier"];

/// The frames of a stream that says the same as this answer: role, content, ends, cost, terminal mark.
/// None if it is no answer: no object, or one without a message in its choices.
#[must_use]
pub fn frames(body: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?.trim_ascii();
    if is_text_deeper(text.as_bytes(), MAX_DEPTH) {
        return None;
    }
    let text = one_line(text);
    let whole = without_halves(&text).map_or(text, Cow::Owned);
    let answer = serde_json::from_str::<&RawValue>(&whole).ok()?;
    Some(Answer::of(answer)?.frames())
}

/// A line end would end the frame. In good JSON it stands between values only.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// A whole answer.
struct Answer<'a> {
    /// What stands in every frame: id, model, and whatever else the answer has. Each field is followed by a comma.
    head: String,
    choices: Vec<Choice<'a>>,
    usage: Option<&'a RawValue>,
}

impl<'a> Answer<'a> {
    fn of(raw: &'a RawValue) -> Option<Self> {
        let mut fields = named(raw)?;
        let choices = list(fields.remove("choices")?).filter(|choices| choices.len() <= MAX_CHOICES)?;
        let usage = fields.remove("usage").filter(|usage| usage.get().starts_with('{'));
        fields.remove("object");
        let choices = (0_u32..).zip(choices).map(|(place, raw)| Choice::of(place, raw));
        Some(Self { head: head(&fields), choices: choices.collect::<Option<_>>()?, usage })
    }

    fn frames(&self) -> Bytes {
        let mut text = String::new();
        for choice in &self.choices {
            let role = choice.message.get("role").map_or("\"assistant\"", |role| role.get());
            let begun = format!(r#"{{"role":{role},"content":""}}"#);
            self.frame(&mut text, &choice.frame(&begun, None, None), None);
            self.frame(&mut text, &choice.frame(&choice.delta(), choice.logprobs, None), None);
        }
        for choice in &self.choices {
            self.frame(&mut text, &choice.frame("{}", None, Some(&choice.reason)), None);
        }
        if let Some(usage) = self.usage {
            self.frame(&mut text, "", Some(usage));
        }
        let mut frames = text.into_bytes();
        frames.extend_from_slice(DONE);
        frames.into()
    }

    fn frame(&self, text: &mut String, choice: &str, usage: Option<&RawValue>) {
        let usage = usage.map_or_else(String::new, |usage| format!(r#","usage":{}"#, usage.get()));
        let head = &self.head;
        text.push_str("data: {");
        text.push_str(head);
        text.push_str(r#""object":"chat.completion.chunk","choices":["#);
        text.push_str(choice);
        text.push(']');
        text.push_str(&usage);
        text.push_str("}\n\n");
    }
}

/// The fields of an object by their names; of a name that comes twice the last counts.
fn named(raw: &RawValue) -> Option<RawMembers<'_>> {
    raw.get().starts_with('{').then(|| fields(raw)).flatten().map(|all| all.into_iter().collect())
}

fn head(fields: &RawMembers<'_>) -> String {
    let written = |fits: &dyn Fn(&str, &str) -> bool| -> String {
        let fields = fields.iter().filter(|(name, raw)| fits(name, raw.get()));
        fields.map(|(name, raw)| format!("{}:{},", quoted(name), raw.get())).collect()
    };
    let length: usize = fields.iter().map(|(name, raw)| name.len() + raw.get().len()).sum();
    if length <= MAX_HEAD {
        return written(&|_, _| true);
    }
    written(&|name, value| KEPT_FIELDS.contains(&name) && value.len() <= MAX_HEAD / KEPT_FIELDS.len())
}

/// One choice of an answer.
struct Choice<'a> {
    index: u64,
    message: RawMembers<'a>,
    logprobs: Option<&'a RawValue>,
    reason: Cow<'a, str>,
}

impl<'a> Choice<'a> {
    fn of(place: u32, raw: &'a RawValue) -> Option<Self> {
        let mut choice = named(raw)?;
        let mut message = named(choice.remove("message")?)?;
        message.retain(|_, value| value.get() != "null");
        let index = choice.get("index").and_then(|index| index.get().parse().ok());
        let reason = choice.get("finish_reason").and_then(|reason| text_of(reason));
        Some(Self {
            index: index.unwrap_or_else(|| place.into()),
            reason: reason.unwrap_or_else(|| usual_reason(&message).into()),
            logprobs: choice.remove("logprobs"),
            message,
        })
    }

    fn frame(&self, delta: &str, logprobs: Option<&RawValue>, reason: Option<&str>) -> String {
        let logprobs = logprobs.map_or("null", RawValue::get);
        let reason = reason.map_or_else(|| "null".to_owned(), quoted);
        let index = self.index;
        format!(r#"{{"index":{index},"delta":{delta},"logprobs":{logprobs},"finish_reason":{reason}}}"#)
    }

    /// All fields of the message except the role, which was sent before.
    fn delta(&self) -> String {
        let fields = self.message.iter().filter(|(name, _)| *name != "role").map(|(name, raw)| {
            let calls = if name == "tool_calls" { numbered(raw) } else { None };
            format!("{}:{}", quoted(name), calls.as_deref().unwrap_or(raw.get()))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

/// Pieces of a call are distinguished by their number, which calls of a whole answer do not have.
fn numbered(calls: &RawValue) -> Option<String> {
    let calls = list(calls)?.into_iter().enumerate().map(|(place, call)| match Raw::of(call) {
        Some(fields) if !fields.has("index") => {
            let rest = call.get().trim_start_matches('{').trim_ascii_start();
            let comma = if rest == "}" { "" } else { "," };
            format!(r#"{{"index":{place}{comma}{rest}"#)
        }
        _ => call.get().to_owned(),
    });
    Some(format!("[{}]", calls.collect::<Vec<_>>().join(",")))
}

fn usual_reason(message: &RawMembers<'_>) -> &'static str {
    let has_calls =
        message.get("tool_calls").and_then(|raw| list(raw)).is_some_and(|calls| !calls.is_empty());
    match message.get("function_call") {
        _ if has_calls => "tool_calls",
        Some(call) if call.get().starts_with('{') => "function_call",
        _ => "stop",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::chat::event;
    use crate::step::Step;

    fn steps(answer: &Value) -> Vec<Step<'static>> {
        let frames = frames(answer.to_string().as_bytes()).unwrap();
        let text = String::from_utf8(frames.to_vec()).unwrap();
        let data = text.split("\n\n").filter(|frame| !frame.is_empty());
        data.map(|frame| event::read(frame.strip_prefix("data: ").unwrap()).unwrap().into_owned()).collect()
    }

    #[test]
    fn text_ends_and_cost_are_all_there() {
        let answer = json!({"id": "a", "model": "m", "object": "chat.completion", "created": 7,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "héllo\n"}, "finish_reason": "length"},
                {"message": {"content": "two", "refusal": null}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
        let steps = steps(&answer);
        assert!(steps.last().unwrap().done);
        let texts: Vec<_> = steps.iter().filter_map(|step| step.text.as_deref()).collect();
        assert_eq!(texts, ["héllo\n"]);
        assert!(steps.iter().any(|step| step.other_text), "the second choice");
        let ends: Vec<_> = steps.iter().flat_map(|step| step.finish.clone()).collect();
        assert_eq!(ends, [(0, "length".into()), (1, "stop".into())]);
        assert_eq!(steps.iter().find_map(|step| step.usage).unwrap().input, 3);
        assert!(steps[..steps.len() - 1].iter().all(|step| step.id.as_deref() == Some("a")));
    }

    #[test]
    fn calls_are_numbered_and_the_old_form_stays() {
        let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}});
        let new = json!({"choices": [{"message": {"tool_calls": [call("a"), call("b")]}}]});
        let new = steps(&new);
        let numbers: Vec<_> = new
            .iter()
            .flat_map(|step| &step.calls)
            .map(|call| (call.index, call.name.clone().unwrap()))
            .collect();
        assert_eq!(numbers, [(0, "a".into()), (1, "b".into())]);
        assert!(new.iter().any(|step| step.finish == [(0, "tool_calls".into())]));
        let old = json!({"choices": [{"message": {"function_call": {"name": "a", "arguments": "{}"}}}]});
        assert!(steps(&old).iter().any(|step| step.finish == [(0, "function_call".into())]));
    }

    #[test]
    fn an_answer_over_several_lines_is_the_same_answer() {
        let answer = json!({"id": "a", "choices": [{"message": {"content": "one\ntwo", "tool_calls": [{}, {"index": 7}]}}]});
        let pretty = serde_json::to_string_pretty(&answer).unwrap().replace('\n', "\r\n");
        let read = |text: &str| -> Vec<Value> {
            let frames = String::from_utf8(frames(text.as_bytes()).unwrap().to_vec()).unwrap();
            let data = frames.split("\n\n").filter_map(|frame| frame.strip_prefix("data: {"));
            data.map(|frame| serde_json::from_str(&format!("{{{frame}")).unwrap()).collect()
        };
        let frames = read(&pretty);
        assert_eq!(frames, read(&answer.to_string()));
        assert_eq!(
            frames[1]["choices"][0]["delta"],
            json!({"content": "one\ntwo", "tool_calls": [{"index": 0}, {"index": 7}]})
        );
    }

    /// The fields beside the choices are repeated in every frame: a few megabytes would become terabytes.
    #[test]
    fn an_answer_does_not_grow_by_its_choices() {
        let choice = json!({"message": {"content": "x"}});
        let answer =
            json!({"id": "a", "model": "m", "extra": "e".repeat(100_000), "choices": vec![&choice; 100]});
        let written = frames(answer.to_string().as_bytes()).unwrap();
        assert!(written.len() < 100_000, "{}", written.len());
        assert!(steps(&answer).iter().any(|step| step.id.as_deref() == Some("a")));
        let many = json!({"choices": vec![&choice; MAX_CHOICES + 1]});
        assert!(frames(many.to_string().as_bytes()).is_none());
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for body in [
            "", "[]", "{}", "{\"choices\":{}}", "{\"choices\":[1]}", "{\"choices\":[{\"delta\":{}}]}",
            "{\"cho",
        ] {
            assert!(frames(body.as_bytes()).is_none(), "{body}");
        }
        assert!(frames("[".repeat(100_000).as_bytes()).is_none(), "however deep");
    }
}
