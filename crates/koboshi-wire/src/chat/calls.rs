//! The tool calls of a conversation and what came back, for the loop guard.
//!
//! Only the calls since the user last wrote count, and of a long turn only the last ones are read; those before are counted.
//! A call is paired with its result by id within its own answer, because some servers use the same ids in each. Calls that
//! have no result are left out: nothing has happened yet. The dialect has no error flag.
//!
//! The form answers the same for all other dialects ([`Form::calls`](crate::form::Form::calls)). Here the messages since the user last wrote
//! are read alone, which costs half of making the form; a property test compares both.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::content;
use super::output::{CallFields, Function};
use super::request::{ChatRequest, GuardCall, Message, Role};
use crate::form::calls_since;
use crate::lenient::{List, Object};
use crate::step::join;

impl<'a> ChatRequest<'a> {
    /// Number of the current user turn: how often the user has written.
    #[must_use]
    pub fn turn(&self) -> u32 {
        let written = (0..self.messages.len()).filter(|index| self.is_real_user(*index)).count();
        u32::try_from(written).unwrap_or(u32::MAX)
    }

    /// The answered tool calls since the user last wrote, oldest first. All but the last 300 are only counted: their texts are
    /// empty.
    #[must_use]
    pub fn calls(&self) -> Vec<GuardCall<'a>> {
        let start =
            (0..self.messages.len()).rev().find(|index| self.is_real_user(*index)).map_or(0, |at| at + 1);
        let is_answer = |message: &Message<'_>| message.role == Role::Assistant;
        calls_since(&self.messages, start, self.turn(), is_answer, paired, counted)
    }
}

/// The calls of an answer with their results.
fn paired<'a>(asked: &[Message<'a>], results: &[Message<'a>], blank: &GuardCall<'a>) -> Vec<GuardCall<'a>> {
    let asked: Vec<_> = asked.iter().flat_map(calls_of).collect();
    // Several calls of one answer may have one id, or none: then their order decides.
    let mut open: HashMap<&str, std::collections::VecDeque<usize>> = HashMap::new();
    for (index, call) in asked.iter().enumerate() {
        open.entry(call.id.as_deref().unwrap_or_default()).or_default().push_back(index);
    }
    let mut outputs: Vec<Option<Cow<'a, str>>> = Vec::new();
    outputs.resize_with(asked.len(), || None);
    let shown: Vec<String> =
        results.iter().filter(|message| !message.is_result()).flat_map(marks_of).collect();
    for result in results.iter().filter(|message| message.is_result()) {
        let id = result.tool_call_id.as_deref().unwrap_or_default();
        let index = open.get_mut(id).and_then(std::collections::VecDeque::pop_front);
        if let Some(output) = index.and_then(|index| outputs.get_mut(index)) {
            *output = Some(compared(result, &shown));
        }
    }
    let answered = asked.into_iter().zip(outputs).filter_map(|(call, output)| Some((call, output?)));
    answered
        .map(|(call, output)| GuardCall {
            args: call.function.arguments_text().unwrap_or_default(),
            tool: call.function.name.unwrap_or_default(),
            output,
            ..blank.clone()
        })
        .collect()
}

/// What the guard compares: the text of a result, a mark for each image or file, and the marks of what was shown after the results. The
/// results share those: nothing says whose they are.
fn compared<'a>(result: &Message<'a>, shown: &[String]) -> Cow<'a, str> {
    let mut all = result.text();
    for mark in marks_of(result).into_iter().chain(shown.iter().cloned()) {
        join(&mut all, Cow::Owned(mark), "\n");
    }
    all.unwrap_or_default()
}

fn marks_of(message: &Message<'_>) -> Vec<String> {
    message.content.map(content::marks).unwrap_or_default()
}

/// As many blank calls as the answer made and got answered.
fn counted<'a>(asked: &[Message<'a>], results: &[Message<'a>], blank: &GuardCall<'a>) -> Vec<GuardCall<'a>> {
    let count = |message: &Message<'_>| {
        let list = message.tool_calls.map(RawValue::get);
        let made = list.and_then(|text| serde_json::from_str::<List<IgnoredAny>>(text).ok());
        made.map_or(0, |made| made.0.len()) + usize::from(message.function_call.is_some())
    };
    let made: usize = asked.iter().map(count).sum();
    let answered = results.iter().filter(|message| message.is_result()).count();
    vec![blank.clone(); made.min(answered)]
}

/// The calls of a message, in both forms.
fn calls_of<'a>(message: &Message<'a>) -> Vec<CallFields<'a>> {
    let list = message.tool_calls.map(RawValue::get);
    let List(calls) = list
        .and_then(|text| serde_json::from_str::<List<Object<CallFields<'a>>>>(text).ok())
        .unwrap_or_default();
    let mut calls: Vec<CallFields<'a>> = calls.into_iter().map(|Object(call)| call).collect();
    let old = message.function_call.map(RawValue::get);
    if let Some(Object(function)) =
        old.and_then(|text| serde_json::from_str::<Object<Function<'a>>>(text).ok())
    {
        calls.push(CallFields { function, ..CallFields::default() });
    }
    calls
}
