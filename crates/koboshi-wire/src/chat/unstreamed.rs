//! A whole answer as the stream that was asked for: some compatible servers do not know `stream`, and answer well all the same.
//!
//! The frames say what the answer says and in its own words: every field of a message becomes a field of a delta, whoever invented it.
//! What the frames mean is then judged like that of any other stream. A body that was read to its end is whole, so a choice that does not
//! say why it ended has ended.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::write::DONE;
use crate::lenient::without_halves;

/// The frames of a stream that says the same as this answer: role, content, ends, cost, terminal mark.
/// None if it is no answer: no object, or one without a message in its choices.
#[must_use]
pub fn frames(body: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    let mut answer = read(text).or_else(|| read(&without_halves(text)?))?;
    let Some(Value::Array(choices)) = answer.remove("choices") else { return None };
    let usage = answer.remove("usage").filter(Value::is_object);
    answer.insert("object".to_owned(), "chat.completion.chunk".into());
    let mut frames = Frames { head: answer, text: Vec::new() };
    let mut ends = Vec::new();
    for (place, choice) in (0_u32..).zip(choices) {
        let Value::Object(mut choice) = choice else { return None };
        let Some(Value::Object(mut message)) = choice.remove("message") else {
            return None;
        };
        let index =
            choice.get("index").filter(|index| index.is_u64()).cloned().unwrap_or_else(|| place.into());
        let reason = choice.get("finish_reason").filter(|reason| reason.is_string()).cloned();
        ends.push((index.clone(), reason.unwrap_or_else(|| usual_reason(&message).into())));
        message.retain(|_, value| !value.is_null());
        number_calls(&mut message);
        let role = message.remove("role").unwrap_or_else(|| "assistant".into());
        frames.choice(&index, &json!({"role": role, "content": ""}), None, &Value::Null);
        frames.choice(&index, &Value::Object(message), choice.remove("logprobs"), &Value::Null);
    }
    for (index, reason) in ends {
        frames.choice(&index, &json!({}), None, &reason);
    }
    if let Some(usage) = usage {
        frames.write(json!([]), Some(usage));
    }
    frames.text.extend_from_slice(DONE);
    Some(frames.text.into())
}

struct Frames {
    /// What stands in every frame: id, model, and whatever else the answer has.
    head: Map<String, Value>,
    text: Vec<u8>,
}

impl Frames {
    fn choice(&mut self, index: &Value, delta: &Value, logprobs: Option<Value>, reason: &Value) {
        let logprobs = logprobs.unwrap_or(Value::Null);
        let choice = json!([{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}]);
        self.write(choice, None);
    }

    fn write(&mut self, choices: Value, usage: Option<Value>) {
        let mut chunk = self.head.clone();
        chunk.insert("choices".to_owned(), choices);
        chunk.extend(usage.map(|usage| ("usage".to_owned(), usage)));
        self.text.extend_from_slice(format!("data: {}\n\n", Value::Object(chunk)).as_bytes());
    }
}

/// Pieces of a call are told apart by their number, which calls of a whole answer do not have.
fn number_calls(message: &mut Map<String, Value>) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (place, call) in (0_u32..).zip(calls.into_iter().flatten()) {
        if let Some(call) = call.as_object_mut() {
            call.entry("index").or_insert_with(|| place.into());
        }
    }
}

fn usual_reason(message: &Map<String, Value>) -> &'static str {
    let calls = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    match message.get("function_call") {
        _ if calls => "tool_calls",
        Some(Value::Object(_)) => "function_call",
        _ => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::chunk;
    use crate::step::Step;

    fn steps(answer: &Value) -> Vec<Step<'static>> {
        let frames = frames(answer.to_string().as_bytes()).unwrap();
        let text = String::from_utf8(frames.to_vec()).unwrap();
        let data = text.split("\n\n").filter(|frame| !frame.is_empty());
        data.map(|frame| chunk::read(frame.strip_prefix("data: ").unwrap()).unwrap().into_owned()).collect()
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
